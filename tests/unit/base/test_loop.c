/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop: order of timers, fairness of work, and removal of anything from any callback.
 * No test measures time: where a wait must not sleep, a sleep would last for ever.
 */
#include "base/loop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "unit.h"

static struct loop *loop;

static int make_loop(void **state)
{
	(void)state;
	return loop_create(&loop);
}

static int end_loop(void **state)
{
	(void)state;
	loop_destroy(loop);
	return 0;
}

/* ---- timers ---- */

#define TIMERS 300

struct timer_case {
	struct loop_timer timer;
	bool expected;
};

static struct timer_case timer_cases[TIMERS];
static uint64_t last_due;
static unsigned fired;

static void note_timer(struct loop_timer *timer)
{
	struct timer_case *entry = container_of(timer, struct timer_case, timer);

	assert_true(entry->expected);
	assert_true(timer->due_ns >= last_due);
	assert_false(timer->armed);
	entry->expected = false;
	last_due = timer->due_ns;
	fired++;
}

/* Arms, moves and disarms at random; then all that is armed fires, each once, in order. */
static void timers_fire_in_order_of_their_due_time(void **state)
{
	uint64_t base = loop_now(loop) - 1000000;
	unsigned armed = 0;

	(void)state;
	srandom(1);
	memset(timer_cases, 0, sizeof(timer_cases));
	for (unsigned step = 0; step < 20 * TIMERS; step++) {
		struct timer_case *entry = &timer_cases[random() % TIMERS];

		entry->timer.expired = note_timer;
		entry->expected = random() % 3 != 0;
		if (entry->expected)
			loop_arm(loop, &entry->timer, base + (uint64_t)(random() % 1000));
		else
			loop_disarm(loop, &entry->timer);
	}
	for (unsigned i = 0; i < TIMERS; i++)
		armed += timer_cases[i].expected;
	assert_true(armed > TIMERS / 2);
	last_due = 0;
	fired = 0;
	for (unsigned turn = 0; fired < armed; turn++) {
		assert_true(turn < TIMERS);
		assert_int_equal(loop_turn(loop, 0), 0);
	}
}

static void a_wait_ends_at_the_due_time(void **state)
{
	struct timer_case entry = {.timer.expired = note_timer, .expected = true};
	uint64_t due = loop_now(loop) + 2000000;

	(void)state;
	last_due = 0;
	loop_arm(loop, &entry.timer, due);
	while (entry.expected)
		assert_int_equal(loop_turn(loop, UINT64_MAX), 0);
	assert_true(loop_now(loop) >= due);
}

static struct loop_timer victims[3];

static void disarm_the_others(struct loop_timer *timer)
{
	for (unsigned i = 0; i < ARRAY_SIZE(victims); i++)
		if (&victims[i] != timer)
			loop_disarm(loop, &victims[i]);
	fired++;
}

static void a_timer_may_disarm_others_that_are_due(void **state)
{
	uint64_t past = loop_now(loop) - 1000;

	(void)state;
	fired = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(victims); i++) {
		victims[i].expired = disarm_the_others;
		loop_arm(loop, &victims[i], past + i);
	}
	loop_turn(loop, 0);
	loop_turn(loop, 0);
	assert_int_equal(fired, 1);
}

static void arm_again_now(struct loop_timer *timer)
{
	fired++;
	loop_arm(loop, timer, loop_now(loop) + 1);
}

static void a_timer_that_arms_itself_lets_the_turn_end(void **state)
{
	struct loop_timer timer = {.expired = arm_again_now};

	(void)state;
	fired = 0;
	loop_arm(loop, &timer, loop_now(loop));
	loop_turn(loop, 0);
	assert_int_equal(fired, 1);
	loop_turn(loop, 0);
	assert_int_equal(fired, 2);
	loop_disarm(loop, &timer);
	loop_disarm(loop, &timer);
	loop_turn(loop, 0);
	assert_int_equal(fired, 2);
}

/* ---- work ---- */

struct job {
	struct loop_work work;
	struct job *kills;
	bool again;
	unsigned runs;
};

