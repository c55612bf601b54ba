// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: the AdminQ, with guest memory changing underneath.
 *
 * The device has been probed; the input posts commands, rings, writes memory, and resets. Its last
 * quarter is a second list, of what happens to memory: before each access of the device one entry
 * decides whether bytes near the access change, also between two looks at the same place, and
 * whether the function is reset right there.
 */
#include <stddef.h>
#include <stdint.h>

/* With its guest_mem.h and pci_irq.h; src/vfio stays out. */
#define FAKE_RAM_SIZE (512u << 10)
#include "../unit/ionic/fake_guest.c" // NOLINT(bugprone-suspicious-include)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum op {
	OP_COMMAND,  /* u8 size, so many bytes of command: into the next slot */
	OP_RING,     /* u8: AdminQ doorbell of the next slot, or of this index */
	OP_DOORBELL, /* u8 slot, u8 queue, u16 index */
	OP_MEMORY,   /* u24 offset in memory, u8 size, so many bytes */
	OP_RUN,      /* the loop turns */
	OP_PROBE,    /* reset and probe again */
	OP_CREDITS,  /* u8 vector, u32 value */
	OP_LINK,     /* u8 */
	OP_COUNT,
};

#define OPS_MAX 256

struct input {
	const uint8_t *data;
	size_t size;
};

static struct input chaos; /* what happens before each access */

static uint64_t number(struct input *input, size_t size)
{
	size_t have = size < input->size ? size : input->size;
	le64 raw;

	memset(&raw, 0, sizeof(raw));
	memcpy(&raw, input->data, have);
	input->data += have;
	input->size -= have;
	return le64_get(raw);
}

static size_t bytes(struct input *input, const uint8_t **data, size_t size)
{
	size_t have = size < input->size ? size : input->size;

	*data = input->data;
	input->data += have;
	input->size -= have;
	return have;
}

/* An entry: 0 nothing; 1 to 0xfe a change of the byte so far behind the access; 0xff a reset. */
static void happen(struct fake_guest *guest, uint64_t addr, size_t size, enum guest_access access)
{
	uint64_t what = number(&chaos, 1);
	uint64_t at = addr - FAKE_RAM_BASE + what - 1;

	(void)size, (void)access;
	if (what == 0xff) {
		fake_reset(guest, VFIO_RESET_FUNCTION);
	} else if (what > 0 && at < FAKE_RAM_SIZE) {
		guest->ram[at] ^= (uint8_t)number(&chaos, 1);
	}
}

static void op_command(struct fake_guest *guest, struct input *input)
{
	union ionic_cmd cmd = {{0}};
	const uint8_t *data;
	size_t size = bytes(input, &data, number(input, 1) % (IONIC_CMD_SIZE + 1));

	memcpy(cmd.bytes, data, size);
	fake_admin_post(guest, &cmd);
}

static void op_memory(struct fake_guest *guest, struct input *input)
{
	uint64_t offset = number(input, 3) % (FAKE_RAM_SIZE - 256);
	const uint8_t *data;
	size_t size = bytes(input, &data, number(input, 1));

	memcpy(guest->ram + offset, data, size);
}

static void op_doorbell(struct fake_guest *guest, struct input *input)
{
	unsigned slot = (unsigned)number(input, 1);
	uint32_t queue = (uint32_t)number(input, 1);

	fake_doorbell(guest, slot % 16, queue, (uint32_t)number(input, 2));
}

static void probe(struct fake_guest *guest)
{
	guest->on_access = NULL;
	fake_reset(guest, VFIO_RESET_FUNCTION);
	guest->used = 0;
	fake_probe(guest);
	guest->on_access = happen;
}

static void operate(struct fake_guest *guest, struct input *input)
{
	uint64_t value;

	switch ((enum op)(number(input, 1) % OP_COUNT)) {
	case OP_COMMAND:
		op_command(guest, input);
		break;
	case OP_RING:
		value = number(input, 1);
		fake_doorbell(guest, IONIC_DB_ADMINQ, 0,
		              value < 16 ? (uint32_t)value : guest->adminq.head);
		break;
	case OP_DOORBELL:
		op_doorbell(guest, input);
		break;
	case OP_MEMORY:
		op_memory(guest, input);
		break;
	case OP_RUN:
		fake_run(guest);
		break;
	case OP_PROBE:
		probe(guest);
		break;
	case OP_CREDITS:
		value = number(input, 1) % IONIC_INTRS_MAX;
		fake_write(guest, 0x2008 + 32 * value, number(input, 4), 4);
		break;
	case OP_LINK:
		ionic_link_set(guest->dev, number(input, 1) & 1);
		break;
	case OP_COUNT:
		break;
	}
}

/* What the data path relies on without looking again. */
static void check(const struct ionic_dev *dev)
{
	const struct ionic_lif *lif = &dev->lif;

	for (uint32_t i = 0; i < dev->profile.eth_queues; i++) {
		must(lif->rxq[i].prod < lif->rxq[i].entries);
		must(lif->txq[i].cons < lif->txq[i].entries);
		must(lif->txq[i].cq_pos < lif->txq[i].entries);
		must(!lif->txq[i].enabled || lif->txq[i].initialized);
	}
	for (unsigned i = 0; i < IONIC_RSS_TABLE_SIZE; i++)
		must(lif->rss.table[i] < dev->profile.eth_queues);
	must((lif->features & ~ionic_lif_features_offered(&dev->profile)) == 0);
	must(lif->filters.mac_count <= IONIC_MAX_MAC_FILTERS);
	must(lif->adminq.entries > 0 && (lif->adminq.entries & (lif->adminq.entries - 1)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {.data = data, .size = size - size / 4};
	static struct fake_guest guest;

	chaos = (struct input){.data = data + input.size, .size = size / 4};
	if (!guest.dev)
		fake_guest_create(&guest, NULL);
	fake_guest_renew(&guest);
	probe(&guest);
	for (unsigned ops = 0; input.size > 0 && ops < OPS_MAX; ops++)
		operate(&guest, &input);
	fake_run(&guest);
	check(guest.dev);
	return 0;
}
