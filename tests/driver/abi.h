/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest's driver knows of the device: registers, commands and rings, as spec ionic-ethernet
 * states them.
 *
 * Written from the specification and not shared with the server, so that a slip on one side shows
 * as a disagreement. Section numbers are those of spec ionic-ethernet.
 */
#ifndef ERNIC_TESTS_DRIVER_ABI_H
#define ERNIC_TESTS_DRIVER_ABI_H

#include <assert.h>
#include <stdint.h>

#include "base/bytes.h"

/* ---- BAR0 (2.1 to 2.4) ---- */

#define REG_SIGNATURE      0x000
#define REG_ASIC_TYPE      0x005
#define REG_ASIC_REV       0x006
#define REG_FW_STATUS      0x007
#define REG_FW_HEARTBEAT   0x008
#define REG_FW_VERSION     0x00c
#define REG_SERIAL         0x02c
#define REG_DEVCMD_DB      0x800
#define REG_DEVCMD_DONE    0x804
#define REG_DEVCMD_CMD     0x808
#define REG_DEVCMD_COMP    0x848
#define REG_DEVCMD_DATA    0x888
#define REG_DEVCMD_DATA_SZ 1912
#define REG_INTR_BASE      0x2000
#define REG_INTR_STRIDE    32
#define REG_INTR_COAL_INIT 0x00
#define REG_INTR_MASK      0x04
#define REG_INTR_CREDITS   0x08
#define REG_INTR_ASSERT    0x0c

#define DEV_SIGNATURE      0x44455649u
#define FW_RUNNING         0x01
#define FW_GENERATION_MASK 0xf0
#define FW_GONE            0xff

#define CREDITS_UNMASK     0x10000u
#define CREDITS_RESET_COAL 0x20000u

/* ---- commands (3.1, 3.2) ---- */

enum cmd_opcode {
	CMD_NOP = 0,
	CMD_IDENTIFY = 1,
	CMD_INIT = 2,
	CMD_RESET = 3,
	CMD_PORT_IDENTIFY = 10,
	CMD_PORT_INIT = 11,
	CMD_PORT_RESET = 12,
	CMD_PORT_SETATTR = 14,
	CMD_LIF_IDENTIFY = 20,
	CMD_LIF_INIT = 21,
	CMD_LIF_RESET = 22,
	CMD_LIF_GETATTR = 23,
	CMD_LIF_SETATTR = 24,
	CMD_RX_MODE_SET = 30,
	CMD_RX_FILTER_ADD = 31,
	CMD_RX_FILTER_DEL = 32,
	CMD_Q_IDENTIFY = 39,
	CMD_Q_INIT = 40,
	CMD_Q_CONTROL = 41,
	CMD_RDMA_RESET_LIF = 50,
};

enum cmd_status {
	RC_SUCCESS = 0,
	RC_EVERSION = 1,
	RC_EOPCODE = 2,
	RC_EIO = 3,
	RC_EPERM = 4,
	RC_EQID = 5,
	RC_EQTYPE = 6,
	RC_ENOENT = 7,
	RC_EAGAIN = 9,
	RC_ENOMEM = 10,
	RC_EFAULT = 11,
	RC_EBUSY = 12,
	RC_EEXIST = 13,
	RC_EINVAL = 14,
	RC_ENOSPC = 15,
	RC_ERANGE = 16,
	RC_BAD_ADDR = 17,
};

/* Attributes of LIF_SETATTR and LIF_GETATTR (5.3), PORT_SETATTR (3.6). */
enum lif_attr { LIF_STATE, LIF_NAME, LIF_MTU, LIF_MAC, LIF_FEATURES, LIF_RSS, LIF_STATS_CTRL };
enum port_attr { PORT_STATE, PORT_SPEED, PORT_MTU, PORT_AUTONEG, PORT_FEC, PORT_PAUSE };

