/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Protocol numbers that the files of the net room share. Stays inside the room. */
#ifndef ERNIC_NET_NET_INTERNAL_H
#define ERNIC_NET_NET_INTERNAL_H

#include <stdint.h>

#include "net/net.h"

/* EtherTypes, IEEE 802. */
#define NET_ETHERTYPE_IPV4 0x0800
#define NET_ETHERTYPE_IPV6 0x86dd
#define NET_ETHERTYPE_VLAN 0x8100
#define NET_ETHERTYPE_QINQ 0x88a8

/* IP protocol numbers and IPv6 extension headers, IANA. */
#define NET_IPV6_HOP_BY_HOP     0
#define NET_PROTO_TCP           6
#define NET_PROTO_UDP           17
#define NET_IPV6_ROUTING        43
#define NET_IPV6_FRAGMENT       44
#define NET_IPV6_AUTHENTICATION 51
#define NET_IPV6_DESTINATION    60
#define NET_PROTO_SCTP          132

/* Header sizes without options, bytes. */
#define NET_IPV4_HEADER 20
#define NET_IPV6_HEADER 40
#define NET_TCP_HEADER  20
#define NET_UDP_HEADER  8
#define NET_SCTP_HEADER 12

/* TCP flags, RFC 9293 3.1. */
#define NET_TCP_FIN 0x01
#define NET_TCP_PSH 0x08
#define NET_TCP_CWR 0x80

/* Bytes of a frame in which headers are looked for. */
#define NET_HEADERS_LIMIT 4096

#endif
