/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a connection through TLS 1.3, with certificates on both sides: who has one of the
 * mesh's CA is a member. Names in certificates are not looked at, as nodes are called by address.
 */
#include "fabric/mesh_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/counter.h"

COUNTER(fabric_mesh_tls_refused, "connections whose TLS handshake failed");

struct mesh_tls_context {
	SSL_CTX *ssl;
};

struct mesh_tls {
	SSL *ssl;
};

static void last_error(char *text, size_t size)
{
	unsigned long code = ERR_get_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	snprintf(text, size, "%s", reason ? reason : "the peer gave up");
	ERR_clear_error();
}

static int load(SSL_CTX *ssl, const struct mesh_options *options, char *error, size_t size)
{
	char reason[100];

	if (SSL_CTX_use_certificate_chain_file(ssl, options->tls_cert) != 1) {
		last_error(reason, sizeof(reason));
		snprintf(error, size, "tls=%.60s: no certificate in PEM (%s)", options->tls_cert,
		         reason);
		return -EINVAL;
	}
	if (SSL_CTX_use_PrivateKey_file(ssl, options->tls_key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ssl) != 1) {
		last_error(reason, sizeof(reason));
		snprintf(error, size, "key=%.60s: not the key of the certificate (%s)",
		         options->tls_key, reason);
		return -EINVAL;
	}
	if (SSL_CTX_load_verify_locations(ssl, options->tls_ca, NULL) != 1) {
		last_error(reason, sizeof(reason));
		snprintf(error, size, "ca=%.60s: no certificate in PEM (%s)", options->tls_ca,
		         reason);
		return -EINVAL;
	}
	return 0;
}

int mesh_tls_context_create(const struct mesh_options *options, struct mesh_tls_context **out,
                            char *error, size_t size)
{
	struct mesh_tls_context *context = calloc(1, sizeof(*context));

	if (!context)
		return -ENOMEM;
	context->ssl = SSL_CTX_new(TLS_method());
	if (!context->ssl) {
		free(context);
		return -ENOMEM;
	}
	int failed = load(context->ssl, options, error, size);

	if (failed) {
		mesh_tls_context_destroy(context);
		return failed;
	}
	SSL_CTX_set_min_proto_version(context->ssl, TLS1_3_VERSION);
	SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(context->ssl, 0);
	/* what was not written is copied, so it comes from another address the next time */
	SSL_CTX_set_mode(context->ssl,
	                 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	*out = context;
	return 0;
}

void mesh_tls_context_destroy(struct mesh_tls_context *context)
{
	if (!context)
		return;
	SSL_CTX_free(context->ssl);
	free(context);
}

struct mesh_tls *mesh_tls_create(struct mesh_tls_context *context, int fd, bool called)
{
	struct mesh_tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return NULL;
	tls->ssl = SSL_new(context->ssl);
	if (!tls->ssl || SSL_set_fd(tls->ssl, fd) != 1) {
		mesh_tls_destroy(tls);
		return NULL;
	}
	if (called)
		SSL_set_connect_state(tls->ssl);
	else
		SSL_set_accept_state(tls->ssl);
	return tls;
}

void mesh_tls_destroy(struct mesh_tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	free(tls);
}

int mesh_tls_handshake(struct mesh_tls *tls, uint32_t *events, char *text, size_t size)
{
	int result = SSL_do_handshake(tls->ssl);

	if (result == 1)
		return 0;
	int reason = SSL_get_error(tls->ssl, result);

	if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) {
		*events = reason == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT;
		return -EAGAIN;
	}
	counter_inc(&fabric_mesh_tls_refused);
	last_error(text, size);
	return -EACCES;
}

/* What a read or write of no bytes means. */
static ssize_t tls_errno(struct mesh_tls *tls, int result)
{
	int reason = SSL_get_error(tls->ssl, result);

	ERR_clear_error();
	if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	return reason == SSL_ERROR_ZERO_RETURN ? 0 : -ECONNRESET;
}

ssize_t mesh_tls_readv(struct mesh_tls *tls, const struct iovec *iov, unsigned count)
{
	ssize_t total = 0;

	for (unsigned i = 0; i < count; i++)
		for (size_t done = 0; done < iov[i].iov_len;) {
			size_t got = 0;
			int result = SSL_read_ex(tls->ssl, (uint8_t *)iov[i].iov_base + done,
			                         iov[i].iov_len - done, &got);

			if (result != 1)
				return total > 0 ? total : tls_errno(tls, result);
			done += got;
			total += (ssize_t)got;
		}
	return total;
}

ssize_t mesh_tls_writev(struct mesh_tls *tls, const struct iovec *iov, unsigned count)
{
	ssize_t total = 0;

	for (unsigned i = 0; i < count; i++)
		for (size_t done = 0; done < iov[i].iov_len;) {
			size_t put = 0;
			int result = SSL_write_ex(tls->ssl, (uint8_t *)iov[i].iov_base + done,
			                          iov[i].iov_len - done, &put);

			if (result != 1)
				return total > 0 ? total : tls_errno(tls, result);
			done += put;
			total += (ssize_t)put;
		}
	return total;
}
