/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel says about a network interface. Stays inside the room. */
#ifndef ERNIC_NET_LINK_H
#define ERNIC_NET_LINK_H

#include <stdbool.h>

struct net_link {
	unsigned index;       /* of the interface in this network namespace */
	bool is_tap;          /* made by the tun driver, and carries Ethernet */
	bool multi_queue;     /* made for several queues */
	unsigned open_queues; /* held by programs now; known of multi-queue TAPs only */
};

/* Asks the kernel about IFNAME. Returns 0, -ENODEV when there is no such interface, or another
 * negative errno. */
int net_link_query(const char *ifname, struct net_link *link);

#endif
