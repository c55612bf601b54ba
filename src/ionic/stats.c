/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of LIF and port: what moves them, and their way into guest memory
 * (spec ionic-ethernet 10.4, 10.5).
 *
 * LIF counters count what passed between wire and queues, port counters what a MAC saw: every frame
 * padded to 60 bytes and with its 4 bytes of FCS. The driver never asks for them; it reads the
 * blocks that the device rewrites each interval of the profile, while there are blocks.
 */
#include "ionic_internal.h"

COUNTER(ionic_stats_lost, "rewrites of a counter block that did not reach guest memory");

#define NS_PER_MS 1000000u

/* ---- names ---- */

static const char *const lif_names[IONIC_LIF_STATS_COUNT] = {
        [0] = "rx_ucast_bytes",
        [1] = "rx_ucast_packets",
        [2] = "rx_mcast_bytes",
        [3] = "rx_mcast_packets",
        [4] = "rx_bcast_bytes",
        [5] = "rx_bcast_packets",
        [8] = "rx_ucast_drop_bytes",
        [9] = "rx_ucast_drop_packets",
        [10] = "rx_mcast_drop_bytes",
        [11] = "rx_mcast_drop_packets",
        [12] = "rx_bcast_drop_bytes",
        [13] = "rx_bcast_drop_packets",
        [14] = "rx_dma_error",
        [16] = "tx_ucast_bytes",
        [17] = "tx_ucast_packets",
        [18] = "tx_mcast_bytes",
        [19] = "tx_mcast_packets",
        [20] = "tx_bcast_bytes",
        [21] = "tx_bcast_packets",
        [24] = "tx_ucast_drop_bytes",
        [25] = "tx_ucast_drop_packets",
        [26] = "tx_mcast_drop_bytes",
        [27] = "tx_mcast_drop_packets",
        [28] = "tx_bcast_drop_bytes",
        [29] = "tx_bcast_drop_packets",
        [30] = "tx_dma_error",
        [32] = "rx_queue_disabled",
        [33] = "rx_queue_empty",
        [34] = "rx_queue_error",
        [35] = "rx_desc_fetch_error",
        [36] = "rx_desc_data_error",
        [40] = "tx_queue_disabled",
        [41] = "tx_queue_error",
        [42] = "tx_desc_fetch_error",
        [43] = "tx_desc_data_error",
        [44] = "tx_queue_empty",
        [48] = "tx_rdma_ucast_bytes",
        [49] = "tx_rdma_ucast_packets",
        [50] = "tx_rdma_mcast_bytes",
        [51] = "tx_rdma_mcast_packets",
        [52] = "tx_rdma_cnp_packets",
        [56] = "rx_rdma_ucast_bytes",
        [57] = "rx_rdma_ucast_packets",
        [58] = "rx_rdma_mcast_bytes",
        [59] = "rx_rdma_mcast_packets",
        [60] = "rx_rdma_cnp_packets",
        [61] = "rx_rdma_ecn_packets",
        [96] = "rdma_req_rx_pkt_seq_err",
        [97] = "rdma_req_rx_rnr_retry_err",
        [98] = "rdma_req_rx_remote_access_err",
        [99] = "rdma_req_rx_remote_inv_req_err",
        [100] = "rdma_req_rx_remote_oper_err",
        [101] = "rdma_req_rx_implied_nak_seq_err",
        [102] = "rdma_req_rx_cqe_err",
        [103] = "rdma_req_rx_cqe_flush_err",
        [104] = "rdma_req_rx_dup_responses",
        [105] = "rdma_req_rx_invalid_packets",
        [106] = "rdma_req_tx_local_access_err",
        [107] = "rdma_req_tx_local_oper_err",
        [108] = "rdma_req_tx_memory_mgmt_err",
        [112] = "rdma_resp_rx_dup_requests",
        [113] = "rdma_resp_rx_out_of_buffer",
        [114] = "rdma_resp_rx_out_of_seq_pkts",
        [115] = "rdma_resp_rx_cqe_err",
        [116] = "rdma_resp_rx_cqe_flush_err",
        [117] = "rdma_resp_rx_local_len_err",
        [118] = "rdma_resp_rx_inv_request_err",
        [119] = "rdma_resp_rx_local_qp_oper_err",
        [120] = "rdma_resp_rx_out_of_atomic_resource",
        [121] = "rdma_resp_tx_pkt_seq_err",
        [122] = "rdma_resp_tx_remote_inv_req_err",
        [123] = "rdma_resp_tx_remote_access_err",
        [124] = "rdma_resp_tx_remote_oper_err",
        [125] = "rdma_resp_tx_rnr_retry_err",
};

