/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The composition of all rooms into one server, and its life.
 *
 * Theory of operation
 *
 * server_start() makes the parts from the inside out, in the order of a table: what can fail
 * because of what the user asked for comes first, the socket that a client sees comes last. Each
 * part has its undoing beside it; a start that fails, and the end of the server, undo what was
 * made, in reverse. So whatever goes wrong, nothing is left behind. A capture is opened in its turn
 * and begun behind the socket, as beginning ends what was in the file.
 *
 * Signals arrive through a descriptor like everything else (base/signals.h): SIGTERM and SIGINT end
 * the loop after the turn that is running (every callback is bounded, so that is soon), SIGHUP
 * opens the log file anew. SIGPIPE is ignored; writers look at their errors.
 *
 * Not done: restarting parts, and guests that outlive their server. A changed option needs a new
 * process, and that a new QEMU: it connects once, and to its guest a server that ended is a card
 * that was pulled. The firmware restart of the control socket is what a driver recovers from.
 */
#include "server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/log.h"
#include "net/fault.h"
#include "net/pcap.h"
#include "server/identity.h"
#include "server/notify.h"

COUNTER(server_log_reopen_errors, "times SIGHUP could not open the log file anew");

#define NS_PER_US 1000ull

enum { DESCRIPTORS_WANTED = 1024 };

const char *server_profile_text(const struct nic_profile *profile, char *text, size_t size)
{
	snprintf(text, size, "%s (hash %016" PRIx64 ")", profile->chain, profile_hash(profile));
	return text;
}

int server_refuse_socket(const char *option, const char *path, int cause, struct error_text *error)
{
	if (cause == -EADDRINUSE)
		return error_set(error, cause,
		                 "--%s %s: a living server answers there; stop it or give another "
		                 "path",
		                 option, path);
	if (cause == -EEXIST)
		return error_set(error, cause,
		                 "--%s %s: exists and is not a socket; remove it or give another "
		                 "path",
		                 option, path);
	return error_set(error, cause,
	                 "--%s %s: no socket can be made there (%s); give a path in a folder that "
	                 "can be written to",
	                 option, path, strerror(-cause));
}

/* ---- the name of the socket ---- */

/* Where an inherited socket is bound, or nothing when it is half of a pair. */
static void name_inherited(struct server *server, int fd)
{
	struct sockaddr_un address = {0};
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
	    address.sun_family == AF_UNIX && address.sun_path[0] == '/')
		snprintf(server->socket_name, sizeof(server->socket_name), "%.*s",
		         (int)sizeof(address.sun_path), address.sun_path);
	else
		snprintf(server->socket_name, sizeof(server->socket_name), "fd:%d", fd);
}

static void name_path(struct server *server, const char *path)
{
	char folder[PATH_MAX];

	if (path[0] == '/' || !getcwd(folder, sizeof(folder)))
		snprintf(server->socket_name, sizeof(server->socket_name), "%s", path);
	else
		snprintf(server->socket_name, sizeof(server->socket_name), "%.*s/%s",
		         SERVER_SOCKET_NAME_MAX - 120, folder, path);
}

/* Comes before anything is opened: an inherited descriptor that is not there would else be the
 * number of something of ours. */
