/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of the wire: what happens to frames on their way, for tests and for users. */
#ifndef ERNIC_NET_FAULT_H
#define ERNIC_NET_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct net_frame;
struct net_port;
struct net_wire;

/* Probabilities count in millionths. */
struct net_fault_config {
	uint32_t loss, reorder, dup, corrupt;
	uint64_t delay_ns, jitter_ns;
	uint64_t seed;
};

#define NET_FAULT_DELAY_MAX_NS 10000000000ull /* 10 s */

/*
 * Reads TEXT: words KEY=VALUE with commas between them. loss, reorder, dup and corrupt are
 * percentages (1%, 0.05%), delay and jitter times (2ms, 150us, 1s), seed a number. "off": no
 * faults. Returns 0, or -EINVAL with a sentence of what is wrong in ERROR (SIZE bytes).
 */
int net_fault_parse(const char *text, struct net_fault_config *config, char *error, size_t size);

/* Writes CONFIG as net_fault_parse() reads it; "off" when there are none. */
void net_fault_format(const struct net_fault_config *config, char *text, size_t size);

struct net_fault;

/* Called with a frame that has come through, from PORT. Returns as net_wire_send(). */
typedef int net_fault_out_fn(struct net_port *port, const struct net_frame *frame);

/* Makes the stage. Returns 0 or -ENOMEM. */
int net_fault_create(struct loop *loop, net_fault_out_fn *out, struct net_fault **fault);
void net_fault_destroy(struct net_fault *fault); /* accepts NULL; frames in it are lost */

/* Changes the faults. Frames that are under way keep what was decided for them. */
void net_fault_set(struct net_fault *fault, const struct net_fault_config *config);
const struct net_fault_config *net_fault_get(const struct net_fault *fault);
bool net_fault_active(const struct net_fault *fault);

/* Sends FRAME from PORT through the stage. Returns as net_wire_send(); 0 for a frame that is lost
 * on the way or still to come. */
int net_fault_send(struct net_fault *fault, struct net_port *port, const struct net_frame *frame);

/* PORT leaves the wire: what it has sent is lost. */
void net_fault_forget(struct net_fault *fault, const struct net_port *port);

#endif
