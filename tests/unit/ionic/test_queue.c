// SPDX-License-Identifier: GPL-2.0-or-later
/* Queues in general, AdminQ and NotifyQ: Q_INIT, Q_CONTROL, doorbells, colors, events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_guest.h"

static struct fake_guest guest;

static int setup(void **state)
{
	(void)state;
	fake_guest_create(&guest, NULL);
	fake_probe(&guest);
	return 0;
}

static int setup_without_adminq(void **state)
{
	(void)state;
	fake_guest_create(&guest, NULL);
	fake_port_init(&guest);
	fake_lif_init(&guest);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_guest_destroy(&guest);
	return 0;
}

static uint64_t counter(const char *name)
{
	return counter_get(counter_find(name));
}

/* ---- Q_INIT ---- */

static void test_completion_of_q_init(void **state)
{
	struct fake_ring ring;

	(void)state;
	assert_int_equal(guest.adminq.hw_type, IONIC_DB_ADMINQ);
	assert_int_equal(guest.notifyq.hw_type, IONIC_DB_NOTIFYQ);
	fake_ring_init(&guest, &ring, IONIC_QTYPE_TXQ, 3, 4);
	fake_q_init(&guest, &ring, 2, IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_SG);
	assert_int_equal(ring.hw_type, IONIC_DB_TXQ);
	assert_int_equal(ring.hw_index, 3);
	assert_true(guest.dev->lif.txq[3].initialized);
	assert_false(guest.dev->lif.txq[3].enabled);
	assert_true(guest.dev->lif.txq[3].has_sg);
	fake_ring_init(&guest, &ring, IONIC_QTYPE_RXQ, 0, 4);
	fake_q_init(&guest, &ring, 2, IONIC_Q_FLAG_IRQ);
	assert_int_equal(ring.hw_type, IONIC_DB_RXQ);
	assert_false(guest.dev->lif.rxq[0].has_sg);
}

struct bad_init {
	const char *what, *counter;
	int status;
	void (*spoil)(union ionic_cmd *cmd);
};

static void spoil_type(union ionic_cmd *cmd)
{
	cmd->q_init.type = 4;
}

static void spoil_type_admin(union ionic_cmd *cmd)
{
	cmd->q_init.type = IONIC_QTYPE_ADMINQ;
	cmd->q_init.ver = 0;
}

static void spoil_index(union ionic_cmd *cmd)
{
	cmd->q_init.index = le32_make(fake_profile.eth_queues);
}

static void spoil_index_huge(union ionic_cmd *cmd)
{
	cmd->q_init.index = le32_make(UINT32_MAX);
}

static void spoil_version(union ionic_cmd *cmd)
{
	cmd->q_init.ver = 3;
}

static void spoil_pid(union ionic_cmd *cmd)
{
	cmd->q_init.pid = le16_make(1);
}

static void spoil_intr(union ionic_cmd *cmd)
{
	cmd->q_init.intr_index = le16_make((uint16_t)fake_profile.intr_vectors);
}

static void spoil_cmb(union ionic_cmd *cmd)
{
	cmd->q_init.flags = le16_make(IONIC_Q_FLAG_CMB | IONIC_Q_FLAG_IRQ);
}

static void spoil_features(union ionic_cmd *cmd)
{
	cmd->q_init.features = le64_make(0x10020);
}

static void spoil_flags(union ionic_cmd *cmd)
{
	cmd->q_init.flags = le16_make(0x80);
}

static void spoil_size_small(union ionic_cmd *cmd)
{
	cmd->q_init.ring_size = 1;
}

static void spoil_size_large(union ionic_cmd *cmd)
{
	cmd->q_init.ring_size = 17;
}

static void spoil_ring(union ionic_cmd *cmd)
{
	cmd->q_init.ring_base = le64_make(le64_get(cmd->q_init.ring_base) + 64);
}

static void spoil_ring_far(union ionic_cmd *cmd)
{
	cmd->q_init.ring_base = le64_make(UINT64_MAX & ~UINT64_C(4095));
}

