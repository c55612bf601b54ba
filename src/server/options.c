/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the command line by the table of options, strictly: what is not understood in full ends
 * the program before it has done anything.
 *
 * Accepted are --name VALUE, --name=VALUE, -n VALUE, -nVALUE and grouped letters without values.
 * A value that begins with - must be joined to its option, so that a forgotten value is noticed,
 * but a number, which is no option.
 */
#include "server/options.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "server/text.h"

#define NAME_MAX_BYTES 40
#define LINKS_MAX      40 /* as Linux follows */

struct cursor {
	int argc, next;
	char *const *argv;
	uint64_t seen; /* bit i: option_specs[i] was given */
	struct options *options;
	struct error_text *error;
};

static void *field_of(struct options *options, const struct option_spec *spec)
{
	return (char *)options + spec->offset;
}

/* ---- values ---- */

static int set_number(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	bool octal = spec->type == OPTION_MODE;
	uint64_t *number = field_of(cursor->options, spec), parsed;

	if (text_number(value, octal ? 8 : 10, &parsed) && parsed >= spec->min &&
	    parsed <= spec->max) {
		*number = parsed;
		return 0;
	}
	if (octal)
		return error_set(cursor->error, -EINVAL,
		                 "--%s %.100s: give octal permissions from 0 to 0777", spec->name,
		                 value);
	return error_set(cursor->error, -EINVAL, "--%s %.100s: give a number from %llu to %llu",
	                 spec->name, value, (unsigned long long)spec->min,
	                 (unsigned long long)spec->max);
}

static const char *choice_at(size_t index, const void *arg)
{
	const struct option_spec *spec = arg;

	return index < spec->choice_count ? spec->choices[index] : NULL;
}

/* The index of VALUE among the choices, or a negative errno. */
static int find_choice(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	const char *near = text_nearest(value, choice_at, spec);
	char all[200] = "";
	size_t used = 0;

	for (unsigned i = 0; i < spec->choice_count; i++) {
		if (strcmp(spec->choices[i], value) == 0)
			return (int)i;
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
		                         spec->choices[i]);
		assert(used < sizeof(all));
	}
	return error_set(cursor->error, -EINVAL, "--%s %.100s: %s%s%sgive one of %s", spec->name,
	                 value, near ? "did you mean " : "", near ? near : "", near ? "? " : "",
	                 all);
}

static int set_choice(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	int index = find_choice(cursor, spec, value);

	if (index < 0)
		return index;
	*(unsigned *)field_of(cursor->options, spec) = (unsigned)index;
	return 0;
}

static int set_scheme(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	char name[NAME_MAX_BYTES + 1];
	int index;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(value, ":"), value);
	index = find_choice(cursor, spec, name);
	if (index < 0)
		return index;
	*(const char **)field_of(cursor->options, spec) = value;
	return 0;
}

static int set_mac(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	struct option_mac *mac = field_of(cursor->options, spec);

	if (!text_mac(value, mac->address))
		return error_set(cursor->error, -EINVAL,
		                 "--%s %.100s: give six hexadecimal pairs, such as "
		                 "02:00:00:00:00:01",
		                 spec->name, value);
	if (!text_mac_usable(mac->address))
		return error_set(cursor->error, -EINVAL,
		                 "--%s %.100s: the address is %s; give a unicast address, such as "
		                 "02:00:00:00:00:01",
		                 spec->name, value, mac->address[0] & 1 ? "multicast" : "zero");
	mac->given = true;
	return 0;
}

static int check_length(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	size_t len = strlen(value);

	if (len < spec->min)
		return error_set(cursor->error, -EINVAL, "--%s '': the value is empty; give %s",
		                 spec->name, spec->placeholder);
	if (len > spec->max)
		return error_set(cursor->error, -ENAMETOOLONG,
		                 "--%s %.100s...: %zu bytes are too many; give at most %llu",
		                 spec->name, value, len, (unsigned long long)spec->max);
	return 0;
}

static int set_text(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	*(const char **)field_of(cursor->options, spec) = value;
	return check_length(cursor, spec, value);
}

static int add_to_list(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	struct option_list *list = field_of(cursor->options, spec);

	if (list->count == OPTIONS_LIST_MAX)
		return error_set(cursor->error, -E2BIG, "--%s %.100s: give it at most %d times",
		                 spec->name, value, OPTIONS_LIST_MAX);
	list->item[list->count++] = value;
	return check_length(cursor, spec, value);
}

static int set_flag(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	(void)value;
	*(bool *)field_of(cursor->options, spec) = true;
	return 0;
}

static int count_flag(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	(void)value;
	++*(unsigned *)field_of(cursor->options, spec);
	return 0;
}

static int set_value(struct cursor *cursor, const struct option_spec *spec, const char *value)
{
	static int (*const setters[])(struct cursor *, const struct option_spec *, const char *) = {
	        [OPTION_FLAG] = set_flag,     [OPTION_COUNT] = count_flag,
	        [OPTION_TEXT] = set_text,     [OPTION_LIST] = add_to_list,
	        [OPTION_NUMBER] = set_number, [OPTION_MODE] = set_number,
	        [OPTION_CHOICE] = set_choice, [OPTION_SCHEME] = set_scheme,
	        [OPTION_MAC] = set_mac,
	};

	return setters[spec->type](cursor, spec, value);
}

