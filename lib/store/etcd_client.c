/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requests to etcd's JSON gateway. A request goes to the endpoint that answered last; if it fails,
 * the next endpoint gets it, until the caller's time is over. One that etcd has executed although
 * its answer was lost is sent again, so callers make sure that this has no second effect.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/etcd_http.h"

#define REPLY_MAX       (64u << 20) /* bytes: a page of 10,000 records takes about 5 MB */
#define ATTEMPT_MIN_MS  200
#define PASSWORD_MAX    256
#define AUTH_TIMEOUT_MS 3000
#define SILENCE_MAX_MS  3500 /* after which the next endpoint is asked, at the latest */

uint64_t
etcd_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int
etcd_text_add(struct etcd_text *t, const void *bytes, size_t len, size_t max)
{
	size_t room = t->room != 0 ? t->room : 4096;
	char *at;

	if (len > max - t->len)
		return -EMSGSIZE;
	while (room < t->len + len + 1)
		room *= 2;
	if (room != t->room) {
		at = realloc(t->at, room);
		if (at == NULL)
			return -ENOMEM;
		t->at = at;
		t->room = room;
	}
	memcpy(t->at + t->len, bytes, len);
	t->len += len;
	t->at[t->len] = '\0';
	return 0;
}

static size_t
take_reply(char *bytes, size_t size, size_t n, void *arg)
{
	struct etcd_text *reply = arg;

	(void)size;
	return etcd_text_add(reply, bytes, n, REPLY_MAX) == 0 ? n : 0;
}

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
set_headers(struct etcd_client *c, const char *token)
{
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
	char line[ETCD_TOKEN_MAX + 32];

	/* no wait for "100 Continue" before a large body */
	if (list != NULL)
		list = curl_slist_append(list, "Expect:");
	if (list != NULL && token != NULL) {
		snprintf(line, sizeof(line), "Authorization: %s", token);
		list = curl_slist_append(list, line);
	}
	if (list == NULL)
		return -ENOMEM;
	curl_slist_free_all(c->headers);
	c->headers = list;
	return 0;
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
	rc = set_headers(c, NULL);
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
		rc = set_headers(c, token);
	}
	c->authenticated = rc == 0;
	json_decref(reply);
	return rc;
}

/* --- requests --- */

static const char *
file_or_null(const char *path)
{
	return path[0] != '\0' ? path : NULL;
}

void
etcd_prepare(struct etcd_client *c, CURL *easy, unsigned int endpoint, const char *path)
{
	char url[FLEET_TEXT_MAX + 64];

	snprintf(url, sizeof(url), "%s%s", c->config.endpoint[endpoint].url, path);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 5L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->why);
	if (c->config.ca_file[0] != '\0') /* NULL would take libcurl's default away */
		curl_easy_setopt(easy, CURLOPT_CAINFO, c->config.ca_file);
	curl_easy_setopt(easy, CURLOPT_SSLCERT, file_or_null(c->config.cert_file));
	curl_easy_setopt(easy, CURLOPT_SSLKEY, file_or_null(c->config.key_file));
	c->why[0] = '\0';
}

static int
errno_of_curl(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return ETIMEDOUT;
	case CURLE_WRITE_ERROR:
		return EMSGSIZE;
	case CURLE_COULDNT_RESOLVE_HOST:
		return EADDRNOTAVAIL;
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return ENOKEY;
	case CURLE_PEER_FAILED_VERIFICATION:
		return EKEYREJECTED;
	default:
		return ECONNREFUSED;
	}
}

int
etcd_curl_error(struct etcd_client *c, unsigned int endpoint, CURLcode code, struct error *err)
{
	const char *why = c->why[0] != '\0' ? c->why : curl_easy_strerror(code);

	return error_set(err, errno_of_curl(code), "etcd at %s: %s",
		c->config.endpoint[endpoint].url, why);
}

/* Bytes that a request has moved so far. */
static curl_off_t
bytes_moved(CURL *easy)
{
	curl_off_t up = 0, down = 0;

	curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &up);
	curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
	return up + down;
}