/* clang-format off */
#define PORT_STATS(X) \
	X(frames_rx_ok) \
	X(frames_rx_all) \
	X(frames_rx_bad_fcs) \
	X(frames_rx_bad_all) \
	X(octets_rx_ok) \
	X(octets_rx_all) \
	X(frames_rx_unicast) \
	X(frames_rx_multicast) \
	X(frames_rx_broadcast) \
	X(frames_rx_pause) \
	X(frames_rx_bad_length) \
	X(frames_rx_undersized) \
	X(frames_rx_oversized) \
	X(frames_rx_fragments) \
	X(frames_rx_jabber) \
	X(frames_rx_pripause) \
	X(frames_rx_stomped_crc) \
	X(frames_rx_too_long) \
	X(frames_rx_vlan_good) \
	X(frames_rx_dropped) \
	X(frames_rx_less_than_64b) \
	X(frames_rx_64b) \
	X(frames_rx_65b_127b) \
	X(frames_rx_128b_255b) \
	X(frames_rx_256b_511b) \
	X(frames_rx_512b_1023b) \
	X(frames_rx_1024b_1518b) \
	X(frames_rx_1519b_2047b) \
	X(frames_rx_2048b_4095b) \
	X(frames_rx_4096b_8191b) \
	X(frames_rx_8192b_9215b) \
	X(frames_rx_other) \
	X(frames_tx_ok) \
	X(frames_tx_all) \
	X(frames_tx_bad) \
	X(octets_tx_ok) \
	X(octets_tx_total) \
	X(frames_tx_unicast) \
	X(frames_tx_multicast) \
	X(frames_tx_broadcast) \
	X(frames_tx_pause) \
	X(frames_tx_pripause) \
	X(frames_tx_vlan) \
	X(frames_tx_less_than_64b) \
	X(frames_tx_64b) \
	X(frames_tx_65b_127b) \
	X(frames_tx_128b_255b) \
	X(frames_tx_256b_511b) \
	X(frames_tx_512b_1023b) \
	X(frames_tx_1024b_1518b) \
	X(frames_tx_1519b_2047b) \
	X(frames_tx_2048b_4095b) \
	X(frames_tx_4096b_8191b) \
	X(frames_tx_8192b_9215b) \
	X(frames_tx_other) \
	X(frames_tx_pri_0) \
	X(frames_tx_pri_1) \
	X(frames_tx_pri_2) \
	X(frames_tx_pri_3) \
	X(frames_tx_pri_4) \
	X(frames_tx_pri_5) \
	X(frames_tx_pri_6) \
	X(frames_tx_pri_7) \
	X(frames_rx_pri_0) \
	X(frames_rx_pri_1) \
	X(frames_rx_pri_2) \
	X(frames_rx_pri_3) \
	X(frames_rx_pri_4) \
	X(frames_rx_pri_5) \
	X(frames_rx_pri_6) \
	X(frames_rx_pri_7) \
	X(tx_pripause_0_1us_count) \
	X(tx_pripause_1_1us_count) \
	X(tx_pripause_2_1us_count) \
	X(tx_pripause_3_1us_count) \
	X(tx_pripause_4_1us_count) \
	X(tx_pripause_5_1us_count) \
	X(tx_pripause_6_1us_count) \
	X(tx_pripause_7_1us_count) \
	X(rx_pripause_0_1us_count) \
	X(rx_pripause_1_1us_count) \
	X(rx_pripause_2_1us_count) \
	X(rx_pripause_3_1us_count) \
	X(rx_pripause_4_1us_count) \
	X(rx_pripause_5_1us_count) \
	X(rx_pripause_6_1us_count) \
	X(rx_pripause_7_1us_count) \
	X(rx_pause_1us_count) \
	X(frames_tx_truncated)
/* clang-format on */

#define PORT_STAT_ENUM(name) port_##name,
#define PORT_STAT_NAME(name) #name,

