// SPDX-License-Identifier: GPL-2.0-or-later
/* The host's end of the TAP, peer.h. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEER_TX_QUEUE 8192

/* ---- namespace ---- */

static bool peer_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool peer_unshare(void)
{
	unsigned uid = getuid(), gid = getgid();
	char map[64];

	if (uid == 0)
		return unshare(CLONE_NEWNET) == 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	snprintf(map, sizeof(map), "0 %u 1\n", uid);
	peer_write_file("/proc/self/setgroups", "deny");
	if (!peer_write_file("/proc/self/uid_map", map))
		return false;
	snprintf(map, sizeof(map), "0 %u 1\n", gid);
	return peer_write_file("/proc/self/gid_map", map);
}

bool peer_prepare(char *reason, size_t size)
{
	const char *given = getenv("ERNIC_TEST_TAP");

	if (given)
		return true;
	if (access("/dev/net/tun", R_OK | W_OK) < 0) {
		snprintf(reason, size, "/dev/net/tun: %s; name a TAP of yours in ERNIC_TEST_TAP",
		         strerror(errno));
		return false;
	}
	if (!peer_unshare()) {
		snprintf(reason, size,
		         "no network namespace for us: %s; run as root, or name a TAP of yours in "
		         "ERNIC_TEST_TAP",
		         strerror(errno));
		return false;
	}
	return true;
}

/* ---- the interface ---- */

static int peer_create_tap(const char *name, bool multi)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int err = 0, fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (multi)
		ifr.ifr_flags |= IFF_MULTI_QUEUE;
	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", name);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0 || ioctl(fd, TUNSETPERSIST, 1) < 0)
		err = -errno;
	close(fd);
	return err;
}

static void peer_remove_tap(const char *name, bool multi)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (multi)
		ifr.ifr_flags |= IFF_MULTI_QUEUE;
	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", name);
	if (ioctl(fd, TUNSETIFF, &ifr) == 0)
		ioctl(fd, TUNSETPERSIST, 0);
	close(fd);
}

/* Quiet, large, up: no IPv6 chatter, no ARP. */
static int peer_configure_tap(const char *name)
{
	struct ifreq ifr = {0};
	char path[96];
	int err = 0, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
	peer_write_file(path, "1");
	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", name);
	ifr.ifr_mtu = PEER_TAP_MTU;
	if (ioctl(fd, SIOCSIFMTU, &ifr) < 0)
		err = -errno;
	ifr.ifr_qlen = PEER_TX_QUEUE;
	if (!err && ioctl(fd, SIOCSIFTXQLEN, &ifr) < 0)
		err = -errno;
	ifr.ifr_flags = IFF_UP | IFF_NOARP | IFF_PROMISC;
	if (!err && ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int peer_set(int fd, int option, int value)
{
	return setsockopt(fd, SOL_PACKET, option, &value, sizeof(value));
}

static int peer_open_socket(struct peer *peer)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int buffer = 64 << 20;

	addr.sll_ifindex = peer->ifindex = (int)if_nametoindex(peer->tap);
	if (!addr.sll_ifindex)
		return -errno;
	/* Protocol 0 until it is bound, so that no other interface's frames come in. */
	peer->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (peer->fd < 0)
		return -errno;
	if (setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) < 0)
		setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (peer_set(peer->fd, PACKET_VNET_HDR, 1) < 0 ||
	    peer_set(peer->fd, PACKET_AUXDATA, 1) < 0 ||
	    peer_set(peer->fd, PACKET_IGNORE_OUTGOING, 1) < 0 ||
	    peer_set(peer->fd, PACKET_QDISC_BYPASS, 1) < 0 ||
	    bind(peer->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int err = -errno;

		close(peer->fd);
		return err;
	}
	return 0;
}

int peer_open(struct peer *peer, bool multi)
{
	const char *given = getenv("ERNIC_TEST_TAP");
	static unsigned serial;
	int err = 0;

	*peer = (struct peer){.fd = -1, .created = !given};
	if (given) {
		snprintf(peer->tap, sizeof(peer->tap), "%s", given);
	} else {
		snprintf(peer->tap, sizeof(peer->tap), "ernic%s%u", multi ? "m" : "", serial++);
		err = peer_create_tap(peer->tap, multi);
		if (!err)
			err = peer_configure_tap(peer->tap);
	}
	return err ? err : peer_open_socket(peer);
}

void peer_close(struct peer *peer)
{
	if (peer->fd < 0)
		return;
	close(peer->fd);
	peer->fd = -1;
	if (peer->created)
		peer_remove_tap(peer->tap, strncmp(peer->tap, "ernicm", 6) == 0);
}

int peer_wait_carrier(const struct peer *peer, int timeout_ms)
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = -ETIMEDOUT;

	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", peer->tap);
	for (int i = 0; i < timeout_ms && err == -ETIMEDOUT; i++) {
		if (ioctl(fd, SIOCGIFFLAGS, &ifr) < 0)
			err = -errno;
		else if (ifr.ifr_flags & IFF_RUNNING)
			err = 0;
		else
			poll(NULL, 0, 1);
	}
	close(fd);
	return err;
}

