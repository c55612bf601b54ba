/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures of frames as pcapng files. */
#ifndef ERNIC_NET_PCAP_H
#define ERNIC_NET_PCAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"

struct net_frame;
struct net_pcap;

/* Makes PATH, or empties it, and begins a capture. Returns 0 or a negative errno, -ENXIO for a pipe
 * that nobody reads. */
int net_pcap_open(struct loop *loop, const char *path, struct net_pcap **pcap);

/* Writes what is left, and ends. Accepts NULL. */
void net_pcap_close(struct net_pcap *pcap);

/* A frame passes now, to the guest when INBOUND. The first failure to write ends the capture, with
 * a warning. */
void net_pcap_frame(struct net_pcap *pcap, const struct net_frame *frame, bool inbound);

#endif