static void spoil_cq(union ionic_cmd *cmd)
{
	cmd->q_init.cq_ring_base = le64_make(8);
}

static void spoil_sg(union ionic_cmd *cmd)
{
	cmd->q_init.sg_ring_base = le64_make(UINT64_C(1) << 52);
}

static const struct bad_init bad_inits[] = {
        {"type", "ionic_q_bad_type", IONIC_RC_EQTYPE, spoil_type},
        {"AdminQ by AdminQ", "ionic_q_bad_type", IONIC_RC_EQTYPE, spoil_type_admin},
        {"index", "ionic_q_bad_index", IONIC_RC_EQID, spoil_index},
        {"huge index", "ionic_q_bad_index", IONIC_RC_EQID, spoil_index_huge},
        {"version", "ionic_q_bad_version", IONIC_RC_EVERSION, spoil_version},
        {"pid", "ionic_q_bad_pid", IONIC_RC_EINVAL, spoil_pid},
        {"interrupt", "ionic_q_bad_intr", IONIC_RC_EINVAL, spoil_intr},
        {"CMB", "ionic_q_unsupported", IONIC_RC_ENOSUPP, spoil_cmb},
        {"features", "ionic_q_unsupported", IONIC_RC_ENOSUPP, spoil_features},
        {"flags", "ionic_q_bad_flags", IONIC_RC_EINVAL, spoil_flags},
        {"small ring", "ionic_q_bad_size", IONIC_RC_EINVAL, spoil_size_small},
        {"large ring", "ionic_q_bad_size", IONIC_RC_EINVAL, spoil_size_large},
        {"misaligned ring", "ionic_q_bad_addr", IONIC_RC_BAD_ADDR, spoil_ring},
        {"ring beyond 52 bits", "ionic_q_bad_addr", IONIC_RC_BAD_ADDR, spoil_ring_far},
        {"misaligned CQ", "ionic_q_bad_addr", IONIC_RC_BAD_ADDR, spoil_cq},
        {"SG ring beyond 52 bits", "ionic_q_bad_addr", IONIC_RC_BAD_ADDR, spoil_sg},
};

static void test_bad_q_init(void **state)
{
	struct fake_ring ring;

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_TXQ, 0, 4);
	for (size_t i = 0; i < ARRAY_SIZE(bad_inits); i++) {
		union ionic_cmd cmd = fake_q_init_cmd(&ring, 1, IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_SG);
		uint64_t before = counter(bad_inits[i].counter);

		bad_inits[i].spoil(&cmd);
		if (fake_admin(&guest, &cmd, NULL) != bad_inits[i].status)
			fail_msg("%s", bad_inits[i].what);
		assert_int_equal(counter(bad_inits[i].counter), before + 1);
		assert_false(guest.dev->lif.txq[0].initialized);
	}
}

static void test_only_adminq_by_device_command(void **state)
{
	struct fake_ring ring;
	union ionic_cmd cmd;

	(void)state;
	for (unsigned type = IONIC_QTYPE_NOTIFYQ; type < 8; type++) {
		fake_ring_init(&guest, &ring, type % IONIC_QTYPE_COUNT, 0, 4);
		cmd = fake_q_init_cmd(&ring, 0, 3);
		cmd.q_init.type = (uint8_t)type;
		assert_int_equal(fake_devcmd(&guest, &cmd, NULL), IONIC_RC_EQTYPE);
	}
}

/* Without the IRQ flag the interrupt number is not looked at, and nothing is raised. */
static void test_queue_without_interrupt(void **state)
{
	struct fake_ring ring;
	uint8_t comp[16] = {0};

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_TXQ, 0, 4);
	fake_q_init(&guest, &ring, 0xffff, 0);
	assert_int_equal(ionic_queue_complete(&guest.dev->lif.txq[0], comp), 0);
	assert_non_null(fake_ring_completion(&guest, &ring));
	for (unsigned i = 1; i < IONIC_INTRS_MAX; i++)
		assert_int_equal(guest.dev->intr[i].credits, 0);
}

