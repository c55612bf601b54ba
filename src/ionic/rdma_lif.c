/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RDMA function of the device: the queue ABI between the guest's drivers and the verbs engine.
 *
 * Theory of operation
 *
 * Goal: unmodified ionic_rdma and libionic find the queues that they know (spec ionic-rdma), and
 * what is in them means what the engine (rdma/rdma.h) executes. This side knows rings, doorbells
 * and the layout of entries; the engine knows queue pairs, keys and messages.
 *
 *	guest                      message context          work
 *	AdminQ 51..53         ---> (adminq.c)          ---> event queues, first CQ, admin queue
 *	doorbell, admin queue ---> prod, schedule      ---> rdma_admin*.c -> rdma_*() -> CQE
 *	doorbell, send queue  ---> prod, rdma_qp_kick  ---> engine -> fetch_send() -> rdma_wqe.c
 *	doorbell, receives    ---> prod, kick_recv     ---> engine -> fetch_recv()
 *	doorbell, CQ          ---> consumed, armed     ---> event, if one is due
 *	                                                    engine -> complete_*() -> CQE -> EQE ->
 *MSI-X
 *
 * Contexts. As everywhere in this room, doorbells change indices and schedule, and guest memory is
 * touched in the work phase: by the work callback of the device (admin commands, events and flush
 * markers that a doorbell made due) and by that of the engine (requests and completions).
 *
 * Order. A completion is written after the data that it announces, an event after its completion,
 * an interrupt after its event, and an admin completion after everything that its command did.
 *
 * Ownership. Every queue belongs to a doorbell page, and so to one process or to the kernel; a
 * doorbell of another page is not heard. Objects are found by number in tables as long as the
 * limits of the identity, in constant time; memory is used by what exists.
 *
 * Reset. RDMA_RESET_LIF, LIF_RESET, RESET, a function reset, a change of the firmware and a
 * disconnect all come to ionic_rdma_clear(), at any moment. Everything is forgotten before it
 * returns, with one exception: while one of our accesses to guest memory waits for the client
 * (vfio/guest_mem.h), what that access stands on is kept. Then every access fails, doorbells are
 * not heard, and the rest happens at the next turn.
 *
 * Not done: controller memory, express doorbells, resizing of CQs, shared receive queues,
 * congestion control; the identity offers none of them.
 */
#include "rdma_lif.h"

#include <errno.h>
#include <stdlib.h>

COUNTER(ionic_rdma_bad_page, "RDMA doorbells on a page that does not own the queue, ignored");
COUNTER(ionic_rdma_bad_qid, "RDMA doorbells of a queue that does not exist, ignored");
COUNTER(ionic_rdma_bad_ring, "RDMA doorbells with a ring number that the queue lacks, ignored");
COUNTER(ionic_rdma_bad_cq, "RDMA_CREATE_CQ that was refused");

/* ---- what it says about itself (1.2) ---- */

static struct ionic_rdma_qtype qtype(uint8_t slot, uint32_t count)
{
	return (struct ionic_rdma_qtype){.qtype = slot, .count = le32_make(count)};
}

void ionic_rdma_fill_identity(const struct ionic_profile *profile, uint8_t identity[256])
{
	const struct ionic_rdma_identity fields = {
	        .version = 1,
	        .qp_opcodes = IONIC_RDMA_WQE_OPS,
	        .admin_opcodes = IONIC_RDMA_ADMIN_OPS,
	        .npts = le32_make(IONIC_RDMA_PTES),
	        .nmrs = le32_make(IONIC_RDMA_MRS),
	        .nahs = le32_make(IONIC_RDMA_AHS),
	        .max_stride = IONIC_RDMA_MAX_STRIDE,
	        .cl_stride = 6,
	        .pte_stride = 3,
	        .rrq_stride = 5,
	        .rsq_stride = 5,
	        .udma_shift = IONIC_RDMA_UDMA_SHIFT,
	        .page_size_cap = le64_make(0x40201000),
	        .aq = qtype(IONIC_DB_RDMA_AQ, IONIC_RDMA_AQS),
	        .sq = qtype(IONIC_DB_RDMA_SQ, IONIC_RDMA_QPS),
	        .rq = qtype(IONIC_DB_RDMA_RQ, IONIC_RDMA_QPS),
	        .cq = qtype(IONIC_DB_RDMA_CQ, IONIC_RDMA_CQS),
	        .eq = qtype(IONIC_DB_RDMA_EQ, profile->rdma_eqs),
	        .stats_type = le16_make(IONIC_RDMA_STATS_PORT | IONIC_RDMA_STATS_QP),
	};

	memcpy(identity, &fields, sizeof(fields));
}

