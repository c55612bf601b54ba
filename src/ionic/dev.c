/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ionic device: its life, its BARs, its work.
 *
 * Theory of operation
 *
 * Goal: an unmodified ionic driver finds the card that it knows (spec ionic-ethernet), and a
 * hostile one finds nothing else.
 *
 * Two contexts. Register accesses arrive in *message context*: they change registers and indices
 * and never touch guest memory (vfio/guest_mem.h says why). Everything else happens in the *work*
 * callback of the loop: a pending device command, link and firmware events, the statistics blocks,
 * and the queues that have descriptors. A register that starts something sets a flag or puts a
 * queue on the ready list, and schedules the work. Frames from the wire arrive in the work phase
 * too (rxq.c).
 *
 *	guest                     message context            work
 *	W32 devcmd doorbell  ---> devcmd_pending       ---> cmd.c -> handler -> comp, data, done
 *	W64 doorbell page    ---> queue->prod, ready   ---> adminq.c, txq.c -> completion -> intr.c
 *	                          (RDMA: rdma_lif.c)
 *	W32 credits, mask    ---> intr.c -> MSI-X
 *
 * Fairness: a run of the work serves every ready queue once, within the budget of its kind; what
 * has more goes to the end of the list and the work is scheduled again.
 *
 * States. The device knows five things that come and go: port (PORT_INIT .. PORT_RESET), LIF
 * (LIF_INIT .. LIF_RESET), its queues (Q_INIT ..), the link, and the firmware (running or not, and
 * a generation). ionic_dev_clear() ends the first three at once. It may be called at any time,
 * also while a command or a queue of ours is waiting for guest memory: a reset message can arrive
 * meanwhile. So whoever touches guest memory holds no state across it that a clear would void: it
 * sets state first, then goes to memory, and looks again afterwards; a cleared queue is
 * uninitialized and has nothing posted.
 *
 * Not done: interrupt coalescing, time stamping, CMB, SR-IOV, firmware update, more than one LIF.
 */
#include "ionic_internal.h"

#include <errno.h>
#include <stdlib.h>

COUNTER(ionic_db_bad_width, "doorbell writes that are not aligned quadwords, ignored");
COUNTER(ionic_db_bad_page, "doorbells on pages without queues, ignored");
COUNTER(ionic_db_bad_slot, "doorbells of a queue type that does not exist, ignored");
COUNTER(ionic_db_bad_ring, "doorbells with a ring number, ignored");
COUNTER(ionic_db_bad_qid, "doorbells of a queue number that does not exist, ignored");

void ionic_pci_config(const struct ionic_profile *profile, struct vfio_pci_config *pci)
{
	*pci = (struct vfio_pci_config){
	        .vendor_id = IONIC_PCI_VENDOR,
	        .device_id = IONIC_PCI_DEVICE,
	        .subsystem_vendor_id = IONIC_PCI_VENDOR,
	        .subsystem_id = IONIC_PCI_SUBSYSTEM,
	        .class_code = IONIC_PCI_CLASS,
	        .bar_size[IONIC_BAR_REGS] = IONIC_BAR_REGS_SIZE,
	        .bar_size[IONIC_BAR_DB] = (uint64_t)IONIC_DB_PAGES * IONIC_DB_PAGE_SIZE,
	        .msix_count = profile->intr_vectors,
	        .msix_bar = IONIC_BAR_REGS,
	        .msix_table_offset = IONIC_MSIX_TABLE,
	        .msix_pba_offset = IONIC_MSIX_PBA,
	        .link_speed = 4, /* 16 GT/s */
	        .link_width = 16,
	};
}

/* ---- BARs ---- */

/* Which queues a doorbell slot of the Ethernet page reaches. */
static int slot_type(unsigned slot)
{
	switch (slot) {
	case IONIC_DB_RXQ:
		return IONIC_QTYPE_RXQ;
	case IONIC_DB_TXQ:
		return IONIC_QTYPE_TXQ;
	case IONIC_DB_ADMINQ:
		return IONIC_QTYPE_ADMINQ;
	default:
		return -1; /* the NotifyQ's is never rung */
	}
}

