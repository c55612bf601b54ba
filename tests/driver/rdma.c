// SPDX-License-Identifier: GPL-2.0-or-later
/* The RDMA function of the driver model: bring-up, event queues, admin queue, doorbells. */
#include "rdma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- identity (1.2) ---- */

static uint32_t get32(const uint8_t *data, unsigned offset)
{
	le32 value;

	memcpy(&value, data + offset, sizeof(value));
	return le32_get(value);
}

static int rdma_identify(struct rdma *rdma)
{
	struct cmd cmd = {.opcode = CMD_LIF_IDENTIFY};
	struct rdma_identity *id = &rdma->id;
	uint8_t data[REG_DEVCMD_DATA_SZ];
	int err;

	cmd.lif_identify.ver = 1;
	err = nic_devcmd(rdma->nic, &cmd, NULL);
	if (!err)
		err = nic_reg_read(rdma->nic, REG_DEVCMD_DATA, data, sizeof(data));
	if (err)
		return err;
	if (!(rdma->nic->id.lif_caps & LIF_CAP_RDMA))
		return -EOPNOTSUPP;
	id->version = data[RDMA_ID_VERSION];
	id->max_stride = data[RDMA_ID_MAX_STRIDE];
	id->udma_shift = data[RDMA_ID_UDMA_SHIFT];
	id->stats_type = data[RDMA_ID_STATS];
	id->mrs = get32(data, RDMA_ID_NMRS);
	id->ahs = get32(data, RDMA_ID_NAHS);
	id->qps = get32(data, RDMA_ID_SQ + 4);
	id->cqs = get32(data, RDMA_ID_CQ + 4);
	id->eqs = get32(data, RDMA_ID_EQ + 4);
	id->slot = (struct rdma_slots){data[RDMA_ID_AQ], data[RDMA_ID_SQ], data[RDMA_ID_RQ],
	                               data[RDMA_ID_CQ]};
	if (id->version < 1 || id->version > 2)
		return nic_complain(rdma->nic, "RDMA version %u", id->version);
	if (id->udma_shift < 1 || id->qps & (id->qps - 1) || id->cqs & (id->cqs - 1))
		return nic_complain(rdma->nic, "%u QPs, %u CQs, UDMA shift %u", id->qps, id->cqs,
		                    id->udma_shift);
	return 0;
}

/* ---- bring-up (2.4) ---- */

int rdma_reset_lif(struct nic *nic)
{
	const struct cmd cmd = {.opcode = CMD_RDMA_RESET_LIF};

	return nic_admin(nic, &cmd, NULL);
}

static int rdma_queue_cmd(struct nic *nic, const struct rdma_queue_cmd *fields)
{
	struct cmd cmd;

	memcpy(&cmd, fields, sizeof(cmd));
	return nic_admin(nic, &cmd, NULL);
}

/* Mask, mask on assert, credits clean (4.3); the server gets the eventfd. */
static int rdma_eq_vector(struct nic *nic, struct rdma_eq *eq)
{
	uint32_t credits;
	int err = nic_intr_read(nic, eq->vector, REG_INTR_CREDITS, &credits);

	if (!err)
		err = nic_intr_write(nic, eq->vector, REG_INTR_CREDITS,
		                     (credits & 0xffff) | CREDITS_RESET_COAL);
	if (!err)
		err = nic_intr_write(nic, eq->vector, REG_INTR_MASK, 1);
	if (!err)
		err = nic_intr_write(nic, eq->vector, REG_INTR_ASSERT, 1);
	if (err)
		return err;
	eq->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (eq->eventfd < 0)
		return -errno;
	return vfu_set_irqs(nic->vfu, VFU_IRQ_MSIX, eq->vector, 1, &eq->eventfd);
}

static int rdma_eq_create(struct rdma *rdma, unsigned index)
{
	struct rdma_eq *eq = &rdma->eq[index];
	struct rdma_queue_cmd cmd = {
	        .opcode = CMD_RDMA_CREATE_EQ, .depth_log2 = RDMA_EQ_LOG2, .stride_log2 = 2};
	int err;

	eq->vector = 1 + rdma->nic->pair_count + index;
	eq->ring = ram_take(&rdma->nic->ram, 4u << RDMA_EQ_LOG2);
	if (!eq->ring)
		return -ENOMEM;
	memset(ram_at(&rdma->nic->ram, eq->ring), 0, 4u << RDMA_EQ_LOG2);
	err = rdma_eq_vector(rdma->nic, eq);
	if (err)
		return err;
	cmd.qid_ver = le32_make(index);
	cmd.cid = le32_make(eq->vector);
	cmd.dma_addr = le64_make(eq->ring);
	err = rdma_queue_cmd(rdma->nic, &cmd);
	return err ? err : nic_intr_write(rdma->nic, eq->vector, REG_INTR_MASK, 0);
}

