/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop: descriptors, timers and work, one thread.
 *
 * Theory of operation
 *
 * Descriptors are in one epoll set; the event data is the source's address. A source that is
 * removed while events of the same epoll_wait are still undelivered is struck from them, so that
 * owners may free themselves from any callback.
 *
 * Timers are a pairing heap threaded through the timers themselves: arming takes constant time and
 * no memory. The wait ends at the first due time exactly (epoll_pwait2 takes nanoseconds); an idle
 * loop makes no system call until then.
 *
 * Work is a queue. A turn runs what was queued when it began to, so that work which schedules
 * itself again lets descriptors and timers have their turn first.
 *
 * Spinning. A sleep and a wake-up cost more than a message. After an event the loop therefore
 * polls with a zero timeout for `spin_ns`. That bound adapts: it doubles (up to the limit set)
 * when an event was found while spinning, and halves when spinning ended in a sleep; at 1/16 of
 * the limit it rests, ready to grow again.
 *
 * Not done: more than one thread. A loop and everything on it belongs to the thread that runs it.
 */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define LOOP_EVENTS_MAX 64
#define NS_PER_S        1000000000ull

struct loop {
	int epoll_fd;
	bool stopped;
	uint64_t now_ns;

	struct epoll_event
	        events[LOOP_EVENTS_MAX]; /* of the turn, from event_next to event_count */
	int event_next, event_count;

	struct loop_timer *timers; /* root of the heap: the first one due */

	struct loop_work *work_first, **work_end;

	uint64_t spin_max_ns, spin_ns, spin_until_ns;

	struct loop_stats stats;
};

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int loop_create(struct loop **out)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		int error = -errno;

		free(loop);
		return error;
	}
	loop->work_end = &loop->work_first;
	loop->now_ns = clock_now();
	*out = loop;
	return 0;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	assert(!loop->timers && !loop->work_first);
	close(loop->epoll_fd);
	free(loop);
}

/* ---- descriptors ---- */

static int source_control(struct loop *loop, struct loop_source *source, int op, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(loop->epoll_fd, op, source->fd, &event) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct loop_source *source, uint32_t events)
{
	assert(!source->added && source->ready);
	int error = source_control(loop, source, EPOLL_CTL_ADD, events);

	source->added = error == 0;
	return error;
}

int loop_modify(struct loop *loop, struct loop_source *source, uint32_t events)
{
	assert(source->added);
	return source_control(loop, source, EPOLL_CTL_MOD, events);
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	if (!source->added)
		return;
	source_control(loop, source, EPOLL_CTL_DEL, 0);
	source->added = false;
	for (int i = loop->event_next; i < loop->event_count; i++)
		if (loop->events[i].data.ptr == source)
			loop->events[i].data.ptr = NULL;
}

static void dispatch_events(struct loop *loop)
{
	while (loop->event_next < loop->event_count) {
		struct epoll_event *event = &loop->events[loop->event_next++];
		struct loop_source *source = event->data.ptr;

		if (source)
			source->ready(source, event->events);
	}
}

/* ---- timers ---- */

/* Joins two heaps, either may be NULL. The later root becomes the earlier one's first child. */
static struct loop_timer *heap_join(struct loop_timer *a, struct loop_timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (b->due_ns < a->due_ns) {
		struct loop_timer *swap = a;

		a = b;
		b = swap;
	}
	b->sibling = a->child;
	if (b->sibling)
		b->sibling->prev = b;
	b->prev = a; /* of a first child: the parent */
	a->child = b;
	return a;
}

/* Joins a list of siblings into one heap: pairs from the left, then all of them from the right. */
static struct loop_timer *heap_join_list(struct loop_timer *list)
{
	struct loop_timer *pairs = NULL, *heap = NULL;

	while (list) {
		struct loop_timer *a = list, *b = a->sibling;

		list = b ? b->sibling : NULL;
		a->sibling = a->prev = NULL;
		if (b)
			b->sibling = b->prev = NULL;
		a = heap_join(a, b);
		a->sibling = pairs;
		pairs = a;
	}
	while (pairs) {
		struct loop_timer *next = pairs->sibling;

		pairs->sibling = NULL;
		heap = heap_join(heap, pairs);
		pairs = next;
	}
	return heap;
}

void loop_disarm(struct loop *loop, struct loop_timer *timer)
{
	if (!timer->armed)
		return;
	struct loop_timer *rest = heap_join_list(timer->child);

	if (timer == loop->timers) {
		loop->timers = rest;
	} else {
		if (timer->prev->child == timer)
			timer->prev->child = timer->sibling;
		else
			timer->prev->sibling = timer->sibling;
		if (timer->sibling)
			timer->sibling->prev = timer->prev;
		loop->timers = heap_join(loop->timers, rest);
	}
	timer->child = timer->sibling = timer->prev = NULL;
	timer->armed = false;
}