static void doorbell_write(struct ionic_dev *dev, uint64_t offset, const void *data, size_t size)
{
	unsigned slot = (unsigned)(offset % IONIC_DB_PAGE_SIZE / IONIC_DB_SLOT_SIZE);
	uint32_t page = (uint32_t)(offset / IONIC_DB_PAGE_SIZE);
	struct ionic_queue *queue;
	le64 raw;
	uint64_t value;
	int type = slot_type(slot);

	dev->count.doorbells++;
	if (size != sizeof(raw) || offset % IONIC_DB_SLOT_SIZE != 0) {
		counter_inc(&ionic_db_bad_width);
		return;
	}
	memcpy(&raw, data, sizeof(raw));
	value = le64_get(raw);
	if (ionic_rdma_doorbell(dev, page, slot, value))
		return;
	/* The Ethernet driver has one page, that of its LIF (spec 6.1). */
	if (page > 0) {
		counter_inc(&ionic_db_bad_page);
	} else if (type < 0) {
		counter_inc(&ionic_db_bad_slot);
	} else if (ionic_db_ring(value) != 0) {
		counter_inc(&ionic_db_bad_ring);
	} else {
		queue = ionic_queue_find(dev, (unsigned)type, ionic_db_qid(value));
		if (queue)
			ionic_queue_doorbell(queue, ionic_db_index(value));
		else
			counter_inc(&ionic_db_bad_qid);
	}
}

static void bar_read(void *device, unsigned bar, uint64_t offset, void *data, size_t size)
{
	if (bar == IONIC_BAR_REGS)
		ionic_regs_read(device, (uint32_t)offset, data, size);
	else
		memset(data, 0, size); /* doorbells are write-only */
}

static void bar_write(void *device, unsigned bar, uint64_t offset, const void *data, size_t size)
{
	if (bar == IONIC_BAR_REGS)
		ionic_regs_write(device, (uint32_t)offset, data, size);
	else if (bar == IONIC_BAR_DB)
		doorbell_write(device, offset, data, size);
}

static void function_reset(void *device, enum vfio_reset reason)
{
	struct ionic_dev *dev = device;

	(void)reason; /* after all of them the function is as after power-on */
	ionic_dev_clear(dev);
	dev->devcmd = (struct ionic_devcmd_regs){.doorbell = le32_make(0)};
	dev->devcmd_pending = false;
	dev->count.resets++;
}

const struct vfio_device_ops ionic_vfio_ops = {
        .bar_read = bar_read,
        .bar_write = bar_write,
        .reset = function_reset,
};

/* ---- work ---- */

void ionic_dev_schedule(struct ionic_dev *dev)
{
	loop_schedule(dev->loop, &dev->work);
}

static struct ionic_queue *ready_take(struct ionic_dev *dev)
{
	struct ionic_queue *queue = dev->ready_first;

	if (!queue)
		return NULL;
	dev->ready_first = queue->ready_next;
	if (!dev->ready_first)
		dev->ready_end = &dev->ready_first;
	dev->ready_count--;
	queue->ready_next = NULL;
	queue->ready = false;
	return queue;
}

void ionic_queue_make_ready(struct ionic_queue *queue)
{
	struct ionic_dev *dev = queue->dev;

	if (queue->ready || !queue->enabled)
		return;
	assert(queue->initialized);
	assert(queue->type == IONIC_QTYPE_ADMINQ || queue->type == IONIC_QTYPE_TXQ);
	queue->ready = true;
	queue->ready_next = NULL;
	*dev->ready_end = queue;
	dev->ready_end = &queue->ready_next;
	dev->ready_count++;
	ionic_dev_schedule(dev);
}

static void ready_drop_all(struct ionic_dev *dev)
{
	while (ready_take(dev))
		;
	assert(dev->ready_count == 0);
}

/* Each of the queues that are ready now gets one budget; those with more queue up again. */
static void ready_run(struct ionic_dev *dev)
{
	for (unsigned turns = dev->ready_count; turns > 0; turns--) {
		struct ionic_queue *queue = ready_take(dev);
		bool more;

		if (!queue)
			break; /* a reset emptied the list */
		if (!queue->enabled)
			continue;
		more = queue->type == IONIC_QTYPE_ADMINQ ? ionic_adminq_run(queue)
		                                         : ionic_txq_run(queue);
		if (more)
			ionic_queue_make_ready(queue);
	}
}

static void dev_work(struct loop_work *work)
{
	struct ionic_dev *dev = container_of(work, struct ionic_dev, work);

	ionic_rdma_run(dev);
	if (dev->devcmd_pending)
		ionic_devcmd_run(dev);
	if (dev->link_pending)
		ionic_link_sync(dev);
	if (dev->fw_reset_pending)
		ionic_fw_reset_event_run(dev);
	if (dev->publish_pending) {
		dev->publish_pending = false;
		ionic_stats_publish(dev);
	}
	ready_run(dev);
}

/* ---- life ---- */

