/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's TAP interface as port "host" of the wire.
 *
 * Theory of operation
 *
 * The interface must exist and is never created: asking the tun driver for a name that it does not
 * know would make a new one, so the name is looked up first, and the index compared after. A TAP
 * that was made for several queues is opened with several; the kernel then spreads what it sends
 * over them, and so do we, by flow.
 *
 * Every frame is preceded by a virtio network header (VIRTIO 1.2, 5.1.6), which carries the offload
 * notes of struct net_frame in both directions: a TCP packet of 64 KiB crosses in one system call,
 * and neither side fills a checksum that the other does not need.
 *
 *	to the host	header, then the sender's own pieces, written at once
 *	from the host	header, then a buffer for the largest frame; net_wire_send()
 *
 * A frame is a read or a write of its own: the tun driver has no others. Several of them go in one
 * system call when there are several (batch.h): what a sender gives at once, and on the way in a
 * window of reads that doubles while it is filled and shrinks to what was there.
 *
 * The host is always asked for large packets, whatever the ports behind the wire take: cutting one
 * here costs a fraction of the system calls that its segments would take.
 *
 * Waiting. A large packet is more than a ring of receive buffers may hold at a moment when the
 * guest is busy; a card would keep it for that moment. So it is offered as one that may wait. When
 * the port behind the wire says so, the TAP is not read until there is room, the kernel's queue
 * fills, and the host's TCP feels it, instead of losing half a window. Small frames do not wait:
 * they are dropped and counted by the port, as ever. After TAP_HOLD_NS the packet goes as it can,
 * and none is held again until one has come through: a guest that is dead costs no more.
 *
 * Reading waits for the loop's work phase, because frames end in guest memory. A run takes a
 * bounded number of frames and bytes and schedules itself again; the descriptors are watched level
 * triggered, so nothing is missed and nothing is remembered.
 *
 * When the interface is deleted under us it never comes back: the descriptors are dropped from the
 * loop, and from then on frames to the host are refused with -ENETDOWN.
 */
#include "net/net.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/iov.h"
#include "base/log.h"
#include "net/batch.h"
#include "net/link.h"
#include "net/net_internal.h"

COUNTER(net_tap_tx_full, "frames to the host dropped: its queue was full or out of memory");
COUNTER(net_tap_tx_down, "frames to the host dropped: the interface was down");
COUNTER(net_tap_tx_refused, "frames to the host dropped: the kernel did not like the headers");
COUNTER(net_tap_tx_failed, "frames to the host dropped: another error of the kernel");
COUNTER(net_tap_rx_bad, "frames from the host dropped: too long, too short, or of a strange type");
COUNTER(net_tap_rx_failed, "reads of the TAP that failed");
COUNTER(net_tap_rx_gaps, "frames from the host that came behind a read that found none");
COUNTER(net_tap_rx_held, "large packets from the host that waited for room in the guest");
COUNTER(net_tap_rx_late, "large packets that waited in vain");
COUNTER(net_tap_gone, "TAP interfaces that were deleted while in use");

#define TAP_QUEUES_MAX   16
#define TAP_VNET_HEADER  10 /* struct virtio_net_hdr, without the count of merged buffers */
#define TAP_BUDGET       64 /* frames of a run, over all queues */
#define TAP_BUDGET_BYTES (1024 * 1024)
#define TAP_WINDOW_MAX   16           /* reads at once */
#define TAP_HOLD_NS      100000000ull /* below the 200 ms after which TCP sends again */
#define TAP_PIECES       512          /* of the frames that are written at once, headers included */

#define TAP_OFFLOADS (NET_OFFLOAD_CSUM | NET_OFFLOAD_TSO4 | NET_OFFLOAD_TSO6)

/* struct virtio_net_hdr with the byte order in the types. */
struct vnet_header {
	uint8_t flags;
	uint8_t gso_type;
	le16 hdr_len;
	le16 gso_size;
	le16 csum_start;
	le16 csum_offset;
};
static_assert(sizeof(struct vnet_header) == TAP_VNET_HEADER, "VIRTIO 1.2, 5.1.6");

struct tap_queue {
	struct loop_source source;
	struct net_tap *tap;
	bool readable;
};

struct net_tap {
	struct net_port port;
	struct loop *loop;
	struct loop_work work;
	struct tap_queue queues[TAP_QUEUES_MAX];
	unsigned queue_count;
	unsigned next_queue; /* where the next run begins to read */
	bool gone;
	char ifname[IFNAMSIZ];
	struct net_batch *batch;

