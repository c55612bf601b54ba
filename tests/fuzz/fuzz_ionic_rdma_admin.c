// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: the RDMA admin queue, page tables, and the commands that make its queues, with guest
 * memory changing underneath.
 *
 * The input makes objects by commands that are right but for a few bytes, or by any bytes at all,
 * rings, and resets; its last quarter says what happens to memory before each access.
 */
#include "rdma_fuzz.h"

enum op {
	OP_COMMAND_ANY, /* u8 opcode, u8 length, so many bytes of body */
	OP_CREATE_CQ,   /* u8 id, u8 flags, changes */
	OP_CREATE_QP,   /* u8 id, u8 flags, changes */
	OP_CREATE_MR,
	OP_CREATE_AH,
	OP_MODIFY_QP, /* u8 id, u32 mask, changes */
	OP_QUERY_QP,
	OP_DESTROY, /* u8 which, u8 id */
	OP_STATS,
	OP_ETHERNET_COMMAND,
	OP_DOORBELL,
	OP_MEMORY,
	OP_RUN,
	OP_CREDITS,
	OP_COUNT,
};

#define OPS_MAX 200

static uint64_t table; /* a page of page addresses */
static uint64_t memory;

static void post(uint8_t op, union ionic_rdma_admin *wqe, uint16_t len, struct input *input)
{
	mutate(input, wqe->bytes + 4, len);
	rig_admin_post(&rig, op, wqe, len);
	rig_doorbell(&rig, 0, IONIC_DB_RDMA_AQ, 0, 0, rig.aq_prod);
}

static struct ionic_rdma_pages pages(bool many)
{
	return (struct ionic_rdma_pages){.map_count = le32_make(many ? 8 : 1),
	                                 .dma_addr = le64_make(many ? table : memory)};
}

static void op_any(struct input *input)
{
	uint8_t op = (uint8_t)number(input, 1);
	uint16_t len = (uint16_t)number(input, 1);
	union ionic_rdma_admin wqe = {{0}};

	overwrite(input, wqe.bytes + 4, 124);
	rig_admin_post(&rig, op % 24, &wqe, len);
	rig_doorbell(&rig, 0, IONIC_DB_RDMA_AQ, 0, 0, rig.aq_prod);
}

static void op_create_cq(struct input *input)
{
	uint32_t id = (uint32_t)number(input, 1) % 16;
	unsigned flags = (unsigned)number(input, 1);
	union ionic_rdma_admin wqe = {.create_cq = {.eq_id = le32_make(2 + (id >> 3 & 1)),
	                                            .depth_log2 = (uint8_t)(4 + flags % 4),
	                                            .stride_log2 = 5,
	                                            .page_size_log2 = 12,
	                                            .id_ver = le32_make(id),
	                                            .pages = pages(flags & 4),
	                                            .dbid_flags = le16_make(flags >> 3 & 1)}};

	post(IONIC_RDMA_CREATE_CQ, &wqe, 34, input);
}

static void op_create_qp(struct input *input)
{
	static const uint8_t types[] = {0, 0, 1, 3};
	uint32_t id = (uint32_t)number(input, 1) % 16;
	unsigned flags = (unsigned)number(input, 1);
	struct ionic_rdma_queue_desc queue = {.cq_id = le32_make(flags & 15),
	                                      .depth_log2 = 4,
	                                      .stride_log2 = (uint8_t)(6 + (flags >> 4 & 3)),
	                                      .page_size_log2 = 12,
	                                      .pages = pages(flags & 64)};
	union ionic_rdma_admin wqe = {.create_qp = {.pd_id = le32_make(1),
	                                            .sq = queue,
	                                            .rq = queue,
	                                            .id_ver = le32_make(id),
	                                            .type_state = types[id & 3]}};

	post(IONIC_RDMA_CREATE_QP, &wqe, 64, input);
}

static void op_create_mr(struct input *input)
{
	uint32_t id = (uint32_t)number(input, 1) % 16;
	unsigned flags = (unsigned)number(input, 1);
	static const uint16_t kinds[] = {0x1f, 0xa000, 0x6000, 0xe000};
	union ionic_rdma_admin wqe = {.create_mr = {.va = le64_make(memory + (flags & 0xf0)),
	                                            .length = le64_make(4096),
	                                            .pd_id = le32_make(1),
	                                            .id_ver = le32_make(id << 8 | 1),
	                                            .pages = pages(flags & 4),
	                                            .flags = le16_make(kinds[flags & 3]),
	                                            .page_size_log2 = 12}};

	if (flags & 8)
		wqe.create_mr.pages.map_count = le32_make(0);
	post(IONIC_RDMA_CREATE_MR, &wqe, 45, input);
}

