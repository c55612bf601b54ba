/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port: its attributes, the link, and the port info block in guest memory
 * (spec ionic-ethernet 3.6, 10.1, 10.2).
 *
 * The link is up when the operator wants it and the driver has not set the port down. A change is
 * told in this order: LIF info block, port info block, LINK_CHANGE event; the driver reads the
 * block when the event comes.
 */
#include "ionic_internal.h"

COUNTER(ionic_port_init_busy, "PORT_INIT of a port that is initialized");
COUNTER(ionic_port_init_config, "PORT_INIT with an impossible configuration");
COUNTER(ionic_port_info_addr, "PORT_INIT with an info block that is misaligned or not in memory");
COUNTER(ionic_port_info_lost, "updates of the port info block that did not reach guest memory");
COUNTER(ionic_port_setattr_invalid, "PORT_SETATTR with an unknown attribute or value");
COUNTER(ionic_port_setattr_unsupported, "PORT_SETATTR of what the device does not have");

#define PAUSE_TYPE_MASK 0x0f
#define PAUSE_TYPE_LINK 0x01
#define PAUSE_FLAGS     0x30 /* TX, RX */

void ionic_port_clear(struct ionic_dev *dev)
{
	struct ionic_port *port = &dev->eth_port;

	*port = (struct ionic_port){.initialized = false};
	ionic_port_default_config(&dev->profile, &port->config);
	port->link_up = ionic_link_up(dev);
	port->link_speed = port->link_up ? le32_get(port->config.speed) : 0;
	memset(dev->stats.port, 0, sizeof(dev->stats.port));
}

/* ---- the block in guest memory ---- */

static void info_fill_status(const struct ionic_dev *dev, struct ionic_port_info *info)
{
	const struct ionic_port *port = &dev->eth_port;

	info->config = port->config;
	info->status.speed = le32_make(port->link_speed);
	info->status.status = port->link_up ? IONIC_PORT_UP : IONIC_PORT_DOWN;
	info->status.link_down_count = le16_make(port->link_down_count);
	info->status.fec_type = port->config.fec_type;
}

/* All but the extra counters, which the driver has filled with ones, for "there are none". */
static int info_write_all(struct ionic_dev *dev)
{
	struct ionic_port_info info = {.status.id = le32_make(0)};

	info_fill_status(dev, &info);
	ionic_xcvr_fill(&dev->profile, dev->serial, &info.status.xcvr);
	for (size_t i = 0; i < ARRAY_SIZE(info.stats); i++)
		info.stats[i] = le64_make(dev->stats.port[i]);
	return guest_mem_write(dev->mem, dev->eth_port.info_addr, &info,
	                       offsetof(struct ionic_port_info, extra_stats));
}

int ionic_port_write_status(struct ionic_dev *dev)
{
	struct ionic_port_info info = {.status.id = le32_make(0)};
	int rc;

	if (!dev->eth_port.initialized)
		return 0;
	info_fill_status(dev, &info);
	rc = guest_mem_write(dev->mem, dev->eth_port.info_addr, &info,
	                     offsetof(struct ionic_port_info, status.xcvr));
	if (rc < 0)
		counter_inc(&ionic_port_info_lost);
	return rc;
}

/* ---- the link ---- */

bool ionic_link_up(const struct ionic_dev *dev)
{
	return dev->link_wanted && dev->eth_port.config.state == IONIC_PORT_UP;
}

void ionic_link_set(struct ionic_dev *dev, bool up)
{
	if (dev->link_wanted == up)
		return;
	dev->link_wanted = up;
	if (!up)
		dev->link_dropped = true;
	dev->link_pending = true;
	ionic_dev_schedule(dev);
}

static void link_publish(struct ionic_dev *dev, bool up, uint32_t speed)
{
	struct ionic_port *port = &dev->eth_port;

	if (port->link_up && !up)
		port->link_down_count++;
	port->link_up = up;
	port->link_speed = speed;
	dev->port.down = !up;
	ionic_lif_write_status(dev);
	ionic_port_write_status(dev);
	ionic_notifyq_link(dev);
}

void ionic_link_sync(struct ionic_dev *dev)
{
	struct ionic_port *port = &dev->eth_port;
	bool up = ionic_link_up(dev);
	uint32_t speed = up ? le32_get(port->config.speed) : 0;
	bool dropped = dev->link_dropped;

	dev->link_pending = false;
	dev->link_dropped = false;
	/* Down and up again since the last look: the driver shall see both. */
	if (dropped && up && port->link_up)
		link_publish(dev, false, 0);
	if (up != port->link_up || speed != port->link_speed)
		link_publish(dev, up, speed);
}

