/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that a server tells about itself: the same sections for the stats file and the control
 * socket. */
#include "server/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/log.h"
#include "server/server.h"

#define NS_PER_MS 1000000ull

static void put_number(const char *name, uint64_t value, void *arg)
{
	struct report_sink *sink = arg;

	sink->number(sink, name, value);
}

static void put_counter(const struct counter *counter, void *arg)
{
	put_number(counter->name, counter_get(counter), arg);
}

void report_instance(const struct server *server, struct report_sink *sink)
{
	char profile[PROFILE_CHAIN_MAX + 32], mac[TEXT_MAC_SIZE];

	sink->text(sink, "version", ERNIC_VERSION);
	sink->number(sink, "pid", (uint64_t)getpid());
	sink->number(sink, "uptime_ms", (loop_now(server->loop) - server->start_ns) / NS_PER_MS);
	sink->text(sink, "socket", server->socket_name);
	sink->text(sink, "backend", server->options->backend);
	sink->text(sink, "tap", server->options->tap ? server->options->tap : "none");
	sink->text(sink, "mac", text_mac_format(server->mac, mac));
	sink->text(sink, "nic_profile",
	           server_profile_text(server->profile, profile, sizeof(profile)));
	sink->number(sink, "stats_interval_ms", server->values.stats_interval_ms);
	sink->text(sink, "log_level", log_level_names[log_get_level()]);
	sink->number(sink, "client_attached", vfio_server_attached(server->vfio));
}

static void report_loop(const struct server *server, struct report_sink *sink)
{
	struct loop_stats stats;

	loop_get_stats(server->loop, &stats);
	sink->number(sink, "loop_turns", stats.turns);
	sink->number(sink, "loop_waits", stats.waits);
	sink->number(sink, "loop_spins", stats.spins);
	sink->number(sink, "loop_spin_hits", stats.spin_hits);
	sink->number(sink, "loop_work_turns", stats.work_turns);
}

void report_all(const struct server *server, struct report_sink *sink)
{
	sink->section(sink, "Instance");
	report_instance(server, sink);
	sink->section(sink, "Device");
	ionic_state_visit(server->device, put_number, sink);
	report_loop(server, sink);
	sink->section(sink, "LIF Statistics");
	ionic_lif_stats_visit(server->device, put_number, sink);
	sink->section(sink, "Port Statistics");
	ionic_port_stats_visit(server->device, put_number, sink);
	sink->section(sink, "RDMA");
	ionic_rdma_stats_visit(server->device, put_number, sink);
	sink->section(sink, "Per-QP");
	ionic_qp_stats_visit(server->device, put_number, sink);
	sink->section(sink, "Counters");
	counter_visit(put_counter, sink);
}
