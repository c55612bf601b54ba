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
 *	sprom.c		the EEPROM of the transceiver
 *	rdma_*.c	the RDMA function; rdma_lif.h says which
 *	stats.c		counters and their blocks in guest memory
 *	state.c		the state of the device, for the stats file
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

/* Completions that the driver may not have seen: never fewer than there are. */
uint32_t ionic_intr_credits(const struct ionic_dev *dev, unsigned index);

/* The queue of the interrupt is gone, and with it what was announced. */
void ionic_intr_forget(struct ionic_dev *dev, unsigned index);

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

/* A doorbell of the queue: PROD is its new producer index. Message context. */
void ionic_queue_doorbell(struct ionic_queue *queue, uint32_t prod);

/* Back to absent; what the guest may still ring or post is then ignored. */
void ionic_queue_clear(struct ionic_queue *queue);

/* Allocates and frees lif.txq_state, one for each of profile.eth_queues. Returns 0 or -ENOMEM. */
int ionic_txq_create(struct ionic_dev *dev);
void ionic_txq_destroy(struct ionic_dev *dev); /* idempotent */

/* Runs a ready queue for one budget. Returns true when it has more to do. */
bool ionic_adminq_run(struct ionic_queue *queue);
bool ionic_txq_run(struct ionic_queue *queue);

#define IONIC_TX_BUDGET_DESCS 1024
#define IONIC_TX_BUDGET_BYTES (512 * 1024)

/* ---- events ---- */

/* Posts LINK_CHANGE or RESET; nothing when there is no NotifyQ. */
void ionic_notifyq_link(struct ionic_dev *dev);
void ionic_notifyq_reset_event(struct ionic_dev *dev);

/* ---- receive filters (spec 5.5) ---- */

#define IONIC_MAX_MAC_FILTERS  128
#define IONIC_MAX_VLAN_FILTERS 4096

/* MAC filters stand in slots, because a slot is the filter's id; the hash finds the slot. */
#define IONIC_MAC_BUCKETS (2 * IONIC_MAX_MAC_FILTERS)

struct ionic_filters {
	uint16_t rx_mode;
	struct ionic_mac_filter {
		uint8_t mac[6];
		bool used;
	} mac[IONIC_MAX_MAC_FILTERS];
	uint8_t bucket[IONIC_MAC_BUCKETS]; /* slot + 1, or 0; the next bucket after a collision */
	unsigned mac_count, vlan_count;
	uint64_t vlan[IONIC_MAX_VLAN_FILTERS / 64]; /* bitmap of VLAN ids */
};

void ionic_filters_clear(struct ionic_filters *filters);

/* Whether there is a filter for the address. */
bool ionic_filter_has_mac(const struct ionic_filters *filters, const uint8_t mac[6]);

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
		bool valid; /* a table has arrived; its entries are below profile.eth_queues */
	} rss;
	struct ionic_queue adminq, notifyq;
	struct ionic_queue *rxq, *txq;     /* profile.eth_queues of each */
	uint32_t rx_wanted;                /* buffers that a waiting frame needs, 0: none waits */
	uint32_t rx_waiting;               /* index of the queue that it waits for */
	struct ionic_txq_state *txq_state; /* one for each TXQ, txq.c */
	uint64_t event_id;                 /* of the last NotifyQ event */
};

/* ---- the port ---- */

struct ionic_port {
	bool initialized;
	uint64_t info_addr; /* port info block in guest memory, 0 when none */
	struct ionic_port_config config;
	bool link_up;        /* what the blocks in guest memory say */
	uint32_t link_speed; /* ... in Mb/s, 0 while down */
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
	bool fw_stalled;
	uint32_t fw_heartbeat; /* while stalled */
	bool fw_reset_pending; /* RESET event and restart in the next work */

	struct ionic_intr intr[IONIC_INTRS_MAX];
	struct ionic_lif lif;
	struct ionic_rdma *rdma; /* rdma_lif.h */
	struct ionic_port eth_port;
	struct ionic_stats stats;