/* Every command may be refused; the queue that was there stays then. */
static void test_q_init_replaces(void **state)
{
	struct ionic_queue *queue = &guest.dev->lif.rxq[1];
	struct fake_ring ring, next;

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_RXQ, 1, 4);
	fake_q_init(&guest, &ring, 1, IONIC_Q_FLAG_IRQ);
	fake_doorbell(&guest, ring.hw_type, ring.hw_index, 9);
	assert_int_equal(ionic_queue_posted(queue), 9);
	assert_int_equal(fake_q_control(&guest, &ring, IONIC_Q_ENABLE), IONIC_RC_SUCCESS);
	fake_ring_init(&guest, &next, IONIC_QTYPE_RXQ, 1, 6);
	fake_q_init(&guest, &next, 2, IONIC_Q_FLAG_IRQ);
	assert_false(queue->enabled);
	assert_int_equal(queue->entries, 64);
	assert_int_equal(ionic_queue_posted(queue), 0);
	assert_int_equal(queue->color, 0x80);
	assert_int_equal(queue->intr_index, 2);
	assert_int_equal(queue->ring_base, next.desc);
}

/* ---- Q_CONTROL ---- */

static void test_q_control(void **state)
{
	struct fake_ring ring, bad;

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_RXQ, 2, 4);
	assert_int_equal(fake_q_control(&guest, &ring, IONIC_Q_ENABLE), IONIC_RC_ENOENT);
	fake_q_init(&guest, &ring, 1, IONIC_Q_FLAG_IRQ);
	assert_int_equal(fake_q_control(&guest, &ring, IONIC_Q_ENABLE), IONIC_RC_SUCCESS);
	assert_true(guest.dev->lif.rxq[2].enabled);
	assert_int_equal(fake_q_control(&guest, &ring, 2), IONIC_RC_EINVAL);
	assert_int_equal(fake_q_control(&guest, &ring, IONIC_Q_DISABLE), IONIC_RC_SUCCESS);
	assert_false(guest.dev->lif.rxq[2].enabled);
	bad = ring;
	bad.index = 4;
	assert_int_equal(fake_q_control(&guest, &bad, IONIC_Q_ENABLE), IONIC_RC_EQID);
	bad.index = UINT32_MAX;
	assert_int_equal(fake_q_control(&guest, &bad, IONIC_Q_ENABLE), IONIC_RC_EQID);
	bad = ring;
	bad.type = IONIC_QTYPE_ADMINQ;
	assert_int_equal(fake_q_control(&guest, &bad, IONIC_Q_DISABLE), IONIC_RC_EQTYPE);
	bad.type = 9;
	assert_int_equal(fake_q_control(&guest, &bad, IONIC_Q_DISABLE), IONIC_RC_EQTYPE);
}

/* Link flaps disable and enable without Q_INIT: indices, color and posts survive (spec 3.10). */
static void test_disable_keeps_everything(void **state)
{
	struct ionic_queue *queue = &guest.dev->lif.rxq[0];
	uint8_t comp[16] = {0};
	struct fake_ring ring;

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_RXQ, 0, 2);
	fake_q_init(&guest, &ring, 1, IONIC_Q_FLAG_IRQ);
	fake_doorbell(&guest, ring.hw_type, ring.hw_index, 3); /* before the enable */
	assert_int_equal(fake_q_control(&guest, &ring, IONIC_Q_ENABLE), IONIC_RC_SUCCESS);
	for (unsigned i = 0; i < 5; i++) {
		ionic_queue_advance(queue, 1);
		fake_doorbell(&guest, ring.hw_type, ring.hw_index, i & 3);
		assert_int_equal(ionic_queue_complete(queue, comp), 0);
	}
	uint32_t posted = ionic_queue_posted(queue), cq_pos = queue->cq_pos, cons = queue->cons;

	assert_int_equal(queue->color, 0);
	assert_int_equal(fake_q_control(&guest, &ring, IONIC_Q_DISABLE), IONIC_RC_SUCCESS);
	assert_int_equal(fake_q_control(&guest, &ring, IONIC_Q_ENABLE), IONIC_RC_SUCCESS);
	assert_int_equal(ionic_queue_posted(queue), posted);
	assert_int_equal(queue->cons, cons);
	assert_int_equal(queue->cq_pos, cq_pos);
	assert_int_equal(queue->color, 0);
}

