/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals as events of a loop: a handler writes their numbers into a pipe.
 *
 * A descriptor of signalfd() would be simpler. But its signals are blocked, and a system call that
 * waits for a stranger, because he found a way to make it wait, would then never end.
 */
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

static volatile sig_atomic_t pipe_in = -1, end_asked;

static void handle(int number)
{
	int saved = errno;
	unsigned char byte = (unsigned char)number;

	if (number != SIGHUP && !end_asked) {
		end_asked = 1;
		alarm(SIGNALS_END_S);
	}
	/* A full pipe has enough of them. */
	ssize_t ignored __attribute__((unused)) = write(pipe_in, &byte, 1);
	errno = saved;
}

static void pipe_ready(struct loop_source *source, uint32_t events)
{
	struct signals *signals = container_of(source, struct signals, source);
	unsigned char number;

	(void)events;
	if (read(source->fd, &number, 1) == 1)
		signals->received(signals, number);
}

/* Whoever started us may have wanted a signal ignored (nohup, a shell's background), and may have
 * left one blocked, which nobody wants. */
static int catch_signal(int number)
{
	/* A log file opened anew is no reason to fail at what is being done. */
	struct sigaction action = {.sa_handler = handle,
	                           .sa_flags = number == SIGHUP ? SA_RESTART : 0},
	                 before;
	sigset_t one;

	if (sigaction(number, NULL, &before) < 0)
		return -errno;
	if (before.sa_handler == SIG_IGN)
		return 0;
	if (sigaction(number, &action, NULL) < 0)
		return -errno;
	sigemptyset(&one);
	sigaddset(&one, number);
	return sigprocmask(SIG_UNBLOCK, &one, NULL) < 0 ? -errno : 0;
}

int signals_open(struct signals *signals, struct loop *loop)
{
	int ends[2], error;

	signals->source = (struct loop_source){.fd = -1, .ready = pipe_ready};
	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
		return -errno;
	signals->loop = loop;
	signals->source.fd = ends[0];
	pipe_in = ends[1];
	error = loop_add(loop, &signals->source, EPOLLIN);
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !error; i++)
		error = catch_signal(numbers[i]);
	if (error)
		signals_close(signals);
	return error;
}

void signals_close(struct signals *signals)
{
	if (!signals->loop)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		signal(numbers[i], SIG_IGN);
	alarm(0);
	loop_remove(signals->loop, &signals->source);
	close(signals->source.fd);
	close(pipe_in);
	pipe_in = -1;
	signals->loop = NULL;
}

bool signals_end_asked(void)
{
	return end_asked;
}