	/* Frames on their way to the host, for the length of a call. */
	struct iovec pieces[TAP_PIECES];
	struct vnet_header vnets[NET_MANY_MAX];

	/* Frames on their way from it. One byte more: a frame that fills the buffer was too long.
	 */
	unsigned window;                    /* reads at once */
	unsigned rx_filled[TAP_WINDOW_MAX]; /* the buffers with frames, in their order */
	unsigned rx_next, rx_end;           /* those of them that have not been sent on */
	bool held;                          /* the first of them waits; nothing is read */
	bool impatient; /* one waited in vain, and none has come through since */
	struct loop_timer hold_timer;
	size_t rx_sizes[TAP_WINDOW_MAX];
	struct vnet_header rx_vnets[TAP_WINDOW_MAX];
	uint8_t buffers[TAP_WINDOW_MAX][NET_MAX_FRAME + 1];
};

/* ---- to the host ---- */

static void put_notes(const struct net_frame *frame, struct vnet_header *vnet)
{
	*vnet = (struct vnet_header){0};
	if (frame->csum_partial) {
		vnet->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		vnet->csum_start = le16_make(frame->csum_start);
		vnet->csum_offset = le16_make(frame->csum_offset);
	} else if (frame->csum_valid) {
		vnet->flags = VIRTIO_NET_HDR_F_DATA_VALID;
	}
	if (frame->gso == NET_GSO_NONE)
		return;
	vnet->gso_type =
	        frame->gso == NET_GSO_TCPV4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
	if (frame->gso_ecn)
		vnet->gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	vnet->hdr_len = le16_make(frame->hdr_size);
	vnet->gso_size = le16_make(frame->gso_size);
}

/* One flow stays on one queue, or the host would see it out of order. */
static unsigned choose_queue(const struct net_tap *tap, const struct net_frame *frame)
{
	uint8_t head[NET_HEADERS_MAX];
	struct net_headers headers;

	if (tap->queue_count == 1)
		return 0;
	size_t size = frame->size < sizeof(head) ? frame->size : sizeof(head);

	iov_to_buf(frame->iov, frame->iov_count, 0, head, size);
	net_headers_parse(head, size, &headers);
	return net_flow_hash(head, size, &headers) % tap->queue_count;
}

/* Counts a failed write and says it in the words of net_port_ops.deliver. */
static int write_error(int error)
{
	switch (error) {
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		counter_inc(&net_tap_tx_full);
		return -ENOBUFS;
	case EIO: /* the tun driver's word for an interface that is not up */
	case ENETDOWN:
	case EBADFD:
		counter_inc(&net_tap_tx_down);
		return -ENETDOWN;
	case EINVAL:
		counter_inc(&net_tap_tx_refused);
		return -EBADMSG;
	case EMSGSIZE:
		counter_inc(&net_tap_tx_refused);
		return -EMSGSIZE;
	default:
		counter_inc(&net_tap_tx_failed);
		return -EIO;
	}
}

/* The write of a frame, with its pieces in IOV, which has room for one more. */
static struct net_batch_op frame_op(const struct net_tap *tap, const struct net_frame *frame,
                                    struct vnet_header *vnet, struct iovec *iov)
{
	assert(frame->iov_count <= NET_PORT_IOV);
	put_notes(frame, vnet);
	iov[0] = (struct iovec){.iov_base = vnet, .iov_len = sizeof(*vnet)};
	memcpy(iov + 1, frame->iov, frame->iov_count * sizeof(*iov));
	return (struct net_batch_op){.fd = tap->queues[choose_queue(tap, frame)].source.fd,
	                             .iov = iov,
	                             .iov_count = frame->iov_count + 1};
}

static int write_result(const struct net_batch_op *op)
{
	return op->result < 0 ? write_error((int)-op->result) : 0;
}

/* Writes the frames up to the first that has no room in the pieces. Returns how many. */
static unsigned write_some(struct net_tap *tap, const struct net_frame *frames, unsigned count,
                           int *results)
{
	struct net_batch_op ops[NET_MANY_MAX];
	unsigned used = 0, taken = 0;

	while (taken < count && frames[taken].iov_count + 1 <= TAP_PIECES - used) {
		ops[taken] = frame_op(tap, &frames[taken], &tap->vnets[taken], tap->pieces + used);
		used += ops[taken].iov_count;
		taken++;
	}
	net_batch_write(tap->batch, ops, taken);
	for (unsigned i = 0; i < taken; i++)
		results[i] = write_result(&ops[i]);
	return taken;
}

