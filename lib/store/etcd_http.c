/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Requests to etcd over libcurl, and the clock. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "store/etcd_http.h"

#define REPLY_MAX (64u << 20) /* bytes: a page of 10,000 records takes about 5 MB */

/* --- what the simulation has of its own: time and chance --- */

uint64_t
etcd_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
etcd_sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

int
etcd_random(uint64_t *value)
{
	return getrandom(value, sizeof(*value), 0) == (ssize_t)sizeof(*value) ? 0 : -EIO;
}

/* --- text --- */

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

/* --- requests --- */

static int
set_headers(struct etcd_http *h, const char *token)
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
	curl_slist_free_all(h->headers);
	h->headers = list;
	return 0;
}

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
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->http->headers);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 5L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->http->why);
	if (c->config.ca_file[0] != '\0') /* NULL would take libcurl's default away */
		curl_easy_setopt(easy, CURLOPT_CAINFO, c->config.ca_file);
	curl_easy_setopt(easy, CURLOPT_SSLCERT, file_or_null(c->config.cert_file));
	curl_easy_setopt(easy, CURLOPT_SSLKEY, file_or_null(c->config.key_file));
	c->http->why[0] = '\0';
}

/* A fatal alert of TLS is etcd's answer to our certificate, or to the lack of one. */
static bool
is_alert(CURLcode code, const char *why)
{
	return (code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SEND_ERROR ||
		       code == CURLE_RECV_ERROR) &&
		strstr(why, " alert ") != NULL;
}

static int
errno_of_curl(CURLcode code, const char *why)
{
	if (is_alert(code, why))
		return EKEYREVOKED;
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
	const char *why = c->http->why[0] != '\0' ? c->http->why : curl_easy_strerror(code);

	return error_set(err, errno_of_curl(code, why), "etcd at %s: %s",
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

	if (curl_multi_add_handle(c->http->calls, c->http->easy) != CURLM_OK)
		return CURLE_OUT_OF_MEMORY;
	for (;;) {
		curl_multi_perform(c->http->calls, &running);
		now = etcd_now_ms();
		if (bytes_moved(c->http->easy) != moved) {
			moved = bytes_moved(c->http->easy);
			quiet = now + patience.silence;
		}
		if (running == 0 || now >= end || now >= quiet)
			break;
		curl_multi_poll(c->http->calls, NULL, 0, (int)((end < quiet ? end : quiet) - now),
			NULL);
	}
	while ((msg = curl_multi_info_read(c->http->calls, &left)) != NULL)
		if (msg->msg == CURLMSG_DONE)
			code = msg->data.result;
	curl_multi_remove_handle(c->http->calls, c->http->easy);
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
	etcd_prepare(c, c->http->easy, endpoint, path);
	curl_easy_setopt(c->http->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request));
	curl_easy_setopt(c->http->easy, CURLOPT_POSTFIELDS, request);
	curl_easy_setopt(c->http->easy, CURLOPT_WRITEFUNCTION, take_reply);
	curl_easy_setopt(c->http->easy, CURLOPT_WRITEDATA, &text);
	code = perform(c, patience);
	curl_easy_getinfo(c->http->easy, CURLINFO_RESPONSE_CODE, &http);
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

/* --- create and destroy --- */

int
etcd_http_token(struct etcd_client *c, const char *token)
{
	return set_headers(c->http, token);
}

struct etcd_http *
etcd_http_create(const struct fleet_config *config)
{
	struct etcd_http *h = calloc(1, sizeof(*h));

	(void)config;
	/* counts its calls */
	if (h == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(h);
		return NULL;
	}
	h->easy = curl_easy_init();
	h->calls = curl_multi_init();
	h->multi = curl_multi_init();
	if (h->easy != NULL && h->calls != NULL && h->multi != NULL && set_headers(h, NULL) == 0)
		return h;
	etcd_http_destroy(h);
	return NULL;
}

void
etcd_http_destroy(struct etcd_http *h)
{
	if (h == NULL)
		return;
	curl_easy_cleanup(h->easy);
	curl_multi_cleanup(h->calls);
	curl_multi_cleanup(h->multi);
	curl_slist_free_all(h->headers);
	free(h);
	curl_global_cleanup();
}
