/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What etcd's JSON gateway writes: 64-bit integers as text, keys and values in base64, and nothing
 * for a field that is zero. The text comes from a network: everything is checked.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_client.h"

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *
etcd_base64(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;
	char *text = malloc((len + 2) / 3 * 4 + 1), *p = text;
	uint32_t v;
	size_t i;

	if (text == NULL)
		return NULL;
	for (i = 0; i < len; i += 3) {
		v = (uint32_t)b[i] << 16;
		v |= i + 1 < len ? (uint32_t)b[i + 1] << 8 : 0;
		v |= i + 2 < len ? b[i + 2] : 0;
		*p++ = digits64[v >> 18];
		*p++ = digits64[v >> 12 & 63];
		*p++ = i + 1 < len ? digits64[v >> 6 & 63] : '=';
		*p++ = i + 2 < len ? digits64[v & 63] : '=';
	}
	*p = '\0';
	return text;
}

static int
base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

ptrdiff_t
etcd_base64_decode(const char *text, size_t len, uint8_t *bytes)
{
	size_t pad = 0, i, n = 0;
	uint32_t v = 0;
	int d;

	if (len % 4 != 0)
		return -1;
	while (pad < 2 && pad < len && text[len - 1 - pad] == '=')
		pad++;
	for (i = 0; i < len; i++) {
		d = i < len - pad ? base64_digit(text[i]) : 0;
		if (d < 0)
			return -1;
		v = v << 6 | (uint32_t)d;
		if (i % 4 != 3)
			continue;
		bytes[n++] = (uint8_t)(v >> 16);
		if (i < len - 1 || pad < 2)
			bytes[n++] = (uint8_t)(v >> 8);
		if (i < len - 1 || pad < 1)
			bytes[n++] = (uint8_t)v;
		v = 0;
	}
	return (ptrdiff_t)n;
}

int
etcd_json_u64(const json_t *object, const char *key, uint64_t *value)
{
	const json_t *j = json_object_get(object, key);
	const char *text;
	char *end;

	*value = 0;
	if (j == NULL)
		return 0;
	if (json_is_integer(j) && json_integer_value(j) >= 0) {
		*value = (uint64_t)json_integer_value(j);
		return 0;
	}
	text = json_string_value(j);
	if (text == NULL || text[0] < '0' || text[0] > '9')
		return -EPROTO;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return *end == '\0' && errno == 0 ? 0 : -EPROTO;
}

int
etcd_json_header(const json_t *reply, struct etcd_header *h)
{
	const json_t *j = json_object_get(reply, "header");

	if (!json_is_object(j) || etcd_json_u64(j, "cluster_id", &h->cluster_id) != 0 ||
		etcd_json_u64(j, "revision", &h->revision) != 0)
		return -EPROTO;
	return h->cluster_id != 0 ? 0 : -EPROTO;
}

/* Decode a member in base64. @return new memory with a NUL behind it, or NULL */
static uint8_t *
json_bytes(const json_t *object, const char *key, size_t *len)
{
	const json_t *j = json_object_get(object, key);
	size_t n = j != NULL ? json_string_length(j) : 0;
	ptrdiff_t got;
	uint8_t *bytes;

	if (j != NULL && !json_is_string(j))
		return NULL;
	bytes = malloc(n / 4 * 3 + 1);
	if (bytes == NULL)
		return NULL;
	got = etcd_base64_decode(j != NULL ? json_string_value(j) : "", n, bytes);
	if (got < 0) {
		free(bytes);
		return NULL;
	}
	bytes[got] = '\0';
	*len = (size_t)got;
	return bytes;
}

static int
json_kv(const json_t *j, struct etcd_kv *kv)
{
	if (!json_is_object(j))
		return -EPROTO;
	kv->key = (char *)json_bytes(j, "key", &kv->key_len);
	kv->value = json_bytes(j, "value", &kv->value_len);
	if (kv->key == NULL || kv->value == NULL || kv->key_len == 0 ||
		strlen(kv->key) != kv->key_len)
		return -EPROTO;
	if (etcd_json_u64(j, "create_revision", &kv->create_revision) != 0)
		return -EPROTO;
	return etcd_json_u64(j, "mod_revision", &kv->mod_revision);
}

void
etcd_kvs_free(struct etcd_kvs *kvs)
{
	size_t i;

	for (i = 0; i < kvs->n; i++) {
		free(kvs->at[i].key);
		free(kvs->at[i].value);
	}
	free(kvs->at);
	*kvs = (struct etcd_kvs){ NULL, 0 };
}

const struct etcd_kv *
etcd_kvs_find(const struct etcd_kvs *kvs, const char *key)
{
	size_t i;

	for (i = 0; i < kvs->n; i++)
		if (strcmp(kvs->at[i].key, key) == 0)
			return &kvs->at[i];
	return NULL;
}

static int
kvs_reserve(const json_t *list, struct etcd_kvs *kvs)
{
	*kvs = (struct etcd_kvs){ NULL, 0 };
	if (list == NULL || json_is_null(list))
		return 0;
	if (!json_is_array(list))
		return -EPROTO;
	if (json_array_size(list) == 0)
		return 0;
	kvs->at = calloc(json_array_size(list), sizeof(kvs->at[0]));
	return kvs->at != NULL ? 0 : -ENOMEM;
}

