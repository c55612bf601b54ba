/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RoCEv2 headers and ICRC: the vectors of spec rocev2 5.3, read, written again, and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/icrc.h"
#include "net/roce_headers.h"

/* Packets from the IP header to the ICRC. V: made for the purpose. C: captured from others. */
static const struct {
	const char *name, *hex;
} vectors[] = {
        {"V1: RC SEND_ONLY, 13 B payload, pad 3, AckReq, DF, TTL 64",
         "4500003c123440004011147b0a0000020a000001c12312b7002800000430ffff000000128000abcd"
         "0102030405060708090a0b0c0d000000009278e6"},
        {"V2: same packet after a router: TTL 63, TOS 0x03 (CE)",
         "4503003c123440003f1115780a0000020a000001c12312b7002800000430ffff000000128000abcd"
         "0102030405060708090a0b0c0d000000009278e6"},
        {"V3: same as V1 with FECN set in BTH",
         "4500003c123440004011147b0a0000020a000001c12312b7002800000430ffff800000128000abcd"
         "0102030405060708090a0b0c0d000000009278e6"},
        {"V4: same as V1 with MigReq=1 (what real HCAs send)",
         "4500003c123440004011147b0a0000020a000001c12312b7002800000470ffff000000128000abcd"
         "0102030405060708090a0b0c0d0000001539db44"},
        {"V5: RDMA_WRITE_ONLY_WITH_IMM, SE, 8 B",
         "45000048123440004011146f0a0000020a000001c12312b7003400000b80ffff0000001280fffffe"
         "11223344556677880a0b0c0d00000008deadbeef00112233445566779220fd4f"},
        {"V6: RDMA_READ_REQUEST 4096 B",
         "4500003c123440004011147b0a0000020a000001c12312b7002800000c00ffff0000001280ffffff"
         "11223344556677880a0b0c0d00001000aeeb7dee"},
        {"V7: ACK, credits unlimited, MSN 7",
         "4500003012344000401114870a0000010a000002d8f312b7001c00001100ffff000000340000abcd"
         "1f000007dd80de61"},
        {"V8: RNR NAK timer 12, MSN 7",
         "4500003012344000401114870a0000010a000002d8f312b7001c00001100ffff000000340000abcd"
         "2c00000792d74083"},
        {"V9: COMPARE_SWAP",
         "45000048123440004011146f0a0000020a000001c12312b7003400001300ffff0000001280000005"
         "0000000000001000000002012222222222222222111111111111111159f221c7"},
        {"V10: ATOMIC_ACKNOWLEDGE",
         "45000038123440004011147f0a0000010a000002d8f312b7002400001200ffff0000003400000005"
         "1f0000081111111111111111fcad4494"},
        {"V11: SEND_ONLY_WITH_INVALIDATE 16 B (NVMe response capsule shape)",
         "4500004012344000401114770a0000020a000001c12312b7002c00001700ffff0000001280000006"
         "0000523100000000000000000000000000000000827354e8"},
        {"V12: IPv6 RC SEND_ONLY 1 B pad 3",
         "60000000001c1140fd000000000000000000000000000002fd000000000000000000000000000001"
         "c12312b7001c00000430ffff00000012800000105a0000008e6cf635"},
        {"V13: IPv6 same, traffic class 0xb9, flow label 0xabcde, hop limit 1: ICRC equals V12",
         "6b9abcde001c1101fd000000000000000000000000000002fd000000000000000000000000000001"
         "c12312b7001c00000430ffff00000012800000105a0000008e6cf635"},
        {"V14: UD SEND_ONLY_WITH_IMM, 4 B",
         "4500003c123440004011147b0a0000020a000001c12312b7002800006500ffff0000002200000001"
         "1111111100000033cafef00d0102030475563875"},
        {"V15: CNP",
         "45c2003c12344000401113b90a0000010a000002000012b7002800008100ffff4000003400000000"
         "000000000000000000000000000000003e26e231"},
        {"C1: ConnectX-4 Lx hardware CNP (scapy test file)",
         "45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000"
         "0000000000000000000000000000000082fd002a"},
        {"C2: UC SEND_ONLY, MigReq=1, pad 2, non-zero UDP checksum (scapy)",
         "45010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff000000d300cf1710"
         "4630818be28935d90e9a95505401be885e50000078f353f3"},
        {"C3: rxe READ request, 100 B",
         "4500003c363940004011f0750a0000010a000002d84612b7002800000c00ffff000000118029b957"
         "000055d4710ad8b00000050c00000064c88fa11d"},
        {"C4: rxe ACK, MSN 1",
         "45000030363840004011f0820a0000010a000002d84612b7001c00001100ffff0000001100360e9a"
         "1f000001152f16c1"},
        {"C5: rxe FETCH_ADD of 1",
         "450000481d5c4000401109470a0000020a000001c22612b7003400001400ffff0000001980e02852"
         "000055ca7680600000000ccb0000000000000001000000000000000068ee6073"},
        {"C6: rxe ATOMIC_ACKNOWLEDGE",
         "4500003837f740004011eebb0a0000010a000002c22612b7002400001200ffff0000001600e02852"
         "1f000001016fefdae876dfd7678b5455"},
        {"C7: rxe SEND_ONLY_WITH_INVALIDATE, a real NVMe response capsule",
         "45000040388440004011ee260a0000010a000002c88212b7002c00001700ffff0000001980340e7a"
         "000011e301000000000000000100000000000000134b1e53"},
        {"C8: rxe WRITE_LAST, 16 B",
         "4500003c392a40004011ed840a0000010a000002d99612b7002800000800ffff0000001a8058ce52"
         "00000000000000000000000000000000849fa8f8"},
        {"C9: rxe ACK over IPv6",
         "60000000001c1140fd000000000000000000000000000001fd000000000000000000000000000002"
         "ec1b12b7001c00001100ffff000000120009a3f91f00000116417fd3"},
        {"C10: rxe SEND_ONLY 16 B over IPv6",
         "6000000000281140fd000000000000000000000000000002fd000000000000000000000000000001"
         "ec1b12b7002800000400ffff000000158009a3f90000560a71c529d00000094b00000064e4f6bc3c"},
};

