/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of the wire.
 *
 * Theory of operation
 *
 * Every frame that a port sends passes here while faults are set. The dice are thrown in a fixed
 * order, so that a seed gives the same faults for the same frames: loss, duplicate, corruption,
 * order. What is to come later is copied into a frame of the stage, with the notes of what is still
 * to be done to it, and waits in a queue that is sorted by time.
 *
 *	loss	the frame is gone
 *	dup	it comes twice
 *	corrupt	one bit of it is flipped. A frame whose checksum is still to be filled, or that is
 *		still to be cut, is dropped instead, as its receiver would have done: a bit flipped
 *		now would be summed, and arrive as if it had been sent so
 *	delay	every frame comes that much later
 *	jitter	... and up to that much more; frames of a port stay in their order
 *	reorder	the frame comes behind those that follow it within FAULT_OVERTAKE_NS
 *
 * The stage holds at most FAULT_FRAMES_MAX frames and FAULT_BYTES_MAX bytes; beyond, frames are
 * dropped, as a long wire with too little buffer would.
 */
#include "net/fault.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/counter.h"
#include "base/iov.h"
#include "net/net.h"

COUNTER(net_fault_lost, "frames that --fault loss dropped");
COUNTER(net_fault_doubled, "frames that --fault dup sent twice");
COUNTER(net_fault_corrupted, "frames that --fault corrupt damaged or dropped");
COUNTER(net_fault_reordered, "frames that --fault reorder held back");
COUNTER(net_fault_overflow, "frames dropped because too many were under way");

#define FAULT_FRAMES_MAX  16384
#define FAULT_BYTES_MAX   (64u << 20)
#define FAULT_OVERTAKE_NS 300000ull
#define MILLION           1000000u

struct held {
	TAILQ_ENTRY(held) link;
	uint64_t due_ns;
	struct net_port *port;
	struct net_frame frame;
	struct iovec iov;
	uint8_t bytes[];
};

struct net_fault {
	struct loop *loop;
	net_fault_out_fn *out;
	struct net_fault_config config;
	bool active;
	uint64_t random;
	uint64_t last_due_ns[8]; /* by port index: the order is kept among those of one port */
	TAILQ_HEAD(held_list, held) held;
	uint32_t frames;
	size_t bytes;
	struct loop_timer timer;
	struct loop_work work; /* frames end in guest memory: they leave in the work phase */
};

/* ---- text ---- */

static bool parse_percent(const char *text, uint32_t *millionths)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || strcmp(end, "%") != 0 || !(value >= 0 && value <= 100))
		return false;
	*millionths = (uint32_t)(value * 10000 + 0.5);
	return true;
}

static bool parse_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (end == text || strcmp(end, units[i].unit) != 0)
			continue;
		value *= units[i].ns;
		if (!(value >= 0 && value <= (double)NET_FAULT_DELAY_MAX_NS))
			return false;
		*ns = (uint64_t)(value + 0.5);
		return true;
	}
	return false;
}

static bool parse_seed(const char *text, uint64_t *seed)
{
	char *end;

	errno = 0;
	*seed = strtoull(text, &end, 0);
	return end != text && *end == '\0' && errno == 0 && *text != '-';
}