static void run_job(struct loop_work *work)
{
	struct job *job = container_of(work, struct job, work);

	job->runs++;
	if (job->kills)
		loop_cancel(loop, &job->kills->work);
	if (job->again)
		loop_schedule(loop, work);
}

static void work_that_schedules_itself_runs_once_a_turn(void **state)
{
	struct job greedy = {.work.run = run_job, .again = true}, other = {.work.run = run_job};

	(void)state;
	loop_schedule(loop, &greedy.work);
	loop_schedule(loop, &greedy.work);
	loop_schedule(loop, &other.work);
	loop_turn(loop, UINT64_MAX); /* must not sleep: there is work */
	assert_int_equal(greedy.runs, 1);
	assert_int_equal(other.runs, 1);
	loop_turn(loop, UINT64_MAX);
	assert_int_equal(greedy.runs, 2);
	assert_int_equal(other.runs, 1);
	loop_cancel(loop, &greedy.work);
	loop_turn(loop, 0);
	assert_int_equal(greedy.runs, 2);
}

static void work_may_cancel_any_other(void **state)
{
	for (unsigned victim = 1; victim < 4; victim++) {
		struct job jobs[4] = {{.work.run = run_job},
		                      {.work.run = run_job},
		                      {.work.run = run_job},
		                      {.work.run = run_job}};

		(void)state;
		jobs[0].kills = &jobs[victim];
		for (unsigned i = 0; i < 4; i++)
			loop_schedule(loop, &jobs[i].work);
		loop_turn(loop, 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(jobs[i].runs, i == victim ? 0 : 1);
		/* The queue's end is where it should be. */
		loop_schedule(loop, &jobs[victim].work);
		loop_turn(loop, 0);
		assert_int_equal(jobs[victim].runs, 1);
	}
}

static struct job job_of_timer = {.work.run = run_job};

static void schedule_job(struct loop_timer *timer)
{
	(void)timer;
	loop_schedule(loop, &job_of_timer.work);
}

static void work_of_a_timer_runs_in_the_same_turn(void **state)
{
	struct loop_timer timer = {.expired = schedule_job};

	(void)state;
	loop_arm(loop, &timer, loop_now(loop));
	loop_turn(loop, 0);
	assert_int_equal(job_of_timer.runs, 1);
}

/* ---- descriptors ---- */

struct signal {
	struct loop_source source;
	struct signal *kills;
	unsigned calls;
};

static void be_ready(struct loop_source *source, uint32_t events)
{
	struct signal *signal = container_of(source, struct signal, source);
	uint64_t value;

	assert_true(events & EPOLLIN);
	assert_int_equal(read(source->fd, &value, sizeof(value)), sizeof(value));
	signal->calls++;
	if (signal->kills)
		loop_remove(loop, &signal->kills->source);
}

static void make_signal(struct signal *signal)
{
	*signal = (struct signal){.source.ready = be_ready};
	signal->source.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(signal->source.fd >= 0);
	assert_int_equal(loop_add(loop, &signal->source, EPOLLIN), 0);
}

static void send_signal(struct signal *signal)
{
	assert_int_equal(eventfd_write(signal->source.fd, 1), 0);
}

static void end_signal(struct signal *signal)
{
	loop_remove(loop, &signal->source);
	loop_remove(loop, &signal->source);
	close(signal->source.fd);
}

static void a_ready_descriptor_calls_its_owner(void **state)
{
	struct signal signal;

	(void)state;
	make_signal(&signal);
	loop_turn(loop, 0);
	assert_int_equal(signal.calls, 0);
	send_signal(&signal);
	loop_turn(loop, UINT64_MAX);
	assert_int_equal(signal.calls, 1);
	assert_int_equal(loop_modify(loop, &signal.source, 0), 0);
	send_signal(&signal);
	loop_turn(loop, 0);
	assert_int_equal(signal.calls, 1);
	end_signal(&signal);
}

/* Both are ready in the same turn; whichever is called first removes the other. */
static void a_removed_source_is_not_called_in_the_same_turn(void **state)
{
	struct signal one, two;

	(void)state;
	make_signal(&one);
	make_signal(&two);
	one.kills = &two;
	two.kills = &one;
	send_signal(&one);
	send_signal(&two);
	loop_turn(loop, UINT64_MAX);
	loop_turn(loop, 0);
	assert_int_equal(one.calls + two.calls, 1);
	end_signal(&one);
	end_signal(&two);
}

static void a_source_may_remove_itself(void **state)
{
	struct signal signal;

	(void)state;
	make_signal(&signal);
	signal.kills = &signal;
	send_signal(&signal);
	loop_turn(loop, UINT64_MAX);
	send_signal(&signal);
	loop_turn(loop, 0);
	assert_int_equal(signal.calls, 1);
	end_signal(&signal);
}

static void a_closed_descriptor_cannot_be_added(void **state)
{
	struct loop_source source = {.ready = be_ready, .fd = -1};

	(void)state;
	assert_true(loop_add(loop, &source, EPOLLIN) < 0);
	assert_false(source.added);
	loop_remove(loop, &source);
}

/* ---- spinning and stopping ---- */

static void after_an_event_the_loop_looks_again_without_sleeping(void **state)
{
	struct loop_stats before, after;
	struct signal signal;

	(void)state;
	make_signal(&signal);
	loop_set_spin(loop, 1000000000000ull);
	send_signal(&signal);
	loop_turn(loop, UINT64_MAX);
	loop_get_stats(loop, &before);
	loop_turn(loop, UINT64_MAX); /* nothing is ready: a sleep would not end */
	send_signal(&signal);
	loop_turn(loop, UINT64_MAX);
	loop_get_stats(loop, &after);
	assert_int_equal(after.spins - before.spins, 2);
	assert_int_equal(after.spin_hits - before.spin_hits, 1);
	assert_int_equal(after.waits, before.waits);
	assert_int_equal(after.turns - before.turns, 2);
	loop_set_spin(loop, 0);
	loop_turn(loop, 0);
	loop_get_stats(loop, &after);
	assert_int_equal(after.waits - before.waits, 1);
	end_signal(&signal);
}

static void a_spin_that_finds_nothing_ends_in_a_sleep(void **state)
{
	struct loop_stats before, after;
	struct signal signal;

	(void)state;
	make_signal(&signal);
	loop_set_spin(loop, 1000);
	send_signal(&signal);
	loop_turn(loop, UINT64_MAX);
	loop_get_stats(loop, &before);
	do {
		loop_turn(loop, 0);
		loop_get_stats(loop, &after);
	} while (after.waits == before.waits);
	assert_int_equal(after.spin_hits, before.spin_hits);
	loop_set_spin(loop, 0);
	end_signal(&signal);
}

static void stop_in_third(struct loop_timer *timer)
{
	if (++fired == 3)
		loop_stop(loop);
	loop_arm(loop, timer, loop_now(loop));
}

static void a_running_loop_stops_after_the_turn(void **state)
{
	struct loop_timer timer = {.expired = stop_in_third};

	(void)state;
	fired = 0;
	loop_arm(loop, &timer, loop_now(loop));
	assert_int_equal(loop_run(loop), 0);
	assert_true(fired >= 3);
	loop_disarm(loop, &timer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(timers_fire_in_order_of_their_due_time),
	        cmocka_unit_test(a_wait_ends_at_the_due_time),
	        cmocka_unit_test(a_timer_may_disarm_others_that_are_due),
	        cmocka_unit_test(a_timer_that_arms_itself_lets_the_turn_end),
	        cmocka_unit_test(work_that_schedules_itself_runs_once_a_turn),
	        cmocka_unit_test(work_may_cancel_any_other),
	        cmocka_unit_test(work_of_a_timer_runs_in_the_same_turn),
	        cmocka_unit_test(a_ready_descriptor_calls_its_owner),
	        cmocka_unit_test(a_removed_source_is_not_called_in_the_same_turn),
	        cmocka_unit_test(a_source_may_remove_itself),
	        cmocka_unit_test(a_closed_descriptor_cannot_be_added),
	        cmocka_unit_test(after_an_event_the_loop_looks_again_without_sleeping),
	        cmocka_unit_test(a_spin_that_finds_nothing_ends_in_a_sleep),
	        cmocka_unit_test(a_running_loop_stops_after_the_turn),
	};

	return cmocka_run_group_tests(tests, make_loop, end_loop);
}