static int rdma_admin_create(struct rdma *rdma)
{
	struct rdma_cq *cq = &rdma->admin_cq;
	struct rdma_queue_cmd cmd = {
	        .opcode = CMD_RDMA_CREATE_CQ, .depth_log2 = RDMA_ADMIN_LOG2, .stride_log2 = 5};
	int err;

	*cq = (struct rdma_cq){.rdma = rdma};
	cq->ring = (struct rdma_ring){.log2 = RDMA_ADMIN_LOG2, .stride_log2 = 5};
	cq->ring.base = ram_take(&rdma->nic->ram, CQE_SIZE << RDMA_ADMIN_LOG2);
	rdma->aq_ring = ram_take(&rdma->nic->ram, AQ_STRIDE << RDMA_AQ_LOG2);
	if (!cq->ring.base || !rdma->aq_ring)
		return -ENOMEM;
	memset(ram_at(&rdma->nic->ram, cq->ring.base), 0, CQE_SIZE << RDMA_ADMIN_LOG2);
	memset(ram_at(&rdma->nic->ram, rdma->aq_ring), 0, AQ_STRIDE << RDMA_AQ_LOG2);
	rdma->cqs[0] = cq;
	cmd.cid = le32_make(rdma->eq_count > 2 ? 2 : 0);
	cmd.dma_addr = le64_make(cq->ring.base);
	err = rdma_queue_cmd(rdma->nic, &cmd);
	if (err)
		return err;
	cmd = (struct rdma_queue_cmd){.opcode = CMD_RDMA_CREATE_ADMINQ,
	                              .depth_log2 = RDMA_AQ_LOG2,
	                              .stride_log2 = 6,
	                              .dma_addr = le64_make(rdma->aq_ring)};
	err = rdma_queue_cmd(rdma->nic, &cmd);
	return err ? err : rdma_cq_arm(cq, false);
}

static int rdma_tables(struct rdma *rdma)
{
	rdma->cqs = calloc(rdma->id.cqs, sizeof(struct rdma_cq *));
	rdma->qps = calloc(rdma->id.qps, sizeof(struct rdma_qp *));
	rdma->table = ram_take(&rdma->nic->ram, RDMA_TABLE_BYTES);
	rdma->scratch = ram_take(&rdma->nic->ram, RAM_PAGE);
	return rdma->cqs && rdma->qps && rdma->table && rdma->scratch ? 0 : -ENOMEM;
}

static int rdma_bring_up(struct rdma *rdma)
{
	int err = rdma_identify(rdma);

	if (!err)
		err = rdma_tables(rdma);
	if (!err)
		err = rdma_reset_lif(rdma->nic);
	rdma->eq_count =
	        rdma->id.eqs < rdma->nic->options.pairs ? rdma->id.eqs : rdma->nic->options.pairs;
	if (rdma->eq_count > RDMA_EQS_MAX)
		rdma->eq_count = RDMA_EQS_MAX;
	for (unsigned i = 0; i < rdma->eq_count && !err; i++)
		err = rdma_eq_create(rdma, i);
	return err ? err : rdma_admin_create(rdma);
}

int rdma_open(struct rdma **rdma, struct nic *nic)
{
	struct rdma *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return -ENOMEM;
	new->nic = nic;
	new->next_mr = new->next_cq = 1;
	new->next_qp = 2;
	new->next_key = 1;
	for (unsigned i = 0; i < RDMA_EQS_MAX; i++)
		new->eq[i].eventfd = -1;
	err = rdma_bring_up(new);
	if (err)
		rdma_free(new);
	else
		*rdma = new;
	return err;
}

void rdma_free(struct rdma *rdma)
{
	if (!rdma)
		return;
	for (unsigned i = 0; i < RDMA_EQS_MAX; i++)
		if (rdma->eq[i].eventfd >= 0)
			close(rdma->eq[i].eventfd);
	free(rdma->cqs);
	free(rdma->qps);
	free(rdma);
}

