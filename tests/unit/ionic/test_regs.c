// SPDX-License-Identifier: GPL-2.0-or-later
/* The registers of BAR0: every offset, every width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_guest.h"

static struct fake_guest guest;

static int setup(void **state)
{
	(void)state;
	fake_guest_create(&guest, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_guest_destroy(&guest);
	return 0;
}

static uint64_t counter(const char *name)
{
	return counter_get(counter_find(name));
}

#define DOORBELL 0x800
#define DONE     0x804
#define CMD      0x808
#define COMP     0x848
#define DATA     0x888

static void test_dev_info(void **state)
{
	(void)state;
	assert_int_equal(fake_read(&guest, 0x000, 4), 0x44455649);
	assert_int_equal(fake_read(&guest, 0x004, 1), 1);
	assert_int_equal(fake_read(&guest, 0x005, 1), IONIC_ASIC_SALINA);
	assert_int_equal(fake_read(&guest, 0x006, 1), 7);
	assert_int_equal(fake_read(&guest, 0x007, 1), 0x11);
	assert_int_not_equal(fake_read(&guest, 0x008, 4), 0);
	/* Pieces of several registers at once, as ethtool -d reads them. */
	assert_int_equal(fake_read(&guest, 0x004, 4), 0x11070401);
	assert_int_equal(fake_read(&guest, 0x000, 8), 0x1107040144455649);
}

static void test_strings(void **state)
{
	char text[33] = "";

	(void)state;
	for (unsigned i = 0; i < 32; i += 4)
		fake_bar_read(&guest, 0, 0x00c + i, text + i, 4);
	assert_string_equal(text, "test-1.2.3");
	for (unsigned i = 0; i < 32; i++)
		fake_bar_read(&guest, 0, 0x02c + i, text + i, 1);
	assert_string_equal(text, "SN0001");
}

/* Whatever the offset and width, a read is the bytes that single-byte reads would give. */
static void test_every_read_is_made_of_bytes(void **state)
{
	uint8_t bytes[0x2200], wide[8];

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		fake_write(&guest, CMD + i, i * 3 + 1, 1);
	fake_write(&guest, 0x2000, 0x12345678, 4);
	/* From behind the heartbeat, which moves. */
	for (unsigned i = 0x0c; i < sizeof(bytes); i++)
		fake_bar_read(&guest, 0, i, &bytes[i], 1);
	for (unsigned i = 0x0c; i < sizeof(bytes) - 8; i++) {
		for (unsigned size = 2; size <= 8; size++) {
			fake_bar_read(&guest, 0, i, wide, size);
			assert_memory_equal(wide, bytes + i, size);
		}
	}
}

static void test_info_is_read_only(void **state)
{
	uint64_t before = counter("ionic_reg_read_only_write");

	(void)state;
	for (unsigned i = 0; i < 0x4c; i++)
		fake_write(&guest, i, 0xff, 1);
	test_dev_info(state);
	test_strings(state);
	fake_write(&guest, 0, 0, 4);
	assert_int_equal(fake_read(&guest, 0, 4), 0x44455649);
	assert_true(counter("ionic_reg_read_only_write") > before);
}

/* The windows take every width at every alignment, and keep to themselves. */
static void test_windows(void **state)
{
	static const struct {
		uint32_t offset, size;
	} windows[] = {{CMD, 64}, {DATA, 1912}};
	uint64_t value;

	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(windows); w++) {
		for (unsigned size = 1; size <= 8; size++) {
			for (uint32_t i = 0; i + size <= windows[w].size; i++) {
				uint64_t mask = UINT64_MAX >> (64 - 8 * size);

				value = (UINT64_C(0x0102030405060708) * (i + 1)) & mask;
				fake_write(&guest, windows[w].offset + i, value, size);
				assert_int_equal(fake_read(&guest, windows[w].offset + i, size),
				                 value);
			}
		}
	}
	assert_int_equal(fake_read(&guest, DOORBELL, 8), 0);
	assert_int_equal(fake_read(&guest, COMP, 8), 0);
	assert_int_equal(fake_read(&guest, COMP + 8, 8), 0);
	assert_false(guest.dev->devcmd_pending);
}

