// SPDX-License-Identifier: GPL-2.0-or-later
/* What changes while the NIC runs: counters, link, queues, firmware. */
#include "env.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct env_options plain = {.tap = true};
static struct env_options offloads = {.tap = true, .server.profile = "generic-100g"};

/* ---- counters ---- */

static void send_out(struct env *env, const uint8_t *dst, size_t size)
{
	struct flow flow = env_flow_out(env, 0, 0);

	if (dst)
		memcpy(flow.dst, dst, 6);
	frame_build(env->packet, &flow, size - 14, 1, FRAME_CSUM_FULL);
	nic_ok(env->nic, nic_send_frame(env->nic, env->packet, size));
}

static void test_tx_counters(void **state)
{
	struct env *env = *state;
	static const uint8_t group[6] = {0x01, 0, 0x5e, 0, 0, 9};
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	for (int i = 0; i < 10; i++)
		send_out(env, NULL, 42); /* a 64-byte frame on the wire */
	for (int i = 0; i < 5; i++)
		send_out(env, group, 1514);
	for (int i = 0; i < 3; i++)
		send_out(env, all, 100);
	env_expect_lif(env, LIF_TX_UCAST_PACKETS, 10);
	env_expect_lif(env, LIF_TX_UCAST_BYTES, 420);
	env_expect_lif(env, LIF_TX_MCAST_PACKETS, 5);
	env_expect_lif(env, LIF_TX_BCAST_PACKETS, 3);
	env_expect_port(env, PORT_TX_OK, 18);
	env_expect_port(env, PORT_TX_UNICAST, 10);
	env_expect_port(env, PORT_TX_64B, 10);
	env_expect_port(env, PORT_TX_1024_1518, 5);
	env_expect_port(env, PORT_TX_OCTETS_OK, 10 * 64 + 5 * 1518 + 3 * 104);
}

static void test_rx_counters(void **state)
{
	struct env *env = *state;
	struct flow flow = env_flow_in(env, 4, FRAME_PROTO_UDP);
	size_t size;

	for (int i = 0; i < 7; i++) {
		size = frame_build(env->packet, &flow, 0, 1, FRAME_CSUM_FULL);
		sys_ok(peer_send(&env->peer, env->packet, size));
		nic_ok(env->nic, nic_recv(env->nic, env->frame));
	}
	memset(flow.dst, 0xff, 6);
	size = frame_build(env->packet, &flow, 100, 1, FRAME_CSUM_FULL);
	sys_ok(peer_send(&env->peer, env->packet, size));
	nic_ok(env->nic, nic_recv(env->nic, env->frame));
	env_expect_lif(env, LIF_RX_UCAST_PACKETS, 7);
	env_expect_lif(env, LIF_RX_UCAST_BYTES, 7 * 42);
	env_expect_lif(env, LIF_RX_BCAST_PACKETS, 1);
	env_expect_lif(env, LIF_RX_BCAST_BYTES, 142);
	env_expect_port(env, PORT_RX_OK, 8);
	env_expect_port(env, PORT_RX_64B, 7);
	env_expect_port(env, PORT_RX_OCTETS_OK, 7 * 64 + 146);
}

/* The stats file says what the guest's blocks say, within an interval. */
static void test_stats_file_agrees(void **state)
{
	struct env *env = *state;
	uint64_t value;

	for (int i = 0; i < 25; i++)
		env_check_traffic(env);
	sys_ok(server_stats_wait(env->server, 2));
	sys_ok(server_stat(env->server, "LIF", "tx_ucast_packets", &value));
	assert_int_equal(value, 25);
	env_expect_lif(env, LIF_TX_UCAST_PACKETS, value);
	sys_ok(server_stat(env->server, "LIF", "rx_ucast_bytes", &value));
	env_expect_lif(env, LIF_RX_UCAST_BYTES, value);
	sys_ok(server_stat(env->server, "Port", "frames_tx_ok", &value));
	assert_int_equal(value, 25);
	env_expect_port(env, PORT_TX_OK, value);
	sys_ok(server_stat(env->server, "Port", "frames_rx_all", &value));
	env_expect_port(env, PORT_RX_ALL, value);
}

