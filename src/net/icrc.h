/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The invariant CRC at the end of a RoCEv2 packet (spec rocev2 5). */
#ifndef ERNIC_NET_ICRC_H
#define ERNIC_NET_ICRC_H

#include <stddef.h>
#include <stdint.h>

#define NET_ICRC_SIZE 4

/*
 * The ICRC of the SIZE bytes that begin with the IP header at IP and end in front of the ICRC's own
 * place. The IP header is one of IPv4 without options or IPv6, with UDP and BTH behind it.
 */
uint32_t net_icrc(const uint8_t *ip, size_t size);

#endif