/* ---- what the engine asks of the device ---- */

static int mem_map(void *owner, uint64_t addr, size_t size, enum rdma_mem_access access,
                   struct iovec *iov, unsigned max)
{
	static_assert(RDMA_MEM_READ == (int)GUEST_READ && RDMA_MEM_WRITE == (int)GUEST_WRITE,
	              "one notion of access");
	return ionic_rdma_map(owner, addr, size, (enum guest_access)access, iov, max);
}

static uint64_t mem_generation(void *owner)
{
	struct ionic_rdma *rdma = owner;

	return rdma->reset_pending ? 0 : guest_mem_generation(rdma->dev->mem);
}

static int mem_read(void *owner, uint64_t addr, void *dst, size_t size)
{
	return ionic_rdma_read(owner, addr, dst, size);
}

static int mem_write(void *owner, uint64_t addr, const void *src, size_t size)
{
	return ionic_rdma_write(owner, addr, src, size);
}

static bool owns_mac(void *owner, const uint8_t mac[6])
{
	const struct ionic_rdma *rdma = owner;
	const struct ionic_lif *lif = &rdma->dev->lif;

	return memcmp(lif->mac, mac, sizeof(lif->mac)) == 0 ||
	       ionic_filter_has_mac(&lif->filters, mac);
}

static const struct rdma_owner_ops owner_ops = {
        .mem_map = mem_map,
        .mem_generation = mem_generation,
        .mem_read = mem_read,
        .mem_write = mem_write,
        .owns_mac = owns_mac,
        .fetch_send = ionic_qp_fetch_send,
        .fetch_recv = ionic_qp_fetch_recv,
        .complete_send = ionic_qp_complete_send,
        .complete_recv = ionic_qp_complete_recv,
        .flush = ionic_qp_flush,
        .sq_pause = ionic_qp_sq_pause,
        .event = ionic_qp_event,
};

/* ---- life ---- */

/* Between the MTU of the LIF and that of verbs, which are powers of two: headers (11). */
#define ROCE_HEADERS     96
#define DATAGRAM_MTU_MIN 256
#define DATAGRAM_MTU_MAX 4096

void ionic_rdma_mtu_changed(struct ionic_dev *dev)
{
	uint32_t mtu = DATAGRAM_MTU_MAX;

	while (mtu > DATAGRAM_MTU_MIN && mtu + ROCE_HEADERS > dev->lif.mtu)
		mtu /= 2;
	rdma_dev_set_datagram_mtu(dev->rdma->engine, mtu);
}

int ionic_rdma_create(struct ionic_dev *dev, struct rdma_fabric *fabric)
{
	struct ionic_rdma *rdma = calloc(1, sizeof(*rdma));
	struct rdma_dev_config config = {
	        .name = "nic",
	        .loop = dev->loop,
	        .ops = &owner_ops,
	        .owner = rdma,
	        .limits = {.qps = IONIC_RDMA_QPS,
	                   .mrs = IONIC_RDMA_MRS,
	                   .ahs = IONIC_RDMA_AHS,
	                   .pages = IONIC_RDMA_ALL_PAGES},
	        .fabric = fabric,
	        .datagram_mtu = DATAGRAM_MTU_MAX,
	};
	int rc = -ENOMEM;

	if (!rdma)
		return -ENOMEM;
	dev->rdma = rdma;
	rdma->dev = dev;
	TAILQ_INIT(&rdma->all_cqs);
	TAILQ_INIT(&rdma->all_qps);
	TAILQ_INIT(&rdma->posted_in_err);
	rdma->cqs = calloc(IONIC_RDMA_CQS, sizeof(*rdma->cqs));
	if (rdma->cqs)
		rc = rdma_dev_create(&config, &rdma->engine);
	if (rc < 0)
		ionic_rdma_destroy(dev);
	return rc;
}