int rdma_close(struct rdma *rdma)
{
	int err = rdma ? rdma_reset_lif(rdma->nic) : 0;

	rdma_free(rdma);
	return err;
}

/* ---- doorbells (7) ---- */

int rdma_doorbell(struct rdma *rdma, uint16_t page, uint8_t slot, unsigned ring, uint32_t id,
                  uint32_t index)
{
	const struct nic *nic = rdma->nic;
	uint64_t number = (uint64_t)nic->hw_lif * nic->id.ndbpgs + page;
	le64 value = le64_make((uint64_t)id << 24 | (uint64_t)ring << 16 | (index & 0xffff));

	rdma->nic->posted_writes++;
	return vfu_write_posted(nic->vfu, VFU_REGION_BAR2, number * RAM_PAGE + 8u * slot, &value,
	                        sizeof(value));
}

/* ---- events (4) ---- */

static int rdma_event(struct rdma *rdma, uint32_t word)
{
	uint32_t id = EQE_ID(word);

	if (EQE_TYPE(word) == EQE_CQ) {
		struct rdma_cq *cq = id < rdma->id.cqs ? rdma->cqs[id] : NULL;

		if (EQE_CODE(word) != EQE_CQ_NOTIFY && EQE_CODE(word) != EQE_CQ_ERROR)
			return nic_complain(rdma->nic, "CQ event %#x", word);
		if (cq && EQE_CODE(word) == EQE_CQ_ERROR)
			cq->failed = true;
		else if (cq)
			cq->notified++;
		return 0;
	}
	if (EQE_TYPE(word) != EQE_QP)
		return nic_complain(rdma->nic, "event %#x", word);
	if (id < rdma->id.qps && rdma->qps[id])
		rdma->qps[id]->events |= 1u << EQE_CODE(word);
	return 0;
}

static int rdma_eq_take(struct rdma *rdma, struct rdma_eq *eq)
{
	const uint32_t *ring = ram_at(&rdma->nic->ram, eq->ring);
	int taken = 0;

	for (;;) {
		uint32_t at = eq->cons & ((1u << RDMA_EQ_LOG2) - 1);
		uint32_t color = !(eq->cons >> RDMA_EQ_LOG2 & 1);
		uint32_t word = be32toh(__atomic_load_n(&ring[at], __ATOMIC_ACQUIRE));
		int err;

		if ((word & 1) != color)
			return taken;
		eq->cons++;
		eq->events++;
		taken++;
		err = rdma_event(rdma, word);
		if (err)
			return err;
	}
}

/* What the poll of a vector ends with: no credits, unmasked. */
static int rdma_eq_unmask(struct rdma *rdma, const struct rdma_eq *eq)
{
	return nic_intr_write(rdma->nic, eq->vector, REG_INTR_CREDITS, CREDITS_UNMASK);
}

int rdma_events(struct rdma *rdma)
{
	int total = 0;

	for (unsigned i = 0; i < rdma->eq_count; i++) {
		int taken = rdma_eq_take(rdma, &rdma->eq[i]);
		int err = taken > 0 ? rdma_eq_unmask(rdma, &rdma->eq[i]) : taken;

		if (err)
			return err;
		total += taken;
	}
	return total;
}

/* One interrupt may find nothing: its event was taken with the one before, after the device had
 * written it and before it had added its credit. */
int rdma_events_wait(struct rdma *rdma, unsigned index, int timeout_ms)
{
	struct rdma_eq *eq = &rdma->eq[index];
	int64_t deadline = nic_now_ms() + timeout_ms;
	int taken = 0;

	while (!taken) {
		int fired = nic_wait_eventfd(rdma->nic, eq->eventfd, deadline);
		int err;

		if (fired <= 0)
			return fired;
		taken = rdma_eq_take(rdma, eq);
		err = taken < 0 ? taken : rdma_eq_unmask(rdma, eq);
		if (err)
			return err;
	}
	return taken;
}

/* ---- the admin queue (3) ---- */

