/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures of frames as pcapng files (draft-ietf-opsawg-pcapng), as the guest's NIC sees them: what
 * it sends before the faults of the wire, what it gets after them. One interface, nanoseconds, the
 * direction of each frame. A large packet that is cut by its receiver is one frame, as it is in a
 * capture on Linux; a tag that is not in the frame yet is put in.
 *
 * Blocks gather in a buffer, which is written when it is full and FLUSH_NS after the first of them,
 * so that who follows the file sees frames soon, and a busy wire costs few system calls.
 */
#include "net/pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/iov.h"
#include "base/log.h"
#include "net/net.h"

COUNTER(net_pcap_frames, "frames written to captures");

#define BUFFER_SIZE (256u << 10)
#define FLUSH_NS    100000000ull

/* Block types and options of pcapng; files are in host byte order, which the magic tells. */
#define BLOCK_SECTION   0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET    6u
#define SECTION_MAGIC   0x1a2b3c4du
#define LINK_ETHERNET   1
#define OPTION_IF_NAME  2
#define OPTION_IF_TICKS 9
#define OPTION_FLAGS    2
#define FLAG_INBOUND    1u
#define FLAG_OUTBOUND   2u

struct net_pcap {
	struct loop *loop;
	struct loop_timer timer;
	int fd; /* -1: writing failed */
	size_t used;
	uint8_t buffer[BUFFER_SIZE];
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

_Static_assert(sizeof(struct section_block) == 28, "pcapng 4.1");
_Static_assert(sizeof(struct interface_block) == 44, "pcapng 4.2");
_Static_assert(sizeof(struct packet_head) == 28, "pcapng 4.3");
_Static_assert(sizeof(struct packet_tail) == 16, "pcapng 4.3");
_Static_assert(NET_MAX_FRAME + 256 < BUFFER_SIZE, "any frame fits");

static void flush(struct net_pcap *pcap)
{
	size_t done = 0;

	loop_disarm(pcap->loop, &pcap->timer);
	while (pcap->fd >= 0 && done < pcap->used) {
		ssize_t part = write(pcap->fd, pcap->buffer + done, pcap->used - done);

		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0) {
			log_warn("the capture ends here: it cannot be written (%s)",
			         strerror(errno));
			close(pcap->fd);
			pcap->fd = -1;
			break;
		}
		done += (size_t)part;
	}
	pcap->used = 0;
}

static void flush_expired(struct loop_timer *timer)
{
	flush((struct net_pcap *)((char *)timer - offsetof(struct net_pcap, timer)));
}

static void put(struct net_pcap *pcap, const void *bytes, size_t size)
{
	memcpy(pcap->buffer + pcap->used, bytes, size);
	pcap->used += size;
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
static void put_frame(struct net_pcap *pcap, const struct net_frame *frame, size_t padded)
{
	uint8_t *out = pcap->buffer + pcap->used;
	size_t head = 2 * 6, tag = frame->vlan ? NET_VLAN_HEADER : 0;

	memset(out + padded - 4, 0, 4);
	iov_to_buf(frame->iov, frame->iov_count, 0, out, head);
	if (tag) {
		const uint8_t bytes[] = {0x81, 0, (uint8_t)(frame->vlan_tci >> 8),
		                         (uint8_t)frame->vlan_tci};

		memcpy(out + head, bytes, sizeof(bytes));
	}
	iov_to_buf(frame->iov, frame->iov_count, head, out + head + tag, frame->size - head);
	pcap->used += padded;
}

void net_pcap_frame(struct net_pcap *pcap, const struct net_frame *frame, bool inbound)
{
	size_t size = frame->size + (frame->vlan ? NET_VLAN_HEADER : 0);
	size_t padded = (size + 3) & ~(size_t)3;
	size_t block = sizeof(struct packet_head) + padded + sizeof(struct packet_tail);
	struct timespec now;

	if (pcap->fd < 0)
		return;
	if (block > BUFFER_SIZE - pcap->used)
		flush(pcap);
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ns = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	const struct packet_head head = {.type = BLOCK_PACKET,
	                                 .size = (uint32_t)block,
	                                 .time_high = (uint32_t)(ns >> 32),
	                                 .time_low = (uint32_t)ns,
	                                 .captured = (uint32_t)size,
	                                 .original = (uint32_t)size};
	const struct packet_tail tail = {.code = OPTION_FLAGS,
	                                 .size = 4,
	                                 .flags = inbound ? FLAG_INBOUND : FLAG_OUTBOUND,
	                                 .size_again = (uint32_t)block};

	put(pcap, &head, sizeof(head));
	put_frame(pcap, frame, padded);
	put(pcap, &tail, sizeof(tail));
	counter_inc(&net_pcap_frames);
	if (!pcap->timer.armed)
		loop_arm(pcap->loop, &pcap->timer, loop_now(pcap->loop) + FLUSH_NS);
}

int net_pcap_open(struct loop *loop, const char *path, struct net_pcap **result)
{
	struct net_pcap *pcap = malloc(sizeof(*pcap));

	if (!pcap)
		return -ENOMEM;
	pcap->loop = loop;
	pcap->timer = (struct loop_timer){.expired = flush_expired};
	pcap->used = 0;
	/* The server waits for nobody: who reads a pipe has to keep up. */
	pcap->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
	if (pcap->fd < 0) {
		int error = -errno;

		free(pcap);
		return error;
	}
	put_file_head(pcap);
	flush(pcap);
	*result = pcap;
	return 0;
}

void net_pcap_close(struct net_pcap *pcap)
{
	if (!pcap)
		return;
	flush(pcap);
	if (pcap->fd >= 0)
		close(pcap->fd);
	free(pcap);
}
