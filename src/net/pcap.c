/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures of frames as pcapng files (draft-ietf-opsawg-pcapng), as the guest's NIC sees them: what
 * it sends before the faults of the wire, what it gets after them. One interface, nanoseconds, the
 * direction of each frame. A large packet that is cut by its receiver is one frame, as it is in a
 * capture on Linux; a tag that is not in the frame yet is put in.
 *
 * Blocks gather in a ring, which is written when BATCH_SIZE is in it and FLUSH_NS after the first
 * of them, so that who follows the file sees frames soon, and a busy wire costs few system calls.
 *
 * The server waits for nobody, and the file may be a pipe. What that does not take stays in the
 * ring until the loop says that it can be written to; until then no system call is made, and when
 * the ring is full whole frames are left out, so that the blocks stay well-formed. The end tells
 * how many, in the file too.
 *
 * A capture is prepared before it begins: all that can be found wrong with a path is found while
 * nothing in the file has been touched.
 *
 * Not done: pipes that get a second reader. The capture ends when the last reader goes.
 */
#include "net/pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/iov.h"
#include "base/log.h"
#include "net/net.h"

COUNTER(net_pcap_frames, "frames written to captures");
COUNTER(net_pcap_dropped, "frames left out of captures whose reader did not keep up");

#define BUFFER_SIZE (4u << 20) /* a burst of the guest's, before a reader gets to run */
#define BATCH_SIZE  (256u << 10)
#define PIPE_SIZE   (1 << 20) /* what Linux lets anybody have */
#define FLUSH_NS    100000000ull

/* Block types and options of pcapng; files are in host byte order, which the magic tells. */
#define BLOCK_SECTION   0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_STATS     5u
#define BLOCK_PACKET    6u
#define SECTION_MAGIC   0x1a2b3c4du
#define LINK_ETHERNET   1
#define OPTION_IF_NAME  2
#define OPTION_IF_TICKS 9
#define OPTION_FLAGS    2
#define OPTION_RECEIVED 4
#define OPTION_DROPPED  5
#define FLAG_INBOUND    1u
#define FLAG_OUTBOUND   2u

struct net_pcap {
	struct loop *loop;
	struct loop_timer timer;
	struct loop_source source; /* of the file; fd -1: the capture has ended */
	bool begun;                /* and not only prepared */
	bool waiting;              /* for the pipe to have room */
	char *made;                /* path of a file that was not there; NULL once begun */
	uint64_t frames, dropped;
	size_t begin, end; /* of what is in the ring; they grow, and are cut to it in use */
	uint8_t ring[BUFFER_SIZE];
};

struct section_block {
	uint32_t type, size, magic;
	uint16_t major, minor;
	int64_t length; /* of the section: not known */
	uint32_t size_again;
} __attribute__((packed));

struct interface_block {
	uint32_t type, size;
	uint16_t link, reserved;
	uint32_t snap;
	struct {
		uint16_t code, size;
		char name[8];
	} name;
	struct {
		uint16_t code, size;
		uint8_t ticks, pad[3];
	} ticks;
	uint32_t end_of_options;
	uint32_t size_again;
} __attribute__((packed));

struct packet_head {
	uint32_t type, size, interface, time_high, time_low, captured, original;
} __attribute__((packed));

struct packet_tail {
	uint16_t code, size;
	uint32_t flags, end_of_options, size_again;
} __attribute__((packed));

struct stats_block {
	uint32_t type, size, interface, time_high, time_low;
	struct {
		uint16_t code, size;
		uint64_t value;
	} __attribute__((packed)) received, dropped;
	uint32_t end_of_options, size_again;
} __attribute__((packed));

_Static_assert(sizeof(struct section_block) == 28, "pcapng 4.1");
_Static_assert(sizeof(struct interface_block) == 44, "pcapng 4.2");
_Static_assert(sizeof(struct packet_head) == 28, "pcapng 4.3");
_Static_assert(sizeof(struct packet_tail) == 16, "pcapng 4.3");
_Static_assert(sizeof(struct stats_block) == 52, "pcapng 4.6");
_Static_assert(NET_MAX_FRAME + 256 < BUFFER_SIZE, "any frame fits");
_Static_assert((BUFFER_SIZE & (BUFFER_SIZE - 1)) == 0, "positions may wrap");

/* ---- the file ---- */

static size_t pending(const struct net_pcap *pcap)
{
	return pcap->end - pcap->begin;
}

/* Forgets the file and what it has not got. */
static void drop_file(struct net_pcap *pcap)
{
	loop_disarm(pcap->loop, &pcap->timer);
	loop_remove(pcap->loop, &pcap->source);
	if (pcap->source.fd >= 0)
		close(pcap->source.fd);
	pcap->source.fd = -1;
	pcap->begin = pcap->end;
}

static void fail(struct net_pcap *pcap, int error)
{
	log_warn("the capture ends here: it cannot be written (%s)", strerror(-error));
	drop_file(pcap);
}

