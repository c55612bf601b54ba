/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands: which there are, by which path they may come, what must have happened before
 * (spec ionic-ethernet 3.1). The handlers are in identify.c, port.c, lif.c, filter.c, queue.c.
 */
#include "ionic_internal.h"

COUNTER(ionic_cmd_unknown, "commands with an unknown opcode");
COUNTER(ionic_cmd_unsupported, "commands for features that the device does not have");
COUNTER(ionic_cmd_wrong_path, "device commands sent as admin commands, or the other way round");
COUNTER(ionic_cmd_no_port, "port commands before PORT_INIT");
COUNTER(ionic_cmd_no_lif, "LIF commands before LIF_INIT");
COUNTER(ionic_cmd_bad_port_index, "port commands for a port that does not exist");
COUNTER(ionic_cmd_bad_lif_index, "LIF commands for a LIF that does not exist");
COUNTER(ionic_cmd_failed, "commands completed with an error");
COUNTER(ionic_devcmd_orphaned, "device commands whose completion a function reset overtook");

enum { DEVCMD = 1, ADMINQ = 2 }; /* paths */

enum {
	NEEDS_PORT = 1,     /* PORT_INIT */
	NEEDS_LIF = 2,      /* LIF_INIT */
	HAS_PORT_INDEX = 4, /* in byte 1, must be 0 */
	HAS_LIF_INDEX = 8,  /* in bytes 2 and 3, must be 0 */
};

static enum ionic_status cmd_nop(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                 union ionic_comp *comp)
{
	(void)dev, (void)cmd, (void)comp;
	return IONIC_RC_SUCCESS;
}

/* Later commands do not depend on INIT: firmware recovery leaves it out (spec 3.4). */
static enum ionic_status cmd_init(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                  union ionic_comp *comp)
{
	(void)dev, (void)comp;
	return cmd->init.type == 0 ? IONIC_RC_SUCCESS : IONIC_RC_EINVAL;
}

static enum ionic_status cmd_reset(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                   union ionic_comp *comp)
{
	(void)cmd, (void)comp;
	ionic_dev_clear(dev);
	return IONIC_RC_SUCCESS;
}

static enum ionic_status cmd_unsupported(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                         union ionic_comp *comp)
{
	(void)dev, (void)cmd, (void)comp;
	return ionic_refuse(&ionic_cmd_unsupported, IONIC_RC_ENOSUPP);
}

struct cmd_desc {
	uint8_t opcode;
	uint8_t paths;
	uint8_t flags;
	const char *name;
	ionic_cmd_fn *run;
};

#define LIF_ADMIN (NEEDS_LIF | HAS_LIF_INDEX)
#define CMD(name) IONIC_CMD_##name, DEVCMD, 0, #name, cmd_unsupported

static const struct cmd_desc descs[] = {
        {IONIC_CMD_NOP, DEVCMD | ADMINQ, 0, "NOP", cmd_nop},
        {IONIC_CMD_IDENTIFY, DEVCMD, 0, "IDENTIFY", ionic_cmd_identify},
        {IONIC_CMD_INIT, DEVCMD, 0, "INIT", cmd_init},
        {IONIC_CMD_RESET, DEVCMD, 0, "RESET", cmd_reset},
        {IONIC_CMD_PORT_IDENTIFY, DEVCMD, HAS_PORT_INDEX, "PORT_IDENTIFY", ionic_cmd_port_identify},
        {IONIC_CMD_PORT_INIT, DEVCMD, HAS_PORT_INDEX, "PORT_INIT", ionic_cmd_port_init},
        {IONIC_CMD_PORT_RESET, DEVCMD, HAS_PORT_INDEX, "PORT_RESET", ionic_cmd_port_reset},
        {IONIC_CMD_PORT_SETATTR, DEVCMD, NEEDS_PORT | HAS_PORT_INDEX, "PORT_SETATTR",
         ionic_cmd_port_setattr},
        {IONIC_CMD_LIF_IDENTIFY, DEVCMD, 0, "LIF_IDENTIFY", ionic_cmd_lif_identify},
        {IONIC_CMD_LIF_INIT, DEVCMD, HAS_LIF_INDEX, "LIF_INIT", ionic_cmd_lif_init},
        {IONIC_CMD_LIF_RESET, DEVCMD, HAS_LIF_INDEX, "LIF_RESET", ionic_cmd_lif_reset},
        {IONIC_CMD_LIF_GETATTR, ADMINQ, LIF_ADMIN, "LIF_GETATTR", ionic_cmd_lif_getattr},
        {IONIC_CMD_LIF_SETATTR, ADMINQ, LIF_ADMIN, "LIF_SETATTR", ionic_cmd_lif_setattr},
        {IONIC_CMD_RX_MODE_SET, ADMINQ, LIF_ADMIN, "RX_MODE_SET", ionic_cmd_rx_mode_set},
        {IONIC_CMD_RX_FILTER_ADD, ADMINQ, LIF_ADMIN, "RX_FILTER_ADD", ionic_cmd_rx_filter_add},
        {IONIC_CMD_RX_FILTER_DEL, ADMINQ, LIF_ADMIN, "RX_FILTER_DEL", ionic_cmd_rx_filter_del},
        {IONIC_CMD_Q_IDENTIFY, DEVCMD, 0, "Q_IDENTIFY", ionic_cmd_q_identify},
        {IONIC_CMD_Q_INIT, DEVCMD, LIF_ADMIN, "Q_INIT", ionic_cmd_devcmd_q_init},
        {IONIC_CMD_Q_INIT, ADMINQ, LIF_ADMIN, "Q_INIT", ionic_cmd_adminq_q_init},
        {IONIC_CMD_Q_CONTROL, ADMINQ, LIF_ADMIN, "Q_CONTROL", ionic_cmd_q_control},
        /* Also of a LIF that is not there, and by either path: teardown relies on it. */
        {IONIC_CMD_RDMA_RESET_LIF, DEVCMD | ADMINQ, HAS_LIF_INDEX, "RDMA_RESET_LIF",
         ionic_cmd_rdma_reset_lif},
        {IONIC_CMD_RDMA_CREATE_EQ, ADMINQ, LIF_ADMIN, "RDMA_CREATE_EQ", ionic_cmd_rdma_create_eq},
        {IONIC_CMD_RDMA_CREATE_CQ, ADMINQ, LIF_ADMIN, "RDMA_CREATE_CQ", ionic_cmd_rdma_create_cq},
        {IONIC_CMD_RDMA_CREATE_ADMINQ, ADMINQ, LIF_ADMIN, "RDMA_CREATE_ADMINQ",
         ionic_cmd_rdma_create_adminq},

        {IONIC_CMD_LIF_SETPHC, ADMINQ, LIF_ADMIN, "LIF_SETPHC", cmd_unsupported},
        {CMD(GETATTR)},
        {CMD(SETATTR)},
        {CMD(PORT_GETATTR)},
        {CMD(VF_GETATTR)},
        {CMD(VF_SETATTR)},
        {CMD(VF_CTRL)},
        {CMD(DISCOVER_CMB)},
        {CMD(QOS_CLASS_IDENTIFY)},
        {CMD(QOS_CLASS_INIT)},
        {CMD(QOS_CLASS_RESET)},
        {CMD(QOS_CLASS_UPDATE)},
        {CMD(QOS_CLEAR_STATS)},
        {CMD(QOS_RESET)},
        {CMD(FW_DOWNLOAD)},
        {CMD(FW_CONTROL)},
        {CMD(FW_DOWNLOAD_V1)},
        {CMD(FW_CONTROL_V1)},
};

