/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive filters and modes: which frames the LIF takes (spec ionic-ethernet 5.5).
 *
 * The id of a filter is its place: the slot of a MAC filter, the VLAN id of a VLAN filter, each in
 * a range of its own. So ids are unique, the same filter has the same id however often it is
 * added, and deleting looks nothing up.
 */
#include "ionic_internal.h"

COUNTER(ionic_rx_mode_invalid, "RX_MODE_SET with unknown bits");
COUNTER(ionic_filter_exists, "RX_FILTER_ADD of a filter that is in place");
COUNTER(ionic_filter_full, "RX_FILTER_ADD beyond the MAC filters that there are");
COUNTER(ionic_filter_invalid, "RX_FILTER_ADD with an impossible VLAN or unknown kind");
COUNTER(ionic_filter_unsupported, "RX_FILTER_ADD of a kind that the device does not have");
COUNTER(ionic_filter_unknown_id, "RX_FILTER_DEL of a filter that does not exist");

#define MAC_ID_BASE  1u
#define VLAN_ID_BASE 0x10000u

#define RX_MODES                                                                                   \
	(IONIC_RX_MODE_UNICAST | IONIC_RX_MODE_MULTICAST | IONIC_RX_MODE_BROADCAST |               \
	 IONIC_RX_MODE_PROMISC | IONIC_RX_MODE_ALLMULTI | IONIC_RX_MODE_RDMA_SNIFFER)

static_assert(MAC_ID_BASE + IONIC_MAX_MAC_FILTERS <= VLAN_ID_BASE, "ids are unique");
static_assert(IONIC_MAX_MAC_FILTERS < UINT8_MAX, "a bucket holds slot + 1");

/* ---- the table of MAC addresses ---- */

static unsigned mac_bucket(const uint8_t mac[6])
{
	uint32_t value =
	        (uint32_t)mac[2] << 24 | (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5];

	value ^= (uint32_t)mac[0] << 8 | mac[1];
	value *= 2654435761u; /* spreads the low bytes, which differ most (Knuth) */
	return value >> 16 & (IONIC_MAC_BUCKETS - 1);
}

static unsigned next_bucket(unsigned bucket)
{
	return (bucket + 1) & (IONIC_MAC_BUCKETS - 1);
}

/* The slot of the filter, or -1. At most half of the buckets are taken, so a free one ends it. */
static int mac_find(const struct ionic_filters *filters, const uint8_t mac[6])
{
	for (unsigned b = mac_bucket(mac); filters->bucket[b]; b = next_bucket(b)) {
		int slot = filters->bucket[b] - 1;

		if (memcmp(filters->mac[slot].mac, mac, 6) == 0)
			return slot;
	}
	return -1;
}

static void mac_hash(struct ionic_filters *filters, unsigned slot)
{
	unsigned b = mac_bucket(filters->mac[slot].mac);

	while (filters->bucket[b])
		b = next_bucket(b);
	filters->bucket[b] = (uint8_t)(slot + 1);
}

/* Returns the slot, or -1 when all are taken. */
static int mac_add(struct ionic_filters *filters, const uint8_t mac[6])
{
	for (unsigned slot = 0; slot < IONIC_MAX_MAC_FILTERS; slot++) {
		if (filters->mac[slot].used)
			continue;
		memcpy(filters->mac[slot].mac, mac, 6);
		filters->mac[slot].used = true;
		filters->mac_count++;
		mac_hash(filters, slot);
		return (int)slot;
	}
	assert(filters->mac_count == IONIC_MAX_MAC_FILTERS);
	return -1;
}

/* A hole in a chain of buckets would hide what comes behind it: build the table anew. */
static void mac_del(struct ionic_filters *filters, unsigned slot)
{
	filters->mac[slot].used = false;
	filters->mac_count--;
	memset(filters->bucket, 0, sizeof(filters->bucket));
	for (unsigned i = 0; i < IONIC_MAX_MAC_FILTERS; i++) {
		if (filters->mac[i].used)
			mac_hash(filters, i);
	}
}

static bool vlan_has(const struct ionic_filters *filters, unsigned vid)
{
	return filters->vlan[vid / 64] >> (vid % 64) & 1;
}

static void vlan_flip(struct ionic_filters *filters, unsigned vid)
{
	filters->vlan[vid / 64] ^= UINT64_C(1) << (vid % 64);
}

void ionic_filters_clear(struct ionic_filters *filters)
{
	memset(filters, 0, sizeof(*filters));
}

/* ---- receiving ---- */