static int open_name(struct server *server, struct error_text *error)
{
	const struct options *options = server->options;
	int fd = (int)options->fd, type;
	socklen_t size = sizeof(type);

	if (!options->socket_path && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		return error_set(error, -errno,
		                 "--fd %d: is not an open socket (%s); pass a listening or "
		                 "connected UNIX stream socket",
		                 fd, strerror(errno));
	if (options->socket_path)
		name_path(server, options->socket_path);
	else
		name_inherited(server, fd);
	text_make_line(server->socket_name);
	return 0;
}

static int open_mac(struct server *server, struct error_text *error)
{
	const struct option_mac *mac = &server->options->mac;

	(void)error;
	if (mac->given)
		memcpy(server->mac, mac->address, sizeof(server->mac));
	else
		identity_mac(server->socket_name, server->mac);
	return 0;
}

/* Says why a file of the user's cannot be written to. READER: a command that reads a pipe. */
static int refuse_file(const char *option, const char *path, int cause, const char *reader,
                       struct error_text *error)
{
	if (server_unread_pipe(path, cause))
		return error_set(error, cause,
		                 "--%s %.300s: nobody reads this pipe; start its reader first, as "
		                 "with: %s",
		                 option, path, reader);
	return error_set(error, cause,
	                 "--%s %.300s: cannot be written (%s); give a path that can be written to",
	                 option, path, strerror(-cause));
}

/* ---- log file ---- */

static int open_log(struct server *server, struct error_text *error)
{
	const char *path = server->options->log_file;
	int failed;

	log_set_level((enum log_level)server->options->log_level);
	if (!path)
		return 0;
	server->log_file_made = access(path, F_OK) < 0;
	failed = log_set_file(path);
	if (!failed)
		return 0;
	server->log_file_made = false;
	return refuse_file("log-file", path, failed, "cat PIPE &", error);
}

static void reopen_log(const char *path)
{
	int failed = log_set_file(path);

	if (!failed)
		return;
	counter_inc(&server_log_reopen_errors);
	log_warn("--log-file %s cannot be opened anew (%s); the old one is kept", path,
	         server_unread_pipe(path, failed) ? "nobody reads this pipe" : strerror(-failed));
}

static void close_log(struct server *server)
{
	if (server->log_file_made && !server->running)
		unlink(server->options->log_file);
}

/* ---- loop and signals ---- */

static int open_loop(struct server *server, struct error_text *error)
{
	int failed = loop_create(&server->loop);

	if (failed)
		return error_set(error, failed, "the event loop cannot be made: %s",
		                 strerror(-failed));
	loop_set_spin(server->loop, server->options->busy_poll_us * NS_PER_US);
	server->start_ns = loop_now(server->loop);
	return 0;
}

static void close_loop(struct server *server)
{
	loop_destroy(server->loop);
}

static void signal_received(struct signals *signals, int number)
{
	struct server *server = container_of(signals, struct server, signals);

	if (number != SIGHUP) {
		log_info("signal %s: ending", sigabbrev_np(number));
		loop_stop(server->loop);
		return;
	}
	if (server->options->log_file)
		reopen_log(server->options->log_file);
}

static int open_signals(struct server *server, struct error_text *error)
{
	signal(SIGPIPE, SIG_IGN);
	server->signals.received = signal_received;
	int failed = signals_open(&server->signals, server->loop);

	if (failed)
		return error_set(error, failed, "signals cannot be received: %s",
		                 strerror(-failed));
	return 0;
}

static void close_signals(struct server *server)
{
	signals_close(&server->signals);
}

/* ---- the PCI function ---- */

/* The device needs the server's memory and interrupts to be made, the server needs a device to be
 * made: these stand between. Without a device, before and after its life, reads give zeroes. */
static void bar_read(void *arg, unsigned bar, uint64_t offset, void *data, size_t size)
{
	struct server *server = arg;

	memset(data, 0, size);
	if (server->device)
		ionic_vfio_ops.bar_read(server->device, bar, offset, data, size);
}

static void bar_write(void *arg, unsigned bar, uint64_t offset, const void *data, size_t size)
{
	struct server *server = arg;

	if (server->device)
		ionic_vfio_ops.bar_write(server->device, bar, offset, data, size);
}

static void reset(void *arg, enum vfio_reset reason)
{
	struct server *server = arg;

	if (server->device)
		ionic_vfio_ops.reset(server->device, reason);
}

static const struct vfio_device_ops device_ops = {bar_read, bar_write, reset};

static int open_vfio(struct server *server, struct error_text *error)
{
	const struct options *options = server->options;
	struct vfio_pci_config pci;
	struct vfio_server_config config = {
	        .loop = server->loop,
	        .pci = &pci,
	        .ops = &device_ops,
	        .device = server,
	        .socket_path = options->socket_path,
	        .socket_mode = (mode_t)options->socket_mode,
	        .fd = options->socket_path ? -1 : (int)options->fd,
	        .write_multiple = true,
	};
	int failed;

	ionic_pci_config(&server->values, &pci);
	failed = vfio_server_create(&config, &server->vfio);
	if (failed)
		return error_set(error, failed, "the vfio-user server cannot be made: %s",
		                 strerror(-failed));
	return 0;
}

static void close_vfio(struct server *server)
{
	vfio_server_destroy(server->vfio);
}

static int open_device(struct server *server, struct error_text *error)
{
	struct ionic_config config = {
	        .profile = &server->values,
	        .loop = server->loop,
	        .mem = vfio_server_guest_mem(server->vfio),
	        .irq = vfio_server_pci_irq(server->vfio),
	        .wire = server->wire,
	        .fabric = server->fabric,
	};
	int failed;

	memcpy(config.mac, server->mac, sizeof(config.mac));
	identity_serial(server->mac, config.serial, sizeof(config.serial));
	failed = ionic_create(&config, &server->device);
	if (failed)
		return error_set(error, failed, "the device cannot be made: %s", strerror(-failed));
	return 0;
}

static void close_device(struct server *server)
{
	ionic_destroy(server->device);
	server->device = NULL;
}

static int open_socket(struct server *server, struct error_text *error)
{
	const char *path = server->options->socket_path;
	int failed = vfio_server_start(server->vfio);

	if (!failed)
		return 0;
	if (!path)
		return error_set(error, failed,
		                 "--fd %" PRIu64 ": cannot be served on (%s); pass a "
		                 "listening or connected UNIX stream socket",
		                 server->options->fd, strerror(-failed));
	return server_refuse_socket("socket", path, failed, error);
}

/* ---- the wire ---- */

static int open_wire(struct server *server, struct error_text *error)
{
	int failed = net_wire_create(&server->wire);

	if (failed)
		return error_set(error, failed, "the wire cannot be made: %s", strerror(-failed));
	return 0;
}

static void close_wire(struct server *server)
{
	net_wire_destroy(server->wire);
}

static int open_faults(struct server *server, struct error_text *error)
{
	const char *text = server->options->fault;
	struct net_fault_config config;
	char reason[160];
	int failed;

	if (!text)
		return 0;
	failed = net_fault_parse(text, &config, reason, sizeof(reason));
	if (failed)
		return error_set(error, failed, "--fault %s: %s", text, reason);
	failed = net_wire_set_faults(server->wire, server->loop, &config);
	if (failed)
		return error_set(error, failed, "faults cannot be set: %s", strerror(-failed));
	return 0;
}

int server_capture(struct server *server, const char *path)
{
	struct net_pcap *pcap = NULL;
	int failed = path ? net_pcap_open(server->loop, path, &pcap) : 0;

	if (failed)
		return failed;
	net_wire_capture(server->wire, pcap, server->options->pcap_rdma);
	net_pcap_close(server->pcap);
	server->pcap = pcap;
	return 0;
}

bool server_captures(const struct server *server)
{
	return server->pcap && net_pcap_live(server->pcap);
}

bool server_unread_pipe(const char *path, int cause)
{
	struct stat stat_of;

	return (cause == -ENXIO || cause == -EPIPE) && stat(path, &stat_of) == 0 &&
	       S_ISFIFO(stat_of.st_mode);
}

static int refuse_capture(const char *path, int cause, struct error_text *error)
{
	return refuse_file("pcap", path, cause, "wireshark -k -i PIPE", error);
}

static int open_capture(struct server *server, struct error_text *error)
{
	const char *path = server->options->pcap_file;
	int failed = path ? net_pcap_prepare(server->loop, path, &server->pcap) : 0;

	return failed ? refuse_capture(path, failed, error) : 0;
}

static int begin_capture(struct server *server, struct error_text *error)
{
	int failed = server->pcap ? net_pcap_begin(server->pcap) : 0;

	if (failed)
		return refuse_capture(server->options->pcap_file, failed, error);
	net_wire_capture(server->wire, server->pcap, server->options->pcap_rdma);
	return 0;
}

static void close_capture(struct server *server)
{
	if (server->wire)
		server_capture(server, NULL);
}

/* A TAP that is not ours: what is wrong with NAME, and how to make AS. */
static int refuse_tap(const char *name, int cause, const char *text, const char *as,
                      struct error_text *error)
{
	return error_set(
	        error, cause,
	        "--tap %s: %s; make %s with: sudo ip tuntap add dev %s mode tap user $USER "
	        "&& sudo ip link set %s up",
	        name, text, as == name ? "it" : "one", as, as);
}

static int open_tap(struct server *server, struct error_text *error)
{
	static const struct {
		int error;
		const char *text;
	} reasons[] = {
	        {-EBUSY, "another program has it open; end that or give another interface"},
	        {-ENOENT, "this host has no /dev/net/tun; load the module tun"},
	        {-EACCES, "/dev/net/tun may not be opened by this user; as root: chmod 0666 "
	                  "/dev/net/tun, as most hosts have it"},
	};
	const char *name = server->options->tap;
	int failed;

	if (!name)
		return 0;
	failed = net_tap_open(server->loop, server->wire, name, server->values.eth_queues,
	                      &server->tap);
	if (!failed)
		return 0;
	if (failed == -EPERM)
		return refuse_tap(name, failed, "belongs to another user", "IF", error);
	if (failed == -ENODEV && if_nametoindex(name))
		return refuse_tap(name, failed, "is an interface, but no TAP", "IF", error);
	if (failed == -ENODEV)
		return refuse_tap(name, failed, "no TAP interface has this name", name, error);
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].error == failed)
			return error_set(error, failed, "--tap %s: %s", name, reasons[i].text);
	return error_set(error, failed, "--tap %s: cannot be opened (%s); give another interface",
	                 name, strerror(-failed));
}

