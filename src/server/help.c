/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the program says about itself and exits. */
#include "server/help.h"

#include <assert.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "net/net.h"
#include "server/control.h"
#include "server/profile.h"

#define HELP_COLUMN 28
#define HELP_WIDTH  80

const char *help_summary(const struct option_spec *spec, char text[HELP_SUMMARY_MAX])
{
	size_t used = (size_t)snprintf(text, HELP_SUMMARY_MAX, "%s", spec->help);

	for (unsigned i = 0; i < spec->choice_count; i++)
		used += (size_t)snprintf(text + used, HELP_SUMMARY_MAX - used, "%s%s",
		                         i ? ", " : ": ", spec->choices[i]);
	if (spec->type == OPTION_NUMBER)
		used += (size_t)snprintf(text + used, HELP_SUMMARY_MAX - used,
		                         " (%" PRIu64 " to %" PRIu64 "%s", spec->min, spec->max,
		                         spec->initial ? "" : ")");
	if (spec->initial)
		used += (size_t)snprintf(text + used, HELP_SUMMARY_MAX - used, "%sdefault %s)",
		                         spec->type == OPTION_NUMBER ? ", " : " (", spec->initial);
	assert(used < HELP_SUMMARY_MAX);
	return text;
}

/* Prints words at HELP_COLUMN, breaking lines at HELP_WIDTH. */
static void print_words(FILE *file, const char *text)
{
	int at = HELP_COLUMN;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (at + 1 + len > HELP_WIDTH)
			at = fprintf(file, "\n%*s", HELP_COLUMN, "") - 1;
		at += fprintf(file, " %.*s", len, text);
		text += len;
		text += strspn(text, " ");
	}
	fprintf(file, "\n");
}

static void print_option(FILE *file, const struct option_spec *spec)
{
	char left[64], summary[HELP_SUMMARY_MAX], letter[] = "-x,";

	letter[1] = spec->letter;
	snprintf(left, sizeof(left), "  %-3s --%s %s", spec->letter ? letter : "", spec->name,
	         spec->placeholder ? spec->placeholder : "");
	if (fprintf(file, "%-*s", HELP_COLUMN, left) > HELP_COLUMN)
		fprintf(file, "\n%*s", HELP_COLUMN, "");
	print_words(file, help_summary(spec, summary));
}

void help_print(FILE *file)
{
	const char *group = "";

	fprintf(file,
	        "Usage: rocm-ernic --socket PATH [OPTION]...\n"
	        "\n"
	        "Gives one virtual machine one RDMA network card that exists only in software:\n"
	        "an AMD Pensando ionic NIC, over the vfio-user protocol, for QEMU >= 10.1.\n");
	for (size_t i = 0; i < option_spec_count; i++) {
		if (strcmp(group, option_specs[i].group) != 0)
			fprintf(file, "\n%s:\n", option_specs[i].group);
		group = option_specs[i].group;
		print_option(file, &option_specs[i]);
	}
	fprintf(file, "\n"
	              "Then, in QEMU (guest memory must be shared):\n"
	              "  -device '{\"driver\":\"vfio-user-pci\",\n"
	              "            \"socket\":{\"type\":\"unix\",\"path\":\"PATH\"}}'\n"
	              "\n"
	              "The manual: man rocm-ernic\n");
}

void capabilities_print(FILE *file)
{
	static const char *const features[] = {"socket-path", "fd", "control"};
	struct json_object *root = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		json_object_array_add(list, json_object_new_string(features[i]));
	json_object_object_add(root, "type", json_object_new_string("net"));
	json_object_object_add(root, "features", list);
	json_object_object_add(root, "version", json_object_new_string(ERNIC_VERSION));
	fprintf(file, "%s\n",
	        json_object_to_json_string_ext(root,
	                                       JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED));
	json_object_put(root);
}

void limits_print(FILE *file)
{
	static const struct {
		const char *name;
		unsigned long value;
	} limits[] = {
	        {"Ethernet queue pairs", IONIC_ETH_QUEUES_MAX},
	        {"RDMA event queues", IONIC_RDMA_EQS_MAX},
	        {"RDMA queue pairs", IONIC_RDMA_QPS},
	        {"RDMA completion queues", IONIC_RDMA_CQS / 2},
	        {"RDMA memory regions and windows", IONIC_RDMA_MRS},
	        {"RDMA address handles", IONIC_RDMA_AHS - IONIC_RDMA_QPS},
	        {"interrupt vectors", IONIC_INTRS_MAX},
	        {"bytes of a frame", NET_MAX_FRAME},
	        {"pieces of a frame", NET_MAX_IOV},
	        {"layers of a NIC profile", OPTIONS_LIST_MAX},
	        {"bytes of a profile file", PROFILE_FILE_MAX},
	        {"clients of the control socket", CONTROL_CLIENTS_MAX},
	        {"bytes of a control command", CONTROL_LINE_MAX},
	        {"lines a minute from one place that a guest makes log", LOG_GUEST_PER_MINUTE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		fprintf(file, "%s : %lu\n", limits[i].name, limits[i].value);
}
