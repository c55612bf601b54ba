/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of the device as name and value, for the stats file. */
#include "ionic_internal.h"

#include <inttypes.h>
#include <stdio.h>

struct visit {
	ionic_stat_fn *fn;
	void *arg;
};

static void show(const struct visit *visit, const char *name, uint64_t value)
{
	visit->fn(name, value, visit->arg);
}

static uint64_t count_enabled(const struct ionic_queue *queues, uint32_t count)
{
	uint64_t enabled = 0;

	for (uint32_t i = 0; i < count; i++)
		enabled += queues[i].enabled;
	return enabled;
}

static uint64_t count_interrupts(const struct ionic_dev *dev)
{
	uint64_t sent = 0;

	for (uint32_t i = 0; i < dev->profile.intr_vectors; i++)
		sent += dev->intr[i].sent;
	return sent;
}

static void show_queues(const struct visit *visit, const char *kind,
                        const struct ionic_queue *queues, uint32_t count)
{
	char name[48];

	for (uint32_t i = 0; i < count; i++) {
		if (!queues[i].initialized)
			continue;
		snprintf(name, sizeof(name), "%s_%" PRIu32 "_descriptors", kind, i);
		show(visit, name, queues[i].descs);
		snprintf(name, sizeof(name), "%s_%" PRIu32 "_completions", kind, i);
		show(visit, name, queues[i].completions);
		snprintf(name, sizeof(name), "%s_%" PRIu32 "_posted", kind, i);
		show(visit, name, ionic_queue_posted(&queues[i]));
	}
}

static void show_lif(const struct visit *visit, const struct ionic_dev *dev)
{
	const struct ionic_lif *lif = &dev->lif;
	uint32_t queues = dev->profile.eth_queues;

	show(visit, "lif_initialized", lif->initialized);
	show(visit, "features", lif->features);
	show(visit, "mtu", lif->mtu);
	show(visit, "rx_mode", lif->filters.rx_mode);
	show(visit, "mac_filters", lif->filters.mac_count);
	show(visit, "vlan_filters", lif->filters.vlan_count);
	show(visit, "rss_types", lif->rss.types);
	show(visit, "queues_offered", queues);
	show(visit, "queues_rx_enabled", count_enabled(lif->rxq, queues));
	show(visit, "queues_tx_enabled", count_enabled(lif->txq, queues));
}

static void show_port(const struct visit *visit, const struct ionic_dev *dev)
{
	show(visit, "port_initialized", dev->eth_port.initialized);
	show(visit, "link_up", ionic_link_up(dev));
	show(visit, "link_speed_mbps", dev->eth_port.link_speed);
	show(visit, "link_down_count", dev->eth_port.link_down_count);
}

static void show_device(const struct visit *visit, const struct ionic_dev *dev)
{
	show(visit, "fw_running", ionic_fw_running(dev));
	show(visit, "fw_generation",
	     (dev->fw_status & IONIC_FW_GENERATION_MASK) / IONIC_FW_GENERATION_STEP);
	show(visit, "fw_heartbeat_stalled", dev->fw_stalled);
	show(visit, "devcmds", dev->count.devcmds);
	show(visit, "admin_commands", dev->count.admin_commands);
	show(visit, "doorbells", dev->count.doorbells);
	show(visit, "events_sent", dev->count.events);
	show(visit, "interrupts_sent", count_interrupts(dev));
	show(visit, "device_resets", dev->count.clears);
	show(visit, "function_resets", dev->count.resets);
}

void ionic_state_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg)
{
	const struct visit visit = {.fn = fn, .arg = arg};

	show_device(&visit, dev);
	show_port(&visit, dev);
	show_lif(&visit, dev);
	show_queues(&visit, "rxq", dev->lif.rxq, dev->profile.eth_queues);
	show_queues(&visit, "txq", dev->lif.txq, dev->profile.eth_queues);
}
