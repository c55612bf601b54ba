/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets at paths where something is already. */
#include "server/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

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
	assert_int_equal(listener_open(&listener, path, 0620), 0);
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
	assert_int_equal(listener_open(&living, path, 0600), 0);
	assert_int_equal(listener_open(&late, path, 0600), -EADDRINUSE);
	listener_close(&late);
	assert_int_equal(access(path, F_OK), 0);
	listener_close(&living);
}

static void a_stale_socket_is_replaced(void **state)
{
	struct listener killed, next;

	(void)state;
	assert_int_equal(listener_open(&killed, path, 0600), 0);
	close(killed.fd); /* and nothing else, as a killed server does */
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(listener_open(&next, path, 0600), 0);
	listener_close(&next);
	assert_int_equal(access(path, F_OK), -1);
}

static void what_is_no_socket_is_kept(void **state)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	struct listener listener;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(listener_open(&listener, path, 0600), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/nonexistent", path), 0);
	assert_int_equal(listener_open(&listener, path, 0600), -EEXIST);
	assert_int_equal(unlink(path), 0);
}

static void what_somebody_else_put_there_is_kept(void **state)
{
	struct listener first, second;

	(void)state;
	assert_int_equal(listener_open(&first, path, 0600), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(listener_open(&second, path, 0600), 0);
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
	assert_int_equal(listener_open(&listener, longer, 0600), -ENAMETOOLONG);
	assert_int_equal(listener_open(&listener, "/nonexistent/folder/socket", 0600), -ENOENT);
	listener_close(&listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_free_path_gets_a_socket_of_the_mode),
	        cmocka_unit_test(a_living_server_is_refused),
	        cmocka_unit_test(a_stale_socket_is_replaced),
	        cmocka_unit_test(what_is_no_socket_is_kept),
	        cmocka_unit_test(what_somebody_else_put_there_is_kept),
	        cmocka_unit_test(paths_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
