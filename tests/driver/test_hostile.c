// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest, and a client, that mean harm. Whatever they do, the server lives, answers, and serves
 * the next honest driver; what it refuses moves a counter.
 */
#include "env.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static struct env_options plain = {.tap = true};
static struct env_options offloads = {.tap = true, .server.profile = "generic-100g"};
static struct env_options bare = {.tap = true, .no_nic = true};

#define NOWHERE 0x10000000ull /* no memory there */

/* An honest driver finds a working NIC: over the same connection, after a reset. */
static void honest_again(struct env *env)
{
	nic_ok(env->nic, nic_config_flr(env->nic));
	nic_forget(env->nic);
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
	while (peer_drain(&env->peer))
		;
	env_check_traffic(env);
}

/* ---- commands with nonsense ---- */

/* Q_INIT with one field bent; anything but success or silence is fine. */
static int init_bent(struct env *env, struct nic_queue *queue, void (*bend)(struct cmd *, uint64_t),
                     uint64_t value)
{
	struct cmd cmd;
	int status;

	nic_cmd_queue_init(env->nic, queue, &cmd);
	bend(&cmd, value);
	status = nic_admin(env->nic, &cmd, NULL);
	if (status < 0)
		env_check(env->nic, status, "Q_INIT", __FILE__, __LINE__);
	return status;
}

static void bend_ring_size(struct cmd *cmd, uint64_t value)
{
	cmd->q_init.ring_size = (uint8_t)value;
}

static void bend_index(struct cmd *cmd, uint64_t value)
{
	cmd->q_init.index = le32_make((uint32_t)value);
}

static void bend_type(struct cmd *cmd, uint64_t value)
{
	cmd->q_init.type = (uint8_t)value;
}

static void bend_intr(struct cmd *cmd, uint64_t value)
{
	cmd->q_init.intr_index = le16_make((uint16_t)value);
}

static void bend_lif(struct cmd *cmd, uint64_t value)
{
	cmd->q_init.lif_index = le16_make((uint16_t)value);
}