void ionic_lif_clear(struct ionic_dev *dev)
{
	struct ionic_lif *lif = &dev->lif;

	ready_drop_all(dev);
	ionic_rdma_clear(dev);
	ionic_queue_clear(&lif->adminq);
	ionic_queue_clear(&lif->notifyq);
	for (uint32_t i = 0; i < dev->profile.eth_queues; i++) {
		ionic_queue_clear(&lif->rxq[i]);
		ionic_queue_clear(&lif->txq[i]);
	}
	ionic_filters_clear(&lif->filters);
	memset(&lif->rss, 0, sizeof(lif->rss));
	lif->initialized = false;
	lif->info_addr = 0;
	lif->features = 0;
	lif->mtu = 1500;
	ionic_rdma_mtu_changed(dev);
	memset(lif->name, 0, sizeof(lif->name));
	memcpy(lif->mac, dev->mac, sizeof(lif->mac));
	lif->event_id = 0;
	ionic_rx_update_offloads(dev);
}

void ionic_dev_clear(struct ionic_dev *dev)
{
	ionic_lif_clear(dev);
	ionic_port_clear(dev);
	ionic_intr_reset_all(dev);
	dev->stats = (struct ionic_stats){.lif = {0}};
	ionic_rdma_stats_restart(dev);
	loop_disarm(dev->loop, &dev->stats_timer);
	dev->publish_pending = false;
	dev->link_pending = false;
	dev->link_dropped = false;
	dev->fw_reset_pending = false;
	dev->count.clears++;
}

static void queue_init(struct ionic_dev *dev, struct ionic_queue *queue, enum ionic_qtype type,
                       uint32_t index)
{
	queue->dev = dev;
	queue->type = type;
	queue->index = index;
	queue->entries = 1;
}

static int queues_create(struct ionic_dev *dev)
{
	struct ionic_lif *lif = &dev->lif;
	uint32_t count = dev->profile.eth_queues;

	lif->rxq = calloc(count, sizeof(*lif->rxq));
	lif->txq = calloc(count, sizeof(*lif->txq));
	if (!lif->rxq || !lif->txq)
		return -ENOMEM;
	queue_init(dev, &lif->adminq, IONIC_QTYPE_ADMINQ, 0);
	queue_init(dev, &lif->notifyq, IONIC_QTYPE_NOTIFYQ, 0);
	for (uint32_t i = 0; i < count; i++) {
		queue_init(dev, &lif->rxq[i], IONIC_QTYPE_RXQ, i);
		queue_init(dev, &lif->txq[i], IONIC_QTYPE_TXQ, i);
	}
	return ionic_txq_create(dev);
}

static const struct net_port_ops guest_port_ops = {
        .deliver = ionic_rx_deliver,
};

static void dev_init(struct ionic_dev *dev, const struct ionic_config *config)
{
	dev->profile = *config->profile;
	dev->loop = config->loop;
	dev->mem = config->mem;
	dev->irq = config->irq;
	memcpy(dev->mac, config->mac, sizeof(dev->mac));
	memcpy(dev->serial, config->serial, sizeof(dev->serial));
	dev->serial[sizeof(dev->serial) - 1] = '\0';
	dev->port.name = "guest";
	dev->port.ops = &guest_port_ops;
	dev->fw_status = IONIC_FW_STATUS_RUNNING | IONIC_FW_GENERATION_STEP;
	dev->link_wanted = true;
	dev->ready_end = &dev->ready_first;
	dev->work.run = dev_work;
}

static bool profile_valid(const struct ionic_profile *profile)
{
	return profile->eth_queues >= 1 && profile->eth_queues <= IONIC_ETH_QUEUES_MAX &&
	       profile->intr_vectors >= 2 && profile->intr_vectors <= IONIC_INTRS_MAX &&
	       ionic_port_speed_valid(profile, profile->speed_mbps);
}

int ionic_create(const struct ionic_config *config, struct ionic_dev **dev_out)
{
	struct ionic_dev *dev;
	int rc;

	if (!profile_valid(config->profile))
		return -EINVAL;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev_init(dev, config);
	rc = queues_create(dev);
	if (rc < 0)
		goto fail;
	rc = ionic_rdma_create(dev, config->fabric);
	if (rc < 0)
		goto fail;
	rc = net_wire_attach(config->wire, &dev->port);
	if (rc < 0)
		goto fail;
	ionic_dev_clear(dev);
	dev->count.clears = 0;
	*dev_out = dev;
	return 0;

fail:
	ionic_rdma_destroy(dev);
	ionic_txq_destroy(dev);
	free(dev->lif.rxq);
	free(dev->lif.txq);
	free(dev);
	return rc;
}

void ionic_destroy(struct ionic_dev *dev)
{
	if (!dev)
		return;
	ionic_dev_clear(dev);
	ionic_rdma_destroy(dev);
	loop_cancel(dev->loop, &dev->work);
	net_wire_detach(&dev->port);
	ionic_txq_destroy(dev);
	free(dev->lif.rxq);
	free(dev->lif.txq);
	free(dev);
}
