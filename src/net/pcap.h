/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures of frames as pcapng files. */
#ifndef ERNIC_NET_PCAP_H
#define ERNIC_NET_PCAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"

struct net_frame;
struct net_pcap;

/*
 * Opens PATH for a capture; makes it, but leaves what is in it. Returns 0 or a negative errno,
 * -ENXIO for a pipe that nobody reads. Closing what has not begun removes the file again if this
 * made it.
 */
int net_pcap_prepare(struct loop *loop, const char *path, struct net_pcap **pcap);

/* Empties the file and begins. Returns 0 or a negative errno, after which it can only be closed. */
int net_pcap_begin(struct net_pcap *pcap);

/* Both in one. */
int net_pcap_open(struct loop *loop, const char *path, struct net_pcap **pcap);

/* Writes what is left, as far as that takes no waiting, and ends. Accepts NULL. */
void net_pcap_close(struct net_pcap *pcap);

/* Whether it goes on. The first failure to write, or the end of a pipe's reader, ends it, with a
 * warning. */
bool net_pcap_live(const struct net_pcap *pcap);

/* A frame passes now, to the guest when INBOUND. One that finds no room is left out, and counted.
 */
void net_pcap_frame(struct net_pcap *pcap, const struct net_frame *frame, bool inbound);

#endif