/* A command is 64 bytes, a completion 16 bytes, on both paths (3.3). */
struct cmd {
	uint8_t opcode;
	union {
		uint8_t raw[63];
		struct {
			uint8_t ver;
		} identify;
		struct {
			uint8_t index;
			uint8_t attr;
			uint8_t reserved;
			uint8_t value[4];
		} port_setattr;
		struct {
			uint8_t index;
			uint8_t reserved[6];
			le64 info_pa;
		} port_init;
		struct {
			uint8_t type;
			uint8_t ver;
		} lif_identify;
		struct {
			uint8_t type;
			le16 index;
			uint8_t reserved[4];
			le64 info_pa;
		} lif_init;
		struct {
			uint8_t attr;
			le16 index;
			union {
				uint8_t state;
				char name[16];
				le32 mtu;
				uint8_t mac[6];
				le64 features;
				struct {
					le16 types;
					uint8_t key[40];
					uint8_t reserved[6];
					le64 addr;
				} rss;
			};
		} lif_attr;
		struct {
			uint8_t reserved;
			le16 lif_index;
			le16 rx_mode;
		} rx_mode;
		struct {
			uint8_t qtype;
			le16 lif_index;
			le32 qid;
			le16 match;
			union {
				le16 vlan;
				uint8_t mac[6];
			};
		} filter_add;
		struct {
			uint8_t reserved;
			le16 lif_index;
			le32 id;
		} filter_del;
		struct {
			uint8_t reserved;
			le16 lif_type;
			uint8_t type;
			uint8_t ver;
		} q_identify;
		struct {
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
			uint8_t type;
			le16 lif_index;
			le32 index;
			uint8_t oper;
		} q_control;
	};
} __attribute__((packed));
static_assert(sizeof(struct cmd) == 64, "command, 3.3");

struct comp {
	uint8_t status;
	uint8_t ver;
	union {
		le16 comp_index; /* AdminQ */
		le16 hw_index;   /* LIF_INIT */
	};
	union {
		uint8_t raw[11];
		le64 features;
		uint8_t mac[6];
		le32 filter_id;
		struct {
			le32 hw_index;
			uint8_t hw_type;
		} q_init;
	};
	uint8_t color;
} __attribute__((packed));
static_assert(sizeof(struct comp) == 16, "completion, 3.3");

#define COLOR_MASK 0x80

#define Q_INIT_IRQ 0x01
#define Q_INIT_ENA 0x02
#define Q_INIT_SG  0x04

#define RX_MODE_UNICAST   0x01
#define RX_MODE_MULTICAST 0x02
#define RX_MODE_BROADCAST 0x04
#define RX_MODE_PROMISC   0x08
#define RX_MODE_ALLMULTI  0x10
#define RX_MODE_DEFAULT   0x07

#define FILTER_VLAN 0
#define FILTER_MAC  1

/* ---- identities (4.1 to 4.5), offsets in the data window ---- */

#define DEV_ID_NINTRS     12
#define DEV_ID_NDBPGS     16
#define DEV_ID_COAL_MULT  20
#define DEV_ID_COAL_DIV   24
#define LIF_ID_CAPS       0
#define LIF_ID_MAX_UCAST  12
#define LIF_ID_RSS_TBL_SZ 20
#define LIF_ID_MIN_FRAME  22
#define LIF_ID_MAX_FRAME  26
#define LIF_ID_QCOUNT     176 /* le32 by queue type */
#define LIF_ID_EQ_COUNT   476
#define PORT_ID_CONFIG    128
#define PORT_CONFIG_SIZE  256
#define Q_ID_VERSION      0
#define Q_ID_SG_DESC_SZ   20

#define LIF_CAP_ETH  1
#define LIF_CAP_RDMA 2

/* Feature bits (4.7). */
#define FEAT_VLAN_TX     (1u << 0)
#define FEAT_VLAN_STRIP  (1u << 1)
#define FEAT_VLAN_FILTER (1u << 2)
#define FEAT_RX_HASH     (1u << 3)
#define FEAT_RX_CSUM     (1u << 4)
#define FEAT_TX_SG       (1u << 5)
#define FEAT_TX_CSUM     (1u << 7)
#define FEAT_TSO4        (1u << 8)
#define FEAT_TSO6        (1u << 9)
#define FEAT_TSO_ECN     (1u << 10)
#define FEAT_LINUX       0x1ffbfu /* what the driver asks for */

/* ---- queues (5, 6, 7, 8) ---- */

enum queue_type { Q_ADMIN, Q_NOTIFY, Q_RX, Q_TX };

#define ADMINQ_LOG2  4
#define NOTIFYQ_LOG2 6

#define DB_VALUE(qid, index) ((uint64_t)(qid) << 24 | (uint64_t)(index))

struct notify_event {
	le64 eid;
	le16 ecode;
	uint8_t data[54];
} __attribute__((packed));
static_assert(sizeof(struct notify_event) == 64, "event, 5.4");

#define EVENT_LINK_CHANGE 1
#define EVENT_RESET       2

struct tx_desc {
	le64 cmd;
	le16 len;
	le16 vlan_tci;
	le16 csum_start;  /* TSO: hdr_len */
	le16 csum_offset; /* TSO: mss */
};
static_assert(sizeof(struct tx_desc) == 16, "TX descriptor, 7.2");

#define TX_CMD(opcode, flags, nsge, addr)                                                          \
	((uint64_t)(flags) | (uint64_t)(opcode) << 4 | (uint64_t)(nsge) << 8 |                     \
	 (uint64_t)(addr) << 12)