static void set_defaults(struct cursor *cursor)
{
	memset(cursor->options, 0, sizeof(*cursor->options));
	for (const struct option_spec *spec = option_specs; spec < option_specs + option_spec_count;
	     spec++) {
		if (spec->type == OPTION_NUMBER)
			*(uint64_t *)field_of(cursor->options, spec) = OPTION_NOT_GIVEN;
		if (spec->initial) {
			int failed = set_value(cursor, spec, spec->initial);

			assert(failed == 0);
			(void)failed;
		}
	}
}

/* ---- words ---- */

static bool is_name(const char *candidate, const char *name, size_t len)
{
	return candidate && strlen(candidate) == len && memcmp(candidate, name, len) == 0;
}

static const struct option_spec *find_name(const char *name, size_t len)
{
	for (size_t i = 0; i < option_spec_count; i++)
		if (is_name(option_specs[i].name, name, len) ||
		    is_name(option_specs[i].alias, name, len))
			return &option_specs[i];
	return NULL;
}

static const struct option_spec *find_letter(char letter)
{
	for (size_t i = 0; i < option_spec_count; i++)
		if (option_specs[i].letter == letter)
			return &option_specs[i];
	return NULL;
}

static const char *name_at(size_t index, const void *arg)
{
	(void)arg;
	return index < option_spec_count ? option_specs[index].name : NULL;
}

static int refuse_name(struct cursor *cursor, const char *name, size_t len)
{
	char word[NAME_MAX_BYTES + 1];
	const char *near;

	snprintf(word, sizeof(word), "%.*s", (int)(len > NAME_MAX_BYTES ? NAME_MAX_BYTES : len),
	         name);
	near = text_nearest(word, name_at, NULL);
	return error_set(cursor->error, -EINVAL, "--%s: unknown option; %s%s%s", word,
	                 near ? "did you mean --" : "see --help", near ? near : "",
	                 near ? "? (--help shows all)" : "");
}

/* Whether WORD may stand for a forgotten value's successor. */
static bool looks_like_option(const char *word)
{
	return word[0] == '-' && !(word[1] >= '0' && word[1] <= '9');
}

/* Takes the option SPEC with its value, which is JOINED to it, or the next word. */
static int take_option(struct cursor *cursor, const struct option_spec *spec, const char *joined)
{
	uint64_t bit = 1ull << (spec - option_specs);
	const char *value = joined;

	if (joined && !option_takes_value(spec))
		return error_set(cursor->error, -EINVAL,
		                 "--%s=%.100s: the option takes no value; remove it", spec->name,
		                 joined);
	if (!joined && option_takes_value(spec)) {
		if (cursor->next == cursor->argc || looks_like_option(cursor->argv[cursor->next]))
			return error_set(cursor->error, -EINVAL,
			                 "--%s: the value is missing; give --%s %s", spec->name,
			                 spec->name, spec->placeholder);
		value = cursor->argv[cursor->next++];
	}
	if (cursor->seen & bit && !option_repeats(spec))
		return error_set(cursor->error, -EINVAL, "--%s%s%.100s: given twice; give it once",
		                 spec->name, value ? " " : "", value ? value : "");
	cursor->seen |= bit;
	return set_value(cursor, spec, value);
}

/* Takes --name or --name=VALUE. Returns 1 when nothing behind it is to be read. */
static int take_long(struct cursor *cursor, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct option_spec *spec = find_name(word, len);
	int failed;

	if (!spec)
		return refuse_name(cursor, word, len);
	failed = take_option(cursor, spec, equals ? equals + 1 : NULL);
	return failed ? failed : spec->ends;
}

/* Takes -a, -ab or -aVALUE, as take_long(). */
static int take_letters(struct cursor *cursor, const char *letters)
{
	for (; *letters; letters++) {
		const struct option_spec *spec = find_letter(*letters);
		const char *joined = letters[1] ? letters + 1 : NULL;
		int failed;

		if (!spec)
			return error_set(cursor->error, -EINVAL, "-%c: unknown option; see --help",
			                 *letters);
		failed = take_option(cursor, spec, option_takes_value(spec) ? joined : NULL);
		if (failed || spec->ends)
			return failed ? failed : 1;
		if (option_takes_value(spec))
			return 0;
	}
	return 0;
}

static int take_word(struct cursor *cursor)
{
	const char *word = cursor->argv[cursor->next++];

	if (word[0] == '-' && word[1] == '-' && word[2])
		return take_long(cursor, word + 2);
	if (word[0] == '-' && word[1] && word[1] != '-')
		return take_letters(cursor, word + 1);
	return error_set(cursor->error, -EINVAL,
	                 "'%.100s': the program takes options only; remove it or name its option",
	                 word);
}

/* ---- the whole ---- */

static bool prints_and_exits(const struct options *options)
{
	return options->print_profile || options->print_limits;
}

