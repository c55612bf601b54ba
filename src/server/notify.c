/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells a service manager how far the program is (sd_notify(3), without the library). */
#include "server/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

void notify_manager(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len == 0)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || len >= sizeof(address.sun_path)) {
		log_warn("NOTIFY_SOCKET %s cannot be used", path);
	} else {
		memcpy(address.sun_path, path, len);
		if (path[0] == '@') /* abstract namespace */
			address.sun_path[0] = '\0';
		if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
		           (struct sockaddr *)&address,
		           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
			log_warn("NOTIFY_SOCKET %s does not take %s", path, state);
	}
	if (fd >= 0)
		close(fd);
}