static void tap_deliver_many(struct net_port *port, const struct net_frame *frames, unsigned count,
                             int *results)
{
	struct net_tap *tap = container_of(port, struct net_tap, port);

	for (unsigned i = 0; i < count;) {
		if (tap->gone)
			results[i++] = write_error(ENETDOWN);
		else
			i += write_some(tap, frames + i, count - i, results + i);
	}
}

static int tap_deliver(struct net_port *port, const struct net_frame *frame)
{
	int result;

	tap_deliver_many(port, frame, 1, &result);
	return result;
}

/* ---- from the host ---- */

/* The size of the headers of a large packet. The kernel's own number is a hint for allocation. */
static size_t header_size(const uint8_t *bytes, size_t size, size_t csum_start)
{
	if (size < csum_start || size - csum_start < NET_TCP_HEADER)
		return 0;
	return csum_start + (size_t)(bytes[csum_start + 12] >> 4) * 4;
}

/* Reads the notes that came with a frame. Returns false when they make no sense. */
static bool take_notes(const struct vnet_header *vnet, struct net_frame *frame)
{
	if (vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		frame->csum_partial = true;
		frame->csum_start = le16_get(vnet->csum_start);
		frame->csum_offset = le16_get(vnet->csum_offset);
	}
	frame->csum_valid = vnet->flags & VIRTIO_NET_HDR_F_DATA_VALID;
	switch (vnet->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_NONE:
		return true;
	case VIRTIO_NET_HDR_GSO_TCPV4:
		frame->gso = NET_GSO_TCPV4;
		break;
	case VIRTIO_NET_HDR_GSO_TCPV6:
		frame->gso = NET_GSO_TCPV6;
		break;
	default:
		return false;
	}
	frame->gso_size = le16_get(vnet->gso_size);
	frame->gso_ecn = vnet->gso_type & VIRTIO_NET_HDR_GSO_ECN;
	frame->hdr_size =
	        (uint16_t)header_size(frame->iov[0].iov_base, frame->size, frame->csum_start);
	return frame->hdr_size != 0;
}

/* Sends on the frame in buffer INDEX. Returns false when it has to wait. */
static bool receive(struct net_tap *tap, unsigned index)
{
	size_t size = tap->rx_sizes[index];
	struct iovec iov = {.iov_base = tap->buffers[index], .iov_len = size};
	struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = size};

	if (size < NET_ETH_HEADER || size > NET_MAX_FRAME ||
	    !take_notes(&tap->rx_vnets[index], &frame)) {
		counter_inc(&net_tap_rx_bad);
		return true;
	}
	frame.may_wait = frame.gso != NET_GSO_NONE && !tap->impatient;
	int result = net_wire_send(&tap->port, &frame);

	/* What a port drops, the port counts. */
	if (frame.gso != NET_GSO_NONE && result == 0)
		tap->impatient = false;
	return result != -EAGAIN || !frame.may_wait;
}

/* The interface was deleted. The descriptors report that for ever, so they leave the loop. */
static void tap_lost(struct net_tap *tap)
{
	if (tap->gone)
		return;
	tap->gone = true;
	tap->held = false;
	loop_disarm(tap->loop, &tap->hold_timer);
	counter_inc(&net_tap_gone);
	log_warn("TAP %s was deleted; the NIC goes on without it until the server is restarted",
	         tap->ifname);
	for (unsigned i = 0; i < tap->queue_count; i++) {
		loop_remove(tap->loop, &tap->queues[i].source);
		tap->queues[i].readable = false;
	}
}

/* A read that brought no frame. */
static void read_failed(struct net_tap *tap, ssize_t result)
{
	if (result == -EBADFD)
		tap_lost(tap);
	else if (result != -EAGAIN)
		counter_inc(&net_tap_rx_failed);
}

/* Lists the buffers that reads have filled. The kernel looks for a frame at each read anew: one
 * that comes meanwhile is behind reads that found none. Returns the number of frames. */
static unsigned list_filled(struct net_tap *tap, const struct net_batch_op *ops, unsigned count)
{
	unsigned frames = 0;

	for (unsigned i = 0; i < count; i++) {
		if (ops[i].result < (ssize_t)sizeof(struct vnet_header)) {
			read_failed(tap, ops[i].result);
			continue;
		}
		if (frames < i)
			counter_inc(&net_tap_rx_gaps);
		tap->rx_sizes[i] = (size_t)ops[i].result - sizeof(struct vnet_header);
		tap->rx_filled[frames++] = i;
	}
	tap->rx_next = 0;
	tap->rx_end = frames;
	return frames;
}

