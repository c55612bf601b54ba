/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The MAC address and serial number of a NIC that was not given any. */
#ifndef ERNIC_SERVER_IDENTITY_H
#define ERNIC_SERVER_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

/* A locally administered unicast address, the same for the same machine and socket name, and most
 * probably another one for any other. */
void identity_mac(const char *socket_name, uint8_t mac[6]);

/* A serial number made of the address. */
void identity_serial(const uint8_t mac[6], char *serial, size_t size);

#endif