/* ---- completions ---- */

/* First pass 1, then it turns with every wrap; the rest of the last byte is the caller's. */
static void test_color(void **state)
{
	struct ionic_queue *queue = &guest.dev->lif.txq[1];
	struct fake_ring ring;

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_TXQ, 1, 2);
	fake_q_init(&guest, &ring, 1, IONIC_Q_FLAG_IRQ);
	for (unsigned i = 0; i < 20; i++) {
		uint8_t comp[16] = {(uint8_t)i, [15] = 0xff};
		const uint8_t *seen;

		assert_null(fake_ring_completion(&guest, &ring));
		assert_int_equal(ionic_queue_complete(queue, comp), 0);
		seen = fake_ring_completion(&guest, &ring);
		assert_non_null(seen);
		assert_int_equal(seen[0], i);
		assert_int_equal(seen[15], (i / 4) % 2 ? 0x7f : 0xff);
	}
	assert_int_equal(guest.dev->intr[1].credits, 20);
	assert_int_equal(queue->completions, 20);
}

static void test_completion_without_memory(void **state)
{
	struct ionic_queue *queue = &guest.dev->lif.txq[1];
	uint64_t before = counter("ionic_cq_lost");
	uint8_t comp[16] = {0};
	struct fake_ring ring;

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_TXQ, 1, 2);
	fake_q_init(&guest, &ring, 1, IONIC_Q_FLAG_IRQ);
	guest.bus_master = false;
	assert_true(ionic_queue_complete(queue, comp) < 0);
	assert_int_equal(queue->cq_pos, 1);
	assert_int_equal(guest.dev->intr[1].credits, 0);
	assert_int_equal(counter("ionic_cq_lost"), before + 1);
}

/* ---- doorbells ---- */

static void test_bad_doorbells(void **state)
{
	uint64_t tx_disabled = guest.dev->stats.lif[IONIC_LIF_TX_QUEUE_DISABLED];
	static const struct {
		const char *counter;
		uint64_t offset, value;
		size_t size;
	} rows[] = {
	        {"ionic_db_bad_width", 8, 1, 4},
	        {"ionic_db_bad_width", 8, 1, 1},
	        {"ionic_db_bad_width", 12, 1, 8},
	        {"ionic_db_bad_page", 4096, 1, 8},
	        {"ionic_db_bad_page", (4 << 20) - 8, 1, 8},
	        {"ionic_db_bad_slot", 8 * IONIC_DB_RDMA_EQ, 1, 8},
	        {"ionic_db_bad_slot", 8 * 511, 1, 8},
	        {"ionic_db_bad_slot", 8 * IONIC_DB_NOTIFYQ, 1, 8},
	        {"ionic_db_bad_ring", 8, 0x10001, 8},
	        {"ionic_db_bad_qid", 8, (uint64_t)4 << 24, 8},
	        {"ionic_db_bad_qid", 0, (uint64_t)0xffffff << 24, 8},
	        {"ionic_db_bad_qid", 16, (uint64_t)1 << 24, 8},
	        {"ionic_db_absent", 0, 1, 8},
	        {"ionic_db_absent", 8, 1, 8},
	        {"ionic_db_bad_index", 16, 16, 8}, /* the AdminQ has 16 entries */
	        {"ionic_db_bad_index", 16, 0xffff, 8},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t before = counter(rows[i].counter);
		le64 raw = le64_make(rows[i].value);

		fake_bar_write(&guest, IONIC_BAR_DB, rows[i].offset, &raw, rows[i].size);
		fake_run(&guest);
		if (counter(rows[i].counter) != before + 1)
			fail_msg("row %zu: %s did not move", i, rows[i].counter);
	}
	/* Only the transmit queue that was never initialized has a LIF counter. */
	assert_int_equal(guest.dev->stats.lif[IONIC_LIF_TX_QUEUE_DISABLED], tx_disabled + 1);
	assert_int_equal(guest.dev->count.doorbells, ARRAY_SIZE(rows) + 1);
}

