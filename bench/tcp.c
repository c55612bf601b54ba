// SPDX-License-Identifier: GPL-2.0-or-later
/* Bare TCP on loopback, tcp.h. */
#include "tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "ram.h"

#define BUFFER      (16u << 20)
#define ROUND_TRIPS 3000
#define MESSAGE     64 /* bytes of a round trip */

uint16_t bench_tcp_port(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t size = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &size) < 0)
		bench_die("TCP port", -errno);
	close(fd);
	return ntohs(addr.sin_port);
}

/* Two ends of a connection. */
static void tcp_pair(int fds[2])
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t size = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&addr, &size) < 0 ||
	    connect(fds[0], (struct sockaddr *)&addr, sizeof(addr)) < 0)
		bench_die("TCP", -errno);
	fds[1] = accept(listener, NULL, NULL);
	for (int i = 0; i < 2; i++)
		if (fds[i] < 0 ||
		    setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
			bench_die("TCP", -errno);
	close(listener);
}

static void send_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

		if (sent < 0)
			bench_die("send", -errno);
		data += sent;
		size -= (size_t)sent;
	}
}

/* ---- a flow ---- */

struct flow_end {
	int fd;
	uint8_t *buffer;
};

static void *receive_all(void *arg)
{
	const struct flow_end *end = arg;
	size_t at = 0;
	ssize_t got;

	do {
		got = recv(end->fd, end->buffer + at, BUFFER - at, 0);
		at = (at + (size_t)(got > 0 ? got : 0)) % BUFFER;
	} while (got > 0);
	return NULL;
}

double bench_tcp_flow(double seconds, size_t size, double *cpu)
{
	double start, end, cpu_before;
	struct flow_end receiver;
	uint64_t count = 0;
	pthread_t thread;
	struct ram ram;
	int fds[2], err = ram_create(&ram, 2 * BUFFER);

	if (err)
		bench_die("memory", err);
	memset(ram.host, 1, 2 * (size_t)BUFFER);
	tcp_pair(fds);
	receiver = (struct flow_end){fds[1], ram.host + BUFFER};
	if (pthread_create(&thread, NULL, receive_all, &receiver))
		bench_die("thread", -EAGAIN);
	cpu_before = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
	start = bench_now();
	while (bench_now() < start + seconds)
		for (unsigned i = 0; i < 8; i++, count++)
			send_all(fds[0], ram.host + count % (BUFFER / size) * size, size);
	close(fds[0]);
	pthread_join(thread, NULL);
	end = bench_now();
	*cpu = (bench_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_before) * 1e6 / (double)count;
	close(fds[1]);
	ram_destroy(&ram);
	return (double)count / (end - start);
}

/* ---- round trips ---- */

static int epoll_of(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		bench_die("epoll", -errno);
	return epoll;
}

/* Sleeps in epoll_wait(), then takes one message. Returns false at the end. */
static bool await_message(int epoll, int fd, uint8_t *message)
{
	struct epoll_event event;
	ssize_t got;

	do {
		if (epoll_wait(epoll, &event, 1, -1) < 0 && errno != EINTR)
			bench_die("epoll_wait", -errno);
		got = recv(fd, message, MESSAGE, MSG_DONTWAIT);
	} while (got < 0 && errno == EAGAIN);
	return got > 0;
}

/* A child that takes messages from FD and sends them back, over NEXT and back when it is not
 * negative. */
static pid_t start_echo(int fd, int next)
{
	uint8_t message[MESSAGE];
	int epoll, next_epoll;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	epoll = epoll_of(fd);
	next_epoll = next < 0 ? -1 : epoll_of(next);
	while (await_message(epoll, fd, message)) {
		if (next >= 0) {
			send_all(next, message, sizeof(message));
			if (!await_message(next_epoll, next, message))
				break;
		}
		send_all(fd, message, sizeof(message));
	}
	_exit(0);
}

/* Durations of round trips on FD. */
static double time_echo(int fd)
{
	static double seconds[ROUND_TRIPS];
	uint8_t message[MESSAGE] = {0};
	int epoll = epoll_of(fd);

	for (unsigned i = 0; i < ROUND_TRIPS; i++) {
		double start = bench_now();

		send_all(fd, message, sizeof(message));
		if (!await_message(epoll, fd, message))
			bench_die("echo", -EPIPE);
		seconds[i] = bench_now() - start;
	}
	close(epoll);
	return bench_median(seconds, ROUND_TRIPS) * 1e6;
}

double bench_tcp_round_trip(bool relayed)
{
	int tcp[2], local[2];
	pid_t echo, relay = -1;
	double result;

	tcp_pair(tcp);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, local) < 0)
		bench_die("socketpair", -errno);
	echo = start_echo(tcp[1], -1);
	if (relayed)
		relay = start_echo(local[1], tcp[0]);
	if (echo < 0 || (relayed && relay < 0))
		bench_die("fork", -EAGAIN);
	result = time_echo(relayed ? local[0] : tcp[0]);
	kill(echo, SIGKILL);
	waitpid(echo, NULL, 0);
	if (relayed) {
		kill(relay, SIGKILL);
		waitpid(relay, NULL, 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		close(tcp[i]);
		close(local[i]);
	}
	return result;
}