static void test_bad_queue_init(void **state)
{
	struct env *env = *state;
	struct nic_queue *queue = &env->nic->pair[0].tx;
	static const uint64_t sizes[] = {0, 1, 17, 31, 32, 63, 64, 255};
	static const uint64_t indices[] = {4, 5, 64, 0xffff, 0x7fffffff, 0xffffffff};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_not_equal(init_bent(env, queue, bend_ring_size, sizes[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(indices); i++)
		assert_int_not_equal(init_bent(env, queue, bend_index, indices[i]), 0);
	for (uint64_t type = 4; type < 256; type += 25)
		assert_int_not_equal(init_bent(env, queue, bend_type, type), 0);
	assert_int_not_equal(init_bent(env, queue, bend_intr, 0xffff), 0);
	assert_int_not_equal(init_bent(env, queue, bend_intr, env->nic->id.nintrs), 0);
	assert_int_not_equal(init_bent(env, queue, bend_lif, 1), 0);
	env_check_traffic(env);
}

static void test_bad_queue_control(void **state)
{
	struct env *env = *state;
	struct nic_queue queue = {.type = Q_RX, .index = 77};

	assert_true(nic_queue_control(env->nic, &queue, true) > 0);
	queue.index = 0xffffffff;
	assert_true(nic_queue_control(env->nic, &queue, false) > 0);
	queue = (struct nic_queue){.type = (enum queue_type)9};
	assert_true(nic_queue_control(env->nic, &queue, true) > 0);
	env_check_traffic(env);
}

/* Every opcode, with every byte of the command random, on both paths. */
static void test_random_commands(void **state)
{
	struct env *env = *state;
	uint32_t seed = env_seed();

	for (int i = 0; i < 3000; i++) {
		struct cmd cmd;
		int status;

		frame_fill((uint8_t *)&cmd, sizeof(cmd), env_random(&seed));
		cmd.opcode = (uint8_t)(i / 4);
		if (i & 1) /* addresses that may be guest memory */
			cmd.q_init.ring_base = cmd.q_init.cq_ring_base = le64_make(RAM_BASE);
		if (cmd.opcode == CMD_RESET || cmd.opcode == CMD_LIF_RESET)
			continue;
		if (i & 2)
			status = nic_devcmd(env->nic, &cmd, NULL);
		else
			status = nic_admin(env->nic, &cmd, NULL);
		if (status < 0) /* the AdminQ itself may have been replaced */
			honest_again(env);
	}
	honest_again(env);
}

/* Commands whose time has not come. */
static void test_commands_out_of_order(void **state)
{
	struct env *env = *state;
	struct nic_options options = env_nic_options(env);

	nic_ok(NULL, nic_open(&env->nic, &options));
	nic_ok(env->nic, nic_probe_until(env->nic, 4));
	for (unsigned opcode = 1; opcode < 256; opcode++) {
		struct cmd cmd = {.opcode = (uint8_t)opcode};
		int status = nic_devcmd(env->nic, &cmd, NULL);

		assert_true(status >= 0);
	}
	honest_again(env);
}

/* ---- rings and buffers out of memory ---- */

static void rings_nowhere(struct env *env, uint64_t address)
{
	struct nic *nic = env->nic;
	struct nic_pair *pair = &nic->pair[0];
	struct cmd cmd;

	for (int part = 0; part < 3; part++) {
		for (int type = 0; type < 2; type++) {
			struct nic_queue *queue = type ? &pair->tx : &pair->rx;

			nic_cmd_queue_init(nic, queue, &cmd);
			*(part == 0   ? &cmd.q_init.ring_base
			  : part == 1 ? &cmd.q_init.cq_ring_base
			              : &cmd.q_init.sg_ring_base) = le64_make(address);
			if (nic_admin(nic, &cmd, NULL) < 0)
				fail();
			(void)nic_queue_control(nic, queue, true);
			nic_ok(nic,
			       nic_doorbell(nic, queue->hw_type, DB_VALUE(queue->hw_index, 100)));
		}
		for (int i = 0; i < 50; i++) {
			struct flow flow = env_flow_in(env, 0, 0);
			size_t size = frame_build(env->packet, &flow, 300, 5, FRAME_CSUM_FULL);

			flow.src[5] = (uint8_t)i;
			sys_ok(peer_send(&env->peer, env->packet, size));
		}
		sys_ok(server_stats_wait(env->server, 1));
	}
	honest_again(env);
}

static void test_rings_nowhere(void **state)
{
	struct env *env = *state;
	uint64_t end = RAM_BASE + env->nic->ram.size;
	const uint64_t addresses[] = {0,          NOWHERE,           end - 4096, end - 16,    end,
	                              UINT64_MAX, UINT64_MAX - 4095, 0xfffc0000, RAM_BASE - 8};

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		rings_nowhere(env, addresses[i]);
}

static void post_desc(struct env *env, const struct tx_desc *desc, const struct sg_elem *sg,
                      unsigned count)
{
	struct nic_pair *pair = &env->nic->pair[0];
	struct nic_queue *queue = &pair->tx;
	struct tx_desc *slot = ram_at(&env->nic->ram, queue->desc + 16ull * queue->head);
	struct sg_elem *list = ram_at(&env->nic->ram, queue->sg + 256ull * queue->head);

	*slot = *desc;
	for (unsigned i = 0; i < count && i < 16; i++)
		list[i] = sg[i];
	pair->slots[queue->head] = (struct nic_tx_slot){pair->data_head, true};
	queue->head = nic_queue_next(queue, queue->head);
	nic_ok(env->nic, nic_tx_ring(env->nic, pair));
}

/* Descriptors that point nowhere are completed, count an error, and the queue goes on. */
static void test_tx_buffers_nowhere(void **state)
{
	struct env *env = *state;
	uint64_t end = RAM_BASE + env->nic->ram.size;
	const uint64_t addresses[] = {0, NOWHERE, end - 100, end, 0xfffffffffffffull, 0xfffc0000};
	struct sg_elem sg = {.addr = le64_make(NOWHERE), .len = le16_make(100)};
	unsigned posted = 0;

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct tx_desc desc = {.cmd = le64_make(TX_CMD(TX_CSUM_NONE, 0, 0, addresses[i])),
		                       .len = le16_make(1000)};

		if (addresses[i] == 0xfffc0000)
			continue; /* memory without a descriptor, which the client refuses */
		post_desc(env, &desc, NULL, 0);
		desc.cmd = le64_make(TX_CMD(TX_CSUM_NONE, 0, 1, RAM_BASE));
		desc.len = le16_make(60);
		post_desc(env, &desc, &sg, 1);
		posted += 2;
	}
	nic_ok(env->nic, nic_tx_flush(env->nic, &env->nic->pair[0]));
	env_check_traffic(env);
	env_expect_lif(env, LIF_TX_DMA_ERROR, posted);
	env_expect_lif(env, LIF_TX_UCAST_PACKETS, 1);
}

static void test_rx_buffers_nowhere(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct flow flow = env_flow_in(env, 0, 0);
	size_t size = frame_build(env->packet, &flow, 300, 5, FRAME_CSUM_FULL);
	uint64_t errors = 0;

	for (unsigned i = 0; i < nic->pair_count; i++) {
		struct rx_desc *ring = ram_at(&nic->ram, nic->pair[i].rx.desc);

		for (unsigned k = 0; k < nic->pair[i].rx.entries; k++)
			ring[k].addr = le64_make(NOWHERE);
	}
	for (int i = 0; i < 20; i++)
		sys_ok(peer_send(&env->peer, env->packet, size));
	for (int i = 0; i < 500 && errors < 20; i++) {
		sys_ok(server_stats_wait(env->server, 1));
		errors = nic_lif_stat(nic, LIF_RX_DMA_ERROR);
	}
	assert_int_equal(errors, 20);
	honest_again(env);
}

/* Random bits in every field, many descriptors to a doorbell. */
static void test_random_descriptors(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	uint32_t seed = env_seed();

	for (int round = 0; round < 300; round++) {
		struct nic_pair *pair = &nic->pair[0];
		uint8_t *ring = ram_at(&nic->ram, pair->tx.desc), *sg;
		unsigned count = 1 + env_random(&seed) % 200;

		frame_fill(ring, 16ull * pair->tx.entries, env_random(&seed));
		for (unsigned i = 0; i < pair->tx.entries; i++) {
			struct tx_desc *desc = (void *)(ring + 16 * i);
			uint64_t cmd = le64_get(desc->cmd);

			/* Most of them in memory, so that more of the path is reached. */
			if (env_random(&seed) % 8)
				cmd = (cmd & 0xfff) | (RAM_BASE + (cmd >> 40)) << 12;
			if (round & 1)
				cmd = (cmd & ~0xf0ull) | TX_TSO << 4;
			desc->cmd = le64_make(cmd);
			desc->len = le16_make(le16_get(desc->len) & (round & 2 ? 0x7ff : 0xffff));
		}
		sg = ram_at(&nic->ram, pair->tx.sg);
		frame_fill(sg, 256ull * 64, env_random(&seed));
		nic_ok(nic,
		       nic_doorbell(nic, pair->tx.hw_type,
		                    DB_VALUE(pair->tx.hw_index, (pair->tx.head + count) & 0x3ff)));
		pair->tx.head = (pair->tx.head + count) & 0x3ff;
		/* An answer: the server is not lost in it. */
		nic_ok(nic, nic_rx_mode(nic, RX_MODE_DEFAULT));
	}
	honest_again(env);
}

/* ---- doorbells ---- */

static void test_doorbells_to_nowhere(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	uint32_t seed = env_seed();

	for (int i = 0; i < 20000; i++) {
		le64 value = le64_make((uint64_t)env_random(&seed) << 32 | env_random(&seed));
		uint64_t offset = env_random(&seed) % (nic->bar_size[2] - 8);
		size_t size = (size_t)1 << env_random(&seed) % 4;

		/* Page 0 belongs to the queues that live; leave those alone, half of the time. */
		if (i & 1)
			offset = RAM_PAGE + offset % (nic->bar_size[2] - RAM_PAGE - 8);
		else if (offset % RAM_PAGE < 64 && offset < RAM_PAGE)
			continue;
		nic_ok(nic, vfu_write_posted(nic->vfu, VFU_REGION_BAR2, offset, &value, size));
	}
	/* Queues that do not exist, and indices beyond the ring. */
	for (uint64_t qid = 4; qid < 0x1000000; qid = qid * 3 + 1)
		for (unsigned type = 0; type < 8; type++)
			nic_ok(nic, nic_doorbell(nic, type, DB_VALUE(qid, qid & 0xffff)));
	env_check_traffic(env);
	nic_ok(nic, nic_doorbell(nic, nic->pair[0].tx.hw_type, 0xffff));
	nic_ok(nic, nic_doorbell(nic, nic->pair[0].rx.hw_type, 0xfffe));
	honest_again(env);
}

/* Every register of BAR0, every width, every alignment. */
static void test_random_registers(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	uint32_t seed = env_seed();

	for (int i = 0; i < 30000; i++) {
		uint64_t value = (uint64_t)env_random(&seed) << 32 | env_random(&seed);
		size_t size = 1 + env_random(&seed) % 8;
		uint64_t offset = env_random(&seed) % (nic->bar_size[0] - 8);

		if (i % 3 == 0)
			offset %= 0x4000;
		if (i % 7 == 0)
			nic_ok(nic, nic_reg_read(nic, offset, &value, size));
		else
			nic_ok(nic, nic_reg_write(nic, offset, &value, size));
	}
	honest_again(env);
}

/* ---- memory that changes while it is read ---- */

struct scribbler {
	struct nic *nic;
	uint8_t *memory; /* a mapping of its own, as another CPU of the guest would have */
	atomic_bool stop;
	uint32_t seed;
};

static void *scribble(void *arg)
{
	struct scribbler *scribbler = arg;
	struct nic *nic = scribbler->nic;
	uint32_t seed = scribbler->seed;

	while (!atomic_load(&scribbler->stop)) {
		struct nic_pair *pair = &nic->pair[env_random(&seed) % nic->pair_count];
		uint64_t bases[] = {pair->tx.desc, pair->tx.sg, pair->rx.desc, pair->rx.sg,
		                    pair->tx.data};
		size_t part = env_random(&seed) % ARRAY_SIZE(bases);
		uint8_t *at = scribbler->memory + (bases[part] - nic->ram.base) +
		              env_random(&seed) % 4096;

		__atomic_store_n(at, (uint8_t)env_random(&seed), __ATOMIC_RELAXED);
	}
	return NULL;
}

static void test_memory_changes(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct scribbler scribbler = {.nic = nic, .seed = env_seed()};
	struct flow in = env_flow_in(env, 4, FRAME_PROTO_TCP);
	struct flow out = env_flow_out(env, 4, FRAME_PROTO_TCP);
	pthread_t thread;
	uint32_t seed = scribbler.seed + 1;

	scribbler.memory =
	        mmap(NULL, nic->ram.size, PROT_READ | PROT_WRITE, MAP_SHARED, nic->ram.fd, 0);
	assert_ptr_not_equal(scribbler.memory, MAP_FAILED);
	assert_int_equal(pthread_create(&thread, NULL, scribble, &scribbler), 0);
	for (int i = 0; i < 2000; i++) {
		struct nic_pair *pair = &nic->pair[env_random(&seed) % nic->pair_count];
		struct nic_packet packet = {.frame = env->packet,
		                            .fragment = 500,
		                            .hdr_size = 54,
		                            .mss = i & 1 ? 1000 : 0};
		size_t size;

		packet.size = frame_build(env->packet, &out, 5000, 1, FRAME_CSUM_TSO);
		if (nic_tx_post(nic, pair, &packet) < 0)
			pair->tx.tail = pair->tx.head; /* what is lost is lost */
		pair->data_tail = pair->data_head;
		nic_ok(nic, nic_tx_ring(nic, pair));
		nic_ok(nic, nic_doorbell(nic, pair->rx.hw_type,
		                         DB_VALUE(pair->rx.hw_index, env_random(&seed) & 0x3ff)));
		size = frame_build(env->packet, &in, 1000, 1, FRAME_CSUM_FULL);
		(void)peer_send(&env->peer, env->packet, size);
		if (i % 100 == 0)
			nic_ok(nic, nic_rx_mode(nic, RX_MODE_DEFAULT));
	}
	atomic_store(&scribbler.stop, true);
	pthread_join(thread, NULL);
	munmap(scribbler.memory, nic->ram.size);
	honest_again(env);
}

/* Memory goes away under running queues, as a topology change makes it. */
static void test_unmap_under_traffic(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct vfu_map map = {.fd = nic->ram.fd,
	                      .addr = nic->ram.base,
	                      .size = nic->ram.size,
	                      .flags = VFU_DMA_RW};

	for (int round = 0; round < 12; round++) {
		struct flow flow = env_flow_out(env, 0, 0), in = env_flow_in(env, 0, 0);
		struct nic_packet packet = {.frame = env->packet};

		packet.size = frame_build(env->packet, &flow, 1000, 6, FRAME_CSUM_FULL);
		for (int i = 0; i < 200; i++)
			(void)nic_tx_post(nic, &nic->pair[0], &packet);
		nic_ok(nic, nic_tx_ring(nic, &nic->pair[0]));
		frame_build(env->packet, &in, 1000, 6, FRAME_CSUM_FULL);
		for (int i = 0; i < 50; i++)
			sys_ok(peer_send(&env->peer, env->packet, packet.size));
		sys_ok(vfu_dma_unmap(nic->vfu, map.addr, map.size));
		if (round & 1)
			nic_ok(nic, nic_tx_ring(nic, &nic->pair[0]));
		assert_true(nic_fw_status(nic) > 0);
		sys_ok(vfu_dma_map(nic->vfu, &map));
		honest_again(env);
	}
}

/* ---- clients that speak nonsense ---- */

static void check_served(struct env *env)
{
	env_start_nic(env);
	while (peer_drain(&env->peer))
		;
	env_check_traffic(env);
	nic_close(env->nic);
	env->nic = NULL;
}

static void test_client_garbage(void **state)
{
	struct env *env = *state;
	uint32_t seed = env_seed();
	uint8_t garbage[4096];

	for (int i = 0; i < 200; i++) {
		struct vfu *vfu;

		sys_ok(vfu_open(&vfu, env->server->socket, -1, 5000));
		if (i & 1)
			sys_ok(vfu_version(vfu));
		frame_fill(garbage, sizeof(garbage), env_random(&seed));
		if (i & 2) { /* a likely header */
			struct vfu_header header = {.id = 7,
			                            .command = (uint16_t)(env_random(&seed) % 20),
			                            .size = 16 + env_random(&seed) % 200,
			                            .flags = env_random(&seed) & 0x1f};

			memcpy(garbage, &header, sizeof(header));
		}
		(void)vfu_send_raw(vfu, garbage, 16 + env_random(&seed) % 4000, NULL, 0);
		vfu_close(vfu);
	}
	check_served(env);
}

/* A message that ends in the middle, at every byte of it. */
static void test_client_leaves_in_a_message(void **state)
{
	struct env *env = *state;
	struct {
		struct vfu_header header;
		uint64_t offset;
		uint32_t region, count;
		uint64_t value;
	} message = {{.id = 1, .command = VFU_REGION_WRITE, .size = 40}, 0x1000, 0, 8, 1};

	for (size_t size = 1; size < 40; size++) {
		struct vfu *vfu;

		sys_ok(vfu_open(&vfu, env->server->socket, -1, 5000));
		sys_ok(vfu_version(vfu));
		sys_ok(vfu_send_raw(vfu, &message, size, NULL, 0));
		vfu_close(vfu);
	}
	check_served(env);
}

/* First message not VERSION; size below the header or above the limit: the connection ends (spec
 * vfio-user 12, rows 1, 2, 6). */
static void test_client_must_close(void **state)
{
	struct env *env = *state;
	static const struct {
		bool negotiate;
		uint32_t command, size;
	} cases[] = {
	        {false, VFU_GET_INFO, 32},
	        {true, VFU_VERSION, 16},
	        {true, VFU_GET_INFO, 8},
	        {true, VFU_GET_INFO, 0},
	        {true, VFU_REGION_WRITE, 0x7fffffff},
	        {true, 99, 0xffffffff},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct {
			struct vfu_header header;
			uint32_t body[4];
		} message = {
		        {.id = 1, .command = (uint16_t)cases[i].command, .size = cases[i].size},
		        {16}};
		struct vfu *vfu;

		sys_ok(vfu_open(&vfu, env->server->socket, -1, 5000));
		if (cases[i].negotiate)
			sys_ok(vfu_version(vfu));
		sys_ok(vfu_send_raw(vfu, &message, sizeof(message), NULL, 0));
		sys_ok(vfu_wait_closed(vfu));
		vfu_close(vfu);
	}
	check_served(env);
}

/* Descriptors where none belong: closed, refused, and none is leaked. */
static void test_client_descriptors(void **state)
{
	struct env *env = *state;
	struct nic *nic;
	int fds[20];

	env_start_nic(env);
	nic = env->nic;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (int i = 0; i < 300; i++) {
		uint32_t info[4] = {16};
		struct vfu_request request = {.command = VFU_GET_INFO,
		                              .body = info,
		                              .body_size = sizeof(info),
		                              .fds = fds,
		                              .fd_count = 1 + (unsigned)i % 20,
		                              .reply = info,
		                              .reply_size = sizeof(info)};
		struct vfu_map map = {.fd = fds[0], .addr = 0x1000, .size = 0x1000, .flags = 3};

		assert_int_equal(vfu_call(nic->vfu, &request), -EINVAL);
		/* An eventfd is no memory. */
		assert_true(vfu_dma_map(nic->vfu, &map) < 0);
	}
	/* The same vector again and again. */
	for (int i = 0; i < 2000; i++)
		sys_ok(vfu_set_irqs(nic->vfu, VFU_IRQ_MSIX, 5, 1, &fds[i % 20]));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	env_check_traffic(env);
}

/* The file behind the memory shrinks: the server must survive the access. */
static void test_memory_file_shrinks(void **state)
{
	struct env *env = *state;
	struct nic *nic;
	int fd;
	struct vfu_map map;

	env_start_nic(env);
	nic = env->nic;
	fd = memfd_create("shrinks", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	map = (struct vfu_map){.fd = fd, .addr = 0x200000, .size = 1 << 20, .flags = VFU_DMA_RW};
	if (vfu_dma_map(nic->vfu, &map) == 0) {
		struct tx_desc desc = {.cmd = le64_make(TX_CMD(TX_CSUM_NONE, 0, 0, 0x280000)),
		                       .len = le16_make(1000)};

		assert_int_equal(ftruncate(fd, 4096), 0);
		post_desc(env, &desc, NULL, 0);
		/* The client may be thrown out for it. */
		(void)nic_tx_flush(nic, &nic->pair[0]);
	}
	close(fd);
	nic_close(nic);
	env->nic = NULL;
	check_served(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_bad_queue_init, &plain),
	        ENV_TEST(test_bad_queue_control, &plain),
	        ENV_TEST(test_random_commands, &offloads),
	        ENV_TEST(test_commands_out_of_order, &bare),
	        ENV_TEST(test_rings_nowhere, &plain),
	        ENV_TEST(test_tx_buffers_nowhere, &plain),
	        ENV_TEST(test_rx_buffers_nowhere, &plain),
	        ENV_TEST(test_random_descriptors, &offloads),
	        ENV_TEST(test_doorbells_to_nowhere, &plain),
	        ENV_TEST(test_random_registers, &plain),
	        ENV_TEST(test_memory_changes, &offloads),
	        ENV_TEST(test_unmap_under_traffic, &plain),
	        ENV_TEST(test_client_garbage, &bare),
	        ENV_TEST(test_client_leaves_in_a_message, &bare),
	        ENV_TEST(test_client_must_close, &bare),
	        ENV_TEST(test_client_descriptors, &bare),
	        ENV_TEST(test_memory_file_shrinks, &bare),
	};

	plain.nic = NIC_OPTIONS(NULL);
	plain.nic.brief = true;
	bare.nic = offloads.nic = plain.nic;
	return env_main("hostile", tests, true);
}
