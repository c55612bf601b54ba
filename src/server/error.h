/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is wrong with what the user asked for, in one line: the thing, its value, the remedy.
 * Start-up only; a running server logs and counts.
 */
#ifndef ERNIC_SERVER_ERROR_H
#define ERNIC_SERVER_ERROR_H

#define ERROR_TEXT_MAX 1024

struct error_text {
	char text[ERROR_TEXT_MAX];
};

/* Formats the message, in which control characters become '?' so that it stays one line, and
 * returns CODE, a negative errno. */
int error_set(struct error_text *error, int code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#endif
