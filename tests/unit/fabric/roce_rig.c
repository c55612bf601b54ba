/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two NICs and a cable; see roce_rig.h. */
#include "roce_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/iov.h"
#include "net/pcap.h"

static int guest_deliver(struct net_port *port, const struct net_frame *frame)
{
	(void)frame;
	container_of(port, struct rig_side, guest)->for_guest++;
	return 0;
}

void rig_inject(struct rig *rig, unsigned side, const void *bytes, size_t size)
{
	struct rig_side *from = &rig->side[side];
	struct rig_frame *slot = &from->queue[from->tail % RIG_QUEUE];

	assert_true(from->tail - from->head < RIG_QUEUE && size <= sizeof(slot->bytes));
	slot->size = size;
	memcpy(slot->bytes, bytes, size);
	from->tail++;
	loop_schedule(rig->loop, &rig->work);
}

static int cable_deliver(struct net_port *port, const struct net_frame *frame)
{
	struct rig_side *side = container_of(port, struct rig_side, cable);
	uint8_t bytes[4300];

	assert_true(frame->size <= sizeof(bytes));
	iov_to_buf(frame->iov, frame->iov_count, 0, bytes, frame->size);
	rig_inject(side->rig, (unsigned)(side - side->rig->side), bytes, frame->size);
	return 0;
}

static const struct net_port_ops guest_ops = {.deliver = guest_deliver};
static const struct net_port_ops cable_ops = {.deliver = cable_deliver};

static void carry(struct rig *rig, unsigned side)
{
	struct rig_side *from = &rig->side[side], *to = &rig->side[!side];
	uint32_t end = from->tail;

	while (from->head != end) {
		struct rig_frame *slot = &from->queue[from->head++ % RIG_QUEUE];
		unsigned copies = rig->look ? rig->look(rig, side, slot) : 1;
		struct iovec iov = {slot->bytes, slot->size};
		struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = slot->size};

		while (copies-- > 0)
			net_wire_send(&to->cable, &frame);
	}
}

static void rig_run(struct loop_work *work)
{
	struct rig *rig = container_of(work, struct rig, work);

	carry(rig, 0);
	carry(rig, 1);
}

static void side_capture(struct rig *rig, struct rig_side *side)
{
	const char *folder = getenv("ERNIC_TEST_PCAP");
	static unsigned serial;
	char path[300];

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/rig-%03u.pcapng", folder, serial++);
	assert_int_equal(net_pcap_open(rig->loop, path, &side->pcap), 0);
	net_wire_capture(side->wire, side->pcap, true);
}

static void side_open(struct rig *rig, unsigned index)
{
	struct rig_side *side = &rig->side[index];
	struct fabric_place place;
	char error[200];

	side->rig = rig;
	side->queue = calloc(RIG_QUEUE, sizeof(*side->queue));
	assert_non_null(side->queue);
	assert_int_equal(net_wire_create(&side->wire), 0);
	place = (struct fabric_place){.loop = rig->loop, .wire = side->wire};
	assert_int_equal(fabric_create(&place, "roce", &side->fabric, error, sizeof(error)), 0);
	side_capture(rig, side);
	side->guest = (struct net_port){.name = "guest", .ops = &guest_ops};
	side->cable = (struct net_port){.name = "host", .ops = &cable_ops};
	assert_int_equal(net_wire_attach(side->wire, &side->guest), 0);
	assert_int_equal(net_wire_attach(side->wire, &side->cable), 0);
	side->nic = nic_on(rig->loop, side->fabric, (uint8_t)(index + 1));
}

struct rig *rig_new(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	assert_int_equal(loop_create(&rig->loop), 0);
	rig->work.run = rig_run;
	side_open(rig, 0);
	side_open(rig, 1);
	return rig;
}

static void side_close(struct rig_side *side)
{
	nic_free(side->nic);
	net_wire_detach(&side->guest);
	net_wire_detach(&side->cable);
	fabric_destroy(side->fabric);
	net_wire_capture(side->wire, NULL, false);
	net_pcap_close(side->pcap);
	net_wire_destroy(side->wire);
	free(side->queue);
}

void rig_free(struct rig *rig)
{
	side_close(&rig->side[0]);
	side_close(&rig->side[1]);
	loop_cancel(rig->loop, &rig->work);
	loop_destroy(rig->loop);
	free(rig);
}
