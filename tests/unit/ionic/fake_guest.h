/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest for tests of the ionic room: memory, interrupts, and a driver that does what it is told.
 *
 * fake_guest.c has its own guest_mem.h and pci_irq.h over a flat buffer; src/vfio is not linked. So
 * the room is shown to need no more than these two headers. It also holds the room to their rules:
 * touching guest memory from a register callback, or after a reset, ends the test.
 */
#ifndef ERNIC_TESTS_UNIT_IONIC_FAKE_GUEST_H
#define ERNIC_TESTS_UNIT_IONIC_FAKE_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "ionic/ionic_if.h"
#include "ionic/ionic_internal.h"
#include "net/net.h"
#include "vfio/guest_mem.h"
#include "vfio/pci_irq.h"

#define FAKE_RAM_BASE UINT64_C(0x40000000)
#ifndef FAKE_RAM_SIZE /* fuzz targets have less */
#define FAKE_RAM_SIZE (4u << 20)
#endif

#define FAKE_ADMINQ_SIZE  4 /* exponents of the ring sizes, as drivers have them */
#define FAKE_NOTIFYQ_SIZE 6

/* Rings of a queue, as the driver sees them. */
struct fake_ring {
	unsigned type, index;
	uint32_t entries;
	uint64_t desc, cq, sg; /* guest addresses */
	uint32_t head;         /* next descriptor to post */
	uint32_t cq_pos;       /* next completion to look at */
	uint8_t color;         /* it has when it is there */
	unsigned hw_type;
	uint32_t hw_index;
};

struct fake_guest;
typedef void fake_access_fn(struct fake_guest *guest, uint64_t addr, size_t size,
                            enum guest_access access);

struct guest_mem {
	struct fake_guest *guest;
};

struct pci_irq {
	struct fake_guest *guest;
};

struct fake_guest {
	struct loop *loop;
	struct net_wire *wire;
	struct rdma_fabric *fabric; /* made by fake_fabric(); outlives the guest */
	struct ionic_dev *dev;
	struct guest_mem mem;
	struct pci_irq irq;

	uint8_t *ram;
	uint64_t used;      /* bytes of it that fake_alloc() has given away */
	bool bus_master;    /* set at first */
	bool messages_only; /* guest_mem_map() finds no memory with a descriptor */
	bool in_message;    /* a register is being accessed */
	bool quiet;         /* the device was reset: it may not touch memory */
	uint64_t accesses;  /* of memory, so far */
	uint64_t generation;
	fake_access_fn *on_access; /* before each */
	uint64_t hook_arg;

	uint64_t msix[IONIC_INTRS_MAX]; /* interrupts of each vector */

	uint64_t lif_info, port_info; /* blocks, once there */
	struct fake_ring adminq, notifyq;
};

/* Makes device and guest. PROFILE may be NULL for fake_profile. Ends the test on failure. */
extern const struct ionic_profile fake_profile;
extern const uint8_t fake_mac[6];
void fake_guest_create(struct fake_guest *guest, const struct ionic_profile *profile);

/* If set, gives the fabric of the guests that are created. */
extern struct rdma_fabric *(*fake_fabric)(struct loop *loop);
void fake_guest_destroy(struct fake_guest *guest);

/* As if made again, but for counters and the firmware's generation; far cheaper, for fuzzers. */
void fake_guest_renew(struct fake_guest *guest);

/* Zeroed guest memory, aligned to a page. FAKE_RAM_SIZE in all. */
uint64_t fake_alloc(struct fake_guest *guest, size_t size);
/* Where guest memory is in this process; the range must be inside. */
void *fake_ptr(struct fake_guest *guest, uint64_t addr, size_t size);

/* Turns of the loop without waiting, until nothing is left to do. */
void fake_run(struct fake_guest *guest);

/* Register accesses of any width; no turn of the loop. */
void fake_bar_read(struct fake_guest *guest, unsigned bar, uint64_t offset, void *data,
                   size_t size);
void fake_bar_write(struct fake_guest *guest, unsigned bar, uint64_t offset, const void *data,
                    size_t size);
uint64_t fake_read(struct fake_guest *guest, uint64_t offset, size_t size); /* BAR0 */
void fake_write(struct fake_guest *guest, uint64_t offset, uint64_t value, size_t size);
void fake_doorbell(struct fake_guest *guest, unsigned hw_type, uint32_t qid, uint32_t index);
void fake_reset(struct fake_guest *guest, enum vfio_reset reason);

/* A device command, with the loop turned. Returns its status, or -1 when done was never set. COMP
 * may be NULL. */
int fake_devcmd(struct fake_guest *guest, const union ionic_cmd *cmd, union ionic_comp *comp);
void fake_devcmd_data_write(struct fake_guest *guest, const void *data, size_t size);
void fake_devcmd_data_read(struct fake_guest *guest, void *data, size_t size);

/* Rings in fresh memory. SIZE is the exponent. */
void fake_ring_init(struct fake_guest *guest, struct fake_ring *ring, unsigned type, unsigned index,
                    unsigned size);
/* The Q_INIT command for it. */
union ionic_cmd fake_q_init_cmd(const struct fake_ring *ring, unsigned intr, unsigned flags);
/* Queue by AdminQ command; ends the test when it fails. */
void fake_q_init(struct fake_guest *guest, struct fake_ring *ring, unsigned intr, unsigned flags);
int fake_q_control(struct fake_guest *guest, const struct fake_ring *ring, unsigned oper);
/* The next completion, or NULL when there is none. */
const uint8_t *fake_ring_completion(struct fake_guest *guest, struct fake_ring *ring);

/* An AdminQ command, with the loop turned. Returns its status, or -1 without a completion. */
int fake_admin(struct fake_guest *guest, const union ionic_cmd *cmd, union ionic_comp *comp);
/* Posts it only: what fake_admin() does before the doorbell. */
void fake_admin_post(struct fake_guest *guest, const union ionic_cmd *cmd);

/* PORT_INIT, LIF_INIT, AdminQ and NotifyQ on vector 0, in the order of a driver's probe. Each ends
 * the test when a step fails. */
void fake_port_init(struct fake_guest *guest);
void fake_lif_init(struct fake_guest *guest);
void fake_adminq_init(struct fake_guest *guest);
void fake_notifyq_init(struct fake_guest *guest);
void fake_probe(struct fake_guest *guest);

#endif
