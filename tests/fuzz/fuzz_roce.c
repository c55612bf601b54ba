// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: RoCEv2 packets from anybody, with a good ICRC or a bad one, for queue pairs of all
 * types that send and receive meanwhile, change their state and lose their memory. Nothing outside
 * the registered region is written, and nothing completes that was not posted.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fabric/fabric.h"
#include "net/roce_headers.h"
#include "rdma/rdma.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

enum {
	QPS = 3, /* RC, UC, UD */
	GUARD = 4096,
	REGION = 32768,
	STEPS_MAX = 200,
	FRAME = 2048,
	KEY = 0x107,
	PD = 1,
	PSN = 0xfffff0,
};

struct fuzz_qp {
	struct rdma_qp *qp;
	struct rdma_wr wr[64];
	uint32_t posted, fetched, completed;
	uint32_t receives, fetched_receives, completed_receives;
};

static struct fuzz {
	struct loop *loop;
	struct net_wire *wire;
	struct net_port guest, host;
	struct rdma_fabric *fabric;
	struct rdma_dev *dev;
	struct fuzz_qp qp[QPS];
	uint8_t memory[GUARD + REGION + GUARD];
	const uint8_t *data;
	size_t size;
} fuzz;

/* ---- the input ---- */

static uint32_t take(unsigned bytes)
{
	uint32_t value = 0;

	while (bytes-- > 0 && fuzz.size > 0) {
		value = value << 8 | *fuzz.data++;
		fuzz.size--;
	}
	return value;
}

/* ---- the owner of the device; DMA addresses are offsets ---- */

static int mem_map(void *owner, uint64_t addr, size_t size, enum rdma_mem_access access,
                   struct iovec *iov, unsigned max)
{
	(void)owner, (void)access;
	if (max == 0)
		return -E2BIG;
	must(addr <= sizeof(fuzz.memory) && size <= sizeof(fuzz.memory) - addr);
	iov->iov_base = fuzz.memory + addr;
	iov->iov_len = size;
	return 1;
}

static int mem_read(void *owner, uint64_t addr, void *dst, size_t size)
{
	(void)owner, (void)addr, (void)dst, (void)size;
	return -EFAULT;
}

static int mem_write(void *owner, uint64_t addr, const void *src, size_t size)
{
	(void)owner, (void)addr, (void)src, (void)size;
	return -EFAULT;
}

static bool owns_mac(void *owner, const uint8_t mac[6])
{
	(void)owner;
	return mac[0] == 2 && mac[5] == 1;
}

static int fetch_send(void *owner, struct rdma_wr *wr)
{
	struct fuzz_qp *qp = owner;

	if (qp->fetched == qp->posted)
		return 0;
	*wr = qp->wr[qp->fetched++ % ARRAY_SIZE(qp->wr)];
	return 1;
}

static int fetch_recv(void *owner, struct rdma_recv *recv)
{
	struct fuzz_qp *qp = owner;

	if (qp->fetched_receives == qp->receives)
		return 0;
	qp->fetched_receives++;
	*recv = (struct rdma_recv){.length = 3000, .num_sge = 1};
	recv->sge[0] = (struct rdma_sge){.va = 0, .length = 3000, .lkey = KEY};
	return 1;
}

static void complete_send(void *owner, const struct rdma_wc *wc)
{
	struct fuzz_qp *qp = owner;

	(void)wc;
	must(++qp->completed <= qp->fetched);
}

static void complete_recv(void *owner, const struct rdma_wc *wc)
{
	struct fuzz_qp *qp = owner;

	must(wc->length <= 3000);
	must(++qp->completed_receives <= qp->fetched_receives);
}

static void flush(void *owner)
{
	struct fuzz_qp *qp = owner;

	qp->completed = qp->fetched = qp->posted;
	qp->completed_receives = qp->fetched_receives = qp->receives;
}

static void event(void *owner, enum rdma_event number)
{
	(void)owner, (void)number;
}

static const struct rdma_owner_ops ops = {
        .mem_map = mem_map,
        .mem_read = mem_read,
        .mem_write = mem_write,
        .owns_mac = owns_mac,
        .fetch_send = fetch_send,
        .fetch_recv = fetch_recv,
        .complete_send = complete_send,
        .complete_recv = complete_recv,
        .flush = flush,
        .event = event,
};

/* ---- set-up ---- */

static int swallow(struct net_port *port, const struct net_frame *frame)
{
	struct roce_packet packet;

	/* what we send is well-formed, whatever came in */
	must(port != &fuzz.host ||
	     roce_parse(frame->iov[0].iov_base, frame->size, &packet) == ROCE_OK);
	return 0;
}