/* Forgets every object and queue. */
static void drop_all(struct ionic_rdma *rdma)
{
	struct ionic_cq *cq;
	struct ionic_qp *qp;

	rdma->reset_pending = false;
	for (unsigned i = 0; i < ARRAY_SIZE(rdma->aqs); i++)
		rdma->aqs[i].exists = false;
	while ((qp = TAILQ_FIRST(&rdma->all_qps)))
		ionic_qp_free(qp);
	while ((cq = TAILQ_FIRST(&rdma->all_cqs)))
		ionic_cq_free(cq);
	for (unsigned i = 0; i < ARRAY_SIZE(rdma->eqs); i++)
		ionic_eq_clear(&rdma->eqs[i]);
	rdma->eqs_pending = 0;
	rdma->eqs_deferred = false;
	rdma_dev_reset(rdma->engine);
}

void ionic_rdma_clear(struct ionic_dev *dev)
{
	struct ionic_rdma *rdma = dev->rdma;

	rdma->count.resets++;
	if (rdma->in_memory == 0) {
		drop_all(rdma);
		return;
	}
	rdma->reset_pending = true;
	ionic_dev_schedule(dev);
}

void ionic_rdma_destroy(struct ionic_dev *dev)
{
	struct ionic_rdma *rdma = dev->rdma;

	if (!rdma)
		return;
	if (rdma->engine)
		drop_all(rdma);
	rdma_dev_destroy(rdma->engine);
	free(rdma->cqs);
	free(rdma);
	dev->rdma = NULL;
}

/* ---- commands of the Ethernet AdminQ (2) ---- */

enum ionic_status ionic_cmd_rdma_reset_lif(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                           union ionic_comp *comp)
{
	(void)cmd, (void)comp;
	ionic_rdma_clear(dev);
	return IONIC_RC_SUCCESS;
}

static uint32_t queue_id(const union ionic_cmd *cmd)
{
	return le32_get(cmd->rdma_queue.qid_ver) & IONIC_RDMA_ID_MASK;
}

enum ionic_status ionic_cmd_rdma_create_eq(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                           union ionic_comp *comp)
{
	(void)comp;
	return ionic_eq_create(dev->rdma, queue_id(cmd), cmd);
}

enum ionic_status ionic_cmd_rdma_create_cq(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                           union ionic_comp *comp)
{
	const struct ionic_cq_config config = {
	        .id = queue_id(cmd),
	        .eq_id = le32_get(cmd->rdma_queue.cid),
	        .dbid = le16_get(cmd->rdma_queue.dbid),
	        .ring = {.dma_addr = le64_get(cmd->rdma_queue.dma_addr),
	                 .map_count = 1,
	                 .depth_log2 = cmd->rdma_queue.depth_log2,
	                 .stride_log2 = cmd->rdma_queue.stride_log2},
	};
	int rc = ionic_cq_create(dev->rdma, &config);

	(void)comp;
	switch (rc) {
	case 0:
		return IONIC_RC_SUCCESS;
	case -ERANGE:
		return ionic_refuse(&ionic_rdma_bad_cq, IONIC_RC_EQID);
	case -EEXIST:
		return ionic_refuse(&ionic_rdma_bad_cq, IONIC_RC_EEXIST);
	case -ENOMEM:
		return ionic_refuse(&ionic_rdma_bad_cq, IONIC_RC_ENOMEM);
	default:
		return ionic_refuse(&ionic_rdma_bad_cq, IONIC_RC_EINVAL);
	}
}

