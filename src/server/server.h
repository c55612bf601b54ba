/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The composition of all rooms into one server, and its life. */
#ifndef ERNIC_SERVER_SERVER_H
#define ERNIC_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/signals.h"
#include "fabric/fabric.h"
#include "ionic/ionic.h"
#include "net/net.h"
#include "server/control.h"
#include "server/error.h"
#include "server/options.h"
#include "server/profile.h"
#include "server/stats_file.h"
#include "server/text.h"
#include "vfio/vfio.h"

#define SERVER_SOCKET_NAME_MAX 4096

struct server {
	const struct options *options;
	const struct nic_profile *profile;
	struct ionic_profile values; /* of the profile, resolved */
	uint8_t mac[6];
	char socket_name[SERVER_SOCKET_NAME_MAX]; /* absolute path of the socket, or fd:N */
	uint64_t start_ns;

	struct loop *loop;
	struct vfio_server *vfio;
	struct net_wire *wire;
	struct net_pcap *pcap;
	struct rdma_fabric *fabric;
	struct ionic_dev *device;
	struct net_tap *tap;
	struct stats_file *stats_file;
	struct control *control;
	struct signals signals;
	bool log_file_made; /* by us, and to be removed when the start fails */
	bool running;
};

/*
 * Serves until a signal ends it. Returns 0, or a negative errno with the reason in *ERROR when it
 * could not start; nothing is left behind then. SIGPIPE is ignored from here on.
 */
int server_run(const struct options *options, const struct nic_profile *profile,
               struct error_text *error);

/* "compat + small-vm (hash 0123456789abcdef)": as the log and the stats file say it. */
const char *server_profile_text(const struct nic_profile *profile, char *text, size_t size);

/* Captures to PATH from now on; NULL: not any more. Returns 0 or a negative errno; with that the
 * capture before goes on. */
int server_capture(struct server *server, const char *path);

/* Whether a capture is under way: one that could not be written any more is not. */
bool server_captures(const struct server *server);

/* Whether opening the file at PATH gave CAUSE because it is a pipe that nobody reads. */
bool server_unread_pipe(const char *path, int cause);

/* Says why no socket could be made at PATH, the value of --OPTION. Returns CAUSE. */
int server_refuse_socket(const char *option, const char *path, int cause, struct error_text *error);

#endif
