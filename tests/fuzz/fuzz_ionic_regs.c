// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: what a guest can do to the ionic registers, in any order: accesses of any width to
 * both BARs, device commands, resets; and what an operator can do meanwhile.
 *
 * The input is a list of operations: a byte that chooses (enum op), then its operands,
 * little-endian and zero where the input ends.
 */
#include <stddef.h>
#include <stdint.h>

/* With its guest_mem.h and pci_irq.h; src/vfio stays out. */
#define FAKE_RAM_SIZE (512u << 10)
#include "../unit/ionic/fake_guest.c" // NOLINT(bugprone-suspicious-include)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum op {
	OP_WRITE,    /* u16 offset, u8 size, value: in BAR0 */
	OP_READ,     /* u16 offset, u8 size */
	OP_DOORBELL, /* u32 offset, u8 size, u64 value: in BAR2 */
	OP_RUN,      /* the loop turns */
	OP_DEVCMD,   /* u8 size, so many bytes of command; and the doorbell */
	OP_DATA,     /* u8 size, so many bytes for the data window */
	OP_RESET,    /* u8 reason */
	OP_OPERATOR, /* u8: link, firmware */
	OP_BUS,      /* u8: bus mastering */
	OP_COUNT,
};

#define OPS_MAX 512

struct input {
	const uint8_t *data;
	size_t size;
};

static size_t take(struct input *input, void *dst, size_t size)
{
	size_t have = size < input->size ? size : input->size;

	memset(dst, 0, size);
	memcpy(dst, input->data, have);
	input->data += have;
	input->size -= have;
	return have;
}

static uint64_t number(struct input *input, size_t size)
{
	le64 raw;

	memset(&raw, 0, sizeof(raw));
	take(input, &raw, size);
	return le64_get(raw);
}

/* Within the BAR, as the server guarantees. */
static size_t fit(uint64_t *offset, uint64_t bar_size, uint64_t wanted)
{
	size_t width = 1 + wanted % 8;

	*offset %= bar_size - width + 1;
	return width;
}

static void op_bar(struct fake_guest *guest, struct input *input, enum op op)
{
	bool doorbell = op == OP_DOORBELL;
	unsigned bar = doorbell ? IONIC_BAR_DB : IONIC_BAR_REGS;
	uint64_t bar_size = doorbell ? IONIC_DB_PAGES * IONIC_DB_PAGE_SIZE : IONIC_BAR_REGS_SIZE;
	uint64_t offset = number(input, doorbell ? 4 : 2);
	size_t width = fit(&offset, bar_size, number(input, 1));
	uint8_t value[8];

	if (op == OP_READ) {
		fake_bar_read(guest, bar, offset, value, width);
		return;
	}
	take(input, value, doorbell ? 8 : width);
	fake_bar_write(guest, bar, offset, value, width);
}

static void op_devcmd(struct fake_guest *guest, struct input *input)
{
	size_t size = number(input, 1) % (IONIC_CMD_SIZE + 1);
	union ionic_cmd cmd = {{0}};

	take(input, cmd.bytes, size);
	for (size_t i = 0; i < sizeof(cmd); i += 8)
		fake_bar_write(guest, IONIC_BAR_REGS, 0x808 + i, cmd.bytes + i, 8);
	fake_write(guest, 0x804, 0, 4);
	fake_write(guest, 0x800, 1, 4);
	fake_run(guest);
}

static void op_data(struct fake_guest *guest, struct input *input)
{
	size_t size = number(input, 1);
	uint8_t bytes[256];

	take(input, bytes, size);
	for (size_t i = 0; i < size; i++)
		fake_bar_write(guest, IONIC_BAR_REGS, 0x888 + i, bytes + i, 1);
}

static void op_operator(struct fake_guest *guest, uint64_t what)
{
	if (what & 0x80)
		ionic_link_set(guest->dev, what & 1);
	else
		ionic_fw_action(guest->dev, (enum ionic_fw_action)(what % (IONIC_FW_UNSTALL + 1)));
}

static void operate(struct fake_guest *guest, struct input *input)
{
	enum op op = (enum op)(number(input, 1) % OP_COUNT);

	switch (op) {
	case OP_WRITE:
	case OP_READ:
	case OP_DOORBELL:
		op_bar(guest, input, op);
		break;
	case OP_RUN:
		fake_run(guest);
		break;
	case OP_DEVCMD:
		op_devcmd(guest, input);
		break;
	case OP_DATA:
		op_data(guest, input);
		break;
	case OP_RESET:
		fake_reset(guest, (enum vfio_reset)(number(input, 1) % 3));
		break;
	case OP_OPERATOR:
		op_operator(guest, number(input, 1));
		break;
	case OP_BUS:
		guest->bus_master = number(input, 1) & 1;
		break;
	case OP_COUNT:
		break;
	}
}

/* What holds whatever the guest has done. */
static void check(const struct ionic_dev *dev)
{
	unsigned ready = 0;

	for (const struct ionic_queue *queue = dev->ready_first; queue; queue = queue->ready_next)
		ready++;
	must(ready == dev->ready_count);
	must(dev->lif.initialized || !dev->lif.adminq.initialized);
	must(ionic_fw_running(dev) || !dev->lif.initialized);
	must(dev->fw_status != 0xff);
	for (unsigned i = 0; i < dev->profile.intr_vectors; i++) {
		must(dev->intr[i].credits >= 0 && dev->intr[i].credits <= 0x7fff);
		must(dev->intr[i].since <= dev->intr[i].credits);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {.data = data, .size = size};
	static struct fake_guest guest;

	if (!guest.dev)
		fake_guest_create(&guest, NULL);
	fake_guest_renew(&guest);
	for (unsigned ops = 0; input.size > 0 && ops < OPS_MAX; ops++)
		operate(&guest, &input);
	fake_run(&guest);
	check(guest.dev);
	return 0;
}
