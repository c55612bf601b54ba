/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loopback fabric: both ends in this server. As a test aid it can land a pattern instead of
 * the payload, and log a digest of what has landed.
 */
#include "fabric/fabric_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct loopback {
	struct rdma_fabric base;
	struct local_net net;
	rdma_copy_fn *pattern; /* NULL: preserve */
};

/* ---- what lands ---- */

static void land_zeros(void *arg, void *dst, const void *src, size_t size, uint32_t offset)
{
	(void)arg, (void)src, (void)offset;
	memset(dst, 0, size);
}

static void land_ones(void *arg, void *dst, const void *src, size_t size, uint32_t offset)
{
	(void)arg, (void)src, (void)offset;
	memset(dst, 0xff, size);
}

/* 0, 1, 2 ... from the start of the message */
static void land_increment(void *arg, void *dst, const void *src, size_t size, uint32_t offset)
{
	(void)arg, (void)src;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)dst)[i] = (uint8_t)(offset + i);
}

/* 255, 254, 253 ... */
static void land_decrement(void *arg, void *dst, const void *src, size_t size, uint32_t offset)
{
	(void)arg, (void)src;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)dst)[i] = (uint8_t)(0xff - (offset + i));
}

/* 0xaa, 0x55, 0xaa ... */
static void land_alternate(void *arg, void *dst, const void *src, size_t size, uint32_t offset)
{
	(void)arg, (void)src;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)dst)[i] = (offset + i) % 2 ? 0x55 : 0xaa;
}

/* Noise, the same in every run that moves the same messages. */
static void land_random(void *arg, void *dst, const void *src, size_t size, uint32_t offset)
{
	static uint64_t state = 0x9e3779b97f4a7c15ull;

	(void)arg, (void)src, (void)offset;
	for (size_t i = 0; i < size; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		((uint8_t *)dst)[i] = (uint8_t)(state >> 32);
	}
}

static const struct {
	const char *name;
	rdma_copy_fn *copy;
} modes[] = {
        {"preserve", NULL},
        {"zeros", land_zeros},
        {"ones", land_ones},
        {"increment", land_increment},
        {"decrement", land_decrement},
        {"alternate", land_alternate},
        {"random", land_random},
};

/* ---- digests ---- */

static struct loopback *loopback_of(struct rdma_msg *msg);

/* The digest of the QP's message under way, in the QP's slot. */
static struct md5 *digest_of(struct rdma_qp *qp)
{
	void **slot = rdma_qp_fabric_slot(qp);

	if (!*slot)
		*slot = malloc(sizeof(struct md5));
	return *slot;
}

static void land_and_digest(void *arg, void *dst, const void *src, size_t size, uint32_t offset)
{
	struct rdma_msg *msg = arg;
	rdma_copy_fn *pattern = loopback_of(msg)->pattern;
	struct md5 *md5 = digest_of(msg->qp);

	if (pattern)
		pattern(arg, dst, src, size, offset);
	else
		memmove(dst, src, size); /* a guest may name the same memory on both sides */
	if (!md5)
		return;
	if (offset == 0)
		md5_init(md5);
	md5_update(md5, dst, size);
}

static void log_digest(struct local_net *net, struct rdma_msg *msg)
{
	struct md5 *md5 = digest_of(msg->qp);
	uint8_t digest[MD5_SIZE];
	char text[2 * MD5_SIZE + 1];

	(void)net;
	if (!md5)
		return;
	if (msg->inbound.done == 0)
		md5_init(md5);
	md5_final(md5, digest);
	for (unsigned i = 0; i < MD5_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	log_info("loopback: QP %u to %u, %s of %u bytes, md5 %s", msg->req.src_qpn,
	         msg->req.dst_qpn, rdma_opcode_name(msg->req.opcode), msg->inbound.done, text);
}

/* ---- the fabric ---- */

static struct loopback *loopback_from(struct rdma_fabric *fabric)
{
	return container_of(fabric, struct loopback, base);
}

static struct loopback *loopback_of(struct rdma_msg *msg)
{
	return loopback_from(rdma_dev_fabric(rdma_qp_dev(msg->qp)));
}

static enum rdma_tx loopback_transmit(struct rdma_fabric *fabric, struct rdma_msg *msg,
                                      size_t *budget)
{
	return local_transmit(&loopback_from(fabric)->net, msg, budget);
}

static void loopback_forget(struct rdma_fabric *fabric, struct rdma_qp *qp)
{
	void **slot = rdma_qp_fabric_slot(qp);

	(void)fabric;
	free(*slot);
	*slot = NULL;
}

static void loopback_attach(struct rdma_fabric *fabric, struct rdma_dev *dev)
{
	local_attach(&loopback_from(fabric)->net, dev);
}

static void loopback_detach(struct rdma_fabric *fabric, struct rdma_dev *dev)
{
	local_detach(&loopback_from(fabric)->net, dev);
}

static const struct rdma_fabric_ops loopback_ops = {
        .name = "loopback",
        .window = 1,
        .transmit = loopback_transmit,
        .forget = loopback_forget,
        .attach = loopback_attach,
        .detach = loopback_detach,
};

/* ---- options ---- */

static bool parse_mode(const char *value, size_t length, struct loopback *loopback)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strlen(modes[i].name) != length || strncmp(modes[i].name, value, length) != 0)
			continue;
		loopback->pattern = modes[i].copy;
		return true;
	}
	return false;
}

/* One option, LENGTH characters at TEXT. */
static int parse_option(const char *text, size_t length, struct loopback *loopback, char *error,
                        size_t size)
{
	if (length == 3 && strncmp(text, "md5", 3) == 0) {
		loopback->net.landed = log_digest;
		return 0;
	}
	if (length < 5 || strncmp(text, "mode=", 5) != 0) {
		snprintf(error, size, "unknown option '%.*s' (loopback has mode=MODE and md5)",
		         (int)length, text);
		return -EINVAL;
	}
	if (parse_mode(text + 5, length - 5, loopback))
		return 0;
	snprintf(error, size,
	         "unknown mode '%.*s' (modes: preserve, zeros, ones, increment, decrement, "
	         "alternate, random)",
	         (int)length - 5, text + 5);
	return -EINVAL;
}

static int parse_options(const char *text, struct loopback *loopback, char *error, size_t size)
{
	while (text) {
		const char *comma = strchrnul(text, ',');
		int result = parse_option(text, (size_t)(comma - text), loopback, error, size);

		if (result)
			return result;
		text = *comma ? comma + 1 : NULL;
	}
	return 0;
}

static int loopback_create(const struct fabric_place *place, const char *options,
                           struct rdma_fabric **fabric, char *error, size_t size)
{
	struct loopback *loopback = calloc(1, sizeof(*loopback));

	if (!loopback)
		return -ENOMEM;
	loopback->base.ops = &loopback_ops;
	loopback->net.wire = place->wire;
	int result = parse_options(options, loopback, error, size);

	if (result) {
		free(loopback);
		return result;
	}
	loopback->net.copy = loopback->net.landed ? land_and_digest : loopback->pattern;
	*fabric = &loopback->base;
	return 0;
}

static void loopback_destroy(struct rdma_fabric *fabric)
{
	free(loopback_from(fabric));
}

const struct fabric_kind fabric_loopback = {
        .name = "loopback",
        .create = loopback_create,
        .destroy = loopback_destroy,
        .ops = &loopback_ops,
};
