/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets at paths where something is already. */
#include "base/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

enum { BACKLOG = 16, ROUNDS = 100, SERVERS = 4 };

static char folder[] = "/tmp/ernic-test-listener-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder); /* fails when a test left something */
}

static void a_free_path_gets_a_socket_of_the_mode(void **state)
{
	struct listener listener;
	struct stat info;

	(void)state;
	assert_int_equal(listener_open(&listener, path, 0620, BACKLOG), 0);
	assert_int_equal(stat(path, &info), 0);
	assert_true(S_ISSOCK(info.st_mode));
	assert_int_equal(info.st_mode & 0777, 0620);
	listener_close(&listener);
	assert_int_equal(access(path, F_OK), -1);
	listener_close(&listener);
}

static void a_living_server_is_refused(void **state)
{
	struct listener living, late;

	(void)state;
	assert_int_equal(listener_open(&living, path, 0600, BACKLOG), 0);
	assert_int_equal(listener_open(&late, path, 0600, BACKLOG), -EADDRINUSE);
	listener_close(&late);
	assert_int_equal(access(path, F_OK), 0);
	listener_close(&living);
}

/* Leaves a socket at the path on which nobody listens. */
static void leave_stale(void)
{
	struct listener killed;

	assert_int_equal(listener_open(&killed, path, 0600, BACKLOG), 0);
	close(killed.fd); /* and nothing else, as a killed server does */
}

static void a_stale_socket_is_replaced(void **state)
{
	struct listener next;

	(void)state;
	leave_stale();
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(listener_open(&next, path, 0600, BACKLOG), 0);
	listener_close(&next);
	assert_int_equal(access(path, F_OK), -1);
}

/* A server of its own process: starts when START ends, tells how that went, lives until END ends.
 */
static pid_t start_server(const int start[2], const int end[2], int answers)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	struct listener listener;
	char nothing;

	close(start[1]);
	close(end[1]);
	if (read(start[0], &nothing, 1) != 0)
		_exit(1);
	int error = listener_open(&listener, path, 0600, BACKLOG);

	if (write(answers, &error, sizeof(error)) != sizeof(error) ||
	    read(end[0], &nothing, 1) != 0)
		_exit(1);
	listener_close(&listener);
	_exit(0);
}

static void check_answers(int answers)
{
	unsigned winners = 0;

	for (unsigned i = 0; i < SERVERS; i++) {
		int error;

		assert_int_equal(read(answers, &error, sizeof(error)), sizeof(error));
		if (error)
			assert_int_equal(error, -EADDRINUSE);
		else
			winners++;
	}
	assert_int_equal(winners, 1);
}

/* The path leads to the winner, not to a socket that nobody can reach any more. */
static void check_path_is_served(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void of_servers_that_start_at_once_one_gets_the_path(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		int start[2], end[2], answers[2];

		leave_stale();
		assert_int_equal(pipe(start) | pipe(end) | pipe(answers), 0);
		for (unsigned i = 0; i < SERVERS; i++)
			assert_true(start_server(start, end, answers[1]) > 0);
		close(start[1]);
		check_answers(answers[0]);
		check_path_is_served();
		close(end[1]);
		for (unsigned i = 0; i < SERVERS; i++) {
			int status;

			assert_true(wait(&status) > 0);
			assert_int_equal(status, 0);
		}
		close(start[0]);
		close(end[0]);
		close(answers[0]);
		close(answers[1]);
	}
}

static void a_lock_that_is_never_released_keeps_nobody_waiting(void **state)
{
	struct listener listener;
	int fd = open(folder, O_RDONLY | O_DIRECTORY);

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(listener_open(&listener, path, 0600, BACKLOG), 0);
	listener_close(&listener);
	close(fd);
}

static void what_is_no_socket_is_kept(void **state)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	struct listener listener;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(listener_open(&listener, path, 0600, BACKLOG), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/nonexistent", path), 0);
	assert_int_equal(listener_open(&listener, path, 0600, BACKLOG), -EEXIST);
	assert_int_equal(unlink(path), 0);
}

static void what_somebody_else_put_there_is_kept(void **state)
{
	struct listener first, second;

	(void)state;
	assert_int_equal(listener_open(&first, path, 0600, BACKLOG), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(listener_open(&second, path, 0600, BACKLOG), 0);
	listener_close(&first);
	assert_int_equal(access(path, F_OK), 0);
	listener_close(&second);
	assert_int_equal(access(path, F_OK), -1);
}

static void paths_that_cannot_be_are_refused(void **state)
{
	struct listener listener;
	char longer[200];

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(listener_open(&listener, longer, 0600, BACKLOG), -ENAMETOOLONG);
	assert_int_equal(listener_open(&listener, "/nonexistent/folder/socket", 0600, BACKLOG),
	                 -ENOENT);
	listener_close(&listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_free_path_gets_a_socket_of_the_mode),
	        cmocka_unit_test(a_living_server_is_refused),
	        cmocka_unit_test(a_stale_socket_is_replaced),
	        cmocka_unit_test(of_servers_that_start_at_once_one_gets_the_path),
	        cmocka_unit_test(a_lock_that_is_never_released_keeps_nobody_waiting),
	        cmocka_unit_test(what_is_no_socket_is_kept),
	        cmocka_unit_test(what_somebody_else_put_there_is_kept),
	        cmocka_unit_test(paths_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