static uint64_t tx_packets(struct env *env)
{
	uint64_t value;

	sys_ok(server_stats_wait(env->server, 2));
	sys_ok(server_stat(env->server, "LIF", "tx_ucast_packets", &value));
	return value;
}

/* After LIF_RESET nothing is written to the block any more; the counters start again at 0 with a
 * device reset (manual, Statistics). */
static void test_stats_stop_with_reset(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	uint8_t *info, *port;

	env_check_traffic(env);
	assert_int_equal(tx_packets(env), 1);
	info = ram_at(&nic->ram, nic->lif_info);
	port = ram_at(&nic->ram, nic->port_info);
	nic_ok(nic, nic_remove(nic));
	memset(info, 0x5a, LIF_INFO_SIZE);
	memset(port, 0x5a, PORT_INFO_SIZE);
	sys_ok(server_stats_wait(env->server, 3));
	for (size_t i = 0; i < LIF_INFO_SIZE; i++)
		assert_int_equal(info[i], 0x5a);
	for (size_t i = 0; i < PORT_INFO_SIZE; i++)
		assert_int_equal(port[i], 0x5a);
	assert_int_equal(tx_packets(env), 0);
}

/* Segments are counted as the frames that they are on the wire. */
static void test_tso_counters(void **state)
{
	struct env *env = *state;
	struct flow flow = env_flow_out(env, 4, FRAME_PROTO_TCP);
	struct nic_packet packet = {.frame = env->packet, .mss = 1448, .hdr_size = 54};

	packet.size = frame_build(env->packet, &flow, 14480, 1, FRAME_CSUM_TSO);
	nic_ok(env->nic, nic_send(env->nic, 0, &packet));
	env_expect_lif(env, LIF_TX_UCAST_PACKETS, 10);
	env_expect_lif(env, LIF_TX_UCAST_BYTES, 10 * (54 + 1448));
	env_expect_port(env, PORT_TX_OK, 10);
	env_expect_port(env, PORT_TX_1024_1518, 10);
}

/* ---- link (10.1) ---- */

static void test_link(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;

	env_check_traffic(env);
	for (int i = 0; i < 10; i++) {
		env_control(env, "{\"cmd\":\"link\",\"up\":false}");
		nic_ok(nic, nic_event_wait(nic, EVENT_LINK_CHANGE));
		assert_false(nic_link_up(nic));
		nic_ok(nic, nic_link_stop(nic));
		env_control(env, "{\"cmd\":\"link\",\"up\":true}");
		nic_ok(nic, nic_event_wait(nic, EVENT_LINK_CHANGE));
		assert_true(nic_link_up(nic));
		assert_int_equal(nic_link_speed(nic), 100000);
		nic_ok(nic, nic_link_start(nic));
		env_check_traffic(env);
	}
}

/* Disable and enable without Q_INIT: indices, color and posted buffers stay (3.10). */
static void test_link_keeps_rings(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;

	for (int i = 0; i < 40; i++) {
		uint32_t head[NIC_PAIRS_MAX];

		env_check_traffic(env);
		for (unsigned k = 0; k < nic->pair_count; k++)
			head[k] = nic->pair[k].rx.head;
		nic_ok(nic, nic_link_stop(nic));
		nic_ok(nic, nic_link_start(nic));
		(void)head;
	}
	/* A full receive ring gets no doorbell with the enable, and works. */
	for (unsigned k = 0; k < nic->pair_count; k++)
		assert_int_equal(nic_queue_room(&nic->pair[k].rx) < 16, 1);
	env_check_traffic(env);
}