/* ---- frames ---- */

static int peer_sendv(struct peer *peer, struct virtio_net_hdr *hdr, const void *frame, size_t size)
{
	struct iovec iov[2] = {{hdr, sizeof(*hdr)}, {(void *)frame, size}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	if (sendmsg(peer->fd, &msg, 0) < 0)
		return -errno;
	return 0;
}

int peer_send(struct peer *peer, const void *frame, size_t size)
{
	struct virtio_net_hdr hdr = {0};

	return peer_sendv(peer, &hdr, frame, size);
}

int peer_send_offload(struct peer *peer, const struct peer_frame *frame, uint16_t hdr_size)
{
	struct virtio_net_hdr hdr = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
	                             .gso_type = frame->gso,
	                             .hdr_len = hdr_size,
	                             .gso_size = frame->gso_size,
	                             .csum_start = frame->csum_start,
	                             .csum_offset = frame->csum_offset};

	return peer_sendv(peer, &hdr, frame->data, frame->size);
}

/* The kernel takes the tag out of the frame and tells it beside; put it back. */
static void peer_restore_tag(struct peer_frame *frame, const struct tpacket_auxdata *aux)
{
	uint16_t tag[2] = {htons(0x8100), htons(aux->tp_vlan_tci)};

	if (!(aux->tp_status & TP_STATUS_VLAN_VALID) || frame->size < 12 ||
	    frame->size > PEER_FRAME_MAX - 4)
		return;
	if (aux->tp_status & TP_STATUS_VLAN_TPID_VALID)
		tag[0] = htons(aux->tp_vlan_tpid);
	memmove(frame->data + 16, frame->data + 12, frame->size - 12);
	memcpy(frame->data + 12, tag, 4);
	frame->size += 4;
	if (frame->needs_csum)
		frame->csum_start = (uint16_t)(frame->csum_start + 4);
}

static int peer_recv_now(struct peer *peer, struct peer_frame *frame)
{
	struct virtio_net_hdr hdr;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct iovec iov[2] = {{&hdr, sizeof(hdr)}, {frame->data, PEER_FRAME_MAX - 4}};
	struct msghdr msg = {.msg_iov = iov,
	                     .msg_iovlen = 2,
	                     .msg_control = &control,
	                     .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(peer->fd, &msg, MSG_DONTWAIT);
	struct cmsghdr *cmsg;

	if (got < 0)
		return -errno;
	if ((size_t)got < sizeof(hdr))
		return -EPROTO;
	frame->size = (size_t)got - sizeof(hdr);
	frame->needs_csum = hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
	frame->csum_start = hdr.csum_start;
	frame->csum_offset = hdr.csum_offset;
	frame->gso = hdr.gso_type;
	frame->gso_size = hdr.gso_size;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_type == PACKET_AUXDATA)
		peer_restore_tag(frame, (const void *)CMSG_DATA(cmsg));
	return 0;
}

int peer_recv(struct peer *peer, struct peer_frame *frame, int timeout_ms)
{
	struct pollfd fd = {peer->fd, POLLIN, 0};
	int err = peer_recv_now(peer, frame);

	if (err != -EAGAIN)
		return err;
	if (poll(&fd, 1, timeout_ms) <= 0)
		return -ETIMEDOUT;
	return peer_recv_now(peer, frame);
}

unsigned peer_drain(struct peer *peer)
{
	static uint8_t scratch[64];
	unsigned count = 0;

	while (recv(peer->fd, scratch, sizeof(scratch), MSG_DONTWAIT) >= 0)
		count++;
	return count;
}
