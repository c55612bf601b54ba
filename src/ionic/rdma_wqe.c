/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work requests: from the bytes of the guest's queues to what the engine executes
 * (spec ionic-rdma 6.3, 6.5). Pure functions over a private copy.
 */
#include "rdma_lif.h"

#include <errno.h>

COUNTER(ionic_wqe_bad_op, "send requests with an unknown opcode");
COUNTER(ionic_wqe_bad_size, "work requests with more SGEs or inline data than their slot holds");
COUNTER(ionic_wqe_bad_format, "work requests with an unknown format of SGEs");

/* The opcodes of identity version 1 are the engine's. */
static_assert(IONIC_RDMA_WQE_SEND == (int)RDMA_SEND, "spec 6.4");
static_assert(IONIC_RDMA_WQE_READ == (int)RDMA_READ, "spec 6.4");
static_assert(IONIC_RDMA_WQE_FETCH_ADD == (int)RDMA_FETCH_ADD, "spec 6.4");
static_assert(IONIC_RDMA_WQE_BIND_MW == (int)RDMA_BIND_MW, "spec 6.4");
static_assert(IONIC_RDMA_WQE_OPS == (int)RDMA_OPCODES, "spec 6.4");
static_assert(IONIC_RDMA_WQE_INLINE == (int)RDMA_WR_INLINE, "spec 6.3");
static_assert(IONIC_RDMA_WQE_MAX - IONIC_RDMA_WQE_PAYLOAD == RDMA_INLINE_MAX, "spec 1.2");

static int refuse(struct counter *counter)
{
	counter_inc(counter);
	return -EINVAL;
}

/* ---- sizes ---- */

/* Where the SGEs start, or -EINVAL. */
static int sge_offset(uint16_t flags)
{
	switch (flags >> IONIC_RDMA_WQE_FORMAT_SHIFT) {
	case IONIC_RDMA_SGE_PLAIN:
		return IONIC_RDMA_WQE_PAYLOAD;
	case IONIC_RDMA_SGE_SPEC32:
	case IONIC_RDMA_SGE_SPEC16:
		return IONIC_RDMA_WQE_SPEC_SGES;
	default:
		return refuse(&ionic_wqe_bad_format);
	}
}

static int sge_list_size(uint16_t flags, unsigned count, size_t stride)
{
	int offset = sge_offset(flags);

	if (offset < 0)
		return offset;
	if (count == 0)
		return IONIC_RDMA_WQE_PAYLOAD;
	if (count > RDMA_SGE_MAX ||
	    count * sizeof(struct ionic_rdma_sge) > stride - (unsigned)offset)
		return refuse(&ionic_wqe_bad_size);
	return offset + (int)(count * sizeof(struct ionic_rdma_sge));
}

int ionic_wqe_send_size(const union ionic_rdma_wqe *wqe, size_t stride)
{
	uint16_t flags = be16_get(wqe->any.flags);
	uint32_t length = be32_get(wqe->any.length);

	if (wqe->any.op >= IONIC_RDMA_WQE_OPS)
		return refuse(&ionic_wqe_bad_op);
	if (wqe->any.op >= IONIC_RDMA_WQE_CMP_SWAP)
		return IONIC_RDMA_WQE_SIZE;
	if (!(flags & IONIC_RDMA_WQE_INLINE))
		return sge_list_size(flags, wqe->any.num_sge_key, stride);
	if (length > stride - IONIC_RDMA_WQE_PAYLOAD)
		return refuse(&ionic_wqe_bad_size);
	return IONIC_RDMA_WQE_PAYLOAD + (int)length;
}

int ionic_wqe_recv_size(const union ionic_rdma_wqe *wqe, size_t stride)
{
	return sge_list_size(be16_get(wqe->recv.flags), wqe->recv.num_sge, stride);
}

/* ---- translation ---- */

/* An empty SGE says 2^31 bytes: no message holds that many beside others, and alone it says so in
 * its length (6.3). */
static struct rdma_sge sge_get(const struct ionic_rdma_sge *raw, uint32_t total)
{
	uint32_t length = be32_get(raw->len);

	if (length == IONIC_RDMA_SGE_EMPTY && total < IONIC_RDMA_SGE_EMPTY)
		length = 0;
	return (struct rdma_sge){
	        .va = be64_get(raw->va), .length = length, .lkey = be32_get(raw->lkey)};
}

static void sge_list(const union ionic_rdma_wqe *wqe, uint16_t flags, unsigned count,
                     uint32_t total, struct rdma_sge *sge)
{
	unsigned offset = flags >> IONIC_RDMA_WQE_FORMAT_SHIFT == IONIC_RDMA_SGE_PLAIN
	                          ? IONIC_RDMA_WQE_PAYLOAD
	                          : IONIC_RDMA_WQE_SPEC_SGES;
	struct ionic_rdma_sge raw;

	assert(count <= RDMA_SGE_MAX);
	for (unsigned i = 0; i < count; i++, offset += sizeof(raw)) {
		memcpy(&raw, wqe->bytes + offset, sizeof(raw));
		sge[i] = sge_get(&raw, total);
	}
}

