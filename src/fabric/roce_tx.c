/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames on their way out. Payload is copied into the frame and summed there: were it summed in the
 * sender's memory and read a second time by the kernel, an application that writes to it meanwhile
 * (a counter that a peer READs, say) would break the ICRC, and with enough bad luck the connection.
 */
#include <assert.h>
#include <string.h>

#include "base/counter.h"
#include "fabric/roce_internal.h"

COUNTER(fabric_roce_tx_packets, "RoCEv2 packets put on the wire");
COUNTER(fabric_roce_tx_no_link, "RoCEv2 packets dropped because the link is down");
COUNTER(fabric_roce_tx_refused, "RoCEv2 packets that the wire had no room for");

uint8_t *roce_frame_begin(uint8_t frame[ROCE_FRAME_MAX], const struct rdma_av *av,
                          const struct roce_fields *fields, size_t size)
{
	uint8_t *bth = frame + av->template_size;

	memcpy(frame, av->header, av->template_size);
	if (av->udp_sport == 0) {
		uint16_t port = roce_source_port(fields->qpn, fields->src_qpn);

		bth[-8] = (uint8_t)(port >> 8);
		bth[-7] = (uint8_t)port;
	}
	return bth + roce_put_headers(fields, size, bth);
}

uint8_t *roce_tx_begin(struct roce *roce, const struct rdma_av *av,
                       const struct roce_fields *fields, size_t size)
{
	assert(size <= ROCE_MTU_MAX);
	if (roce->tx_count == ROCE_TX_BATCH)
		roce_tx_flush(roce);
	uint8_t *frame = roce->tx_bytes[roce->tx_count];
	struct iovec *iov = &roce->tx_iov[roce->tx_count];
	uint8_t *payload = roce_frame_begin(frame, av, fields, size);

	/* sealed by roce_tx_add(), when the payload is there */
	iov->iov_base = frame;
	iov->iov_len = (size_t)(payload - frame) + size;
	roce->tx_frame[roce->tx_count].hdr_size = av->vlan ? 18 : 14;
	return payload;
}

void roce_tx_add(struct roce *roce)
{
	struct iovec *iov = &roce->tx_iov[roce->tx_count];
	struct net_frame *frame = &roce->tx_frame[roce->tx_count];

	iov->iov_len = roce_seal(iov->iov_base, frame->hdr_size, iov->iov_len, roce->ident++);
	*frame = (struct net_frame){.iov = iov, .iov_count = 1, .size = iov->iov_len};
	roce->tx_count++;
}

void roce_tx_flush(struct roce *roce)
{
	unsigned count = roce->tx_count;
	int results[ROCE_TX_BATCH];

	if (count == 0)
		return;
	roce->tx_count = 0;
	if (!roce->sharer.port || roce->sharer.port->down) {
		counter_add(&fabric_roce_tx_no_link, count);
		return;
	}
	counter_add(&fabric_roce_tx_packets, count);
	net_wire_send_many(roce->sharer.port, roce->tx_frame, count, results);
	for (unsigned i = 0; i < count; i++)
		if (results[i])
			counter_inc(&fabric_roce_tx_refused);
}
