/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes of BARs: what reaches the device, and what never does
 * (spec vfio-user 4.7 to 4.9 and 12, rows 11 to 14). */
#include "client.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "unit.h"

static void expect_access(struct rig *rig, unsigned number, const struct rig_access *expected)
{
	const struct rig_access *access = &rig->accesses[number];

	assert_true(number < rig->access_count);
	assert_int_equal(access->write, expected->write);
	assert_int_equal(access->bar, expected->bar);
	assert_int_equal(access->offset, expected->offset);
	assert_int_equal(access->size, expected->size);
	assert_int_equal(access->value, expected->value);
}

static void passes_every_width_and_alignment(void **state)
{
	struct rig *rig = *state;
	const uint64_t value = 0x8877665544332211;
	uint64_t got;

	for (uint32_t size = 1; size <= 8; size++)
		for (uint64_t offset = 0x100; offset < 0x108; offset++) {
			rig->access_count = 0;
			got = 0;
			assert_int_equal(rig_write(rig, 0, offset, &value, size), 0);
			assert_int_equal(rig_read(rig, 0, offset, &got, size), 0);
			uint64_t expected = size == 8 ? value : value & ((1ull << size * 8) - 1);

			assert_int_equal(rig->access_count, 2);
			expect_access(rig, 0,
			              &(struct rig_access){true, 0, offset, size, expected});
			expect_access(rig, 1,
			              &(struct rig_access){false, 0, offset, size, expected});
			assert_int_equal(got, expected);
		}
}

static void cuts_long_accesses_into_aligned_pieces(void **state)
{
	struct rig *rig = *state;
	uint8_t data[20], got[20];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	assert_int_equal(rig_write(rig, 0, 0x203, data, sizeof(data)), 0);
	assert_int_equal(rig->access_count, 3);
	expect_access(rig, 0, &(struct rig_access){true, 0, 0x203, 5, 0x0403020100});
	expect_access(rig, 1, &(struct rig_access){true, 0, 0x208, 8, 0x0c0b0a0908070605});
	expect_access(rig, 2, &(struct rig_access){true, 0, 0x210, 7, 0x131211100f0e0d});
	assert_int_equal(rig_read(rig, 0, 0x203, got, sizeof(got)), 0);
	assert_memory_equal(got, data, sizeof(data));
}

/* As large as a message can be, at both ends of the region. */
static void moves_whole_regions(void **state)
{
	static uint8_t data[RIG_BAR2_SIZE];
	struct rig *rig = *state;

	assert_int_equal(rig_read(rig, 2, 0, data, sizeof(data)), 0);
	assert_int_equal(rig->access_count, sizeof(data) / 8);
	/* larger than what a socket holds: in pieces, while the server takes them */
	struct vfio_user_region_access access = {.region = 2, .count = sizeof(data)};
	struct vfio_user_header header = {.command = VFIO_USER_REGION_WRITE,
	                                  .size = 32 + sizeof(data)};

	rig_send_raw(rig, &header, sizeof(header), NULL, 0);
	rig_send_raw(rig, &access, sizeof(access), NULL, 0);
	for (size_t sent = 0; sent < sizeof(data); sent += 65536) {
		rig_expect_silence(rig);
		rig_send_raw(rig, data + sent, 65536, NULL, 0);
	}
	rig_turn(rig);
	assert_int_equal(rig_receive(rig, &header, &access, sizeof(access)), sizeof(access));
	assert_int_equal(header.error, 0);
	assert_int_equal(rig->access_count, 2 * sizeof(data) / 8);
	/* and the connection goes on with small ones */
	rig_post(rig, 2, 0, 1, 8);
	rig_turn(rig);
	assert_int_equal(rig->access_count, 2 * sizeof(data) / 8 + 1);
}

static void posts_without_an_answer_and_in_order(void **state)
{
	struct rig *rig = *state;
	uint64_t value = 0;

	for (uint64_t i = 0; i < 200; i++)
		rig_post(rig, i % 2 ? 2 : 0, 8 * i, i, i % 3 ? 8 : 4);
	/* a read behind them sees them */
	assert_int_equal(rig_read(rig, 0, 8 * 198, &value, 8), 0);
	assert_int_equal(value, 198);
	for (uint64_t i = 0; i < 200; i++)
		expect_access(rig, (unsigned)i,
		              &(struct rig_access){true, i % 2 ? 2 : 0, 8 * i, i % 3 ? 8 : 4, i});
	rig_expect_silence(rig);
}