/* What was posted while the queue was disabled goes out with the enable. */
static void test_doorbell_before_enable(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct nic_pair *pair = &nic->pair[0];
	struct flow flow = env_flow_out(env, 0, 0);
	struct nic_packet packet = {.frame = env->packet};

	packet.size = frame_build(env->packet, &flow, 500, 3, FRAME_CSUM_FULL);
	nic_ok(nic, nic_queue_control(nic, &pair->tx, false));
	for (int i = 0; i < 5; i++)
		nic_ok(nic, nic_tx_post(nic, pair, &packet));
	nic_ok(nic, nic_tx_ring(nic, pair));
	nic_ok(nic, nic_rx_mode(nic, RX_MODE_DEFAULT));
	assert_null(nic_queue_peek(nic, &pair->tx));
	nic_ok(nic, nic_queue_control(nic, &pair->tx, true));
	nic_ok(nic, nic_tx_flush(nic, pair));
	for (int i = 0; i < 5; i++)
		env_expect_out(env, env->packet, packet.size);
}

/* Down means that nothing comes in. */
static void test_link_down_drops(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;

	env_control(env, "{\"cmd\":\"link\",\"up\":false}");
	nic_ok(nic, nic_event_wait(nic, EVENT_LINK_CHANGE));
	for (int i = 0; i < 10; i++) {
		struct flow flow = env_flow_in(env, 0, 0);
		size_t size = frame_build(env->packet, &flow, 100, 1, FRAME_CSUM_FULL);

		sys_ok(peer_send(&env->peer, env->packet, size));
	}
	sys_ok(server_stats_wait(env->server, 2));
	env_control(env, "{\"cmd\":\"link\",\"up\":true}");
	nic_ok(nic, nic_event_wait(nic, EVENT_LINK_CHANGE));
	env_check_traffic(env);
	assert_int_equal(nic_lif_stat(nic, LIF_RX_UCAST_PACKETS) <= 1, 1);
}

/* Brought up without carrier, the NIC starts when it comes. */
static void test_link_up_later(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;

	env_control(env, "{\"cmd\":\"link\",\"up\":false}");
	nic_ok(nic, nic_event_wait(nic, EVENT_LINK_CHANGE));
	nic_ok(nic, nic_down(nic));
	nic_ok(nic, nic_up(nic));
	assert_false(nic->running);
	env_control(env, "{\"cmd\":\"link\",\"up\":true}");
	nic_ok(nic, nic_event_wait(nic, EVENT_LINK_CHANGE));
	nic_ok(nic, nic_link_start(nic));
	env_check_traffic(env);
}

/* ---- queues ---- */

/* Q_INIT of an index that exists replaces it, enabled or not (3.9). */
static void test_replace_queue(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;

	for (unsigned i = 0; i < 30; i++) {
		struct nic_pair *pair = &nic->pair[0];

		env_check_traffic(env);
		if (i & 1)
			nic_ok(nic, nic_queue_control(nic, &pair->tx, false));
		nic_ok(nic, nic_queue_prepare(nic, &pair->tx, 2 + i % 9));
		nic_ok(nic, nic_queue_init(nic, &pair->tx));
		nic_ok(nic, nic_queue_prepare(nic, &pair->rx, 5 + i % 6));
		nic_ok(nic, nic_queue_init(nic, &pair->rx));
		nic_ok(nic, nic_rx_fill(nic, pair));
		nic_ok(nic, nic_queue_control(nic, &pair->rx, true));
		nic_ok(nic, nic_queue_control(nic, &pair->tx, true));
	}
	env_check_traffic(env);
}

/* Other ring sizes and MTUs with every open, as `ethtool -G` and `ip link set mtu` cause them. */
static void test_resize(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	static const uint32_t mtus[] = {68, 1500, 2030, 2031, 4078, 4079, 9000};

	for (unsigned i = 0; i < 14; i++) {
		struct flow flow = env_flow_in(env, 0, 0);
		size_t size;

		nic_ok(nic, nic_down(nic));
		nic->options.mtu = mtus[i % ARRAY_SIZE(mtus)];
		nic->options.tx_log2 = 2 + i % 10;
		nic->options.rx_log2 = 2 + i * 3 % 10;
		nic_ok(nic, nic_up(nic));
		size = frame_build(env->packet, &flow, nic->options.mtu, i, FRAME_CSUM_FULL);
		sys_ok(peer_send(&env->peer, env->packet, size));
		env_expect_in(env, env->packet, size);
	}
}

