/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The MAC address and serial number of a NIC that was not given any.
 *
 * The address must not change when the server is started again, or the guest's configuration is
 * lost, and must differ between servers that may meet on one bridge: on one host these differ in
 * their socket, on two hosts in the machine id. 46 bits of a hash of both are left.
 */
#include "server/identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/text.h"

/* The machine id (machine-id(5)), or the host's name where there is none. */
static size_t machine_name(char *name, size_t size)
{
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	if (fd >= 0) {
		got = read(fd, name, size);
		close(fd);
	}
	if (got > 0)
		return (size_t)got;
	if (gethostname(name, size) < 0)
		return 0;
	return strnlen(name, size);
}

void identity_mac(const char *socket_name, uint8_t mac[6])
{
	char machine[64];
	size_t size = machine_name(machine, sizeof(machine));
	uint64_t hash = text_hash(TEXT_HASH_START, machine, size);

	hash = text_hash(hash, socket_name, strlen(socket_name) + 1);
	hash ^= hash >> 29; /* the last bytes hashed reach the low bits only */
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)(hash >> (8 * i));
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 0x02); /* unicast, locally administered */
}

void identity_serial(const uint8_t mac[6], char *serial, size_t size)
{
	snprintf(serial, size, "ERNIC%02X%02X%02X%02X%02X%02X", mac[0], mac[1], mac[2], mac[3],
	         mac[4], mac[5]);
}