static int raw_access(struct rig *rig, uint16_t command, uint32_t region, uint64_t offset,
                      uint32_t count, size_t data_size)
{
	uint8_t body[64] = {0}, answer[64];
	struct vfio_user_region_access access = {
	        .offset = offset, .region = region, .count = count};

	memcpy(body, &access, sizeof(access));
	return rig_call(rig, command, body, sizeof(access) + data_size, answer, sizeof(answer));
}

static void refuses_what_is_not_inside(void **state)
{
	static const struct {
		const char *counter;
		uint64_t offset;
		uint32_t region, count;
	} cases[] = {
	        {"vfio_access_region", 0, 9, 4},
	        {"vfio_access_region", 0, UINT32_MAX, 0},
	        {"vfio_access_range", RIG_BAR0_SIZE, 0, 1},
	        {"vfio_access_range", RIG_BAR0_SIZE - 3, 0, 4},
	        {"vfio_access_range", UINT64_MAX, 0, 4},
	        {"vfio_access_range", UINT64_MAX - 3, 0, 4},
	        {"vfio_access_range", RIG_BAR0_SIZE + 1, 0, 0},
	        {"vfio_access_range", 0, 0, RIG_BAR0_SIZE + 1},
	        {"vfio_access_range", 0, 1, 4},
	        {"vfio_access_range", 0, 6, 4},
	        {"vfio_access_range", 4096, 7, 1},
	        {"vfio_access_range", 0, 8, 1},
	        {"vfio_access_large", 0, 2, VFIO_USER_MAX_TRANSFER + 1},
	        {"vfio_access_large", 0, 2, UINT32_MAX},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EXPECT_COUNT(
		        cases[i].counter,
		        assert_int_equal(raw_access(rig, VFIO_USER_REGION_READ, cases[i].region,
		                                    cases[i].offset, cases[i].count, 0),
		                         -EINVAL));
		EXPECT_COUNT(
		        cases[i].counter,
		        assert_int_equal(raw_access(rig, VFIO_USER_REGION_WRITE, cases[i].region,
		                                    cases[i].offset, cases[i].count, 4),
		                         -EINVAL));
	}
	assert_int_equal(rig->access_count, 0);
}

static void does_nothing_for_nothing(void **state)
{
	struct rig *rig = *state;

	for (uint32_t region = 0; region < 9; region++) {
		assert_int_equal(raw_access(rig, VFIO_USER_REGION_READ, region, 0, 0, 0), 16);
		assert_int_equal(raw_access(rig, VFIO_USER_REGION_WRITE, region, 0, 0, 0), 16);
	}
	assert_int_equal(raw_access(rig, VFIO_USER_REGION_READ, 0, RIG_BAR0_SIZE, 0, 0), 16);
	assert_int_equal(rig->access_count, 0);
}

/* Row 13. */
static void refuses_writes_whose_size_is_not_their_count(void **state)
{
	struct rig *rig = *state;

	for (uint32_t count = 0; count < 16; count++)
		if (count != 4)
			EXPECT_COUNT("vfio_write_size",
			             assert_int_equal(raw_access(rig, VFIO_USER_REGION_WRITE, 0, 0,
			                                         count, 4),
			                              -EINVAL));
	assert_int_equal(rig->access_count, 0);
	/* posted: dropped, silently */
	struct vfio_user_region_access access = {.count = 8};

	rig_send(rig, VFIO_USER_REGION_WRITE, VFIO_USER_NO_REPLY, &access, sizeof(access));
	EXPECT_COUNT("vfio_write_size", rig_expect_silence(rig));
}

/* ---- many writes in one message ---- */

struct multi {
	uint64_t count;
	struct vfio_user_multi_entry entries[200];
};

