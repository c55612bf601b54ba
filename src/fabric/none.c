/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fabric that accepts nothing: every destination is out of reach, the NIC's own included. */
#include "fabric/fabric_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static enum rdma_tx none_transmit(struct rdma_fabric *fabric, struct rdma_msg *msg, size_t *budget)
{
	(void)fabric, (void)budget;
	return rdma_msg_unreachable(msg);
}

static const struct rdma_fabric_ops none_ops = {
        .name = "none", .window = 1, .transmit = none_transmit};

static int none_create(const struct fabric_place *place, const char *options,
                       struct rdma_fabric **fabric, char *error, size_t size)
{
	(void)place;
	if (options) {
		snprintf(error, size, "unknown option '%s' (none has no options)", options);
		return -EINVAL;
	}
	*fabric = calloc(1, sizeof(**fabric));
	if (!*fabric)
		return -ENOMEM;
	(*fabric)->ops = &none_ops;
	return 0;
}

static void none_destroy(struct rdma_fabric *fabric)
{
	free(fabric);
}

const struct fabric_kind fabric_none = {
        .name = "none", .create = none_create, .destroy = none_destroy, .ops = &none_ops};