static void close_tap(struct server *server)
{
	net_tap_close(server->tap);
}

/* ---- the fabric ---- */

/* An IP address as a GID: IPv4 as ::ffff:a.b.c.d. */
static int read_gid(const char *text, uint8_t gid[16], struct error_text *error)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	if (inet_pton(AF_INET, text, gid + 12) == 1 || inet_pton(AF_INET6, text, gid) == 1)
		return 0;
	return error_set(error, -EINVAL,
	                 "--gid %s: not an IP address; give one such as 192.168.200.11", text);
}

static int open_fabric(struct server *server, struct error_text *error)
{
	const struct options *options = server->options;
	bool waits = options->mesh_wait != OPTION_NOT_GIVEN;
	uint8_t gids[OPTIONS_LIST_MAX][16];
	char reason[256];
	struct fabric_place place = {.loop = server->loop,
	                             .wire = server->wire,
	                             .tap = options->tap != NULL,
	                             .gids = (const uint8_t(*)[16])gids,
	                             .gid_count = options->gids.count,
	                             .mesh_wait_s = waits ? (int)options->mesh_wait : -1};
	int failed = 0;

	memcpy(place.mac, server->mac, sizeof(place.mac));
	for (unsigned i = 0; i < options->gids.count && !failed; i++)
		failed = read_gid(options->gids.item[i], gids[i], error);
	if (failed)
		return failed;
	failed = fabric_create(&place, options->backend, &server->fabric, reason, sizeof(reason));
	if (failed == -ENOMEM)
		return error_set(error, failed, "the fabric cannot be made: out of memory");
	if (failed)
		return error_set(error, failed, "--backend %s: %s", options->backend, reason);
	return 0;
}

