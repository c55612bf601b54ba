/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that a server tells about itself: the same sections for the stats file and the control
 * socket. */
#ifndef ERNIC_SERVER_REPORT_H
#define ERNIC_SERVER_REPORT_H

#include <stdint.h>

struct server;

/* Where the report goes. section() opens a section; values belong to the last one opened. */
struct report_sink {
	void (*section)(struct report_sink *sink, const char *name);
	void (*text)(struct report_sink *sink, const char *name, const char *value);
	void (*number)(struct report_sink *sink, const char *name, uint64_t value);
};

/* Sections Instance, Device, LIF Statistics, Port Statistics, RDMA, Per-QP, Counters, in this
 * order. */
void report_all(const struct server *server, struct report_sink *sink);

/* The values of section Instance alone. */
void report_instance(const struct server *server, struct report_sink *sink);

#endif