/* ---- interrupts (2.4) ---- */

/* Waits for a completion to be there, without taking it and without its interrupt. */
static void wait_completion(struct nic *nic, const struct nic_queue *queue)
{
	int64_t deadline = nic_now_ms() + 5000;

	while (!nic_queue_peek(nic, queue) && nic_now_ms() < deadline)
		nic_ok(nic, nic_rx_mode(nic, RX_MODE_DEFAULT));
	assert_non_null(nic_queue_peek(nic, queue));
}

/* Masked, nothing fires; unmasking delivers what is pending. */
static void test_interrupt_mask(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct nic_pair *pair = &nic->pair[0];
	struct flow flow = env_flow_out(env, 0, 0);
	struct nic_packet packet = {.frame = env->packet};
	uint32_t credits;

	packet.size = frame_build(env->packet, &flow, 100, 1, FRAME_CSUM_FULL);
	for (int i = 0; i < 50; i++) {
		nic_ok(nic, nic_intr_write(nic, pair->vector, REG_INTR_MASK, 1));
		nic_ok(nic, nic_tx_post(nic, pair, &packet));
		nic_ok(nic, nic_tx_ring(nic, pair));
		/* The completion is there, and the vector has not fired. */
		wait_completion(nic, &pair->tx);
		nic_ok(nic, nic_intr_read(nic, pair->vector, REG_INTR_CREDITS, &credits));
		assert_int_equal(credits & 0xffff, 1);
		pair->armed = true; /* only waits */
		assert_int_equal(nic_pair_wait(nic, pair, nic_now_ms()), -ETIMEDOUT);
		nic_ok(nic, nic_intr_write(nic, pair->vector, REG_INTR_MASK, 0));
		nic_ok(nic, nic_pair_wait(nic, pair, nic_now_ms() + 5000));
		assert_false(pair->armed);
		nic_ok(nic, nic_tx_flush(nic, pair));
		nic_ok(nic, nic_pair_credits(nic, pair, true));
		nic_ok(nic, nic_intr_read(nic, pair->vector, REG_INTR_CREDITS, &credits));
		assert_int_equal(credits & 0xffff, 0);
	}
}

/* Without an eventfd an interrupt is kept, and sent when one comes (spec vfio-user 5). */
static void test_interrupt_without_eventfd(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct nic_pair *pair = &nic->pair[0];
	struct flow flow = env_flow_out(env, 0, 0);
	struct nic_packet packet = {.frame = env->packet};

	packet.size = frame_build(env->packet, &flow, 100, 1, FRAME_CSUM_FULL);
	for (int i = 0; i < 20; i++) {
		sys_ok(vfu_set_irqs(nic->vfu, VFU_IRQ_MSIX, pair->vector, 1, NULL));
		nic_ok(nic, nic_tx_post(nic, pair, &packet));
		nic_ok(nic, nic_tx_ring(nic, pair));
		wait_completion(nic, &pair->tx);
		sys_ok(vfu_set_irqs(nic->vfu, VFU_IRQ_MSIX, pair->vector, 1, &pair->eventfd));
		pair->armed = true;
		nic_ok(nic, nic_pair_wait(nic, pair, nic_now_ms() + 5000));
		assert_false(pair->armed);
		nic_ok(nic, nic_tx_flush(nic, pair));
		nic_ok(nic, nic_pair_credits(nic, pair, true));
	}
}

/* The monitor gives a vector a new eventfd again and again, as Linux moves it between CPUs; no
 * interrupt is lost on the way. */
