/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of devices and QPs, and how the stats file and the guest get at them. */
#include "rdma/rdma_internal.h"

#include <stdio.h>

struct stat_info {
	const char *name;
	int lif_index;
};

#define STAT_INFO(id, text, index) [RDMA_STAT_##id] = {.name = (text), .lif_index = (index)},
static const struct stat_info stat_infos[] = {RDMA_STATS(STAT_INFO)};
_Static_assert(ARRAY_SIZE(stat_infos) == RDMA_STAT_COUNT, "a name for every counter");

const char *rdma_stat_name(enum rdma_stat stat)
{
	return stat_infos[stat].name;
}

int rdma_stat_lif_index(enum rdma_stat stat)
{
	return stat_infos[stat].lif_index;
}

uint64_t rdma_dev_stat(const struct rdma_dev *dev, enum rdma_stat stat)
{
	return dev->stat[stat];
}

void rdma_histogram_add(struct rdma_histogram *histogram, uint64_t value)
{
	unsigned bits = value > 0 ? 64 - (unsigned)__builtin_clzll(value) : 0;

	if (bits >= RDMA_HISTOGRAM_BUCKETS)
		bits = RDMA_HISTOGRAM_BUCKETS - 1;
	histogram->bucket[bits]++;
}

static void count(struct rdma_traffic *traffic, uint64_t bytes)
{
	traffic->messages++;
	traffic->bytes += bytes;
}

/* The device's own direction: what came back for a READ was received. */
static void count_packets(struct rdma_dev *dev, bool out, uint64_t bytes)
{
	dev->stat[out ? RDMA_STAT_TX_PACKETS : RDMA_STAT_RX_PACKETS]++;
	dev->stat[out ? RDMA_STAT_TX_BYTES : RDMA_STAT_RX_BYTES] += bytes;
}

void rdma_count_tx(struct rdma_qp *qp, unsigned opcode, uint64_t bytes)
{
	count(&qp->stats.tx[opcode], bytes);
	count(&qp->dev->stats.traffic.tx[opcode], bytes);
	if (!rdma_op_is(opcode, OP_LOCAL))
		count_packets(qp->dev, !rdma_op_fetches(opcode), bytes);
}

void rdma_count_rx(struct rdma_qp *qp, unsigned opcode, uint64_t bytes)
{
	count(&qp->stats.rx[opcode], bytes);
	count(&qp->dev->stats.traffic.rx[opcode], bytes);
	count_packets(qp->dev, rdma_op_fetches(opcode), bytes);
}

const struct rdma_qp_stats *rdma_qp_stats(const struct rdma_qp *qp)
{
	return &qp->stats;
}

void rdma_dev_stats(const struct rdma_dev *dev, struct rdma_dev_stats *stats)
{
	*stats = dev->stats;
	stats->qps = dev->qps.count;
	stats->mrs = dev->mrs.count - dev->windows;
	stats->windows = dev->windows;
	stats->ahs = dev->ahs.count;
	stats->pages = dev->pages;
}

/* ---- by name ---- */

static void visit_traffic(const char *direction, const struct rdma_traffic traffic[RDMA_OPCODES],
                          bool all, rdma_stat_fn *fn, void *arg)
{
	char name[64];

	for (unsigned i = 0; i < RDMA_OPCODES; i++) {
		if (!all && traffic[i].messages == 0)
			continue;
		snprintf(name, sizeof(name), "%s_%s_messages", direction, rdma_ops[i].name);
		fn(name, traffic[i].messages, arg);
		snprintf(name, sizeof(name), "%s_%s_bytes", direction, rdma_ops[i].name);
		fn(name, traffic[i].bytes, arg);
	}
}

static void visit_qp_stats(const struct rdma_qp_stats *stats, bool all, rdma_stat_fn *fn, void *arg)
{
	const struct {
		const char *name;
		uint64_t value;
	} named[] = {
	        {"receives", stats->receives},   {"tx_errors", stats->tx_errors},
	        {"rx_errors", stats->rx_errors}, {"retries", stats->retries},
	        {"rnrs", stats->rnrs},           {"kicks", stats->kicks},
	};

	visit_traffic("tx", stats->tx, all, fn, arg);
	visit_traffic("rx", stats->rx, all, fn, arg);
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if (all || named[i].value > 0)
			fn(named[i].name, named[i].value, arg);
}

void rdma_qp_stats_visit(const struct rdma_qp *qp, rdma_stat_fn *fn, void *arg)
{
	visit_qp_stats(&qp->stats, false, fn, arg);
}

/* Buckets by what their values are below: NAME_below_2, NAME_below_4 ... */
static void visit_histogram(const char *name, const struct rdma_histogram *histogram,
                            rdma_stat_fn *fn, void *arg)
{
	char bucket[64];

	for (unsigned i = 0; i < RDMA_HISTOGRAM_BUCKETS; i++) {
		if (histogram->bucket[i] == 0)
			continue;
		snprintf(bucket, sizeof(bucket), "%s_below_%llu", name, 1ull << i);
		fn(bucket, histogram->bucket[i], arg);
	}
}

void rdma_dev_stats_visit(const struct rdma_dev *dev, rdma_stat_fn *fn, void *arg)
{
	struct rdma_dev_stats stats;

	for (unsigned i = 0; i < RDMA_STAT_COUNT; i++)
		fn(stat_infos[i].name, dev->stat[i], arg);
	rdma_dev_stats(dev, &stats);
	visit_qp_stats(&stats.traffic, true, fn, arg);
	fn("qps", stats.qps, arg);
	fn("mrs", stats.mrs, arg);
	fn("windows", stats.windows, arg);
	fn("ahs", stats.ahs, arg);
	fn("pages", stats.pages, arg);
	visit_histogram("turn_requests", &stats.turn_ops, fn, arg);
	visit_histogram("turn_bytes", &stats.turn_bytes, fn, arg);
	visit_histogram("kick_to_done_ns", &stats.kick_to_done_ns, fn, arg);
}
