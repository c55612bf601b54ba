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
	int fd = listener_open(path, 0620);
	struct stat info;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &info), 0);
	assert_true(S_ISSOCK(info.st_mode));
	assert_int_equal(info.st_mode & 0777, 0620);
	listener_close(fd, path);
	assert_int_equal(access(path, F_OK), -1);
	listener_close(-1, path);
}

static void a_living_server_is_refused(void **state)
{
	int fd = listener_open(path, 0600);

	(void)state;
	assert_int_equal(listener_open(path, 0600), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	listener_close(fd, path);
}

static void a_stale_socket_is_replaced(void **state)
{
	int fd = listener_open(path, 0600);

	(void)state;
	close(fd); /* as a killed server does */
	assert_int_equal(access(path, F_OK), 0);
	fd = listener_open(path, 0600);
	assert_true(fd >= 0);
	listener_close(fd, path);
}

static void what_is_no_socket_is_kept(void **state)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(listener_open(path, 0600), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/nonexistent", path), 0);
	assert_int_equal(listener_open(path, 0600), -EEXIST);
	assert_int_equal(unlink(path), 0);
}

static void paths_that_cannot_be_are_refused(void **state)
{
	char longer[200];

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(listener_open(longer, 0600), -ENAMETOOLONG);
	assert_int_equal(listener_open("/nonexistent/folder/socket", 0600), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_free_path_gets_a_socket_of_the_mode),
	        cmocka_unit_test(a_living_server_is_refused),
	        cmocka_unit_test(a_stale_socket_is_replaced),
	        cmocka_unit_test(what_is_no_socket_is_kept),
	        cmocka_unit_test(paths_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
