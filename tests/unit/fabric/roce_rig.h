/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two NICs with RoCEv2 fabrics, each on a wire of its own, joined by a cable: what one sends the
 * other gets in the next turn of the loop. A test may look at every frame on the way. With
 * ERNIC_TEST_PCAP in the environment, each side leaves a capture in that folder.
 */
#ifndef ERNIC_TESTS_FABRIC_ROCE_RIG_H
#define ERNIC_TESTS_FABRIC_ROCE_RIG_H

#include "net/net.h"
#include "verbs.h"

enum { RIG_QUEUE = 1024 };

struct rig_frame {
	size_t size;
	uint8_t bytes[4300];
};

struct rig_side {
	struct rig *rig;
	struct net_wire *wire;
	struct net_port guest, cable;
	struct rdma_fabric *fabric;
	struct nic *nic;
	struct net_pcap *pcap; /* or NULL */
	uint32_t for_guest;    /* frames that the Ethernet queues got */
	/* frames that this side has sent */
	struct rig_frame *queue;
	uint32_t head, tail;
};

struct rig {
	struct loop *loop;
	struct loop_work work;
	struct rig_side side[2];
	/* Sees every frame of SIDE (0, 1), may change it; returns how many of it arrive. */
	unsigned (*look)(struct rig *rig, unsigned side, struct rig_frame *frame);
	void *arg;
};

struct rig *rig_new(void);
void rig_free(struct rig *rig);

/* Puts a frame on the cable as if SIDE had sent it. */
void rig_inject(struct rig *rig, unsigned side, const void *bytes, size_t size);

#endif