static void test_interrupt_eventfd_moves(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;

	for (int i = 0; i < 300; i++) {
		struct nic_pair *pair = &nic->pair[(unsigned)i % nic->pair_count];
		struct flow flow = env_flow_out(env, 0, 0);
		struct nic_packet packet = {.frame = env->packet};
		int old = pair->eventfd;
		eventfd_t count;

		packet.size = frame_build(env->packet, &flow, 100, 1, FRAME_CSUM_FULL);
		nic_ok(nic, nic_tx_post(nic, pair, &packet));
		nic_ok(nic, nic_tx_ring(nic, pair));
		pair->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		sys_ok(vfu_set_irqs(nic->vfu, VFU_IRQ_MSIX, pair->vector, 1, &pair->eventfd));
		/* What the old one was told, the guest has been told. */
		if (eventfd_read(old, &count) == 0)
			pair->armed = false;
		close(old);
		nic_ok(nic, nic_tx_flush(nic, pair));
	}
}

/* ---- firmware (12.3) ---- */

static uint8_t fw_status(struct env *env)
{
	int status = nic_fw_status(env->nic);

	assert_true(status >= 0 && status != FW_GONE);
	return (uint8_t)status;
}

static void recover(struct env *env)
{
	nic_ok(env->nic, nic_fw_down(env->nic));
	nic_ok(env->nic, nic_fw_up(env->nic));
	env_check_traffic(env);
}

static void test_firmware_stop(void **state)
{
	struct env *env = *state;
	uint8_t before = fw_status(env), during, after;
	const struct cmd cmd = {.opcode = CMD_NOP};

	for (int i = 0; i < 17; i++) {
		env_check_traffic(env);
		env_control(env, "{\"cmd\":\"fw\",\"action\":\"stop\"}");
		during = fw_status(env);
		assert_int_equal(during & FW_RUNNING, 0);
		assert_int_equal(nic_devcmd(env->nic, &cmd, NULL), -ENXIO);
		env_control(env, "{\"cmd\":\"fw\",\"action\":\"start\"}");
		after = fw_status(env);
		assert_int_equal(after & FW_RUNNING, FW_RUNNING);
		assert_int_not_equal(after & FW_GENERATION_MASK, before & FW_GENERATION_MASK);
		before = after;
		recover(env);
	}
}

/* The generation changes in one step; what the driver still says to the dead device does no harm.
 */
static void test_firmware_restart(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	const struct cmd lif_reset = {.opcode = CMD_LIF_RESET}, reset = {.opcode = CMD_RESET};
	const struct cmd rdma_reset = {.opcode = CMD_RDMA_RESET_LIF};

	for (int i = 0; i < 17; i++) { /* more than there are generations */
		uint8_t before = fw_status(env), after;

		env_check_traffic(env);
		env_control(env, "{\"cmd\":\"fw\",\"action\":\"restart\"}");
		after = fw_status(env);
		assert_int_equal(after & FW_RUNNING, FW_RUNNING);
		assert_int_not_equal(after & FW_GENERATION_MASK, before & FW_GENERATION_MASK);
		for (unsigned k = 0; k < nic->pair_count; k++) {
			nic_ok(nic, nic_tx_ring(nic, &nic->pair[k]));
			nic_ok(nic, nic_doorbell(nic, nic->pair[k].rx.hw_type,
			                         DB_VALUE(nic->pair[k].rx.hw_index, 7)));
		}
		nic_ok(nic, nic_doorbell(nic, nic->adminq.hw_type, 3));
		nic_ok(nic, nic_devcmd(nic, &rdma_reset, NULL));
		nic_ok(nic, nic_devcmd(nic, &lif_reset, NULL));
		nic_ok(nic, nic_devcmd(nic, &reset, NULL));
		recover(env);
	}
}

