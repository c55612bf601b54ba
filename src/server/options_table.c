/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options: all that is known about each. */
#include "server/options.h"

#include <net/if.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "base/log.h"
#include "server/profile.h"

static const char *const backend_names[] = {"none", "loopback", "tcp", "roce"};

static const char *const on_off[] = {"off", "on"};

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)
#define PATH_BYTES_MAX  4000 /* of PATH_MAX, with room for the suffix of a temporary file */

#define FLAG(field)  .type = OPTION_FLAG, .offset = offsetof(struct options, field)
#define COUNT(field) .type = OPTION_COUNT, .offset = offsetof(struct options, field)
#define TEXT(field, high)                                                                          \
	.type = OPTION_TEXT, .min = 1, .max = (high), .offset = offsetof(struct options, field)
#define LIST(field, high)                                                                          \
	.type = OPTION_LIST, .min = 1, .max = (high), .offset = offsetof(struct options, field)
#define MAC(field) .type = OPTION_MAC, .offset = offsetof(struct options, field)
#define NUMBER(field, low, high)                                                                   \
	.type = OPTION_NUMBER, .min = (low), .max = (high),                                        \
	.offset = offsetof(struct options, field)
#define MODE(field)                                                                                \
	.type = OPTION_MODE, .min = 0, .max = 0777, .offset = offsetof(struct options, field)
#define CHOICE(field, names)                                                                       \
	.type = OPTION_CHOICE, .choices = (names), .choice_count = ARRAY_SIZE(names),              \
	.offset = offsetof(struct options, field)

#define SCHEME(field, names)                                                                       \
	.type = OPTION_SCHEME, .choices = (names), .choice_count = ARRAY_SIZE(names),              \
	.offset = offsetof(struct options, field)

#define CONNECTION "Connection"
#define NETWORK    "Network"
#define DEVICE     "Device"
#define WATCHING   "Watching and control"
#define OTHER      "Print and exit"