enum ionic_status ionic_cmd_rdma_create_adminq(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                               union ionic_comp *comp)
{
	(void)comp;
	return ionic_aq_create(dev->rdma, queue_id(cmd), cmd);
}

/* ---- doorbells (7) ---- */

static bool page_owns(uint32_t page, uint16_t dbid)
{
	if (page == dbid)
		return true;
	counter_inc(&ionic_rdma_bad_page);
	return false;
}

static bool is_ring_0(unsigned ring)
{
	if (ring == 0)
		return true;
	counter_inc(&ionic_rdma_bad_ring);
	return false;
}

static struct ionic_qp *doorbell_qp(struct ionic_rdma *rdma, uint32_t page, uint64_t value)
{
	struct rdma_qp *engine = rdma_qp_find(rdma->engine, ionic_db_qid(value));
	struct ionic_qp *qp;

	if (!engine) {
		counter_inc(&ionic_rdma_bad_qid);
		return NULL;
	}
	qp = rdma_qp_owner(engine);
	return page_owns(page, qp->dbid) && is_ring_0(ionic_db_ring(value)) ? qp : NULL;
}

static void doorbell_cq(struct ionic_rdma *rdma, uint32_t page, uint64_t value)
{
	struct ionic_cq *cq = ionic_cq_find(rdma, ionic_db_qid(value));

	if (!cq)
		counter_inc(&ionic_rdma_bad_qid);
	else if (page_owns(page, cq->dbid))
		ionic_cq_doorbell(cq, ionic_db_ring(value), ionic_db_index(value));
}

static void doorbell_aq(struct ionic_rdma *rdma, uint32_t page, uint64_t value)
{
	uint32_t id = ionic_db_qid(value);

	if (id >= IONIC_RDMA_AQS || !rdma->aqs[id].exists)
		counter_inc(&ionic_rdma_bad_qid);
	else if (page_owns(page, rdma->aqs[id].dbid) && is_ring_0(ionic_db_ring(value)))
		ionic_aq_doorbell(&rdma->aqs[id], ionic_db_index(value));
}

bool ionic_rdma_doorbell(struct ionic_dev *dev, uint32_t page, unsigned slot, uint64_t value)
{
	struct ionic_rdma *rdma = dev->rdma;
	struct ionic_qp *qp;

	if (rdma->reset_pending)
		return true;
	switch (slot) {
	case IONIC_DB_RDMA_SQ:
		qp = doorbell_qp(rdma, page, value);
		if (qp)
			ionic_qp_sq_doorbell(qp, ionic_db_index(value));
		return true;
	case IONIC_DB_RDMA_RQ:
		qp = doorbell_qp(rdma, page, value);
		if (qp)
			ionic_qp_rq_doorbell(qp, ionic_db_index(value));
		return true;
	case IONIC_DB_RDMA_CQ:
		doorbell_cq(rdma, page, value);
		return true;
	case IONIC_DB_RDMA_AQ:
		doorbell_aq(rdma, page, value);
		return true;
	default:
		return false;
	}
}

/* ---- work ---- */

/* The driver has looked at an event queue: what waited for that may go on. */
void ionic_rdma_credits_returned(struct ionic_dev *dev)
{
	if (!dev->rdma->eqs_deferred)
		return;
	dev->rdma->eqs_deferred = false;
	ionic_dev_schedule(dev);
}

static void flush_events(struct ionic_rdma *rdma)
{
	for (uint32_t left = rdma->eqs_pending; left != 0; left &= left - 1)
		ionic_eq_flush(&rdma->eqs[__builtin_ctz(left)]);
}

void ionic_rdma_run(struct ionic_dev *dev)
{
	struct ionic_rdma *rdma = dev->rdma;

	assert(rdma->in_memory == 0);
	if (rdma->reset_pending)
		drop_all(rdma);
	ionic_qp_flush_posted(rdma);
	flush_events(rdma);
	for (unsigned i = 0; i < ARRAY_SIZE(rdma->aqs); i++)
		if (rdma->aqs[i].exists && ionic_aq_run(&rdma->aqs[i]))
			ionic_dev_schedule(dev);
}