void loop_arm(struct loop *loop, struct loop_timer *timer, uint64_t due_ns)
{
	assert(timer->expired);
	loop_disarm(loop, timer);
	timer->due_ns = due_ns;
	timer->armed = true;
	loop->timers = heap_join(loop->timers, timer);
}

/* A timer that re-arms itself in the past waits for the next turn, as `now` is fixed for this one.
 */
static void expire_timers(struct loop *loop)
{
	uint64_t now = loop->now_ns;

	for (unsigned bound = 0; bound < LOOP_EVENTS_MAX; bound++) {
		struct loop_timer *timer = loop->timers;

		if (!timer || timer->due_ns > now)
			return;
		loop_disarm(loop, timer);
		timer->expired(timer);
	}
}

/* ---- work ---- */

void loop_schedule(struct loop *loop, struct loop_work *work)
{
	if (work->scheduled)
		return;
	assert(work->run);
	work->scheduled = true;
	work->next = NULL;
	*loop->work_end = work;
	loop->work_end = &work->next;
}

void loop_cancel(struct loop *loop, struct loop_work *work)
{
	if (!work->scheduled)
		return;
	struct loop_work **link = &loop->work_first;

	while (*link != work)
		link = &(*link)->next;
	*link = work->next;
	if (loop->work_end == &work->next)
		loop->work_end = link;
	work->scheduled = false;
}

/* A marker ends the turn's share of the queue; what is scheduled meanwhile goes behind it. */
static void run_work(struct loop *loop)
{
	struct loop_work marker = {.scheduled = true};

	if (!loop->work_first)
		return;
	*loop->work_end = &marker;
	loop->work_end = &marker.next;
	for (;;) {
		struct loop_work *work = loop->work_first;

		assert(work); /* the marker ends the walk */
		loop->work_first = work->next;
		if (!loop->work_first)
			loop->work_end = &loop->work_first;
		if (work == &marker)
			return;
		work->scheduled = false;
		work->run(work);
	}
}

/* ---- turns ---- */

uint64_t loop_now(const struct loop *loop)
{
	return loop->now_ns;
}

void loop_set_spin(struct loop *loop, uint64_t max_ns)
{
	loop->spin_max_ns = max_ns;
	loop->spin_ns = max_ns;
	loop->spin_until_ns = 0;
}

/* How long this turn may wait, in ns. */
static uint64_t wait_budget(struct loop *loop, uint64_t max_wait_ns)
{
	if (loop->work_first) {
		loop->stats.work_turns++;
		return 0;
	}
	if (loop->now_ns < loop->spin_until_ns) {
		loop->stats.spins++;
		return 0;
	}
	if (loop->spin_until_ns != 0) { /* the spin ended without an event */
		loop->spin_until_ns = 0;
		if (loop->spin_ns > loop->spin_max_ns / 16)
			loop->spin_ns /= 2;
	}
	if (loop->timers) {
		uint64_t due = loop->timers->due_ns, now = clock_now();
		uint64_t left = due > now ? due - now : 0;

		if (left < max_wait_ns)
			max_wait_ns = left;
	}
	loop->stats.waits++;
	return max_wait_ns;
}

static void note_event(struct loop *loop)
{
	if (loop->spin_max_ns == 0)
		return;
	if (loop->spin_until_ns != 0) {
		loop->stats.spin_hits++;
		loop->spin_ns *= 2;
		if (loop->spin_ns > loop->spin_max_ns)
			loop->spin_ns = loop->spin_max_ns;
	}
	loop->spin_until_ns = loop->now_ns + loop->spin_ns;
}

int loop_turn(struct loop *loop, uint64_t max_wait_ns)
{
	uint64_t wait_ns = wait_budget(loop, max_wait_ns);
	struct timespec timeout = {.tv_sec = (time_t)(wait_ns / NS_PER_S),
	                           .tv_nsec = (long)(wait_ns % NS_PER_S)};

	loop->stats.turns++;
	int count = epoll_pwait2(loop->epoll_fd, loop->events, LOOP_EVENTS_MAX,
	                         wait_ns == UINT64_MAX ? NULL : &timeout, NULL);

	if (count < 0) {
		if (errno != EINTR)
			return -errno;
		count = 0;
	}
	loop->event_next = 0;
	loop->event_count = count;
	loop->now_ns = clock_now();
	if (count > 0)
		note_event(loop);
	dispatch_events(loop);
	expire_timers(loop);
	run_work(loop);
	return 0;
}

int loop_run(struct loop *loop)
{
	loop->stopped = false;
	while (!loop->stopped) {
		int error = loop_turn(loop, UINT64_MAX);

		if (error)
			return error;
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

void loop_get_stats(const struct loop *loop, struct loop_stats *stats)
{
	*stats = loop->stats;
}