const struct option_spec option_specs[] = {
        {CONNECTION, "socket", .alias = "socket-path", .letter = 's',
         TEXT(socket_path, SOCKET_PATH_MAX), .placeholder = "PATH", .words = OPTION_WORDS_FILE,
         .help = "UNIX socket to serve the vfio-user client (QEMU) on",
         .man = "A socket that a dead server left behind is replaced; one that a living server "
                "answers on is refused. The socket is removed at exit. --socket-path is another "
                "name of this option."},
        {CONNECTION, "fd", NUMBER(fd, 3, 1048575), .placeholder = "N",
         .help = "inherited socket to serve on instead, listening or connected",
         .man = "A server on a connected descriptor ends when its client is gone."},
        {CONNECTION, "socket-mode", MODE(socket_mode), .placeholder = "OCTAL", .initial = "0600",
         .help = "permissions of the socket",
         .man = "Who may open the socket may own the device and read what it does."},
        {NETWORK, "backend", .letter = 'b', SCHEME(backend, backend_names),
         .placeholder = "NAME[:OPTIONS]", .initial = "loopback",
         .help = "what carries RDMA traffic; Ethernet works with each",
         .man = "loopback connects the queue pairs of this NIC with each other. Its options, with "
                "commas between them, are aids for tests: mode=preserve, zeros, ones, increment, "
                "decrement, alternate or random says what lands in place of the payload, and md5 "
                "logs a digest of each message. tcp:manager:[ADDR:]PORT and tcp:worker:HOST:PORT "
                "make several servers one fabric and one Ethernet, the mesh; behind a comma: "
                "interval=MS of health checks, secret=FILE, tls=CERTIFICATE, key=FILE, ca=FILE. "
                "Without a secret and TLS the manager listens on 127.0.0.1 unless ADDR says "
                "otherwise. roce puts RoCEv2 packets on the "
                "wire, to Soft-RoCE, RDMA cards and other servers behind --tap. none offers verbs "
                "that reach nobody."},
        {NETWORK, "gid", LIST(gids, 45), .placeholder = "ADDRESS",
         .help = "an IP address to claim in the mesh at once; may be given more than once",
         .man = "Addresses that the guest uses are claimed by themselves. Needs --backend tcp."},
        {NETWORK, "mesh-wait", NUMBER(mesh_wait, 0, 86400), .placeholder = "S",
         .help = "give up when a mesh's manager is not there within S seconds",
         .man = "Without this option the server starts at once and looks for its manager as long "
                "as it takes. Needs --backend tcp:worker."},
        {NETWORK, "tap", .letter = 'T', TEXT(tap, IFNAMSIZ - 1), .placeholder = "IF",
         .words = OPTION_WORDS_INTERFACE,
         .help = "existing TAP interface of the host to attach the NIC to",
         .man = "Make one that you own with: ip tuntap add dev IF mode tap user $USER; and set it "
                "up: ip link set IF up. Without this option frames that the guest sends are "
                "counted and discarded."},
        {NETWORK, "fault", TEXT(fault, 200), .placeholder = "KEY=VALUE[,...]",
         .help = "what the wire does to frames: loss, delay, jitter, reorder, dup, corrupt, seed",
         .man = "loss, reorder, dup and corrupt are percentages of the frames in each direction, "
                "delay and jitter times: --fault "
                "loss=1%,delay=2ms,jitter=1ms,reorder=0.5%,dup=0.5%,"
                "corrupt=0.1%,seed=42. A seed gives the same faults for the same frames. Jitter "
                "keeps the order of frames. The control command `fault` changes it."},
        {NETWORK, "mac", .letter = 'm', MAC(mac), .placeholder = "XX:XX:XX:XX:XX:XX",
         .help = "MAC address of the NIC; made from the host and the socket path by default",
         .man = "The default is a locally administered address that stays the same for the same "
                "machine and socket path."},
        {DEVICE, "nic-profile", LIST(nic_profiles, PATH_BYTES_MAX), .placeholder = "NAME|FILE",
         .words = OPTION_WORDS_PROFILE,
         .help = "layer a NIC profile over compat; may be given more than once",
         .man = "A built-in profile by name, or an INI file: a name with a / in it or .ini at its "
                "end. Layers apply in order; later ones win, key by key."},
        {DEVICE, "eth-queues", NUMBER(eth_queues, PROFILE_ETH_QUEUES_MIN, PROFILE_ETH_QUEUES_MAX),
         .placeholder = "N", .help = "Ethernet queue pairs, over every profile"},
        {DEVICE, "stats-interval-ms",
         NUMBER(stats_interval_ms, PROFILE_STATS_INTERVAL_MS_MIN, PROFILE_STATS_INTERVAL_MS_MAX),
         .placeholder = "MS",
         .help = "how often counters are published, in milliseconds, over every profile"},
        {DEVICE, "busy-poll-us", NUMBER(busy_poll_us, 0, 1000000), .placeholder = "US",
         .initial = "0",
         .help = "look for the next event this long before sleeping, in microseconds",
         .man = "The bound of an adaptive spin: it shortens where it does not pay off. 0 sleeps "
                "at once."},
        {WATCHING, "stats-file", .letter = 'S', TEXT(stats_file, PATH_BYTES_MAX),
         .placeholder = "FILE", .words = OPTION_WORDS_FILE,
         .help = "file to write all counters to, every interval",
         .man = "It is replaced as a whole, so that a reader never sees half of it."},
        {WATCHING, "pcap", TEXT(pcap_file, PATH_BYTES_MAX), .placeholder = "FILE",
         .words = OPTION_WORDS_FILE,
         .help = "capture what the guest sends and gets, as a pcapng file",
         .man = "Frames as the NIC sees them: sent ones before --fault, received ones after. The "
                "control command `capture` starts and ends it at run time. A pipe needs its "
                "reader first; what it does not take is left out, and counted."},
        {WATCHING, "pcap-rdma", CHOICE(pcap_rdma, on_off), .placeholder = "on|off", .initial = "on",
         .help = "whether captures show RDMA messages that stay in the server",
         .man = "As the RoCEv2 packets that they would be, when they have been executed."},
        {WATCHING, "control", TEXT(control_path, SOCKET_PATH_MAX), .placeholder = "PATH",
         .words = OPTION_WORDS_FILE,
         .help = "UNIX socket for commands to the running server, in JSON"},
        {WATCHING, "log-level", .letter = 'L', CHOICE(log_level, log_level_names),
         .placeholder = "LEVEL", .initial = "warn", .help = "what to log"},
        {WATCHING, "verbose", .letter = 'v', COUNT(verbose),
         .help = "log at least info; twice: debug"},
        {WATCHING, "log-file", .letter = 'l', TEXT(log_file, PATH_BYTES_MAX), .placeholder = "FILE",
         .words = OPTION_WORDS_FILE, .help = "append the log to a file instead of stderr",
         .man = "SIGHUP opens the file anew. A pipe needs its reader first; lines that it does not "
                "take are lost, and counted."},
        {OTHER, "print-profile", FLAG(print_profile),
         .help = "the merged NIC profile, as an INI file that loads back"},
        {OTHER, "print-capabilities", FLAG(print_capabilities), .ends = true,
         .help = "what this vfio-user backend program can do, in JSON"},
        {OTHER, "limits", FLAG(print_limits), .help = "the fixed limits of the program"},
        {OTHER, "version", FLAG(version), .ends = true, .help = "the version"},
        {OTHER, "help", .letter = 'h', FLAG(help), .ends = true, .help = "this text"},
};
const size_t option_spec_count = ARRAY_SIZE(option_specs);
