/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of the control socket, by a table. */
#include "server/control.h"

#include <assert.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/log.h"
#include "net/fault.h"
#include "server/report.h"
#include "server/server.h"

COUNTER(server_control_commands, "commands done for clients of the control socket");
COUNTER(server_control_refused, "lines of the control socket that were refused");

/* Objects in objects that a command may have: none; one more is read to say so. */
#define JSON_DEPTH_MAX 4

/* ---- answers ---- */

void control_add_text(struct json_object *object, const char *name, const char *value)
{
	json_object_object_add(object, name, json_object_new_string(value));
}

void control_add_bool(struct json_object *object, const char *name, bool value)
{
	json_object_object_add(object, name, json_object_new_boolean(value));
}

struct json_object *control_refuse(const char *problem, const char *remedy)
{
	struct json_object *answer = json_object_new_object();

	counter_inc(&server_control_refused);
	control_add_bool(answer, "ok", false);
	control_add_text(answer, "error", problem);
	control_add_text(answer, "remedy", remedy);
	return answer;
}

/* The report as JSON: sections are objects in ROOT, values stand in SECTION. */
struct json_sink {
	struct report_sink sink;
	struct json_object *root, *section;
};

static void json_section(struct report_sink *sink, const char *name)
{
	struct json_sink *json = container_of(sink, struct json_sink, sink);

	json->section = json_object_new_object();
	json_object_object_add(json->root, name, json->section);
}

static void json_text(struct report_sink *sink, const char *name, const char *value)
{
	control_add_text(container_of(sink, struct json_sink, sink)->section, name, value);
}

static void json_number(struct report_sink *sink, const char *name, uint64_t value)
{
	json_object_object_add(container_of(sink, struct json_sink, sink)->section, name,
	                       json_object_new_uint64(value));
}

#define JSON_SINK(object)                                                                          \
	{                                                                                          \
		.sink = {json_section, json_text, json_number}, .root = (object),                  \
		.section = (object)                                                                \
	}

/* ---- commands ---- */

static void run_version(struct server *server, int value, struct json_object *answer)
{
	(void)server;
	(void)value;
	control_add_text(answer, "program", "rocm-ernic");
	control_add_text(answer, "version", ERNIC_VERSION);
}

static void run_status(struct server *server, int value, struct json_object *answer)
{
	struct json_sink json = JSON_SINK(answer);

	(void)value;
	report_instance(server, &json.sink);
	control_add_bool(answer, "link_up", ionic_link_up(server->device));
}

static void run_stats(struct server *server, int value, struct json_object *answer)
{
	struct json_object *stats = json_object_new_object();
	struct json_sink json = JSON_SINK(stats);

	(void)value;
	report_all(server, &json.sink);
	json_object_object_add(answer, "stats", stats);
}

static void run_link(struct server *server, int value, struct json_object *answer)
{
	if (value >= 0) {
		log_info("control: link %s", value ? "up" : "down");
		ionic_link_set(server->device, value != 0);
	}
	control_add_bool(answer, "up", ionic_link_up(server->device));
}

static const char *const fw_actions[] = {
        [IONIC_FW_STOP] = "stop",       [IONIC_FW_START] = "start",
        [IONIC_FW_RESTART] = "restart", [IONIC_FW_RESET_EVENT] = "reset-event",
        [IONIC_FW_STALL] = "stall",     [IONIC_FW_UNSTALL] = "unstall",
};
static_assert(ARRAY_SIZE(fw_actions) == IONIC_FW_UNSTALL + 1, "every action has a name");

static void run_fw(struct server *server, int value, struct json_object *answer)
{
	log_info("control: firmware %s", fw_actions[value]);
	ionic_fw_action(server->device, (enum ionic_fw_action)value);
	control_add_text(answer, "action", fw_actions[value]);
}

static void run_log(struct server *server, int value, struct json_object *answer)
{
	(void)server;
	if (value >= 0)
		log_set_level((enum log_level)value);
	control_add_text(answer, "level", log_level_names[log_get_level()]);
}

static struct json_object *run_fault(struct server *server, const char *text,
                                     struct json_object *answer)
{
	struct net_fault_config config;
	const struct net_fault_config *current;
	char reason[200];

	if (text) {
		if (net_fault_parse(text, &config, reason, sizeof(reason)))
			return control_refuse("fault: \"set\" has a value it may not have", reason);
		if (net_wire_set_faults(server->wire, server->loop, &config))
			return control_refuse("fault: out of memory", "try again");
		log_info("control: fault %s", text);
	}
	current = net_wire_faults(server->wire);
	snprintf(reason, sizeof(reason), "off");
	if (current)
		net_fault_format(current, reason, sizeof(reason));
	control_add_text(answer, "faults", reason);
	return NULL;
}

