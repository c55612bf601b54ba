/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every counter of the program: the rules that base/counter.h asks for. */
#include <ctype.h>
#include <string.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "server/server.h"
#include "unit.h"

/* Pulls every room into this program, as the executable does. */
int (*const whole_program)(const struct options *, const struct nic_profile *,
                           struct error_text *) = server_run;

static const char *last;
static unsigned count;

static void check(const struct counter *counter, void *arg)
{
	static const char *const rooms[] = {"base",   "vfio", "net",   "ionic",
	                                    "server", "rdma", "fabric"};
	const char *end = strchr(counter->name, '_');
	bool known = false;

	(void)arg;
	assert_non_null(end);
	for (unsigned i = 0; i < ARRAY_SIZE(rooms); i++)
		known |= strncmp(counter->name, rooms[i], strlen(rooms[i])) == 0;
	if (!known)
		fail_msg("%s does not begin with its room", counter->name);
	for (const char *c = counter->name; *c; c++)
		assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_');
	if (last && strcmp(last, counter->name) >= 0)
		fail_msg("%s stands twice or out of order", counter->name);
	assert_true(strlen(counter->help) > 0);
	last = counter->name;
	count++;
}

static void counters_have_unique_names_of_their_room(void **state)
{
	(void)state;
	assert_non_null(whole_program);
	counter_visit(check, NULL);
	assert_true(count > 10);
	assert_true(count < 1000); /* counter_visit() holds 1024 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(counters_have_unique_names_of_their_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