enum { LINK = 14, FRAME_MAX = 128 };

/* The vector behind an Ethernet header. Returns the size. */
static size_t frame_of(size_t index, uint8_t frame[FRAME_MAX])
{
	const char *hex = vectors[index].hex;
	size_t size = LINK;
	unsigned byte;

	memset(frame, 2, LINK);
	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		frame[size++] = (uint8_t)byte;
	frame[12] = frame[LINK] >> 4 == 4 ? 0x08 : 0x86;
	frame[13] = frame[LINK] >> 4 == 4 ? 0x00 : 0xdd;
	return size;
}

static void parse_all(void **state)
{
	struct roce_packet packet;
	uint8_t frame[FRAME_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		size_t size = frame_of(i, frame);

		assert_true(roce_is_packet(frame, size));
		if (roce_parse(frame, size, &packet) != ROCE_OK)
			fail_msg("%s: refused", vectors[i].name);
		/* what an Ethernet sender may have padded a short frame with is not looked at */
		frame[size] = 0x55;
		assert_int_equal(roce_parse(frame, size + 1, &packet), ROCE_OK);
	}
}

/* What was read is written again, to the last bit, where nothing is left to a sender's taste. */
static void write_again(void **state)
{
	uint8_t frame[FRAME_MAX], again[FRAME_MAX + 8];
	struct roce_packet packet;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		size_t size = frame_of(i, frame);

		assert_int_equal(roce_parse(frame, size, &packet), ROCE_OK);
		size_t bth =
		        (size_t)(packet.payload - frame) - roce_headers_size(packet.fields.opcode);

		if (frame[bth + 1] & 0x40 || frame[bth + 4] & 0x80 || frame[bth - 1] ||
		    frame[bth - 2])
			continue; /* MigReq, FECN, UDP checksum: we send none */
		memcpy(again, frame, bth);
		size_t at = bth + roce_put_headers(&packet.fields, packet.size, again + bth);

		memcpy(again + at, packet.payload, packet.size);
		at = roce_seal(again, LINK, at + packet.size,
		               (uint16_t)(frame[LINK + 4] << 8 | frame[LINK + 5]));
		assert_int_equal(at, size);
		if (memcmp(again, frame, size) != 0)
			fail_msg("%s: differs when written again", vectors[i].name);
	}
}