static void test_window_end(void **state)
{
	(void)state;
	/* The last quadword of the data window, and a write that runs out of it. */
	fake_write(&guest, 0xff8, 0x1122334455667788, 8);
	assert_int_equal(fake_read(&guest, 0xff8, 8), 0x1122334455667788);
	fake_write(&guest, 0xffc, UINT64_MAX, 8);
	assert_int_equal(fake_read(&guest, 0xffc, 8), 0xffffffff);
	/* The command window ends where the completion begins. */
	fake_write(&guest, 0x844, UINT64_MAX, 8);
	assert_int_equal(fake_read(&guest, 0x844, 8), 0xffffffff);
}

static void test_completion_is_read_only(void **state)
{
	(void)state;
	guest.dev->devcmd.comp.bytes[0] = 7;
	for (unsigned size = 1; size <= 8; size++)
		fake_write(&guest, COMP, UINT64_MAX, size);
	assert_int_equal(fake_read(&guest, COMP, 8), 7);
}

/* Only a whole write of 1 to the doorbell starts anything. */
static void test_doorbell_needs_its_width(void **state)
{
	(void)state;
	for (unsigned size = 1; size <= 8; size++) {
		if (size == 4)
			continue;
		fake_write(&guest, DOORBELL, 1, size);
		assert_false(guest.dev->devcmd_pending);
	}
	fake_write(&guest, DOORBELL - 2, 0x10000, 4);
	assert_false(guest.dev->devcmd_pending);
	fake_write(&guest, DOORBELL, 0, 4);
	assert_false(guest.dev->devcmd_pending);
	fake_write(&guest, DOORBELL, 1, 4);
	assert_true(guest.dev->devcmd_pending);
}

/* Reading twice shows the same; nothing is started or acknowledged by looking (ethtool -d). */
static void test_reads_have_no_side_effects(void **state)
{
	uint32_t first[64] = {0}, second[64] = {0};

	(void)state;
	fake_write(&guest, CMD, IONIC_CMD_NOP, 4);
	fake_write(&guest, DOORBELL, 1, 4);
	fake_run(&guest);
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < 32; i++) {
			uint32_t *dst = pass ? second : first;

			dst[i] = i == 2 ? 0 : (uint32_t)fake_read(&guest, 4 * i, 4);
			dst[32 + i] = (uint32_t)fake_read(&guest, 0x800 + 4 * i, 4);
		}
	}
	assert_memory_equal(first, second, sizeof(first));
	assert_int_equal(fake_read(&guest, DONE, 4), 1);
	assert_int_equal(guest.dev->count.devcmds, 1);
}

/* Writing 0 to the doorbell leaves completion and data for the driver to read (spec 2.3). */
static void test_doorbell_zero_keeps_everything(void **state)
{
	(void)state;
	fake_write(&guest, CMD, IONIC_CMD_IDENTIFY | 2 << 8, 4);
	fake_write(&guest, DOORBELL, 1, 4);
	fake_run(&guest);
	fake_write(&guest, DOORBELL, 0, 4);
	fake_run(&guest);
	assert_int_equal(fake_read(&guest, DONE, 4), 1);
	assert_int_equal(fake_read(&guest, COMP + 1, 1), 2);
	assert_int_equal(fake_read(&guest, DATA + 12, 4), 9);
	assert_int_equal(guest.dev->count.devcmds, 1);
}

static void test_one_command_at_a_time(void **state)
{
	uint64_t before = counter("ionic_devcmd_busy");

	(void)state;
	fake_write(&guest, DOORBELL, 1, 4);
	fake_write(&guest, DOORBELL, 1, 4);
	fake_run(&guest);
	assert_int_equal(guest.dev->count.devcmds, 1);
	assert_int_equal(counter("ionic_devcmd_busy"), before + 1);
}