static uint64_t call_multi(struct rig *rig, const struct multi *multi, size_t entries)
{
	uint64_t done = UINT64_MAX;
	int got = rig_call(rig, VFIO_USER_REGION_WRITE_MULTI, multi, 8 + entries * 24, &done,
	                   sizeof(done));

	assert_int_equal(got, sizeof(done));
	return done;
}

static void writes_many_at_once(void **state)
{
	static struct multi multi = {.count = 200};
	struct rig *rig = *state;

	for (unsigned i = 0; i < 200; i++)
		multi.entries[i] = (struct vfio_user_multi_entry){.offset = i * 8,
		                                                  .region = i % 2 ? 2 : 0,
		                                                  .count = 1 + i % 8,
		                                                  .data = {(uint8_t)(i + 1)}};
	assert_int_equal(call_multi(rig, &multi, 200), 200);
	assert_int_equal(rig->access_count, 200);
	for (unsigned i = 0; i < 200; i++)
		expect_access(rig, i,
		              &(struct rig_access){true, i % 2 ? 2 : 0, i * 8, 1 + i % 8, i + 1});
	/* as QEMU sends it */
	rig_send(rig, VFIO_USER_REGION_WRITE_MULTI, VFIO_USER_NO_REPLY, &multi, 8 + 200 * 24);
	rig_expect_silence(rig);
	assert_int_equal(rig->access_count, 400);
	multi.count = 0;
	assert_int_equal(call_multi(rig, &multi, 0), 0);
	/* other regions too */
	multi.count = 1;
	multi.entries[0] = (struct vfio_user_multi_entry){
	        .offset = RIG_COMMAND_REG, .region = 7, .count = 2, .data = {6}};
	assert_int_equal(call_multi(rig, &multi, 1), 1);
	assert_int_equal(rig_config_read(rig, RIG_COMMAND_REG, 2), 6);
}

/* Row 14. */
static void stops_at_an_entry_that_is_not_valid(void **state)
{
	static const struct vfio_user_multi_entry bad[] = {
	        {.region = 0, .count = 0},
	        {.region = 0, .count = 9},
	        {.region = 9, .count = 4},
	        {.region = 0, .offset = RIG_BAR0_SIZE - 1, .count = 2},
	        {.region = 1, .count = 4},
	        {.region = 0, .offset = UINT64_MAX, .count = 8},
	        {.region = 0, .count = UINT32_MAX},
	};
	static struct multi multi = {.count = 5};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (unsigned j = 0; j < 5; j++)
			multi.entries[j] = (struct vfio_user_multi_entry){.count = 4};
		multi.entries[2] = bad[i];
		rig->access_count = 0;
		EXPECT_COUNT("vfio_multi_stopped", assert_int_equal(call_multi(rig, &multi, 5), 2));
		assert_int_equal(rig->access_count, 2);
	}
}

static void refuses_many_whose_size_is_not_their_count(void **state)
{
	static const uint64_t counts[] = {
	        0, 1, 3, UINT64_MAX, UINT64_MAX / 24 + 3, UINT64_C(1) << 32};
	static struct multi multi;
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		multi.count = counts[i];
		EXPECT_COUNT("vfio_multi_size",
		             assert_int_equal(rig_call(rig, VFIO_USER_REGION_WRITE_MULTI, &multi,
		                                       8 + 2 * 24, NULL, 0),
		                              -EINVAL));
	}
	multi.count = 2;
	EXPECT_COUNT("vfio_multi_size", assert_int_equal(rig_call(rig, VFIO_USER_REGION_WRITE_MULTI,
	                                                          &multi, 8 + 2 * 24 - 1, NULL, 0),
	                                                 -EINVAL));
	assert_int_equal(rig->access_count, 0);
}

/* ---- the parts of BAR0 that are not the device's ---- */

