// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Life of the driver model: finding the PCI function, probe, removal, resets.
 *
 * Probe is a table of steps, in the order in which Linux does them (spec ionic-ethernet 13.1), so
 * that a test can stop between any two of them and let something happen.
 */
#include "nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PCI_COMMAND        0x04
#define PCI_COMMAND_MEMORY 0x2
#define PCI_COMMAND_MASTER 0x4
#define PCI_CAP_POINTER    0x34
#define PCI_CAP_MSIX       0x11
#define PCI_CAP_EXPRESS    0x10
#define PCI_MSIX_CONTROL   2
#define PCI_EXP_DEVCTL     8
#define PCI_DEVCTL_FLR     0x8000
#define PCI_MSIX_ENABLE    0x8000
#define PCI_MSIX_MASKALL   0x4000

/* ---- memory without a descriptor ---- */

static int nic_memory_read(void *arg, uint64_t addr, void *data, size_t size)
{
	struct nic *nic = arg;

	if (!ram_has(&nic->ram, addr, size))
		return -EFAULT;
	memcpy(data, nic->ram.host + (addr - nic->ram.base), size);
	return 0;
}

static int nic_memory_write(void *arg, uint64_t addr, const void *data, size_t size)
{
	struct nic *nic = arg;

	if (!ram_has(&nic->ram, addr, size))
		return -EFAULT;
	memcpy(nic->ram.host + (addr - nic->ram.base), data, size);
	return 0;
}

/* ---- PCI ---- */

int nic_config_read(struct nic *nic, uint64_t offset, void *data, size_t size)
{
	return vfu_read(nic->vfu, VFU_REGION_CONFIG, offset, data, size);
}

int nic_config_write(struct nic *nic, uint64_t offset, const void *data, size_t size)
{
	return vfu_write(nic->vfu, VFU_REGION_CONFIG, offset, data, size);
}

int nic_find_capability(struct nic *nic, uint8_t id)
{
	uint8_t pos, cap[2];
	int err = nic_config_read(nic, PCI_CAP_POINTER, &pos, 1);

	for (int ttl = 48; !err && pos && ttl; ttl--) {
		err = nic_config_read(nic, pos, cap, 2);
		if (!err && cap[0] == id)
			return pos;
		pos = cap[1];
	}
	return err ? err : -ENOENT;
}

static int nic_command_set(struct nic *nic, uint16_t bits)
{
	le16 command;
	int err = nic_config_read(nic, PCI_COMMAND, &command, 2);

	if (err)
		return err;
	command = le16_make(le16_get(command) | bits);
	return nic_config_write(nic, PCI_COMMAND, &command, 2);
}

static int nic_map_memory(struct nic *nic)
{
	struct vfu_map map = {.fd = nic->options.message_ram ? -1 : nic->ram.fd,
	                      .addr = nic->ram.base,
	                      .size = nic->ram.size,
	                      .flags = VFU_DMA_RW};
	struct vfu_map bios = {.fd = -1, .addr = 0xfffc0000, .size = 0x40000, .flags = VFU_DMA_R};
	int err = vfu_dma_map(nic->vfu, &map);

	return err ? err : vfu_dma_map(nic->vfu, &bios);
}

static int nic_find_regions(struct nic *nic)
{
	struct vfu_info info;
	struct vfu_region region;
	uint32_t flags;
	int err = vfu_get_info(nic->vfu, &info);

	if (err)
		return err;
	if (info.num_regions != 9 || info.num_irqs != 5)
		return nic_complain(nic, "%u regions and %u interrupt kinds", info.num_regions,
		                    info.num_irqs);
	for (unsigned i = 0; i < 6; i++) {
		err = vfu_region_info(nic->vfu, i, &region);
		if (err)
			return err;
		nic->bar_size[i] = region.size;
	}
	if (nic->bar_size[0] < 0x8000 || nic->bar_size[2] < RAM_PAGE)
		return nic_complain(nic, "BAR sizes %#llx and %#llx",
		                    (unsigned long long)nic->bar_size[0],
		                    (unsigned long long)nic->bar_size[2]);
	return vfu_irq_info(nic->vfu, VFU_IRQ_MSIX, &flags, &nic->msix_count);
}

