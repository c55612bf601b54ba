/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of the RDMA function (spec ionic-rdma 12): the lists that the guest reads through the
 * admin queue, their places in the LIF block, and what the stats file shows.
 *
 * The counters are the engine's, and run as long as the process. The guest sees what has been added
 * since the last device reset, in its hw_counters and in the LIF block alike.
 */
#include "rdma_lif.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define NAME_MAX_SIZE (sizeof(((struct ionic_rdma_stat_header *)0)->name))

/* Names of files in the guest's hw_counters; 27 characters at most (12.1). */
static const struct {
	enum rdma_stat stat;
	const char *name;
} port_stats[] = {
        {RDMA_STAT_TX_BYTES, "tx_rdma_ucast_bytes"},
        {RDMA_STAT_TX_PACKETS, "tx_rdma_ucast_pkts"},
        {RDMA_STAT_RX_BYTES, "rx_rdma_ucast_bytes"},
        {RDMA_STAT_RX_PACKETS, "rx_rdma_ucast_pkts"},
        {RDMA_STAT_REQ_RX_SEQ_ERR, "req_rx_pkt_seq_err"},
        {RDMA_STAT_REQ_RX_RNR_RETRY, "req_rx_rnr_retry_err"},
        {RDMA_STAT_REQ_RX_REM_ACCESS, "req_rx_rmt_acc_err"},
        {RDMA_STAT_REQ_RX_REM_INV_REQ, "req_rx_rmt_req_err"},
        {RDMA_STAT_REQ_RX_REM_OPER, "req_rx_oper_err"},
        {RDMA_STAT_REQ_RX_IMPLIED_NAK, "req_rx_impl_nak_seq_err"},
        {RDMA_STAT_REQ_CQE_ERR, "req_rx_cqe_err"},
        {RDMA_STAT_REQ_CQE_FLUSH, "req_rx_cqe_flush"},
        {RDMA_STAT_REQ_RX_DUP, "req_rx_dup_response"},
        {RDMA_STAT_REQ_RX_INVALID, "req_rx_inval_pkts"},
        {RDMA_STAT_REQ_TX_LOC_ACCESS, "req_tx_loc_acc_err"},
        {RDMA_STAT_REQ_TX_LOC_OPER, "req_tx_loc_oper_err"},
        {RDMA_STAT_REQ_TX_MEM_MGMT, "req_tx_mem_mgmt_err"},
        {RDMA_STAT_RESP_RX_DUP, "resp_rx_dup_requests"},
        {RDMA_STAT_RESP_RX_OUT_OF_BUFFER, "resp_rx_out_of_buffer"},
        {RDMA_STAT_RESP_RX_OUT_OF_SEQ, "resp_rx_out_of_seq"},
        {RDMA_STAT_RESP_CQE_ERR, "resp_rx_cqe_err"},
        {RDMA_STAT_RESP_CQE_FLUSH, "resp_rx_cqe_flush"},
        {RDMA_STAT_RESP_RX_LOC_LEN, "resp_rx_loc_len_err"},
        {RDMA_STAT_RESP_RX_INV_REQ, "resp_rx_inval_request"},
        {RDMA_STAT_RESP_RX_LOC_QP_OPER, "resp_rx_loc_oper_err"},
        {RDMA_STAT_RESP_RX_OUT_OF_ATOMIC, "resp_rx_out_of_atomic_res"},
        {RDMA_STAT_RESP_TX_SEQ_ERR, "resp_tx_pkt_seq_err"},
        {RDMA_STAT_RESP_TX_INV_REQ, "resp_tx_rmt_inval_req_err"},
        {RDMA_STAT_RESP_TX_ACCESS, "resp_tx_rmt_acc_err"},
        {RDMA_STAT_RESP_TX_OPER, "resp_tx_rmt_oper_err"},
        {RDMA_STAT_RESP_TX_RNR, "resp_tx_rnr_retry_err"},
        {RDMA_STAT_RETRIES, "req_retries"},
        {RDMA_STAT_RETRY_EXC, "req_retry_exceeded"},
        {RDMA_STAT_RNR_RETRY_EXC, "req_rnr_retry_exceeded"},
        {RDMA_STAT_NO_DESTINATION, "req_no_destination"},
        {RDMA_STAT_DROPPED, "resp_rx_dropped"},
        {RDMA_STAT_TRUNCATED, "req_tx_datagram_too_long"},
};

static uint64_t port_stat(const struct ionic_rdma *rdma, enum rdma_stat stat)
{
	return rdma_dev_stat(rdma->engine, stat) - rdma->stat_base[stat];
}