static void test_firmware_reset_event(void **state)
{
	struct env *env = *state;
	uint8_t before = fw_status(env);

	env_control(env, "{\"cmd\":\"fw\",\"action\":\"reset-event\"}");
	nic_ok(env->nic, nic_event_wait(env->nic, EVENT_RESET));
	/* A generation change must follow (trap 39). */
	for (int64_t end = nic_now_ms() + 5000; nic_now_ms() < end;)
		if (fw_status(env) != before && fw_status(env) & FW_RUNNING)
			break;
	assert_int_not_equal(fw_status(env), before);
	recover(env);
}

static uint32_t heartbeat(struct env *env)
{
	uint32_t value;

	nic_ok(env->nic, nic_reg_read32(env->nic, REG_FW_HEARTBEAT, &value));
	return value;
}

/* Constant 0, or moving at least once a second; stalled, it is not 0 and stands still (2.6). */
static void test_firmware_stall(void **state)
{
	struct env *env = *state;
	uint32_t value;
	int64_t end;

	env_control(env, "{\"cmd\":\"fw\",\"action\":\"stall\"}");
	value = heartbeat(env);
	assert_int_not_equal(value, 0);
	sys_ok(server_stats_wait(env->server, 75)); /* 1.5 s */
	assert_int_equal(heartbeat(env), value);
	env_check_traffic(env);
	env_control(env, "{\"cmd\":\"fw\",\"action\":\"unstall\"}");
	for (end = nic_now_ms() + 2500; nic_now_ms() < end;) {
		sys_ok(server_stats_wait(env->server, 1));
		if (heartbeat(env) != value)
			break;
	}
	assert_int_not_equal(heartbeat(env), value);
}

/* No byte of guest memory changes after the firmware stopped (trap 38). */
static void test_firmware_stop_stops_dma(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct flow flow = env_flow_in(env, 0, 0);
	size_t size = frame_build(env->packet, &flow, 100, 1, FRAME_CSUM_FULL);

	env_check_traffic(env);
	env_control(env, "{\"cmd\":\"fw\",\"action\":\"stop\"}");
	memset(nic->ram.host, 0xa5, nic->ram.used);
	for (int i = 0; i < 50; i++)
		sys_ok(peer_send(&env->peer, env->packet, size));
	for (unsigned i = 0; i < nic->pair_count; i++)
		nic_ok(nic, nic_tx_ring(nic, &nic->pair[i]));
	sys_ok(server_stats_wait(env->server, 5));
	fw_status(env);
	for (size_t i = 0; i < nic->ram.used; i++)
		if (nic->ram.host[i] != 0xa5)
			fail_msg("byte %#zx of guest memory was written", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_tx_counters, &plain),
	        ENV_TEST(test_rx_counters, &plain),
	        ENV_TEST(test_stats_file_agrees, &plain),
	        ENV_TEST(test_stats_stop_with_reset, &plain),
	        ENV_TEST(test_tso_counters, &offloads),
	        ENV_TEST(test_link, &plain),
	        ENV_TEST(test_link_keeps_rings, &plain),
	        ENV_TEST(test_doorbell_before_enable, &plain),
	        ENV_TEST(test_link_down_drops, &plain),
	        ENV_TEST(test_link_up_later, &plain),
	        ENV_TEST(test_replace_queue, &plain),
	        ENV_TEST(test_resize, &plain),
	        ENV_TEST(test_interrupt_mask, &plain),
	        ENV_TEST(test_interrupt_without_eventfd, &plain),
	        ENV_TEST(test_interrupt_eventfd_moves, &plain),
	        ENV_TEST(test_firmware_stop, &plain),
	        ENV_TEST(test_firmware_restart, &plain),
	        ENV_TEST(test_firmware_reset_event, &plain),
	        ENV_TEST(test_firmware_stall, &plain),
	        ENV_TEST(test_firmware_stop_stops_dma, &plain),
	};

	plain.nic = NIC_OPTIONS(NULL);
	plain.nic.brief = true;
	offloads.nic = plain.nic;
	return env_main("state", tests, true);
}