static int nic_connect(struct nic *nic)
{
	const struct nic_options *options = &nic->options;
	int err = vfu_open(&nic->vfu, options->socket, options->fd, options->timeout_ms);

	if (err)
		return err;
	nic->vfu->memory =
	        (struct vfu_memory){.read = nic_memory_read, .write = nic_memory_write, .arg = nic};
	err = vfu_version(nic->vfu);
	if (!err)
		err = nic_map_memory(nic);
	if (!err)
		err = nic_find_regions(nic);
	return err;
}

int nic_open(struct nic **nic, const struct nic_options *options)
{
	struct nic *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return -ENOMEM;
	new->options = *options;
	new->ram.fd = -1;
	new->admin_eventfd = -1;
	for (unsigned i = 0; i < NIC_PAIRS_MAX; i++)
		new->pair[i].eventfd = -1;
	err = ram_create(&new->ram, options->ram_size);
	if (!err)
		err = nic_connect(new);
	if (err) {
		nic_close(new);
		return err;
	}
	nic_forget(new);
	*nic = new;
	return 0;
}

void nic_close(struct nic *nic)
{
	if (!nic)
		return;
	for (unsigned i = 0; i < NIC_PAIRS_MAX; i++) {
		if (nic->pair[i].eventfd >= 0)
			close(nic->pair[i].eventfd);
		free(nic->pair[i].slots);
	}
	if (nic->admin_eventfd >= 0)
		close(nic->admin_eventfd);
	vfu_close(nic->vfu);
	ram_destroy(&nic->ram);
	free(nic);
}

/* ---- probe, step by step (13.1) ---- */

static int nic_step_decode(struct nic *nic)
{
	return nic_command_set(nic, PCI_COMMAND_MEMORY);
}

/* Reads the device info block as ionic_dev_setup() does. */
static int nic_step_info(struct nic *nic)
{
	struct nic_identity *id = &nic->id;
	uint32_t signature;
	uint8_t status;
	int err = nic_reg_read32(nic, REG_SIGNATURE, &signature);

	if (err)
		return err;
	if (signature != DEV_SIGNATURE)
		return nic_complain(nic, "signature %#x", signature);
	err = nic_reg_read(nic, REG_ASIC_TYPE, &id->asic_type, 1);
	if (!err)
		err = nic_reg_read(nic, REG_ASIC_REV, &id->asic_rev, 1);
	if (!err)
		err = nic_block_read(nic, REG_FW_VERSION, id->fw_version, 32);
	if (!err)
		err = nic_block_read(nic, REG_SERIAL, id->serial, 32);
	if (!err)
		err = nic_reg_read(nic, REG_FW_STATUS, &status, 1);
	if (err)
		return err;
	if (status == FW_GONE || !(status & FW_RUNNING))
		return nic_complain(nic, "fw_status %#x", status);
	nic->fw_generation = status & FW_GENERATION_MASK;
	return 0;
}

static int nic_simple_devcmd(struct nic *nic, enum cmd_opcode opcode)
{
	const struct cmd cmd = {.opcode = (uint8_t)opcode};

	return nic_devcmd(nic, &cmd, NULL);
}

static int nic_step_reset(struct nic *nic)
{
	return nic_simple_devcmd(nic, CMD_RESET);
}

static int nic_step_master(struct nic *nic)
{
	return nic_command_set(nic, PCI_COMMAND_MASTER);
}

static uint32_t nic_get32(const uint8_t *data, unsigned offset)
{
	le32 value;

	memcpy(&value, data + offset, sizeof(value));
	return le32_get(value);
}

/* Issues an identify command and reads all of the data window. */
static int nic_identify(struct nic *nic, const struct cmd *cmd, uint8_t data[REG_DEVCMD_DATA_SZ])
{
	int err = nic_devcmd(nic, cmd, NULL);

	if (err)
		return err;
	if (nic->options.brief)
		return nic_reg_read(nic, REG_DEVCMD_DATA, data, REG_DEVCMD_DATA_SZ);
	return nic_block_read(nic, REG_DEVCMD_DATA, data, REG_DEVCMD_DATA_SZ);
}

