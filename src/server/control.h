/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket: one JSON object a line in, one JSON object a line out.
 *
 *	{"cmd":"link","up":false}
 *	{"ok":true,"up":false}
 *	{"cmd":"lnk"}
 *	{"ok":false,"error":"lnk: unknown command","remedy":"did you mean link?"}
 *
 * control.c moves lines between sockets and commands; control_commands.c has the commands.
 */
#ifndef ERNIC_SERVER_CONTROL_H
#define ERNIC_SERVER_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "server/error.h"

struct server;
struct control;
struct json_object;

#define CONTROL_CLIENTS_MAX 16
#define CONTROL_LINE_MAX    65536 /* bytes of a command with its newline */

/* Listens at PATH, for the owner only. Returns 0 or a negative errno with the remedy in *ERROR. */
int control_create(struct server *server, const char *path, struct control **control,
                   struct error_text *error);

/* Drops all clients and removes the socket. Accepts NULL. */
void control_destroy(struct control *control);

/* Does the command in the SIZE bytes of LINE and returns the answer, which the caller puts. */
struct json_object *control_execute(struct server *server, const char *line, size_t size);

/* An answer that says no. */
struct json_object *control_refuse(const char *problem, const char *remedy);

/* Add to an answer, or to an object in it. */
void control_add_text(struct json_object *object, const char *name, const char *value);
void control_add_bool(struct json_object *object, const char *name, bool value);

/* The command `mesh` (control_mesh.c), as run_text below. */
struct json_object *control_mesh(struct server *server, const char *text,
                                 struct json_object *answer);

/* ---- the table, for help and manual ---- */

enum control_type { CONTROL_BOOL, CONTROL_CHOICE, CONTROL_TEXT };

struct control_argument {
	const char *name;
	enum control_type type;
	const char *const *choices;
	unsigned choice_count;
	const char *example; /* of a text */
};

struct control_command {
	const char *name;
	struct control_argument argument; /* name NULL: none */
	bool required;
	/* Does it and adds to ANSWER. VALUE: the bool or the index of the choice, -1 not given. */
	void (*run)(struct server *server, int value, struct json_object *answer);
	/* Instead, for a text (NULL: not given) or where the answer may be no: does it and adds to
	 * ANSWER; returns NULL, or an answer that says why not. */
	struct json_object *(*run_text)(struct server *server, const char *text,
	                                struct json_object *answer);
	const char *help;
};

extern const struct control_command control_commands[];
extern const size_t control_command_count;

#endif
