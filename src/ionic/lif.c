/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The LIF: its life, its attributes, receive-side scaling, and the LIF info block in guest memory
 * (spec ionic-ethernet 3.7, 5.3, 9.1, 10.1).
 *
 * From LIF_INIT on the LIF is enabled; no command says so. LIF_RESET forgets everything but the
 * counters, and is sent to a LIF that is reset already.
 */
#include "ionic_internal.h"

#include <errno.h>

COUNTER(ionic_lif_init_busy, "LIF_INIT of a LIF that is initialized");
COUNTER(ionic_lif_init_type, "LIF_INIT of a LIF type that does not exist");
COUNTER(ionic_lif_info_addr, "LIF_INIT with an info block that is misaligned or not in memory");
COUNTER(ionic_lif_info_lost, "updates of the LIF info block that did not reach guest memory");
COUNTER(ionic_lif_attr_invalid, "LIF_GETATTR or LIF_SETATTR with an unknown attribute or value");
COUNTER(ionic_lif_attr_unsupported, "LIF attributes that the device does not have");
COUNTER(ionic_rss_invalid, "RSS settings with unknown types or queues that do not exist");
COUNTER(ionic_rss_addr, "RSS settings whose table is not in memory");

/* ---- the block in guest memory ---- */

static void status_fill(const struct ionic_dev *dev, struct ionic_lif_status *status)
{
	*status = (struct ionic_lif_status){
	        .eid = le64_make(dev->lif.event_id),
	        .link_status = le16_make(dev->eth_port.link_up),
	        .link_speed = le32_make(dev->eth_port.link_speed),
	        .link_down_count = le16_make(dev->eth_port.link_down_count),
	};
}

int ionic_lif_write_info(struct ionic_dev *dev)
{
	struct ionic_lif_info info;
	int rc;

	if (!dev->lif.initialized)
		return 0;
	ionic_lif_fill_config(dev, &info.config);
	status_fill(dev, &info.status);
	ionic_rdma_stats_sync(dev);
	for (size_t i = 0; i < ARRAY_SIZE(info.stats); i++)
		info.stats[i] = le64_make(dev->stats.lif[i]);
	rc = guest_mem_write(dev->mem, dev->lif.info_addr, &info, sizeof(info));
	if (rc < 0)
		counter_inc(&ionic_lif_info_lost);
	return rc;
}

/* Port number, link state and speed share an aligned quadword, which goes in one piece: a driver
 * that looks at the same time sees old or new, and never the new state with the old speed. */
int ionic_lif_write_status(struct ionic_dev *dev)
{
	const size_t word = offsetof(struct ionic_lif_status, port_num);
	uint64_t addr = dev->lif.info_addr + offsetof(struct ionic_lif_info, status);
	struct ionic_lif_status status;
	const uint8_t *bytes = (const uint8_t *)&status;
	int rc;

	if (!dev->lif.initialized)
		return 0;
	status_fill(dev, &status);
	rc = guest_mem_write(dev->mem, addr, bytes, word);
	if (rc == 0 && dev->lif.initialized)
		rc = guest_mem_write(dev->mem, addr + word + 8, bytes + word + 8,
		                     sizeof(status) - word - 8);
	if (rc == 0 && dev->lif.initialized)
		rc = guest_mem_post(dev->mem, addr + word, bytes + word, 8);
	if (rc < 0)
		counter_inc(&ionic_lif_info_lost);
	return rc;
}

/* ---- life ---- */

enum ionic_status ionic_cmd_lif_init(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                     union ionic_comp *comp)
{
	struct ionic_lif *lif = &dev->lif;
	uint64_t addr = le64_get(cmd->lif_init.info_addr);

	if (cmd->lif_init.type != 0)
		return ionic_refuse(&ionic_lif_init_type, IONIC_RC_EINVAL);
	if (lif->initialized)
		return ionic_refuse(&ionic_lif_init_busy, IONIC_RC_EBUSY);
	if (!ionic_block_addr_valid(addr))
		return ionic_refuse(&ionic_lif_info_addr, IONIC_RC_BAD_ADDR);
	lif->initialized = true;
	lif->info_addr = addr;
	if (ionic_lif_write_info(dev) < 0) {
		ionic_lif_clear(dev);
		return ionic_refuse(&ionic_lif_info_addr, IONIC_RC_BAD_ADDR);
	}
	ionic_stats_start(dev);
	comp->lif_init.hw_index = le16_make(0);
	return IONIC_RC_SUCCESS;
}

enum ionic_status ionic_cmd_lif_reset(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                      union ionic_comp *comp)
{
	(void)cmd, (void)comp;
	ionic_lif_clear(dev);
	return IONIC_RC_SUCCESS;
}

/* ---- attributes ---- */

enum ionic_status ionic_cmd_lif_getattr(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                        union ionic_comp *comp)
{
	if (cmd->lif_attr.attr > IONIC_LIF_ATTR_TXSTAMP)
		return ionic_refuse(&ionic_lif_attr_invalid, IONIC_RC_EINVAL);
	if (cmd->lif_attr.attr != IONIC_LIF_ATTR_MAC)
		return ionic_refuse(&ionic_lif_attr_unsupported, IONIC_RC_ENOSUPP);
	memcpy(comp->lif_attr.mac, dev->lif.mac, sizeof(comp->lif_attr.mac));
	return IONIC_RC_SUCCESS;
}

/* Quiescing waits for work in flight, and none is in flight between two commands. The driver never
 * enables the LIF again; it enables queues. */
