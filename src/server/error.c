/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is wrong with what the user asked for, in one line. */
#include "server/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/text.h"

int error_set(struct error_text *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	text_make_line(error->text);
	return code;
}