/* The command OPCODE of a path. Returns NULL, with *KNOWN set when the other path has it. */
static const struct cmd_desc *desc_find(uint8_t opcode, unsigned path, bool *known)
{
	*known = false;
	for (size_t i = 0; i < ARRAY_SIZE(descs); i++) {
		if (descs[i].opcode != opcode)
			continue;
		if (descs[i].paths & path)
			return &descs[i];
		*known = true;
	}
	return NULL;
}

static enum ionic_status desc_check(const struct ionic_dev *dev, const struct cmd_desc *desc,
                                    const union ionic_cmd *cmd)
{
	if (desc->flags & HAS_PORT_INDEX && cmd->port.index != 0)
		return ionic_refuse(&ionic_cmd_bad_port_index, IONIC_RC_EINVAL);
	if (desc->flags & HAS_LIF_INDEX && le16_get(cmd->any.lif_index) != 0)
		return ionic_refuse(&ionic_cmd_bad_lif_index, IONIC_RC_EINVAL);
	if (desc->flags & NEEDS_PORT && !dev->eth_port.initialized)
		return ionic_refuse(&ionic_cmd_no_port, IONIC_RC_EPERM);
	if (desc->flags & NEEDS_LIF && !dev->lif.initialized)
		return ionic_refuse(&ionic_cmd_no_lif, IONIC_RC_EPERM);
	return IONIC_RC_SUCCESS;
}

enum ionic_status ionic_cmd_run(struct ionic_dev *dev, bool adminq, const union ionic_cmd *cmd,
                                union ionic_comp *comp)
{
	const char *path = adminq ? "admin" : "device";
	const struct cmd_desc *desc;
	enum ionic_status status;
	bool known;

	desc = desc_find(cmd->any.opcode, adminq ? ADMINQ : DEVCMD, &known);
	if (!desc) {
		status = ionic_refuse(known ? &ionic_cmd_wrong_path : &ionic_cmd_unknown,
		                      IONIC_RC_EOPCODE);
	} else {
		status = desc_check(dev, desc, cmd);
		if (status == IONIC_RC_SUCCESS)
			status = desc->run(dev, cmd, comp);
	}
	if (status != IONIC_RC_SUCCESS) {
		counter_inc(&ionic_cmd_failed);
		log_guest("ionic: %s command %u %s refused with status %u", path, cmd->any.opcode,
		          desc ? desc->name : "", status);
	} else {
		log_debug("ionic: %s command %u %s", path, cmd->any.opcode, desc->name);
	}
	return status;
}

void ionic_devcmd_run(struct ionic_dev *dev)
{
	const union ionic_cmd cmd = dev->devcmd.cmd;
	union ionic_comp comp = {{0}};
	uint64_t resets = dev->count.resets;
	enum ionic_status status;

	assert(dev->devcmd_pending);
	dev->count.devcmds++;
	status = ionic_cmd_run(dev, false, &cmd, &comp);
	if (dev->count.resets != resets) {
		/* Another guest's registers by now: nothing of this command belongs there. */
		counter_inc(&ionic_devcmd_orphaned);
		return;
	}
	comp.any.status = (uint8_t)status;
	dev->devcmd.comp = comp;
	dev->devcmd.done = le32_make(IONIC_DEVCMD_DONE);
	dev->devcmd_pending = false;
}