static const struct net_port_ops port_ops = {.deliver = swallow};

/* Headers from us to the peer, or from the peer to us. */
static size_t headers(bool from_peer, uint8_t out[RDMA_TEMPLATE_MAX])
{
	static const uint8_t base[] = {2,    0, 0,  0, 0, 2, 2,    0, 0,    0,    0, 1, 8,  0,
	                               0x45, 2, 0,  0, 0, 0, 0x40, 0, 64,   17,   0, 0, 10, 0,
	                               0,    1, 10, 0, 0, 2, 0xc0, 0, 0x12, 0xb7, 0, 0, 0,  0};

	memcpy(out, base, sizeof(base));
	if (from_peer) {
		out[5] = 1, out[11] = 2;
		out[29] = 2, out[33] = 1;
	}
	return sizeof(base);
}

static void qp_up(struct fuzz_qp *qp)
{
	struct rdma_qp_attr attr = {.access = 7,
	                            .mtu_shift = 8,
	                            .timeout = 1,
	                            .retry_count = 3,
	                            .rnr_retry = 1,
	                            .rnr_timer = 1,
	                            .qkey = 1,
	                            .dest_qpn = 9,
	                            .sq_psn = PSN,
	                            .rq_psn = PSN,
	                            .max_rd_atomic = 2,
	                            .max_dest_rd_atomic = 2};
	uint8_t header[RDMA_TEMPLATE_MAX];
	static const enum rdma_qp_state states[] = {RDMA_QPS_RESET, RDMA_QPS_INIT, RDMA_QPS_RTR,
	                                            RDMA_QPS_RTS};

	must(rdma_av_parse(header, headers(false, header), &attr.av) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		attr.state = states[i];
		rdma_qp_modify(qp->qp, i == 1 ? 0x1fffff & ~RDMA_ATTR_CUR_STATE : RDMA_ATTR_STATE,
		               &attr);
	}
}

static void region_up(void)
{
	const struct rdma_mr_config mr = {.key = KEY,
	                                  .pd = PD,
	                                  .length = REGION,
	                                  .dma_addr = GUARD,
	                                  .page_count = 1,
	                                  .flags = 0xf};

	rdma_mr_create(fuzz.dev, &mr);
}

static void set_up(void)
{
	const struct fabric_place place = {.loop = fuzz.loop, .wire = fuzz.wire};
	struct rdma_dev_config config = {.name = "fuzz",
	                                 .loop = fuzz.loop,
	                                 .ops = &ops,
	                                 .limits = {.qps = 8, .mrs = 8, .ahs = 8, .pages = 8},
	                                 .datagram_mtu = 1024};
	uint8_t header[RDMA_TEMPLATE_MAX];
	char error[160];

	must(fabric_create(&place, "roce", &fuzz.fabric, error, sizeof(error)) == 0);
	config.fabric = fuzz.fabric;
	must(rdma_dev_create(&config, &fuzz.dev) == 0);
	memset(fuzz.memory, 0xee, sizeof(fuzz.memory));
	region_up();
	must(rdma_ah_create(fuzz.dev, 0, PD, header, headers(false, header)) == 0);
	for (unsigned i = 0; i < QPS; i++) {
		struct rdma_qp_config qp = {
		        .qpn = 2 + i, .type = (enum rdma_qp_type)i, .pd = PD, .owner = &fuzz.qp[i]};

		fuzz.qp[i] = (struct fuzz_qp){.qp = NULL};
		must(rdma_qp_create(fuzz.dev, &qp, &fuzz.qp[i].qp) == 0);
		qp_up(&fuzz.qp[i]);
	}
}

static void tear_down(void)
{
	rdma_dev_destroy(fuzz.dev);
	fabric_destroy(fuzz.fabric);
	for (size_t i = 0; i < GUARD; i++)
		must(fuzz.memory[i] == 0xee && fuzz.memory[GUARD + REGION + i] == 0xee);
}

/* ---- steps ---- */

static void inject(uint8_t *frame, size_t size)
{
	struct iovec iov = {frame, size};
	struct net_frame net = {.iov = &iov, .iov_count = 1, .size = size};

	net_wire_send(&fuzz.host, &net);
}

