/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a profile from INI text, strictly.
 *
 * The syntax is read by libinih, which is made to be lenient: it cuts long lines, drops what stands
 * behind ']' or behind " ;", joins indented lines to the one before, ends lines at NUL, and has
 * build-time settings that distributions choose. A profile must not get a silent wrong value from
 * any of these, so the lines pass a reader of ours first: it refuses what libinih would drop, takes
 * away indentation, and hides ';' and '#' inside a line behind stand-ins, so that every value is
 * taken as it was written, up to the end of its line. Comments have lines of their own.
 */
#include "server/profile.h"

#include <assert.h>
#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "server/text.h"

/* Control characters, which the reader refuses in the text and may therefore use. */
#define STAND_IN_SEMICOLON '\x1e'
#define STAND_IN_HASH      '\x1f'

#define WORD_MAX 200
#define KEYS_MAX 64

struct parser {
	struct ionic_profile values;
	const char *name; /* of the file or built-in profile */
	const char *next, *end;
	unsigned line;
	bool seen[KEYS_MAX];
	int failed; /* the first error ends the parse */
	struct error_text *error;
};

#define parser_fail(parser, format, ...)                                                           \
	((parser)->failed = error_set((parser)->error, -EINVAL, "%.300s:%u: " format,              \
	                              (parser)->name, (parser)->line, __VA_ARGS__))

/* ---- lines ---- */

static const char *section_at(size_t index, const void *arg)
{
	(void)arg;
	return index < profile_key_count ? profile_keys[index].section : NULL;
}

static bool section_known(const char *name, size_t len)
{
	for (size_t i = 0; i < profile_key_count; i++)
		if (strlen(profile_keys[i].section) == len &&
		    memcmp(profile_keys[i].section, name, len) == 0)
			return true;
	return false;
}

/* A section with no keys never reaches the handler, so its name is checked here. */
static void check_section(struct parser *parser, const char *line)
{
	const char *name = line + 1, *close = strchr(name, ']');
	char word[WORD_MAX];

	if (!close) {
		parser_fail(parser, "'%.64s': the ] is missing", line);
		return;
	}
	if (close[1] != '\0') {
		parser_fail(parser, "'%.64s': nothing may follow the ]", line);
		return;
	}
	if (section_known(name, (size_t)(close - name)))
		return;
	snprintf(word, sizeof(word), "%.*s", (int)(close - name), name);
	const char *near = text_nearest(word, section_at, NULL);

	parser_fail(parser,
	            "[%.64s]: unknown section; %s%s%ssections are identity, link, stats, "
	            "queues, offload",
	            word, near ? "did you mean [" : "", near ? near : "", near ? "]? " : "");
}

static bool check_characters(struct parser *parser, const char *line, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)line[i] < 0x20 && line[i] != '\t') {
			parser_fail(parser, "control character 0x%02x in column %zu; remove it",
			            (unsigned char)line[i], i + 1);
			return false;
		}
	return true;
}