static bool mac_accept(const struct ionic_filters *filters, const uint8_t dst[6])
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	unsigned mode = filters->rx_mode;

	if (memcmp(dst, broadcast, 6) == 0)
		return mode & IONIC_RX_MODE_BROADCAST;
	if (!(dst[0] & 1))
		return mode & IONIC_RX_MODE_UNICAST && mac_find(filters, dst) >= 0;
	if (mode & IONIC_RX_MODE_ALLMULTI)
		return true;
	return mode & IONIC_RX_MODE_MULTICAST && mac_find(filters, dst) >= 0;
}

bool ionic_filter_has_mac(const struct ionic_filters *filters, const uint8_t mac[6])
{
	return mac_find(filters, mac) >= 0;
}

bool ionic_filter_accept(const struct ionic_dev *dev, const uint8_t dst[6],
                         const struct net_headers *headers)
{
	const struct ionic_filters *filters = &dev->lif.filters;

	if (filters->rx_mode & IONIC_RX_MODE_PROMISC)
		return true;
	if (!mac_accept(filters, dst))
		return false;
	/* Only customer tags are filtered: that is what the feature promises the stack. */
	if (!(dev->lif.features & IONIC_FEATURE_VLAN_RX_FILTER) || headers->vlan_tags == 0 ||
	    headers->vlan_tpid != 0x8100)
		return true;
	return vlan_has(filters, headers->vlan_tci & 0xfff);
}

/* ---- commands ---- */

enum ionic_status ionic_cmd_rx_mode_set(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                        union ionic_comp *comp)
{
	uint16_t mode = le16_get(cmd->rx_mode_set.rx_mode);

	(void)comp;
	if (mode & ~RX_MODES)
		return ionic_refuse(&ionic_rx_mode_invalid, IONIC_RC_EINVAL);
	dev->lif.filters.rx_mode = mode;
	return IONIC_RC_SUCCESS;
}

/* Of a filter that is in place the driver wants the id all the same (spec 5.5). */
static enum ionic_status add_done(union ionic_comp *comp, uint32_t id, bool existed)
{
	comp->rx_filter_add.filter_id = le32_make(id);
	if (existed)
		return ionic_refuse(&ionic_filter_exists, IONIC_RC_EEXIST);
	return IONIC_RC_SUCCESS;
}

static enum ionic_status add_vlan(struct ionic_filters *filters, unsigned vid,
                                  union ionic_comp *comp)
{
	bool existed;

	if (vid >= IONIC_MAX_VLAN_FILTERS)
		return ionic_refuse(&ionic_filter_invalid, IONIC_RC_EINVAL);
	existed = vlan_has(filters, vid);
	if (!existed) {
		vlan_flip(filters, vid);
		filters->vlan_count++;
	}
	return add_done(comp, VLAN_ID_BASE + vid, existed);
}

static enum ionic_status add_mac(struct ionic_filters *filters, const uint8_t mac[6],
                                 union ionic_comp *comp)
{
	int slot = mac_find(filters, mac);
	bool existed = slot >= 0;

	if (!existed)
		slot = mac_add(filters, mac);
	if (slot < 0)
		return ionic_refuse(&ionic_filter_full, IONIC_RC_ENOSPC);
	return add_done(comp, MAC_ID_BASE + (unsigned)slot, existed);
}

enum ionic_status ionic_cmd_rx_filter_add(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                          union ionic_comp *comp)
{
	struct ionic_filters *filters = &dev->lif.filters;

	switch (le16_get(cmd->rx_filter_add.match)) {
	case IONIC_RX_FILTER_VLAN:
		return add_vlan(filters, le16_get(cmd->rx_filter_add.vlan), comp);
	case IONIC_RX_FILTER_MAC:
		return add_mac(filters, cmd->rx_filter_add.mac, comp);
	case IONIC_RX_FILTER_MAC_VLAN: /* no driver sends it */
	case IONIC_RX_FILTER_STEER:    /* part of time stamping */
		return ionic_refuse(&ionic_filter_unsupported, IONIC_RC_ENOSUPP);
	default:
		return ionic_refuse(&ionic_filter_invalid, IONIC_RC_EINVAL);
	}
}

enum ionic_status ionic_cmd_rx_filter_del(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                          union ionic_comp *comp)
{
	struct ionic_filters *filters = &dev->lif.filters;
	uint32_t id = le32_get(cmd->rx_filter_del.filter_id);
	uint32_t slot = id - MAC_ID_BASE, vid = id - VLAN_ID_BASE;

	(void)comp;
	if (slot < IONIC_MAX_MAC_FILTERS && filters->mac[slot].used) {
		mac_del(filters, slot);
	} else if (vid < IONIC_MAX_VLAN_FILTERS && vlan_has(filters, vid)) {
		vlan_flip(filters, vid);
		filters->vlan_count--;
	} else {
		return ionic_refuse(&ionic_filter_unknown_id, IONIC_RC_ENOENT);
	}
	return IONIC_RC_SUCCESS;
}