static int nic_step_identify(struct nic *nic)
{
	struct cmd cmd = {.opcode = CMD_IDENTIFY};
	uint8_t data[REG_DEVCMD_DATA_SZ] = {1}; /* os_type: Linux (3.5) */
	int err;

	strcpy((char *)data + 172, "driver model");
	cmd.identify.ver = 2;
	err = nic_block_write(nic, REG_DEVCMD_DATA, data, sizeof(data));
	if (!err)
		err = nic_identify(nic, &cmd, data);
	if (err)
		return err;
	nic->id.nintrs = nic_get32(data, DEV_ID_NINTRS);
	nic->id.ndbpgs = nic_get32(data, DEV_ID_NDBPGS);
	nic->id.coal_mult = nic_get32(data, DEV_ID_COAL_MULT);
	nic->id.coal_div = nic_get32(data, DEV_ID_COAL_DIV);
	if (nic->id.ndbpgs == 0)
		return nic_complain(nic, "no doorbell pages");
	return 0;
}

static int nic_step_lif_identify(struct nic *nic)
{
	struct cmd cmd = {.opcode = CMD_LIF_IDENTIFY};
	uint8_t data[REG_DEVCMD_DATA_SZ];
	struct nic_identity *id = &nic->id;
	int err;

	cmd.lif_identify.ver = 1;
	err = nic_identify(nic, &cmd, data);
	if (err)
		return err;
	id->lif_caps = nic_get32(data, LIF_ID_CAPS) | (uint64_t)nic_get32(data, LIF_ID_CAPS + 4)
	                                                      << 32;
	id->max_ucast = nic_get32(data, LIF_ID_MAX_UCAST);
	id->rss_entries = (uint16_t)(data[LIF_ID_RSS_TBL_SZ] | data[LIF_ID_RSS_TBL_SZ + 1] << 8);
	id->min_frame = nic_get32(data, LIF_ID_MIN_FRAME);
	id->max_frame = nic_get32(data, LIF_ID_MAX_FRAME);
	for (unsigned i = 0; i < 4; i++)
		id->queue_count[i] = nic_get32(data, LIF_ID_QCOUNT + 4 * i);
	id->eq_count = nic_get32(data, LIF_ID_EQ_COUNT);
	return 0;
}

static int nic_step_init(struct nic *nic)
{
	return nic_simple_devcmd(nic, CMD_INIT);
}

static int nic_step_port_identify(struct nic *nic)
{
	const struct cmd cmd = {.opcode = CMD_PORT_IDENTIFY};
	uint8_t data[REG_DEVCMD_DATA_SZ];
	int err = nic_identify(nic, &cmd, data);

	if (!err)
		memcpy(nic->id.port_config, data + PORT_ID_CONFIG, PORT_CONFIG_SIZE);
	return err;
}

static int nic_step_port_init(struct nic *nic)
{
	struct cmd cmd = {.opcode = CMD_PORT_INIT};
	int err;

	nic->port_info = ram_take(&nic->ram, PORT_INFO_SIZE);
	if (!nic->port_info)
		return -ENOMEM;
	memset(ram_at(&nic->ram, nic->port_info), 0, RAM_PAGE);
	cmd.port_init.info_pa = le64_make(nic->port_info);
	err = nic_block_write(nic, REG_DEVCMD_DATA, nic->id.port_config, PORT_CONFIG_SIZE);
	return err ? err : nic_devcmd(nic, &cmd, NULL);
}

static int nic_step_port_up(struct nic *nic)
{
	struct cmd cmd = {.opcode = CMD_PORT_SETATTR};

	cmd.port_setattr.attr = PORT_STATE;
	cmd.port_setattr.value[0] = 2;
	return nic_devcmd(nic, &cmd, NULL);
}

