/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the description of a mesh to options:
 *	manager:[ADDR:]PORT[,OPTION=VALUE...]
 *	worker:HOST:PORT[,OPTION=VALUE...]
 * An IPv6 address stands in brackets.
 */
#include "fabric/mesh_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

enum { INTERVAL_MS = 2000, INTERVAL_MIN_MS = 50, INTERVAL_MAX_MS = 60000, SECRET_MIN = 16 };

struct reader {
	struct mesh_options *options;
	char *error;
	size_t size;
};

#define REFUSE(reader, ...) (snprintf((reader)->error, (reader)->size, __VA_ARGS__), -EINVAL)

/* A whole decimal number of LENGTH characters, LOW..HIGH. */
static bool number(const char *text, size_t length, unsigned long low, unsigned long high,
                   unsigned long *value)
{
	if (length == 0 || length > 9)
		return false;
	*value = 0;
	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		*value = *value * 10 + (unsigned long)(text[i] - '0');
	}
	return *value >= low && *value <= high;
}

static int copy_text(struct reader *reader, const char *name, const char *value, size_t length,
                     char *out)
{
	if (length == 0 || length >= MESH_TEXT_MAX)
		return REFUSE(reader, "%s=: give 1 to %d characters", name, MESH_TEXT_MAX - 1);
	memcpy(out, value, length);
	out[length] = '\0';
	return 0;
}

/* ---- the secret ---- */

static int use_secret(struct reader *reader, const char *path, char *text, ssize_t got)
{
	while (got > 0 && isspace((unsigned char)text[got - 1]))
		got--;
	if (got < SECRET_MIN)
		return REFUSE(reader, "secret=%s: holds %zd bytes; give at least %d", path, got,
		              SECRET_MIN);
	memcpy(reader->options->secret, text, (size_t)got);
	reader->options->secret_size = (size_t)got;
	return 0;
}

static int set_secret(struct reader *reader, const char *value, size_t length)
{
	char path[MESH_TEXT_MAX], text[MESH_SECRET_MAX];
	int error = copy_text(reader, "secret", value, length, path);
	struct stat info;

	if (error)
		return error;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &info) < 0) {
		error = REFUSE(reader, "secret=%s: cannot be read (%s); give a file that holds it",
		               path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return error;
	}
	ssize_t got = read(fd, text, sizeof(text));

	close(fd);
	if (info.st_mode & (S_IRGRP | S_IROTH))
		log_warn("mesh: the secret in %s can be read by others: chmod 600 it", path);
	return use_secret(reader, path, text, got);
}

/* ---- options ---- */

static int set_interval(struct reader *reader, const char *value, size_t length)
{
	unsigned long ms;

	if (!number(value, length, INTERVAL_MIN_MS, INTERVAL_MAX_MS, &ms))
		return REFUSE(reader, "interval=%.*s: give milliseconds from %d to %d", (int)length,
		              value, INTERVAL_MIN_MS, INTERVAL_MAX_MS);
	reader->options->interval_ms = (uint32_t)ms;
	return 0;
}

static int set_tls(struct reader *reader, const char *value, size_t length)
{
	return copy_text(reader, "tls", value, length, reader->options->tls_cert);
}

static int set_key(struct reader *reader, const char *value, size_t length)
{
	return copy_text(reader, "key", value, length, reader->options->tls_key);
}

static int set_ca(struct reader *reader, const char *value, size_t length)
{
	return copy_text(reader, "ca", value, length, reader->options->tls_ca);
}

static const struct {
	const char *name;
	int (*set)(struct reader *reader, const char *value, size_t length);
} settings[] = {
        {"interval", set_interval}, {"secret", set_secret}, {"tls", set_tls},
        {"key", set_key},           {"ca", set_ca},
};

static int set_option(struct reader *reader, const char *text, size_t length)
{
	const char *equals = memchr(text, '=', length);
	size_t name = equals ? (size_t)(equals - text) : length;

	for (size_t i = 0; equals && i < ARRAY_SIZE(settings); i++)
		if (strlen(settings[i].name) == name && strncmp(settings[i].name, text, name) == 0)
			return settings[i].set(reader, equals + 1, length - name - 1);
	return REFUSE(reader,
	              "unknown option '%.*s' (tcp has interval=MS, secret=FILE, tls=CERTIFICATE, "
	              "key=FILE, ca=FILE)",
	              (int)length, text);
}

static int set_options(struct reader *reader, const char *text)
{
	while (*text) {
		const char *end = strchrnul(++text, ',');
		int error = set_option(reader, text, (size_t)(end - text));

		if (error)
			return error;
		text = end;
	}
	return 0;
}

/* ---- the address ---- */

/* [HOST:]PORT, LENGTH characters. */
static int set_address(struct reader *reader, const char *text, size_t length)
{
	const char *colon = memrchr(text, ':', length);
	const char *port = colon ? colon + 1 : text;
	size_t host = colon ? (size_t)(colon - text) : 0;
	unsigned long value;

	if (!number(port, length - (size_t)(port - text), 1, 65535, &value))
		return REFUSE(reader, "'%.*s' has no port from 1 to 65535; give %s", (int)length,
		              text,
		              reader->options->manager ? "tcp:manager:[ADDR:]PORT"
		                                       : "tcp:worker:HOST:PORT");
	reader->options->port = (uint16_t)value;
	if (host >= 2 && text[0] == '[' && text[host - 1] == ']') {
		text++;
		host -= 2;
	}
	if (!colon && reader->options->manager)
		return 0;
	if (host == 0 || host >= MESH_TEXT_MAX)
		return REFUSE(reader, "the host is missing; give tcp:%s:HOST:PORT",
		              reader->options->manager ? "manager" : "worker");
	memcpy(reader->options->host, text, host);
	return 0;
}

static int check_tls(struct reader *reader)
{
	const struct mesh_options *options = reader->options;
	bool any = options->tls_cert[0] || options->tls_key[0] || options->tls_ca[0];

	if (any && !(options->tls_cert[0] && options->tls_key[0] && options->tls_ca[0]))
		return REFUSE(reader, "TLS needs all of tls=CERTIFICATE, key=FILE and ca=FILE");
	return 0;
}

int mesh_options_parse(const char *text, struct mesh_options *options, char *error, size_t size)
{
	struct reader reader = {options, error, size};
	const char *colon = strchrnul(text ? text : "", ':');
	size_t role = text ? (size_t)(colon - text) : 0;

	memset(options, 0, sizeof(*options));
	options->interval_ms = INTERVAL_MS;
	options->manager = role == 7 && strncmp(text, "manager", role) == 0;
	if (!options->manager && !(role == 6 && strncmp(text, "worker", role) == 0))
		return REFUSE(&reader, "give tcp:manager:[ADDR:]PORT or tcp:worker:HOST:PORT");
	text = *colon ? colon + 1 : colon;
	const char *comma = strchrnul(text, ',');
	int failed = set_address(&reader, text, (size_t)(comma - text));

	if (!failed)
		failed = set_options(&reader, comma);
	return failed ? failed : check_tls(&reader);
}
