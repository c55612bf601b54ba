/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptions of fabrics, the patterns and digests of loopback, and who gets a message. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/log.h"
#include "fabric/fabric_internal.h"
#include "verbs.h"

#define PD  1
#define ALL 0x1f

static void descriptions(void **state)
{
	static const struct {
		const char *text;
		const char *error; /* NULL: is good */
	} cases[] = {
	        {"loopback", NULL},
	        {"loopback:mode=preserve", NULL},
	        {"loopback:mode=zeros", NULL},
	        {"loopback:mode=ones", NULL},
	        {"loopback:mode=increment", NULL},
	        {"loopback:mode=decrement", NULL},
	        {"loopback:mode=alternate", NULL},
	        {"loopback:mode=random", NULL},
	        {"loopback:md5", NULL},
	        {"loopback:md5,mode=ones", NULL},
	        {"none", NULL},
	        {"", "unknown fabric ''"},
	        {"loop", "unknown fabric 'loop'"},
	        {"loopbackx", "unknown fabric 'loopbackx'"},
	        {"none:x", "unknown option 'x'"},
	        {"loopback:", "unknown option ''"},
	        {"loopback:md5,", "unknown option ''"},
	        {"loopback:mode", "unknown option 'mode'"},
	        {"loopback:mode=", "unknown mode ''"},
	        {"loopback:mode=zero", "unknown mode 'zero'"},
	        {"loopback:mode=zeros,md6", "unknown option 'md6'"},
	};
	struct rdma_fabric *fabric;
	char error[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int result = fabric_create(&(struct fabric_place){0}, cases[i].text, &fabric, error,
		                           sizeof(error));

		if (result != (cases[i].error ? -EINVAL : 0))
			fail_msg("'%s': %d", cases[i].text, result);
		if (result == 0)
			fabric_destroy(fabric);
		else if (strncmp(error, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("'%s': %s", cases[i].text, error);
	}
	fabric_destroy(NULL);
}

/* Sends SIZE bytes in a message of OPCODE, returns what has landed in LANDED. */
static void transfer(const char *description, enum rdma_opcode opcode, uint8_t *landed, size_t size)
{
	struct nic *nic = nic_new(description);
	struct test_qp *a = qp_new(nic, RDMA_QP_RC, PD), *b = qp_new(nic, RDMA_QP_RC, PD);
	struct test_mr src = mr_scattered(nic, PD, 0x33, 1 << 20, ALL);
	struct test_mr dst = mr_scattered(nic, PD, 0x777, 1 << 20, ALL);
	bool read = opcode == RDMA_READ;
	struct rdma_wr wr = wr_rdma(opcode, sge_of(read ? &dst : &src, 0, size),
	                            read ? src.va : dst.va, read ? src.key : dst.key);

	mr_fill(&src, 1);
	mr_fill(&dst, 2);
	qp_connect(a, b);
	if (opcode == RDMA_SEND)
		qp_post_recv_sge(b, 1, sge_of(&dst, 0, size));
	qp_post_send(a, &wr);
	qp_expect_send(a, RDMA_OK);
	mr_get(&dst, 0, landed, size);
	mr_free(&src);
	mr_free(&dst);
	qp_free(a);
	qp_free(b);
	nic_free(nic);
}

static void patterns(void **state)
{
	static const enum rdma_opcode opcodes[] = {RDMA_SEND, RDMA_WRITE, RDMA_READ};
	enum { SIZE = 600000 }; /* several slices */
	uint8_t *landed = malloc(SIZE), *other = malloc(SIZE);

	(void)state;
	assert_true(landed && other);
	for (size_t op = 0; op < ARRAY_SIZE(opcodes); op++) {
		transfer("loopback:mode=zeros", opcodes[op], landed, SIZE);
		for (size_t i = 0; i < SIZE; i++)
			assert_int_equal(landed[i], 0);
		transfer("loopback:mode=ones", opcodes[op], landed, SIZE);
		for (size_t i = 0; i < SIZE; i++)
			assert_int_equal(landed[i], 0xff);
		transfer("loopback:mode=increment", opcodes[op], landed, SIZE);
		for (size_t i = 0; i < SIZE; i++)
			assert_int_equal(landed[i], i & 0xff);
		transfer("loopback:mode=decrement", opcodes[op], landed, SIZE);
		for (size_t i = 0; i < SIZE; i++)
			assert_int_equal(landed[i], 0xff - (i & 0xff));
		transfer("loopback:mode=alternate,md5", opcodes[op], landed, SIZE);
		for (size_t i = 0; i < SIZE; i++)
			assert_int_equal(landed[i], i % 2 ? 0x55 : 0xaa);
		transfer("loopback:mode=random", opcodes[op], landed, SIZE);
		transfer("loopback", opcodes[op], other, SIZE);
		unsigned equal = 0;

		for (size_t i = 0; i < SIZE; i++)
			equal += landed[i] == other[i];
		assert_in_range(equal, SIZE / 512, SIZE / 128);
	}
	free(landed);
	free(other);
}

/* Datagrams of the connection manager and old values of atomics are never replaced. */
static void patterns_spare(void **state)
{
	struct nic *nic = nic_new("loopback:mode=ones");
	struct rdma_qp_config config = {.qpn = RDMA_QPN_GSI, .type = RDMA_QP_UD, .pd = PD};
	struct test_qp *gsi = qp_new_config(nic, &config, 16), *a = qp_new(nic, RDMA_QP_RC, PD);
	struct test_mr mr = mr_new(nic, PD, 0, 8192, ALL);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&mr, 0, 256));
	uint8_t header[RDMA_TEMPLATE_MAX];
	uint64_t word = 5;

	(void)state;
	assert_int_equal(
	        rdma_ah_create(nic->dev, 0, PD, header, nic_template(nic, nic, 4, false, header)),
	        0);
	mr_fill(&mr, 1);
	qp_connect(gsi, gsi);
	wr.ud.qpn = 1;
	wr.ud.qkey = 0x80000000;
	qp_post_recv_sge(gsi, 1, sge_of(&mr, 4096, 296));
	qp_post_send(gsi, &wr);
	qp_expect_recv(gsi, RDMA_OK);
	assert_memory_equal(mr.mem, mr.mem + 4136, 256);

	qp_connect(a, a);
	memcpy(mr.mem + 64, &word, 8);
	wr = wr_atomic(RDMA_FETCH_ADD, sge_of(&mr, 0, 8), 64, mr.key);
	wr.remote.swap_add = 2;
	qp_post_send(a, &wr);
	qp_expect_send(a, RDMA_OK);
	memcpy(&word, mr.mem, 8);
	assert_int_equal(word, 5);
	memcpy(&word, mr.mem + 64, 8);
	assert_int_equal(word, 7);
	qp_free(gsi);
	qp_free(a);
	nic_free(nic);
}

