// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Profile files: any bytes either are refused with one line and change nothing, or give a profile
 * whose values are in range and that survives being printed and loaded.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refused(const struct nic_profile *profile, const struct error_text *error)
{
	struct nic_profile compat;

	profile_init(&compat);
	assert(memcmp(&compat, profile, sizeof(compat)) == 0);
	assert(strncmp(error->text, "fuzz.ini:", 9) == 0);
	for (const char *c = error->text; *c; c++)
		assert((unsigned char)*c >= 0x20);
}

/* Values that the parser of another moment would refuse must not get here. */
static void check_values(const struct ionic_profile *values)
{
	assert(values->asic_type <= IONIC_ASIC_SALINA);
	assert(strnlen(values->fw_version, sizeof(values->fw_version)) <= IONIC_FW_VERSION_MAX);
	assert(values->fw_version[0] > ' ' && !strchr(values->fw_version, '\\'));
	assert(values->speed_mbps >= 1000 && values->speed_mbps <= 400000);
	assert(values->xcvr <= IONIC_XCVR_FIBER);
	assert(values->mtu_max >= 1500 && values->mtu_max <= 9582);
	assert(values->stats_interval_ms >= 10 && values->stats_interval_ms <= 60000);
	assert(values->eth_queues >= 1 && values->eth_queues <= IONIC_ETH_QUEUES_MAX);
	assert(values->rdma_eqs >= 4 && values->rdma_eqs <= IONIC_RDMA_EQS_MAX);
	assert(values->intr_vectors >= 2 && values->intr_vectors <= IONIC_INTRS_MAX);
}

static void check_round_trip(const struct nic_profile *profile)
{
	struct nic_profile again;
	struct error_text error;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	assert(file);
	profile_print(profile, file);
	fclose(file);
	profile_init(&again);
	if (profile_apply_text(&again, "printed.ini", text, size, &error))
		abort();
	assert(memcmp(&again.values, &profile->values, sizeof(again.values)) == 0);
	assert(profile_hash(&again) == profile_hash(profile));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nic_profile profile;
	struct ionic_profile values;
	struct error_text error = {""};

	profile_init(&profile);
	if (profile_apply_text(&profile, "fuzz.ini", (const char *)data, size, &error)) {
		check_refused(&profile, &error);
		return 0;
	}
	profile_resolve(&profile, &values);
	check_values(&values);
	check_round_trip(&profile);
	(void)profile_check(&profile, &error);
	return 0;
}
