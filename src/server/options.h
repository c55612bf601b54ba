/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line. One table describes the options; the parser (options.c), --help (help.c), and
 * the manual page and the shell completion (generate.c) come from it.
 */
#ifndef ERNIC_SERVER_OPTIONS_H
#define ERNIC_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/error.h"

#define OPTIONS_LIST_MAX 16

struct option_list {
	const char *item[OPTIONS_LIST_MAX];
	unsigned count;
};

struct option_mac {
	bool given;
	uint8_t address[6];
};

#define OPTION_NOT_GIVEN UINT64_MAX /* a number without a default */

/* The values of all options. Strings are those of argv. */
struct options {
	const char *socket_path;
	uint64_t fd, socket_mode;
	const char *backend; /* a description of fabric.h */
	const char *tap;
	const char *fault; /* as net/fault.h reads it */
	const char *pcap_file;
	unsigned pcap_rdma; /* 0 off, 1 on */
	struct option_mac mac;
	struct option_list nic_profiles, gids;
	uint64_t mesh_wait; /* seconds */
	uint64_t eth_queues, stats_interval_ms, busy_poll_us;
	const char *stats_file, *control_path, *log_file;
	unsigned log_level; /* enum log_level */
	unsigned verbose;
	/* Do this and exit. */
	bool print_profile, print_capabilities, print_limits, version, help;
};

/*
 * Reads the command line. Returns 0, or a negative errno with the option, its value and the remedy
 * in *ERROR. --help, --version and --print-capabilities end the reading where they stand, and the
 * last one counts wherever it stands (vfio-user backend program conventions).
 */
int options_parse(int argc, char *const *argv, struct options *options, struct error_text *error);

/* ---- the table ---- */

enum option_type {
	OPTION_FLAG,   /* bool; no value */
	OPTION_COUNT,  /* unsigned; no value, counts */
	OPTION_TEXT,   /* const char *, of min..max bytes */
	OPTION_LIST,   /* struct option_list */
	OPTION_NUMBER, /* uint64_t, min..max, decimal */
	OPTION_MODE,   /* uint64_t, min..max, octal */
	OPTION_CHOICE, /* unsigned, index into choices */
	OPTION_SCHEME, /* const char *: one of the choices, and what it likes behind a colon */
	OPTION_MAC,    /* struct option_mac */
};

enum option_words { /* what a shell may offer as the value */
	            OPTION_WORDS_NONE,
	            OPTION_WORDS_FILE,
	            OPTION_WORDS_INTERFACE,
	            OPTION_WORDS_PROFILE,
};

struct option_spec {
	const char *group; /* heading in help */
	const char *name;
	const char *alias; /* a second name, not advertised in help */
	char letter;
	enum option_type type;
	bool ends;               /* nothing behind it is read */
	const char *placeholder; /* of the value, in help */
	const char *initial;     /* default, as text; NULL for none */
	uint64_t min, max;
	const char *const *choices;
	unsigned choice_count;
	size_t offset; /* of the field in struct options */
	enum option_words words;
	const char *help; /* one line */
	const char *man;  /* sentences that follow the line of help in the manual; or NULL */
};

extern const struct option_spec option_specs[];
extern const size_t option_spec_count;

static inline bool option_takes_value(const struct option_spec *spec)
{
	return spec->type != OPTION_FLAG && spec->type != OPTION_COUNT;
}

static inline bool option_repeats(const struct option_spec *spec)
{
	return spec->type == OPTION_LIST || spec->type == OPTION_COUNT;
}

#endif
