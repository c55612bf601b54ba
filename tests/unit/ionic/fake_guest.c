// SPDX-License-Identifier: GPL-2.0-or-later
/* Guest memory, interrupts and a small driver for tests of the ionic room; see fake_guest.h. */
#include "fake_guest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vfio/vfio.h"

/* Also in release builds, and in fuzzers, where cmocka is not. */
#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

const uint8_t fake_mac[6] = {0x02, 0x00, 0x00, 0x00, 0xaa, 0x01};

const struct ionic_profile fake_profile = {
        .asic_type = IONIC_ASIC_SALINA,
        .asic_rev = 7,
        .fw_version = "test-1.2.3",
        .speed_mbps = 100000,
        .xcvr = IONIC_XCVR_FIBER,
        .mtu_max = 9198,
        .stats_interval_ms = 1000,
        .eth_queues = 4,
        .rdma_eqs = 4,
        .intr_vectors = 9,
        .tx_csum = true,
        .tso = true,
        .sg = true,
        .rx_csum = true,
        .rx_hash = true,
        .vlan = true,
};

/* ---- vfio/guest_mem.h ---- */

static void note_access(struct fake_guest *guest, uint64_t addr, size_t size,
                        enum guest_access access)
{
	must(!guest->in_message);
	must(!guest->quiet);
	guest->accesses++;
	if (guest->on_access)
		guest->on_access(guest, addr, size, access);
}

static int check_range(const struct fake_guest *guest, uint64_t addr, size_t size)
{
	if (!guest->bus_master)
		return -EPERM;
	if (addr < FAKE_RAM_BASE || size > FAKE_RAM_SIZE ||
	    addr - FAKE_RAM_BASE > FAKE_RAM_SIZE - size)
		return -EFAULT;
	return 0;
}

static uint8_t *place_of(const struct fake_guest *guest, uint64_t addr)
{
	return guest->ram + (addr - FAKE_RAM_BASE);
}

int guest_mem_map(struct guest_mem *mem, uint64_t addr, size_t size, enum guest_access access,
                  struct iovec *iov, unsigned max)
{
	struct fake_guest *guest = mem->guest;
	int rc;

	note_access(guest, addr, size, access);
	rc = check_range(guest, addr, size);
	if (rc < 0 || size == 0)
		return rc;
	if (guest->messages_only)
		return -ENOTSUP;
	if (max == 0)
		return -E2BIG;
	iov[0] = (struct iovec){.iov_base = place_of(guest, addr), .iov_len = size};
	return 1;
}

int guest_mem_read(struct guest_mem *mem, uint64_t addr, void *dst, size_t size)
{
	struct fake_guest *guest = mem->guest;
	int rc;

	note_access(guest, addr, size, GUEST_READ);
	rc = check_range(guest, addr, size);
	if (rc == 0)
		memcpy(dst, place_of(guest, addr), size);
	return rc;
}

int guest_mem_write(struct guest_mem *mem, uint64_t addr, const void *src, size_t size)
{
	struct fake_guest *guest = mem->guest;
	int rc;

	note_access(guest, addr, size, GUEST_WRITE);
	rc = check_range(guest, addr, size);
	if (rc == 0)
		memcpy(place_of(guest, addr), src, size);
	return rc;
}

int guest_mem_post(struct guest_mem *mem, uint64_t addr, const void *src, size_t size)
{
	must(size % 8 == 0 && size <= 64 && addr % 8 == 0);
	return guest_mem_write(mem, addr, src, size);
}

uint64_t guest_mem_generation(const struct guest_mem *mem)
{
	return mem->guest->generation;
}

/* ---- vfio/pci_irq.h ---- */

void pci_irq_raise(struct pci_irq *irq, unsigned vector)
{
	must(vector < irq->guest->dev->profile.intr_vectors);
	irq->guest->msix[vector]++;
}

/* ---- life ---- */

struct rdma_fabric *(*fake_fabric)(struct loop *loop);

void fake_guest_create(struct fake_guest *guest, const struct ionic_profile *profile)
{
	struct ionic_config config = {
	        .profile = profile ? profile : &fake_profile,
	        .mem = &guest->mem,
	        .irq = &guest->irq,
	        .serial = "SN0001",
	};

	memset(guest, 0, sizeof(*guest));
	guest->mem.guest = guest;
	guest->irq.guest = guest;
	guest->bus_master = true;
	guest->ram = calloc(1, FAKE_RAM_SIZE);
	must(guest->ram);
	must(loop_create(&guest->loop) == 0);
	must(net_wire_create(&guest->wire) == 0);
	config.loop = guest->loop;
	config.wire = guest->wire;
	if (fake_fabric)
		guest->fabric = fake_fabric(guest->loop);
	config.fabric = guest->fabric;
	memcpy(config.mac, fake_mac, sizeof(config.mac));
	must(ionic_create(&config, &guest->dev) == 0);
}