/* How many vectors Linux would take, and how many queue pairs are left then (1.3). */
static int nic_step_vectors(struct nic *nic)
{
	uint32_t rx = nic->id.queue_count[Q_RX], tx = nic->id.queue_count[Q_TX];
	unsigned pairs = nic->options.pairs, eqs = nic->id.eq_count;
	int cap = nic_find_capability(nic, PCI_CAP_MSIX);
	le16 control;
	int err;

	if (cap < 0)
		return cap;
	if (eqs > pairs)
		eqs = pairs;
	if (pairs > rx)
		pairs = rx;
	if (pairs > tx)
		pairs = tx;
	if (pairs > NIC_PAIRS_MAX)
		pairs = NIC_PAIRS_MAX;
	while (1 + pairs + eqs > nic->id.nintrs && eqs > 1)
		eqs >>= 1;
	while (1 + pairs + eqs > nic->id.nintrs && pairs > 1)
		pairs >>= 1;
	nic->pair_count = pairs;
	err = nic_config_read(nic, (uint64_t)cap + PCI_MSIX_CONTROL, &control, 2);
	if (err)
		return err;
	if ((le16_get(control) & 0x7ff) + 1u < 1 + pairs + eqs)
		return nic_complain(nic, "MSI-X table of %u entries for %u vectors",
		                    (le16_get(control) & 0x7ff) + 1u, 1 + pairs + eqs);
	/* Enabled with the function masked, then told to the server, then unmasked: QEMU's order.
	 */
	control = le16_make(le16_get(control) | PCI_MSIX_ENABLE | PCI_MSIX_MASKALL);
	err = nic_config_write(nic, (uint64_t)cap + PCI_MSIX_CONTROL, &control, 2);
	if (!err)
		err = vfu_set_irqs(nic->vfu, VFU_IRQ_MSIX, 0, 1, NULL);
	control = le16_make(le16_get(control) & (uint16_t)~PCI_MSIX_MASKALL);
	if (!err)
		err = nic_config_write(nic, (uint64_t)cap + PCI_MSIX_CONTROL, &control, 2);
	return err;
}

static int nic_queue_identify(struct nic *nic, unsigned type, uint8_t ver)
{
	struct cmd cmd = {.opcode = CMD_Q_IDENTIFY};
	uint64_t features;
	uint16_t sizes[5];
	uint8_t supported;
	int err;

	cmd.q_identify.type = (uint8_t)type;
	cmd.q_identify.ver = ver;
	err = nic_devcmd(nic, &cmd, NULL);
	if (!err)
		err = nic_reg_read(nic, REG_DEVCMD_DATA, &nic->id.q_version[type], 1);
	if (!err)
		err = nic_reg_read(nic, REG_DEVCMD_DATA + 1, &supported, 1);
	if (!err)
		err = nic_reg_read(nic, REG_DEVCMD_DATA + 8, &features, 8);
	for (unsigned i = 0; i < 5 && !err; i++)
		err = nic_reg_read(nic, REG_DEVCMD_DATA + 16 + 2 * i, &sizes[i], 2);
	if (!err && type == Q_TX)
		nic->id.tx_sg_v1 =
		        nic->id.q_version[type] >= 1 && le16toh(sizes[2]) == TX_SG_STRIDE;
	return err;
}

static int nic_step_queue_identify(struct nic *nic)
{
	static const uint8_t versions[4] = {0, 0, 2, 3}; /* 3.8 */
	int err = 0;

	for (unsigned type = 0; type < 4 && !err; type++)
		err = nic_queue_identify(nic, type, versions[type]);
	if (!err && !nic->id.tx_sg_v1)
		return nic_complain(nic, "transmit SG descriptors are not of 256 bytes");
	return err;
}

static int nic_step_admin_vector(struct nic *nic)
{
	uint32_t credits;
	int err = nic_intr_read(nic, 0, REG_INTR_CREDITS, &credits);

	if (!err)
		err = nic_intr_write(nic, 0, REG_INTR_CREDITS,
		                     (credits & 0xffff) | CREDITS_RESET_COAL);
	if (!err)
		err = nic_intr_write(nic, 0, REG_INTR_ASSERT, 1);
	if (err)
		return err;
	if (nic->admin_eventfd < 0)
		nic->admin_eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (nic->admin_eventfd < 0)
		return -errno;
	return vfu_set_irqs(nic->vfu, VFU_IRQ_MSIX, 0, 1, &nic->admin_eventfd);
}

static int nic_step_lif_init(struct nic *nic)
{
	struct cmd cmd = {.opcode = CMD_LIF_INIT};
	struct comp comp;
	int err;

	nic->lif_info = ram_take(&nic->ram, LIF_INFO_SIZE);
	if (!nic->lif_info)
		return -ENOMEM;
	memset(ram_at(&nic->ram, nic->lif_info), 0, RAM_PAGE);
	cmd.lif_init.info_pa = le64_make(nic->lif_info);
	err = nic_devcmd(nic, &cmd, &comp);
	if (err)
		return err;
	nic->hw_lif = le16_get(comp.hw_index);
	if (((uint64_t)nic->hw_lif + 1) * nic->id.ndbpgs * RAM_PAGE > nic->bar_size[2])
		return nic_complain(nic, "doorbell pages of LIF %u are outside the BAR",
		                    nic->hw_lif);
	return 0;
}