static void op_create_ah(struct input *input)
{
	union ionic_rdma_admin wqe = {
	        .create_ah = {.dma_addr = le64_make(memory),
	                      .length = le32_make(42),
	                      .pd_id = le32_make(1),
	                      .id_ver = le32_make((uint32_t)number(input, 1) % 16)}};

	post(IONIC_RDMA_CREATE_AH, &wqe, 24, input);
}

static void op_modify_qp(struct input *input)
{
	uint32_t id = (uint32_t)number(input, 1);
	static const uint32_t masks[] = {0x39, 0x129181, 0x12e01, 1, 0x51, 0x10001, 5, 0};
	union ionic_rdma_admin wqe = {.modify_qp = {.attr_mask = be32_make(masks[id >> 4 & 7]),
	                                            .access_flags = be16_make(7),
	                                            .qkey_dest_qpn = le32_make(id & 15),
	                                            .pmtu = 10,
	                                            .retry = 0x77,
	                                            .ah_id_len = le32_make(42u << 24),
	                                            .type_state = (uint8_t)(number(input, 1) % 8),
	                                            .dma_addr = le64_make(memory),
	                                            .id_ver = le32_make(id & 15)}};

	post(IONIC_RDMA_MODIFY_QP, &wqe, 60, input);
}

static void op_query_qp(struct input *input)
{
	union ionic_rdma_admin wqe = {
	        .query_qp = {.hdr_dma_addr = le64_make(memory + 256),
	                     .sq_dma_addr = le64_make(memory + 512),
	                     .rq_dma_addr = le64_make(memory + 768),
	                     .id_ver = le32_make((uint32_t)number(input, 1) % 16)}};

	post(IONIC_RDMA_QUERY_QP, &wqe, 34, input);
}

static void op_destroy(struct input *input)
{
	static const uint8_t ops[] = {IONIC_RDMA_DESTROY_CQ, IONIC_RDMA_DESTROY_QP,
	                              IONIC_RDMA_DESTROY_MR, IONIC_RDMA_DESTROY_AH};
	uint8_t op = ops[number(input, 1) % 4];
	uint32_t id = (uint32_t)number(input, 1) % 16;
	union ionic_rdma_admin wqe = {
	        .destroy = {.id = le32_make(op == IONIC_RDMA_DESTROY_MR ? id << 8 : id)}};

	post(op, &wqe, 4, input);
}

static void op_stats(struct input *input)
{
	static const uint8_t ops[] = {IONIC_RDMA_STATS_HDRS, IONIC_RDMA_STATS_VALS,
	                              IONIC_RDMA_QP_STATS_HDRS, IONIC_RDMA_QP_STATS_VALS};
	uint8_t op = ops[number(input, 1) % 4];
	union ionic_rdma_admin wqe = {
	        .stats = {.dma_addr = le64_make(memory), .length = le32_make(4096)}};

	post(op, &wqe, 17, input);
}

static void op_command(struct input *input)
{
	uint8_t opcode = (uint8_t)(50 + number(input, 1) % 4);
	union ionic_cmd cmd = {.rdma_queue = {.opcode = opcode,
	                                      .depth_log2 = 6,
	                                      .stride_log2 = opcode == 51 ? 2 : opcode - 47,
	                                      .dma_addr = le64_make(FAKE_RAM_BASE)}};

	mutate(input, cmd.bytes, 24);
	fake_admin_post(&rig.guest, &cmd);
	fake_doorbell(&rig.guest, IONIC_DB_ADMINQ, 0, rig.guest.adminq.head);
	fake_run(&rig.guest);
}

static void op_run(struct input *input)
{
	(void)input;
	fake_run(&rig.guest);
	check(rig.guest.dev->rdma);
}

static void (*const ops[OP_COUNT])(struct input *input) = {
        [OP_COMMAND_ANY] = op_any,
        [OP_CREATE_CQ] = op_create_cq,
        [OP_CREATE_QP] = op_create_qp,
        [OP_CREATE_MR] = op_create_mr,
        [OP_CREATE_AH] = op_create_ah,
        [OP_MODIFY_QP] = op_modify_qp,
        [OP_QUERY_QP] = op_query_qp,
        [OP_DESTROY] = op_destroy,
        [OP_STATS] = op_stats,
        [OP_ETHERNET_COMMAND] = op_command,
        [OP_DOORBELL] = op_doorbell,
        [OP_MEMORY] = op_memory,
        [OP_RUN] = op_run,
        [OP_CREDITS] = op_credits,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {.data = data, .size = size};
	le64 *entry;

	begin(&input);
	memory = make_template(&rig);
	table = fake_alloc(&rig.guest, 4096);
	entry = fake_ptr(&rig.guest, table, 4096);
	for (unsigned i = 0; i < 8; i++)
		entry[i] = le64_make(fake_alloc(&rig.guest, 4096));
	rig.guest.on_access = happen;
	for (unsigned i = 0; i < OPS_MAX && input.size > 0; i++)
		ops[number(&input, 1) % OP_COUNT](&input);
	end();
	return 0;
}
