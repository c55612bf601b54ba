/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Batches of reads and writes, with io_uring and without, on a pipe. */
#include "net/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MESSAGE 100 /* bytes */

struct setup {
	struct net_batch *batch;
	int fds[2]; /* a pair of sockets that keep messages apart */
};

static int set_up(void **state)
{
	struct setup *setup = calloc(1, sizeof(*setup));

	*state = setup;
	setup->batch = net_batch_create();
	assert_non_null(setup->batch);
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, setup->fds);
}

/* Without a descriptor to be had there is no ring. */
static int set_up_plain(void **state)
{
	struct rlimit limit, none = {0};
	struct setup *setup = calloc(1, sizeof(*setup));

	*state = setup;
	getrlimit(RLIMIT_NOFILE, &limit);
	none.rlim_max = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	setup->batch = net_batch_create();
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_non_null(setup->batch);
	assert_false(net_batch_fast(setup->batch));
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, setup->fds);
}

static int tear_down(void **state)
{
	struct setup *setup = *state;

	net_batch_destroy(setup->batch);
	close(setup->fds[0]);
	close(setup->fds[1]);
	free(setup);
	return 0;
}

/* Operations of two pieces each; message i is full of the byte i. */
static void make_ops(struct net_batch_op *ops, struct iovec (*iov)[2], uint8_t (*bytes)[MESSAGE],
                     unsigned count, int fd)
{
	for (unsigned i = 0; i < count; i++) {
		memset(bytes[i], (int)i, MESSAGE);
		iov[i][0] = (struct iovec){bytes[i], 10};
		iov[i][1] = (struct iovec){bytes[i] + 10, MESSAGE - 10};
		ops[i] = (struct net_batch_op){.fd = fd, .iov = iov[i], .iov_count = 2};
	}
}

static void test_order_and_results(void **state)
{
	struct setup *setup = *state;
	struct net_batch_op ops[NET_BATCH_MAX];
	struct iovec iov[NET_BATCH_MAX][2];
	uint8_t bytes[NET_BATCH_MAX][MESSAGE];
	static const unsigned counts[] = {1, 2, 7, NET_BATCH_MAX, 3};

	for (unsigned round = 0; round < 50; round++) {
		unsigned count = counts[round % 5];

		make_ops(ops, iov, bytes, count, setup->fds[0]);
		net_batch_write(setup->batch, ops, count);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(ops[i].result, MESSAGE);
		/* Reads that find nothing say so and do not wait. */
		make_ops(ops, iov, bytes, NET_BATCH_MAX, setup->fds[1]);
		net_batch_read(setup->batch, ops, NET_BATCH_MAX);
		for (unsigned i = 0; i < NET_BATCH_MAX; i++) {
			assert_int_equal(ops[i].result, i < count ? MESSAGE : -EAGAIN);
			assert_int_equal(bytes[i][0], i);
			assert_int_equal(bytes[i][MESSAGE - 1], i);
		}
	}
}

static void test_errors_are_of_their_operation(void **state)
{
	struct setup *setup = *state;
	struct net_batch_op ops[4];
	struct iovec iov[4][2];
	uint8_t bytes[4][MESSAGE];

	make_ops(ops, iov, bytes, 4, setup->fds[0]);
	ops[1].fd = -1;
	iov[2][1].iov_base = (void *)16;
	net_batch_write(setup->batch, ops, 4);
	assert_int_equal(ops[0].result, MESSAGE);
	assert_int_equal(ops[1].result, -EBADF);
	assert_int_equal(ops[2].result, -EFAULT);
	assert_int_equal(ops[3].result, MESSAGE);
}

/* A descriptor that may wait is not for io_uring: plain calls, from then on. */
static void test_descriptor_that_may_wait(void **state)
{
	struct setup *setup = *state;
	struct net_batch_op ops[4];
	struct iovec iov[4][2];
	uint8_t bytes[4][MESSAGE];
	int fd = open("/proc/self/comm", O_RDONLY);

	make_ops(ops, iov, bytes, 4, fd);
	net_batch_read(setup->batch, ops, 4);
	assert_true(ops[0].result > 0);
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(ops[i].result, 0); /* the end of the file */
	assert_false(net_batch_fast(setup->batch));
	close(fd);
}

#define both(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, set_up, tear_down),                                  \
	        cmocka_unit_test_setup_teardown(name, set_up_plain, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        both(test_order_and_results),
	        both(test_errors_are_of_their_operation),
	        both(test_descriptor_that_may_wait),
	};
	struct net_batch *batch = net_batch_create();

	printf("io_uring: %s\n", batch && net_batch_fast(batch) ? "yes" : "no, plain calls only");
	net_batch_destroy(batch);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