static int wait_for_room(struct net_pcap *pcap, bool waiting)
{
	int error = 0;

	if (pcap->waiting != waiting)
		error = loop_modify(pcap->loop, &pcap->source, waiting ? EPOLLOUT : 0);
	pcap->waiting = waiting;
	return error;
}

/* One system call. Returns what the file took, or a negative errno. */
static ssize_t write_some(struct net_pcap *pcap)
{
	size_t at = pcap->begin % BUFFER_SIZE, size = pending(pcap);
	size_t first = size < BUFFER_SIZE - at ? size : BUFFER_SIZE - at;
	struct iovec iov[] = {{pcap->ring + at, first}, {pcap->ring, size - first}};
	ssize_t part = writev(pcap->source.fd, iov, first < size ? 2 : 1);

	if (part == 0)
		return -EIO;
	return part < 0 ? -errno : part;
}

/* Writes what has gathered, as far as the file takes it now. Returns 0 or a negative errno. */
static int try_flush(struct net_pcap *pcap)
{
	loop_disarm(pcap->loop, &pcap->timer);
	while (pending(pcap) > 0) {
		ssize_t part = write_some(pcap);

		if (part == -EAGAIN && pcap->source.added)
			return wait_for_room(pcap, true);
		if (part < 0 && part != -EINTR)
			return (int)part;
		if (part > 0)
			pcap->begin += (size_t)part;
	}
	pcap->begin = pcap->end = 0; /* the ring's first pages are warm */
	return wait_for_room(pcap, false);
}

static void flush(struct net_pcap *pcap)
{
	int error = try_flush(pcap);

	if (error)
		fail(pcap, error);
}

static void flush_expired(struct loop_timer *timer)
{
	flush(container_of(timer, struct net_pcap, timer));
}

static void file_ready(struct loop_source *source, uint32_t events)
{
	struct net_pcap *pcap = container_of(source, struct net_pcap, source);

	if (events & (EPOLLERR | EPOLLHUP))
		fail(pcap, -EPIPE);
	else
		flush(pcap);
}

/* ---- blocks ---- */

static void put(struct net_pcap *pcap, const void *bytes, size_t size)
{
	size_t at = pcap->end % BUFFER_SIZE;
	size_t first = size < BUFFER_SIZE - at ? size : BUFFER_SIZE - at;

	memcpy(pcap->ring + at, bytes, first);
	memcpy(pcap->ring, (const uint8_t *)bytes + first, size - first);
	pcap->end += size;
}

/* SIZE bytes of a frame from OFFSET. */
static void put_part(struct net_pcap *pcap, const struct net_frame *frame, size_t offset,
                     size_t size)
{
	size_t at = pcap->end % BUFFER_SIZE;
	size_t first = size < BUFFER_SIZE - at ? size : BUFFER_SIZE - at;

	iov_to_buf(frame->iov, frame->iov_count, offset, pcap->ring + at, first);
	iov_to_buf(frame->iov, frame->iov_count, offset + first, pcap->ring, size - first);
	pcap->end += size;
}

static void put_file_head(struct net_pcap *pcap)
{
	const struct section_block section = {.type = BLOCK_SECTION,
	                                      .size = sizeof(section),
	                                      .magic = SECTION_MAGIC,
	                                      .major = 1,
	                                      .length = -1,
	                                      .size_again = sizeof(section)};
	const struct interface_block interface = {
	        .type = BLOCK_INTERFACE,
	        .size = sizeof(interface),
	        .link = LINK_ETHERNET,
	        .name = {OPTION_IF_NAME, 5, "guest"},
	        .ticks = {OPTION_IF_TICKS, 1, 9, {0}}, /* 10^-9 s */
	        .size_again = sizeof(interface)};

	put(pcap, &section, sizeof(section));
	put(pcap, &interface, sizeof(interface));
}

