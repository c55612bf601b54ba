/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's end of the TAP: makes the interface where it may, and sees and sends raw frames on it.
 *
 * TAPs live in a network namespace of the test's own, so that nothing of the host is touched and
 * tests may run side by side. Where namespaces or /dev/net/tun are forbidden, the interface named
 * in $ERNIC_TEST_TAP is used; where there is none either, the test skips and says why.
 */
#ifndef ERNIC_TESTS_DRIVER_PEER_H
#define ERNIC_TESTS_DRIVER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_FRAME_MAX 66000
#define PEER_TAP_MTU   12000

/* A frame as the kernel got it from the TAP, tags in place. */
struct peer_frame {
	bool needs_csum; /* the checksum at csum_start + csum_offset is to be filled */
	uint16_t csum_start, csum_offset;
	uint8_t gso; /* VIRTIO_NET_HDR_GSO_*, 0: none */
	uint16_t gso_size;
	size_t size;
	uint8_t data[PEER_FRAME_MAX];
};

struct peer {
	int fd;
	int ifindex;
	char tap[16];
	bool created;
};

/*
 * Enters a private network namespace, once in a process, before any server is started. Returns
 * true, or false with the reason in REASON when there is neither a namespace nor $ERNIC_TEST_TAP.
 */
bool peer_prepare(char *reason, size_t size);

/* Makes a TAP with room for several queues when MULTI, or takes $ERNIC_TEST_TAP; opens a raw
 * socket on it. Returns 0 or a negative errno. */
int peer_open(struct peer *peer, bool multi);
void peer_close(struct peer *peer);

/* Waits until the interface has a carrier, that is, until the server has opened it. */
int peer_wait_carrier(const struct peer *peer, int timeout_ms);

/* Sends one frame to the NIC. */
int peer_send(struct peer *peer, const void *frame, size_t size);

/* ... with offload notes: a checksum to fill, and GSO when GSO is not 0. */
int peer_send_offload(struct peer *peer, const struct peer_frame *frame, uint16_t hdr_size);

/* Waits for a frame from the NIC. Returns 0, -ETIMEDOUT or another negative errno. */
int peer_recv(struct peer *peer, struct peer_frame *frame, int timeout_ms);

/* Throws away what has arrived. Returns how many frames that was. */
unsigned peer_drain(struct peer *peer);

#endif
