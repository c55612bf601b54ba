/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors of strangers: none makes us wait, none is kept by mistake. */
#include "base/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct tcp {
	int ends[2];
};

/* A connection whose first end has unsent data and lingers for an hour when it is closed. */
static struct tcp lingering(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	int listener = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	static const char data[65536];
	struct tcp tcp = {{socket(AF_INET, SOCK_STREAM, 0), -1}};

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(tcp.ends[0], (struct sockaddr *)&address, size), 0);
	tcp.ends[1] = accept(listener, NULL, NULL);
	assert_true(tcp.ends[1] >= 0);
	close(listener);
	while (send(tcp.ends[0], data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(tcp.ends[0], SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	return tcp;
}

static void send_fd(int socket, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte = 'x';
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr header = {.msg_iov = &iov,
	                        .msg_iovlen = 1,
	                        .msg_control = &control,
	                        .msg_controllen = sizeof(control)};
	struct cmsghdr *message = CMSG_FIRSTHDR(&header);

	message->cmsg_level = SOL_SOCKET;
	message->cmsg_type = SCM_RIGHTS;
	message->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(message), &fd, sizeof(fd));
	assert_int_equal(sendmsg(socket, &header, 0), 1);
}

/* Where close() would wait for an hour this test would end by its time limit. */
static void never_lingers(void **state)
{
	struct tcp received = lingering(), unread = lingering();
	int fds[FOREIGN_FDS_MAX], pair[2];
	unsigned count;
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	send_fd(pair[0], received.ends[0]);
	close(received.ends[0]);
	assert_int_equal(foreign_recv(pair[1], &byte, 1, fds, &count), 1);
	assert_int_equal(count, 1);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	foreign_close(fds[0]);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);

	send_fd(pair[0], unread.ends[0]);
	close(unread.ends[0]);
	foreign_hang_up(pair[1]);
	assert_int_equal(recv(pair[0], &byte, 1, 0), 0);
	close(pair[0]);
	close(received.ends[1]);
	close(unread.ends[1]);
}

static void tells_what_came(void **state)
{
	int fds[FOREIGN_FDS_MAX], pair[2];
	unsigned count = 7;
	char bytes[4];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(foreign_recv(pair[1], bytes, sizeof(bytes), fds, &count), -EAGAIN);
	assert_int_equal(count, 0);
	assert_int_equal(send(pair[0], "abc", 3, 0), 3);
	assert_int_equal(foreign_recv(pair[1], bytes, sizeof(bytes), fds, &count), 3);
	assert_int_equal(count, 0);
	send_fd(pair[0], pair[0]);
	send_fd(pair[0], pair[1]);
	for (unsigned i = 0; i < 2; i++) { /* never two sets at once */
		assert_int_equal(foreign_recv(pair[1], bytes, sizeof(bytes), fds, &count), 1);
		assert_int_equal(count, 1);
		foreign_close(fds[0]);
	}
	close(pair[0]);
	assert_int_equal(foreign_recv(pair[1], bytes, sizeof(bytes), fds, &count), 0);
	foreign_hang_up(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(never_lingers),
	        cmocka_unit_test(tells_what_came),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
