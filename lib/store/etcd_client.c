/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requests to etcd's JSON gateway, without the network (etcd_transport.h). A request goes to the
 * endpoint that answered last; if it fails, the next endpoint gets it, until the caller's time is
 * over. One that etcd has executed although its answer was lost is sent again, so callers make sure
 * that this has no second effect.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/etcd_transport.h"

#define ATTEMPT_MIN_MS  200
#define PASSWORD_MAX    256
#define AUTH_TIMEOUT_MS 3000
#define SILENCE_MAX_MS  3500 /* after which the next endpoint is asked, at the latest */

/* --- authentication --- */

static int
password_error(const struct etcd_client *c, const char *what, struct error *err)
{
	return error_set(err, ENOKEY, "fleet.password_file: %s: %s", c->config.password_file, what);
}

static int
check_password(const struct etcd_client *c, const char *password, mode_t mode, struct error *err)
{
	size_t len = strcspn(password, "\r\n");

	if ((mode & S_IRWXO) != 0)
		return password_error(c, "everyone may use it; chmod 0600, or 0640 with a group",
			err);
	if (len == 0)
		return password_error(c, "its first line is empty, expected the password", err);
	if (len == PASSWORD_MAX - 1)
		return password_error(c, "its first line is too long, allowed: 254 characters",
			err);
	return 0;
}

static int
read_password(struct etcd_client *c, char *password, struct error *err)
{
	FILE *f = fopen(c->config.password_file, "re");
	struct stat st;
	int rc;

	password[0] = '\0';
	if (f == NULL || fstat(fileno(f), &st) != 0)
		rc = password_error(c, strerror(errno), err);
	else if (fgets(password, PASSWORD_MAX, f) == NULL && ferror(f))
		rc = password_error(c, "it cannot be read", err);
	else
		rc = check_password(c, password, st.st_mode, err);
	if (f != NULL)
		fclose(f);
	password[strcspn(password, "\r\n")] = '\0';
	return rc;
}

static int
authenticate(struct etcd_client *c, unsigned int endpoint, struct error *err)
{
	char password[PASSWORD_MAX];
	json_t *reply, *body;
	const char *token;
	int rc;

	c->authenticated = false;
	rc = read_password(c, password, err);
	if (rc != 0)
		return rc;
	body = json_pack("{s:s, s:s}", "name", c->config.user, "password", password);
	explicit_bzero(password, sizeof(password));
	if (body == NULL)
		return password_error(c, "its first line is not UTF-8", err);
	rc = etcd_http_token(c, NULL);
	if (rc == 0)
		rc = etcd_send(c, endpoint, "/v3/auth/authenticate", body,
			(struct etcd_patience){ AUTH_TIMEOUT_MS, AUTH_TIMEOUT_MS }, &reply, err);
	json_decref(body);
	if (rc != 0)
		return rc == -EKEYEXPIRED || rc == -EINVAL ? -EACCES : rc;
	token = json_string_value(json_object_get(reply, "token"));
	if (token == NULL || strlen(token) >= sizeof(c->token)) {
		rc = error_set(err, EPROTO, "etcd has given no token");
	} else {
		strcpy(c->token, token);
		rc = etcd_http_token(c, token);
	}
	c->authenticated = rc == 0;
	json_decref(reply);
	return rc;
}

/* --- requests --- */

static int
call_with_token(struct etcd_client *c, unsigned int endpoint, const char *path, const json_t *body,
	struct etcd_patience patience, json_t **reply, struct error *err)
{
	unsigned int tries;
	int rc = 0;

	for (tries = 0; tries < 2; tries++) {
		if (c->config.user[0] != '\0' && !c->authenticated && !c->borrows) {
			rc = authenticate(c, endpoint, err);
			if (rc != 0)
				return rc;
		}
		rc = etcd_send(c, endpoint, path, body, patience, reply, err);
		if (rc != -EKEYEXPIRED)
			return rc;
		c->authenticated = false;
		if (c->borrows) {
			c->token_refused = true;
			return error_set(err, EAGAIN,
				"etcd does not accept the token any more, and a new one is not here yet");
		}
		if (c->config.user[0] == '\0')
			break;
	}
	return -EACCES;
}