static struct json_object *run_capture(struct server *server, const char *text,
                                       struct json_object *answer)
{
	char problem[160];
	bool begins = text && strcmp(text, "off") != 0;

	if (begins && server_captures(server))
		return control_refuse("capture: one is under way",
		                      "end it first, with the file \"off\"");
	int failed = text ? server_capture(server, begins ? text : NULL) : 0;

	if (failed && server_unread_pipe(text, failed)) {
		snprintf(problem, sizeof(problem), "capture: nobody reads the pipe %.100s", text);
		return control_refuse(problem, "start its reader first, as cat or wireshark -k -i");
	}
	if (failed) {
		snprintf(problem, sizeof(problem), "capture: %.100s cannot be written (%s)", text,
		         strerror(-failed));
		return control_refuse(problem,
		                      "give a path in a folder that the server can write to");
	}
	if (text)
		log_info("control: capture %s", text);
	control_add_bool(answer, "capturing", server_captures(server));
	return NULL;
}

static void run_help(struct server *server, int value, struct json_object *answer);

#define CHOICES(list) CONTROL_CHOICE, (list), ARRAY_SIZE(list), NULL

const struct control_command control_commands[] = {
        {"version", .run = run_version, .help = "name and version of the program"},
        {"status", .run = run_status,
         .help = "what this server is: the section Instance, and the link"},
        {"stats", .run = run_stats, .help = "all sections of the stats file"},
        {"link",
         {"up", CONTROL_BOOL, NULL, 0, NULL},
         .run = run_link,
         .help = "take the link up or down; without `up`: tell which"},
        {"fw",
         {"action", CHOICES(fw_actions)},
         .required = true,
         .run = run_fw,
         .help = "stop, start, restart or stall the firmware, as the guest's driver sees it"},
        {"fault",
         {"set", CONTROL_TEXT, NULL, 0, "loss=1%,delay=2ms"},
         .run_text = run_fault,
         .help = "change what the wire does to frames, as --fault; \"off\": nothing; without "
                 "`set`: tell what it does"},
        {"capture",
         {"file", CONTROL_TEXT, NULL, 0, "/tmp/nic.pcapng"},
         .run_text = run_capture,
         .help = "begin a capture, as --pcap; \"off\": end it; without `file`: tell whether one "
                 "is under way"},
        {"mesh", .run_text = control_mesh,
         .help = "the mesh as this node knows it: nodes, GIDs, connections"},
        {"log",
         {"level", CHOICES(log_level_names)},
         .run = run_log,
         .help = "change what is logged; without `level`: tell what is"},
        {"help", .run = run_help, .help = "these commands"},
};
const size_t control_command_count = ARRAY_SIZE(control_commands);

static struct json_object *describe_argument(const struct control_argument *argument)
{
	struct json_object *values = json_object_new_array();

	if (argument->type == CONTROL_BOOL) {
		json_object_array_add(values, json_object_new_boolean(true));
		json_object_array_add(values, json_object_new_boolean(false));
	}
	if (argument->type == CONTROL_TEXT)
		json_object_array_add(values, json_object_new_string(argument->example));
	for (unsigned i = 0; i < argument->choice_count; i++)
		json_object_array_add(values, json_object_new_string(argument->choices[i]));
	return values;
}

static void run_help(struct server *server, int value, struct json_object *answer)
{
	struct json_object *all = json_object_new_array();

	(void)server;
	(void)value;
	for (size_t i = 0; i < control_command_count; i++) {
		const struct control_command *command = &control_commands[i];
		struct json_object *entry = json_object_new_object();

		control_add_text(entry, "cmd", command->name);
		if (command->argument.name)
			json_object_object_add(entry, command->argument.name,
			                       describe_argument(&command->argument));
		control_add_text(entry, "help", command->help);
		json_object_array_add(all, entry);
	}
	json_object_object_add(answer, "commands", all);
}

/* ---- reading ---- */

static const char *command_at(size_t index, const void *arg)
{
	(void)arg;
	return index < control_command_count ? control_commands[index].name : NULL;
}

static const struct control_command *find_command(const char *name)
{
	for (size_t i = 0; i < control_command_count; i++)
		if (strcmp(control_commands[i].name, name) == 0)
			return &control_commands[i];
	return NULL;
}

static struct json_object *refuse_command(const char *name)
{
	const char *near = text_nearest(name, command_at, NULL);
	char problem[160], remedy[160];

	snprintf(problem, sizeof(problem), "%.100s: unknown command", name);
	snprintf(remedy, sizeof(remedy), "%s%s%ssend {\"cmd\":\"help\"} for all",
	         near ? "did you mean " : "", near ? near : "", near ? "? " : "");
	return control_refuse(problem, remedy);
}