static int nic_step_adminq(struct nic *nic)
{
	struct nic_queue *queue = &nic->adminq;
	struct cmd cmd;
	struct comp comp;
	int err;

	*queue = (struct nic_queue){.type = Q_ADMIN};
	err = nic_queue_prepare(nic, queue, ADMINQ_LOG2);
	if (err)
		return err;
	nic_cmd_queue_init(nic, queue, &cmd);
	err = nic_devcmd(nic, &cmd, &comp);
	if (err)
		return err;
	queue->hw_index = le32_get(comp.q_init.hw_index) & 0xffffff;
	queue->hw_type = comp.q_init.hw_type;
	queue->enabled = true;
	nic->admin_pending = 0;
	nic->admin_work = 0;
	return nic_intr_write(nic, 0, REG_INTR_MASK, 0);
}

static int nic_step_notifyq(struct nic *nic)
{
	struct nic_queue queue = {.type = Q_NOTIFY};
	int err;

	if (nic->id.queue_count[Q_NOTIFY] == 0)
		return 0;
	/* One page of unused descriptors, then the events (5.4). */
	queue.desc = ram_take(&nic->ram, 2 * RAM_PAGE);
	if (!queue.desc)
		return -ENOMEM;
	memset(ram_at(&nic->ram, queue.desc), 0, 2 * RAM_PAGE);
	queue.log2 = NOTIFYQ_LOG2;
	nic->notify_ring = queue.desc + RAM_PAGE;
	nic->notify_tail = 0;
	nic->notify_eid = 0;
	err = nic_queue_init(nic, &queue);
	return err;
}

static int nic_step_features(struct nic *nic)
{
	int err = nic_lif_features(nic, nic->options.features);

	if (err || !(nic->features & FEAT_RX_HASH))
		return err;
	nic->rss_table = ram_take(&nic->ram, nic->id.rss_entries);
	if (!nic->rss_table)
		return -ENOMEM;
	memset(ram_at(&nic->ram, nic->rss_table), 0, nic->id.rss_entries);
	return nic_rss_config(nic, 0);
}

static int nic_step_mac(struct nic *nic)
{
	static const uint8_t none[6];
	struct cmd cmd = {.opcode = CMD_LIF_GETATTR};
	struct comp comp;
	int err;

	cmd.lif_attr.attr = LIF_MAC;
	err = nic_admin(nic, &cmd, &comp);
	if (err)
		return err;
	memcpy(nic->mac, comp.mac, 6);
	if (!memcmp(nic->mac, none, 6))
		return nic_complain(nic, "MAC address of zeros");
	return nic_filter_mac(nic, nic->mac, &nic->mac_filter_id);
}

static int nic_step_name(struct nic *nic)
{
	struct cmd cmd = {.opcode = CMD_LIF_SETATTR};
	int err;

	if (nic_link_up(nic)) {
		err = nic_step_port_identify(nic);
		if (err)
			return err;
	}
	cmd.lif_attr.attr = LIF_NAME;
	memcpy(cmd.lif_attr.name, "model0", 7);
	return nic_admin(nic, &cmd, NULL);
}

static const struct {
	const char *name;
	int (*run)(struct nic *nic);
	bool fw_up; /* also part of the firmware-up path (12.3) */
} nic_steps[] = {
        {"memory decode", nic_step_decode, false},
        {"device info", nic_step_info, true},
        {"RESET", nic_step_reset, true},
        {"bus master", nic_step_master, false},
        {"IDENTIFY", nic_step_identify, true},
        {"LIF_IDENTIFY", nic_step_lif_identify, true},
        {"INIT", nic_step_init, false},
        {"PORT_IDENTIFY", nic_step_port_identify, true},
        {"PORT_INIT", nic_step_port_init, true},
        {"PORT_SETATTR up", nic_step_port_up, true},
        {"MSI-X", nic_step_vectors, false},
        {"LIF_IDENTIFY again", nic_step_lif_identify, false},
        {"Q_IDENTIFY", nic_step_queue_identify, false},
        {"vector 0", nic_step_admin_vector, true},
        {"LIF_INIT", nic_step_lif_init, true},
        {"AdminQ", nic_step_adminq, true},
        {"NotifyQ", nic_step_notifyq, true},
        {"features", nic_step_features, true},
        {"MAC address", nic_step_mac, true},
        {"name", nic_step_name, true},
};

