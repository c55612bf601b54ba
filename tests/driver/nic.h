/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A model of the guest's driver: brings the NIC up, posts, polls, sends and receives as the Linux
 * ionic driver does, over the real socket and at native speed.
 *
 * Tests, benchmarks and fault tools share it, so it asserts nothing: functions return 0 or a
 * negative errno. What only a broken device can cause is -EPROTO, and `complaint` says what it
 * was; silence is -ETIMEDOUT; the status of a command that the device refused is a positive enum
 * cmd_status. The structures are open: a test may look at them, and a hostile one may bend them.
 *
 * Life:  nic_open -> nic_probe -> nic_up -> (traffic) -> nic_down -> nic_remove -> nic_close
 * One thread at a time. Section numbers are those of spec ionic-ethernet.
 *
 *	nic.c		life: PCI, probe and removal step by step
 *	nic_cmd.c	registers, device commands, AdminQ, NotifyQ, interrupts
 *	nic_queue.c	queue pairs: memory, Q_INIT, Q_CONTROL, interface up and down
 *	nic_tx.c	transmit
 *	nic_rx.c	receive
 */
#ifndef ERNIC_TESTS_DRIVER_NIC_H
#define ERNIC_TESTS_DRIVER_NIC_H

#include "abi.h"
#include "ram.h"
#include "vfu.h"

#define NIC_PAIRS_MAX  64
#define NIC_FRAME_MAX  9700
#define NIC_PACKET_MAX (65535 + 18)

struct nic_options {
	const char *socket; /* path, or NULL to use FD */
	int fd;
	unsigned pairs;            /* queue pairs, as many CPUs as the guest has */
	unsigned tx_log2, rx_log2; /* ring sizes */
	uint32_t mtu;
	uint64_t features; /* asked for */
	bool brief;        /* reads identities in one message, to be quick */
	bool polled;       /* looks for completions without interrupts */
	bool message_ram;  /* guest memory has no descriptor: the server reaches it by messages */
	size_t ram_size;
	int timeout_ms;
};

/* What a guest with four CPUs has after `ip link set up`. */
#define NIC_OPTIONS(path)                                                                          \
	((struct nic_options){.socket = (path),                                                    \
	                      .fd = -1,                                                            \
	                      .pairs = 4,                                                          \
	                      .tx_log2 = 10,                                                       \
	                      .rx_log2 = 10,                                                       \
	                      .mtu = 1500,                                                         \
	                      .features = FEAT_LINUX,                                              \
	                      .ram_size = 512u << 20,                                              \
	                      .timeout_ms = 30000})

/* What the device said of itself while probing. */
struct nic_identity {
	uint8_t asic_type, asic_rev;
	char fw_version[33], serial[33];
	uint32_t nintrs, ndbpgs, coal_mult, coal_div;
	uint64_t lif_caps;
	uint32_t max_ucast, max_frame, min_frame;
	uint16_t rss_entries;
	uint32_t queue_count[4], eq_count;
	uint8_t port_config[PORT_CONFIG_SIZE];
	uint8_t q_version[4];
	bool tx_sg_v1;
};

struct nic_tx_slot {
	uint64_t data_end; /* position in the data area behind the packet */
	bool last;         /* of its packet */
};

/* A ring with its completions, as the driver keeps it. */
struct nic_queue {
	enum queue_type type;
	uint32_t index, hw_index;
	uint8_t hw_type;
	unsigned log2;
	uint32_t entries;
	uint64_t desc, cq, sg; /* guest addresses */
	uint16_t intr;
	uint32_t head;    /* next free descriptor */
	uint32_t tail;    /* next descriptor to complete */
	uint32_t cq_tail; /* next completion to look at */
	uint8_t color;    /* that it will have */
	bool enabled;
	uint32_t memory_log2; /* the rings have room for so many entries */
	uint64_t data;        /* packets or buffers */
	size_t data_size;
};

struct nic_pair {
	struct nic_queue tx, rx;
	unsigned vector;
	int eventfd;
	unsigned work; /* completions consumed and not returned as credits */
	bool armed;    /* the vector is unmasked, as far as we know */
	uint64_t irqs;
	struct nic_tx_slot *slots;
	uint64_t data_head, data_tail; /* positions in the transmit data area */
	uint64_t tx_packets;           /* completed */
	uint64_t rx_frames;
};

struct nic {
	struct nic_options options;
	struct vfu *vfu;
	struct ram ram;
	struct nic_identity id;
	char complaint[160]; /* what -EPROTO was about */
	uint64_t bar_size[6];
	uint32_t msix_count;
	uint8_t fw_generation; /* fw_status at probe */
	unsigned vectors_enabled;
	int step; /* probe steps done */

	uint16_t hw_lif;
	uint64_t lif_info, port_info; /* guest addresses */
	struct nic_queue adminq;
	uint64_t notify_ring;
	uint64_t notify_eid; /* of the last event seen */
	uint32_t notify_tail;
	unsigned admin_pending;    /* commands posted, not completed */
	uint16_t admin_status[16]; /* of slot: status of its completion */
	struct comp admin_comp[16];
	int admin_eventfd;
	unsigned admin_work;
	uint64_t admin_irqs;