static void close_fabric(struct server *server)
{
	fabric_destroy(server->fabric);
}

/* ---- watching and control ---- */

static int open_stats(struct server *server, struct error_text *error)
{
	const char *path = server->options->stats_file;

	return path ? stats_file_create(server, path, &server->stats_file, error) : 0;
}

static void close_stats(struct server *server)
{
	stats_file_destroy(server->stats_file);
}

static int open_control(struct server *server, struct error_text *error)
{
	const char *path = server->options->control_path;

	return path ? control_create(server, path, &server->control, error) : 0;
}

static void close_control(struct server *server)
{
	control_destroy(server->control);
}

/* ---- the whole ---- */

/* From the inside out. A close function undoes what its open function did, in part or not at all.
 */
static const struct part {
	int (*open)(struct server *server, struct error_text *error);
	void (*close)(struct server *server);
} parts[] = {
        {open_name, NULL},
        {open_mac, NULL},
        {open_log, close_log},
        {open_loop, close_loop},
        {open_signals, close_signals},
        {open_wire, close_wire},
        {open_faults, NULL},
        {open_capture, close_capture},
        {open_tap, close_tap},
        {open_fabric, close_fabric},
        {open_vfio, close_vfio},
        {open_device, close_device},
        {open_stats, close_stats},
        {open_control, close_control},
        {open_socket, NULL},
        {begin_capture, NULL},
};

