/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stats file: the report (report.h) as text, "name : value" a line under "[Section]" lines,
 * replaced as a whole on an interval.
 */
#ifndef ERNIC_SERVER_STATS_FILE_H
#define ERNIC_SERVER_STATS_FILE_H

#include <stdint.h>

#include "server/error.h"

struct server;
struct stats_file;

/*
 * Makes the file's writer; proves that the folder can be written to and that PATH is free or a
 * regular file, and writes nothing yet. Returns 0 or a negative errno with the remedy in *ERROR.
 */
int stats_file_create(const struct server *server, const char *path, struct stats_file **file,
                      struct error_text *error);

/* Writes the file now, and then every interval of the server's profile. Failures are counted. */
void stats_file_start(struct stats_file *file);

/* Writes the file once more when it was started, and ends. Accepts NULL. */
void stats_file_destroy(struct stats_file *file);

#endif