int nic_probe_steps(void)
{
	return (int)ARRAY_SIZE(nic_steps);
}

const char *nic_probe_step_name(int step)
{
	return nic_steps[step].name;
}

int nic_probe_until(struct nic *nic, int count)
{
	while (nic->step < count) {
		int err = nic_steps[nic->step].run(nic);

		if (err)
			return err;
		nic->step++;
	}
	return 0;
}

int nic_probe(struct nic *nic)
{
	return nic_probe_until(nic, nic_probe_steps());
}

void nic_forget(struct nic *nic)
{
	uint64_t drain;

	nic->step = 0;
	nic->ram.used = 0;
	nic->up = nic->running = false;
	nic->adminq.enabled = false;
	nic->admin_pending = nic->admin_work = 0;
	nic->notify_ring = 0;
	nic->features = 0;
	nic->rss_table = 0;
	for (unsigned i = 0; i < RSS_KEY_SIZE; i++)
		nic->rss_key[i] = (uint8_t)(0x6d + 29 * i);
	if (nic->admin_eventfd >= 0)
		(void)!read(nic->admin_eventfd, &drain, sizeof(drain));
	for (unsigned i = 0; i < NIC_PAIRS_MAX; i++) {
		struct nic_pair *pair = &nic->pair[i];

		pair->tx = pair->rx = (struct nic_queue){0};
		pair->work = 0;
		if (pair->eventfd >= 0)
			(void)!read(pair->eventfd, &drain, sizeof(drain));
	}
}

int nic_start(struct nic **nic, const struct nic_options *options)
{
	int err = nic_open(nic, options);

	if (err)
		return err;
	err = nic_probe(*nic);
	if (!err)
		err = nic_up(*nic);
	if (err) {
		nic_close(*nic);
		*nic = NULL;
	}
	return err;
}

int nic_remove(struct nic *nic)
{
	int err = nic->up ? nic_down(nic) : 0;

	if (!err && nic->features & FEAT_RX_HASH) {
		memset(nic->rss_key, 0, sizeof(nic->rss_key));
		memset(ram_at(&nic->ram, nic->rss_table), 0, nic->id.rss_entries);
		err = nic_rss_config(nic, 0);
	}
	if (!err)
		err = nic_intr_write(nic, 0, REG_INTR_MASK, 1);
	if (!err)
		err = nic_simple_devcmd(nic, CMD_LIF_RESET);
	if (!err)
		err = nic_simple_devcmd(nic, CMD_LIF_RESET);
	if (!err)
		err = vfu_disable_irqs(nic->vfu, VFU_IRQ_MSIX);
	if (!err)
		err = nic_simple_devcmd(nic, CMD_PORT_RESET);
	if (!err)
		err = nic_simple_devcmd(nic, CMD_RESET);
	if (!err)
		nic_forget(nic);
	return err;
}

/* ---- resets ---- */

int nic_fw_down(struct nic *nic)
{
	nic->adminq.enabled = false;
	nic->running = false;
	return 0;
}

int nic_fw_up(struct nic *nic)
{
	bool was_up = nic->up;
	int err = 0;

	/* The rings stay where they are in memory; new ones are taken behind them. */
	nic->up = false;
	for (unsigned i = 0; i < ARRAY_SIZE(nic_steps) && !err; i++)
		if (nic_steps[i].fw_up)
			err = nic_steps[i].run(nic);
	return err || !was_up ? err : nic_up(nic);
}

int nic_config_flr(struct nic *nic)
{
	int cap = nic_find_capability(nic, PCI_CAP_EXPRESS);
	le16 control;
	int err;

	if (cap < 0)
		return cap;
	err = nic_config_read(nic, (uint64_t)cap + PCI_EXP_DEVCTL, &control, 2);
	if (err)
		return err;
	control = le16_make(le16_get(control) | PCI_DEVCTL_FLR);
	return nic_config_write(nic, (uint64_t)cap + PCI_EXP_DEVCTL, &control, 2);
}

int nic_flr(struct nic *nic)
{
	bool was_up = nic->up;
	int err = was_up ? nic_down(nic) : 0;

	if (!err)
		err = nic_simple_devcmd(nic, CMD_LIF_RESET);
	if (!err)
		err = nic_config_flr(nic);
	if (err)
		return err;
	nic_forget(nic);
	err = nic_probe(nic);
	return err || !was_up ? err : nic_up(nic);
}