enum port_stat { PORT_STATS(PORT_STAT_ENUM) port_stat_count };
static const char *const port_names[] = {PORT_STATS(PORT_STAT_NAME)};

static_assert(port_stat_count == IONIC_PORT_STATS_COUNT, "spec 10.5");
static_assert(sizeof(((struct ionic_lif_info *)0)->stats) == IONIC_LIF_STATS_COUNT * 8,
              "spec 10.4");
static_assert(port_frames_tx_truncated == 88 && port_frames_rx_pri_0 == 63, "spec 10.5");

void ionic_lif_stats_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg)
{
	ionic_rdma_stats_sync(dev);
	for (size_t i = 0; i < ARRAY_SIZE(lif_names); i++) {
		if (lif_names[i])
			fn(lif_names[i], dev->stats.lif[i], arg);
	}
}

void ionic_port_stats_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(port_names); i++)
		fn(port_names[i], dev->stats.port[i], arg);
}

/* ---- counting ---- */

/* Where one direction's port counters are; those of a kind stand in a row. */
struct port_dir {
	enum port_stat all, ok, octets_all, octets_ok;
	enum port_stat cast; /* unicast, multicast, broadcast */
	enum port_stat size; /* of 64 bytes, and so on to "other" */
	enum port_stat vlan, pri;
};

static const struct port_dir port_rx = {
        .all = port_frames_rx_all,
        .ok = port_frames_rx_ok,
        .octets_all = port_octets_rx_all,
        .octets_ok = port_octets_rx_ok,
        .cast = port_frames_rx_unicast,
        .size = port_frames_rx_64b,
        .vlan = port_frames_rx_vlan_good,
        .pri = port_frames_rx_pri_0,
};

static const struct port_dir port_tx = {
        .all = port_frames_tx_all,
        .ok = port_frames_tx_ok,
        .octets_all = port_octets_tx_total,
        .octets_ok = port_octets_tx_ok,
        .cast = port_frames_tx_unicast,
        .size = port_frames_tx_64b,
        .vlan = port_frames_tx_vlan,
        .pri = port_frames_tx_pri_0,
};

/* 0 unicast, 1 multicast, 2 broadcast: the order of the counters. */
static unsigned cast_class(const uint8_t dst[6])
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	if (!(dst[0] & 1))
		return 0;
	return memcmp(dst, broadcast, sizeof(broadcast)) == 0 ? 2 : 1;
}

static uint32_t wire_size(uint32_t size)
{
	return (size < NET_MIN_FRAME ? NET_MIN_FRAME : size) + NET_FCS;
}

static unsigned size_bucket(uint32_t size)
{
	static const uint16_t last[] = {64, 127, 255, 511, 1023, 1518, 2047, 4095, 8191, 9215};
	unsigned bucket = 0;

	while (bucket < ARRAY_SIZE(last) && size > last[bucket])
		bucket++;
	return bucket;
}

/* COUNT frames of the same SIZE, which may differ from that in FACTS. */
static void port_count(struct ionic_stats *stats, const struct port_dir *dir,
                       const struct ionic_frame_facts *facts, uint32_t count, uint32_t size)
{
	uint64_t *port = stats->port;
	uint32_t octets = wire_size(size);

	port[dir->all] += count;
	port[dir->ok] += count;
	port[dir->octets_all] += (uint64_t)count * octets;
	port[dir->octets_ok] += (uint64_t)count * octets;
	port[dir->cast + cast_class(facts->dst)] += count;
	port[dir->size + size_bucket(octets)] += count;
	if (facts->tagged)
		port[dir->vlan] += count;
	port[dir->pri + (facts->tagged ? facts->pcp & 7 : 0)] += count;
}

/* FIRST is the bytes counter of unicast; packets, multicast and broadcast follow. */
static void lif_count(struct ionic_stats *stats, enum ionic_lif_stat first,
                      const struct ionic_frame_facts *facts, uint32_t count, uint64_t bytes)
{
	uint64_t *pair = &stats->lif[first + 2 * cast_class(facts->dst)];

	pair[0] += bytes;
	pair[1] += count;
}

void ionic_stats_tx(struct ionic_stats *stats, const struct ionic_frame_facts *facts)
{
	lif_count(stats, IONIC_LIF_TX_UCAST_BYTES, facts, 1, facts->size);
	port_count(stats, &port_tx, facts, 1, facts->size);
}

