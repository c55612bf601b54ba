/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server as a child process: started with a private folder for its socket, control socket,
 * stats file and log; stopped, reaped and judged.
 *
 * The child dies with the program that started it.
 */
#ifndef ERNIC_TESTS_DRIVER_SERVER_H
#define ERNIC_TESTS_DRIVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server_options {
	const char *profile;     /* NULL: the default */
	const char *tap;         /* interface, or NULL */
	const char *mac;         /* NULL: NIC_TEST_MAC */
	unsigned stats_ms;       /* 0: 20 */
	const char *const *args; /* more of them, up to a NULL; may be NULL */
};

#define SERVER_TEST_MAC "02:00:00:00:aa:01"

struct server {
	pid_t pid;
	int pidfd;
	int control_fd;
	char dir[64];
	char socket[96], control[96], stats[96], log[96];
};

/* Where the program is: $ROCM_ERNIC, or what the build made. */
const char *server_program(void);

/* Starts the server and waits until it accepts connections. Returns 0, -ETIMEDOUT, -ECHILD when it
 * ended at once (its log was printed), or another negative errno. */
int server_spawn(struct server **server, const struct server_options *options);

/* A TCP port of the loopback address that nobody has now; 0 when there is none. */
uint16_t server_free_port(void);

/* Whether it is alive. */
bool server_alive(const struct server *server);

/*
 * Ends it with SIGTERM, waits, and removes the folder. Accepts NULL. Returns 0 when it exited with
 * 0 in time; else prints why, with the end of the log, and returns -ECHILD.
 */
int server_stop(struct server *server);

/* Sends one JSON command; the answer's line goes to ANSWER. Returns 0, -EPROTO when the server
 * answered with ok:false, or another negative errno. */
int server_control(struct server *server, const char *command, char *answer, size_t size);

/* The value of a line "NAME : VALUE" of section SECTION of the stats file (NULL: any). Returns 0,
 * -ENOENT or -EINVAL. */
int server_stat(const struct server *server, const char *section, const char *name,
                uint64_t *value);

/* Waits until the stats file has been replaced COUNT times from now on. */
int server_stats_wait(const struct server *server, unsigned count);

/* ns on a CPU so far, of all threads, and voluntary context switches; negative errno. */
int64_t server_cpu_ns(const struct server *server);
int64_t server_wakeups(const struct server *server);

#endif