/* Takes the completion of the oldest command. Returns 1, 0 when there is none, or -EPROTO. */
static int rdma_admin_reap(struct rdma *rdma)
{
	struct rdma_cq *cq = &rdma->admin_cq;
	const union rdma_cqe *cqe =
	        ram_at(&rdma->nic->ram,
	               cq->ring.base + CQE_SIZE * (cq->cons & ((1u << RDMA_ADMIN_LOG2) - 1)));
	uint32_t color = !(cq->cons >> RDMA_ADMIN_LOG2 & 1);
	uint32_t first, word;

	if ((__atomic_load_n(&cqe->raw[CQE_SIZE - 1], __ATOMIC_ACQUIRE) & CQE_COLOR) != color)
		return 0;
	word = be32_get(cqe->any.qid_type_flags);
	first = rdma->aq_first[rdma->aq_tail & ((1u << RDMA_AQ_LOG2) - 1)];
	if (rdma->aq_tail == rdma->aq_head || CQE_TYPE(word) != CQE_ADMIN || CQE_QID(word) != 0 ||
	    be16_get(cqe->admin.index) != first)
		return nic_complain(rdma->nic, "admin completion %#x of stride %u, expected %u",
		                    word, be16_get(cqe->admin.index), first);
	cq->cons++;
	rdma->aq_tail++;
	if (word & CQE_ERROR && !rdma->aq_failed)
		rdma->aq_failed = (int)be32_get(cqe->any.status_length);
	return 1;
}

int rdma_admin_wait(struct rdma *rdma, uint32_t left)
{
	int64_t deadline = nic_now_ms() + rdma->nic->options.timeout_ms;
	unsigned eq = rdma->eq_count > 2 ? 2 : 0;
	int err = 0;

	while (!err) {
		while ((err = rdma_admin_reap(rdma)) > 0)
			;
		if (!err)
			err = rdma_cq_consume(&rdma->admin_cq);
		if (err || rdma->aq_head - rdma->aq_tail <= left)
			break;
		if (nic_now_ms() >= deadline)
			return -ETIMEDOUT;
		err = rdma_cq_arm(&rdma->admin_cq, false);
		if (!err)
			err = rdma_events_wait(rdma, eq, (int)(deadline - nic_now_ms()));
		err = err < 0 ? err : 0;
	}
	return err;
}

static void rdma_admin_put(struct rdma *rdma, const union rdma_admin_cmd *cmd, unsigned size)
{
	uint8_t *ring = ram_at(&rdma->nic->ram, rdma->aq_ring);
	uint32_t mask = (1u << RDMA_AQ_LOG2) - 1;

	rdma->aq_first[rdma->aq_head++ & mask] = rdma->aq_prod;
	for (unsigned done = 0; done < size; done += AQ_STRIDE) {
		unsigned part = size - done < AQ_STRIDE ? size - done : AQ_STRIDE;

		memcpy(ring + AQ_STRIDE * rdma->aq_prod, cmd->raw + done, part);
		rdma->aq_prod = (rdma->aq_prod + 1) & mask;
	}
}

int rdma_admin(struct rdma *rdma, enum rdma_admin_op op, union rdma_admin_cmd *cmd, unsigned len)
{
	/* Each takes two strides at most, and one stays free. */
	uint32_t room = (1u << RDMA_AQ_LOG2) / 2 - 2;
	int err = 0;

	cmd->header.op = (uint8_t)op;
	cmd->header.reserved = 0;
	cmd->header.len = le16_make((uint16_t)len);
	if (rdma->aq_head - rdma->aq_tail >= room)
		err = rdma_admin_wait(rdma, room / 2);
	if (err)
		return err;
	rdma_admin_put(rdma, cmd, AQ_HEADER + len);
	err = rdma_doorbell(rdma, 0, rdma->id.slot.aq, 0, 0, rdma->aq_prod);
	if (err || rdma->aq_deferred)
		return err;
	rdma->aq_failed = 0;
	err = rdma_admin_wait(rdma, 0);
	return err ? err : rdma->aq_failed;
}

void rdma_admin_defer(struct rdma *rdma)
{
	rdma->aq_deferred = true;
	rdma->aq_failed = 0;
}

int rdma_admin_sync(struct rdma *rdma)
{
	int err = rdma_admin_wait(rdma, 0);

	rdma->aq_deferred = false;
	return err ? err : rdma->aq_failed;
}

uint64_t rdma_take_table(struct rdma *rdma, uint32_t count)
{
	uint32_t size = count * 8;
	uint64_t addr;

	if (size > RDMA_TABLE_BYTES)
		return ram_take(&rdma->nic->ram, size);
	/* Commands that read what stands there have to be over. */
	if (size > RDMA_TABLE_BYTES - rdma->table_used) {
		if (rdma_admin_wait(rdma, 0))
			return 0;
		rdma->table_used = 0;
	}
	addr = rdma->table + rdma->table_used;
	rdma->table_used += size;
	return addr;
}
