/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of the firmware that the device pretends to run (spec ionic-ethernet 2.6, 12.3).
 *
 * A driver learns of a restart by fw_status alone and then frees its memory without a word. So all
 * state is dropped first, and the new status shows afterwards.
 */
#include "ionic_internal.h"

#define HEARTBEAT_PERIOD_NS 500000000 /* drivers look once a second or less often */

/* Moves by itself, without a timer. Never 0, which would mean "no heartbeat here". */
uint32_t ionic_fw_heartbeat(const struct ionic_dev *dev)
{
	if (dev->fw_stalled)
		return dev->fw_heartbeat;
	return (uint32_t)(loop_now(dev->loop) / HEARTBEAT_PERIOD_NS % INT32_MAX) + 1;
}

static void devcmd_drop(struct ionic_dev *dev)
{
	dev->devcmd_pending = false;
	ionic_dev_clear(dev);
}

static void fw_stop(struct ionic_dev *dev)
{
	devcmd_drop(dev);
	dev->fw_status &= (uint8_t)~IONIC_FW_STATUS_RUNNING;
	log_info("ionic: firmware stopped");
}

static void fw_start(struct ionic_dev *dev)
{
	uint8_t generation = dev->fw_status & IONIC_FW_GENERATION_MASK;

	generation = (uint8_t)(generation + IONIC_FW_GENERATION_STEP);
	dev->fw_status = generation | IONIC_FW_STATUS_RUNNING;
	log_info("ionic: firmware running, generation %u", generation / IONIC_FW_GENERATION_STEP);
}

static void fw_restart(struct ionic_dev *dev)
{
	devcmd_drop(dev);
	fw_start(dev);
}

void ionic_fw_reset_event_run(struct ionic_dev *dev)
{
	dev->fw_reset_pending = false;
	ionic_notifyq_reset_event(dev);
	/* The driver stays down until the generation changes (spec 12.3). */
	fw_restart(dev);
}

void ionic_fw_action(struct ionic_dev *dev, enum ionic_fw_action action)
{
	switch (action) {
	case IONIC_FW_STOP:
		if (ionic_fw_running(dev))
			fw_stop(dev);
		break;
	case IONIC_FW_START:
		if (!ionic_fw_running(dev))
			fw_start(dev);
		break;
	case IONIC_FW_RESTART:
		fw_restart(dev);
		break;
	case IONIC_FW_RESET_EVENT:
		if (!ionic_fw_running(dev))
			break;
		dev->fw_reset_pending = true;
		ionic_dev_schedule(dev);
		break;
	case IONIC_FW_STALL:
		dev->fw_heartbeat = ionic_fw_heartbeat(dev);
		dev->fw_stalled = true;
		break;
	case IONIC_FW_UNSTALL:
		dev->fw_stalled = false;
		break;
	}
}