/* The argument's value as run() takes it, or -1 when the JSON value is none of what it may be. */
static int read_value(const struct control_argument *argument, struct json_object *value)
{
	if (argument->type == CONTROL_BOOL)
		return json_object_is_type(value, json_type_boolean)
		               ? json_object_get_boolean(value)
		               : -1;
	if (!json_object_is_type(value, json_type_string))
		return -1;
	if (argument->type == CONTROL_TEXT) /* without a NUL inside */
		return strlen(json_object_get_string(value)) ==
		                       (size_t)json_object_get_string_len(value)
		               ? 0
		               : -1;
	for (unsigned i = 0; i < argument->choice_count; i++)
		if (strcmp(argument->choices[i], json_object_get_string(value)) == 0)
			return (int)i;
	return -1;
}

static struct json_object *refuse_value(const struct control_command *command, const char *problem)
{
	struct json_object *values = describe_argument(&command->argument);
	char text[160], remedy[240];

	snprintf(text, sizeof(text), "%s: \"%s\" %s", command->name, command->argument.name,
	         problem);
	snprintf(remedy, sizeof(remedy), "give %s %s",
	         command->argument.type == CONTROL_TEXT ? "a text such as" : "one of",
	         json_object_to_json_string_ext(values, JSON_C_TO_STRING_PLAIN));
	json_object_put(values);
	return control_refuse(text, remedy);
}

static struct json_object *refuse_argument(const struct control_command *command, const char *name)
{
	char problem[160], remedy[160];

	snprintf(problem, sizeof(problem), "%s: \"%.100s\" is no argument of it", command->name,
	         name);
	if (command->argument.name)
		snprintf(remedy, sizeof(remedy), "its argument is \"%s\"", command->argument.name);
	else
		snprintf(remedy, sizeof(remedy), "send it without arguments");
	return control_refuse(problem, remedy);
}

/* Finds the argument's value in ROOT, in which nothing else may stand beside "cmd". */
static struct json_object *check_arguments(const struct control_command *command,
                                           struct json_object *root, int *value)
{
	const char *wanted = command->argument.name;

	*value = -1;
	json_object_object_foreach(root, name, member)
	{
		if (strcmp(name, "cmd") == 0)
			continue;
		if (!wanted || strcmp(name, wanted) != 0)
			return refuse_argument(command, name);
		*value = read_value(&command->argument, member);
		if (*value < 0)
			return refuse_value(command, "has a value it may not have");
	}
	if (*value < 0 && command->required)
		return refuse_value(command, "is missing");
	return NULL;
}

/* Returns what is to be answered. */
static struct json_object *run_command(struct server *server, const struct control_command *command,
                                       struct json_object *root, int value)
{
	struct json_object *answer = json_object_new_object(), *text = NULL, *refused;

	control_add_bool(answer, "ok", true);
	if (!command->run_text) {
		command->run(server, value, answer);
		return answer;
	}
	if (command->argument.name)
		json_object_object_get_ex(root, command->argument.name, &text);
	refused = command->run_text(server, text ? json_object_get_string(text) : NULL, answer);
	if (refused)
		json_object_put(answer);
	return refused ? refused : answer;
}

static struct json_object *execute_object(struct server *server, struct json_object *root)
{
	const struct control_command *command;
	struct json_object *name, *answer;
	int value;

	if (!json_object_is_type(root, json_type_object) ||
	    !json_object_object_get_ex(root, "cmd", &name) ||
	    !json_object_is_type(name, json_type_string))
		return control_refuse("not a JSON object with a text \"cmd\"",
		                      "send, for example, {\"cmd\":\"help\"}");
	command = find_command(json_object_get_string(name));
	if (!command)
		return refuse_command(json_object_get_string(name));
	answer = check_arguments(command, root, &value);
	if (answer)
		return answer;
	counter_inc(&server_control_commands);
	return run_command(server, command, root, value);
}

struct json_object *control_execute(struct server *server, const char *line, size_t size)
{
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH_MAX);
	struct json_object *root, *answer;
	enum json_tokener_error error;

	assert(size < CONTROL_LINE_MAX);
	if (!tokener)
		return control_refuse("out of memory", "try again");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	root = json_tokener_parse_ex(tokener, line, (int)size);
	error = json_tokener_get_error(tokener);
	if (error == json_tokener_success && json_tokener_get_parse_end(tokener) == size)
		answer = execute_object(server, root);
	else
		answer = control_refuse(error == json_tokener_continue
		                                ? "the JSON ends in the middle"
		                                : "the line is not one JSON object",
		                        "send one JSON object a line, such as {\"cmd\":\"help\"}");
	json_object_put(root);
	json_tokener_free(tokener);
	return answer;
}