/* ---- commands ---- */

static bool config_valid(const struct ionic_dev *dev, const struct ionic_port_config *config)
{
	uint8_t pause = config->pause_type;

	return ionic_port_speed_valid(&dev->profile, le32_get(config->speed)) &&
	       le32_get(config->mtu) <= ionic_max_frame(dev) &&
	       (config->state == IONIC_PORT_DOWN || config->state == IONIC_PORT_UP) &&
	       config->an_enable <= 1 && config->fec_type <= IONIC_PORT_FEC_RS &&
	       (pause & ~(PAUSE_FLAGS | PAUSE_TYPE_MASK)) == 0 &&
	       (pause & PAUSE_TYPE_MASK) <= PAUSE_TYPE_LINK && config->loopback_mode == 0;
}

enum ionic_status ionic_cmd_port_init(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                      union ionic_comp *comp)
{
	struct ionic_port *port = &dev->eth_port;
	uint64_t addr = le64_get(cmd->port_init.info_addr);
	struct ionic_port_config config;

	(void)comp;
	memcpy(&config, dev->devcmd.data, sizeof(config));
	if (port->initialized)
		return ionic_refuse(&ionic_port_init_busy, IONIC_RC_EBUSY);
	if (!config_valid(dev, &config))
		return ionic_refuse(&ionic_port_init_config, IONIC_RC_EINVAL);
	if (!ionic_block_addr_valid(addr))
		return ionic_refuse(&ionic_port_info_addr, IONIC_RC_BAD_ADDR);
	port->initialized = true;
	port->info_addr = addr;
	port->config = config;
	if (info_write_all(dev) < 0) {
		ionic_port_clear(dev);
		return ionic_refuse(&ionic_port_info_addr, IONIC_RC_BAD_ADDR);
	}
	ionic_link_sync(dev);
	ionic_stats_start(dev);
	return IONIC_RC_SUCCESS;
}

enum ionic_status ionic_cmd_port_reset(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                       union ionic_comp *comp)
{
	(void)cmd, (void)comp;
	ionic_port_clear(dev);
	return IONIC_RC_SUCCESS;
}

/* Puts the value of an attribute into CONFIG. Returns false for attributes the port has not. */
static bool config_set(const union ionic_cmd *cmd, struct ionic_port_config *config)
{
	switch (cmd->port_setattr.attr) {
	case IONIC_PORT_ATTR_STATE:
		config->state = cmd->port_setattr.state;
		return true;
	case IONIC_PORT_ATTR_SPEED:
		config->speed = cmd->port_setattr.speed;
		return true;
	case IONIC_PORT_ATTR_MTU:
		config->mtu = cmd->port_setattr.mtu;
		return true;
	case IONIC_PORT_ATTR_AUTONEG:
		config->an_enable = cmd->port_setattr.an_enable;
		return true;
	case IONIC_PORT_ATTR_FEC:
		config->fec_type = cmd->port_setattr.fec_type;
		return true;
	case IONIC_PORT_ATTR_PAUSE:
		config->pause_type = cmd->port_setattr.pause_type;
		return true;
	case IONIC_PORT_ATTR_LOOPBACK: /* 0, none, is the only mode */
		config->loopback_mode = cmd->port_setattr.loopback_mode;
		return true;
	default:
		return false;
	}
}

enum ionic_status ionic_cmd_port_setattr(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                         union ionic_comp *comp)
{
	struct ionic_port_config config = dev->eth_port.config;

	(void)comp;
	if (cmd->port_setattr.attr > IONIC_PORT_ATTR_STATS_CTRL)
		return ionic_refuse(&ionic_port_setattr_invalid, IONIC_RC_EINVAL);
	if (!config_set(cmd, &config))
		return ionic_refuse(&ionic_port_setattr_unsupported, IONIC_RC_ENOSUPP);
	if (!config_valid(dev, &config))
		return ionic_refuse(&ionic_port_setattr_invalid, IONIC_RC_EINVAL);
	dev->eth_port.config = config;
	/* ethtool reads the block only: it has the value before the command completes (spec 3.6).
	 */
	ionic_port_write_status(dev);
	ionic_link_sync(dev);
	return IONIC_RC_SUCCESS;
}
