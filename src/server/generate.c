/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the manual page (man) or the bash completion (completion) to standard output, at build
 * time, from the tables of options, profile keys, built-in profiles and control commands.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "server/control.h"
#include "server/help.h"
#include "server/options.h"
#include "server/profile.h"

/* ---- manual page ---- */

/* Text as roff wants it: no line begins with a control character, minus signs are copied as such.
 */
static void roff(const char *text)
{
	for (const char *c = text; *c; c++) {
		if (c == text && (*c == '.' || *c == '\''))
			fputs("\\&", stdout);
		if (*c == '-')
			fputs("\\-", stdout);
		else if (*c == '\\')
			fputs("\\e", stdout);
		else
			putchar(*c);
	}
}

static void heading(const char *text)
{
	printf(".SH %s\n", text);
}

static void paragraph(const char *text)
{
	roff(text);
	puts("\n.PP");
}

/* An entry of a list: its name in bold, its text below. */
static void entry(const char *name, const char *text)
{
	fputs(".TP\n.B ", stdout);
	roff(name);
	putchar('\n');
	roff(text);
	putchar('\n');
}

static void man_option(const struct option_spec *spec)
{
	char summary[HELP_SUMMARY_MAX];

	fputs(".TP\n", stdout);
	if (spec->letter)
		printf("\\fB\\-%c\\fR, ", spec->letter);
	fputs("\\fB\\-\\-", stdout);
	roff(spec->name);
	fputs("\\fR", stdout);
	if (spec->placeholder)
		printf(" \\fI%s\\fR", spec->placeholder);
	putchar('\n');
	roff(help_summary(spec, summary));
	puts(".");
	if (spec->man) {
		roff(spec->man);
		putchar('\n');
	}
}

static void man_options(void)
{
	const char *group = "";

	heading("OPTIONS");
	for (size_t i = 0; i < option_spec_count; i++) {
		if (strcmp(group, option_specs[i].group) != 0)
			printf(".SS %s\n", option_specs[i].group);
		group = option_specs[i].group;
		man_option(&option_specs[i]);
	}
}

static void man_profiles(void)
{
	char name[80], range[160], text[400];

	heading("NIC PROFILES");
	paragraph(
	        "A profile is an INI file with the keys below. Comments begin with # or ; and have "
	        "lines of their own. An unknown section or key, a key given twice in one file, and "
	        "a "
	        "value of the wrong type or out of range end the program with the file, the line "
	        "and "
	        "the key named.");
	for (size_t i = 0; i < profile_key_count; i++) {
		const struct profile_key *key = &profile_keys[i];

		snprintf(name, sizeof(name), "%s.%s", key->section, key->name);
		profile_key_range(key, range, sizeof(range));
		snprintf(text, sizeof(text), "%s: %s (compat: %s).", key->help, range, key->compat);
		entry(name, text);
	}
	puts(".PP\nThe built\\-in profiles:");
	for (size_t i = 0; i < profile_builtin_count; i++)
		entry(profile_builtins[i].name, profile_builtins[i].help);
}

static void man_control(void)
{
	heading("CONTROL SOCKET");
	paragraph("Every line sent to the socket of --control is a JSON object with a member "
	          "\"cmd\"; "
	          "every line that comes back is one with a member \"ok\". A command that was "
	          "refused "
	          "answers with \"error\" and \"remedy\".");
	for (size_t i = 0; i < control_command_count; i++) {
		const struct control_command *command = &control_commands[i];
		char name[300];
		size_t used =
		        (size_t)snprintf(name, sizeof(name), "{\"cmd\":\"%s\"", command->name);
		const struct control_argument *argument = &command->argument;

		if (argument->name)
			used += (size_t)snprintf(name + used, sizeof(name) - used,
			                         ",\"%s\":", argument->name);
		if (argument->name && argument->type == CONTROL_BOOL)
			used += (size_t)snprintf(name + used, sizeof(name) - used, "true|false");
		if (argument->name && argument->type == CONTROL_TEXT)
			used += (size_t)snprintf(name + used, sizeof(name) - used, "\"%s\"",
			                         argument->example);
		for (unsigned j = 0; j < argument->choice_count; j++)
			used += (size_t)snprintf(name + used, sizeof(name) - used, "%s\"%s\"",
			                         j ? "|" : "", argument->choices[j]);
		used += (size_t)snprintf(name + used, sizeof(name) - used, "}");
		assert(used < sizeof(name));
		entry(name, command->help);
	}
}

