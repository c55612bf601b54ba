/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fabrics: how a message gets from a QP to its peer.
 *
 * A fabric connects the devices of this process (the guest's, and those of targets) with each other
 * and, if it reaches so far, with others. It is made from its description, as option --backend
 * gives it, then handed to rdma_dev_create(). The engine sees it through rdma/transport.h.
 *
 * Destinations in this process come first on every fabric but `none`: the first device that owns
 * the destination's MAC address, or that the sender addresses with its own IP address, gets the
 * message (spec ionic-rdma 9.6, 11).
 */
#ifndef ERNIC_FABRIC_FABRIC_H
#define ERNIC_FABRIC_FABRIC_H

#include <stddef.h>

#include "base/loop.h"
#include "net/net.h"
#include "rdma/transport.h"

/* What a fabric may stand on. Fabrics that stay in the process need nothing of it. */
struct fabric_place {
	struct loop *loop;
	struct net_wire *wire;
	bool tap;                  /* the wire has a way out of the process */
	uint8_t mac[6];            /* of the NIC */
	const uint8_t (*gids)[16]; /* addresses that are ours before the guest has used them */
	unsigned gid_count;
	int mesh_wait_s; /* seconds that the start may wait for the manager; negative: it need not
	                    be there */
};

/*
 * Makes a fabric from TEXT:
 *	loopback[:OPTION[,OPTION]...] mode=preserve|zeros|ones|increment|decrement|alternate|random
 *	                                what lands instead of the payload; md5: log a digest of each
 *	tcp:manager:[ADDR:]PORT[,OPTION...], tcp:worker:HOST:PORT[,OPTION...]
 *	                                the mesh; see mesh_options.c
 *	roce                            RoCEv2 packets on the wire
 *	none                            accepts nothing
 * Returns 0, -ENOMEM, or -EINVAL with a sentence of what is wrong in ERROR (SIZE bytes).
 */
int fabric_create(const struct fabric_place *place, const char *text, struct rdma_fabric **fabric,
                  char *error, size_t size);

/* Ends a fabric that no device uses any more. Accepts NULL. */
void fabric_destroy(struct rdma_fabric *fabric);

#endif
