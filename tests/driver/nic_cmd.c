// SPDX-License-Identifier: GPL-2.0-or-later
/* Registers, device commands, the AdminQ and the NotifyQ of the driver model. */
#include "nic.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t nic_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int nic_complain(struct nic *nic, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(nic->complaint, sizeof(nic->complaint), format, args);
	va_end(args);
	return -EPROTO;
}

/* ---- registers ---- */

int nic_reg_read(struct nic *nic, uint64_t offset, void *data, size_t size)
{
	return vfu_read(nic->vfu, VFU_REGION_BAR0, offset, data, size);
}

int nic_reg_read32(struct nic *nic, uint64_t offset, uint32_t *value)
{
	le32 raw = le32_make(0);
	int err = nic_reg_read(nic, offset, &raw, sizeof(raw));

	*value = le32_get(raw);
	return err;
}

int nic_reg_write(struct nic *nic, uint64_t offset, const void *data, size_t size)
{
	nic->posted_writes++;
	return vfu_write_posted(nic->vfu, VFU_REGION_BAR0, offset, data, size);
}

int nic_reg_write32(struct nic *nic, uint64_t offset, uint32_t value)
{
	le32 raw = le32_make(value);

	return nic_reg_write(nic, offset, &raw, sizeof(raw));
}

static uint64_t nic_intr_offset(unsigned vector, unsigned reg)
{
	return REG_INTR_BASE + (uint64_t)vector * REG_INTR_STRIDE + reg;
}

int nic_intr_write(struct nic *nic, unsigned vector, unsigned reg, uint32_t value)
{
	return nic_reg_write32(nic, nic_intr_offset(vector, reg), value);
}

int nic_intr_read(struct nic *nic, unsigned vector, unsigned reg, uint32_t *value)
{
	return nic_reg_read32(nic, nic_intr_offset(vector, reg), value);
}

int nic_doorbell(struct nic *nic, unsigned hw_type, uint64_t value)
{
	uint64_t page = (uint64_t)nic->hw_lif * nic->id.ndbpgs;
	le64 raw = le64_make(value);

	nic->posted_writes++;
	return vfu_write_posted(nic->vfu, VFU_REGION_BAR2, page * RAM_PAGE + 8 * hw_type, &raw,
	                        sizeof(raw));
}

int nic_block_write(struct nic *nic, uint64_t offset, const void *data, size_t size)
{
	int err = 0;

	for (size_t i = 0; i < size && !err; i += 4)
		err = nic_reg_write(nic, offset + i, (const uint8_t *)data + i, 4);
	return err;
}

int nic_block_read(struct nic *nic, uint64_t offset, void *data, size_t size)
{
	int err = 0;

	for (size_t i = 0; i < size && !err; i += 4)
		err = nic_reg_read(nic, offset + i, (uint8_t *)data + i, 4);
	return err;
}

int nic_fw_status(struct nic *nic)
{
	uint8_t status;
	int err = nic_reg_read(nic, REG_FW_STATUS, &status, 1);

	return err ? err : status;
}

static int nic_fw_running(struct nic *nic)
{
	int status = nic_fw_status(nic);

	if (status < 0)
		return status;
	return status != FW_GONE && (status & FW_RUNNING) ? 0 : -ENXIO;
}

/* ---- device commands (2.3) ---- */

static int nic_devcmd_wait(struct nic *nic)
{
	int64_t deadline = nic_now_ms() + nic->options.timeout_ms;
	uint32_t done;

	do {
		int err = nic_fw_running(nic);

		if (!err)
			err = nic_reg_read32(nic, REG_DEVCMD_DONE, &done);
		if (err)
			return err;
		if (done & 1)
			return 0;
	} while (nic_now_ms() < deadline);
	return -ETIMEDOUT;
}

static int nic_devcmd_issue(struct nic *nic, const struct cmd *cmd)
{
	int err = nic_block_write(nic, REG_DEVCMD_CMD, cmd, sizeof(*cmd));

	if (!err)
		err = nic_reg_write32(nic, REG_DEVCMD_DONE, 0);
	if (!err)
		err = nic_reg_write32(nic, REG_DEVCMD_DB, 1);
	return err;
}

/* The doorbell is cleared and the command zeroed in 8-byte stores; comp and data stay. */
static int nic_devcmd_clean(struct nic *nic)
{
	const le64 zero = {{0}};
	int err = nic_reg_write32(nic, REG_DEVCMD_DB, 0);

	for (unsigned i = 0; i < sizeof(struct cmd) && !err; i += 8)
		err = nic_reg_write(nic, REG_DEVCMD_CMD + i, &zero, sizeof(zero));
	return err;
}

