/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration space: capabilities, sizing, masks, resets, and any access at all
 * (spec vfio-user 9 and 12, row 41). */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "unit.h"

static void has_the_identity(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_config_read(rig, 0x00, 4), 0x10021dd8);
	assert_int_equal(rig_config_read(rig, 0x04, 4), 0x00100000);
	assert_int_equal(rig_config_read(rig, 0x08, 4), 0x02000003);
	assert_int_equal(rig_config_read(rig, 0x0e, 1), 0);
	assert_int_equal(rig_config_read(rig, 0x2c, 4), 0x40001dd8);
	assert_int_equal(rig_config_read(rig, 0x3d, 1), 0); /* no INTx */
	assert_int_equal(rig_config_read(rig, 0x100, 4), 0);
}

/* The walk that QEMU and Linux make. */
static void lists_its_capabilities(void **state)
{
	struct rig *rig = *state;
	static const uint8_t expected[][2] = {{0x50, 0x01}, {0x60, 0x11}, {0x70, 0x10}};
	uint32_t at = rig_config_read(rig, 0x34, 1);

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(at, expected[i][0]);
		assert_int_equal(rig_config_read(rig, at, 1), expected[i][1]);
		at = rig_config_read(rig, at + 1, 1);
	}
	assert_int_equal(at, 0);
	/* MSI-X */
	assert_int_equal(rig_config_read(rig, 0x62, 2), RIG_VECTORS - 1);
	assert_int_equal(rig_config_read(rig, 0x64, 4), RIG_TABLE);
	assert_int_equal(rig_config_read(rig, 0x68, 4), RIG_PBA);
	/* PCI Express: version 2, endpoint, reset of the function, 16 lanes of 16 GT/s */
	assert_int_equal(rig_config_read(rig, 0x72, 2), 0x0002);
	assert_int_equal(rig_config_read(rig, 0x74, 4), 0x10008001);
	assert_int_equal(rig_config_read(rig, 0x78, 2), 0x2810);
	assert_int_equal(rig_config_read(rig, 0x7c, 4), 0x104);
	assert_int_equal(rig_config_read(rig, 0x82, 2), 0x104);
	assert_int_equal(rig_config_read(rig, 0x9c, 4), 0x1e);
	/* power management: no soft reset */
	assert_int_equal(rig_config_read(rig, 0x52, 2), 0x0003);
	assert_int_equal(rig_config_read(rig, RIG_PMCSR, 2), 0x0008);
}

static void sizes_its_bars(void **state)
{
	static const uint32_t masks[7] = {0xffff0004, 0xffffffff, 0xfff00004, 0xffffffff, 0, 0, 0};
	struct rig *rig = *state;

	for (unsigned i = 0; i < 7; i++) {
		uint32_t offset = i < 6 ? 0x10 + 4 * i : 0x30; /* the last is the ROM */

		rig_config_write(rig, offset, UINT32_MAX, 4);
		assert_int_equal(rig_config_read(rig, offset, 4), masks[i]);
		rig_config_write(rig, offset, 0xabcdef04, 4);
		assert_int_equal(rig_config_read(rig, offset, 4),
		                 (0xabcdef04 & masks[i] & ~4u) | (masks[i] & 4));
	}
	/* bytewise too */
	rig_config_write(rig, 0x1a, 0xff, 1);
	rig_config_write(rig, 0x1b, 0xff, 1);
	assert_int_equal(rig_config_read(rig, 0x18, 4), 0xfff00004);
}

static void keeps_what_can_be_written_and_nothing_else(void **state)
{
	static uint8_t ones[4096], before[4096], after[4096];
	struct rig *rig = *state;
	static const struct {
		uint32_t offset, mask;
	} writable[] = {
	        {0x04, 0x0557}, {0x0c, 0xff}, {0x3c, 0xff}, {0x62, 0xc000},
	        {0x78, 0x78ff}, {0x80, 0xcb}, {0x98, 0x10}, {0xa0, 0x0f},
	};

	memset(ones, 0xff, sizeof(ones));
	assert_int_equal(rig_read(rig, 7, 0, before, sizeof(before)), 0);
	/* all but the BARs and power management, which have tests of their own, and FLR */
	assert_int_equal(rig_write(rig, 7, 0, ones, 0x10), 0);
	assert_int_equal(rig_write(rig, 7, 0x28, ones, 0x28), 0);
	assert_int_equal(rig_write(rig, 7, 0x58, ones, 0x21), 0);
	rig_config_write(rig, 0x79, 0x7f, 1);
	assert_int_equal(rig_write(rig, 7, 0x7a, ones, 4096 - 0x7a), 0);
	assert_int_equal(rig_read(rig, 7, 0, after, sizeof(after)), 0);
	for (size_t i = 0; i < sizeof(writable) / sizeof(writable[0]); i++) {
		before[writable[i].offset] |= writable[i].mask & 0xff;
		before[writable[i].offset + 1] |= (uint8_t)(writable[i].mask >> 8);
	}
	assert_memory_equal(after, before, sizeof(after));
	assert_int_equal(rig->resets[VFIO_RESET_FUNCTION], 0);
}