/* A packet whose fields are likely to be looked at, with a payload of zeros. */
static void step_packet(void)
{
	uint8_t frame[FRAME];
	size_t link = 14, bth = headers(true, frame);
	struct roce_fields fields = {.opcode = (uint8_t)take(1)};
	uint8_t flags = (uint8_t)take(1);
	size_t size = flags & 1 ? 256 : take(1);

	if (!roce_op_flags(fields.opcode))
		return;
	fields.qpn = 2 + (uint32_t)flags / 2 % QPS;
	fields.ack_request = flags & 0x80;
	fields.psn = roce_psn_add(PSN, take(1) - 8);
	fields.va = take(2);
	fields.rkey = flags & 0x40 ? take(4) : KEY;
	fields.length = flags & 0x20 ? take(4) : take(2);
	fields.syndrome = (uint8_t)take(1);
	fields.qkey = 1;
	fields.inv_key = KEY;
	if (flags & 0x10)
		frame[15] = 3; /* congestion */
	if (!(roce_op_flags(fields.opcode) & ROCE_HAS_PAYLOAD))
		size = 0;
	size_t at = bth + roce_put_headers(&fields, size, frame + bth);

	memset(frame + at, 0, size);
	inject(frame, roce_seal(frame, link, at + size, 0));
}

/* Any bytes behind good headers of the network, sealed or not. */
static void step_bytes(void)
{
	uint8_t frame[FRAME];
	size_t at = headers(true, frame), size = take(1);
	bool seal = take(1) & 1;

	for (size_t i = 0; i < size; i++)
		frame[at + i] = (uint8_t)take(1);
	inject(frame, seal ? roce_seal(frame, 14, at + size, 0) : at + size);
}

static void step_send(void)
{
	struct fuzz_qp *qp = &fuzz.qp[take(1) % QPS];
	struct rdma_wr *wr = &qp->wr[qp->posted % ARRAY_SIZE(qp->wr)];

	if (qp->posted - qp->fetched == ARRAY_SIZE(qp->wr) || rdma_qp_state(qp->qp) != RDMA_QPS_RTS)
		return;
	*wr = (struct rdma_wr){.opcode = (uint8_t)(take(1) % RDMA_REG_MR), .num_sge = 1};
	wr->length = take(2) % REGION;
	wr->sge[0] = (struct rdma_sge){.va = 0, .length = wr->length, .lkey = KEY};
	if (qp == &fuzz.qp[RDMA_QP_UD]) {
		wr->ud.ah = 0;
		wr->ud.qpn = 9;
	}
	qp->posted++;
	rdma_qp_kick(qp->qp);
}

static void step_receive(void)
{
	struct fuzz_qp *qp = &fuzz.qp[take(1) % QPS];

	if (rdma_qp_state(qp->qp) == RDMA_QPS_RESET || rdma_qp_state(qp->qp) == RDMA_QPS_ERR)
		return;
	qp->receives++;
	rdma_qp_kick_recv(qp->qp);
}

static void step_state(void)
{
	uint32_t what = take(1);
	struct fuzz_qp *qp = &fuzz.qp[what % QPS];
	struct rdma_qp_attr attr = {.state = RDMA_QPS_ERR,
	                            .mtu_shift = (uint8_t)(8 + what / 8 % 5)};

	if (what & 0x80) {
		rdma_qp_modify(qp->qp, RDMA_ATTR_MTU, &attr);
	} else if (what & 0x40) {
		rdma_mr_destroy(fuzz.dev, KEY);
		region_up();
	} else {
		if (what & 0x20)
			rdma_qp_modify(qp->qp, RDMA_ATTR_STATE, &attr);
		flush(qp);
		qp_up(qp);
	}
}

static void step_turns(void)
{
	uint32_t turns = 1 + take(1) % 8;

	while (turns-- > 0)
		loop_turn(fuzz.loop, 0);
}

static void (*const steps[])(void) = {step_packet, step_packet,  step_bytes, step_send,
                                      step_turns,  step_receive, step_state, step_turns};

static void make_world(void)
{
	must(loop_create(&fuzz.loop) == 0 && net_wire_create(&fuzz.wire) == 0);
	fuzz.guest = (struct net_port){.name = "guest", .ops = &port_ops};
	fuzz.host = (struct net_port){.name = "host", .ops = &port_ops};
	must(net_wire_attach(fuzz.wire, &fuzz.guest) == 0);
	must(net_wire_attach(fuzz.wire, &fuzz.host) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!fuzz.loop)
		make_world();
	fuzz.data = data;
	fuzz.size = size;
	set_up();
	for (unsigned i = 0; i < STEPS_MAX && fuzz.size > 0; i++)
		steps[take(1) % ARRAY_SIZE(steps)]();
	for (unsigned i = 0; i < 4; i++)
		loop_turn(fuzz.loop, 0);
	tear_down();
	return 0;
}