enum tx_opcode { TX_CSUM_NONE, TX_CSUM_PARTIAL, TX_CSUM_HW, TX_TSO };
#define TX_FLAG_VLAN  0x1
#define TX_FLAG_ENCAP 0x2
#define TX_FLAG_SOT   0x4
#define TX_FLAG_EOT   0x8

struct sg_elem {
	le64 addr;
	le16 len;
	uint8_t reserved[6];
};
static_assert(sizeof(struct sg_elem) == 16, "SG element, 7.2");

#define TX_SG_MAX    15
#define TX_SG_STRIDE 256
#define RX_SG_MAX    8
#define RX_SG_STRIDE 128

struct rx_desc {
	uint8_t opcode; /* 0 one buffer, 1 with SG */
	uint8_t reserved[5];
	le16 len;
	le64 addr;
};
static_assert(sizeof(struct rx_desc) == 16, "RX descriptor, 8.1");

struct rx_comp {
	uint8_t status;
	uint8_t num_sg;
	le16 comp_index;
	le32 rss_hash;
	be16 csum; /* memory order is that of the network */
	le16 vlan_tci;
	le16 len;
	uint8_t csum_flags;
	uint8_t type_color;
};
static_assert(sizeof(struct rx_comp) == 16, "RX completion, 8.4");

#define RX_CSUM_TCP_OK  0x01
#define RX_CSUM_TCP_BAD 0x02
#define RX_CSUM_UDP_OK  0x04
#define RX_CSUM_UDP_BAD 0x08
#define RX_CSUM_IP_OK   0x10
#define RX_CSUM_IP_BAD  0x20
#define RX_CSUM_VLAN    0x40
#define RX_CSUM_VALID   0x80

enum rx_type {
	RX_NON_IP = 0x00,
	RX_IPV4 = 0x01,
	RX_IPV4_TCP = 0x03,
	RX_IPV4_UDP = 0x05,
	RX_IPV6 = 0x08,
	RX_IPV6_TCP = 0x18,
	RX_IPV6_UDP = 0x28,
};

/* RSS types (9.1). */
#define RSS_IPV4_TCP 0x02
#define RSS_ALL      0x3f
#define RSS_KEY_SIZE 40

/* ---- blocks in guest memory (10.1, 10.2) ---- */

#define LIF_INFO_SIZE        1344
#define LIF_INFO_LINK_STATUS 266
#define LIF_INFO_LINK_SPEED  268
#define LIF_INFO_LINK_DOWNS  272
#define LIF_INFO_STATS       320
#define PORT_INFO_SIZE       2208
#define PORT_INFO_PHY        317
#define PORT_INFO_PID        318
#define PORT_INFO_STATS      576

/* Indices of LIF counters (10.4). */
enum lif_stat {
	LIF_RX_UCAST_BYTES = 0,
	LIF_RX_UCAST_PACKETS = 1,
	LIF_RX_MCAST_PACKETS = 3,
	LIF_RX_BCAST_BYTES = 4,
	LIF_RX_BCAST_PACKETS = 5,
	LIF_RX_UCAST_DROP_BYTES = 8,
	LIF_RX_UCAST_DROP_PACKETS = 9,
	LIF_RX_DMA_ERROR = 14,
	LIF_TX_UCAST_BYTES = 16,
	LIF_TX_UCAST_PACKETS = 17,
	LIF_TX_MCAST_PACKETS = 19,
	LIF_TX_BCAST_PACKETS = 21,
	LIF_TX_DMA_ERROR = 30,
	LIF_RX_QUEUE_EMPTY = 33,
	LIF_RX_DESC_DATA_ERROR = 36,
	LIF_TX_QUEUE_DISABLED = 40,
	LIF_TX_DESC_FETCH_ERROR = 42,
	LIF_TX_DESC_DATA_ERROR = 43,
};

/* Indices of port counters (10.5). */
enum port_stat {
	PORT_RX_OK = 0,
	PORT_RX_ALL = 1,
	PORT_RX_BAD_ALL = 3,
	PORT_RX_OCTETS_OK = 4,
	PORT_RX_UNICAST = 6,
	PORT_RX_OVERSIZED = 12,
	PORT_RX_TOO_LONG = 17,
	PORT_RX_VLAN_GOOD = 18,
	PORT_RX_DROPPED = 19,
	PORT_RX_64B = 21,
	PORT_TX_OK = 32,
	PORT_TX_OCTETS_OK = 35,
	PORT_TX_UNICAST = 37,
	PORT_TX_VLAN = 42,
	PORT_TX_64B = 44,
	PORT_TX_1024_1518 = 49,
	PORT_STAT_COUNT = 89,
};

#endif