/* Perform a request that is set up. One that moves bytes may take longer than a silent one. */
static CURLcode
perform(struct etcd_client *c, struct etcd_patience patience)
{
	uint64_t end = etcd_now_ms() + patience.total, quiet = etcd_now_ms() + patience.silence,
		 now;
	CURLcode code = CURLE_OPERATION_TIMEDOUT;
	curl_off_t moved = 0;
	int running = 1, left;
	CURLMsg *msg;

	if (curl_multi_add_handle(c->calls, c->easy) != CURLM_OK)
		return CURLE_OUT_OF_MEMORY;
	for (;;) {
		curl_multi_perform(c->calls, &running);
		now = etcd_now_ms();
		if (bytes_moved(c->easy) != moved) {
			moved = bytes_moved(c->easy);
			quiet = now + patience.silence;
		}
		if (running == 0 || now >= end || now >= quiet)
			break;
		curl_multi_poll(c->calls, NULL, 0, (int)((end < quiet ? end : quiet) - now), NULL);
	}
	while ((msg = curl_multi_info_read(c->calls, &left)) != NULL)
		if (msg->msg == CURLMSG_DONE)
			code = msg->data.result;
	curl_multi_remove_handle(c->calls, c->easy);
	return code;
}

/* One request to one endpoint. */
int
etcd_send(struct etcd_client *c, unsigned int endpoint, const char *path, const json_t *body,
	struct etcd_patience patience, json_t **reply, struct error *err)
{
	struct etcd_text text = { NULL, 0, 0 };
	char *request = json_dumps(body, JSON_COMPACT);
	long http = 0;
	CURLcode code;
	int rc;

	*reply = NULL;
	if (request == NULL)
		return error_set(err, ENOMEM, "no memory for a request to etcd");
	etcd_prepare(c, c->easy, endpoint, path);
	curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request));
	curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, request);
	curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, take_reply);
	curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, &text);
	code = perform(c, patience);
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &http);
	if (code != CURLE_OK)
		rc = etcd_curl_error(c, endpoint, code, err);
	else if (http != 200)
		rc = etcd_json_error(http, text.at != NULL ? text.at : "", text.len, err);
	else if ((*reply = json_loadb(text.at != NULL ? text.at : "", text.len, 0, NULL)) == NULL)
		rc = error_set(err, EPROTO, "etcd at %s: its answer is no JSON",
			c->config.endpoint[endpoint].url);
	else
		rc = 0;
	free(request);
	free(text.at);
	return rc;
}

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
		if (c->borrows)
			return error_set(err, EACCES, "etcd does not accept the token any more");
		if (c->config.user[0] == '\0')
			break;
	}
	return -EACCES;
}

bool
etcd_gave_no_answer(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -EADDRNOTAVAIL || rc == -ENOKEY ||
		rc == -EKEYREJECTED;
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
	struct etcd_patience patience;
	uint64_t end = etcd_now_ms() + timeout_ms, now;
	int rc = -ENOMEM;

	*reply = NULL;
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
		rc = call_with_token(c, c->endpoint, path, body, patience, reply, err);
		if (!another_may_do(rc))
			break;
		c->endpoint = (c->endpoint + 1) % n;
		if (tries % n == n - 1) /* all have failed: none is there, or they elect a leader */
			usleep(50000);
	}
	json_decref(body);
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
	return set_headers(c, token);
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

	/* counts its calls */
	if (c == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(c);
		error_set(err, ENOMEM, "fleet: no memory for a client of etcd");
		return NULL;
	}
	c->config = *config;
	c->easy = curl_easy_init();
	c->calls = curl_multi_init();
	c->multi = curl_multi_init();
	if (c->easy == NULL || c->calls == NULL || c->multi == NULL || set_headers(c, NULL) != 0) {
		etcd_client_destroy(c);
		error_set(err, ENOMEM, "fleet: no memory for a client of etcd");
		return NULL;
	}
	return c;
}

void
etcd_client_destroy(struct etcd_client *c)
{
	if (c == NULL)
		return;
	curl_easy_cleanup(c->easy);
	curl_multi_cleanup(c->calls);
	curl_multi_cleanup(c->multi);
	curl_slist_free_all(c->headers);
	free(c);
	curl_global_cleanup();
}