static void close_parts(struct server *server, size_t count)
{
	while (count-- > 0)
		if (parts[count].close)
			parts[count].close(server);
}

static int open_parts(struct server *server, struct error_text *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int failed = parts[i].open ? parts[i].open(server, error) : 0;

		if (failed) {
			close_parts(server, i + 1);
			return failed;
		}
	}
	return 0;
}

/*
 * An eventfd for each vector, files behind guest memory, queues of a TAP, clients, and what arrives
 * with a message before anybody has looked at it: more than the usual soft limit, for which
 * select() is the reason, and nobody calls that here.
 */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_max < DESCRIPTORS_WANTED)
		log_warn("only %ju descriptors may be open (hard limit of RLIMIT_NOFILE), a large "
		         "guest takes %d: raise it with prlimit or LimitNOFILE=",
		         (uintmax_t)limit.rlim_max, DESCRIPTORS_WANTED);
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void log_start(const struct server *server)
{
	const struct ionic_profile *values = &server->values;
	char profile[PROFILE_CHAIN_MAX + 32], mac[TEXT_MAC_SIZE];

	log_info("rocm-ernic %s serves %s, backend %s, tap %s", ERNIC_VERSION, server->socket_name,
	         server->options->backend, server->options->tap ? server->options->tap : "none");
	log_info("MAC address %s%s", text_mac_format(server->mac, mac),
	         server->options->mac.given ? "" : " (made from host and socket)");
	if (!server->options->mac.given && server->socket_name[0] != '/')
		log_warn("every server on such an unnamed --fd has this MAC address: give --mac "
		         "when "
		         "there are several");
	if (strcmp(server->options->backend, "roce") == 0 && !server->options->tap)
		log_warn("backend roce without --tap: its packets reach nobody; give --tap IF");
	log_info("NIC profile %s", server_profile_text(server->profile, profile, sizeof(profile)));
	if (values->intr_vectors < profile_full_vectors(values))
		log_warn("queues.intr_vectors %" PRIu32 " is below 1 + queues.eth %" PRIu32
		         " + queues.rdma_eqs %" PRIu32
		         ": a guest with many CPUs gets fewer event queues or queues than these; a "
		         "profile with intr_vectors = auto gives all",
		         values->intr_vectors, values->eth_queues, values->rdma_eqs);
}

static int serve(struct server *server, struct error_text *error)
{
	int failed;

	server->running = true;
	log_start(server);
	if (server->stats_file)
		stats_file_start(server->stats_file);
	notify_manager("READY=1");
	failed = loop_run(server->loop);
	notify_manager("STOPPING=1");
	close_parts(server, ARRAY_SIZE(parts));
	if (failed)
		return error_set(error, failed, "waiting for events failed: %s", strerror(-failed));
	return 0;
}

int server_run(const struct options *options, const struct nic_profile *profile,
               struct error_text *error)
{
	static struct server server; /* large, and one a process */
	int failed;

	server = (struct server){.options = options, .profile = profile};
	profile_resolve(profile, &server.values);
	raise_descriptor_limit();
	failed = open_parts(&server, error);
	return failed ? failed : serve(&server, error);
}