void ionic_rdma_stats_restart(struct ionic_dev *dev)
{
	struct ionic_rdma *rdma = dev->rdma;

	for (unsigned i = 0; i < RDMA_STAT_COUNT; i++)
		rdma->stat_base[i] = rdma_dev_stat(rdma->engine, i);
}

void ionic_rdma_stats_sync(struct ionic_dev *dev)
{
	for (unsigned i = 0; i < RDMA_STAT_COUNT; i++) {
		int index = rdma_stat_lif_index(i);

		if (index >= 0)
			dev->stats.lif[index] = port_stat(dev->rdma, i);
	}
}

/* ---- lists in guest memory ---- */

/* A list that is being made. All values are quadwords, one after the other. */
struct blob {
	struct ionic_rdma_stat_header
	        headers[IONIC_RDMA_STATS_BYTES / sizeof(struct ionic_rdma_stat_header)];
	le64 values[IONIC_RDMA_STATS_BYTES / sizeof(struct ionic_rdma_stat_header)];
	uint32_t count;
};

static void blob_add(struct blob *blob, const char *name, uint64_t value)
{
	struct ionic_rdma_stat_header *header = &blob->headers[blob->count];
	uint32_t offset = blob->count * (uint32_t)sizeof(le64);

	assert(blob->count < ARRAY_SIZE(blob->headers) - 1 && strlen(name) < NAME_MAX_SIZE);
	*header = (struct ionic_rdma_stat_header){
	        .type_off = be32_make(IONIC_RDMA_STAT_LE64 << 28 | offset)};
	memcpy(header->name, name, strlen(name));
	blob->values[blob->count++] = le64_make(value);
}

static void blob_end(struct blob *blob)
{
	blob->headers[blob->count] = (struct ionic_rdma_stat_header){.type_off = be32_make(0)};
}

static void fill_port(const struct ionic_rdma *rdma, struct blob *blob)
{
	blob->count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(port_stats); i++)
		blob_add(blob, port_stats[i].name, port_stat(rdma, port_stats[i].stat));
	blob_end(blob);
}

/* A send of one kind, in one direction: "tx_write_imm_msgs", "tx_write_imm_bytes". */
static void add_traffic(struct blob *blob, const char *direction, enum rdma_opcode opcode,
                        const struct rdma_traffic *traffic)
{
	char name[NAME_MAX_SIZE];

	snprintf(name, sizeof(name), "%s_%s_msgs", direction, rdma_opcode_name(opcode));
	blob_add(blob, name, traffic->messages);
	snprintf(name, sizeof(name), "%s_%s_bytes", direction, rdma_opcode_name(opcode));
	blob_add(blob, name, traffic->bytes);
}

static void fill_qp(const struct rdma_qp_stats *stats, struct blob *blob)
{
	blob->count = 0;
	for (unsigned op = 0; op < RDMA_REG_MR; op++) {
		add_traffic(blob, "tx", op, &stats->tx[op]);
		add_traffic(blob, "rx", op, &stats->rx[op]);
	}
	for (unsigned op = RDMA_REG_MR; op < RDMA_OPCODES; op++)
		blob_add(blob, rdma_opcode_name(op), stats->tx[op].messages);
	blob_add(blob, "receives", stats->receives);
	blob_add(blob, "tx_errors", stats->tx_errors);
	blob_add(blob, "rx_errors", stats->rx_errors);
	blob_add(blob, "retries", stats->retries);
	blob_add(blob, "rnrs", stats->rnrs);
	blob_add(blob, "sq_doorbells", stats->kicks);
	blob_end(blob);
}

/* Writes SIZE bytes, or as many as the driver has room for. */
static enum ionic_rdma_admin_status blob_write(struct ionic_rdma *rdma,
                                               const union ionic_rdma_admin *wqe, const void *data,
                                               size_t size)
{
	uint32_t room = le32_get(wqe->stats.length);

	return ionic_admin_status(ionic_rdma_write(rdma, le64_get(wqe->stats.dma_addr), data,
	                                           size < room ? size : room));
}

static enum ionic_rdma_admin_status
headers_write(struct ionic_rdma *rdma, const union ionic_rdma_admin *wqe, const struct blob *blob)
{
	return blob_write(rdma, wqe, blob->headers, (blob->count + 1) * sizeof(blob->headers[0]));
}

static enum ionic_rdma_admin_status
values_write(struct ionic_rdma *rdma, const union ionic_rdma_admin *wqe, const struct blob *blob)
{
	return blob_write(rdma, wqe, blob->values, blob->count * sizeof(blob->values[0]));
}

enum ionic_rdma_admin_status ionic_admin_stats_hdrs(struct ionic_rdma *rdma,
                                                    const union ionic_rdma_admin *wqe)
{
	struct blob blob;

	fill_port(rdma, &blob);
	return headers_write(rdma, wqe, &blob);
}

