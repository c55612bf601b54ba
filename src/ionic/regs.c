/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The registers of BAR0 (spec ionic-ethernet 2), as a table.
 *
 * Two kinds of entries. A register has a width of at most four bytes and functions: it is read in
 * whatever pieces the guest likes, without side effects, and written only as a whole. A window is
 * plain memory, read and written in any pieces: guests fill and read the command and data windows
 * by bytes, words or quadwords, as their memcpy() happens to be made (spec 2.1). What is in no
 * entry reads as zero, and a write there only moves a counter.
 */
#include "ionic_internal.h"

COUNTER(ionic_reg_unknown_write, "writes to BAR0 addresses without a register");
COUNTER(ionic_reg_read_only_write, "writes to read-only registers of BAR0");
COUNTER(ionic_reg_partial_write, "writes to a part of a register of BAR0, ignored");
COUNTER(ionic_devcmd_fw_stopped, "device commands while the firmware was stopped, ignored");
COUNTER(ionic_devcmd_busy, "device command doorbells while a command was pending, ignored");

struct reg {
	uint32_t offset;
	uint32_t size; /* bytes */
	const char *name;
	/* A register; REG is its offset in the interrupt set INDEX, for those. */
	uint32_t (*read)(struct ionic_dev *dev, unsigned index, unsigned reg);
	void (*write)(struct ionic_dev *dev, unsigned index, unsigned reg, uint32_t value);
	/* A window: where its bytes are. */
	uint8_t *(*bytes)(struct ionic_dev *dev);
	bool writable;
};

static uint32_t signature_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	(void)dev, (void)index, (void)reg;
	return IONIC_DEV_INFO_SIGNATURE;
}

static uint32_t version_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	(void)dev, (void)index, (void)reg;
	return IONIC_DEV_INFO_VERSION;
}

static uint32_t asic_type_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	(void)index, (void)reg;
	return dev->profile.asic_type;
}

static uint32_t asic_rev_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	(void)index, (void)reg;
	return dev->profile.asic_rev;
}

static uint32_t fw_status_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	(void)index, (void)reg;
	return dev->fw_status;
}

static uint32_t fw_heartbeat_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	(void)index, (void)reg;
	return ionic_fw_heartbeat(dev);
}

static uint8_t *fw_version_bytes(struct ionic_dev *dev)
{
	static_assert(sizeof(dev->profile.fw_version) == 32, "spec 2.2");
	return (uint8_t *)dev->profile.fw_version;
}

static uint8_t *serial_bytes(struct ionic_dev *dev)
{
	static_assert(sizeof(dev->serial) == 32, "spec 2.2");
	return (uint8_t *)dev->serial;
}

static uint32_t doorbell_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	(void)index, (void)reg;
	return le32_get(dev->devcmd.doorbell);
}

/* Writing 0 does nothing at all: the driver reads completion and data after it (spec 2.3). */
static void doorbell_write(struct ionic_dev *dev, unsigned index, unsigned reg, uint32_t value)
{
	(void)index, (void)reg;
	dev->devcmd.doorbell = le32_make(value);
	if (!(value & IONIC_DEVCMD_DOORBELL))
		return;
	if (!ionic_fw_running(dev)) {
		counter_inc(&ionic_devcmd_fw_stopped);
		return;
	}
	if (dev->devcmd_pending) {
		counter_inc(&ionic_devcmd_busy);
		return;
	}
	dev->devcmd_pending = true;
	ionic_dev_schedule(dev);
}

static uint32_t done_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	(void)index, (void)reg;
	return le32_get(dev->devcmd.done);
}

static void done_write(struct ionic_dev *dev, unsigned index, unsigned reg, uint32_t value)
{
	(void)index, (void)reg;
	dev->devcmd.done = le32_make(value);
}

static uint8_t *cmd_bytes(struct ionic_dev *dev)
{
	return dev->devcmd.cmd.bytes;
}

static uint8_t *comp_bytes(struct ionic_dev *dev)
{
	return dev->devcmd.comp.bytes;
}

static uint8_t *data_bytes(struct ionic_dev *dev)
{
	return dev->devcmd.data;
}

#define INFO(field)   offsetof(struct ionic_dev_info, field)
#define DEVCMD(field) (IONIC_REG_DEVCMD + offsetof(struct ionic_devcmd_regs, field))
#define INTR(reg)     (IONIC_REG_INTR_CONTROL + (reg))