/* The frame's bytes, with its tag, and zeros up to a whole word. */
static void put_frame(struct net_pcap *pcap, const struct net_frame *frame, size_t padding)
{
	static const uint8_t zeros[4];
	const uint8_t tag[] = {0x81, 0, (uint8_t)(frame->vlan_tci >> 8), (uint8_t)frame->vlan_tci};
	size_t head = 2 * 6;

	put_part(pcap, frame, 0, head);
	if (frame->vlan)
		put(pcap, tag, sizeof(tag));
	put_part(pcap, frame, head, frame->size - head);
	put(pcap, zeros, padding);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void put_packet(struct net_pcap *pcap, const struct net_frame *frame, bool inbound,
                       uint32_t block)
{
	uint32_t size = (uint32_t)frame->size + (frame->vlan ? NET_VLAN_HEADER : 0);
	uint64_t now = now_ns();
	const struct packet_head head = {.type = BLOCK_PACKET,
	                                 .size = block,
	                                 .time_high = (uint32_t)(now >> 32),
	                                 .time_low = (uint32_t)now,
	                                 .captured = size,
	                                 .original = size};
	const struct packet_tail tail = {.code = OPTION_FLAGS,
	                                 .size = 4,
	                                 .flags = inbound ? FLAG_INBOUND : FLAG_OUTBOUND,
	                                 .size_again = block};

	put(pcap, &head, sizeof(head));
	put_frame(pcap, frame, -size & 3);
	put(pcap, &tail, sizeof(tail));
}

/* What there was and what is missing. */
static void put_stats(struct net_pcap *pcap)
{
	uint64_t now = now_ns();
	const struct stats_block block = {
	        .type = BLOCK_STATS,
	        .size = sizeof(block),
	        .time_high = (uint32_t)(now >> 32),
	        .time_low = (uint32_t)now,
	        .received = {OPTION_RECEIVED, 8, pcap->frames + pcap->dropped},
	        .dropped = {OPTION_DROPPED, 8, pcap->dropped},
	        .size_again = sizeof(block)};

	if (sizeof(block) <= BUFFER_SIZE - pending(pcap))
		put(pcap, &block, sizeof(block));
}

/* ---- captures ---- */

bool net_pcap_live(const struct net_pcap *pcap)
{
	return pcap->source.fd >= 0;
}

void net_pcap_frame(struct net_pcap *pcap, const struct net_frame *frame, bool inbound)
{
	size_t size = frame->size + (frame->vlan ? NET_VLAN_HEADER : 0);
	size_t block =
	        sizeof(struct packet_head) + ((size + 3) & ~(size_t)3) + sizeof(struct packet_tail);

	if (!net_pcap_live(pcap))
		return;
	if (block > BUFFER_SIZE - pending(pcap)) {
		pcap->dropped++;
		counter_inc(&net_pcap_dropped);
		return;
	}
	put_packet(pcap, frame, inbound, (uint32_t)block);
	pcap->frames++;
	counter_inc(&net_pcap_frames);
	if (pcap->waiting)
		return;
	if (pending(pcap) >= BATCH_SIZE)
		flush(pcap);
	else if (!pcap->timer.armed)
		loop_arm(pcap->loop, &pcap->timer, loop_now(pcap->loop) + FLUSH_NS);
}

/* Opens PATH and leaves what is in it; *MADE tells whether that made it. Returns the descriptor or
 * a negative errno. */
static int open_file(const char *path, bool *made)
{
	int flags = O_WRONLY | O_NONBLOCK | O_CLOEXEC;
	int fd = open(path, flags);

	*made = false;
	if (fd < 0 && errno == ENOENT) {
		fd = open(path, flags | O_CREAT | O_EXCL, 0600);
		*made = fd >= 0;
		if (fd < 0 && errno == EEXIST) /* a link to what is not there */
			fd = open(path, flags | O_CREAT, 0600);
	}
	return fd < 0 ? -errno : fd;
}

int net_pcap_prepare(struct loop *loop, const char *path, struct net_pcap **result)
{
	struct net_pcap *pcap = malloc(sizeof(*pcap)); /* most pages of the ring stay untouched */
	bool made;

	if (!pcap)
		return -ENOMEM;
	memset(pcap, 0, offsetof(struct net_pcap, ring));
	pcap->loop = loop;
	pcap->timer.expired = flush_expired;
	pcap->source.ready = file_ready;
	pcap->source.fd = open_file(path, &made);
	if (pcap->source.fd < 0) {
		int error = pcap->source.fd;

		free(pcap);
		return error;
	}
	if (made)
		pcap->made = strdup(path);
	*result = pcap;
	return 0;
}

int net_pcap_begin(struct net_pcap *pcap)
{
	int fd = pcap->source.fd, error = 0;
	struct stat stat;

	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && ftruncate(fd, 0) < 0)
		return -errno;
	if (fcntl(fd, F_GETPIPE_SZ) < PIPE_SIZE)
		fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE); /* or as it is */
	error = loop_add(pcap->loop, &pcap->source, 0);
	if (error && error != -EPERM) /* files that always take what comes */
		return error;
	put_file_head(pcap);
	error = try_flush(pcap);
	if (error)
		return error;
	free(pcap->made);
	pcap->made = NULL;
	pcap->begun = true;
	return 0;
}

int net_pcap_open(struct loop *loop, const char *path, struct net_pcap **pcap)
{
	int error = net_pcap_prepare(loop, path, pcap);

	if (error)
		return error;
	error = net_pcap_begin(*pcap);
	if (error)
		net_pcap_close(*pcap);
	return error;
}

/* What is left goes as far as that takes no waiting. */
static void end(struct net_pcap *pcap)
{
	if (net_pcap_live(pcap)) {
		if (pcap->dropped > 0)
			put_stats(pcap);
		flush(pcap);
	}
	if (pcap->dropped > 0 || pending(pcap) > 0)
		log_warn("the capture is not whole, its reader did not keep up: %" PRIu64
		         " frames left out, %zu bytes not written at the end",
		         pcap->dropped, pending(pcap));
}

void net_pcap_close(struct net_pcap *pcap)
{
	if (!pcap)
		return;
	if (pcap->begun)
		end(pcap);
	drop_file(pcap);
	if (pcap->made)
		unlink(pcap->made);
	free(pcap->made);
	free(pcap);
}