/* ---- AdminQ ---- */

/* Several commands for one doorbell: one completion each, in order. */
static void test_adminq_batch(void **state)
{
	union ionic_cmd cmd = {.any = {.opcode = IONIC_CMD_NOP}};

	(void)state;
	for (unsigned round = 0; round < 5; round++) {
		uint32_t first = guest.adminq.head;

		for (unsigned i = 0; i < 15; i++) {
			cmd.any.opcode = i == 7 ? 99 : IONIC_CMD_NOP;
			fake_admin_post(&guest, &cmd);
		}
		fake_doorbell(&guest, guest.adminq.hw_type, 0, guest.adminq.head);
		fake_run(&guest);
		for (unsigned i = 0; i < 15; i++) {
			const union ionic_comp *comp =
			        (const void *)fake_ring_completion(&guest, &guest.adminq);

			assert_non_null(comp);
			assert_int_equal(le16_get(comp->any.comp_index), (first + i) & 15);
			assert_int_equal(comp->any.status, i == 7 ? IONIC_RC_EOPCODE : 0);
		}
		assert_null(fake_ring_completion(&guest, &guest.adminq));
		fake_write(&guest, 0x2008, 15 | 0x30000, 4);
	}
	assert_int_equal(guest.dev->intr[0].credits, 0);
}

/* The work-around of some drivers: the same index again is nothing new (spec 6.3). */
static void test_repeated_doorbell(void **state)
{
	uint64_t commands = guest.dev->count.admin_commands;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		fake_doorbell(&guest, guest.adminq.hw_type, 0, guest.adminq.head);
	fake_run(&guest);
	assert_int_equal(guest.dev->count.admin_commands, commands);
}

static void test_adminq_without_memory(void **state)
{
	uint64_t fetch = counter("ionic_adminq_fetch_error"), lost = counter("ionic_cq_lost");
	union ionic_cmd cmd = {.any = {.opcode = IONIC_CMD_NOP}};

	(void)state;
	fake_admin_post(&guest, &cmd);
	guest.bus_master = false;
	fake_doorbell(&guest, guest.adminq.hw_type, 0, guest.adminq.head);
	fake_run(&guest);
	assert_int_equal(counter("ionic_adminq_fetch_error"), fetch + 1);
	assert_int_equal(counter("ionic_cq_lost"), lost + 1);
	assert_int_equal(ionic_queue_posted(&guest.dev->lif.adminq), 0);
}

/* The descriptor ring is out of memory, the completion ring is not: each gets its error. */
static void test_adminq_unreadable_descriptors(void **state)
{
	union ionic_cmd cmd;
	unsigned seen = 0;
	const union ionic_comp *comp;

	(void)state;
	fake_ring_init(&guest, &guest.adminq, IONIC_QTYPE_ADMINQ, 0, 4);
	cmd = fake_q_init_cmd(&guest.adminq, 0, 3);
	cmd.q_init.ring_base = le64_make(0x1000);
	assert_int_equal(fake_devcmd(&guest, &cmd, NULL), IONIC_RC_SUCCESS);
	fake_doorbell(&guest, IONIC_DB_ADMINQ, 0, 5);
	fake_run(&guest);
	while ((comp = (const void *)fake_ring_completion(&guest, &guest.adminq))) {
		assert_int_equal(comp->any.status, IONIC_RC_EFAULT);
		assert_int_equal(le16_get(comp->any.comp_index), seen);
		seen++;
	}
	assert_int_equal(seen, 5);
}

/* The largest ring: indices up to 65535. */
static void test_adminq_largest_ring(void **state)
{
	union ionic_cmd cmd;

	(void)state;
	fake_ring_init(&guest, &guest.adminq, IONIC_QTYPE_ADMINQ, 0, 8);
	cmd = fake_q_init_cmd(&guest.adminq, 0, 3);
	cmd.q_init.ring_size = 16;
	assert_int_equal(fake_devcmd(&guest, &cmd, NULL), IONIC_RC_SUCCESS);
	fake_doorbell(&guest, IONIC_DB_ADMINQ, 0, 0xffff);
	fake_run(&guest);
	assert_int_equal(ionic_queue_posted(&guest.dev->lif.adminq), 0);
	assert_int_equal(guest.dev->lif.adminq.completions, 0xffff);
}