/* RFC 1321, A.5. */
static void md5_vectors(void **state)
{
	static const struct {
		const char *text, *digest;
	} cases[] = {
	        {"", "d41d8cd98f00b204e9800998ecf8427e"},
	        {"a", "0cc175b9c0f1b6a831c399e269772661"},
	        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
	        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
	        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
	         "d174ab98d277d9f5a5611c2c9f419d9f"},
	        {"1234567890123456789012345678901234567890123456789012345678901234567890123456789"
	         "0",
	         "57edf4a22be3c955ac49da2e2107b67a"},
	};
	char text[2 * MD5_SIZE + 1];
	uint8_t digest[MD5_SIZE];
	struct md5 md5;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t step = 1; step < 80; step += 13) { /* in pieces */
			size_t size = strlen(cases[i].text);

			md5_init(&md5);
			for (size_t at = 0; at < size; at += step)
				md5_update(&md5, cases[i].text + at,
				           size - at < step ? size - at : step);
			md5_final(&md5, digest);
			for (unsigned n = 0; n < MD5_SIZE; n++)
				snprintf(text + 2 * n, 3, "%02x", digest[n]);
			assert_string_equal(text, cases[i].digest);
		}
}

/* The digest of each message is logged, with who and what. */
static void digests_logged(void **state)
{
	char path[] = "/tmp/ernic-test-XXXXXX", line[300];
	uint8_t landed[3];
	int fd = mkstemp(path);
	unsigned lines = 0;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(log_set_file(path), 0);
	log_set_level(LOG_LEVEL_INFO);
	transfer("loopback:md5,mode=zeros", RDMA_WRITE, landed, 3);
	transfer("loopback:md5", RDMA_SEND, landed, 0);
	log_set_level(LOG_LEVEL_WARN);
	assert_int_equal(log_set_file("/dev/null"), 0);
	FILE *file = fdopen(fd, "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		const char *want =
		        lines == 0 ? "QP 2 to 3, write of 3 bytes, md5 "
		                     "693e9af84d3dfcc71e640e005bdc5e2e"
		                   : "send of 0 bytes, md5 d41d8cd98f00b204e9800998ecf8427e";

		assert_non_null(strstr(line, want));
		lines++;
	}
	assert_int_equal(lines, 2);
	fclose(file);
	unlink(path);
}

