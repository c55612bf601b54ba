/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NIC profiles: the shape of the emulated NIC, merged from layers.
 *
 * A layer is a built-in profile or an INI file. Layers apply in order on top of the built-in
 * `compat`, key by key. The keys, their ranges and their texts stand in one table (profile.c).
 */
#ifndef ERNIC_SERVER_PROFILE_H
#define ERNIC_SERVER_PROFILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ionic/ionic.h"
#include "server/error.h"

/* Ranges that options share with keys. */
#define PROFILE_ETH_QUEUES_MIN        1
#define PROFILE_ETH_QUEUES_MAX        IONIC_ETH_QUEUES_MAX
#define PROFILE_STATS_INTERVAL_MS_MIN 10
#define PROFILE_STATS_INTERVAL_MS_MAX 60000

/* Bytes of a profile file, and of the names of all layers together. */
#define PROFILE_FILE_MAX  65536
#define PROFILE_CHAIN_MAX 768

struct nic_profile {
	struct ionic_profile values;   /* intr_vectors: 0 is "auto", until profile_resolve() */
	char chain[PROFILE_CHAIN_MAX]; /* names of the layers, for people: "compat + fast.ini" */
};

/* Makes the profile `compat`. */
void profile_init(struct nic_profile *profile);

/*
 * Applies the layer NAME: a file when it holds a '/' or ends in ".ini", else a built-in profile.
 * Returns 0, or a negative errno with the file, line and key in *ERROR, and changes nothing then.
 */
int profile_apply(struct nic_profile *profile, const char *name, struct error_text *error);

/* Applies SIZE bytes of INI text as profile_apply() does a file; NAME stands in messages. */
int profile_apply_text(struct nic_profile *profile, const char *name, const char *text, size_t size,
                       struct error_text *error);

/* Adds a word to the chain of layers. Returns 0 or -E2BIG. */
int profile_note_layer(struct nic_profile *profile, const char *name, struct error_text *error);

/* Checks the rules between keys, after the last layer. Returns 0 or -EINVAL. */
int profile_check(const struct nic_profile *profile, struct error_text *error);

/* The values for the device, "auto" replaced by its number. */
void profile_resolve(const struct nic_profile *profile, struct ionic_profile *values);

/* MSI-X vectors that give every queue and event queue its own: 1 + eth + rdma_eqs. */
uint32_t profile_full_vectors(const struct ionic_profile *values);

/* 64-bit FNV-1a over the lines "section.key=value\n" of all resolved values in table order: equal
 * for equal devices, whatever layers made them. */
uint64_t profile_hash(const struct nic_profile *profile);

/* Writes the profile as an INI file that loads back to the same values. The caller checks FILE for
 * errors. */
void profile_print(const struct nic_profile *profile, FILE *file);

/* ---- the tables, for help and manual ---- */

struct profile_choice {
	const char *name;
	uint32_t value;
};

enum profile_kind {
	PROFILE_NUMBER, /* min..max, or one of the choices by name */
	PROFILE_CHOICE, /* one of the choices by name */
	PROFILE_TEXT,   /* min..max printable characters */
};

struct profile_key {
	const char *section, *name;
	const char *compat; /* the value in the profile `compat`, as text */
	enum profile_kind kind;
	uint32_t min, max;
	const struct profile_choice *choices; /* ends with a NULL name; or NULL */
	size_t offset, size;                  /* of the field in struct ionic_profile */
	const char *help;
};

extern const struct profile_key profile_keys[];
extern const size_t profile_key_count;

struct profile_builtin {
	const char *name, *help;
	const char *text; /* INI text over compat */
};

extern const struct profile_builtin profile_builtins[];
extern const size_t profile_builtin_count;

/* Writes what KEY accepts into TEXT: "1 to 64", "auto, or 2 to 128", "copper, fiber, none". */
void profile_key_range(const struct profile_key *key, char *text, size_t size);

/* ---- between the files of the profile parser ---- */

/* Sets KEY from text. Returns 0, or -EINVAL with what is wrong, to stand behind "key: ". */
int profile_set(struct ionic_profile *values, const struct profile_key *key, const char *text,
                struct error_text *error);

#endif