int nic_devcmd(struct nic *nic, const struct cmd *cmd, struct comp *comp)
{
	uint8_t status;
	int err = nic_devcmd_issue(nic, cmd);

	if (!err)
		err = nic_devcmd_wait(nic);
	if (!err)
		err = nic_reg_read(nic, REG_DEVCMD_COMP, &status, 1);
	if (err)
		return err;
	if (status == RC_SUCCESS)
		err = nic_devcmd_clean(nic);
	if (!err && comp)
		err = nic_block_read(nic, REG_DEVCMD_COMP, comp, sizeof(*comp));
	return err ? err : status;
}

/* ---- waiting ---- */

int nic_wait_eventfd(struct nic *nic, int eventfd, int64_t deadline)
{
	struct pollfd fds[2] = {{eventfd, POLLIN, 0}, {nic->vfu->fd, POLLIN, 0}};
	uint64_t count;

	for (;;) {
		int64_t left = deadline - nic_now_ms();
		int err, ready = poll(fds, 2, left > 0 ? (int)left : 0);

		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready == 0)
			return 0;
		if (ready > 0 && fds[1].revents) {
			err = vfu_service(nic->vfu);
			if (err)
				return err;
		}
		if (ready > 0 && fds[0].revents)
			return read(eventfd, &count, sizeof(count)) == sizeof(count) ? 1 : -EIO;
	}
}

const void *nic_queue_peek(struct nic *nic, const struct nic_queue *queue)
{
	uint8_t *comp = ram_at(&nic->ram, queue->cq + 16ull * queue->cq_tail);

	/* The color is read first and orders what follows (5.2). */
	if ((__atomic_load_n(comp + 15, __ATOMIC_ACQUIRE) & COLOR_MASK) != queue->color)
		return NULL;
	return comp;
}

void nic_queue_consume(struct nic_queue *queue)
{
	queue->cq_tail = nic_queue_next(queue, queue->cq_tail);
	if (queue->cq_tail == 0)
		queue->color ^= COLOR_MASK;
}

int nic_pair_credits(struct nic *nic, struct nic_pair *pair, bool drained)
{
	uint32_t credits = pair->work | CREDITS_RESET_COAL | (drained ? CREDITS_UNMASK : 0);

	if (drained)
		pair->armed = true;
	/* To return nothing says that all has been seen (2.4). The driver's poll looks at both
	 * queues of a pair before it does; whoever waits for one of them has not seen the other. */
	if (drained && !pair->work &&
	    (nic_queue_peek(nic, &pair->tx) || nic_queue_peek(nic, &pair->rx)))
		return nic_intr_write(nic, pair->vector, REG_INTR_MASK, 0);
	pair->work = 0;
	return nic_intr_write(nic, pair->vector, REG_INTR_CREDITS, credits);
}

bool nic_pair_awake(struct nic *nic, struct nic_pair *pair)
{
	uint64_t count;

	if (nic->options.polled)
		return true;
	if (pair->armed && read(pair->eventfd, &count, sizeof(count)) == sizeof(count)) {
		pair->irqs++;
		pair->armed = false;
	}
	return !pair->armed;
}

int nic_pair_late(struct nic *nic, struct nic_pair *pair)
{
	uint32_t credits = 0, mask = 0;

	nic_intr_read(nic, pair->vector, REG_INTR_CREDITS, &credits);
	nic_intr_read(nic, pair->vector, REG_INTR_MASK, &mask);
	nic_complain(
	        nic,
	        "no interrupt on vector %u: %u credits, mask %u, %u to return, completions:%s%s",
	        pair->vector, credits, mask, pair->work,
	        nic_queue_peek(nic, &pair->tx) ? " tx" : "",
	        nic_queue_peek(nic, &pair->rx) ? " rx" : "");
	return -ETIMEDOUT;
}

int nic_pair_wait(struct nic *nic, struct nic_pair *pair, int64_t deadline_ms)
{
	int fired;

	if (nic->options.polled)
		return vfu_service(nic->vfu);
	if (!pair->armed || pair->work) {
		int err = nic_pair_credits(nic, pair, true);

		if (err)
			return err;
	}
	fired = nic_wait_eventfd(nic, pair->eventfd, deadline_ms);
	if (fired <= 0)
		return fired ? fired : nic_pair_late(nic, pair);
	pair->irqs++;
	pair->armed = false;
	return 0;
}

/* ---- AdminQ (5.1) ---- */