static void test_interrupt_registers(void **state)
{
	(void)state;
	for (unsigned i = 0; i < fake_profile.intr_vectors; i++) {
		uint32_t base = 0x2000 + 32 * i;

		assert_int_equal(fake_read(&guest, base + 4, 4), 1); /* masked after reset */
		fake_write(&guest, base + 0, 21 + i, 4);
		fake_write(&guest, base + 12, 1, 4);
		assert_int_equal(fake_read(&guest, base + 0, 4), 21 + i);
		assert_int_equal(fake_read(&guest, base + 8, 4), 0);
		assert_int_equal(fake_read(&guest, base + 12, 4), 1);
		assert_int_equal(fake_read(&guest, base + 16, 4), 0);
		assert_int_equal(fake_read(&guest, base + 20, 4), 0);
		/* A part of a register is no register. */
		fake_write(&guest, base + 4, 0, 1);
		fake_write(&guest, base + 4, 0, 8);
		fake_write(&guest, base + 5, 0, 4);
		assert_int_equal(fake_read(&guest, base + 4, 4), 1);
		fake_write(&guest, base + 4, 0, 4);
		assert_int_equal(fake_read(&guest, base + 4, 4), 0);
	}
}

static void test_interrupts_end_with_the_vectors(void **state)
{
	uint32_t base = 0x2000 + 32 * fake_profile.intr_vectors;
	uint64_t before = counter("ionic_reg_unknown_write");

	(void)state;
	fake_write(&guest, base + 0, 5, 4);
	assert_int_equal(fake_read(&guest, base + 0, 4), 0);
	assert_int_equal(fake_read(&guest, base + 4, 4), 0);
	assert_int_equal(counter("ionic_reg_unknown_write"), before + 1);
}

/* The whole BAR, written and read in every width: nothing but the registers answers. */
static void test_whole_bar(void **state)
{
	(void)state;
	for (unsigned size = 1; size <= 8; size++) {
		for (uint32_t i = 0; i + size <= IONIC_BAR_REGS_SIZE; i++) {
			if (i >= DOORBELL && i < DONE)
				continue;
			fake_write(&guest, i, UINT64_MAX, size);
			fake_read(&guest, i, size);
		}
		fake_run(&guest);
	}
	assert_int_equal(guest.dev->count.devcmds, 0);
	assert_int_equal(fake_read(&guest, 0x7000, 8), 0);
	assert_int_equal(fake_read(&guest, 0x1000, 8), 0);
}

static void test_doorbell_bar_reads_zero(void **state)
{
	uint64_t value = UINT64_MAX;

	(void)state;
	fake_bar_read(&guest, IONIC_BAR_DB, 8, &value, 8);
	assert_int_equal(value, 0);
}

static void test_pci_config(void **state)
{
	struct vfio_pci_config pci;

	(void)state;
	ionic_pci_config(&fake_profile, &pci);
	assert_int_equal(pci.vendor_id, 0x1dd8);
	assert_int_equal(pci.device_id, 0x1002);
	assert_int_equal(pci.subsystem_vendor_id, 0x1dd8);
	assert_int_equal(pci.subsystem_id, 0x5400);
	assert_int_equal(pci.class_code, 0x020000);
	assert_int_equal(pci.bar_size[0], 0x10000);
	assert_int_equal(pci.bar_size[2], 4 << 20);
	assert_int_equal(pci.msix_count, 9);
	assert_int_equal(pci.msix_table_offset, 0x8000);
	assert_int_equal(pci.msix_pba_offset, 0xc000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_dev_info, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_every_read_is_made_of_bytes, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_info_is_read_only, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_windows, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_window_end, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_completion_is_read_only, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_doorbell_needs_its_width, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reads_have_no_side_effects, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_doorbell_zero_keeps_everything, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_one_command_at_a_time, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_interrupt_registers, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_interrupts_end_with_the_vectors, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_whole_bar, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_doorbell_bar_reads_zero, setup, teardown),
	        cmocka_unit_test(test_pci_config),
	};

	return cmocka_run_group_tests_name("ionic/regs", tests, NULL, NULL);
}