/* Reads up to COUNT frames of a queue into the buffers. Returns how many; *BYTES is added to. */
static unsigned read_frames(struct tap_queue *queue, unsigned count, size_t *bytes)
{
	struct net_tap *tap = queue->tap;
	struct net_batch_op ops[TAP_WINDOW_MAX];
	struct iovec iov[TAP_WINDOW_MAX][2];

	for (unsigned i = 0; i < count; i++) {
		iov[i][0] = (struct iovec){&tap->rx_vnets[i], sizeof(tap->rx_vnets[i])};
		iov[i][1] = (struct iovec){tap->buffers[i], sizeof(tap->buffers[i])};
		ops[i] = (struct net_batch_op){
		        .fd = queue->source.fd, .iov = iov[i], .iov_count = 2};
	}
	net_batch_read(tap->batch, ops, count);
	unsigned frames = list_filled(tap, ops, count);

	for (unsigned i = 0; i < frames; i++)
		*bytes += tap->rx_sizes[tap->rx_filled[i]];
	return frames;
}

/* One window of reads. Returns the number of frames; the queue stays readable when it was full. */
static unsigned read_window(struct tap_queue *queue, unsigned budget, size_t *bytes)
{
	struct net_tap *tap = queue->tap;
	unsigned count = tap->window < budget ? tap->window : budget;
	unsigned frames = read_frames(queue, count, bytes);

	/* After a single read nothing is known about the next. The descriptor is level triggered:
	 * the loop, which is asked anyway, knows, and an idle line is not read twice a frame. */
	if (frames < count || count == 1)
		queue->readable = false;
	if (frames < count)
		tap->window = frames ? frames : 1;
	else if (tap->window < TAP_WINDOW_MAX)
		tap->window *= 2;
	if (tap->window > TAP_WINDOW_MAX)
		tap->window = TAP_WINDOW_MAX;
	return frames;
}

static void watch_queues(struct net_tap *tap, uint32_t events)
{
	for (unsigned i = 0; i < tap->queue_count && !tap->gone; i++)
		loop_modify(tap->loop, &tap->queues[i].source, events);
}

/* Sends on what has been read. Returns false when a frame has to wait. */
static bool send_on(struct net_tap *tap)
{
	for (; tap->rx_next < tap->rx_end; tap->rx_next++) {
		if (!receive(tap, tap->rx_filled[tap->rx_next])) {
			if (!tap->held)
				watch_queues(tap, 0);
			if (!tap->hold_timer.armed)
				loop_arm(tap->loop, &tap->hold_timer,
				         loop_now(tap->loop) + TAP_HOLD_NS);
			tap->held = true;
			return false;
		}
		if (tap->hold_timer.armed) { /* the one that waited has gone */
			counter_inc(&net_tap_rx_held);
			loop_disarm(tap->loop, &tap->hold_timer);
		}
	}
	if (tap->held)
		watch_queues(tap, EPOLLIN);
	tap->held = false;
	return true;
}

/* Takes turns among the readable queues until they are empty or the budget is spent. */
static void tap_run(struct loop_work *work)
{
	struct net_tap *tap = container_of(work, struct net_tap, work);
	unsigned frames = 0, idle = 0;
	size_t bytes = 0;

	if (!send_on(tap))
		return;
	while (idle < tap->queue_count) {
		struct tap_queue *queue = &tap->queues[tap->next_queue];

		if (frames >= TAP_BUDGET || bytes >= TAP_BUDGET_BYTES) {
			loop_schedule(tap->loop, &tap->work);
			return;
		}
		if (queue->readable)
			frames += read_window(queue, TAP_BUDGET - frames, &bytes);
		if (!send_on(tap))
			return;
		idle = queue->readable ? 0 : idle + 1;
		tap->next_queue = (tap->next_queue + 1) % tap->queue_count;
	}
}

static void tap_peer_ready(struct net_port *port)
{
	struct net_tap *tap = container_of(port, struct net_tap, port);

	if (tap->held)
		loop_schedule(tap->loop, &tap->work);
}

static void hold_expired(struct loop_timer *timer)
{
	struct net_tap *tap = container_of(timer, struct net_tap, hold_timer);

	counter_inc(&net_tap_rx_late);
	tap->impatient = true;
	loop_schedule(tap->loop, &tap->work);
}

static const struct net_port_ops tap_port_ops = {
        .deliver = tap_deliver,
        .deliver_many = tap_deliver_many,
        .peer_ready = tap_peer_ready,
};

