// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work requests as the two drivers write them (the dumps of spec ionic-rdma 6.7), and what cannot
 * be.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rdma_rig.h"

static union ionic_rdma_wqe from_hex(const char *text)
{
	union ionic_rdma_wqe wqe;
	unsigned byte;
	size_t size = 0;
	int used;

	memset(&wqe, 0, sizeof(wqe));
	for (; sscanf(text, " %2x%n", &byte, &used) == 1; text += used)
		wqe.bytes[size++] = (uint8_t)byte;
	return wqe;
}

static struct rdma_wr decode(const char *text, size_t stride, int size, bool datagram)
{
	union ionic_rdma_wqe wqe = from_hex(text);
	struct rdma_wr wr;

	memset(&wr, 0xa5, sizeof(wr));
	assert_int_equal(ionic_wqe_send_size(&wqe, stride), size);
	ionic_wqe_send(&wqe, datagram, &wr);
	return wr;
}

static void test_inline_send(void **state)
{
	struct rdma_wr wr = decode("01 00 00 00 00 00 00 00 00 00 00 1c 00 00 00 00"
	                           "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 10"
	                           "30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 00",
	                           64, 48, false);

	(void)state;
	assert_int_equal(wr.opcode, RDMA_SEND);
	assert_int_equal(wr.flags, RDMA_WR_INLINE | RDMA_WR_SIGNALED);
	assert_int_equal(wr.length, 16);
	assert_int_equal(wr.num_sge, 0);
	assert_memory_equal(wr.inline_data, "0123456789abcde", 16);
}

static void test_write_imm_with_three_sges(void **state)
{
	struct rdma_wr wr = decode("00 00 00 00 00 00 00 00 05 03 10 1a aa bb cc dd"
	                           "00 00 7f 00 00 00 10 00 00 00 02 01 00 00 06 00"
	                           "00 00 01 00 00 00 02 00 00 00 03 00 00 00 00 00"
	                           "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
	                           "00 00 00 00 00 00 a0 00 00 00 01 00 00 00 01 01"
	                           "00 00 00 00 00 00 b0 00 00 00 02 00 00 00 01 02"
	                           "00 00 00 00 00 00 c0 00 00 00 03 00 00 00 01 03",
	                           128, 112, false);

	(void)state;
	assert_int_equal(wr.opcode, RDMA_WRITE_IMM);
	assert_int_equal(wr.flags, RDMA_WR_SOLICITED | RDMA_WR_SIGNALED);
	assert_memory_equal(&wr.imm, "\xaa\xbb\xcc\xdd", 4);
	assert_true(wr.remote.va == 0x00007f0000001000);
	assert_int_equal(wr.remote.rkey, 0x201);
	assert_int_equal(wr.length, 0x600);
	assert_int_equal(wr.num_sge, 3);
	assert_true(wr.sge[2].va == 0xc000);
	assert_int_equal(wr.sge[2].length, 0x300);
	assert_int_equal(wr.sge[2].lkey, 0x103);
}

static void test_read_with_fence(void **state)
{
	struct rdma_wr wr = decode("04 00 00 00 00 00 00 00 03 01 00 19 00 00 00 00"
	                           "00 00 7f 00 00 00 10 00 00 00 02 01 00 00 10 00"
	                           "00 00 00 00 00 01 00 00 00 00 10 00 00 00 01 01",
	                           64, 48, false);

	(void)state;
	assert_int_equal(wr.opcode, RDMA_READ);
	assert_int_equal(wr.flags, RDMA_WR_FENCE | RDMA_WR_SIGNALED);
	assert_int_equal(wr.length, 0x1000);
	assert_true(wr.sge[0].va == 0x10000);
}

static void test_atomics(void **state)
{
	struct rdma_wr wr = decode("02 00 00 00 00 00 00 00 06 01 00 18 00 00 00 00"
	                           "00 00 7f 00 00 00 20 00 00 00 03 02 55 55 66 66"
	                           "77 77 88 88 11 11 22 22 33 33 44 44 00 00 00 00"
	                           "00 00 00 00 00 00 d0 00 00 00 00 08 00 00 01 04",
	                           64, 64, false);

	(void)state;
	assert_int_equal(wr.opcode, RDMA_CMP_SWAP);
	assert_true(wr.remote.va == 0x00007f0000002000);
	assert_int_equal(wr.remote.rkey, 0x302);
	assert_true(wr.remote.swap_add == 0x5555666677778888);
	assert_true(wr.remote.compare == 0x1111222233334444);
	assert_int_equal(wr.num_sge, 1);
	assert_int_equal(wr.length, 8);
	assert_true(wr.sge[0].va == 0xd000 && wr.sge[0].length == 8 && wr.sge[0].lkey == 0x104);
}