static void send_payload(const union ionic_rdma_wqe *wqe, struct rdma_wr *wr)
{
	uint16_t flags = be16_get(wqe->any.flags);

	wr->length = be32_get(wqe->any.length);
	if (flags & IONIC_RDMA_WQE_INLINE) {
		assert(wr->length <= sizeof(wr->inline_data));
		wr->num_sge = 0;
		memcpy(wr->inline_data, wqe->bytes + IONIC_RDMA_WQE_PAYLOAD, wr->length);
		return;
	}
	wr->num_sge = wqe->any.num_sge_key;
	sge_list(wqe, flags, wr->num_sge, wr->length, wr->sge);
}

static void wqe_remote(const union ionic_rdma_wqe *wqe, struct rdma_wr *wr)
{
	wr->remote.va = be64_get(wqe->rdma.va);
	wr->remote.rkey = be32_get(wqe->rdma.rkey);
}

static void wqe_send(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr)
{
	if (datagram) {
		wr->ud.ah = be32_get(wqe->ud.ah_id) & IONIC_RDMA_ID_MASK;
		wr->ud.qpn = be32_get(wqe->ud.dest_qpn) & IONIC_RDMA_ID_MASK;
		wr->ud.qkey = be32_get(wqe->ud.dest_qkey);
	}
	send_payload(wqe, wr);
}

static void wqe_rdma(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr)
{
	(void)datagram;
	wqe_remote(wqe, wr);
	send_payload(wqe, wr);
}

/* Those of the kernel have lost their operands in the driver (6.3); they are executed as they are.
 */
static void wqe_atomic(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr)
{
	(void)datagram;
	wqe_remote(wqe, wr);
	wr->remote.swap_add = be64_get(wqe->atomic.swap_add);
	wr->remote.compare = be64_get(wqe->atomic.compare);
	wr->length = sizeof(uint64_t);
	wr->num_sge = 1;
	wr->sge[0] = sge_get(&wqe->atomic.sge, wr->length);
}

static void wqe_reg_mr(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr)
{
	(void)datagram;
	wr->num_sge = 0;
	wr->reg.va = be64_get(wqe->reg_mr.va);
	wr->reg.length = be64_get(wqe->reg_mr.length);
	wr->reg.first = be64_get(wqe->reg_mr.offset);
	wr->reg.dma_addr = be64_get(wqe->reg_mr.dma_addr);
	wr->reg.page_count = be32_get(wqe->reg_mr.map_count);
	wr->reg.access = be16_get(wqe->reg_mr.flags);
	wr->reg.page_shift = wqe->reg_mr.page_size_log2;
	/* more than drivers can allocate: the engine refuses none at all */
	if (wr->reg.page_count > IONIC_RDMA_MR_PAGES)
		wr->reg.page_count = 0;
}

static void wqe_local_inv(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr)
{
	(void)wqe, (void)datagram;
	wr->num_sge = 0;
}

static void wqe_bind_mw(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr)
{
	(void)datagram;
	wr->num_sge = 0;
	wr->key_byte = wqe->any.num_sge_key;
	wr->bind.va = be64_get(wqe->bind_mw.va);
	wr->bind.length = be64_get(wqe->bind_mw.length);
	wr->bind.lkey = be32_get(wqe->bind_mw.lkey);
	wr->bind.access = be16_get(wqe->bind_mw.flags);
}

static const struct {
	void (*decode)(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr);
	bool immediate; /* the word holds four bytes of the application, not a key */
} send_ops[IONIC_RDMA_WQE_OPS] = {
        [IONIC_RDMA_WQE_SEND] = {wqe_send, true},
        [IONIC_RDMA_WQE_SEND_INV] = {wqe_send, false},
        [IONIC_RDMA_WQE_SEND_IMM] = {wqe_send, true},
        [IONIC_RDMA_WQE_READ] = {wqe_rdma, true},
        [IONIC_RDMA_WQE_WRITE] = {wqe_rdma, true},
        [IONIC_RDMA_WQE_WRITE_IMM] = {wqe_rdma, true},
        [IONIC_RDMA_WQE_CMP_SWAP] = {wqe_atomic, true},
        [IONIC_RDMA_WQE_FETCH_ADD] = {wqe_atomic, true},
        [IONIC_RDMA_WQE_REG_MR] = {wqe_reg_mr, false},
        [IONIC_RDMA_WQE_LOCAL_INV] = {wqe_local_inv, false},
        [IONIC_RDMA_WQE_BIND_MW] = {wqe_bind_mw, false},
};

void ionic_wqe_send(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr)
{
	unsigned op = wqe->any.op;
	be32 key;

	assert(op < ARRAY_SIZE(send_ops));
	wr->opcode = (uint8_t)op;
	wr->flags = be16_get(wqe->any.flags) & IONIC_RDMA_WQE_FLAGS;
	memcpy(&wr->imm, wqe->any.imm_data_key, sizeof(wr->imm));
	if (!send_ops[op].immediate) {
		memcpy(&key, wqe->any.imm_data_key, sizeof(key));
		wr->key = be32_get(key);
	}
	send_ops[op].decode(wqe, datagram, wr);
}

void ionic_wqe_recv(const union ionic_rdma_wqe *wqe, struct rdma_recv *recv)
{
	recv->length = be32_get(wqe->recv.length);
	recv->num_sge = wqe->recv.num_sge;
	sge_list(wqe, be16_get(wqe->recv.flags), recv->num_sge, recv->length, recv->sge);
}