	uint64_t features; /* in effect */
	uint8_t mac[6];
	uint32_t mac_filter_id;
	uint8_t rss_key[RSS_KEY_SIZE];
	uint64_t rss_table;

	unsigned pair_count;
	struct nic_pair pair[NIC_PAIRS_MAX];
	unsigned rx_next; /* where nic_recv() looks first */
	bool up, running;
	uint64_t posted_writes;
};

/* ---- life (nic.c) ---- */

/* Connects, negotiates, maps memory, finds BARs and vectors. */
int nic_open(struct nic **nic, const struct nic_options *options);
void nic_close(struct nic *nic); /* accepts NULL; says nothing to the device */

/* Everything up to a NIC that sends and receives. Closes what it opened when it fails. */
int nic_start(struct nic **nic, const struct nic_options *options);

/* 13.1. Or only the first COUNT of nic_probe_steps() steps, from the step reached so far on. */
int nic_probe(struct nic *nic);
int nic_probe_until(struct nic *nic, int count);
int nic_probe_steps(void);
const char *nic_probe_step_name(int step);

int nic_remove(struct nic *nic); /* 13.5 */

/* Forgets everything about the device, as after a reset that somebody else did, without a word to
 * it: what comes next is nic_probe(). */
void nic_forget(struct nic *nic);

/* The driver's answer to a firmware restart (12.3): no INIT, no Q_IDENTIFY; queues come back when
 * they were up. */
int nic_fw_down(struct nic *nic);
int nic_fw_up(struct nic *nic);

/* Function reset by the configuration space (12.4): prepare, FLR, done. */
int nic_flr(struct nic *nic);
int nic_config_flr(struct nic *nic); /* only the write */

int nic_config_read(struct nic *nic, uint64_t offset, void *data, size_t size);
int nic_config_write(struct nic *nic, uint64_t offset, const void *data, size_t size);
int nic_find_capability(struct nic *nic, uint8_t id); /* offset, or -ENOENT */

/* ---- registers and commands (nic_cmd.c) ---- */

int nic_reg_read(struct nic *nic, uint64_t offset, void *data, size_t size);
int nic_reg_read32(struct nic *nic, uint64_t offset, uint32_t *value);
int nic_reg_write(struct nic *nic, uint64_t offset, const void *data, size_t size);
int nic_reg_write32(struct nic *nic, uint64_t offset, uint32_t value);
int nic_intr_write(struct nic *nic, unsigned vector, unsigned reg, uint32_t value);
int nic_intr_read(struct nic *nic, unsigned vector, unsigned reg, uint32_t *value);
int nic_doorbell(struct nic *nic, unsigned hw_type, uint64_t value);

/* Copies a block of registers in 4-byte accesses, as memcpy_toio() and _fromio() do. */
int nic_block_write(struct nic *nic, uint64_t offset, const void *data, size_t size);
int nic_block_read(struct nic *nic, uint64_t offset, void *data, size_t size);

/* One device command (2.3). Returns 0, a positive enum cmd_status or a negative errno. COMP may be
 * NULL. */
int nic_devcmd(struct nic *nic, const struct cmd *cmd, struct comp *comp);

/* One AdminQ command (5.1): posts it and waits. Same results. */
int nic_admin(struct nic *nic, const struct cmd *cmd, struct comp *comp);

/* Posts without waiting. Returns the slot, or -EAGAIN when the ring is full. */
int nic_admin_post(struct nic *nic, const struct cmd *cmd);
/* Waits until all that was posted is complete; results are in admin_comp[slot]. */
int nic_admin_wait(struct nic *nic);

/* Waits for an eventfd, serving the server meanwhile. Returns 1 when it fired, 0 when time is up,
 * or a negative errno. */
int nic_wait_eventfd(struct nic *nic, int eventfd, int64_t deadline_ms);

/* Takes the next event from the NotifyQ. Returns 1, or 0 when there is none. */
int nic_event(struct nic *nic, struct notify_event *event);
/* Waits for an event of that code; other events are thrown away. */
int nic_event_wait(struct nic *nic, unsigned ecode);

int nic_fw_status(struct nic *nic); /* the register, or a negative errno */

/* Common commands. */
int nic_lif_features(struct nic *nic, uint64_t features);
int nic_rss_config(struct nic *nic, unsigned types);
int nic_rx_mode(struct nic *nic, unsigned mode);
int nic_filter_mac(struct nic *nic, const uint8_t mac[6], uint32_t *id);
int nic_filter_vlan(struct nic *nic, uint16_t vid, uint32_t *id);
int nic_filter_del(struct nic *nic, uint32_t id);

/* Values of the info blocks. */
bool nic_link_up(const struct nic *nic);
uint32_t nic_link_speed(const struct nic *nic);
uint64_t nic_lif_stat(const struct nic *nic, unsigned index);
uint64_t nic_port_stat(const struct nic *nic, unsigned index);