static void test_reg_mr(void **state)
{
	struct rdma_wr wr = decode("02 00 00 00 00 00 00 00 08 04 00 00 00 00 07 04"
	                           "00 00 00 00 10 00 02 00 00 00 00 00 00 00 20 00"
	                           "00 00 00 00 00 00 02 00 00 00 00 00 55 55 00 00"
	                           "00 00 00 03 00 07 00 0c 00 00 00 00 00 00 00 00",
	                           64, 64, false);

	(void)state;
	assert_int_equal(wr.opcode, RDMA_REG_MR);
	assert_int_equal(wr.flags, 0);
	assert_int_equal(wr.key, 0x704);
	assert_true(wr.reg.va == 0x10000200 && wr.reg.length == 0x2000 && wr.reg.first == 0x200);
	assert_true(wr.reg.dma_addr == 0x55550000);
	assert_int_equal(wr.reg.page_count, 3);
	assert_int_equal(wr.reg.access, 7);
	assert_int_equal(wr.reg.page_shift, 12);
}

static void test_bind_and_invalidate(void **state)
{
	struct rdma_wr wr = decode("06 00 00 00 00 00 00 00 0a 03 00 18 00 00 06 02"
	                           "00 00 7f 00 00 00 30 00 00 00 00 00 00 00 08 00"
	                           "00 00 05 01 40 06 00 00 00 00 00 00 00 00 00 00",
	                           64, 64, false);

	(void)state;
	assert_int_equal(wr.opcode, RDMA_BIND_MW);
	assert_int_equal(wr.key, 0x602);
	assert_int_equal(wr.key_byte, 3);
	assert_true(wr.bind.va == 0x00007f0000003000 && wr.bind.length == 0x800);
	assert_int_equal(wr.bind.lkey, 0x501);
	assert_int_equal(wr.bind.access, 0x4006);
	wr = decode("05 00 00 00 00 00 00 00 09 00 00 18 00 00 04 03", 64, 64, false);
	assert_int_equal(wr.opcode, RDMA_LOCAL_INV);
	assert_int_equal(wr.inv_key, 0x403);
}

static void test_datagram(void **state)
{
	struct rdma_wr wr = decode("00 00 00 00 00 00 00 00 00 01 00 10 00 00 00 00"
	                           "00 00 00 07 00 00 00 09 11 11 11 11 00 00 10 00"
	                           "00 00 00 00 00 01 00 00 00 00 10 00 00 00 01 01",
	                           64, 48, true);

	(void)state;
	assert_int_equal(wr.opcode, RDMA_SEND);
	assert_int_equal(wr.flags, 0); /* the color is the library's */
	assert_int_equal(wr.ud.ah, 7);
	assert_int_equal(wr.ud.qpn, 9);
	assert_int_equal(wr.ud.qkey, 0x11111111);
}

/* The kernel writes 2 GiB for nothing (6.3); a message of 2 GiB is one. */
static void test_empty_sges(void **state)
{
	union ionic_rdma_wqe wqe = from_hex("00 00 00 00 00 00 00 00 00 02 00 08 00 00 00 00"
	                                    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 10"
	                                    "00 00 00 00 00 01 00 00 80 00 00 00 00 00 01 01"
	                                    "00 00 00 00 00 02 00 00 00 00 00 10 00 00 01 01");
	struct rdma_recv recv;
	struct rdma_wr wr;

	(void)state;
	assert_int_equal(ionic_wqe_send_size(&wqe, 64), 64);
	ionic_wqe_send(&wqe, false, &wr);
	assert_int_equal(wr.sge[0].length, 0);
	assert_int_equal(wr.sge[1].length, 16);
	wqe.any.length = be32_make(0x80000000);
	ionic_wqe_send(&wqe, false, &wr);
	assert_true(wr.sge[0].length == 0x80000000);
	wqe = from_hex("05 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00"
	               "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
	               "00 00 00 00 00 01 00 00 80 00 00 00 00 00 01 01");
	assert_int_equal(ionic_wqe_recv_size(&wqe, 64), 48);
	ionic_wqe_recv(&wqe, &recv);
	assert_int_equal(recv.length, 0);
	assert_int_equal(recv.sge[0].length, 0);
}