/* Source and destination may be the same memory, shifted: what lands is the guest's affair, that
 * nothing else happens is ours, and a sanitizer's. */
static void overlaps(void **state)
{
	static const char *const descriptions[] = {"loopback", "loopback:md5",
	                                           "loopback:md5,mode=ones"};
	enum { SIZE = 1000, SHIFT = 8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(descriptions); i++) {
		struct nic *nic = nic_new(descriptions[i]);
		struct test_qp *a = qp_new(nic, RDMA_QP_RC, PD), *b = qp_new(nic, RDMA_QP_RC, PD);
		struct test_mr mr = mr_new(nic, PD, 0x10000, 4096, ALL);
		struct rdma_wr wr =
		        wr_rdma(RDMA_WRITE, sge_of(&mr, 0, SIZE), mr.va + SHIFT, mr.key);
		uint8_t before = mr.mem[SHIFT + SIZE];

		qp_connect(a, b);
		qp_post_send(a, &wr);
		qp_expect_send(a, RDMA_OK);
		assert_int_equal(mr.mem[SHIFT + SIZE], before);
		qp_free(a);
		qp_free(b);
		nic_free(nic);
	}
}

/* A destination is the device that owns the MAC; or the own one, by the own IP address. */
static void destinations(void **state)
{
	struct nic *one = nic_new("loopback"), *two = nic_join(one);
	struct nic ghost = {.mac = {2, 0, 0, 0, 0, 66}, .ip = 66};
	struct test_qp *qp = qp_new(one, RDMA_QP_RC, PD), *twin = qp_new(two, RDMA_QP_RC, PD);
	struct rdma_msg msg = {.qp = qp->qp};
	struct local_net net = {.count = 0};
	uint8_t header[RDMA_TEMPLATE_MAX];
	struct rdma_av av;

	(void)state;
	local_attach(&net, one->dev);
	local_attach(&net, two->dev);
	assert_null(local_find(&net, &msg)); /* no address yet */
	msg.av = &av;
	rdma_av_parse(header, nic_template(one, one, 4, false, header), &av);
	assert_ptr_equal(local_find(&net, &msg), one->dev);
	rdma_av_parse(header, nic_template(one, two, 6, true, header), &av);
	assert_ptr_equal(local_find(&net, &msg), two->dev);
	rdma_av_parse(header, nic_template(one, &ghost, 4, false, header), &av);
	assert_null(local_find(&net, &msg));
	ghost.ip = one->ip; /* unknown MAC, own IP address */
	rdma_av_parse(header, nic_template(one, &ghost, 6, false, header), &av);
	assert_ptr_equal(local_find(&net, &msg), one->dev);
	local_detach(&net, two->dev);
	rdma_av_parse(header, nic_template(one, two, 4, false, header), &av);
	assert_null(local_find(&net, &msg));
	qp_free(qp);
	qp_free(twin);
	nic_free(two);
	nic_free(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(descriptions),   cmocka_unit_test(patterns),
	        cmocka_unit_test(patterns_spare), cmocka_unit_test(md5_vectors),
	        cmocka_unit_test(digests_logged), cmocka_unit_test(overlaps),
	        cmocka_unit_test(destinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
