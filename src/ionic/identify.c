/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The identities: what device, LIF, port and queues say about themselves (spec ionic-ethernet 4).
 * Each is written over the data window of the device command, whose rest is zeroed.
 */
#include "ionic_internal.h"

COUNTER(ionic_identify_version, "IDENTIFY commands of a driver that knows no version of ours");
COUNTER(ionic_identify_type, "LIF_IDENTIFY or Q_IDENTIFY for a LIF type that does not exist");
COUNTER(ionic_q_identify_type, "Q_IDENTIFY for a queue type that does not exist");
COUNTER(ionic_q_identify_version, "Q_IDENTIFY of a driver that knows no version of ours");

/* Coalescing units: 3 us each, the default of 64 us becomes 21 of at most 63 (spec 2.4). */
#define INTR_COAL_MULT 1
#define INTR_COAL_DIV  3

static void data_put(struct ionic_dev *dev, const void *identity, size_t size)
{
	assert(size <= sizeof(dev->devcmd.data));
	memcpy(dev->devcmd.data, identity, size);
	memset(dev->devcmd.data + size, 0, sizeof(dev->devcmd.data) - size);
}

/* ---- device ---- */

enum ionic_status ionic_cmd_identify(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                     union ionic_comp *comp)
{
	struct ionic_dev_identity identity = {
	        .version = IONIC_IDENTITY_VERSION,
	        .nports = 1,
	        .nlifs = le32_make(1),
	        .nintrs = le32_make(dev->profile.intr_vectors),
	        .ndbpgs_per_lif = le32_make(IONIC_DB_PAGES),
	        .intr_coal_mult = le32_make(INTR_COAL_MULT),
	        .intr_coal_div = le32_make(INTR_COAL_DIV),
	};

	/* The driver sends the highest version it knows; the layout grows at its end. */
	if (cmd->identify.ver == 0)
		return ionic_refuse(&ionic_identify_version, IONIC_RC_EVERSION);
	if (cmd->identify.ver < identity.version)
		identity.version = cmd->identify.ver;
	comp->identify.ver = identity.version;
	data_put(dev, &identity, sizeof(identity));
	return IONIC_RC_SUCCESS;
}

/* ---- LIF ---- */

uint64_t ionic_lif_features_offered(const struct ionic_profile *profile)
{
	uint64_t features = 0;

	if (profile->vlan)
		features |= IONIC_FEATURE_VLAN_TX_TAG | IONIC_FEATURE_VLAN_RX_STRIP |
		            IONIC_FEATURE_VLAN_RX_FILTER;
	if (profile->rx_hash)
		features |= IONIC_FEATURE_RX_HASH;
	if (profile->rx_csum)
		features |= IONIC_FEATURE_RX_CSUM;
	if (profile->sg)
		features |= IONIC_FEATURE_TX_SG | IONIC_FEATURE_RX_SG;
	if (profile->tx_csum)
		features |= IONIC_FEATURE_TX_CSUM;
	if (profile->tso)
		features |= IONIC_FEATURE_TSO | IONIC_FEATURE_TSO_IPV6 | IONIC_FEATURE_TSO_ECN;
	return features;
}

void ionic_lif_fill_config(const struct ionic_dev *dev, struct ionic_lif_config *config)
{
	const struct ionic_lif *lif = &dev->lif;
	uint32_t queues = dev->profile.eth_queues;

	*config = (struct ionic_lif_config){
	        .state = lif->initialized ? IONIC_LIF_ENABLE : IONIC_LIF_DISABLE,
	        .mtu = le32_make(lif->mtu),
	        .features = le64_make(lif->features),
	        .queue_count[IONIC_QTYPE_ADMINQ] = le32_make(1),
	        .queue_count[IONIC_QTYPE_NOTIFYQ] = le32_make(1),
	        .queue_count[IONIC_QTYPE_RXQ] = le32_make(queues),
	        .queue_count[IONIC_QTYPE_TXQ] = le32_make(queues),
	};
	memcpy(config->name, lif->name, sizeof(config->name));
	memcpy(config->mac, lif->mac, sizeof(config->mac));
}

enum ionic_status ionic_cmd_lif_identify(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                         union ionic_comp *comp)
{
	struct ionic_lif_identity identity = {
	        .capabilities = le64_make(IONIC_LIF_CAP_ETH | IONIC_LIF_CAP_RDMA),
	        .eth =
	                {
	                        .version = 1,
	                        /* One table holds both kinds; the driver adds them up (spec 4.2).
	                         */
	                        .max_ucast_filters = le32_make(IONIC_MAX_MAC_FILTERS),
	                        .max_mcast_filters = le32_make(IONIC_MAX_MAC_FILTERS),
	                        .rss_table_size = le16_make(IONIC_RSS_TABLE_SIZE),
	                        .min_frame_size = le32_make(64),
	                        .max_frame_size = le32_make(ionic_max_frame(dev)),
	                        .hwstamp_tx_modes = le64_make(1), /* off */
	                },
	};