/* In ascending order. The interrupt registers stand for those of every set. */
static const struct reg regs[] = {
        {INFO(signature), 4, "signature", .read = signature_read},
        {INFO(version), 1, "version", .read = version_read},
        {INFO(asic_type), 1, "asic_type", .read = asic_type_read},
        {INFO(asic_rev), 1, "asic_rev", .read = asic_rev_read},
        {INFO(fw_status), 1, "fw_status", .read = fw_status_read},
        {INFO(fw_heartbeat), 4, "fw_heartbeat", .read = fw_heartbeat_read},
        {INFO(fw_version), 32, "fw_version", .bytes = fw_version_bytes},
        {INFO(serial_num), 32, "serial_num", .bytes = serial_bytes},
        {DEVCMD(doorbell), 4, "doorbell", .read = doorbell_read, .write = doorbell_write},
        {DEVCMD(done), 4, "done", .read = done_read, .write = done_write},
        {DEVCMD(cmd), IONIC_CMD_SIZE, "cmd", .bytes = cmd_bytes, .writable = true},
        {DEVCMD(comp), IONIC_COMP_SIZE, "comp", .bytes = comp_bytes},
        {DEVCMD(data), IONIC_DEVCMD_DATA_SIZE, "data", .bytes = data_bytes, .writable = true},
        {INTR(IONIC_INTR_COAL_INIT), 4, "intr_coal_init", .read = ionic_intr_read,
         .write = ionic_intr_write},
        {INTR(IONIC_INTR_MASK), 4, "intr_mask", .read = ionic_intr_read, .write = ionic_intr_write},
        {INTR(IONIC_INTR_CREDITS), 4, "intr_credits", .read = ionic_intr_read,
         .write = ionic_intr_write},
        {INTR(IONIC_INTR_MASK_ASSERT), 4, "intr_mask_assert", .read = ionic_intr_read,
         .write = ionic_intr_write},
        {INTR(IONIC_INTR_COAL), 4, "intr_coal", .read = ionic_intr_read},
};

/* A place in the table: the entry that covers an offset of BAR0, and where in it. */
struct place {
	const struct reg *reg; /* NULL: no entry */
	unsigned index;        /* of the interrupt set */
	uint32_t skip;         /* bytes of the entry before the offset */
};

/* The last entry that begins at OFFSET or before; the first one begins at 0. */
static const struct reg *reg_before(uint32_t offset)
{
	size_t low = 0, high = ARRAY_SIZE(regs);

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (regs[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return &regs[low];
}

static struct place place_of(const struct ionic_dev *dev, uint32_t offset)
{
	struct place place = {.reg = NULL};
	const struct reg *reg;

	if (offset >= IONIC_REG_INTR_CONTROL) {
		place.index = (offset - IONIC_REG_INTR_CONTROL) / IONIC_INTR_STRIDE;
		if (place.index >= dev->profile.intr_vectors)
			return place;
		offset -= place.index * IONIC_INTR_STRIDE;
	}
	reg = reg_before(offset);
	if (offset - reg->offset < reg->size) {
		place.reg = reg;
		place.skip = offset - reg->offset;
	}
	return place;
}

/* The value of a register, without side effects, as it would stand in memory. */
static void reg_value(struct ionic_dev *dev, const struct place *place, uint8_t value[4])
{
	unsigned reg = place->reg->offset % IONIC_INTR_STRIDE;
	le32 raw = le32_make(place->reg->read(dev, place->index, reg));

	memcpy(value, raw.raw, 4);
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

void ionic_regs_read(struct ionic_dev *dev, uint32_t offset, uint8_t *data, size_t size)
{
	while (size > 0) {
		struct place place = place_of(dev, offset);
		uint8_t value[4];
		size_t chunk = 1;

		if (!place.reg) {
			*data = 0;
		} else if (place.reg->bytes) {
			chunk = min_size(size, place.reg->size - place.skip);
			memcpy(data, place.reg->bytes(dev) + place.skip, chunk);
		} else {
			chunk = min_size(size, place.reg->size - place.skip);
			reg_value(dev, &place, value);
			memcpy(data, value + place.skip, chunk);
		}
		offset += (uint32_t)chunk;
		data += chunk;
		size -= chunk;
	}
}

static void reg_write(struct ionic_dev *dev, const struct place *place, const uint8_t *data,
                      size_t size)
{
	le32 value = {{0}};

	if (!place->reg->write) {
		counter_inc(&ionic_reg_read_only_write);
		log_guest("ionic: write to the read-only register %s ignored", place->reg->name);
		return;
	}
	assert(place->reg->size == sizeof(value));
	if (place->skip != 0 || size != sizeof(value)) {
		counter_inc(&ionic_reg_partial_write);
		log_guest("ionic: write of %zu bytes to a part of register %s ignored", size,
		          place->reg->name);
		return;
	}
	memcpy(value.raw, data, sizeof(value));
	place->reg->write(dev, place->index, place->reg->offset % IONIC_INTR_STRIDE,
	                  le32_get(value));
}

/* Writes what of the SIZE bytes belongs to the window, and returns how many these are. */
static size_t window_write(struct ionic_dev *dev, const struct place *place, const uint8_t *data,
                           size_t size)
{
	size_t chunk = min_size(size, place->reg->size - place->skip);

	if (place->reg->writable)
		memcpy(place->reg->bytes(dev) + place->skip, data, chunk);
	else
		counter_inc(&ionic_reg_read_only_write);
	return chunk;
}

void ionic_regs_write(struct ionic_dev *dev, uint32_t offset, const uint8_t *data, size_t size)
{
	struct place place = place_of(dev, offset);
	size_t done;

	if (!place.reg) {
		counter_inc(&ionic_reg_unknown_write);
		return;
	}
	if (!place.reg->bytes) {
		reg_write(dev, &place, data, size);
		return;
	}
	done = window_write(dev, &place, data, size);
	/* What runs over the end of a window would hit a part of its neighbour. */
	if (done < size)
		counter_inc(&ionic_reg_partial_write);
}