int nic_admin_post(struct nic *nic, const struct cmd *cmd)
{
	struct nic_queue *queue = &nic->adminq;
	uint32_t slot = queue->head;
	int err;

	if (!queue->enabled)
		return -ENXIO;
	if (nic_queue_room(queue) == 0)
		return -EAGAIN;
	err = nic_fw_running(nic);
	if (err)
		return err;
	memcpy(ram_at(&nic->ram, queue->desc + sizeof(*cmd) * slot), cmd, sizeof(*cmd));
	queue->head = nic_queue_next(queue, slot);
	nic->admin_pending++;
	err = nic_doorbell(nic, queue->hw_type, DB_VALUE(queue->hw_index, queue->head));
	return err ? err : (int)slot;
}

static int nic_admin_reap(struct nic *nic)
{
	struct nic_queue *queue = &nic->adminq;
	const struct comp *comp;
	int reaped = 0;

	while ((comp = nic_queue_peek(nic, queue)) != NULL) {
		uint16_t slot = le16_get(comp->comp_index);

		if (slot != queue->tail || !nic->admin_pending)
			return nic_complain(nic,
			                    "AdminQ completion of slot %u, expected %u (%u posted)",
			                    slot, queue->tail, nic->admin_pending);
		nic->admin_comp[slot] = *comp;
		nic->admin_status[slot] = comp->status;
		queue->tail = nic_queue_next(queue, slot);
		nic_queue_consume(queue);
		nic->admin_pending--;
		nic->admin_work++;
		reaped++;
	}
	return reaped;
}

/* The next entry of the NotifyQ, or NULL when the device has not written it yet. */
static const struct notify_event *nic_event_peek(const struct nic *nic)
{
	const struct notify_event *entry;
	uint64_t eid;

	if (!nic->notify_ring)
		return NULL;
	entry = ram_at(&nic->ram, nic->notify_ring + sizeof(*entry) * nic->notify_tail);
	eid = __atomic_load_n((const uint64_t *)(const void *)entry, __ATOMIC_ACQUIRE);
	return (int64_t)(eid - nic->notify_eid) > 0 ? entry : NULL;
}

/* What the poll of vector 0 ends with (2.4): credits back, unmask. Who waits for commands has not
 * seen the events, and must not say so by returning nothing. */
static int nic_admin_credits(struct nic *nic)
{
	uint32_t credits = nic->admin_work | CREDITS_RESET_COAL | CREDITS_UNMASK;

	if (!nic->admin_work && nic_event_peek(nic))
		return nic_intr_write(nic, 0, REG_INTR_MASK, 0);
	nic->admin_work = 0;
	return nic_intr_write(nic, 0, REG_INTR_CREDITS, credits);
}

/* An interrupt that does not come is a fault, also when what it would tell of is there. */
static int nic_admin_pause(struct nic *nic, int64_t deadline)
{
	int fired;

	if (nic->options.polled)
		return vfu_service(nic->vfu);
	fired = nic_wait_eventfd(nic, nic->admin_eventfd, deadline);
	if (fired <= 0)
		return fired ? fired : -ETIMEDOUT;
	nic->admin_irqs++;
	return 0;
}

int nic_admin_wait(struct nic *nic)
{
	int64_t deadline = nic_now_ms() + nic->options.timeout_ms;

	while (nic->admin_pending) {
		int err = nic_admin_pause(nic, deadline);

		if (!err)
			err = nic_admin_reap(nic);
		if (err < 0)
			return err;
		if (!nic->options.polled || !nic->admin_pending) {
			err = nic_admin_credits(nic);
			if (err)
				return err;
		}
		if (nic->admin_pending && nic_now_ms() >= deadline)
			return -ETIMEDOUT;
	}
	return 0;
}

int nic_admin(struct nic *nic, const struct cmd *cmd, struct comp *comp)
{
	int slot = nic_admin_post(nic, cmd);
	int err;

	if (slot < 0)
		return slot;
	err = nic_admin_wait(nic);
	if (err)
		return err;
	if (comp)
		*comp = nic->admin_comp[slot];
	return nic->admin_status[slot];
}

/* ---- NotifyQ (5.4) ---- */

int nic_event(struct nic *nic, struct notify_event *event)
{
	const struct notify_event *entry = nic_event_peek(nic);

	if (!entry)
		return 0;
	*event = *entry;
	nic->notify_eid = le64_get(event->eid);
	nic->notify_tail = (nic->notify_tail + 1) & ((1u << NOTIFYQ_LOG2) - 1);
	nic->admin_work++;
	return 1;
}

