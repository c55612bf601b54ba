/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ionic device: what the guest's driver sees behind the two BARs.
 *
 * The door of the room. The device reaches the guest through guest_mem and pci_irq, the outside
 * through a port on the wire, time through the loop; it knows nothing of sockets and options.
 */
#ifndef ERNIC_IONIC_IONIC_H
#define ERNIC_IONIC_IONIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "net/net.h"
#include "vfio/vfio.h"

struct ionic_dev;
struct rdma_fabric;

enum ionic_asic { /* spec ionic-ethernet 2.2 */
	          IONIC_ASIC_NONE,
	          IONIC_ASIC_CAPRI,
	          IONIC_ASIC_ELBA,
	          IONIC_ASIC_GIGLIO,
	          IONIC_ASIC_SALINA,
};

enum ionic_xcvr { IONIC_XCVR_NONE, IONIC_XCVR_COPPER, IONIC_XCVR_FIBER };

#define IONIC_FW_VERSION_MAX 31
#define IONIC_ETH_QUEUES_MAX 64
#define IONIC_RDMA_EQS_MAX   32
#define IONIC_INTRS_MAX      128

/* What the RDMA identity offers. */
#define IONIC_RDMA_QPS 32768  /* a power of two */
#define IONIC_RDMA_CQS 131072 /* a power of two; an application's CQ is two of them */
#define IONIC_RDMA_MRS 131072 /* regions and windows */
#define IONIC_RDMA_AHS 65536  /* 32 K for handles, and one for each RC queue pair */

/* The shape of the NIC: the values of a profile, checked and merged (server/profile.h). */
struct ionic_profile {
	/* identity */
	enum ionic_asic asic_type;
	uint8_t asic_rev;
	char fw_version[IONIC_FW_VERSION_MAX + 1];
	/* link */
	uint32_t speed_mbps;
	enum ionic_xcvr xcvr;
	uint32_t mtu_max; /* bytes of IP packet; the frame is 18 longer */
	/* stats */
	uint32_t stats_interval_ms;
	/* queues */
	uint32_t eth_queues;
	uint32_t rdma_eqs;
	uint32_t intr_vectors; /* 2..128, never "auto" */
	/* offload: what LIF features are offered */
	bool tx_csum, tso, sg, rx_csum, rx_hash, vlan;
};

/* The PCI function that a NIC of this profile is. */
void ionic_pci_config(const struct ionic_profile *profile, struct vfio_pci_config *pci);

struct ionic_config {
	const struct ionic_profile *profile; /* copied */
	struct loop *loop;
	struct guest_mem *mem;
	struct pci_irq *irq;
	struct net_wire *wire;      /* the device attaches itself as port "guest" */
	struct rdma_fabric *fabric; /* NULL: verbs reach nobody */
	uint8_t mac[6];
	char serial[32]; /* serial number string, NUL-terminated */
};

/* Makes the device, link up. Returns 0 or a negative errno. */
int ionic_create(const struct ionic_config *config, struct ionic_dev **dev);
void ionic_destroy(struct ionic_dev *dev); /* accepts NULL */

/* The functions behind vfio_device_ops; DEVICE is the struct ionic_dev. */
extern const struct vfio_device_ops ionic_vfio_ops;

/* ---- what an operator or a test may do to the NIC ---- */

/* Takes the link down or up: LIF info block, event, port. */
void ionic_link_set(struct ionic_dev *dev, bool up);
bool ionic_link_up(const struct ionic_dev *dev);

/* Firmware life, spec ionic-ethernet 12.3. */
enum ionic_fw_action {
	IONIC_FW_STOP,        /* running bit cleared, all device state dropped */
	IONIC_FW_START,       /* running again, next generation */
	IONIC_FW_RESTART,     /* generation changes in one step, all state dropped */
	IONIC_FW_RESET_EVENT, /* RESET event through the NotifyQ, then RESTART */
	IONIC_FW_STALL,       /* the heartbeat counter stands still */
	IONIC_FW_UNSTALL,     /* ... and moves again */
};
void ionic_fw_action(struct ionic_dev *dev, enum ionic_fw_action action);

/* ---- what the stats file shows ---- */

typedef void ionic_stat_fn(const char *name, uint64_t value, void *arg);

/* Calls FN for every named LIF and port counter, in the order of the interface header. */
void ionic_lif_stats_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg);
void ionic_port_stats_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg);

/* Calls FN for the counters of the RDMA function, and for those of its QPs that have been used. */
void ionic_rdma_stats_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg);
void ionic_qp_stats_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg);

/* Calls FN for the state of the device: queues enabled, features, link, interrupts, resets, ... */
void ionic_state_visit(struct ionic_dev *dev, ionic_stat_fn *fn, void *arg);

#endif
