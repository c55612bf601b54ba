/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rocm-ernic: reads the command line and the profile, then prints what was asked for or serves. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/help.h"
#include "server/options.h"
#include "server/profile.h"
#include "server/server.h"

static int fail(const struct error_text *error)
{
	fprintf(stderr, "rocm-ernic: %s\n", error->text);
	return EXIT_FAILURE;
}

/* A descriptor 0, 1 or 2 that the caller closed would be given to a socket, and then be written to
 * by what means stderr. */
static void keep_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static void print_version(FILE *file)
{
	fprintf(file, "rocm-ernic %s\n", ERNIC_VERSION);
}

/* Prints and reports a full disk or a closed pipe like any other failure. */
static int print(void (*write)(FILE *file))
{
	struct error_text error;

	write(stdout);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	error_set(&error, -EIO, "standard output cannot be written to; give it another place");
	return fail(&error);
}

/* The merged profile, for print_profile(), which print() calls without arguments. */
static struct nic_profile profile;

static void print_profile(FILE *file)
{
	profile_print(&profile, file);
}

/* Merges the layers, and the options that stand above them. */
static int merge_profile(const struct options *options, struct error_text *error)
{
	char layer[64];
	int failed = 0;

	profile_init(&profile);
	for (unsigned i = 0; i < options->nic_profiles.count && !failed; i++)
		failed = profile_apply(&profile, options->nic_profiles.item[i], error);
	if (!failed && options->eth_queues != OPTION_NOT_GIVEN) {
		profile.values.eth_queues = (uint32_t)options->eth_queues;
		snprintf(layer, sizeof(layer), "--eth-queues %u", profile.values.eth_queues);
		failed = profile_note_layer(&profile, layer, error);
	}
	if (!failed && options->stats_interval_ms != OPTION_NOT_GIVEN) {
		profile.values.stats_interval_ms = (uint32_t)options->stats_interval_ms;
		snprintf(layer, sizeof(layer), "--stats-interval-ms %u",
		         profile.values.stats_interval_ms);
		failed = profile_note_layer(&profile, layer, error);
	}
	return failed ? failed : profile_check(&profile, error);
}

int main(int argc, char **argv)
{
	struct options options;
	struct error_text error;

	keep_standard_descriptors();
	if (options_parse(argc, argv, &options, &error))
		return fail(&error);
	if (options.print_capabilities)
		return print(capabilities_print);
	if (options.help)
		return print(help_print);
	if (options.version)
		return print(print_version);
	if (options.print_limits)
		return print(limits_print);
	if (merge_profile(&options, &error))
		return fail(&error);
	if (options.print_profile)
		return print(print_profile);
	return server_run(&options, &profile, &error) ? fail(&error) : EXIT_SUCCESS;
}