static void keeps_the_msix_table_from_the_device(void **state)
{
	struct rig *rig = *state;
	uint32_t entry[4] = {0xfee00000, 0, 0x4021, 0}, got[4];

	assert_int_equal(rig_read(rig, 0, RIG_TABLE + 16 * 5, got, 16), 0);
	assert_int_equal(got[3], 1); /* masked after a reset */
	assert_int_equal(rig_write(rig, 0, RIG_TABLE + 16 * 5, entry, 16), 0);
	assert_int_equal(rig_read(rig, 0, RIG_TABLE + 16 * 5, got, 16), 0);
	assert_memory_equal(got, entry, 16);
	assert_int_equal(rig->access_count, 0);
	assert_int_equal(rig_call(rig, VFIO_USER_RESET, NULL, 0, NULL, 0), 0);
	assert_int_equal(rig_read(rig, 0, RIG_TABLE + 16 * 5, got, 16), 0);
	assert_int_equal(got[0], 0);
	assert_int_equal(got[3], 1);
}

static void splits_accesses_at_the_borders_of_the_table(void **state)
{
	struct rig *rig = *state;
	const uint64_t end = RIG_TABLE + RIG_VECTORS * 16;
	uint8_t data[16], got[16];

	for (unsigned i = 0; i < 16; i++)
		data[i] = (uint8_t)(0x10 + i);
	assert_int_equal(rig_write(rig, 0, RIG_TABLE - 3, data, 8), 0);
	assert_int_equal(rig->access_count, 1);
	expect_access(rig, 0, &(struct rig_access){true, 0, RIG_TABLE - 3, 3, 0x121110});
	assert_int_equal(rig_write(rig, 0, end - 4, data, 8), 0);
	expect_access(rig, 1, &(struct rig_access){true, 0, end, 4, 0x17161514});
	assert_int_equal(rig_read(rig, 0, RIG_TABLE - 3, got, 8), 0);
	assert_memory_equal(got, data, 8);
	assert_int_equal(rig_read(rig, 0, end - 4, got, 8), 0);
	assert_memory_equal(got, data, 8);
}

static void shows_latched_vectors_in_the_pending_bits(void **state)
{
	struct rig *rig = *state;
	uint64_t bits[2], word = UINT64_MAX;
	uint32_t half;
	uint8_t byte;

	pci_irq_raise(vfio_server_pci_irq(rig->server), 0);
	pci_irq_raise(vfio_server_pci_irq(rig->server), 33);
	pci_irq_raise(vfio_server_pci_irq(rig->server), RIG_VECTORS - 1);
	assert_int_equal(rig_read(rig, 0, RIG_PBA, bits, sizeof(bits)), 0);
	assert_int_equal(bits[0], 1 | UINT64_C(1) << 33);
	assert_int_equal(bits[1], UINT64_C(1) << (RIG_VECTORS - 1 - 64));
	assert_int_equal(rig_read(rig, 0, RIG_PBA + 4, &half, 4), 0);
	assert_int_equal(half, 2);
	assert_int_equal(rig_read(rig, 0, RIG_PBA + 9, &byte, 1), 0);
	assert_int_equal(byte, 1 << 7);
	/* read-only, and not the device's */
	assert_int_equal(rig_write(rig, 0, RIG_PBA, &word, 8), 0);
	assert_int_equal(rig_read(rig, 0, RIG_PBA, bits, 8), 0);
	assert_int_equal(bits[0], 1 | UINT64_C(1) << 33);
	assert_int_equal(rig->access_count, 0);
	/* what is behind them is the device's */
	assert_int_equal(rig_read(rig, 0, RIG_PBA + 12, bits, 8), 0);
	assert_int_equal(rig->access_count, 1);
	expect_access(rig, 0, &(struct rig_access){false, 0, RIG_PBA + 16, 4, 0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	        TEST(passes_every_width_and_alignment),
	        TEST(cuts_long_accesses_into_aligned_pieces),
	        TEST(moves_whole_regions),
	        TEST(posts_without_an_answer_and_in_order),
	        TEST(refuses_what_is_not_inside),
	        TEST(does_nothing_for_nothing),
	        TEST(refuses_writes_whose_size_is_not_their_count),
	        TEST(writes_many_at_once),
	        TEST(stops_at_an_entry_that_is_not_valid),
	        TEST(refuses_many_whose_size_is_not_their_count),
	        TEST(keeps_the_msix_table_from_the_device),
	        TEST(splits_accesses_at_the_borders_of_the_table),
	        TEST(shows_latched_vectors_in_the_pending_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
