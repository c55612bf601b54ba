/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ionic interface: what driver and device exchange by registers, rings and blocks of memory.
 *
 * Every number here is from the ionic Ethernet specification; the section stands beside it. All
 * fields have byte alignment (base/bytes.h), so that a structure is exactly its fields, also where
 * the interface is unaligned. The descriptors of the transmit and receive rings are in
 * ionic_desc.h.
 */
#ifndef ERNIC_IONIC_IF_H
#define ERNIC_IONIC_IF_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define IONIC_ASSERT_SIZE(type, size) static_assert(sizeof(type) == (size), #type)
#define IONIC_ASSERT_OFFSET(type, field, value)                                                    \
	static_assert(offsetof(type, field) == (value), #field)

/* ---- PCI function and BARs (spec 1, 2.1) ---- */

#define IONIC_PCI_VENDOR       0x1dd8
#define IONIC_PCI_DEVICE       0x1002
#define IONIC_PCI_SUBSYSTEM    0x5400
#define IONIC_PCI_CLASS        0x020000 /* Ethernet controller */
#define IONIC_BAR_REGS         0
#define IONIC_BAR_REGS_SIZE    0x10000
#define IONIC_BAR_DB           2
#define IONIC_DB_PAGE_SIZE     4096
#define IONIC_DB_PAGES         1024
#define IONIC_DB_SLOT_SIZE     8
#define IONIC_MSIX_TABLE       0x8000 /* in IONIC_BAR_REGS */
#define IONIC_MSIX_PBA         0xc000
#define IONIC_REG_DEV_INFO     0x0000
#define IONIC_REG_DEVCMD       0x0800
#define IONIC_REG_INTR_STATUS  0x1000
#define IONIC_REG_INTR_CONTROL 0x2000
#define IONIC_INTR_STRIDE      32

/* ---- device info (spec 2.2) ---- */

#define IONIC_DEV_INFO_SIGNATURE 0x44455649
#define IONIC_DEV_INFO_VERSION   1
#define IONIC_FW_STATUS_RUNNING  0x01
#define IONIC_FW_GENERATION_MASK 0xf0
#define IONIC_FW_GENERATION_STEP 0x10

struct ionic_dev_info {
	le32 signature;
	uint8_t version;
	uint8_t asic_type;
	uint8_t asic_rev;
	uint8_t fw_status;
	le32 fw_heartbeat;
	char fw_version[32];
	char serial_num[32];
	uint8_t reserved[948];
	le32 tick_low;
	le32 tick_high;
	uint8_t reserved2[1016];
};
IONIC_ASSERT_SIZE(struct ionic_dev_info, 2048);
IONIC_ASSERT_OFFSET(struct ionic_dev_info, fw_status, 0x007);
IONIC_ASSERT_OFFSET(struct ionic_dev_info, serial_num, 0x02c);
IONIC_ASSERT_OFFSET(struct ionic_dev_info, tick_low, 0x400);

/* ---- interrupt control (spec 2.4) ---- */

/* Offsets in a set. */
enum ionic_intr_reg {
	IONIC_INTR_COAL_INIT = 0x00,
	IONIC_INTR_MASK = 0x04,
	IONIC_INTR_CREDITS = 0x08,
	IONIC_INTR_MASK_ASSERT = 0x0c,
	IONIC_INTR_COAL = 0x10,
};

#define IONIC_INTR_CREDITS_COUNT      0xffff
#define IONIC_INTR_CREDITS_UNMASK     0x10000
#define IONIC_INTR_CREDITS_RESET_COAL 0x20000

/* ---- status codes (spec 3.2) ---- */

enum ionic_status {
	IONIC_RC_SUCCESS = 0,
	IONIC_RC_EVERSION = 1,
	IONIC_RC_EOPCODE = 2,
	IONIC_RC_EIO = 3,
	IONIC_RC_EPERM = 4,
	IONIC_RC_EQID = 5,
	IONIC_RC_EQTYPE = 6,
	IONIC_RC_ENOENT = 7,
	IONIC_RC_EINTR = 8,
	IONIC_RC_EAGAIN = 9,
	IONIC_RC_ENOMEM = 10,
	IONIC_RC_EFAULT = 11,
	IONIC_RC_EBUSY = 12,
	IONIC_RC_EEXIST = 13,
	IONIC_RC_EINVAL = 14,
	IONIC_RC_ENOSPC = 15,
	IONIC_RC_ERANGE = 16,
	IONIC_RC_BAD_ADDR = 17,
	IONIC_RC_DEV_CMD = 18,
	IONIC_RC_ENOSUPP = 19,
	IONIC_RC_ERROR = 29,
	IONIC_RC_ERDMA = 30,
	IONIC_RC_EVFID = 31,
	IONIC_RC_EBAD_FW = 32,
};

/* ---- commands (spec 3) ---- */

/* Opcodes (spec 3.1). */
enum ionic_opcode {
	IONIC_CMD_NOP = 0,
	IONIC_CMD_IDENTIFY = 1,
	IONIC_CMD_INIT = 2,
	IONIC_CMD_RESET = 3,
	IONIC_CMD_GETATTR = 4,
	IONIC_CMD_SETATTR = 5,
	IONIC_CMD_PORT_IDENTIFY = 10,
	IONIC_CMD_PORT_INIT = 11,
	IONIC_CMD_PORT_RESET = 12,
	IONIC_CMD_PORT_GETATTR = 13,
	IONIC_CMD_PORT_SETATTR = 14,
	IONIC_CMD_LIF_IDENTIFY = 20,
	IONIC_CMD_LIF_INIT = 21,
	IONIC_CMD_LIF_RESET = 22,
	IONIC_CMD_LIF_GETATTR = 23,
	IONIC_CMD_LIF_SETATTR = 24,
	IONIC_CMD_LIF_SETPHC = 25,
	IONIC_CMD_RX_MODE_SET = 30,
	IONIC_CMD_RX_FILTER_ADD = 31,
	IONIC_CMD_RX_FILTER_DEL = 32,
	IONIC_CMD_Q_IDENTIFY = 39,
	IONIC_CMD_Q_INIT = 40,
	IONIC_CMD_Q_CONTROL = 41,
	IONIC_CMD_RDMA_RESET_LIF = 50,
	IONIC_CMD_RDMA_CREATE_EQ = 51,
	IONIC_CMD_RDMA_CREATE_CQ = 52,
	IONIC_CMD_RDMA_CREATE_ADMINQ = 53,
	IONIC_CMD_VF_GETATTR = 60,
	IONIC_CMD_VF_SETATTR = 61,
	IONIC_CMD_VF_CTRL = 62,
	IONIC_CMD_DISCOVER_CMB = 80,
	IONIC_CMD_QOS_CLASS_IDENTIFY = 240,
	IONIC_CMD_QOS_CLASS_INIT = 241,
	IONIC_CMD_QOS_CLASS_RESET = 242,
	IONIC_CMD_QOS_CLASS_UPDATE = 243,
	IONIC_CMD_QOS_CLEAR_STATS = 244,
	IONIC_CMD_QOS_RESET = 245,
	IONIC_CMD_FW_DOWNLOAD = 252,
	IONIC_CMD_FW_CONTROL = 253,
	IONIC_CMD_FW_DOWNLOAD_V1 = 254,
	IONIC_CMD_FW_CONTROL_V1 = 255,
};

#define IONIC_CMD_SIZE  64
#define IONIC_COMP_SIZE 16

/* PORT_SETATTR attributes (spec 3.6). */
enum ionic_port_attr {
	IONIC_PORT_ATTR_STATE = 0,
	IONIC_PORT_ATTR_SPEED = 1,
	IONIC_PORT_ATTR_MTU = 2,
	IONIC_PORT_ATTR_AUTONEG = 3,
	IONIC_PORT_ATTR_FEC = 4,
	IONIC_PORT_ATTR_PAUSE = 5,
	IONIC_PORT_ATTR_LOOPBACK = 6,
	IONIC_PORT_ATTR_STATS_CTRL = 7,
};

enum ionic_port_state { IONIC_PORT_DOWN = 1, IONIC_PORT_UP = 2 };
enum ionic_port_fec { IONIC_PORT_FEC_NONE = 0, IONIC_PORT_FEC_FC = 1, IONIC_PORT_FEC_RS = 2 };

/* LIF_GETATTR and LIF_SETATTR attributes (spec 5.3). */
enum ionic_lif_attr {
	IONIC_LIF_ATTR_STATE = 0,
	IONIC_LIF_ATTR_NAME = 1,
	IONIC_LIF_ATTR_MTU = 2,
	IONIC_LIF_ATTR_MAC = 3,
	IONIC_LIF_ATTR_FEATURES = 4,
	IONIC_LIF_ATTR_RSS = 5,
	IONIC_LIF_ATTR_STATS_CTRL = 6,
	IONIC_LIF_ATTR_TXSTAMP = 7,
};

enum ionic_lif_state { IONIC_LIF_QUIESCE = 0, IONIC_LIF_ENABLE = 1, IONIC_LIF_DISABLE = 2 };

/* Q_INIT flags (spec 3.9). */
enum ionic_q_flag {
	IONIC_Q_FLAG_IRQ = 0x01,
	IONIC_Q_FLAG_ENA = 0x02,
	IONIC_Q_FLAG_SG = 0x04,
	IONIC_Q_FLAG_CMB = 0x10,
};

/* Ring sizes are powers of two, given by exponent (spec 3.9). */
#define IONIC_Q_RING_SIZE_MIN 2
#define IONIC_Q_RING_SIZE_MAX 16
#define IONIC_Q_RING_ALIGN    4096

enum ionic_q_oper { IONIC_Q_DISABLE = 0, IONIC_Q_ENABLE = 1 };

/* RX_MODE_SET bits (spec 5.5). */
enum ionic_rx_mode {
	IONIC_RX_MODE_UNICAST = 0x01,
	IONIC_RX_MODE_MULTICAST = 0x02,
	IONIC_RX_MODE_BROADCAST = 0x04,
	IONIC_RX_MODE_PROMISC = 0x08,
	IONIC_RX_MODE_ALLMULTI = 0x10,
	IONIC_RX_MODE_RDMA_SNIFFER = 0x20,
};

/* Kinds of receive filters (spec 5.5). */
enum ionic_rx_filter_match {
	IONIC_RX_FILTER_VLAN = 0,
	IONIC_RX_FILTER_MAC = 1,
	IONIC_RX_FILTER_MAC_VLAN = 2,
	IONIC_RX_FILTER_STEER = 0x10,
};

/* LIF features, negotiated by LIF_SETATTR FEATURES (spec 4.7). */
enum ionic_feature {
	IONIC_FEATURE_VLAN_TX_TAG = 1 << 0,
	IONIC_FEATURE_VLAN_RX_STRIP = 1 << 1,
	IONIC_FEATURE_VLAN_RX_FILTER = 1 << 2,
	IONIC_FEATURE_RX_HASH = 1 << 3,
	IONIC_FEATURE_RX_CSUM = 1 << 4,
	IONIC_FEATURE_TX_SG = 1 << 5,
	IONIC_FEATURE_RX_SG = 1 << 6,
	IONIC_FEATURE_TX_CSUM = 1 << 7,
	IONIC_FEATURE_TSO = 1 << 8,
	IONIC_FEATURE_TSO_IPV6 = 1 << 9,
	IONIC_FEATURE_TSO_ECN = 1 << 10,
	IONIC_FEATURE_TIMESTAMP = 1 << 20,
};

#define IONIC_RSS_KEY_SIZE   40
#define IONIC_RSS_TABLE_SIZE 128 /* entries of one byte (spec 4.2, Appendix A) */
#define IONIC_RSS_TYPES      0x3f

union ionic_cmd {
	uint8_t bytes[IONIC_CMD_SIZE];
	struct {
		uint8_t opcode;
		uint8_t specific;
		le16 lif_index; /* in LIF and queue commands */
	} any;
	struct {
		uint8_t opcode;
		uint8_t ver;
	} identify;
	struct {
		uint8_t opcode;
		uint8_t type;
	} init;
	struct { /* PORT_IDENTIFY, PORT_RESET */
		uint8_t opcode;
		uint8_t index;
		uint8_t ver;
	} port;
	struct {
		uint8_t opcode;
		uint8_t index;
		uint8_t reserved[6];
		le64 info_addr;
	} port_init;
	struct {
		uint8_t opcode;
		uint8_t index;
		uint8_t attr;
		uint8_t reserved;
		union {
			uint8_t state;
			le32 speed;
			le32 mtu;
			uint8_t an_enable;
			uint8_t fec_type;
			uint8_t pause_type;
			uint8_t loopback_mode;
		};
	} port_setattr;
	struct {
		uint8_t opcode;
		uint8_t type;
		uint8_t ver;
	} lif_identify;
	struct {
		uint8_t opcode;
		uint8_t type;
		le16 index;
		uint8_t reserved[4];
		le64 info_addr;
	} lif_init;
	struct {
		uint8_t opcode;
		uint8_t attr;
		le16 index;
		union {
			uint8_t state;
			char name[16];
			le32 mtu;
			uint8_t mac[6];
			le64 features;
			le16 txstamp_mode;
			struct {
				le16 types;
				uint8_t key[IONIC_RSS_KEY_SIZE];
				uint8_t reserved[6];
				le64 addr;
			} rss;
		};
	} lif_attr; /* GETATTR and SETATTR */
	struct {
		uint8_t opcode;
		uint8_t reserved;
		le16 lif_index;
		le16 rx_mode;
	} rx_mode_set;
	struct {
		uint8_t opcode;
		uint8_t qtype;
		le16 lif_index;
		le32 qid;
		le16 match;
		union {
			le16 vlan;
			uint8_t mac[6];
			le64 pkt_class;
		};
	} rx_filter_add;
	struct {
		uint8_t opcode;
		uint8_t reserved;
		le16 lif_index;
		le32 filter_id;
	} rx_filter_del;
	struct {
		uint8_t opcode;
		uint8_t reserved;
		le16 lif_type;
		uint8_t type;
		uint8_t ver;
	} q_identify;
	struct {
		uint8_t opcode;
		uint8_t reserved;
		le16 lif_index;
		uint8_t type;
		uint8_t ver;
		uint8_t reserved2[2];
		le32 index;
		le16 pid;
		le16 intr_index;
		le16 flags;
		uint8_t cos;
		uint8_t ring_size;
		le64 ring_base;
		le64 cq_ring_base;
		le64 sg_ring_base;
		uint8_t reserved3[12];
		le64 features;
	} q_init;
	struct {
		uint8_t opcode;
		uint8_t type;
		le16 lif_index;
		le32 index;
		uint8_t oper;
	} q_control;
	struct { /* RDMA_CREATE_EQ, _CQ, _ADMINQ (spec ionic-rdma 2.2) */
		uint8_t opcode;
		uint8_t reserved;
		le16 lif_index;
		le32 qid_ver;
		le32 cid; /* interrupt of an EQ, EQ of a CQ, CQ of an admin queue */
		le16 dbid;
		uint8_t depth_log2, stride_log2;
		le64 dma_addr;
	} rdma_queue;
};
IONIC_ASSERT_SIZE(union ionic_cmd, IONIC_CMD_SIZE);
IONIC_ASSERT_OFFSET(union ionic_cmd, any.lif_index, 2);
IONIC_ASSERT_OFFSET(union ionic_cmd, port_init.info_addr, 8);
IONIC_ASSERT_OFFSET(union ionic_cmd, port_setattr.state, 4);
IONIC_ASSERT_OFFSET(union ionic_cmd, lif_init.info_addr, 8);
IONIC_ASSERT_OFFSET(union ionic_cmd, lif_attr.state, 4);
IONIC_ASSERT_OFFSET(union ionic_cmd, lif_attr.rss.key, 6);
IONIC_ASSERT_OFFSET(union ionic_cmd, lif_attr.rss.addr, 52);
IONIC_ASSERT_OFFSET(union ionic_cmd, rx_mode_set.rx_mode, 4);
IONIC_ASSERT_OFFSET(union ionic_cmd, rx_filter_add.match, 8);
IONIC_ASSERT_OFFSET(union ionic_cmd, rx_filter_add.mac, 10);
IONIC_ASSERT_OFFSET(union ionic_cmd, rx_filter_del.filter_id, 4);
IONIC_ASSERT_OFFSET(union ionic_cmd, q_identify.type, 4);
IONIC_ASSERT_OFFSET(union ionic_cmd, q_init.index, 8);
IONIC_ASSERT_OFFSET(union ionic_cmd, q_init.ring_base, 20);
IONIC_ASSERT_OFFSET(union ionic_cmd, q_init.features, 56);
IONIC_ASSERT_OFFSET(union ionic_cmd, q_control.oper, 8);
IONIC_ASSERT_OFFSET(union ionic_cmd, rdma_queue.dma_addr, 16);

#define IONIC_COMP_COLOR 0x80 /* bit 7 of the last byte (spec 5.2) */

union ionic_comp {
	uint8_t bytes[IONIC_COMP_SIZE];
	struct {
		uint8_t status;
		uint8_t specific;
		le16 comp_index; /* AdminQ only */
		uint8_t reserved[11];
		uint8_t color; /* AdminQ only */
	} any;
	struct {
		uint8_t status;
		uint8_t ver;
	} identify;
	struct {
		uint8_t status;
		uint8_t reserved;
		le16 hw_index;
	} lif_init;
	struct {
		uint8_t status;
		uint8_t reserved;
		le16 comp_index;
		union {
			uint8_t mac[6];
			le64 features;
		};
	} lif_attr;
	struct {
		uint8_t status;
		uint8_t reserved;
		le16 comp_index;
		le32 filter_id;
	} rx_filter_add;
	struct {
		uint8_t status;
		uint8_t reserved;
		le16 comp_index;
		uint8_t ver;
	} q_identify;
	struct {
		uint8_t status;
		uint8_t reserved;
		le16 comp_index;
		le32 hw_index;
		uint8_t hw_type;
	} q_init;
};
IONIC_ASSERT_SIZE(union ionic_comp, IONIC_COMP_SIZE);
IONIC_ASSERT_OFFSET(union ionic_comp, any.comp_index, 2);
IONIC_ASSERT_OFFSET(union ionic_comp, any.color, 15);
IONIC_ASSERT_OFFSET(union ionic_comp, lif_attr.features, 4);
IONIC_ASSERT_OFFSET(union ionic_comp, q_init.hw_type, 8);

/* The device command block of BAR0 (spec 2.1). */
#define IONIC_DEVCMD_DATA_SIZE 1912

struct ionic_devcmd_regs {
	le32 doorbell;
	le32 done;
	union ionic_cmd cmd;
	union ionic_comp comp;
	uint8_t reserved[48];
	uint8_t data[IONIC_DEVCMD_DATA_SIZE];
};
IONIC_ASSERT_SIZE(struct ionic_devcmd_regs, 0x800);
IONIC_ASSERT_OFFSET(struct ionic_devcmd_regs, done, 0x004);
IONIC_ASSERT_OFFSET(struct ionic_devcmd_regs, cmd, 0x008);
IONIC_ASSERT_OFFSET(struct ionic_devcmd_regs, comp, 0x048);
IONIC_ASSERT_OFFSET(struct ionic_devcmd_regs, data, 0x088);

#define IONIC_DEVCMD_DOORBELL 1 /* written: run the command */
#define IONIC_DEVCMD_DONE     1

/* ---- identities (spec 4) ---- */

struct ionic_drv_identity { /* spec 3.5 */
	le32 os_type;
	le32 os_dist;
	char os_dist_str[128];
	le32 kernel_ver;
	char kernel_ver_str[32];
	char driver_ver_str[32];
};
IONIC_ASSERT_SIZE(struct ionic_drv_identity, 204);
IONIC_ASSERT_OFFSET(struct ionic_drv_identity, driver_ver_str, 172);

#define IONIC_IDENTITY_VERSION 2 /* spec 4.1 */

struct ionic_dev_identity { /* spec 4.1 */
	uint8_t version;
	uint8_t type;
	uint8_t reserved[2];
	uint8_t nports;
	uint8_t reserved2[3];
	le32 nlifs;
	le32 nintrs;
	le32 ndbpgs_per_lif;
	le32 intr_coal_mult;
	le32 intr_coal_div;
	le32 eq_count;
	le64 hwstamp_mask;
	le32 hwstamp_mult;
	le32 hwstamp_shift;
	le64 capabilities;
};
IONIC_ASSERT_SIZE(struct ionic_dev_identity, 56);
IONIC_ASSERT_OFFSET(struct ionic_dev_identity, nintrs, 12);
IONIC_ASSERT_OFFSET(struct ionic_dev_identity, capabilities, 48);

/* Logical queue types: their numbers in commands and their places in queue_count (spec 3.8). */
#define IONIC_QUEUE_COUNTS 16

struct ionic_lif_config { /* spec 4.2, 10.1 */
	uint8_t state;
	uint8_t reserved[3];
	char name[16];
	le32 mtu;
	uint8_t mac[6];
	le16 vlan;
	le64 features;
	le32 queue_count[IONIC_QUEUE_COUNTS];
	uint8_t reserved2[152];
};
IONIC_ASSERT_SIZE(struct ionic_lif_config, 256);
IONIC_ASSERT_OFFSET(struct ionic_lif_config, mtu, 20);
IONIC_ASSERT_OFFSET(struct ionic_lif_config, mac, 24);
IONIC_ASSERT_OFFSET(struct ionic_lif_config, features, 32);
IONIC_ASSERT_OFFSET(struct ionic_lif_config, queue_count, 40);

enum ionic_lif_capability { IONIC_LIF_CAP_ETH = 1 << 0, IONIC_LIF_CAP_RDMA = 1 << 1 };

struct ionic_lif_identity { /* spec 4.2, 4.3 */
	le64 capabilities;
	struct {
		uint8_t version;
		uint8_t reserved[3];
		le32 max_ucast_filters;
		le32 max_mcast_filters;
		le16 rss_table_size; /* entries */
		le32 min_frame_size;
		le32 max_frame_size;
		uint8_t reserved2[2];
		le64 hwstamp_tx_modes;
		le64 hwstamp_rx_filters;
		uint8_t reserved3[88];
		struct ionic_lif_config config;
	} eth;
	uint8_t rdma[256]; /* struct ionic_rdma_identity, rdma_if.h */
};
IONIC_ASSERT_SIZE(struct ionic_lif_identity, 648);
IONIC_ASSERT_OFFSET(struct ionic_lif_identity, eth.rss_table_size, 20);
IONIC_ASSERT_OFFSET(struct ionic_lif_identity, eth.min_frame_size, 22);
IONIC_ASSERT_OFFSET(struct ionic_lif_identity, eth.max_frame_size, 26);
IONIC_ASSERT_OFFSET(struct ionic_lif_identity, eth.hwstamp_tx_modes, 32);
IONIC_ASSERT_OFFSET(struct ionic_lif_identity, eth.config, 136);
IONIC_ASSERT_OFFSET(struct ionic_lif_identity, rdma, 392);

struct ionic_port_config { /* spec 4.4 */
	le32 speed;        /* Mb/s */
	le32 mtu;
	uint8_t state; /* enum ionic_port_state */
	uint8_t an_enable;
	uint8_t fec_type; /* enum ionic_port_fec */
	uint8_t pause_type;
	uint8_t loopback_mode;
	uint8_t reserved[243];
};
IONIC_ASSERT_SIZE(struct ionic_port_config, 256);
IONIC_ASSERT_OFFSET(struct ionic_port_config, state, 8);
IONIC_ASSERT_OFFSET(struct ionic_port_config, loopback_mode, 12);

struct ionic_port_identity { /* spec 4.4 */
	uint8_t version;
	uint8_t type;
	uint8_t num_lanes;
	uint8_t autoneg;
	le32 min_frame_size;
	le32 max_frame_size;
	uint8_t fec_type[4];
	uint8_t pause_type[2];
	uint8_t loopback_mode[2];
	le32 speeds[16];
	uint8_t reserved[44];
	struct ionic_port_config config;
};
IONIC_ASSERT_SIZE(struct ionic_port_identity, 384);
IONIC_ASSERT_OFFSET(struct ionic_port_identity, speeds, 20);
IONIC_ASSERT_OFFSET(struct ionic_port_identity, config, 128);

/* Features in queue identities (spec 4.5). */
enum ionic_q_feature {
	IONIC_Q_FEATURE_CQ = 1 << 0,
	IONIC_Q_FEATURE_SG = 1 << 1,
};

struct ionic_q_identity { /* spec 4.5 */
	uint8_t version;
	uint8_t supported;
	uint8_t reserved[6];
	le64 features;
	le16 desc_size;
	le16 comp_size;
	le16 sg_desc_size;
	le16 max_sg_elems;
	le16 sg_desc_stride;
};
IONIC_ASSERT_SIZE(struct ionic_q_identity, 26);
IONIC_ASSERT_OFFSET(struct ionic_q_identity, features, 8);
IONIC_ASSERT_OFFSET(struct ionic_q_identity, sg_desc_size, 20);

/* ---- blocks that the device keeps up to date in guest memory (spec 10) ---- */

struct ionic_lif_status { /* spec 10.1 */
	le64 eid;
	uint8_t port_num;
	uint8_t reserved;
	le16 link_status; /* 1: up */
	le32 link_speed;  /* Mb/s */
	le16 link_down_count;
	uint8_t reserved2[46];
};
IONIC_ASSERT_SIZE(struct ionic_lif_status, 64);
IONIC_ASSERT_OFFSET(struct ionic_lif_status, link_status, 10);
IONIC_ASSERT_OFFSET(struct ionic_lif_status, link_down_count, 16);

struct ionic_lif_info { /* spec 10.1 */
	struct ionic_lif_config config;
	struct ionic_lif_status status;
	le64 stats[128];
};
IONIC_ASSERT_SIZE(struct ionic_lif_info, 1344);
IONIC_ASSERT_OFFSET(struct ionic_lif_info, status, 256);
IONIC_ASSERT_OFFSET(struct ionic_lif_info, stats, 320);

#define IONIC_SPROM_PAGE 128 /* upper half of an EEPROM page */

struct ionic_xcvr_status { /* spec 10.2 */
	uint8_t state;
	uint8_t phy;
	le16 pid;
	uint8_t sprom[256]; /* lower half and page 0 */
};

struct ionic_port_status { /* spec 10.2 */
	le32 id;
	le32 speed;
	uint8_t status; /* enum ionic_port_state */
	le16 link_down_count;
	uint8_t fec_type;
	uint8_t reserved[48];
	struct ionic_xcvr_status xcvr;
};
IONIC_ASSERT_SIZE(struct ionic_port_status, 320);

struct ionic_port_info { /* spec 10.2 */
	struct ionic_port_config config;
	struct ionic_port_status status;
	le64 stats[89];
	uint8_t sprom_page1[IONIC_SPROM_PAGE];
	uint8_t sprom_page2[IONIC_SPROM_PAGE];
	uint8_t sprom_page17[IONIC_SPROM_PAGE];
	uint8_t reserved[376];
	uint8_t extra_stats[160]; /* the driver's all ones stay: "not counted" (spec 10.5) */
};
IONIC_ASSERT_SIZE(struct ionic_port_info, 2208);
IONIC_ASSERT_OFFSET(struct ionic_port_info, status, 256);
IONIC_ASSERT_OFFSET(struct ionic_port_info, status.link_down_count, 265);
IONIC_ASSERT_OFFSET(struct ionic_port_info, status.xcvr.phy, 317);
IONIC_ASSERT_OFFSET(struct ionic_port_info, status.xcvr.sprom, 320);
IONIC_ASSERT_OFFSET(struct ionic_port_info, stats, 576);
IONIC_ASSERT_OFFSET(struct ionic_port_info, sprom_page1, 1288);
IONIC_ASSERT_OFFSET(struct ionic_port_info, extra_stats, 2048);

/* ---- events (spec 5.4) ---- */

enum ionic_event_code { IONIC_EVENT_LINK_CHANGE = 1, IONIC_EVENT_RESET = 2 };

/* ring_base is that of unused descriptors of 4 bytes, padded to a page; the events follow. */
#define IONIC_NOTIFYQ_DESC_SIZE 4
#define IONIC_NOTIFYQ_PAGE      4096

union ionic_event {
	struct {
		le64 eid;
		le16 ecode;
	} any;
	struct {
		le64 eid;
		le16 ecode;
		le16 link_status;
		le32 link_speed; /* Mb/s */
	} link;
	struct {
		le64 eid;
		le16 ecode;
		uint8_t reset_code;
		uint8_t state;
	} reset;
	uint8_t bytes[64];
};
IONIC_ASSERT_SIZE(union ionic_event, 64);
IONIC_ASSERT_OFFSET(union ionic_event, link.link_speed, 12);

/* ---- doorbells (spec 6.2) ---- */

static inline uint32_t ionic_db_index(uint64_t value)
{
	return (uint32_t)(value & 0xffff);
}

static inline unsigned ionic_db_ring(uint64_t value)
{
	return (unsigned)(value >> 16 & 7);
}

static inline uint32_t ionic_db_qid(uint64_t value)
{
	return (uint32_t)(value >> 24 & 0xffffff);
}

#endif
