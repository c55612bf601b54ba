/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupt sets: one for each MSI-X vector, by the credit model of spec ionic-ethernet 2.4.
 *
 * A completion adds a credit, the driver returns what it has consumed, and a set with credits that
 * is not masked sends its MSI-X. Drivers lose count in some corners (a poll that found no work
 * returns 0), so a return of 0 with UNMASK forgets everything that was there when the last MSI-X
 * was sent: only what has come since can still be unseen. A count that took the leaks at face
 * value would fire without end.
 *
 * Not done: coalescing. The period is stored and read back; every interrupt is sent at once.
 */
#include "ionic_internal.h"

#include "vfio/pci_irq.h"

/* Reads as a signed 16-bit count; a driver that returns nothing gets no further. */
#define CREDITS_MAX 0x7fff

static void intr_evaluate(struct ionic_dev *dev, unsigned index)
{
	struct ionic_intr *intr = &dev->intr[index];

	if (intr->credits == 0 || intr->mask)
		return;
	intr->since = 0;
	intr->mask = intr->mask_assert;
	intr->sent++;
	pci_irq_raise(dev->irq, index);
}

static int32_t min_credits(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

void ionic_intr_post(struct ionic_dev *dev, unsigned index, unsigned count)
{
	struct ionic_intr *intr;
	int32_t amount = count < CREDITS_MAX ? (int32_t)count : CREDITS_MAX;

	if (index >= dev->profile.intr_vectors)
		return;
	intr = &dev->intr[index];
	intr->credits = min_credits(intr->credits + amount, CREDITS_MAX);
	intr->since = min_credits(intr->since + amount, CREDITS_MAX);
	intr_evaluate(dev, index);
}

uint32_t ionic_intr_credits(const struct ionic_dev *dev, unsigned index)
{
	return (uint32_t)dev->intr[index].credits;
}

void ionic_intr_forget(struct ionic_dev *dev, unsigned index)
{
	dev->intr[index].credits = 0;
	dev->intr[index].since = 0;
}

void ionic_intr_reset_all(struct ionic_dev *dev)
{
	/* Masked: an interrupt before the driver asks for it would find no handler. */
	for (unsigned i = 0; i < IONIC_INTRS_MAX; i++)
		dev->intr[i] = (struct ionic_intr){.mask = true, .sent = dev->intr[i].sent};
}

uint32_t ionic_intr_read(struct ionic_dev *dev, unsigned index, unsigned reg)
{
	const struct ionic_intr *intr = &dev->intr[index];

	assert(index < dev->profile.intr_vectors);
	switch (reg) {
	case IONIC_INTR_COAL_INIT:
		return intr->coal_init;
	case IONIC_INTR_MASK:
		return intr->mask;
	case IONIC_INTR_CREDITS:
		return (uint32_t)intr->credits;
	case IONIC_INTR_MASK_ASSERT:
		return intr->mask_assert;
	default:
		return 0; /* IONIC_INTR_COAL: no time remains, ever */
	}
}

static void credits_write(struct ionic_intr *intr, uint32_t value)
{
	int32_t count = value & IONIC_INTR_CREDITS_COUNT;

	intr->credits = intr->credits > count ? intr->credits - count : 0;
	intr->since = min_credits(intr->since, intr->credits);
	if (value & IONIC_INTR_CREDITS_UNMASK) {
		if (count == 0)
			intr->credits = intr->since;
		intr->mask = false;
	}
}

void ionic_intr_write(struct ionic_dev *dev, unsigned index, unsigned reg, uint32_t value)
{
	struct ionic_intr *intr = &dev->intr[index];

	assert(index < dev->profile.intr_vectors);
	assert(intr->since <= intr->credits);
	switch (reg) {
	case IONIC_INTR_COAL_INIT:
		intr->coal_init = value;
		return;
	case IONIC_INTR_MASK:
		intr->mask = value & 1;
		break;
	case IONIC_INTR_CREDITS:
		credits_write(intr, value);
		ionic_rdma_credits_returned(dev);
		break;
	case IONIC_INTR_MASK_ASSERT:
		intr->mask_assert = value & 1;
		return;
	default:
		return;
	}
	intr_evaluate(dev, index);
}
