/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the ionic room share. Stays inside the room.
 *
 * Who is who:
 *	dev.c		life of the device, BAR dispatch, reset, the work callback
 *	regs.c		table of BAR0 registers
 *	intr.c		interrupt sets and the credit model
 *	cmd.c		device command and AdminQ command tables; identify.c, lif.c, port.c, fw.c
 *			hold the handlers
 *	queue.c		what all Ethernet queues have in common: init, control, doorbell, completion
 *	adminq.c, notifyq.c, txq.c, rxq.c	what each kind of queue does
 *	filter.c	receive filters and modes
 *	stats.c		counters and their blocks in guest memory
 */
#ifndef ERNIC_IONIC_INTERNAL_H
#define ERNIC_IONIC_INTERNAL_H

#include "base/bytes.h"
#include "base/counter.h"
#include "base/log.h"
#include "ionic/ionic.h"
#include "ionic/ionic_if.h"
#include "ionic/stats.h"

/* ---- interrupts (spec 2.4) ---- */

struct ionic_intr {
	uint32_t coal_init, coal;
	bool mask, mask_assert;
	int32_t credits; /* completions the driver has not returned */
	int32_t since;   /* of these, posted since the last MSI-X was sent */
	uint64_t sent;   /* MSI-X so far */
};

/* COUNT completions were written to queues of interrupt INDEX. Ignores an index out of range. */
void ionic_intr_post(struct ionic_dev *dev, unsigned index, unsigned count);
void ionic_intr_reset_all(struct ionic_dev *dev);
uint32_t ionic_intr_read(struct ionic_dev *dev, unsigned index, unsigned reg);
void ionic_intr_write(struct ionic_dev *dev, unsigned index, unsigned reg, uint32_t value);

/* ---- queues (spec 3.9, 5, 7, 8) ---- */

enum ionic_qtype { IONIC_QTYPE_ADMINQ, IONIC_QTYPE_NOTIFYQ, IONIC_QTYPE_RXQ, IONIC_QTYPE_TXQ };
#define IONIC_QTYPE_COUNT 4

/* Doorbell slots (hw_type) of a page; the RDMA ones are spoken for (spec Appendix A). */
enum ionic_db_slot {
	IONIC_DB_RXQ = 0,
	IONIC_DB_TXQ = 1,
	IONIC_DB_ADMINQ = 2,
	IONIC_DB_RDMA_SQ = 3,
	IONIC_DB_RDMA_RQ = 4,
	IONIC_DB_RDMA_CQ = 5,
	IONIC_DB_RDMA_EQ = 6,
	IONIC_DB_RDMA_AQ = 7,
	IONIC_DB_NOTIFYQ = 8,
};

/*
 * A queue of the LIF. Life: absent -> (Q_INIT) disabled <-> (Q_CONTROL) enabled -> (Q_INIT)
 * replaced -> (LIF_RESET) absent. Doorbells count in every state but absent; descriptors are only
 * read while enabled.
 */
struct ionic_queue {
	struct ionic_dev *dev;
	enum ionic_qtype type;
	uint32_t index; /* logical, and hw_index too */
	bool initialized, enabled;
	bool raises; /* IRQ flag */
	bool has_sg; /* SG flag */
	uint16_t intr_index;
	uint32_t entries;                     /* power of two */
	uint64_t ring_base, cq_base, sg_base; /* guest addresses */
	uint32_t prod;                        /* from the doorbell, < entries */
	uint32_t cons;                        /* next descriptor to take, < entries */
	uint32_t cq_pos;                      /* next completion slot, < entries */
	uint8_t color;                        /* of the next completion: 0x80 or 0 */
	bool ready;                           /* on the device's list of queues with work */
	struct ionic_queue *ready_next;
	uint64_t descs, completions; /* since Q_INIT; for the stats file */
};

/* Descriptors that the guest has posted and the device has not taken. */
static inline uint32_t ionic_queue_posted(const struct ionic_queue *queue)
{
	return (queue->prod - queue->cons) & (queue->entries - 1);
}

static inline void ionic_queue_advance(struct ionic_queue *queue, uint32_t count)
{
	queue->cons = (queue->cons + count) & (queue->entries - 1);
	queue->descs += count;
}

/* Reads descriptor SLOT (< entries) of SIZE bytes. Returns 0 or a negative errno of guest_mem. */
int ionic_queue_read_desc(struct ionic_queue *queue, uint32_t slot, void *desc, size_t size);

/* Writes a 16-byte completion (color is added to its last byte) and credits the interrupt.
 * Returns 0 or a negative errno of guest_mem. */