void ionic_stats_tx_segments(struct ionic_stats *stats, const struct ionic_frame_facts *facts,
                             uint32_t count, uint32_t last_size)
{
	uint64_t bytes;

	if (count == 0)
		return;
	bytes = (uint64_t)(count - 1) * facts->size + last_size;
	lif_count(stats, IONIC_LIF_TX_UCAST_BYTES, facts, count, bytes);
	if (count > 1)
		port_count(stats, &port_tx, facts, count - 1, facts->size);
	port_count(stats, &port_tx, facts, 1, last_size);
}

void ionic_stats_rx(struct ionic_stats *stats, const struct ionic_frame_facts *facts)
{
	lif_count(stats, IONIC_LIF_RX_UCAST_BYTES, facts, 1, facts->size);
	port_count(stats, &port_rx, facts, 1, facts->size);
}

void ionic_stats_tx_drop(struct ionic_stats *stats, const struct ionic_frame_facts *facts)
{
	lif_count(stats, IONIC_LIF_TX_UCAST_DROP_BYTES, facts, 1, facts->size);
}

void ionic_stats_rx_drop(struct ionic_stats *stats, const struct ionic_frame_facts *facts,
                         int reason)
{
	port_count(stats, &port_rx, facts, 1, facts->size);
	stats->port[port_frames_rx_dropped]++;
	lif_count(stats, IONIC_LIF_RX_UCAST_DROP_BYTES, facts, 1, facts->size);
	if (reason >= 0) {
		assert(reason < IONIC_LIF_STATS_COUNT);
		stats->lif[reason]++;
	}
}

void ionic_stats_rx_filtered(struct ionic_stats *stats, const struct ionic_frame_facts *facts)
{
	port_count(stats, &port_rx, facts, 1, facts->size);
}

void ionic_stats_rx_oversize(struct ionic_stats *stats)
{
	stats->port[port_frames_rx_too_long]++;
	stats->port[port_frames_rx_oversized]++;
	stats->port[port_frames_rx_bad_all]++;
}

/* ---- the blocks in guest memory ---- */

static void block_write(struct ionic_dev *dev, uint64_t addr, const uint64_t *values, size_t count)
{
	le64 block[IONIC_LIF_STATS_COUNT];

	assert(count <= ARRAY_SIZE(block));
	for (size_t i = 0; i < count; i++)
		block[i] = le64_make(values[i]);
	if (guest_mem_write(dev->mem, addr, block, count * sizeof(block[0])) < 0)
		counter_inc(&ionic_stats_lost);
}

void ionic_stats_publish(struct ionic_dev *dev)
{
	ionic_rdma_stats_sync(dev);
	if (dev->lif.initialized)
		block_write(dev, dev->lif.info_addr + offsetof(struct ionic_lif_info, stats),
		            dev->stats.lif, IONIC_LIF_STATS_COUNT);
	if (dev->eth_port.initialized)
		block_write(dev, dev->eth_port.info_addr + offsetof(struct ionic_port_info, stats),
		            dev->stats.port, IONIC_PORT_STATS_COUNT);
}

static void stats_arm(struct ionic_dev *dev, uint64_t due_ns)
{
	loop_arm(dev->loop, &dev->stats_timer, due_ns);
}

/* The next time is one interval after this one was due, so that the pace does not drift. */
static void stats_expired(struct loop_timer *timer)
{
	struct ionic_dev *dev = container_of(timer, struct ionic_dev, stats_timer);
	uint64_t interval = (uint64_t)dev->profile.stats_interval_ms * NS_PER_MS;
	uint64_t now = loop_now(dev->loop), due = timer->due_ns + interval;

	if (!dev->lif.initialized && !dev->eth_port.initialized)
		return;
	dev->publish_pending = true;
	ionic_dev_schedule(dev);
	stats_arm(dev, due > now ? due : now + interval);
}

void ionic_stats_start(struct ionic_dev *dev)
{
	if (dev->stats_timer.armed)
		return;
	dev->stats_timer.expired = stats_expired;
	stats_arm(dev, loop_now(dev->loop) + (uint64_t)dev->profile.stats_interval_ms * NS_PER_MS);
}