void fake_guest_destroy(struct fake_guest *guest)
{
	ionic_destroy(guest->dev);
	net_wire_destroy(guest->wire);
	loop_destroy(guest->loop);
	free(guest->ram);
}

void fake_guest_renew(struct fake_guest *guest)
{
	guest->bus_master = true;
	guest->messages_only = false;
	guest->quiet = false;
	guest->on_access = NULL;
	guest->used = 0;
	memset(guest->ram, 0, FAKE_RAM_SIZE);
	ionic_fw_action(guest->dev, IONIC_FW_UNSTALL);
	ionic_fw_action(guest->dev, IONIC_FW_START);
	ionic_link_set(guest->dev, true);
	fake_reset(guest, VFIO_RESET_DISCONNECT);
	fake_run(guest);
}

uint64_t fake_alloc(struct fake_guest *guest, size_t size)
{
	uint64_t addr = FAKE_RAM_BASE + guest->used;

	must(size <= FAKE_RAM_SIZE - guest->used);
	memset(place_of(guest, addr), 0, size);
	guest->used += (size + 4095) & ~(size_t)4095;
	must(guest->used <= FAKE_RAM_SIZE);
	return addr;
}

void *fake_ptr(struct fake_guest *guest, uint64_t addr, size_t size)
{
	bool bus_master = guest->bus_master;

	guest->bus_master = true;
	must(check_range(guest, addr, size) == 0);
	guest->bus_master = bus_master;
	return place_of(guest, addr);
}

void fake_run(struct fake_guest *guest)
{
	struct loop_stats before, after;
	int idle = 0;

	/* A turn without work left over ends it; the bound is for work that never does. */
	for (int turns = 0; turns < 100000 && idle < 2; turns++) {
		loop_get_stats(guest->loop, &before);
		must(loop_turn(guest->loop, 0) == 0);
		loop_get_stats(guest->loop, &after);
		idle = after.work_turns != before.work_turns || guest->dev->work.scheduled
		               ? 0
		               : idle + 1;
	}
	must(idle == 2);
}

/* ---- registers ---- */

void fake_bar_read(struct fake_guest *guest, unsigned bar, uint64_t offset, void *data, size_t size)
{
	guest->in_message = true;
	ionic_vfio_ops.bar_read(guest->dev, bar, offset, data, size);
	guest->in_message = false;
}

void fake_bar_write(struct fake_guest *guest, unsigned bar, uint64_t offset, const void *data,
                    size_t size)
{
	guest->in_message = true;
	ionic_vfio_ops.bar_write(guest->dev, bar, offset, data, size);
	guest->in_message = false;
}

uint64_t fake_read(struct fake_guest *guest, uint64_t offset, size_t size)
{
	le64 raw = le64_make(0);

	fake_bar_read(guest, IONIC_BAR_REGS, offset, &raw, size);
	return le64_get(raw);
}

void fake_write(struct fake_guest *guest, uint64_t offset, uint64_t value, size_t size)
{
	le64 raw = le64_make(value);

	fake_bar_write(guest, IONIC_BAR_REGS, offset, &raw, size);
}

void fake_doorbell(struct fake_guest *guest, unsigned hw_type, uint32_t qid, uint32_t index)
{
	le64 raw = le64_make((uint64_t)qid << 24 | index);

	fake_bar_write(guest, IONIC_BAR_DB, 8 * hw_type, &raw, sizeof(raw));
}

void fake_reset(struct fake_guest *guest, enum vfio_reset reason)
{
	ionic_vfio_ops.reset(guest->dev, reason);
}

/* ---- device commands ---- */

void fake_devcmd_data_write(struct fake_guest *guest, const void *data, size_t size)
{
	uint32_t offset = IONIC_REG_DEVCMD + offsetof(struct ionic_devcmd_regs, data);

	for (size_t i = 0; i < size; i += 4)
		fake_bar_write(guest, IONIC_BAR_REGS, offset + i, (const uint8_t *)data + i, 4);
}

