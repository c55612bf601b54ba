/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop: descriptors, timers and work, one thread.
 *
 * A turn is: wait for descriptors or the next timer; call what is ready; call what has expired;
 * run the work that was scheduled. Work is how data is moved: it is bounded by its owner's budget
 * and schedules itself again when there is more, so that no source starves another.
 *
 * All structures are embedded in their owner's, zeroed at first, and belong to the loop while they
 * are added, armed or scheduled. Every function may be called from any callback, also to remove
 * the structure whose callback is running.
 */
#ifndef ERNIC_BASE_LOOP_H
#define ERNIC_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop_source {
	void (*ready)(struct loop_source *source, uint32_t events); /* EPOLLIN, EPOLLOUT, ... */
	int fd;
	bool added;
};

struct loop_timer {
	void (*expired)(struct loop_timer *timer);
	uint64_t due_ns;
	struct loop_timer *child, *sibling, *prev; /* pairing heap; see loop.c */
	bool armed;
};

struct loop_work {
	void (*run)(struct loop_work *work);
	struct loop_work *next;
	bool scheduled;
};

/* Makes a loop in *LOOP. Returns 0 or a negative errno. */
int loop_create(struct loop **loop);

/* Ends the loop. Nothing may be added, armed or scheduled any more. Accepts NULL. */
void loop_destroy(struct loop *loop);

/* Watches source->fd for EVENTS (EPOLLIN, EPOLLOUT). Returns 0 or a negative errno. */
int loop_add(struct loop *loop, struct loop_source *source, uint32_t events);

/* Changes what an added source waits for. Returns 0 or a negative errno. */
int loop_modify(struct loop *loop, struct loop_source *source, uint32_t events);

/* Stops watching; call before closing the descriptor. No callback follows. Idempotent. */
void loop_remove(struct loop *loop, struct loop_source *source);

/* Calls timer->expired once, at or after DUE_NS of CLOCK_MONOTONIC. Re-arming moves it. */
void loop_arm(struct loop *loop, struct loop_timer *timer, uint64_t due_ns);
void loop_disarm(struct loop *loop, struct loop_timer *timer);

/*
 * Runs work->run once: in this turn when called from a source or a timer, in the next one when
 * called from work. Scheduling what is scheduled does nothing.
 */
void loop_schedule(struct loop *loop, struct loop_work *work);
void loop_cancel(struct loop *loop, struct loop_work *work);

/* The time of the current turn, in ns of CLOCK_MONOTONIC; taken once a turn. */
uint64_t loop_now(const struct loop *loop);

/*
 * After an event the loop looks for the next one without sleeping for up to MAX_NS, and less when
 * that has not paid off lately. 0 (the default) always sleeps.
 */
void loop_set_spin(struct loop *loop, uint64_t max_ns);

/* Runs until loop_stop(). Returns 0, or a negative errno when waiting fails. */
int loop_run(struct loop *loop);

/* One turn; waits at most MAX_WAIT_NS (UINT64_MAX: without limit) for something to do. */
int loop_turn(struct loop *loop, uint64_t max_wait_ns);

/* Makes loop_run() return after the current turn. */
void loop_stop(struct loop *loop);

/* What the loop has done since it was made; for the stats file and the benchmarks. */
struct loop_stats {
	uint64_t turns;      /* turns in all */
	uint64_t waits;      /* turns that were allowed to sleep */
	uint64_t spins;      /* turns that looked without sleeping because of loop_set_spin() */
	uint64_t spin_hits;  /* ... and found an event */
	uint64_t work_turns; /* turns that had work left over from the one before */
};

void loop_get_stats(const struct loop *loop, struct loop_stats *stats);

#endif