/* Every single bit counts, but for those that routers may change. */
static void flip_bits(void **state)
{
	struct roce_packet packet;
	uint8_t frame[FRAME_MAX];
	unsigned passed = 0;

	(void)state;
	for (size_t bit = LINK * 8; bit < 60 * 8 + LINK * 8; bit++) {
		size_t size = frame_of(0, frame);

		frame[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		passed += roce_parse(frame, size, &packet) == ROCE_OK;
	}
	/* TOS, TTL, IP checksum, UDP checksum, and the byte of marks in front of the QPN */
	assert_int_equal(passed, 8 + 8 + 16 + 16 + 8);
}

/* Cut short at every byte, and with lengths that contradict each other. */
static void lengths(void **state)
{
	struct roce_packet packet;
	uint8_t frame[FRAME_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		size_t size = frame_of(i, frame);

		for (size_t cut = 0; cut < size; cut++) {
			uint8_t *exact = malloc(cut ? cut : 1); /* for the sanitizers */

			memcpy(exact, frame, cut);
			assert_int_not_equal(roce_parse(exact, cut, &packet), ROCE_OK);
			free(exact);
		}
	}
	frame_of(0, frame);
	frame[LINK + 25] -= 4; /* UDP length */
	assert_int_equal(roce_parse(frame, LINK + 60, &packet), ROCE_BAD_LENGTH);
	frame_of(0, frame);
	frame[LINK + 6] = 0x20; /* more fragments */
	assert_int_equal(roce_parse(frame, LINK + 60, &packet), ROCE_BAD_LENGTH);
	frame_of(0, frame);
	frame[LINK + 28] = 0x15;
	assert_int_equal(roce_parse(frame, LINK + 60, &packet), ROCE_BAD_OPCODE);
	frame_of(0, frame);
	frame[LINK + 29] |= 1;
	assert_int_equal(roce_parse(frame, LINK + 60, &packet), ROCE_BAD_VERSION);
	frame_of(0, frame);
	frame[LINK + 23]++; /* UDP port */
	assert_int_equal(roce_parse(frame, LINK + 60, &packet), ROCE_NOT_ROCE);
	assert_false(roce_is_packet(frame, LINK + 60));
}

static void fields(void **state)
{
	struct roce_packet packet;
	uint8_t frame[FRAME_MAX];

	(void)state;
	assert_int_equal(roce_parse(frame, frame_of(4, frame), &packet), ROCE_OK); /* V5 */
	assert_int_equal(packet.fields.opcode, ROCE_WRITE_ONLY_IMM);
	assert_true(packet.fields.solicited && packet.fields.ack_request);
	assert_int_equal(packet.fields.qpn, 0x12);
	assert_int_equal(packet.fields.psn, 0xfffffe);
	assert_true(packet.fields.va == 0x1122334455667788);
	assert_int_equal(packet.fields.rkey, 0x0a0b0c0d);
	assert_int_equal(packet.fields.length, 8);
	assert_memory_equal(&packet.fields.imm, "\xde\xad\xbe\xef", 4);
	assert_int_equal(packet.size, 8);
	assert_int_equal(roce_parse(frame, frame_of(7, frame), &packet), ROCE_OK); /* V8 */
	assert_int_equal(packet.fields.syndrome, ROCE_SYNDROME_RNR + 12);
	assert_int_equal(packet.fields.msn, 7);
	assert_int_equal(roce_parse(frame, frame_of(8, frame), &packet), ROCE_OK); /* V9 */
	assert_true(packet.fields.swap_add == 0x2222222222222222);
	assert_true(packet.fields.compare == 0x1111111111111111);
	assert_int_equal(roce_parse(frame, frame_of(1, frame), &packet), ROCE_OK); /* V2 */
	assert_true(packet.congested);
}

static void source_ports(void **state)
{
	(void)state;
	assert_int_equal(roce_source_port(0x12, 0x34), 0xc3a8);
	assert_int_equal(roce_source_port(0x1000, 0x2001), 0xd020);
	assert_int_equal(roce_source_port(0x2001, 0x1000), 0xd020);
}

static void sequence_numbers(void **state)
{
	(void)state;
	assert_int_equal(roce_psn_add(0xfffffe, 3), 1);
	assert_int_equal(roce_psn_diff(1, 0xfffffe), 3);
	assert_int_equal(roce_psn_diff(0xfffffe, 1), -3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(parse_all),        cmocka_unit_test(write_again),
	        cmocka_unit_test(flip_bits),        cmocka_unit_test(lengths),
	        cmocka_unit_test(fields),           cmocka_unit_test(source_ports),
	        cmocka_unit_test(sequence_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