/* Sets the complaint and returns -EPROTO. */
int nic_complain(struct nic *nic, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Time in ms of a clock that only goes forward. */
int64_t nic_now_ms(void);

/* ---- queues (nic_queue.c) ---- */

/* Takes memory for the rings of a queue; zeroes it and starts at slot 0, color 1. */
int nic_queue_prepare(struct nic *nic, struct nic_queue *queue, unsigned log2);
int nic_queue_init(struct nic *nic, struct nic_queue *queue); /* Q_INIT */
int nic_queue_control(struct nic *nic, struct nic_queue *queue, bool enable);
void nic_cmd_queue_init(const struct nic *nic, const struct nic_queue *queue, struct cmd *cmd);

int nic_up(struct nic *nic);         /* 13.2 */
int nic_down(struct nic *nic);       /* 13.4 */
int nic_link_start(struct nic *nic); /* carrier on: fill, enable */
int nic_link_stop(struct nic *nic);  /* carrier off: disable, quiesce */

/* Waits for the interrupt of a pair, -ETIMEDOUT when none comes; serves the server once when
 * polled. */
int nic_pair_late(struct nic *nic, struct nic_pair *pair); /* complains, -ETIMEDOUT */
int nic_pair_wait(struct nic *nic, struct nic_pair *pair, int64_t deadline_ms);

/* Whether the pair's queues may be looked at: since its interrupt has come and until it is unmasked
 * again, as the driver's NAPI does. Who looks earlier returns the credit of a completion whose
 * interrupt is on its way; that interrupt finds nothing, and what is returned then, no credit,
 * crosses the next one, for which the device forgets a completion that nobody has seen. */
bool nic_pair_awake(struct nic *nic, struct nic_pair *pair);

/* Returns the credits of what was consumed, and unmasks when DRAINED (2.4). */
int nic_pair_credits(struct nic *nic, struct nic_pair *pair, bool drained);

/* The completion that is next in the queue, or NULL. */
const void *nic_queue_peek(struct nic *nic, const struct nic_queue *queue);
void nic_queue_consume(struct nic_queue *queue); /* moves on to the next completion */
static inline uint32_t nic_queue_next(const struct nic_queue *queue, uint32_t slot)
{
	return (slot + 1) & (queue->entries - 1);
}
static inline uint32_t nic_queue_room(const struct nic_queue *queue)
{
	return (queue->tail - queue->head - 1) & (queue->entries - 1);
}

/* ---- transmit (nic_tx.c) ---- */

struct nic_packet {
	const void *frame; /* from the Ethernet header on */
	uint64_t resident; /* guest address of the frame when it is in memory already, not copied */
	size_t size;
	bool csum; /* checksum to fill, 7.5 */
	uint16_t csum_start, csum_offset;
	bool vlan;
	uint16_t vlan_tci;
	uint16_t mss, hdr_size; /* mss > 0: TSO, 7.6 */
	size_t linear;          /* bytes of the first buffer, 0: all; TSO: the headers */
	size_t fragment;        /* bytes of each further one; 0: 4096 */
};

/* Copies the packet to guest memory and posts its descriptors, without a doorbell. Returns 0, or
 * -EAGAIN when ring or memory are full, or -EMSGSIZE when it takes too many pieces. */
int nic_tx_post(struct nic *nic, struct nic_pair *pair, const struct nic_packet *packet);
int nic_tx_ring(struct nic *nic, struct nic_pair *pair);

/* Takes transmit completions, at most LIMIT. Returns their number. */
int nic_tx_reap(struct nic *nic, struct nic_pair *pair, unsigned limit);

/* Waits until everything that was posted on the pair is complete. */
int nic_tx_flush(struct nic *nic, struct nic_pair *pair);

/* Posts, rings and waits: one packet on pair INDEX. */
int nic_send(struct nic *nic, unsigned index, const struct nic_packet *packet);
/* ... and one plain frame on pair 0. */
int nic_send_frame(struct nic *nic, const void *frame, size_t size);

/* ---- receive (nic_rx.c) ---- */

struct nic_frame {
	unsigned queue;
	uint8_t status, csum_flags, type, num_sg;
	uint16_t csum, vlan_tci;
	uint32_t hash;
	size_t size;
	uint8_t data[NIC_FRAME_MAX];
};

/* Posts buffers until the ring is full and rings. */
int nic_rx_fill(struct nic *nic, struct nic_pair *pair);
/* ... at most COUNT of them. */
int nic_rx_post(struct nic *nic, struct nic_pair *pair, unsigned count);
size_t nic_rx_capacity(const struct nic *nic); /* of one descriptor: MTU + 18 */

/* Takes one frame from one pair. Returns 1, 0 when there is none. FRAME may be NULL. */
int nic_rx_take(struct nic *nic, struct nic_pair *pair, struct nic_frame *frame);

/* Waits for a frame on any pair. Completions with an error status count as frames. Returns 0 or a
 * negative errno. */
int nic_recv(struct nic *nic, struct nic_frame *frame);
/* ... but not longer than TIMEOUT_MS. */
int nic_recv_timeout(struct nic *nic, struct nic_frame *frame, int timeout_ms);

#endif
