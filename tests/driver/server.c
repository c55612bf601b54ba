// SPDX-License-Identifier: GPL-2.0-or-later
/* The server as a child process, server.h. */
#include "server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SERVER_START_MS 30000
#define SERVER_STOP_MS  30000 /* sanitizers look for leaks at the end */
#define SERVER_ARGS_MAX 64

static int64_t server_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *server_program(void)
{
	const char *program = getenv("ROCM_ERNIC");

#ifdef ERNIC_SERVER_PROGRAM
	if (!program)
		program = ERNIC_SERVER_PROGRAM;
#endif
	return program ? program : "rocm-ernic";
}

/* ---- starting ---- */

static void server_arguments(const struct server *server, const struct server_options *options,
                             const char **argv, char *stats_ms)
{
	unsigned argc = 0;

	argv[argc++] = server_program();
	argv[argc++] = "--socket";
	argv[argc++] = server->socket;
	argv[argc++] = "--control";
	argv[argc++] = server->control;
	argv[argc++] = "--stats-file";
	argv[argc++] = server->stats;
	argv[argc++] = "--stats-interval-ms";
	sprintf(stats_ms, "%u", options->stats_ms ? options->stats_ms : 20);
	argv[argc++] = stats_ms;
	argv[argc++] = "--mac";
	argv[argc++] = options->mac ? options->mac : SERVER_TEST_MAC;
	if (options->profile) {
		argv[argc++] = "--nic-profile";
		argv[argc++] = options->profile;
	}
	if (options->tap) {
		argv[argc++] = "--tap";
		argv[argc++] = options->tap;
	}
	for (unsigned i = 0; options->args && options->args[i] && argc < SERVER_ARGS_MAX; i++)
		argv[argc++] = options->args[i];
	argv[argc] = NULL;
}

static void server_exec(const struct server *server, const char **argv)
{
	int log = open(server->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (log >= 0) {
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
	}
	execvp(argv[0], (char *const *)argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int server_try_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/*
 * Waits until the control socket answers: it exists when the folder says so, accepts soon after,
 * and answers when the loop runs, that is, when all sockets are open. The vfio-user socket may not
 * be tried, because the server would take the trial for its client.
 */
static int server_wait_ready(struct server *server, int notify)
{
	int64_t deadline = server_now_ms() + SERVER_START_MS;
	struct pollfd fds[2] = {{server->pidfd, POLLIN, 0}, {notify, POLLIN, 0}};
	char events[4096];

	while (server_now_ms() < deadline) {
		server->control_fd = server_try_connect(server->control);
		if (server->control_fd >= 0)
			return server_control(server, "{\"cmd\":\"version\"}", NULL, 0);
		/* Bound but not yet listening, it tells nobody when it does: look again soon. */
		if (poll(fds, 2, access(server->control, F_OK) ? 1000 : 1) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents)
			return -ECHILD;
		if (fds[1].revents)
			(void)!read(notify, events, sizeof(events));
	}
	return -ETIMEDOUT;
}

static void server_print_log(const struct server *server)
{
	char line[400];
	FILE *log = fopen(server->log, "r");

	if (!log)
		return;
	if (fseek(log, -6000, SEEK_END) < 0)
		rewind(log);
	while (fgets(line, sizeof(line), log))
		fprintf(stderr, "    server: %s", line);
	fclose(log);
}

static void server_free(struct server *server)
{
	const char *paths[] = {server->socket, server->control, server->stats, server->log};

	for (unsigned i = 0; i < 4; i++)
		unlink(paths[i]);
	rmdir(server->dir);
	if (server->pidfd >= 0)
		close(server->pidfd);
	if (server->control_fd >= 0)
		close(server->control_fd);
	free(server);
}

static struct server *server_new(void)
{
	const char *tmp = getenv("TMPDIR");
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->pid = -1;
	server->pidfd = server->control_fd = -1;
	snprintf(server->dir, sizeof(server->dir), "%.40s/ernic-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(server->dir)) {
		free(server);
		return NULL;
	}
	snprintf(server->socket, sizeof(server->socket), "%s/vfio", server->dir);
	snprintf(server->control, sizeof(server->control), "%s/control", server->dir);
	snprintf(server->stats, sizeof(server->stats), "%s/stats", server->dir);
	snprintf(server->log, sizeof(server->log), "%s/log", server->dir);
	return server;
}

int server_spawn(struct server **server, const struct server_options *options)
{
	const char *argv[SERVER_ARGS_MAX + 1];
	struct server *new = server_new();
	char stats_ms[16];
	int notify, err;

	if (!new)
		return -errno;
	server_arguments(new, options, argv, stats_ms);
	notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	inotify_add_watch(notify, new->dir, IN_CREATE);
	new->pid = fork();
	if (new->pid == 0)
		server_exec(new, argv);
	new->pidfd = new->pid > 0 ? (int)syscall(SYS_pidfd_open, new->pid, 0) : -1;
	err = new->pidfd < 0 ? -errno : server_wait_ready(new, notify);
	close(notify);
	if (err) {
		fprintf(stderr, "%s did not start\n", argv[0]);
		server_print_log(new);
		if (new->pid > 0) {
			kill(new->pid, SIGKILL);
			waitpid(new->pid, NULL, 0);
		}
		server_free(new);
		return err;
	}
	*server = new;
	return 0;
}

/* ---- stopping ---- */

uint16_t server_free_port(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, size) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &size) < 0)
		addr.sin_port = 0;
	close(fd);
	return ntohs(addr.sin_port);
}