	struct loop_work work; /* device command, ready queues */
	struct ionic_queue *ready_first, **ready_end;
	unsigned ready_count;
	struct loop_timer stats_timer;
	bool link_wanted;     /* what the operator set */
	bool link_pending;    /* the guest is to be told in the next work */
	bool link_dropped;    /* ... also when the link is up again by then */
	bool publish_pending; /* the blocks in guest memory are to be rewritten in the next work */

	/* What happened since the process started. */
	struct {
		uint64_t devcmds, admin_commands, doorbells, events;
		uint64_t clears; /* device state dropped, for whatever reason */
		uint64_t resets; /* ... by the client: function reset, machine reset, disconnect */
	} count;
};

/* Forgets LIF, port, queues and filters; fw_status stays (RESET command, FLR, disconnect). Any
 * context, also while a queue or a command is waiting for guest memory. */
void ionic_dev_clear(struct ionic_dev *dev);
void ionic_lif_clear(struct ionic_dev *dev);
void ionic_port_clear(struct ionic_dev *dev);

/* Work is to be done in this turn, or in the next one. */
void ionic_dev_schedule(struct ionic_dev *dev);

/* A block in guest memory came: keep it up to date from now on. */
void ionic_stats_start(struct ionic_dev *dev);

static inline bool ionic_fw_running(const struct ionic_dev *dev)
{
	return dev->fw_status & IONIC_FW_STATUS_RUNNING;
}

uint32_t ionic_fw_heartbeat(const struct ionic_dev *dev);
void ionic_fw_reset_event_run(struct ionic_dev *dev); /* work phase */

/* Registers of BAR0; any offset and SIZE 1..8 (spec 2). */
void ionic_regs_read(struct ionic_dev *dev, uint32_t offset, uint8_t *data, size_t size);
void ionic_regs_write(struct ionic_dev *dev, uint32_t offset, const uint8_t *data, size_t size);

/* ---- commands ---- */

/* Counts a refusal and is its status. */
static inline enum ionic_status ionic_refuse(struct counter *counter, enum ionic_status status)
{
	counter_inc(counter);
	return status;
}

/* Runs the pending device command and sets done. Work phase. */
void ionic_devcmd_run(struct ionic_dev *dev);

/* A command, by either path. CMD is a private copy; COMP is zeroed; status is the return value. */
enum ionic_status ionic_cmd_run(struct ionic_dev *dev, bool adminq, const union ionic_cmd *cmd,
                                union ionic_comp *comp);

/* The handlers. Those that return data write it to devcmd.data, and only when they succeed: the
 * window may hold the input of a retry (spec 2.3). */
typedef enum ionic_status ionic_cmd_fn(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                       union ionic_comp *comp);
ionic_cmd_fn ionic_cmd_identify, ionic_cmd_port_identify, ionic_cmd_lif_identify,
        ionic_cmd_q_identify;                                                   /* identify.c */
ionic_cmd_fn ionic_cmd_port_init, ionic_cmd_port_reset, ionic_cmd_port_setattr; /* port.c */
ionic_cmd_fn ionic_cmd_lif_init, ionic_cmd_lif_reset, ionic_cmd_lif_getattr,
        ionic_cmd_lif_setattr;                                                        /* lif.c */
ionic_cmd_fn ionic_cmd_rx_mode_set, ionic_cmd_rx_filter_add, ionic_cmd_rx_filter_del; /* filter.c */
ionic_cmd_fn ionic_cmd_devcmd_q_init, ionic_cmd_adminq_q_init, ionic_cmd_q_control;   /* queue.c */

/* ---- what the device says about itself ---- */

#define IONIC_FRAME_OVERHEAD (NET_ETH_HEADER + NET_VLAN_HEADER)

