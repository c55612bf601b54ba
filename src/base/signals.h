/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals as events of a loop. */
#ifndef ERNIC_BASE_SIGNALS_H
#define ERNIC_BASE_SIGNALS_H

#include <stdbool.h>

#include "base/loop.h"

struct signals {
	struct loop *loop;
	struct loop_source source;
	/* SIGTERM, SIGINT or SIGHUP has arrived. */
	void (*received)(struct signals *signals, int number);
};

/* Seconds from SIGTERM or SIGINT to signals_close(), before the process is killed (SIGALRM). */
#define SIGNALS_END_S 10

/*
 * Calls RECEIVED, which is set before, in LOOP for signals of the process, of which there is one
 * set at a time. Returns 0 or a negative errno.
 *
 * SIGTERM and SIGINT also interrupt a system call that somebody made us wait in, and when that does
 * not help, or not in time, end the process: nobody keeps it alive.
 */
int signals_open(struct signals *signals, struct loop *loop);

/* The signals are ignored from here on, and the time to end in is not counted any more. Does
 * nothing for what was not opened. */
void signals_close(struct signals *signals);

/* Whether SIGTERM or SIGINT has arrived: for who has to wait before the loop runs. */
bool signals_end_asked(void);

#endif