static enum ionic_status set_state(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                   union ionic_comp *comp)
{
	(void)comp;
	switch (cmd->lif_attr.state) {
	case IONIC_LIF_QUIESCE:
	case IONIC_LIF_ENABLE:
		return IONIC_RC_SUCCESS;
	case IONIC_LIF_DISABLE:
		for (uint32_t i = 0; i < dev->profile.eth_queues; i++) {
			dev->lif.rxq[i].enabled = false;
			dev->lif.txq[i].enabled = false;
		}
		ionic_rx_update_offloads(dev);
		return IONIC_RC_SUCCESS;
	default:
		return ionic_refuse(&ionic_lif_attr_invalid, IONIC_RC_EINVAL);
	}
}

static enum ionic_status set_name(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                  union ionic_comp *comp)
{
	(void)comp;
	memcpy(dev->lif.name, cmd->lif_attr.name, sizeof(dev->lif.name));
	dev->lif.name[sizeof(dev->lif.name) - 1] = '\0';
	return IONIC_RC_SUCCESS;
}

/* Informational: what is received depends on the buffers that are posted (spec 5.3). */
static enum ionic_status set_mtu(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                 union ionic_comp *comp)
{
	uint32_t mtu = le32_get(cmd->lif_attr.mtu);

	(void)comp;
	if (mtu == 0 || mtu > dev->profile.mtu_max)
		return ionic_refuse(&ionic_lif_attr_invalid, IONIC_RC_ERANGE);
	dev->lif.mtu = mtu;
	ionic_rdma_mtu_changed(dev);
	return IONIC_RC_SUCCESS;
}

static enum ionic_status set_mac(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                 union ionic_comp *comp)
{
	static const uint8_t zero[6];

	(void)comp;
	if (cmd->lif_attr.mac[0] & 1 || memcmp(cmd->lif_attr.mac, zero, sizeof(zero)) == 0)
		return ionic_refuse(&ionic_lif_attr_invalid, IONIC_RC_EINVAL);
	memcpy(dev->lif.mac, cmd->lif_attr.mac, sizeof(dev->lif.mac));
	return IONIC_RC_SUCCESS;
}

static enum ionic_status set_features(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                      union ionic_comp *comp)
{
	uint64_t wanted = le64_get(cmd->lif_attr.features);

	dev->lif.features = wanted & ionic_lif_features_offered(&dev->profile);
	comp->lif_attr.features = le64_make(dev->lif.features);
	ionic_rx_update_offloads(dev);
	return IONIC_RC_SUCCESS;
}

static bool rss_table_valid(const struct ionic_dev *dev, const uint8_t *table)
{
	for (unsigned i = 0; i < IONIC_RSS_TABLE_SIZE; i++) {
		if (table[i] >= dev->profile.eth_queues)
			return false;
	}
	return true;
}

/* Sent also while RX_HASH is off, with types 0 (spec 9.1). The old settings stay on an error. */
static enum ionic_status set_rss(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                 union ionic_comp *comp)
{
	uint16_t types = le16_get(cmd->lif_attr.rss.types);
	uint8_t table[IONIC_RSS_TABLE_SIZE];

	(void)comp;
	if (types & ~IONIC_RSS_TYPES)
		return ionic_refuse(&ionic_rss_invalid, IONIC_RC_EINVAL);
	if (guest_mem_read(dev->mem, le64_get(cmd->lif_attr.rss.addr), table, sizeof(table)) < 0)
		return ionic_refuse(&ionic_rss_addr, IONIC_RC_BAD_ADDR);
	if (!rss_table_valid(dev, table))
		return ionic_refuse(&ionic_rss_invalid, IONIC_RC_EINVAL);
	if (!dev->lif.initialized)
		return IONIC_RC_EPERM; /* reset while reading; nobody waits for the answer */
	dev->lif.rss.types = types;
	net_rss_key_init(&dev->lif.rss.key, cmd->lif_attr.rss.key);
	memcpy(dev->lif.rss.table, table, sizeof(table));
	dev->lif.rss.valid = true;
	return IONIC_RC_SUCCESS;
}

/* There is no time stamping; switching it off is no error. */
static enum ionic_status set_txstamp(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                     union ionic_comp *comp)
{
	(void)dev, (void)comp;
	if (le16_get(cmd->lif_attr.txstamp_mode) != 0)
		return ionic_refuse(&ionic_lif_attr_unsupported, IONIC_RC_ENOSUPP);
	return IONIC_RC_SUCCESS;
}

static ionic_cmd_fn *const setters[] = {
        [IONIC_LIF_ATTR_STATE] = set_state,       [IONIC_LIF_ATTR_NAME] = set_name,
        [IONIC_LIF_ATTR_MTU] = set_mtu,           [IONIC_LIF_ATTR_MAC] = set_mac,
        [IONIC_LIF_ATTR_FEATURES] = set_features, [IONIC_LIF_ATTR_RSS] = set_rss,
        [IONIC_LIF_ATTR_TXSTAMP] = set_txstamp,
};

enum ionic_status ionic_cmd_lif_setattr(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                        union ionic_comp *comp)
{
	uint8_t attr = cmd->lif_attr.attr;
	enum ionic_status status;

	if (attr >= ARRAY_SIZE(setters))
		return ionic_refuse(&ionic_lif_attr_invalid, IONIC_RC_EINVAL);
	if (!setters[attr])
		return ionic_refuse(&ionic_lif_attr_unsupported, IONIC_RC_ENOSUPP);
	status = setters[attr](dev, cmd, comp);
	if (status == IONIC_RC_SUCCESS)
		ionic_lif_write_info(dev);
	return status;
}
