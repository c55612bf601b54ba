/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may join a mesh: descriptions, the digest, the secret, certificates. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/counter.h"
#include "mesh_rig.h"

static char folder[] = "/tmp/mesh-secret-XXXXXX";

static const char *put_file(const char *name, const char *text)
{
	static char path[4][100];
	static unsigned next;
	char *out = path[next++ % 4];

	snprintf(out, sizeof(path[0]), "%s/%s", folder, name);
	FILE *file = fopen(out, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod(out, 0600);
	return out;
}

static void descriptions(void **state)
{
	static const struct {
		const char *text;
		const char *error; /* NULL: is good */
	} cases[] = {
	        {"manager:7000", NULL},
	        {"manager:0.0.0.0:7000", NULL},
	        {"manager:[::1]:7000,interval=500", NULL},
	        {"worker:host.example:7000", NULL},
	        {"worker:10.0.0.1:7000,tls=c,key=k,ca=a", NULL},
	        {NULL, "give tcp:manager"},
	        {"", "give tcp:manager"},
	        {"boss:7000", "give tcp:manager"},
	        {"manager", "'' has no port"},
	        {"manager:", "'' has no port"},
	        {"manager:x", "'x' has no port"},
	        {"manager:0", "'0' has no port"},
	        {"manager:65536", "'65536' has no port"},
	        {"manager:1.2.3.4", "'1.2.3.4' has no port"},
	        {"worker:7000", "the host is missing"},
	        {"worker::7000", "the host is missing"},
	        {"manager:7000,", "unknown option ''"},
	        {"manager:7000,intervl=5", "unknown option 'intervl=5'"},
	        {"manager:7000,interval=5", "interval=5: give"},
	        {"manager:7000,interval=x", "interval=x: give"},
	        {"manager:7000,secret=", "secret=: give"},
	        {"manager:7000,secret=/nowhere/at/all", "secret=/nowhere/at/all: cannot be read"},
	        {"manager:7000,tls=c", "TLS needs all of"},
	};
	struct mesh_options options;
	char error[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int result = mesh_options_parse(cases[i].text, &options, error, sizeof(error));

		if (result != (cases[i].error ? -EINVAL : 0))
			fail_msg("'%s': %d", cases[i].text, result);
		if (result && strncmp(error, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("'%s': %s", cases[i].text, error);
	}
	assert_int_equal(mesh_options_parse("worker:[fe80::1]:9,interval=70", &options, error,
	                                    sizeof(error)),
	                 0);
	assert_string_equal(options.host, "fe80::1");
	assert_int_equal(options.port, 9);
	assert_int_equal(options.interval_ms, 70);
}

static void hex(const uint8_t digest[MESH_PROOF_SIZE], char text[2 * MESH_PROOF_SIZE + 1])
{
	for (unsigned i = 0; i < MESH_PROOF_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* FIPS 180-4 examples, and RFC 4231 test cases 2 and 6. */
static void digests(void **state)
{
	uint8_t digest[MESH_PROOF_SIZE], key[131];
	char text[2 * MESH_PROOF_SIZE + 1];
	struct sha256 sha;

	(void)state;
	sha256_init(&sha);
	sha256_update(&sha, "abc", 3);
	sha256_final(&sha, digest);
	hex(digest, text);
	assert_string_equal(text,
	                    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha256_init(&sha);
	for (int i = 0; i < 1000000; i += 40)
		sha256_update(&sha, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 40);
	sha256_final(&sha, digest);
	hex(digest, text);
	assert_string_equal(text,
	                    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	static char first[] = "what do ya want ", second[] = "for nothing?";
	struct iovec pieces[] = {{first, 16}, {second, 12}};

	hmac_sha256("Jefe", 4, pieces, 2, digest);
	hex(digest, text);
	assert_string_equal(text,
	                    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	static char text6[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	struct iovec large = {text6, 54};

	memset(key, 0xaa, sizeof(key));
	hmac_sha256(key, sizeof(key), &large, 1, digest);
	hex(digest, text);
	assert_string_equal(text,
	                    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static uint64_t count(const char *name)
{
	return counter_get(counter_find(name));
}

/* A manager with OPTIONS and a worker with others: whether the worker gets in. */
static bool joins_within(unsigned ms, const char *manager_options, const char *worker_options)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	char text[600];

	snprintf(text, sizeof(text), "tcp:manager:127.0.0.1:%u%s", port, manager_options);
	struct node *manager = node_new(loop, text, 1);

	snprintf(text, sizeof(text), "tcp:worker:127.0.0.1:%u%s", port, worker_options);
	struct node *worker = node_new(loop, text, 2);
	uint64_t end = rig_ms() + ms;

	while (!worker->mesh->registered && rig_ms() < end)
		loop_turn(loop, 1000000);
	bool joined = worker->mesh->registered;

	if (joined) { /* workers find each other too */
		struct node *third = node_new(loop, text, 3);

		rig_wait_nodes(third, 3);
		struct mesh_node *other = mesh_node_find(third->mesh, worker->mesh->id);
		struct mesh_conn *conn = mesh_node_conn(third->mesh, other);

		RIG_WAIT(loop, conn->state == MESH_CONN_UP && !conn->blocked);
		rig_pass(loop, 20);
		assert_ptr_equal(other->conn, conn);
		node_free(third);
	}
	node_free(worker);
	node_free(manager);
	loop_destroy(loop);
	return joined;
}

static void secrets(void **state)
{
	char good[120], bad[120];

	(void)state;
	snprintf(good, sizeof(good), ",secret=%s", put_file("good", "correct horse battery\n"));
	snprintf(bad, sizeof(bad), ",secret=%s", put_file("bad", "correct horse staple\n"));
	assert_true(joins_within(60000, "", ""));
	assert_true(joins_within(60000, good, good));
	uint64_t before = count("fabric_mesh_bad_proof");

	assert_false(joins_within(700, good, bad));
	assert_false(joins_within(700, good, ""));
	assert_false(joins_within(700, "", good));
	assert_true(count("fabric_mesh_bad_proof") >= before + 3);
	struct mesh_options options;
	char error[200], text[200];

	snprintf(text, sizeof(text), "manager:7000,secret=%s", put_file("short", "hello\n"));
	assert_int_equal(mesh_options_parse(text, &options, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "at least 16"));
}

/* Makes a CA and a certificate of it; ",tls=...,key=...,ca=..." in OUT. */
static bool make_certificates(const char *name, char *out, size_t size)
{
	char command[1200];

	snprintf(
	        command, sizeof(command),
	        "cd %s && exec 2>openssl.log && openssl req -x509 -newkey ec -pkeyopt "
	        "ec_paramgen_curve:P-256 -nodes -keyout %s-ca.key -out %s-ca.pem -subj /CN=%s-ca "
	        "-days 2 && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "
	        "%s.key -out %s.csr -subj /CN=%s && openssl x509 -req -in %s.csr -CA %s-ca.pem "
	        "-CAkey %s-ca.key -CAcreateserial -out %s.pem -days 2",
	        folder, name, name, name, name, name, name, name, name, name, name);
	snprintf(out, size, ",tls=%s/%s.pem,key=%s/%s.key,ca=%s/%s-ca.pem", folder, name, folder,
	         name, folder, name);
	return system(command) == 0;
}

static void certificates(void **state)
{
	char ours[300], theirs[300];

	(void)state;
	if (!make_certificates("ours", ours, sizeof(ours)) ||
	    !make_certificates("theirs", theirs, sizeof(theirs))) {
		print_message("skipped: no openssl program\n");
		skip();
	}
	struct mesh_options options;
	struct mesh_tls_context *context = NULL;
	char error[200] = "", text[400];

	snprintf(text, sizeof(text), "manager:7000%s", ours);
	assert_int_equal(mesh_options_parse(text, &options, error, sizeof(error)), 0);
	if (mesh_tls_context_create(&options, &context, error, sizeof(error))) {
		print_message("skipped: %s\n", error);
		skip();
	}
	mesh_tls_context_destroy(context);
	assert_true(joins_within(60000, ours, ours));
	assert_false(joins_within(700, ours, theirs));
	assert_false(joins_within(700, ours, ""));
	assert_false(joins_within(700, "", ours));
	snprintf(options.tls_key, sizeof(options.tls_key), "%s/theirs.key", folder);
	assert_int_equal(mesh_tls_context_create(&options, &context, error, sizeof(error)),
	                 -EINVAL);
	assert_non_null(strstr(error, "not the key of the certificate"));
}

/* Bulk through TLS, both ways. */
static void messages_through_tls(void **state)
{
	char tls[300], text[400];
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();

	(void)state;
	if (!make_certificates("bulk", tls, sizeof(tls))) {
		loop_destroy(loop);
		print_message("skipped: no openssl program\n");
		skip();
	}
	snprintf(text, sizeof(text), "tcp:manager:127.0.0.1:%u%s", port, tls);
	struct node *a = node_new(loop, text, 1);

	snprintf(text, sizeof(text), "tcp:worker:127.0.0.1:%u%s", port, tls);
	struct node *b = node_new(loop, text, 2);

	rig_wait_nodes(b, 2);
	struct test_qp *qa = qp_new(a->nic, RDMA_QP_RC, 1), *qb = qp_new(b->nic, RDMA_QP_RC, 1);
	struct test_mr here = mr_scattered(a->nic, 1, 0x1000, 3000000, 0x1f);
	struct test_mr there = mr_scattered(b->nic, 1, 0x2000, 3000000, 0x1f);

	rig_connect(qa, qb);
	for (unsigned i = 0; i < 6; i++) {
		struct rdma_wr wr = wr_rdma(i % 2 ? RDMA_READ : RDMA_WRITE,
		                            sge_of(&here, 0, 3000000), there.va, there.key);

		mr_fill(&here, i);
		mr_fill(&there, i + 100);
		qp_post_send(qa, &wr);
		qp_expect_send(qa, RDMA_OK);
		for (size_t at = 0; at < 3000000; at += 101)
			assert_int_equal(*mr_byte(&here, at), *mr_byte(&there, at));
	}
	mr_free(&here);
	mr_free(&there);
	qp_free(qa);
	qp_free(qb);
	node_free(b);
	node_free(a);
	loop_destroy(loop);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[60];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(descriptions),
	        cmocka_unit_test(digests),
	        cmocka_unit_test(secrets),
	        cmocka_unit_test(certificates),
	        cmocka_unit_test(messages_through_tls),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
