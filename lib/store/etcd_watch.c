/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A watch: one request whose answer does not end. The gateway writes one JSON object per line.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_http.h"

#define LINE_MAX_BYTES (256u << 20) /* up to 1,000 transactions when a watch catches up */

struct etcd_watch {
	struct etcd_client *client;
	CURL *easy;
	unsigned int endpoint;
	char *request;
	struct curl_slist *headers; /* the client's may change meanwhile */
	struct etcd_text line; /* the part of a line that has arrived */
	etcd_watch_fn fn;
	etcd_watch_full_fn full;
	void *arg;
	uint64_t received; /* bytes */
	bool paused; /* libcurl keeps what it has read, and reads no more */
	int result; /* the first error */
	struct error err;
};

static int
handle_line(struct etcd_watch *w)
{
	struct etcd_watched message;
	long http = 0;
	int rc;

	curl_easy_getinfo(w->easy, CURLINFO_RESPONSE_CODE, &http);
	if (http != 200)
		return etcd_json_error(http, w->line.at, w->line.len, &w->err);
	rc = etcd_json_watched(w->line.at, w->line.len, &message, &w->err);
	if (rc != 0)
		return rc;
	if (message.compact_revision != 0)
		rc = error_set(&w->err, ESTALE,
			"etcd has compacted revision %" PRIu64 " and older ones",
			message.compact_revision);
	else if (message.canceled)
		rc = error_set(&w->err, ECANCELED, "etcd has ended the watch");
	else
		rc = w->fn(w->arg, &message);
	etcd_watched_free(&message);
	return rc;
}

static size_t
take_watched(char *bytes, size_t size, size_t n, void *arg)
{
	struct etcd_watch *w = arg;
	size_t at = 0, len;
	char *end;

	(void)size;
	if (w->full(w->arg)) {
		w->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	w->received += n;
	while (at < n && w->result == 0) {
		end = memchr(bytes + at, '\n', n - at);
		len = (end != NULL ? (size_t)(end - bytes) : n) - at;
		w->result = etcd_text_add(&w->line, bytes + at, len, LINE_MAX_BYTES);
		if (w->result == 0 && end != NULL) {
			w->result = handle_line(w);
			w->line.len = 0;
		}
		at += len + (end != NULL ? 1 : 0);
	}
	return w->result == 0 ? n : 0;
}

static char *
etcd_watch_body(const char *first, const char *end, uint64_t revision)
{
	char *key = etcd_base64(first, strlen(first)), *to = etcd_base64(end, strlen(end));
	char *text = NULL;

	if (key == NULL || to == NULL ||
		asprintf(&text,
			"{\"create_request\": {\"key\": \"%s\", \"range_end\": \"%s\", "
			"\"start_revision\": \"%" PRIu64 "\", \"progress_notify\": true}}",
			key, to, revision) < 0)
		text = NULL;
	free(key);
	free(to);
	return text;
}

static struct curl_slist *
copy_headers(const struct curl_slist *from)
{
	struct curl_slist *to = NULL, *longer;

	for (; from != NULL; from = from->next) {
		longer = curl_slist_append(to, from->data);
		if (longer == NULL) {
			curl_slist_free_all(to);
			return NULL;
		}
		to = longer;
	}
	return to;
}

static void
watch_free(struct etcd_watch *w)
{
	if (w == NULL)
		return;
	curl_easy_cleanup(w->easy);
	curl_slist_free_all(w->headers);
	free(w->request);
	free(w->line.at);
	free(w);
}

struct etcd_watch *
etcd_watch_start(struct etcd_client *c, const char *first, const char *end, uint64_t revision,
	etcd_watch_fn fn, etcd_watch_full_fn full, void *arg, struct error *err)
{
	struct etcd_watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		goto fail;
	w->client = c;
	w->fn = fn;
	w->full = full;
	w->arg = arg;
	w->endpoint = c->endpoint;
	w->request = etcd_watch_body(first, end, revision);
	w->easy = curl_easy_init();
	w->headers = copy_headers(c->http->headers);
	if (w->request == NULL || w->easy == NULL || w->headers == NULL)
		goto fail;
	etcd_prepare(c, w->easy, c->endpoint, "/v3/watch");
	curl_easy_setopt(w->easy, CURLOPT_HTTPHEADER, w->headers);
	curl_easy_setopt(w->easy, CURLOPT_POSTFIELDS, w->request);
	curl_easy_setopt(w->easy, CURLOPT_CONNECTTIMEOUT_MS, 1000L);
	curl_easy_setopt(w->easy, CURLOPT_WRITEFUNCTION, take_watched);
	curl_easy_setopt(w->easy, CURLOPT_WRITEDATA, w);
	if (curl_multi_add_handle(c->http->multi, w->easy) == CURLM_OK)
		return w;
fail:
	watch_free(w);
	error_set(err, ENOMEM, "no memory for a watch of etcd");
	return NULL;
}

/* @return what ended the watch, or 0 if it goes on */
static int
watch_result(struct etcd_client *c, struct etcd_watch *w, struct error *err)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(c->http->multi, &left)) != NULL) {
		if (w == NULL || msg->easy_handle != w->easy || msg->msg != CURLMSG_DONE ||
			w->result != 0)
			continue;
		if (w->line.len > 0 &&
			msg->data.result == CURLE_OK) /* an error without a newline */
			w->result = handle_line(w);
		if (w->result == 0)
			w->result = etcd_curl_error(c, w->endpoint, msg->data.result, &w->err);
	}
	if (w == NULL || w->result == 0)
		return 0;
	if (w->result == -EKEYEXPIRED)
		c->authenticated = false;
	if (w->err.text[0] == '\0')
		return error_set(err, -w->result, "etcd's watch: %s", strerror(-w->result));
	return error_set(err, -w->result, "%s", w->err.text);
}

int
etcd_watch_poll(struct etcd_client *c, struct etcd_watch *watch, unsigned int wait_ms,
	struct error *err)
{
	int running;

	if (watch != NULL && watch->paused && !watch->full(watch->arg)) {
		watch->paused = false;
		curl_easy_pause(watch->easy, CURLPAUSE_CONT);
	}
	curl_multi_perform(c->http->multi, &running);
	if (watch == NULL || watch->result == 0) {
		curl_multi_poll(c->http->multi, NULL, 0, (int)wait_ms, NULL);
		curl_multi_perform(c->http->multi, &running);
	}
	return watch_result(c, watch, err);
}

uint64_t
etcd_watch_received(const struct etcd_watch *w)
{
	return w != NULL ? w->received : 0;
}

void
etcd_watch_stop(struct etcd_watch *w)
{
	if (w == NULL)
		return;
	curl_multi_remove_handle(w->client->http->multi, w->easy);
	watch_free(w);
}

void
etcd_client_wake(struct etcd_client *c)
{
	curl_multi_wakeup(c->http->multi);
}