	(void)comp;
	if (cmd->lif_identify.type != 0)
		return ionic_refuse(&ionic_identify_type, IONIC_RC_EINVAL);
	if (cmd->lif_identify.ver == 0)
		return ionic_refuse(&ionic_identify_version, IONIC_RC_EVERSION);
	ionic_lif_fill_config(dev, &identity.eth.config);
	identity.eth.config.features = le64_make(ionic_lif_features_offered(&dev->profile));
	ionic_rdma_fill_identity(&dev->profile, identity.rdma);
	data_put(dev, &identity, sizeof(identity));
	return IONIC_RC_SUCCESS;
}

/* ---- port ---- */

/* Link speeds in Mb/s (spec 10.3) and their lanes. */
static const struct {
	uint32_t mbps;
	uint8_t lanes;
} speeds[] = {
        {1000, 1},  {10000, 1},  {25000, 1},  {40000, 4},
        {50000, 2}, {100000, 4}, {200000, 4}, {400000, 4},
};

bool ionic_port_speed_valid(const struct ionic_profile *profile, uint32_t speed)
{
	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++) {
		if (speeds[i].mbps == speed)
			return speed <= profile->speed_mbps;
	}
	return false;
}

void ionic_port_default_config(const struct ionic_profile *profile,
                               struct ionic_port_config *config)
{
	uint32_t mtu = profile->mtu_max < 9000 ? profile->mtu_max : 9000;

	*config = (struct ionic_port_config){
	        .speed = le32_make(profile->speed_mbps),
	        .mtu = le32_make(mtu),
	        .state = IONIC_PORT_UP,
	        .fec_type = profile->speed_mbps >= 25000 ? IONIC_PORT_FEC_RS : IONIC_PORT_FEC_NONE,
	};
}

enum ionic_status ionic_cmd_port_identify(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                          union ionic_comp *comp)
{
	struct ionic_port_identity identity = {
	        .version = 1,
	        .type = 1, /* Ethernet */
	        .min_frame_size = le32_make(64),
	        .max_frame_size = le32_make(ionic_max_frame(dev)),
	        .fec_type = {IONIC_PORT_FEC_NONE, IONIC_PORT_FEC_FC, IONIC_PORT_FEC_RS},
	        .pause_type = {0, 1}, /* none, link pause */
	};
	size_t count = 0;

	(void)comp;
	(void)cmd; /* the version is sent as 0 (spec 3.6) */
	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++) {
		if (speeds[i].mbps > dev->profile.speed_mbps)
			break;
		identity.speeds[count++] = le32_make(speeds[i].mbps);
		identity.num_lanes = speeds[i].lanes;
	}
	identity.config = dev->eth_port.config;
	data_put(dev, &identity, sizeof(identity));
	return IONIC_RC_SUCCESS;
}

/* ---- queues ---- */

/* By logical type (spec Appendix A). TXQ version 1 is the one with 256-byte SG descriptors. */
static const struct {
	uint8_t version, supported;
	uint16_t features, desc_size, comp_size, sg_desc_size, max_sg_elems, sg_desc_stride;
} q_identities[IONIC_QTYPE_COUNT] = {
        [IONIC_QTYPE_ADMINQ] = {0, 0x01, IONIC_Q_FEATURE_CQ, 64, 16, 0, 0, 0},
        [IONIC_QTYPE_NOTIFYQ] = {0, 0x01, IONIC_Q_FEATURE_CQ, 4, 64, 0, 0, 0},
        [IONIC_QTYPE_RXQ] = {0, 0x01, IONIC_Q_FEATURE_CQ | IONIC_Q_FEATURE_SG, 16, 16, 128, 8, 8},
        [IONIC_QTYPE_TXQ] = {1, 0x02, IONIC_Q_FEATURE_CQ | IONIC_Q_FEATURE_SG, 16, 16, 256, 15, 16},
};

uint8_t ionic_q_version(enum ionic_qtype type)
{
	return q_identities[type].version;
}

enum ionic_status ionic_cmd_q_identify(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                       union ionic_comp *comp)
{
	uint8_t type = cmd->q_identify.type;
	struct ionic_q_identity identity = {.version = 0};

	if (le16_get(cmd->q_identify.lif_type) != 0)
		return ionic_refuse(&ionic_identify_type, IONIC_RC_EINVAL);
	if (type >= IONIC_QTYPE_COUNT)
		return ionic_refuse(&ionic_q_identify_type, IONIC_RC_EQTYPE);
	if (cmd->q_identify.ver < q_identities[type].version)
		return ionic_refuse(&ionic_q_identify_version, IONIC_RC_EVERSION);
	identity.version = q_identities[type].version;
	identity.supported = q_identities[type].supported;
	identity.features = le64_make(q_identities[type].features);
	identity.desc_size = le16_make(q_identities[type].desc_size);
	identity.comp_size = le16_make(q_identities[type].comp_size);
	identity.sg_desc_size = le16_make(q_identities[type].sg_desc_size);
	identity.max_sg_elems = le16_make(q_identities[type].max_sg_elems);
	identity.sg_desc_stride = le16_make(q_identities[type].sg_desc_stride);
	comp->q_identify.ver = identity.version;
	data_put(dev, &identity, sizeof(identity));
	return IONIC_RC_SUCCESS;
}