/* Largest frame of the port, without FCS: mtu_max + 18 (manual, NIC Profiles). */
static inline uint32_t ionic_max_frame(const struct ionic_dev *dev)
{
	return dev->profile.mtu_max + IONIC_FRAME_OVERHEAD;
}

/* Features that the profile offers (spec 4.7). */
uint64_t ionic_lif_features_offered(const struct ionic_profile *profile);
void ionic_lif_fill_config(const struct ionic_dev *dev, struct ionic_lif_config *config);
void ionic_port_default_config(const struct ionic_profile *profile,
                               struct ionic_port_config *config);
bool ionic_port_speed_valid(const struct ionic_profile *profile, uint32_t speed);

/* The version of the rings of a queue type; Q_INIT must name it (spec 4.5). */
uint8_t ionic_q_version(enum ionic_qtype type);

/* Transceiver kind and the content of its EEPROM (spec 10.3; sprom.c). */
void ionic_xcvr_fill(const struct ionic_profile *profile, const char *serial,
                     struct ionic_xcvr_status *xcvr);

/* Blocks in guest memory are aligned quadwords below the end of the 52 address bits (spec 1.1). */
#define IONIC_ADDR_END (UINT64_C(1) << 52)

static inline bool ionic_block_addr_valid(uint64_t addr)
{
	return addr % 8 == 0 && addr < IONIC_ADDR_END;
}

/* Write the parts of the blocks that are no counters, where the driver has given blocks. Work
 * phase. Return 0 or a negative errno of guest_mem. */
int ionic_lif_write_info(struct ionic_dev *dev); /* all of it, counters too */
int ionic_lif_write_status(struct ionic_dev *dev);
int ionic_port_write_status(struct ionic_dev *dev); /* config and status */

/* Brings blocks and driver up to date with the link. Work phase. */
void ionic_link_sync(struct ionic_dev *dev);

/* ---- RDMA (rdma_lif.c, rdma_stats.c) ---- */

/* Makes and ends dev->rdma. FABRIC may be NULL. Returns 0 or -ENOMEM. */
int ionic_rdma_create(struct ionic_dev *dev, struct rdma_fabric *fabric);
void ionic_rdma_destroy(struct ionic_dev *dev); /* idempotent */

/* Forgets all queues and objects, and writes no more to guest memory. Any context. */
void ionic_rdma_clear(struct ionic_dev *dev);

/* Executes commands and writes events. Work phase. */
void ionic_rdma_run(struct ionic_dev *dev);

/* A doorbell on PAGE. Returns false when SLOT is not one of an RDMA queue. Message context. */
bool ionic_rdma_doorbell(struct ionic_dev *dev, uint32_t page, unsigned slot, uint64_t value);

/* The MTU of the LIF is another one: so is the longest datagram. */
void ionic_rdma_mtu_changed(struct ionic_dev *dev);

/* The driver returned credits of an interrupt. */
void ionic_rdma_credits_returned(struct ionic_dev *dev);

/* struct ionic_rdma_identity. */
void ionic_rdma_fill_identity(const struct ionic_profile *profile, uint8_t identity[256]);

/* Copies the RDMA counters into dev->stats; makes them start at zero. */
void ionic_rdma_stats_sync(struct ionic_dev *dev);
void ionic_rdma_stats_restart(struct ionic_dev *dev);

ionic_cmd_fn ionic_cmd_rdma_reset_lif, ionic_cmd_rdma_create_eq, ionic_cmd_rdma_create_cq,
        ionic_cmd_rdma_create_adminq;

/* ---- receive ---- */

/* The wire gave us a frame: net_port_ops.deliver of port "guest" (rxq.c). */
int ionic_rx_deliver(struct net_port *port, const struct net_frame *frame);

/* Features or queues changed: tell the wire which offloads the receive side takes (rxq.c). */
void ionic_rx_update_offloads(struct ionic_dev *dev);

/* Buffers were posted: a frame may have waited for them (rxq.c). Message context. */
void ionic_rx_posted(struct ionic_queue *queue);

#endif
