/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the fuzz targets of the RDMA function share: the guest, its input, and what happens to its
 * memory while the device looks.
 *
 * Holds functions; each target is one translation unit with its own fake guest.
 */
#ifndef ERNIC_TESTS_FUZZ_RDMA_FUZZ_H
#define ERNIC_TESTS_FUZZ_RDMA_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_RAM_SIZE (512u << 10)
#include "../unit/ionic/fake_guest.c" // NOLINT(bugprone-suspicious-include)
#undef must
#include "../unit/ionic/rdma_rig.c" // NOLINT(bugprone-suspicious-include)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static struct input chaos; /* what happens before each access */
static struct rdma_rig rig;

static uint64_t number(struct input *input, size_t size)
{
	size_t have = size < input->size ? size : input->size;
	le64 raw = le64_make(0);

	memcpy(&raw, input->data, have);
	input->data += have;
	input->size -= have;
	return le64_get(raw);
}

/* Up to MAX bytes over DATA: a length, and that many. */
static void overwrite(struct input *input, uint8_t *data, size_t max)
{
	size_t size = number(input, 1) % (max + 1);

	if (size > input->size)
		size = input->size;
	memcpy(data, input->data, size);
	input->data += size;
	input->size -= size;
}

/* Changes a few bytes of what is otherwise right: a count, then places and values. */
static void mutate(struct input *input, uint8_t *data, size_t size)
{
	for (unsigned count = number(input, 1) % 4; count > 0; count--) {
		size_t place = number(input, 1) % size;

		data[place] ^= (uint8_t)number(input, 1);
	}
}

/* An entry: 0 nothing; 1 to 0xfe a change of the byte so far behind the access; 0xff a reset. */
static void happen(struct fake_guest *guest, uint64_t addr, size_t size, enum guest_access access)
{
	uint64_t what = number(&chaos, 1);
	uint64_t at = addr - FAKE_RAM_BASE + what - 1;

	(void)size, (void)access;
	if (what == 0xff)
		fake_reset(guest, VFIO_RESET_FUNCTION);
	else if (what > 0 && at < FAKE_RAM_SIZE)
		guest->ram[at] ^= (uint8_t)number(&chaos, 1);
}

/* What the data path relies on without looking again. */
static void check(const struct ionic_rdma *rdma)
{
	const struct ionic_cq *cq;
	const struct ionic_qp *qp;

	must(rdma->in_memory == 0 && !rdma->reset_pending);
	TAILQ_FOREACH(cq, &rdma->all_cqs, link)
	must(cq->prod - cq->cons <= ionic_ring_mask(&cq->ring));
	TAILQ_FOREACH(qp, &rdma->all_qps, link)
	{
		must(qp->sq.prod <= ionic_ring_mask(&qp->sq.ring));
		must(qp->sq.cons <= ionic_ring_mask(&qp->sq.ring));
		must(qp->rq.prod <= ionic_ring_mask(&qp->rq.ring));
		must(qp->rq.cons <= ionic_ring_mask(&qp->rq.ring));
	}
	for (unsigned i = 0; i < IONIC_RDMA_AQS; i++)
		must(!rdma->aqs[i].exists ||
		     rdma->aqs[i].cons <= ionic_ring_mask(&rdma->aqs[i].ring));
}

/* The guest as after bring-up, with memory that does not change yet. */
static void begin(struct input *input)
{
	if (!rig.guest.dev)
		rig_create(&rig);
	fake_guest_renew(&rig.guest);
	fake_probe(&rig.guest);
	rig_bring_up(&rig);
	chaos = (struct input){.data = input->data + input->size - input->size / 4,
	                       .size = input->size / 4};
	input->size -= chaos.size;
}

static void end(void)
{
	fake_run(&rig.guest);
	check(rig.guest.dev->rdma);
	rig.guest.on_access = NULL;
	rig.guest.bus_master = true;
}

/* Any doorbell: slot, ring, queue, page, index. */
static void op_doorbell(struct input *input)
{
	unsigned word = (unsigned)number(input, 1);
	uint32_t queue = (uint32_t)number(input, 1);
	uint16_t page = (uint16_t)(number(input, 1) % 3);

	rig_doorbell(&rig, page, word & 7, queue, word >> 4 & 3, (uint32_t)number(input, 2));
}

static void op_memory(struct input *input)
{
	uint64_t offset = number(input, 3) % (FAKE_RAM_SIZE - 256);

	overwrite(input, rig.guest.ram + offset, 255);
}

static void op_credits(struct input *input)
{
	uint64_t vector = number(input, 1) % fake_profile.intr_vectors;

	fake_write(&rig.guest, IONIC_REG_INTR_CONTROL + 32 * vector + IONIC_INTR_CREDITS,
	           number(input, 4), 4);
}

#endif