/* A 2-byte write at MSI-X flags + 1 once broke a server; so does whatever straddles registers. */
static void takes_any_access(void **state)
{
	struct rig *rig = *state;
	uint8_t data[64], got[64];
	uint32_t random = 3;

	for (unsigned i = 0; i < 5000; i++) {
		uint32_t size = 1 + unit_random(&random) % 64;
		uint64_t offset = unit_random(&random) % (i % 2 ? 4096 - size + 1 : 0xc0);

		for (unsigned j = 0; j < size; j++)
			data[j] = (uint8_t)unit_random(&random);
		assert_int_equal(rig_write(rig, 7, offset, data, size), 0);
		assert_int_equal(rig_read(rig, 7, offset, got, size), 0);
	}
	assert_int_equal(rig_call(rig, VFIO_USER_RESET, NULL, 0, NULL, 0), 0);
	has_the_identity(state);
}

static void powers_down_and_up(void **state)
{
	struct rig *rig = *state;
	struct guest_mem *mem = vfio_server_guest_mem(rig->server);
	uint8_t byte;

	rig_enable(rig);
	assert_int_equal(rig_map(rig, 0, 4096, 3, -1, 0), 0);
	assert_int_equal(guest_mem_map(mem, 0, 0, GUEST_READ, NULL, 0), 0);
	/* D1 and D2 do not exist */
	rig_config_write(rig, RIG_PMCSR, 1, 2);
	assert_int_equal(rig_config_read(rig, RIG_PMCSR, 2), 0x8);
	rig_config_write(rig, RIG_PMCSR, 2, 1);
	assert_int_equal(rig_config_read(rig, RIG_PMCSR, 2), 0x8);
	/* in D3 there is no DMA */
	rig_config_write(rig, RIG_PMCSR, 3, 2);
	assert_int_equal(rig_config_read(rig, RIG_PMCSR, 2), 0xb);
	assert_int_equal(guest_mem_read(mem, 0, &byte, 1), -EPERM);
	rig_config_write(rig, RIG_PMCSR, 0, 2);
	assert_int_equal(guest_mem_map(mem, 0, 0, GUEST_READ, NULL, 0), 0);
	/* and the rest is as before */
	assert_int_equal(rig_config_read(rig, RIG_COMMAND_REG, 2), 0x0406);
}

/* FLR: everything but the connection, memory and eventfds (spec vfio-user 4.11). */
static void resets_the_function(void **state)
{
	struct rig *rig = *state;
	int event = eventfd(0, EFD_NONBLOCK), memory = rig_memfd(8192);
	struct pci_irq *irq = vfio_server_pci_irq(rig->server);
	uint64_t generation;
	uint8_t byte;

	rig_enable(rig);
	rig_config_write(rig, 0x10, 0xfe000000, 4);
	assert_int_equal(rig_map(rig, 0x1000, 8192, 3, memory, 0), 0);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(0x24, 2, 3, 1), &event, 1), 0);
	pci_irq_raise(irq, 9); /* has no eventfd: pending */
	generation = guest_mem_generation(vfio_server_guest_mem(rig->server));
	/* without the bit, and with it in every width */
	rig_config_write(rig, RIG_DEVCTL, 0x2810, 2);
	assert_int_equal(rig->resets[VFIO_RESET_FUNCTION], 0);
	EXPECT_COUNT("vfio_flr", rig_config_write(rig, RIG_DEVCTL, 0xa810, 2));
	assert_int_equal(rig->resets[VFIO_RESET_FUNCTION], 1);
	assert_int_equal(rig_config_read(rig, RIG_DEVCTL, 2), 0x2810);
	assert_int_equal(rig_config_read(rig, RIG_COMMAND_REG, 2), 0);
	assert_int_equal(rig_config_read(rig, RIG_MSIX_CTRL, 2), RIG_VECTORS - 1);
	assert_int_equal(rig_config_read(rig, 0x10, 4), 4);
	assert_int_equal(guest_mem_read(vfio_server_guest_mem(rig->server), 0x1000, &byte, 1),
	                 -EPERM);
	rig_config_write(rig, RIG_DEVCTL, 0xa810, 4);
	rig_config_write(rig, RIG_DEVCTL + 1, 0x80, 1);
	assert_int_equal(rig->resets[VFIO_RESET_FUNCTION], 3);
	/* what stays */
	rig_enable(rig);
	assert_int_equal(guest_mem_generation(vfio_server_guest_mem(rig->server)), generation);
	assert_int_equal(guest_mem_read(vfio_server_guest_mem(rig->server), 0x1000, &byte, 1), 0);
	assert_int_equal(rig_signals(event), 0);
	pci_irq_raise(irq, 3);
	assert_int_equal(rig_signals(event), 1);
	/* and what does not: the pending vector */
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(0x24, 2, 9, 1), &event, 1), 0);
	assert_int_equal(rig_signals(event), 0);
	close(event);
	close(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	        TEST(has_the_identity),    TEST(lists_its_capabilities),
	        TEST(sizes_its_bars),      TEST(keeps_what_can_be_written_and_nothing_else),
	        TEST(takes_any_access),    TEST(powers_down_and_up),
	        TEST(resets_the_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
