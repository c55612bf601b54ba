/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the fuzz targets of the transmit and receive queues share: a probed device with a pair of
 * small queues, a port at the other end of the wire, and guest memory that changes underneath.
 *
 * The input is a list of operations; its last quarter says what happens to memory, an entry for
 * each access of the device: 0 nothing; 0xff a reset; else the byte so far behind the access
 * changes.
 */
#ifndef ERNIC_TESTS_FUZZ_ETH_FUZZ_H
#define ERNIC_TESTS_FUZZ_ETH_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* With its guest_mem.h and pci_irq.h; src/vfio stays out. */
#define FAKE_RAM_SIZE (512u << 10)
#include "../unit/ionic/fake_guest.c"
#include "base/iov.h"
#include "ionic/ionic_desc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OPS_MAX   256
#define RING_SIZE 5 /* exponent: 32 entries */

struct input {
	const uint8_t *data;
	size_t size;
};

struct eth {
	struct fake_guest guest;
	struct net_port host;
	struct fake_ring ring; /* of the queue that is tried */
	uint64_t memory;       /* for buffers: the rest of the memory */
	struct input input, chaos;
};

static struct eth eth;

static inline uint64_t number(struct input *input, size_t size)
{
	size_t have = size < input->size ? size : input->size;
	le64 raw;

	memset(&raw, 0, sizeof(raw));
	memcpy(&raw, input->data, have);
	input->data += have;
	input->size -= have;
	return le64_get(raw);
}

static inline size_t bytes(struct input *input, const uint8_t **data, size_t size)
{
	size_t have = size < input->size ? size : input->size;

	*data = input->data;
	input->data += have;
	input->size -= have;
	return have;
}

static inline void happen(struct fake_guest *guest, uint64_t addr, size_t size,
                          enum guest_access access)
{
	uint64_t what = number(&eth.chaos, 1);
	uint64_t at = addr - FAKE_RAM_BASE + what - 1;

	(void)size, (void)access;
	if (what == 0xff)
		fake_reset(guest, VFIO_RESET_FUNCTION);
	else if (what > 0 && at < FAKE_RAM_SIZE)
		guest->ram[at] ^= (uint8_t)number(&eth.chaos, 1);
}

/* A guest address, most often a good one: from a 16-bit number, in units of 8 bytes. */
static inline uint64_t address(uint64_t value)
{
	return value == 0xffff ? 0x1000 : eth.memory + value * 8;
}

static inline void admin(struct fake_guest *guest, union ionic_cmd cmd)
{
	must(fake_admin(guest, &cmd, NULL) == IONIC_RC_SUCCESS);
}

static inline void probe(unsigned type, uint64_t features)
{
	struct fake_guest *guest = &eth.guest;

	guest->on_access = NULL;
	fake_guest_renew(guest);
	fake_probe(guest);
	admin(guest, (union ionic_cmd){.lif_attr = {.opcode = IONIC_CMD_LIF_SETATTR,
	                                            .attr = IONIC_LIF_ATTR_FEATURES,
	                                            .features = le64_make(features)}});
	admin(guest, (union ionic_cmd){.rx_mode_set = {.opcode = IONIC_CMD_RX_MODE_SET,
	                                               .rx_mode = le16_make(0xf)}});
	fake_ring_init(guest, &eth.ring, type, 0, RING_SIZE);
	fake_q_init(guest, &eth.ring, 1, IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_SG);
	must(fake_q_control(guest, &eth.ring, IONIC_Q_ENABLE) == IONIC_RC_SUCCESS);
	eth.memory = FAKE_RAM_BASE + guest->used;
	guest->on_access = happen;
}

/* Once, and then for each input. */
static inline void start(const uint8_t *data, size_t size, const struct net_port_ops *ops)
{
	eth.input = (struct input){.data = data, .size = size - size / 4};
	eth.chaos = (struct input){.data = data + eth.input.size, .size = size / 4};
	if (eth.guest.dev)
		return;
	fake_guest_create(&eth.guest, NULL);
	eth.host = (struct net_port){.name = "host", .ops = ops};
	must(net_wire_attach(eth.guest.wire, &eth.host) == 0);
}

static inline void op_memory(struct input *input)
{
	uint64_t offset = number(input, 3) % (FAKE_RAM_SIZE - 256);
	const uint8_t *data;
	size_t size = bytes(input, &data, number(input, 1));

	memcpy(eth.guest.ram + offset, data, size);
}

static inline void op_doorbell(struct input *input)
{
	uint64_t index = number(input, 1);

	fake_doorbell(&eth.guest, eth.ring.hw_type, eth.ring.hw_index,
	              index < eth.ring.entries ? (uint32_t)index : eth.ring.head);
}

/* Puts a descriptor and its list into the next slot. */
static inline void put_desc(const void *desc, const struct ionic_sg_elem *list, size_t count,
                            size_t stride)
{
	struct fake_guest *guest = &eth.guest;
	uint64_t slot = eth.ring.head;

	memcpy(fake_ptr(guest, eth.ring.desc + slot * 16, 16), desc, 16);
	if (count > 0)
		memcpy(fake_ptr(guest, eth.ring.sg + slot * stride, stride), list,
		       count * sizeof(*list));
	eth.ring.head = (eth.ring.head + 1) & (eth.ring.entries - 1);
}

static inline size_t make_list(struct input *input, struct ionic_sg_elem *list, size_t max)
{
	size_t count = number(input, 1) % (max + 1);

	for (size_t i = 0; i < count; i++)
		list[i] = (struct ionic_sg_elem){
		        .addr = le64_make(address(number(input, 2))),
		        .len = le16_make((uint16_t)number(input, 2)),
		};
	return count;
}

#endif