bool server_alive(const struct server *server)
{
	struct pollfd fd = {server->pidfd, POLLIN, 0};

	return poll(&fd, 1, 0) == 0;
}

int server_stop(struct server *server)
{
	struct pollfd fd;
	bool alive;
	int status = 0;

	if (!server)
		return 0;
	fd = (struct pollfd){server->pidfd, POLLIN, 0};
	alive = server_alive(server);
	if (alive) {
		kill(server->pid, SIGTERM);
		if (poll(&fd, 1, SERVER_STOP_MS) == 0) {
			fprintf(stderr, "server did not end within %d ms of SIGTERM\n",
			        SERVER_STOP_MS);
			kill(server->pid, SIGKILL);
		}
	} else {
		fprintf(stderr, "server ended before it was told to\n");
	}
	waitpid(server->pid, &status, 0);
	if (!alive || status) {
		if (WIFSIGNALED(status))
			fprintf(stderr, "server died of signal %d\n", WTERMSIG(status));
		else
			fprintf(stderr, "server exited with %d\n", WEXITSTATUS(status));
		server_print_log(server);
	}
	server_free(server);
	return alive && status == 0 ? 0 : -ECHILD;
}

/* ---- talking ---- */

int server_control(struct server *server, const char *command, char *answer, size_t size)
{
	struct timeval timeout = {10, 0};
	char line[8192];
	size_t have = 0;

	if (setsockopt(server->control_fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		return -errno;
	snprintf(line, sizeof(line), "%s\n", command);
	if (send(server->control_fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		return -errno;
	do {
		ssize_t got = recv(server->control_fd, line + have, sizeof(line) - 1 - have, 0);

		if (got <= 0)
			return got ? -errno : -ECONNRESET;
		have += (size_t)got;
	} while (line[have - 1] != '\n' && have < sizeof(line) - 1);
	line[have - 1] = '\0';
	if (answer)
		snprintf(answer, size, "%s", line);
	return strstr(line, "\"ok\":true") || strstr(line, "\"ok\": true") ? 0 : -EPROTO;
}

int server_stat(const struct server *server, const char *section, const char *name, uint64_t *value)
{
	char line[256], found[128];
	unsigned long long number;
	bool inside = section == NULL;
	int err = -ENOENT;
	FILE *file = fopen(server->stats, "r");

	if (!file)
		return -errno;
	while (err == -ENOENT && fgets(line, sizeof(line), file)) {
		if (line[0] == '[')
			inside = !section || strncmp(line + 1, section, strlen(section)) == 0;
		if (!inside || sscanf(line, " %127s :", found) != 1 || strcmp(found, name) != 0)
			continue;
		err = sscanf(strstr(line, " : ") + 3, "%llu", &number) == 1 ? 0 : -EINVAL;
		*value = number;
	}
	fclose(file);
	return err;
}

int server_stats_wait(const struct server *server, unsigned count)
{
	int notify = inotify_init1(IN_CLOEXEC);
	const char *name = strrchr(server->stats, '/') + 1;
	struct pollfd fd = {notify, POLLIN, 0};
	union {
		struct inotify_event event;
		char space[4096];
	} buffer;
	int err = 0;

	inotify_add_watch(notify, server->dir, IN_MOVED_TO | IN_CLOSE_WRITE);
	while (count && !err) {
		ssize_t got = 0;

		if (poll(&fd, 1, 70000) <= 0)
			err = -ETIMEDOUT;
		else
			got = read(notify, &buffer, sizeof(buffer));
		for (ssize_t at = 0; at < got && count;) {
			struct inotify_event *event = (void *)(buffer.space + at);

			if (event->len && strcmp(event->name, name) == 0)
				count--;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	close(notify);
	return err;
}

/* ---- watching ---- */

static int64_t server_proc_value(const struct server *server, const char *file, const char *format)
{
	char path[128], line[256];
	long long value = -ENOENT;
	FILE *proc;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)server->pid, file);
	proc = fopen(path, "r");
	if (!proc)
		return -errno;
	while (fgets(line, sizeof(line), proc)) {
		size_t size = strlen(format);

		if (strncmp(line, format, size) == 0) {
			value = strtoll(line + size, NULL, 10);
			break;
		}
	}
	fclose(proc);
	return value;
}

int64_t server_cpu_ns(const struct server *server)
{
	char path[64], file[64];
	int64_t total = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)server->pid);
	tasks = opendir(path);
	if (!tasks)
		return -errno;
	for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
		int64_t value;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "task/%.16s/schedstat", entry->d_name);
		value = server_proc_value(server, file, "");
		total += value > 0 ? value : 0;
	}
	closedir(tasks);
	return total;
}

int64_t server_wakeups(const struct server *server)
{
	return server_proc_value(server, "status", "voluntary_ctxt_switches:");
}