enum ionic_rdma_admin_status ionic_admin_stats_vals(struct ionic_rdma *rdma,
                                                    const union ionic_rdma_admin *wqe)
{
	struct blob blob;

	fill_port(rdma, &blob);
	return values_write(rdma, wqe, &blob);
}

enum ionic_rdma_admin_status ionic_admin_qp_stats_hdrs(struct ionic_rdma *rdma,
                                                       const union ionic_rdma_admin *wqe)
{
	static const struct rdma_qp_stats none;
	struct blob blob;

	fill_qp(&none, &blob);
	return headers_write(rdma, wqe, &blob);
}

enum ionic_rdma_admin_status ionic_admin_qp_stats_vals(struct ionic_rdma *rdma,
                                                       const union ionic_rdma_admin *wqe)
{
	uint32_t qpn = le32_get(wqe->stats.id_ver) & IONIC_RDMA_ID_MASK;
	struct rdma_qp *qp = rdma_qp_find(rdma->engine, qpn);
	struct blob blob;

	if (!qp)
		return IONIC_RDMA_BAD_INDEX;
	fill_qp(rdma_qp_stats(qp), &blob);
	return values_write(rdma, wqe, &blob);
}

/* ---- the stats file ---- */

/* QPs that the file shows; it is read by people. */
#define QPS_SHOWN 64

struct visit {
	ionic_stat_fn *fn;
	void *arg;
	const char *prefix;
	uint32_t shown, active;
};

static void show_queues(const struct ionic_rdma *rdma, const struct visit *visit)
{
	char name[48];

	for (unsigned i = 0; i < ARRAY_SIZE(rdma->eqs); i++) {
		if (!rdma->eqs[i].exists)
			continue;
		snprintf(name, sizeof(name), "eq_%u_events", i);
		visit->fn(name, rdma->eqs[i].written, visit->arg);
		snprintf(name, sizeof(name), "eq_%u_deferred", i);
		visit->fn(name, rdma->eqs[i].deferred, visit->arg);
	}
}

void ionic_rdma_stats_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg)
{
	const struct ionic_rdma *rdma = dev->rdma;
	const struct visit visit = {.fn = fn, .arg = arg};

	fn("admin_commands", rdma->count.admin_commands, arg);
	fn("admin_errors", rdma->count.admin_errors, arg);
	fn("admin_doorbells", rdma->count.aq_doorbells, arg);
	fn("send_doorbells", rdma->count.sq_doorbells, arg);
	fn("receive_doorbells", rdma->count.rq_doorbells, arg);
	fn("cq_doorbells", rdma->count.cq_doorbells, arg);
	fn("cq_arms", rdma->count.cq_arms, arg);
	fn("cq_entries", rdma->count.cqes, arg);
	fn("cq_events", rdma->count.cq_events, arg);
	fn("qp_events", rdma->count.qp_events, arg);
	fn("resets", rdma->count.resets, arg);
	show_queues(rdma, &visit);
	rdma_dev_stats_visit(rdma->engine, fn, arg);
}

static void show_qp_stat(const char *name, uint64_t value, void *arg)
{
	const struct visit *visit = arg;
	char line[80];

	snprintf(line, sizeof(line), "%s_%s", visit->prefix, name);
	visit->fn(line, value, visit->arg);
}

static void show_qp(struct rdma_qp *engine, void *arg)
{
	const struct ionic_qp *qp = rdma_qp_owner(engine);
	struct visit *visit = arg;
	char prefix[24];

	if (qp->doorbells == 0)
		return;
	if (visit->active++ >= QPS_SHOWN)
		return;
	visit->shown++;
	snprintf(prefix, sizeof(prefix), "qp_%" PRIu32, qp->qpn);
	visit->prefix = prefix;
	show_qp_stat("type", rdma_qp_type(engine), visit);
	show_qp_stat("state", rdma_qp_state(engine), visit);
	show_qp_stat("doorbells", qp->doorbells, visit);
	show_qp_stat("completions", qp->completions, visit);
	show_qp_stat("sends_posted", (qp->sq.prod - qp->sq.cons) & ionic_ring_mask(&qp->sq.ring),
	             visit);
	show_qp_stat("receives_posted", (qp->rq.prod - qp->rq.cons) & ionic_ring_mask(&qp->rq.ring),
	             visit);
	rdma_qp_stats_visit(engine, show_qp_stat, visit);
}

void ionic_qp_stats_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg)
{
	struct visit visit = {.fn = fn, .arg = arg};

	rdma_qp_visit(dev->rdma->engine, show_qp, &visit);
	fn("active", visit.active, arg);
	fn("shown", visit.shown, arg);
}