int
etcd_json_kvs(const json_t *list, struct etcd_kvs *kvs)
{
	int rc = kvs_reserve(list, kvs);

	while (rc == 0 && kvs->n < json_array_size(list)) {
		rc = json_kv(json_array_get(list, kvs->n), &kvs->at[kvs->n]);
		kvs->n++;
	}
	if (rc != 0)
		etcd_kvs_free(kvs);
	return rc;
}

int
etcd_json_got(const json_t *reply, struct etcd_kvs *kvs, struct error *err)
{
	const json_t *first = json_array_get(json_object_get(reply, "responses"), 0);
	const json_t *range = json_object_get(first, "response_range");

	if (etcd_json_kvs(json_object_get(range, "kvs"), kvs) != 0)
		return error_set(err, EPROTO, "etcd's answer lacks what its API promises");
	return 0;
}

/* --- watches --- */

static int
json_event(const json_t *j, struct etcd_kv *kv)
{
	const json_t *type = json_object_get(j, "type");
	const char *word = json_string_value(type);
	int rc;

	if (!json_is_object(j))
		return -EPROTO;
	rc = json_kv(json_object_get(j, "kv"), kv);
	if (rc != 0)
		return rc;
	if (type == NULL || (word != NULL && strcmp(word, "PUT") == 0))
		return 0;
	if (word == NULL || strcmp(word, "DELETE") != 0)
		return -EPROTO;
	kv->gone = true;
	return 0;
}

static int
json_events(const json_t *list, struct etcd_kvs *kvs)
{
	int rc = kvs_reserve(list, kvs);

	while (rc == 0 && kvs->n < json_array_size(list)) {
		rc = json_event(json_array_get(list, kvs->n), &kvs->at[kvs->n]);
		kvs->n++;
	}
	if (rc != 0)
		etcd_kvs_free(kvs);
	return rc;
}

int
etcd_json_watched(const char *text, size_t len, struct etcd_watched *w, struct error *err)
{
	json_t *top = json_loadb(text, len, 0, NULL);
	const json_t *result = json_object_get(top, "result");
	int rc = -EPROTO;

	memset(w, 0, sizeof(*w));
	if (top != NULL && result == NULL) {
		rc = etcd_json_error(0, text, len, err);
		goto out;
	}
	if (!json_is_object(result) || etcd_json_header(result, &w->header) != 0 ||
		etcd_json_u64(result, "compact_revision", &w->compact_revision) != 0)
		goto bad;
	w->created = json_is_true(json_object_get(result, "created"));
	w->canceled = json_is_true(json_object_get(result, "canceled"));
	rc = json_events(json_object_get(result, "events"), &w->events);
	if (rc == 0)
		goto out;
bad:
	error_set(err, EPROTO, "etcd's watch has sent what is no message of it");
out:
	json_decref(top);
	return rc;
}

void
etcd_watched_free(struct etcd_watched *w)
{
	etcd_kvs_free(&w->events);
}

/* --- errors --- */

#define QUOTA " (its quota, --quota-backend-bytes)"

static bool
contains(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* gRPC's status codes, and texts where one code has several meanings (etcd: rpctypes/error.go). */
static int
errno_of(uint64_t code, long http, const char *text)
{
	if (contains(text, "invalid auth token") || contains(text, "revision in header is old"))
		return EKEYEXPIRED;
	if (contains(text, "too many operations") || contains(text, "request is too large") ||
		contains(text, "larger than max")) /* gRPC's limit */
		return E2BIG;
	if (contains(text, "user name is empty")) /* etcd asks for a password */
		return EACCES;
	switch (code) {
	case 4: /* DeadlineExceeded */
	case 14: /* Unavailable */
		return EAGAIN;
	case 5: /* NotFound */
		return ENOENT;
	case 7: /* PermissionDenied */
		return EACCES;
	case 8: /* ResourceExhausted */
		return contains(text, "too many requests") ? EAGAIN : ENOSPC;
	case 11: /* OutOfRange: compacted, or a revision of the future */
		return ESTALE;
	case 16: /* Unauthenticated */
		return EKEYEXPIRED;
	default:
		return http >= 500 ? EAGAIN : EINVAL;
	}
}

int
etcd_json_error(long http, const char *text, size_t len, struct error *err)
{
	json_t *top = json_loadb(text, len, 0, NULL);
	const json_t *error = json_object_get(top, "error");
	/* in a stream, the status is an object of its own */
	const json_t *status = json_is_object(error) ? error : top;
	const char *message = json_string_value(json_object_get(status, "message"));
	bool is_grpc = json_object_get(status, "grpc_code") != NULL; /* so etcd 3.4 in a stream */
	uint64_t code = 0;
	int rc;

	if (message == NULL)
		message = json_string_value(error);
	if (etcd_json_u64(status, is_grpc ? "grpc_code" : "code", &code) != 0)
		code = 0;
	if (message != NULL)
		rc = error_set(err, errno_of(code, http, message), "etcd: %.200s%s", message,
			contains(message, "space exceeded") ? QUOTA : "");
	else
		rc = error_set(err, http >= 500 ? EAGAIN : EPROTO,
			"etcd: HTTP status %ld without an explanation", http);
	json_decref(top);
	return rc;
}