/* The folder of PATH, as PATH names it. */
static void folder_of(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int len = slash ? (int)(slash - path) + 1 : 1;

	snprintf(folder, PATH_MAX, "%.*s", len, slash ? path : ".");
}

static bool same_inode(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

/* What opening PATH would make: PATH, or what is at the end of links to what is not there yet. */
static void follow_links(const char *path, char place[PATH_MAX])
{
	char target[PATH_MAX], folder[PATH_MAX];

	snprintf(place, PATH_MAX, "%s", path);
	for (int i = 0; i < LINKS_MAX; i++) {
		ssize_t size = readlink(place, target, sizeof(target) - 1);

		if (size < 0)
			return;
		target[size] = '\0';
		folder_of(place, folder);
		if (target[0] == '/')
			snprintf(place, PATH_MAX, "%s", target);
		else if (snprintf(place, PATH_MAX, "%s/%s", folder, target) >= PATH_MAX)
			return;
	}
}

/* Whether two paths lead to one file, which need not be there yet. */
static bool same_place(const char *a, const char *b)
{
	char place_a[PATH_MAX], place_b[PATH_MAX], folder_a[PATH_MAX], folder_b[PATH_MAX];

	if (same_inode(a, b))
		return true;
	follow_links(a, place_a);
	follow_links(b, place_b);
	const char *slash_a = strrchr(place_a, '/'), *slash_b = strrchr(place_b, '/');

	if (strcmp(slash_a ? slash_a + 1 : place_a, slash_b ? slash_b + 1 : place_b) != 0)
		return false;
	folder_of(place_a, folder_a);
	folder_of(place_b, folder_b);
	return same_inode(folder_a, folder_b);
}

/* A device such as /dev/null takes what any number of writers give it. */
static bool is_device(const char *path)
{
	struct stat of_path;

	return stat(path, &of_path) == 0 && S_ISCHR(of_path.st_mode);
}

/* Each file that the program makes has a place of its own: the later one would end the other. */
static int check_places(const struct options *options, struct error_text *error)
{
	const struct {
		const char *name, *path;
	} made[] = {{"socket", options->socket_path},
	            {"control", options->control_path},
	            {"stats-file", options->stats_file},
	            {"log-file", options->log_file},
	            {"pcap", options->pcap_file}};

	for (size_t i = 1; i < ARRAY_SIZE(made); i++)
		for (size_t j = 0; j < i; j++)
			if (made[i].path && made[j].path &&
			    same_place(made[i].path, made[j].path) && !is_device(made[i].path))
				return error_set(error, -EINVAL,
				                 "--%s %.300s: is the --%s path too; give another",
				                 made[i].name, made[i].path, made[j].name);
	return 0;
}

/* What options ask of each other. */
static int check_together(const struct options *options, uint64_t mode_given,
                          struct error_text *error)
{
	bool fd = options->fd != OPTION_NOT_GIVEN;

	if (fd && options->socket_path)
		return error_set(error, -EINVAL,
		                 "--fd %llu: excludes --socket %s; give one of them",
		                 (unsigned long long)options->fd, options->socket_path);
	if (fd && mode_given)
		return error_set(
		        error, -EINVAL,
		        "--socket-mode %llo: an inherited --fd has its permissions already; "
		        "remove it",
		        (unsigned long long)options->socket_mode);
	bool mesh = strncmp(options->backend, "tcp", 3) == 0;

	if (options->gids.count > 0 && !mesh)
		return error_set(
		        error, -EINVAL,
		        "--gid %s: is for a mesh; give --backend tcp:... too, or remove it",
		        options->gids.item[0]);
	if (options->mesh_wait != OPTION_NOT_GIVEN &&
	    strncmp(options->backend, "tcp:worker", 10) != 0)
		return error_set(
		        error, -EINVAL,
		        "--mesh-wait %llu: is for --backend tcp:worker:HOST:PORT; remove it",
		        (unsigned long long)options->mesh_wait);
	if (!fd && !options->socket_path && !prints_and_exits(options))
		return error_set(error, -EINVAL,
		                 "--socket: missing; give --socket PATH (or --fd N) for QEMU to "
		                 "connect to (see --help)");
	return check_places(options, error);
}

static void apply_verbose(struct options *options)
{
	unsigned level = options->verbose > 1 ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;

	if (options->verbose > 0 && options->log_level < level)
		options->log_level = level;
}

int options_parse(int argc, char *const *argv, struct options *options, struct error_text *error)
{
	struct cursor cursor = {
	        .argc = argc, .argv = argv, .next = 1, .options = options, .error = error};
	uint64_t mode_bit = 1ull << (find_name("socket-mode", 11) - option_specs);

	assert(option_spec_count <= 64);
	set_defaults(&cursor);
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--print-capabilities") == 0) {
			options->print_capabilities = true;
			return 0;
		}
	while (cursor.next < argc) {
		int failed = take_word(&cursor);

		if (failed)
			return failed < 0 ? failed : 0;
	}
	apply_verbose(options);
	return check_together(options, cursor.seen & mode_bit, error);
}