/* The keys; exactly one of the last three is set. */
static const struct key {
	const char *name, *example;
	size_t offset;
	bool (*percent)(const char *text, uint32_t *value);
	bool (*number)(const char *text, uint64_t *value);
} keys[] = {
        {"loss", "1%", offsetof(struct net_fault_config, loss), parse_percent, NULL},
        {"reorder", "0.5%", offsetof(struct net_fault_config, reorder), parse_percent, NULL},
        {"dup", "0.5%", offsetof(struct net_fault_config, dup), parse_percent, NULL},
        {"corrupt", "0.1%", offsetof(struct net_fault_config, corrupt), parse_percent, NULL},
        {"delay", "2ms", offsetof(struct net_fault_config, delay_ns), NULL, parse_time},
        {"jitter", "500us", offsetof(struct net_fault_config, jitter_ns), NULL, parse_time},
        {"seed", "42", offsetof(struct net_fault_config, seed), NULL, parse_seed},
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static int parse_word(const char *word, struct net_fault_config *config, char *error, size_t size)
{
	size_t length = strcspn(word, "=");

	for (size_t i = 0; i < KEYS; i++) {
		void *field = (char *)config + keys[i].offset;

		if (strlen(keys[i].name) != length || strncmp(keys[i].name, word, length) != 0)
			continue;
		const char *value = word[length] ? word + length + 1 : "";

		if (keys[i].percent ? keys[i].percent(value, field) : keys[i].number(value, field))
			return 0;
		snprintf(error, size, "'%.40s' is no value of %s (give, for example, %s=%s)", value,
		         keys[i].name, keys[i].name, keys[i].example);
		return -EINVAL;
	}
	snprintf(error, size,
	         "unknown fault '%.40s' (faults: loss, delay, jitter, reorder, dup, corrupt, seed; "
	         "or off)",
	         word);
	return -EINVAL;
}

int net_fault_parse(const char *text, struct net_fault_config *config, char *error, size_t size)
{
	char words[256], *rest = words, *word;

	*config = (struct net_fault_config){.seed = 1};
	if (strcmp(text, "off") == 0)
		return 0;
	if (strlen(text) >= sizeof(words)) {
		snprintf(error, size, "longer than %zu characters", sizeof(words) - 1);
		return -EINVAL;
	}
	memcpy(words, text, strlen(text) + 1);
	while ((word = strsep(&rest, ","))) {
		int failed = parse_word(word, config, error, size);

		if (failed)
			return failed;
	}
	return 0;
}

static bool any_fault(const struct net_fault_config *config)
{
	return config->loss || config->reorder || config->dup || config->corrupt ||
	       config->delay_ns || config->jitter_ns;
}

void net_fault_format(const struct net_fault_config *config, char *text, size_t size)
{
	if (!any_fault(config)) {
		snprintf(text, size, "off");
		return;
	}
	snprintf(text, size,
	         "loss=%g%%,reorder=%g%%,dup=%g%%,corrupt=%g%%,delay=%gus,jitter=%gus,seed=%llu",
	         config->loss / 1e4, config->reorder / 1e4, config->dup / 1e4,
	         config->corrupt / 1e4, (double)config->delay_ns / 1e3,
	         (double)config->jitter_ns / 1e3, (unsigned long long)config->seed);
}

/* ---- frames under way ---- */

static void arm(struct net_fault *fault)
{
	const struct held *first = TAILQ_FIRST(&fault->held);

	if (first)
		loop_arm(fault->loop, &fault->timer, first->due_ns);
}

/* Takes HELD off the list; it is the caller's to free. */
static void held_take(struct net_fault *fault, struct held *held)
{
	TAILQ_REMOVE(&fault->held, held, link);
	assert(TAILQ_FIRST(&fault->held) != held);
	fault->frames--;
	fault->bytes -= held->frame.size;
}

static void fault_run(struct loop_work *work)
{
	struct net_fault *fault = (void *)((char *)work - offsetof(struct net_fault, work));
	uint64_t now = loop_now(fault->loop);
	struct held *held;

	while ((held = TAILQ_FIRST(&fault->held)) && held->due_ns <= now) {
		struct net_frame frame = held->frame;

		/* out() may send frames in answer, which come back here */
		held_take(fault, held);
		frame.iov = &held->iov;
		fault->out(held->port, &frame);
		free(held);
	}
	arm(fault);
}

static void fault_expired(struct loop_timer *timer)
{
	struct net_fault *fault = (void *)((char *)timer - offsetof(struct net_fault, timer));

	loop_schedule(fault->loop, &fault->work);
}

static void hold(struct net_fault *fault, struct net_port *port, const struct net_frame *frame,
                 uint64_t due_ns)
{
	struct held *held = NULL, *before;

	if (fault->frames < FAULT_FRAMES_MAX && frame->size < FAULT_BYTES_MAX - fault->bytes)
		held = malloc(sizeof(*held) + frame->size);
	if (!held) {
		counter_inc(&net_fault_overflow);
		return;
	}
	held->due_ns = due_ns;
	held->port = port;
	held->frame = *frame;
	held->frame.may_wait = false;
	held->frame.iov_count = 1;
	held->iov = (struct iovec){held->bytes, frame->size};
	iov_to_buf(frame->iov, frame->iov_count, 0, held->bytes, frame->size);
	fault->frames++;
	fault->bytes += frame->size;
	before = TAILQ_LAST(&fault->held, held_list);
	while (before && before->due_ns > due_ns)
		before = TAILQ_PREV(before, held_list, link);
	if (before)
		TAILQ_INSERT_AFTER(&fault->held, before, held, link);
	else
		TAILQ_INSERT_HEAD(&fault->held, held, link);
	arm(fault);
}

/* ---- dice ---- */

static uint64_t draw(struct net_fault *fault)
{
	fault->random ^= fault->random << 13;
	fault->random ^= fault->random >> 7;
	fault->random ^= fault->random << 17;
	return fault->random * 0x2545f4914f6cdd1dull >> 16;
}

static bool hits(struct net_fault *fault, uint32_t millionths)
{
	return millionths > 0 && draw(fault) % MILLION < millionths;
}

/* When a frame of PORT comes through; 0: now. */
static uint64_t due_time(struct net_fault *fault, const struct net_port *port)
{
	const struct net_fault_config *config = &fault->config;
	uint64_t *last = &fault->last_due_ns[port->index & 7];
	uint64_t due = loop_now(fault->loop) + config->delay_ns;
	bool late = config->delay_ns > 0 || config->jitter_ns > 0;

	if (config->jitter_ns > 0)
		due += draw(fault) % config->jitter_ns;
	if (hits(fault, config->reorder)) {
		counter_inc(&net_fault_reordered);
		return due + FAULT_OVERTAKE_NS; /* those behind it do not wait for it */
	}
	if (!late)
		return 0;
	if (due < *last)
		due = *last;
	*last = due;
	return due;
}

/* Sends a frame whose damage is done, COPIES times. */
static int pass(struct net_fault *fault, struct net_port *port, const struct net_frame *frame,
                unsigned copies)
{
	int result = 0;

	while (copies-- > 0) {
		uint64_t due = due_time(fault, port);

		if (due > 0)
			hold(fault, port, frame, due);
		else
			result = fault->out(port, frame);
	}
	return result;
}

static int pass_corrupted(struct net_fault *fault, struct net_port *port,
                          const struct net_frame *frame, unsigned copies)
{
	uint64_t bit = draw(fault) % (frame->size * 8);
	struct net_frame damaged = *frame;
	struct iovec iov;

	counter_inc(&net_fault_corrupted);
	iov.iov_base = frame->csum_partial ? NULL : malloc(frame->size);
	if (!iov.iov_base)
		return 0;
	iov.iov_len = frame->size;
	iov_to_buf(frame->iov, frame->iov_count, 0, iov.iov_base, frame->size);
	((uint8_t *)iov.iov_base)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	damaged.iov = &iov;
	damaged.iov_count = 1;
	damaged.csum_valid = false;
	int result = pass(fault, port, &damaged, copies);

	free(iov.iov_base);
	return result;
}

int net_fault_send(struct net_fault *fault, struct net_port *port, const struct net_frame *frame)
{
	const struct net_fault_config *config = &fault->config;
	struct net_frame once = *frame;
	unsigned copies = 1;

	once.may_wait = false; /* offered again, it would face the dice twice */
	if (hits(fault, config->loss)) {
		counter_inc(&net_fault_lost);
		return 0;
	}
	if (hits(fault, config->dup)) {
		counter_inc(&net_fault_doubled);
		copies = 2;
	}
	if (hits(fault, config->corrupt))
		return pass_corrupted(fault, port, &once, copies);
	return pass(fault, port, &once, copies);
}

/* ---- life ---- */

void net_fault_set(struct net_fault *fault, const struct net_fault_config *config)
{
	fault->config = *config;
	fault->active = any_fault(config);
	fault->random = (config->seed + 1) * 0x9e3779b97f4a7c15ull;
	if (fault->random == 0)
		fault->random = 1;
}

const struct net_fault_config *net_fault_get(const struct net_fault *fault)
{
	return &fault->config;
}

bool net_fault_active(const struct net_fault *fault)
{
	return fault->active || fault->frames > 0;
}

void net_fault_forget(struct net_fault *fault, const struct net_port *port)
{
	struct held *held = TAILQ_FIRST(&fault->held), *next;

	for (; held; held = next) {
		next = TAILQ_NEXT(held, link);
		if (held->port != port)
			continue;
		held_take(fault, held);
		free(held);
	}
}

int net_fault_create(struct loop *loop, net_fault_out_fn *out, struct net_fault **result)
{
	struct net_fault *fault = calloc(1, sizeof(*fault));

	if (!fault)
		return -ENOMEM;
	fault->loop = loop;
	fault->out = out;
	fault->timer.expired = fault_expired;
	fault->work.run = fault_run;
	TAILQ_INIT(&fault->held);
	net_fault_set(fault, &(struct net_fault_config){.seed = 1});
	*result = fault;
	return 0;
}

void net_fault_destroy(struct net_fault *fault)
{
	if (!fault)
		return;
	struct held *held;

	while ((held = TAILQ_FIRST(&fault->held))) {
		held_take(fault, held);
		free(held);
	}
	loop_disarm(fault->loop, &fault->timer);
	loop_cancel(fault->loop, &fault->work);
	free(fault);
}