int ionic_queue_complete(struct ionic_queue *queue, uint8_t comp[16]);

/* The queue, or NULL when the index is out of the profile's range. */
struct ionic_queue *ionic_queue_find(struct ionic_dev *dev, unsigned type, uint32_t index);

/* Puts a transmit or admin queue that has work on the device's list and schedules it. */
void ionic_queue_make_ready(struct ionic_queue *queue);

/* Handlers of Q_INIT and Q_CONTROL are in queue.c; these are the kind-specific parts of them. */
void ionic_txq_reset(struct ionic_queue *queue); /* drops the state of a half-gathered packet */

/* Runs a ready queue for one budget. Returns true when it has more to do. */
bool ionic_adminq_run(struct ionic_queue *queue);
bool ionic_txq_run(struct ionic_queue *queue);

#define IONIC_TX_BUDGET_DESCS 256
#define IONIC_TX_BUDGET_BYTES (512 * 1024)

/* ---- events ---- */

/* Posts LINK_CHANGE or RESET; nothing when there is no NotifyQ. */
void ionic_notifyq_link(struct ionic_dev *dev);
void ionic_notifyq_reset_event(struct ionic_dev *dev);

/* ---- receive filters (spec 5.5) ---- */

#define IONIC_MAX_MAC_FILTERS  128
#define IONIC_MAX_VLAN_FILTERS 4096

struct ionic_filters {
	uint16_t rx_mode;
	struct ionic_mac_filter {
		uint8_t mac[6];
		bool used;
	} mac[IONIC_MAX_MAC_FILTERS];
	unsigned mac_count;
	uint64_t vlan[4096 / 64]; /* bitmap of VLAN ids */
};

/* Whether the LIF takes the frame that starts with these headers. */
bool ionic_filter_accept(const struct ionic_dev *dev, const uint8_t dst[6],
                         const struct net_headers *headers);

/* ---- the LIF ---- */

struct ionic_lif {
	bool initialized;
	uint64_t info_addr; /* LIF info block in guest memory, 0 when none */
	uint64_t features;  /* accepted */
	uint32_t mtu;
	char name[16];
	uint8_t mac[6];
	struct ionic_filters filters;
	struct {
		uint16_t types;
		struct net_rss_key key;
		uint8_t table[128];
		bool valid; /* a table has arrived */
	} rss;
	struct ionic_queue adminq, notifyq;
	struct ionic_queue *rxq, *txq;     /* profile.eth_queues of each */
	struct ionic_txq_state *txq_state; /* one for each TXQ, txq.c */
	uint64_t event_id;                 /* of the last NotifyQ event */
};

/* ---- the port ---- */

struct ionic_port {
	bool initialized;
	uint64_t info_addr;
	struct ionic_port_config config;
	bool link_up; /* what the LIF info block says */
	uint16_t link_down_count;
};

/* ---- the device ---- */

struct ionic_dev {
	struct ionic_profile profile;
	struct loop *loop;
	struct guest_mem *mem;
	struct pci_irq *irq;
	struct net_port port; /* "guest" on the wire */
	char serial[32];
	uint8_t mac[6];

	struct ionic_devcmd_regs devcmd; /* image of BAR0 0x800..0xfff */
	bool devcmd_pending;
	uint8_t fw_status;
	uint32_t fw_heartbeat;
	bool fw_stalled;

	struct ionic_intr intr[IONIC_INTRS_MAX];
	struct ionic_lif lif;
	struct ionic_port eth_port;
	struct ionic_stats stats;

	struct loop_work work; /* device command, ready queues */
	struct ionic_queue *ready_first, **ready_end;
	struct loop_timer stats_timer;
	bool link_wanted;     /* what the operator set */
	bool publish_pending; /* the blocks in guest memory are to be rewritten in the next work */
};

/* Forgets LIF, port, queues and filters; fw_status stays (RESET command, FLR, disconnect). */
void ionic_dev_clear(struct ionic_dev *dev);
void ionic_lif_clear(struct ionic_dev *dev);

/* A command, by either path. CMD is a private copy; COMP is zeroed; status is the return value. */
enum ionic_status ionic_cmd_run(struct ionic_dev *dev, bool adminq, const union ionic_cmd *cmd,
                                union ionic_comp *comp);

/* The wire gave us a frame: net_port_ops.deliver of port "guest" (rxq.c). */
int ionic_rx_deliver(struct net_port *port, const struct net_frame *frame);

/* Features or queues changed: tell the wire which offloads the receive side takes (rxq.c). */
void ionic_rx_update_offloads(struct ionic_dev *dev);

#endif