void fake_devcmd_data_read(struct fake_guest *guest, void *data, size_t size)
{
	uint32_t offset = IONIC_REG_DEVCMD + offsetof(struct ionic_devcmd_regs, data);

	for (size_t i = 0; i < size; i += 8)
		fake_bar_read(guest, IONIC_BAR_REGS, offset + i, (uint8_t *)data + i,
		              size - i < 8 ? size - i : 8);
}

int fake_devcmd(struct fake_guest *guest, const union ionic_cmd *cmd, union ionic_comp *comp)
{
	const uint32_t base = IONIC_REG_DEVCMD;
	union ionic_comp copy;

	for (size_t i = 0; i < sizeof(*cmd); i += 4)
		fake_bar_write(guest, IONIC_BAR_REGS, base + 8 + i, cmd->bytes + i, 4);
	fake_write(guest, base + 4, 0, 4);
	fake_write(guest, base, IONIC_DEVCMD_DOORBELL, 4);
	fake_run(guest);
	if (!(fake_read(guest, base + 4, 4) & IONIC_DEVCMD_DONE))
		return -1;
	fake_bar_read(guest, IONIC_BAR_REGS, base + 0x48, &copy, sizeof(uint64_t));
	fake_bar_read(guest, IONIC_BAR_REGS, base + 0x50, copy.bytes + 8, sizeof(uint64_t));
	fake_write(guest, base, 0, 4);
	if (comp)
		*comp = copy;
	return copy.any.status;
}

/* ---- queues ---- */

static size_t desc_size(unsigned type)
{
	static const size_t sizes[IONIC_QTYPE_COUNT] = {
	        [IONIC_QTYPE_ADMINQ] = 64,
	        [IONIC_QTYPE_NOTIFYQ] = 4,
	        [IONIC_QTYPE_RXQ] = 16,
	        [IONIC_QTYPE_TXQ] = 16,
	};

	return sizes[type];
}

void fake_ring_init(struct fake_guest *guest, struct fake_ring *ring, unsigned type, unsigned index,
                    unsigned size)
{
	uint32_t entries = 1u << size;

	*ring = (struct fake_ring){
	        .type = type, .index = index, .entries = entries, .color = IONIC_COMP_COLOR};
	if (type == IONIC_QTYPE_NOTIFYQ) {
		ring->desc = fake_alloc(guest, IONIC_NOTIFYQ_PAGE + entries * 64ul);
		return;
	}
	ring->desc = fake_alloc(guest, entries * desc_size(type));
	ring->cq = fake_alloc(guest, entries * 16ul);
	if (type == IONIC_QTYPE_TXQ)
		ring->sg = fake_alloc(guest, entries * 256ul);
	else if (type == IONIC_QTYPE_RXQ)
		ring->sg = fake_alloc(guest, entries * 128ul);
}

union ionic_cmd fake_q_init_cmd(const struct fake_ring *ring, unsigned intr, unsigned flags)
{
	uint8_t exponent = (uint8_t)__builtin_ctz(ring->entries);
	union ionic_cmd cmd = {
	        .q_init =
	                {
	                        .opcode = IONIC_CMD_Q_INIT,
	                        .type = (uint8_t)ring->type,
	                        .ver = ring->type == IONIC_QTYPE_TXQ ? 1 : 0,
	                        .index = le32_make(ring->index),
	                        .intr_index = le16_make((uint16_t)intr),
	                        .flags = le16_make((uint16_t)flags),
	                        .ring_size = exponent,
	                        .ring_base = le64_make(ring->desc),
	                        .cq_ring_base = le64_make(ring->cq),
	                        .sg_ring_base = le64_make(ring->sg),
	                },
	};

	return cmd;
}

static void ring_placed(struct fake_ring *ring, const union ionic_comp *comp)
{
	ring->hw_index = le32_get(comp->q_init.hw_index);
	ring->hw_type = comp->q_init.hw_type;
}

void fake_q_init(struct fake_guest *guest, struct fake_ring *ring, unsigned intr, unsigned flags)
{
	union ionic_cmd cmd = fake_q_init_cmd(ring, intr, flags);
	union ionic_comp comp;

	must(fake_admin(guest, &cmd, &comp) == IONIC_RC_SUCCESS);
	ring_placed(ring, &comp);
}

int fake_q_control(struct fake_guest *guest, const struct fake_ring *ring, unsigned oper)
{
	union ionic_cmd cmd = {
	        .q_control =
	                {
	                        .opcode = IONIC_CMD_Q_CONTROL,
	                        .type = (uint8_t)ring->type,
	                        .index = le32_make(ring->index),
	                        .oper = (uint8_t)oper,
	                },
	};

	return fake_admin(guest, &cmd, NULL);
}

