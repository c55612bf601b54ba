/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The AdminQ: commands from a ring, one completion each, in order (spec ionic-ethernet 5.1).
 *
 * A driver walks its ring until it meets the completion's index: an index that is wrong or out of
 * order hangs it. So every descriptor that the driver rang for is answered, a descriptor that
 * cannot be read too.
 */
#include "ionic_internal.h"

COUNTER(ionic_adminq_fetch_error, "AdminQ descriptors that could not be read");

#define ADMINQ_BUDGET 16 /* commands in one turn of the work; the driver's ring has as many */

static void adminq_serve(struct ionic_queue *queue)
{
	struct ionic_dev *dev = queue->dev;
	uint32_t slot = queue->cons;
	union ionic_comp comp = {{0}};
	enum ionic_status status;
	union ionic_cmd cmd;

	if (ionic_queue_read_desc(queue, slot, &cmd, sizeof(cmd)) < 0)
		status = ionic_refuse(&ionic_adminq_fetch_error, IONIC_RC_EFAULT);
	else
		status = ionic_cmd_run(dev, true, &cmd, &comp);
	dev->count.admin_commands++;
	if (!queue->initialized)
		return; /* a reset came while guest memory was read */
	ionic_queue_advance(queue, 1);
	comp.any.status = (uint8_t)status;
	comp.any.comp_index = le16_make((uint16_t)slot);
	ionic_queue_complete(queue, comp.bytes);
}

bool ionic_adminq_run(struct ionic_queue *queue)
{
	for (unsigned i = 0; i < ADMINQ_BUDGET && ionic_queue_posted(queue) > 0; i++)
		adminq_serve(queue);
	return ionic_queue_posted(queue) > 0;
}