bool
etcd_gave_no_answer(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -EADDRNOTAVAIL || rc == -ENOKEY ||
		rc == -EKEYREJECTED || rc == -EKEYREVOKED;
}

static bool
another_may_do(int rc)
{
	return (rc != -ENOKEY && etcd_gave_no_answer(rc)) || rc == -EAGAIN || rc == -EPROTO;
}

int
etcd_call(struct etcd_client *c, const char *path, json_t *body, unsigned int timeout_ms,
	json_t **reply, struct error *err)
{
	unsigned int n = c->config.num_endpoints, attempt_ms, tries;
	struct error refusal = { "" };
	struct etcd_patience patience;
	uint64_t end = etcd_now_ms() + timeout_ms, now;
	int rc = -ENOMEM;

	*reply = NULL;
	c->attempts = 0;
	if (body == NULL)
		return error_set(err, ENOMEM, "no memory for a request to etcd");
	attempt_ms = n > 1 ? timeout_ms / (n < 3 ? n : 3) : timeout_ms;
	attempt_ms = attempt_ms < SILENCE_MAX_MS ? attempt_ms : SILENCE_MAX_MS;
	for (tries = 0;; tries++) {
		now = etcd_now_ms();
		patience.total = now < end ? (unsigned int)(end - now) : 0;
		patience.silence = attempt_ms;
		if (patience.total == 0 || (tries >= n && patience.total < ATTEMPT_MIN_MS))
			break;
		c->attempts++;
		rc = call_with_token(c, c->endpoint, path, body, patience, reply, err);
		if (!another_may_do(rc))
			break;
		if (rc == -EKEYREVOKED && err != NULL)
			refusal = *err;
		c->endpoint = (c->endpoint + 1) % n;
		if (tries % n == n - 1) /* all have failed: none is there, or they elect a leader */
			etcd_sleep_ms(50);
	}
	json_decref(body);
	/* a member that refuses us tells more than others that are down */
	if (etcd_gave_no_answer(rc) && refusal.text[0] != '\0') {
		*err = refusal;
		rc = -EKEYREVOKED;
	}
	return rc;
}

int
etcd_call_at(struct etcd_client *c, unsigned int endpoint, const char *path, json_t *body,
	unsigned int timeout_ms, json_t **reply, struct error *err)
{
	int rc = -ENOMEM;

	*reply = NULL;
	if (body == NULL)
		return error_set(err, ENOMEM, "no memory for a request to etcd");
	rc = call_with_token(c, endpoint, path, body,
		(struct etcd_patience){ timeout_ms, timeout_ms }, reply, err);
	json_decref(body);
	return rc;
}

const char *
etcd_client_token(const struct etcd_client *c)
{
	return c->token;
}

int
etcd_client_borrow(struct etcd_client *c, const char *token)
{
	c->borrows = true;
	if (strcmp(c->token, token) == 0)
		return 0;
	strcpy(c->token, token);
	return etcd_http_token(c, token);
}

bool
etcd_client_token_refused(struct etcd_client *c)
{
	bool refused = c->token_refused;

	c->token_refused = false;
	return refused;
}

void
etcd_client_forget_token(struct etcd_client *c)
{
	c->authenticated = false;
}

unsigned int
etcd_client_endpoint(const struct etcd_client *c)
{
	return c->endpoint;
}

/* --- create and destroy --- */

struct etcd_client *
etcd_client_create(const struct fleet_config *config, struct error *err)
{
	struct etcd_client *c = calloc(1, sizeof(*c));

	if (c != NULL) {
		c->config = *config;
		c->http = etcd_http_create(config);
		if (c->http != NULL)
			return c;
	}
	free(c);
	error_set(err, ENOMEM, "fleet: no memory for a client of etcd");
	return NULL;
}

void
etcd_client_destroy(struct etcd_client *c)
{
	if (c == NULL)
		return;
	etcd_http_destroy(c->http);
	free(c);
}