static void test_receive(void **state)
{
	union ionic_rdma_wqe wqe = from_hex("00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 40"
	                                    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
	                                    "00 00 00 00 00 00 10 00 00 00 00 40 00 00 01 01");
	struct rdma_recv recv;

	(void)state;
	assert_int_equal(ionic_wqe_recv_size(&wqe, 64), 48);
	ionic_wqe_recv(&wqe, &recv);
	assert_int_equal(recv.length, 64);
	assert_int_equal(recv.num_sge, 1);
	assert_int_equal(recv.sge[0].length, 64);
	assert_int_equal(recv.sge[0].lkey, 0x101);
}

/* By how much each stride falls short (6.2). */
static void test_limits(void **state)
{
	static const struct {
		unsigned num_sge, format;
		size_t stride;
		int size;
	} rows[] = {
	        {0, 0, 64, 32},       {2, 0, 64, 64},         {3, 0, 64, -EINVAL},
	        {6, 0, 128, 128},     {7, 0, 128, -EINVAL},   {1, 1, 64, -EINVAL},
	        {4, 1, 128, 128},     {5, 1, 128, -EINVAL},   {8, 1, 256, 192},
	        {9, 1, 512, -EINVAL}, {8, 0, 512, 160},       {9, 0, 512, -EINVAL},
	        {8, 2, 256, 192},     {255, 0, 512, -EINVAL}, {1, 3, 512, -EINVAL},
	        {0, 15, 64, -EINVAL}, {255, 2, 512, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		union ionic_rdma_wqe wqe = {
		        .any = {.num_sge_key = (uint8_t)rows[i].num_sge,
		                .flags = be16_make((uint16_t)(rows[i].format << 12))}};

		assert_int_equal(ionic_wqe_send_size(&wqe, rows[i].stride), rows[i].size);
		assert_int_equal(ionic_wqe_recv_size(&wqe, rows[i].stride), rows[i].size);
	}
}

static void test_inline_limits(void **state)
{
	union ionic_rdma_wqe wqe = {.any = {.flags = be16_make(RIG_INLINE)}};

	(void)state;
	for (unsigned shift = 6; shift <= 9; shift++) {
		size_t stride = 1u << shift;

		wqe.any.length = be32_make((uint32_t)stride - 32);
		assert_int_equal(ionic_wqe_send_size(&wqe, stride), stride);
		wqe.any.length = be32_make((uint32_t)stride - 31);
		assert_int_equal(ionic_wqe_send_size(&wqe, stride), -EINVAL);
		wqe.any.length = be32_make(UINT32_MAX);
		assert_int_equal(ionic_wqe_send_size(&wqe, stride), -EINVAL);
	}
}

static void test_unknown_opcodes(void **state)
{
	uint64_t before = rig_counter("ionic_wqe_bad_op");

	(void)state;
	for (unsigned op = 11; op < 256; op++) {
		union ionic_rdma_wqe wqe = {.any = {.op = (uint8_t)op}};

		assert_int_equal(ionic_wqe_send_size(&wqe, 512), -EINVAL);
	}
	assert_int_equal(rig_counter("ionic_wqe_bad_op"), before + 245);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_inline_send),
	        cmocka_unit_test(test_write_imm_with_three_sges),
	        cmocka_unit_test(test_read_with_fence),
	        cmocka_unit_test(test_atomics),
	        cmocka_unit_test(test_reg_mr),
	        cmocka_unit_test(test_bind_and_invalidate),
	        cmocka_unit_test(test_datagram),
	        cmocka_unit_test(test_empty_sges),
	        cmocka_unit_test(test_receive),
	        cmocka_unit_test(test_limits),
	        cmocka_unit_test(test_inline_limits),
	        cmocka_unit_test(test_unknown_opcodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