/* ---- NotifyQ ---- */

static const union ionic_event *event(unsigned slot)
{
	return fake_ptr(&guest, guest.notifyq.desc + 4096 + slot * 64ul, 64);
}

static void test_link_events(void **state)
{
	uint64_t interrupts = guest.msix[0];

	(void)state;
	assert_int_equal(le64_get(event(0)->any.eid), 0);
	ionic_link_set(guest.dev, false);
	fake_run(&guest);
	assert_int_equal(le64_get(event(0)->link.eid), 1);
	assert_int_equal(le16_get(event(0)->link.ecode), IONIC_EVENT_LINK_CHANGE);
	assert_int_equal(le16_get(event(0)->link.link_status), 0);
	assert_int_equal(guest.msix[0], interrupts + 1);
	ionic_link_set(guest.dev, true);
	fake_run(&guest);
	assert_int_equal(le64_get(event(1)->link.eid), 2);
	assert_int_equal(le16_get(event(1)->link.link_status), 1);
	assert_int_equal(le32_get(event(1)->link.link_speed), 100000);
}

static void test_events_wrap(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 70; i++) {
		ionic_link_set(guest.dev, i & 1);
		fake_run(&guest);
	}
	assert_int_equal(le64_get(event(5)->link.eid), 70);
	assert_int_equal(le64_get(event(6)->link.eid), 7);
	assert_int_equal(guest.dev->count.events, 70);
}

/* A new NotifyQ begins with event 1 again. */
static void test_event_numbers_restart(void **state)
{
	(void)state;
	ionic_link_set(guest.dev, false);
	fake_run(&guest);
	fake_notifyq_init(&guest);
	ionic_link_set(guest.dev, true);
	fake_run(&guest);
	assert_int_equal(le64_get(event(0)->any.eid), 1);
}

static void test_event_without_memory(void **state)
{
	uint64_t before = counter("ionic_event_lost");

	(void)state;
	guest.bus_master = false;
	ionic_link_set(guest.dev, false);
	fake_run(&guest);
	assert_int_equal(counter("ionic_event_lost"), before + 1);
	assert_false(ionic_link_up(guest.dev));
}

static void test_no_notifyq_no_event(void **state)
{
	(void)state;
	ionic_link_set(guest.dev, false);
	fake_run(&guest);
	assert_int_equal(guest.dev->count.events, 0);
}

/* ---- state, for the stats file ---- */

static void find_state(const char *name, uint64_t value, void *arg)
{
	uint64_t *found = arg;

	if (strcmp(name, "admin_commands") == 0 || strcmp(name, "link_up") == 0 ||
	    strcmp(name, "queues_tx_enabled") == 0 || strcmp(name, "fw_generation") == 0)
		*found = *found * 10 + value;
}

static void test_state_visit(void **state)
{
	uint64_t found = 0;

	(void)state;
	ionic_state_visit(guest.dev, find_state, &found);
	assert_int_equal(found, 1110); /* generation 1, one command, link up, no queue */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_completion_of_q_init, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_bad_q_init, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_only_adminq_by_device_command,
	                                        setup_without_adminq, teardown),
	        cmocka_unit_test_setup_teardown(test_queue_without_interrupt, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_q_init_replaces, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_q_control, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_disable_keeps_everything, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_color, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_completion_without_memory, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_bad_doorbells, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_adminq_batch, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_repeated_doorbell, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_adminq_without_memory, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_adminq_unreadable_descriptors, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_adminq_largest_ring, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_link_events, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_events_wrap, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_event_numbers_restart, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_event_without_memory, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_no_notifyq_no_event, setup_without_adminq,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_state_visit, setup, teardown),
	};

	return cmocka_run_group_tests_name("ionic/queue", tests, NULL, NULL);
}