int nic_event_wait(struct nic *nic, unsigned ecode)
{
	int64_t deadline = nic_now_ms() + nic->options.timeout_ms;
	struct notify_event event;

	for (;;) {
		int err;

		while (nic_event(nic, &event))
			if (le16_get(event.ecode) == ecode)
				return nic_admin_credits(nic);
		err = nic_admin_credits(nic);
		if (!err)
			err = nic_admin_pause(nic, deadline);
		if (err)
			return err;
		if (nic_now_ms() >= deadline)
			return -ETIMEDOUT;
	}
}

/* ---- commands that several callers need ---- */

int nic_lif_features(struct nic *nic, uint64_t features)
{
	struct cmd cmd = {.opcode = CMD_LIF_SETATTR};
	struct comp comp;
	int err;

	cmd.lif_attr.attr = LIF_FEATURES;
	cmd.lif_attr.features = le64_make(features);
	err = nic_admin(nic, &cmd, &comp);
	if (err)
		return err;
	if (le64_get(comp.features) & ~features)
		return nic_complain(nic, "features %#llx accepted that were not asked for",
		                    (unsigned long long)(le64_get(comp.features) & ~features));
	nic->features = le64_get(comp.features);
	return 0;
}

int nic_rss_config(struct nic *nic, unsigned types)
{
	struct cmd cmd = {.opcode = CMD_LIF_SETATTR};

	cmd.lif_attr.attr = LIF_RSS;
	cmd.lif_attr.rss.types = le16_make((uint16_t)types);
	memcpy(cmd.lif_attr.rss.key, nic->rss_key, RSS_KEY_SIZE);
	cmd.lif_attr.rss.addr = le64_make(nic->rss_table);
	return nic_admin(nic, &cmd, NULL);
}

int nic_rx_mode(struct nic *nic, unsigned mode)
{
	struct cmd cmd = {.opcode = CMD_RX_MODE_SET};

	cmd.rx_mode.rx_mode = le16_make((uint16_t)mode);
	return nic_admin(nic, &cmd, NULL);
}

static int nic_filter_add(struct nic *nic, const struct cmd *cmd, uint32_t *id)
{
	struct comp comp = {0};
	int err = nic_admin(nic, cmd, &comp);

	if (err && err != RC_EEXIST)
		return err;
	if (id)
		*id = le32_get(comp.filter_id);
	return err;
}

int nic_filter_mac(struct nic *nic, const uint8_t mac[6], uint32_t *id)
{
	struct cmd cmd = {.opcode = CMD_RX_FILTER_ADD};

	cmd.filter_add.match = le16_make(FILTER_MAC);
	memcpy(cmd.filter_add.mac, mac, 6);
	return nic_filter_add(nic, &cmd, id);
}

int nic_filter_vlan(struct nic *nic, uint16_t vid, uint32_t *id)
{
	struct cmd cmd = {.opcode = CMD_RX_FILTER_ADD};

	cmd.filter_add.match = le16_make(FILTER_VLAN);
	cmd.filter_add.vlan = le16_make(vid);
	return nic_filter_add(nic, &cmd, id);
}

int nic_filter_del(struct nic *nic, uint32_t id)
{
	struct cmd cmd = {.opcode = CMD_RX_FILTER_DEL};

	cmd.filter_del.id = le32_make(id);
	return nic_admin(nic, &cmd, NULL);
}

/* ---- info blocks ---- */

/* Values of one width are loaded in one piece: the device may be writing them. */
static uint64_t nic_block64(const struct nic *nic, uint64_t addr)
{
	return le64toh(
	        __atomic_load_n((const uint64_t *)ram_at(&nic->ram, addr), __ATOMIC_ACQUIRE));
}

bool nic_link_up(const struct nic *nic)
{
	const uint16_t *status = ram_at(&nic->ram, nic->lif_info + LIF_INFO_LINK_STATUS);

	return le16toh(__atomic_load_n(status, __ATOMIC_ACQUIRE)) == 1;
}

uint32_t nic_link_speed(const struct nic *nic)
{
	const uint32_t *speed = ram_at(&nic->ram, nic->lif_info + LIF_INFO_LINK_SPEED);

	return le32toh(__atomic_load_n(speed, __ATOMIC_ACQUIRE));
}

uint64_t nic_lif_stat(const struct nic *nic, unsigned index)
{
	return nic_block64(nic, nic->lif_info + LIF_INFO_STATS + 8ull * index);
}

uint64_t nic_port_stat(const struct nic *nic, unsigned index)
{
	return nic_block64(nic, nic->port_info + PORT_INFO_STATS + 8ull * index);
}