const uint8_t *fake_ring_completion(struct fake_guest *guest, struct fake_ring *ring)
{
	const uint8_t *comp = fake_ptr(guest, ring->cq + ring->cq_pos * 16ul, 16);

	if ((comp[15] & IONIC_COMP_COLOR) != ring->color)
		return NULL;
	ring->cq_pos = (ring->cq_pos + 1) & (ring->entries - 1);
	if (ring->cq_pos == 0)
		ring->color ^= IONIC_COMP_COLOR;
	return comp;
}

void fake_admin_post(struct fake_guest *guest, const union ionic_cmd *cmd)
{
	struct fake_ring *ring = &guest->adminq;

	memcpy(fake_ptr(guest, ring->desc + ring->head * sizeof(*cmd), sizeof(*cmd)), cmd,
	       sizeof(*cmd));
	ring->head = (ring->head + 1) & (ring->entries - 1);
}

int fake_admin(struct fake_guest *guest, const union ionic_cmd *cmd, union ionic_comp *comp)
{
	struct fake_ring *ring = &guest->adminq;
	uint32_t slot = ring->head;
	const uint8_t *answer;
	union ionic_comp copy;

	fake_admin_post(guest, cmd);
	fake_doorbell(guest, ring->hw_type, ring->hw_index, ring->head);
	fake_run(guest);
	answer = fake_ring_completion(guest, ring);
	if (!answer)
		return -1;
	memcpy(&copy, answer, sizeof(copy));
	must(le16_get(copy.any.comp_index) == slot);
	fake_write(guest, IONIC_REG_INTR_CONTROL + IONIC_INTR_CREDITS,
	           1 | IONIC_INTR_CREDITS_UNMASK | IONIC_INTR_CREDITS_RESET_COAL, 4);
	if (comp)
		*comp = copy;
	return copy.any.status;
}

/* ---- probe ---- */

void fake_port_init(struct fake_guest *guest)
{
	union ionic_cmd identify = {.port = {.opcode = IONIC_CMD_PORT_IDENTIFY}};
	union ionic_cmd init = {.port_init = {.opcode = IONIC_CMD_PORT_INIT}};
	struct ionic_port_identity identity;

	must(fake_devcmd(guest, &identify, NULL) == IONIC_RC_SUCCESS);
	fake_devcmd_data_read(guest, &identity, sizeof(identity));
	fake_devcmd_data_write(guest, &identity.config, sizeof(identity.config));
	guest->port_info = fake_alloc(guest, sizeof(struct ionic_port_info));
	init.port_init.info_addr = le64_make(guest->port_info);
	must(fake_devcmd(guest, &init, NULL) == IONIC_RC_SUCCESS);
}

void fake_lif_init(struct fake_guest *guest)
{
	union ionic_cmd cmd = {.lif_init = {.opcode = IONIC_CMD_LIF_INIT}};

	guest->lif_info = fake_alloc(guest, sizeof(struct ionic_lif_info));
	cmd.lif_init.info_addr = le64_make(guest->lif_info);
	must(fake_devcmd(guest, &cmd, NULL) == IONIC_RC_SUCCESS);
}

void fake_adminq_init(struct fake_guest *guest)
{
	union ionic_comp comp;
	union ionic_cmd cmd;

	fake_ring_init(guest, &guest->adminq, IONIC_QTYPE_ADMINQ, 0, FAKE_ADMINQ_SIZE);
	cmd = fake_q_init_cmd(&guest->adminq, 0, IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_ENA);
	must(fake_devcmd(guest, &cmd, &comp) == IONIC_RC_SUCCESS);
	ring_placed(&guest->adminq, &comp);
	fake_write(guest, IONIC_REG_INTR_CONTROL + IONIC_INTR_MASK_ASSERT, 1, 4);
	fake_write(guest, IONIC_REG_INTR_CONTROL + IONIC_INTR_MASK, 0, 4);
}

void fake_notifyq_init(struct fake_guest *guest)
{
	fake_ring_init(guest, &guest->notifyq, IONIC_QTYPE_NOTIFYQ, 0, FAKE_NOTIFYQ_SIZE);
	fake_q_init(guest, &guest->notifyq, 0, IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_ENA);
}

void fake_probe(struct fake_guest *guest)
{
	fake_port_init(guest);
	fake_lif_init(guest);
	fake_adminq_init(guest);
	fake_notifyq_init(guest);
}