static void man_rest(void)
{
	heading("STATS FILE");
	paragraph("Sections Instance, Device, LIF Statistics, Port Statistics, RDMA, Per-QP and "
	          "Counters, each "
	          "begun "
	          "by its name in brackets on a line, hold one \"name : value\" a line.");
	heading("SIGNALS");
	entry("SIGTERM, SIGINT", "end the server, remove its sockets and write the stats file.");
	entry("SIGHUP", "opens the log file anew.");
	heading("EXIT STATUS");
	entry("0", "the server was ended by a signal, or what was to be printed is printed.");
	entry("1", "the server could not start. One line on standard error names the option, its "
	           "value and the remedy, and nothing is left behind.");
	heading("ENVIRONMENT");
	entry("NOTIFY_SOCKET", "where a service manager is told that the server is ready.");
	heading("EXAMPLES");
	paragraph("Serve a NIC whose Ethernet side is the TAP interface ernic0:");
	puts(".RS\n.nf\nsudo ip tuntap add dev ernic0 mode tap user $USER\n"
	     "sudo ip link set ernic0 up\n"
	     "rocm\\-ernic \\-\\-socket /tmp/nic.sock \\-\\-tap ernic0 \\-v\n.fi\n.RE\n.PP");
	paragraph("Give it to a guest, whose memory must be shared:");
	puts(".RS\n.nf\nqemu\\-system\\-x86_64 \\-m 2G \\e\n"
	     "  \\-object memory\\-backend\\-memfd,id=ram,size=2G,share=on \\-machine "
	     "q35,memory\\-backend=ram \\e\n"
	     "  \\-device '{\"driver\":\"vfio\\-user\\-pci\",\"socket\":{\"type\":\"unix\","
	     "\"path\":\"/tmp/nic.sock\"}}' ...\n.fi\n.RE");
	heading("SEE ALSO");
	puts("qemu\\-system\\-x86_64(1), ip\\-tuntap(8), ethtool(8)");
}

static void write_man(void)
{
	puts(".TH ROCM\\-ERNIC 1 \"\" \"rocm\\-ernic " ERNIC_VERSION "\" \"User Commands\"");
	heading("NAME");
	puts("rocm\\-ernic \\- an RDMA network card for a virtual machine, in software");
	heading("SYNOPSIS");
	puts(".B rocm\\-ernic\n.RB { \\-\\-socket\n.I PATH\n.RB \" | \" \\-\\-fd\n.IR N }\n"
	     ".RI [ OPTION ]...");
	heading("DESCRIPTION");
	paragraph("Gives one virtual machine one PCI device, an AMD Pensando ionic NIC that exists "
	          "only "
	          "in software, over the vfio-user protocol. QEMU 10.1 or later is the client; the "
	          "guest runs the ionic drivers of Linux as they are.");
	paragraph("The server stays in the foreground. It serves one client at a time: when a "
	          "virtual "
	          "machine ends, the next one may connect.");
	man_options();
	man_profiles();
	man_control();
	man_rest();
}

/* ---- bash completion ---- */

static const char *completion_of(const struct option_spec *spec)
{
	switch (spec->words) {
	case OPTION_WORDS_FILE:
		return "COMPREPLY=($(compgen -f -- \"$cur\"))";
	case OPTION_WORDS_INTERFACE:
		return "COMPREPLY=($(compgen -W \"$(ls /sys/class/net 2>/dev/null)\" -- \"$cur\"))";
	case OPTION_WORDS_PROFILE:
		return "COMPREPLY=($(compgen -W \"$profiles\" -- \"$cur\") $(compgen -f -- "
		       "\"$cur\"))";
	default:
		return "COMPREPLY=()";
	}
}

static void complete_value(const struct option_spec *spec)
{
	printf("\t--%s", spec->name);
	if (spec->alias)
		printf("|--%s", spec->alias);
	if (spec->letter)
		printf("|-%c", spec->letter);
	printf(")\n\t\t");
	if (spec->choice_count == 0) {
		printf("%s\n", completion_of(spec));
	} else {
		printf("COMPREPLY=($(compgen -W \"");
		for (unsigned i = 0; i < spec->choice_count; i++)
			printf("%s%s", i ? " " : "", spec->choices[i]);
		printf("\" -- \"$cur\"))\n");
	}
	printf("\t\treturn ;;\n");
}

static void write_completion(void)
{
	printf("# SPDX-License-Identifier: GPL-2.0-or-later\n"
	       "# bash completion of rocm-ernic; generated from its table of options.\n"
	       "_rocm_ernic() {\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\tlocal profiles=\"");
	for (size_t i = 0; i < profile_builtin_count; i++)
		printf("%s%s", i ? " " : "", profile_builtins[i].name);
	printf("\"\n\n\tcase $prev in\n");
	for (size_t i = 0; i < option_spec_count; i++)
		if (option_takes_value(&option_specs[i]))
			complete_value(&option_specs[i]);
	printf("\tesac\n\tCOMPREPLY=($(compgen -W \"");
	for (size_t i = 0; i < option_spec_count; i++)
		printf("%s--%s", i ? " " : "", option_specs[i].name);
	printf("\" -- \"$cur\"))\n}\ncomplete -o filenames -F _rocm_ernic rocm-ernic\n");
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "man") == 0) {
		write_man();
	} else if (argc == 2 && strcmp(argv[1], "completion") == 0) {
		write_completion();
	} else {
		fprintf(stderr, "usage: generate man|completion\n");
		return 1;
	}
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