/* Takes the next line out of the text: *LINE without indentation, end of line and spaces at it. */
static size_t take_line(struct parser *parser, const char **line)
{
	const char *start = parser->next, *newline, *stop;

	newline = memchr(start, '\n', (size_t)(parser->end - start));
	stop = newline ? newline : parser->end;
	parser->next = newline ? newline + 1 : stop;
	parser->line++;
	if (parser->line == 1 && stop - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
		start += 3; /* byte order mark */
	if (stop > start && stop[-1] == '\r')
		stop--;
	while (start < stop && (*start == ' ' || *start == '\t'))
		start++;
	while (stop > start && (stop[-1] == ' ' || stop[-1] == '\t'))
		stop--;
	*line = start;
	return (size_t)(stop - start);
}

static void hide_comment_signs(char *line)
{
	for (char *c = line; *c; c++) {
		if (*c == ';')
			*c = STAND_IN_SEMICOLON;
		else if (*c == '#')
			*c = STAND_IN_HASH;
	}
}

static void show_comment_signs(const char *hidden, char word[WORD_MAX])
{
	snprintf(word, WORD_MAX, "%s", hidden);
	for (char *c = word; *c; c++) {
		if (*c == STAND_IN_SEMICOLON)
			*c = ';';
		else if (*c == STAND_IN_HASH)
			*c = '#';
	}
}

/* libinih's reader: fills BUF with the next line, or returns NULL to end the parse. A comment is
 * handed over as an empty line, as its length and content do not matter. */
static char *read_line(char *buf, int size, void *stream)
{
	struct parser *parser = stream;
	const char *line;
	size_t len;

	if (parser->failed || parser->next == parser->end)
		return NULL;
	len = take_line(parser, &line);
	buf[0] = '\0';
	if (len == 0 || *line == ';' || *line == '#')
		return buf;
	if (!check_characters(parser, line, len))
		return NULL;
	if (len >= (size_t)size || len >= WORD_MAX) {
		parser_fail(parser, "the line has %zu bytes; no profile needs that many", len);
		return NULL;
	}
	memcpy(buf, line, len);
	buf[len] = '\0';
	if (*buf == '[')
		check_section(parser, buf);
	hide_comment_signs(buf);
	return parser->failed ? NULL : buf;
}

/* ---- keys ---- */

static const struct profile_key *find_key(const char *section, const char *name)
{
	for (size_t i = 0; i < profile_key_count; i++)
		if (strcmp(profile_keys[i].section, section) == 0 &&
		    strcmp(profile_keys[i].name, name) == 0)
			return &profile_keys[i];
	return NULL;
}

static const char *key_at(size_t index, const void *arg)
{
	(void)arg;
	return index < profile_key_count ? profile_keys[index].name : NULL;
}

static void refuse_key(struct parser *parser, const char *section, const char *name)
{
	const char *near = text_nearest(name, key_at, NULL), *home = NULL;

	if (*section == '\0') {
		parser_fail(parser, "%.64s: the key stands before any [section]", name);
		return;
	}
	for (size_t i = 0; near && i < profile_key_count; i++)
		if (profile_keys[i].name == near)
			home = profile_keys[i].section;
	parser_fail(parser, "%s.%.64s: unknown key; %s%s%s%s%s--print-profile shows all", section,
	            name, home ? "did you mean " : "", home ? home : "", home ? "." : "",
	            home ? near : "", home ? "? " : "");
}

/* libinih's handler: non-zero is success; parser->failed holds what is wrong. */
static int handle_value(void *user, const char *section, const char *name, const char *value)
{
	struct parser *parser = user;
	char key_name[WORD_MAX], text[WORD_MAX];
	const struct profile_key *key;
	struct error_text detail;

	if (parser->failed)
		return 0;
	show_comment_signs(name, key_name);
	show_comment_signs(value, text);
	key = find_key(section, key_name);
	if (!key) {
		refuse_key(parser, section, key_name);
		return 0;
	}
	if (parser->seen[key - profile_keys]) {
		parser_fail(parser, "%s.%s: the key stands here a second time; remove one", section,
		            key_name);
		return 0;
	}
	parser->seen[key - profile_keys] = true;
	if (profile_set(&parser->values, key, text, &detail)) {
		parser_fail(parser, "%s.%s: %.400s", section, key_name, detail.text);
		return 0;
	}
	return 1;
}

int profile_apply_text(struct nic_profile *profile, const char *name, const char *text, size_t size,
                       struct error_text *error)
{
	struct parser parser = {
	        .values = profile->values,
	        .name = name,
	        .next = text,
	        .end = text + size,
	        .error = error,
	};
	int bad_line;

	assert(profile_key_count <= KEYS_MAX);
	bad_line = ini_parse_stream(read_line, &parser, handle_value, &parser);
	if (!parser.failed && bad_line > 0) {
		parser.line = (unsigned)bad_line;
		parser_fail(&parser, "%s", "neither a [section] nor key = value nor a # comment");
	}
	if (!parser.failed && bad_line < 0)
		return error_set(error, -ENOMEM, "%.300s: out of memory", name);
	if (!parser.failed)
		profile->values = parser.values;
	return parser.failed;
}
