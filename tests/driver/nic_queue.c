// SPDX-License-Identifier: GPL-2.0-or-later
/* Queue pairs of the driver model: rings in guest memory, Q_INIT, Q_CONTROL, interface up and
 * down. */
#include "nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

/* Data area of a transmit queue: room for sixteen 64 KiB packets, or for a ring of full frames. */
#define NIC_TX_DATA_MIN (1u << 20)

/* What the guest's default of 64 us becomes with 1/3 (2.4). */
#define NIC_COAL_USECS 64

static const struct {
	size_t desc, comp, sg;
	uint16_t flags;
} nic_queue_kinds[] = {
        [Q_ADMIN] = {64, 16, 0, Q_INIT_IRQ | Q_INIT_ENA},
        [Q_NOTIFY] = {0, 0, 0, Q_INIT_IRQ | Q_INIT_ENA},
        [Q_RX] = {16, 16, RX_SG_STRIDE, Q_INIT_IRQ | Q_INIT_SG},
        [Q_TX] = {16, 16, TX_SG_STRIDE, Q_INIT_IRQ | Q_INIT_SG},
};

/* Bytes of one receive descriptor's buffers: fragments of pages for small MTUs, else pages. */
static size_t nic_rx_stride(const struct nic *nic)
{
	size_t capacity = nic_rx_capacity(nic);

	return capacity <= 2048 ? 2048 : (capacity + RAM_PAGE - 1) & ~(size_t)(RAM_PAGE - 1);
}

static size_t nic_queue_data_size(const struct nic *nic, const struct nic_queue *queue)
{
	size_t size = (size_t)2048 << queue->log2;

	if (queue->type == Q_RX)
		return nic_rx_stride(nic) << queue->log2;
	if (queue->type == Q_TX)
		return size < NIC_TX_DATA_MIN ? NIC_TX_DATA_MIN : size;
	return 0;
}

static int nic_queue_take_data(struct nic *nic, struct nic_queue *queue)
{
	size_t size = nic_queue_data_size(nic, queue);

	if (size <= queue->data_size)
		return 0;
	queue->data = ram_take(&nic->ram, size);
	queue->data_size = queue->data ? size : 0;
	return queue->data ? 0 : -ENOMEM;
}

int nic_queue_prepare(struct nic *nic, struct nic_queue *queue, unsigned log2)
{
	size_t desc = nic_queue_kinds[queue->type].desc << log2;
	size_t comp = nic_queue_kinds[queue->type].comp << log2;
	size_t sg = nic_queue_kinds[queue->type].sg << log2;

	if (!queue->desc || log2 > queue->memory_log2) {
		queue->desc = ram_take(&nic->ram, desc);
		queue->cq = ram_take(&nic->ram, comp);
		queue->sg = sg ? ram_take(&nic->ram, sg) : 0;
		if (!queue->desc || !queue->cq || (sg && !queue->sg))
			return -ENOMEM;
		queue->memory_log2 = log2;
	}
	memset(ram_at(&nic->ram, queue->desc), 0, desc);
	memset(ram_at(&nic->ram, queue->cq), 0, comp);
	if (sg)
		memset(ram_at(&nic->ram, queue->sg), 0, sg);
	queue->log2 = log2;
	queue->entries = 1u << log2;
	queue->head = queue->tail = queue->cq_tail = 0;
	queue->color = COLOR_MASK;
	queue->enabled = false;
	return nic_queue_take_data(nic, queue);
}

void nic_cmd_queue_init(const struct nic *nic, const struct nic_queue *queue, struct cmd *cmd)
{
	*cmd = (struct cmd){.opcode = CMD_Q_INIT};
	cmd->q_init.type = (uint8_t)queue->type;
	cmd->q_init.ver = nic->id.q_version[queue->type];
	cmd->q_init.index = le32_make(queue->index);
	cmd->q_init.intr_index = le16_make(queue->intr);
	cmd->q_init.flags = le16_make(nic_queue_kinds[queue->type].flags);
	cmd->q_init.ring_size = (uint8_t)queue->log2;
	cmd->q_init.ring_base = le64_make(queue->desc);
	cmd->q_init.cq_ring_base = le64_make(queue->cq);
	cmd->q_init.sg_ring_base = le64_make(queue->sg);
}

int nic_queue_init(struct nic *nic, struct nic_queue *queue)
{
	struct cmd cmd;
	struct comp comp;
	int err;

	nic_cmd_queue_init(nic, queue, &cmd);
	err = nic_admin(nic, &cmd, &comp);
	if (err)
		return err;
	queue->hw_index = le32_get(comp.q_init.hw_index) & 0xffffff;
	queue->hw_type = comp.q_init.hw_type;
	return 0;
}

int nic_queue_control(struct nic *nic, struct nic_queue *queue, bool enable)
{
	struct cmd cmd = {.opcode = CMD_Q_CONTROL};
	int err;

	cmd.q_control.type = (uint8_t)queue->type;
	cmd.q_control.index = le32_make(queue->index);
	cmd.q_control.oper = enable;
	err = nic_admin(nic, &cmd, NULL);
	if (!err)
		queue->enabled = enable;
	return err;
}

/* ---- vectors ---- */

/* Forgets interrupts that have come, and returns all credits; none of them may be returned again.
 */