static void tap_ready(struct loop_source *source, uint32_t events)
{
	struct tap_queue *queue = container_of(source, struct tap_queue, source);

	(void)events; /* an error shows itself in the read */
	queue->readable = true;
	loop_schedule(queue->tap->loop, &queue->tap->work);
}

/* ---- opening ---- */

static int set_up_queue(int fd, const char ifname[IFNAMSIZ], bool multi_queue)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int header_bytes = TAP_VNET_HEADER, little_endian = 1;

	if (multi_queue)
		request.ifr_flags |= IFF_MULTI_QUEUE;
	memcpy(request.ifr_name, ifname, IFNAMSIZ);
	if (ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETVNETHDRSZ, &header_bytes) < 0 ||
	    ioctl(fd, TUNSETVNETLE, &little_endian) < 0)
		return -errno;
	return 0;
}

/* Opens one more queue of the interface. Returns 0 or a negative errno. */
static int add_queue(struct net_tap *tap, bool multi_queue)
{
	struct tap_queue *queue = &tap->queues[tap->queue_count];
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int error = set_up_queue(fd, tap->ifname, multi_queue);

	queue->tap = tap;
	queue->source = (struct loop_source){.ready = tap_ready, .fd = fd};
	if (!error)
		error = loop_add(tap->loop, &queue->source, EPOLLIN);
	if (error) {
		close(fd);
		return error;
	}
	tap->queue_count++;
	return 0;
}

/* Opens all queues. Some are enough when the kernel does not give all of them. */
static int open_queues(struct net_tap *tap, const struct net_link *link, unsigned queues)
{
	unsigned wanted = link->multi_queue && queues > 1 ? queues : 1;

	if (wanted > TAP_QUEUES_MAX)
		wanted = TAP_QUEUES_MAX;
	for (unsigned i = 0; i < wanted; i++) {
		int error = add_queue(tap, link->multi_queue);

		if (error == -E2BIG && i > 0)
			return 0;
		if (error)
			return error;
	}
	return 0;
}

static int set_offloads(struct net_tap *tap, unsigned long flags)
{
	return ioctl(tap->queues[0].source.fd, TUNSETOFFLOAD, flags) < 0 ? -errno : 0;
}

static int tap_start(struct net_tap *tap, struct net_wire *wire, unsigned queues)
{
	struct net_link link;
	int error = net_link_query(tap->ifname, &link);

	if (error)
		return error;
	if (!link.is_tap)
		return -ENODEV;
	if (link.open_queues > 0)
		return -EBUSY;
	error = open_queues(tap, &link, queues);
	if (error)
		return error;
	if (if_nametoindex(tap->ifname) != link.index)
		return -ENODEV; /* deleted meanwhile; what we opened is new and goes with us */
	error = set_offloads(tap, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN);
	if (error)
		return error;
	return net_wire_attach(wire, &tap->port);
}

int net_tap_open(struct loop *loop, struct net_wire *wire, const char *ifname, unsigned queues,
                 struct net_tap **out)
{
	if (strlen(ifname) >= IFNAMSIZ)
		return -ENODEV;
	struct net_tap *tap = calloc(1, sizeof(*tap));

	if (!tap)
		return -ENOMEM;
	tap->batch = net_batch_create();
	if (!tap->batch) {
		free(tap);
		return -ENOMEM;
	}
	strcpy(tap->ifname, ifname);
	tap->loop = loop;
	tap->window = 1;
	tap->work.run = tap_run;
	tap->hold_timer.expired = hold_expired;
	tap->port = (struct net_port){.name = "host",
	                              .ops = &tap_port_ops,
	                              .offloads = TAP_OFFLOADS,
	                              .group = NET_GROUP_OUTSIDE};
	int error = tap_start(tap, wire, queues);

	if (error) {
		net_tap_close(tap);
		return error;
	}
	*out = tap;
	return 0;
}

void net_tap_close(struct net_tap *tap)
{
	if (!tap)
		return;
	net_wire_detach(&tap->port);
	loop_cancel(tap->loop, &tap->work);
	loop_disarm(tap->loop, &tap->hold_timer);
	/* The interface stays, and so would its offloads: the next program may not know them. */
	if (tap->queue_count > 0 && !tap->gone)
		set_offloads(tap, 0);
	for (unsigned i = 0; i < tap->queue_count; i++) {
		loop_remove(tap->loop, &tap->queues[i].source);
		close(tap->queues[i].source.fd);
	}
	net_batch_destroy(tap->batch);
	free(tap);
}
