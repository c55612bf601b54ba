/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the program says about itself and exits. The caller checks the stream for errors. */
#ifndef ERNIC_SERVER_HELP_H
#define ERNIC_SERVER_HELP_H

#include <stdio.h>

#include "server/options.h"

/* The options, from their table, in lines of at most 80 columns. */
void help_print(FILE *file);

/* The vfio-user backend program's capabilities: one JSON object. */
void capabilities_print(FILE *file);

/* The fixed limits of the program, "name : value" a line. */
void limits_print(FILE *file);

/* One sentence on the option: its help with its choices or range, and its default. */
#define HELP_SUMMARY_MAX 256
const char *help_summary(const struct option_spec *spec, char text[HELP_SUMMARY_MAX]);

#endif