static int nic_vector_clean(struct nic *nic, struct nic_pair *pair)
{
	uint32_t credits;
	eventfd_t count;

	if (pair->eventfd >= 0)
		eventfd_read(pair->eventfd, &count);
	int err = nic_intr_read(nic, pair->vector, REG_INTR_CREDITS, &credits);

	pair->work = 0;
	return err ? err
	           : nic_intr_write(nic, pair->vector, REG_INTR_CREDITS,
	                            (credits & 0xffff) | CREDITS_RESET_COAL);
}

static int nic_vector_prepare(struct nic *nic, struct nic_pair *pair)
{
	const struct nic_identity *id = &nic->id;
	uint32_t div = id->coal_div ? id->coal_div : 1;
	uint32_t coal = (NIC_COAL_USECS + div / 2) * id->coal_mult / div;
	int err = nic_vector_clean(nic, pair);

	if (!err)
		err = nic_intr_write(nic, pair->vector, REG_INTR_ASSERT, 1);
	if (!err)
		err = nic_intr_write(nic, pair->vector, REG_INTR_COAL_INIT, coal);
	if (err)
		return err;
	if (pair->eventfd < 0)
		pair->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pair->eventfd < 0)
		return -errno;
	return vfu_set_irqs(nic->vfu, VFU_IRQ_MSIX, pair->vector, 1, &pair->eventfd);
}

/* ---- interface up and down ---- */

static int nic_pair_init(struct nic *nic, struct nic_pair *pair, unsigned index)
{
	int err;

	pair->tx.type = Q_TX;
	pair->rx.type = Q_RX;
	pair->tx.index = pair->rx.index = index;
	pair->tx.intr = pair->rx.intr = (uint16_t)pair->vector;
	pair->data_head = pair->data_tail = 0;
	pair->work = 0;
	free(pair->slots);
	pair->slots = calloc((size_t)1 << nic->options.tx_log2, sizeof(*pair->slots));
	if (!pair->slots)
		return -ENOMEM;
	err = nic_queue_prepare(nic, &pair->tx, nic->options.tx_log2);
	if (!err)
		err = nic_queue_init(nic, &pair->tx);
	if (!err)
		err = nic_queue_prepare(nic, &pair->rx, nic->options.rx_log2);
	if (!err)
		err = nic_queue_init(nic, &pair->rx);
	return err;
}

static int nic_rss_default(struct nic *nic)
{
	uint8_t *table;

	if (!(nic->features & FEAT_RX_HASH) || nic->pair_count < 2)
		return 0;
	table = ram_at(&nic->ram, nic->rss_table);
	for (unsigned i = 0; i < nic->id.rss_entries; i++)
		table[i] = (uint8_t)(i % nic->pair_count);
	return nic_rss_config(nic, RSS_ALL);
}

static int nic_pair_enable(struct nic *nic, struct nic_pair *pair)
{
	int err = nic_rx_fill(nic, pair);

	if (!err)
		err = nic_vector_clean(nic, pair);
	if (!err)
		err = nic_queue_control(nic, &pair->rx, true);
	if (!err)
		err = nic_intr_write(nic, pair->vector, REG_INTR_MASK, 0);
	pair->armed = true;
	if (!err)
		err = nic_queue_control(nic, &pair->tx, true);
	return err;
}

int nic_link_start(struct nic *nic)
{
	int err = 0;

	for (unsigned i = 0; i < nic->pair_count && !err; i++)
		err = nic_pair_enable(nic, &nic->pair[i]);
	nic->running = !err;
	return err;
}

int nic_up(struct nic *nic)
{
	int err = 0;

	for (unsigned i = 0; i < nic->pair_count && !err; i++) {
		nic->pair[i].vector = 1 + i;
		err = nic_vector_prepare(nic, &nic->pair[i]);
	}
	for (unsigned i = 0; i < nic->pair_count && !err; i++)
		err = nic_pair_init(nic, &nic->pair[i], i);
	if (!err)
		err = nic_rss_default(nic);
	if (!err)
		err = nic_rx_mode(nic, RX_MODE_DEFAULT);
	if (err)
		return err;
	nic->up = true;
	return nic_link_up(nic) ? nic_link_start(nic) : 0;
}

int nic_link_stop(struct nic *nic)
{
	struct cmd cmd = {.opcode = CMD_LIF_SETATTR}; /* attribute STATE, value 0: quiesce */
	int err = 0;

	for (unsigned i = 0; i < nic->pair_count && !err; i++)
		err = nic_queue_control(nic, &nic->pair[i].tx, false);
	for (unsigned i = 0; i < nic->pair_count && !err; i++) {
		err = nic_intr_write(nic, nic->pair[i].vector, REG_INTR_MASK, 1);
		nic->pair[i].armed = false;
		if (!err)
			err = nic_queue_control(nic, &nic->pair[i].rx, false);
	}
	nic->running = false;
	return err ? err : nic_admin(nic, &cmd, NULL);
}

int nic_down(struct nic *nic)
{
	int err = nic->running ? nic_link_stop(nic) : 0;

	for (unsigned i = 0; i < nic->pair_count && !err; i++) {
		struct nic_pair *pair = &nic->pair[i];

		err = nic_intr_write(nic, pair->vector, REG_INTR_MASK, 1);
		pair->armed = false;
		nic_tx_reap(nic, pair, UINT32_MAX);
		if (!err && pair->work)
			err = nic_pair_credits(nic, pair, false);
	}
	nic->up = false;
	return err;
}
