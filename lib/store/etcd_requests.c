/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The requests to etcd that a fleet makes, by the names of etcd's API. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_client.h"

/* A member with a text in base64; a failed allocation leaves the object without it. */
static void
json_set_base64(json_t *object, const char *name, const void *bytes, size_t len)
{
	char *text = etcd_base64(bytes, len);

	if (text != NULL)
		json_object_set_new(object, name, json_string(text));
	free(text);
}

static void
set_u64(json_t *object, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	json_object_set_new(object, name, json_string(text));
}

static json_t *
key_range(const char *first, const char *end)
{
	json_t *j = json_object();

	json_set_base64(j, "key", first, strlen(first));
	if (end != NULL)
		json_set_base64(j, "range_end", end, strlen(end));
	return j;
}

json_t *
etcd_compare(const char *key, const char *target, const char *field, uint64_t revision)
{
	json_t *j = key_range(key, NULL);

	json_object_set_new(j, "target", json_string(target));
	json_object_set_new(j, "result", json_string("EQUAL"));
	set_u64(j, field, revision);
	return j;
}

json_t *
etcd_put(const char *key, const void *value, size_t len, uint64_t lease)
{
	json_t *j = key_range(key, NULL);

	json_set_base64(j, "value", value, len);
	if (lease != 0)
		set_u64(j, "lease", lease);
	return json_pack("{s:o}", "request_put", j);
}

json_t *
etcd_delete(const char *key)
{
	return json_pack("{s:o}", "request_delete_range", key_range(key, NULL));
}

json_t *
etcd_delete_range(const char *first, const char *end)
{
	return json_pack("{s:o}", "request_delete_range", key_range(first, end));
}

json_t *
etcd_get(const char *first, const char *end)
{
	return json_pack("{s:o}", "request_range", key_range(first, end));
}

static int
etcd_lacks(struct error *err)
{
	return error_set(err, EPROTO, "etcd's answer lacks what its API promises");
}

int
etcd_range(struct etcd_client *c, const char *first, const char *end, uint64_t revision,
	uint32_t limit, unsigned int timeout_ms, struct etcd_header *h, struct etcd_kvs *kvs,
	bool *more, struct error *err)
{
	json_t *body = key_range(first, end), *reply;
	int rc;

	*kvs = (struct etcd_kvs){ NULL, 0 };
	if (revision != 0)
		set_u64(body, "revision", revision);
	if (limit != 0)
		set_u64(body, "limit", limit);
	rc = etcd_call(c, "/v3/kv/range", body, timeout_ms, &reply, err);
	if (rc != 0)
		return rc;
	if (etcd_json_header(reply, h) != 0)
		rc = etcd_lacks(err);
	else if (etcd_json_kvs(json_object_get(reply, "kvs"), kvs) != 0)
		rc = etcd_lacks(err);
	if (more != NULL)
		*more = json_is_true(json_object_get(reply, "more"));
	json_decref(reply);
	return rc;
}

int
etcd_lease_grant(struct etcd_client *c, uint32_t seconds, unsigned int timeout_ms, uint64_t *lease,
	struct error *err)
{
	json_t *body = json_object(), *reply;
	int rc;

	set_u64(body, "TTL", seconds);
	rc = etcd_call(c, "/v3/lease/grant", body, timeout_ms, &reply, err);
	if (rc != 0)
		return rc;
	if (etcd_json_u64(reply, "ID", lease) != 0 || *lease == 0)
		rc = etcd_lacks(err);
	json_decref(reply);
	return rc;
}

int
etcd_lease_keep(struct etcd_client *c, uint64_t lease, unsigned int timeout_ms, struct error *err)
{
	json_t *body = json_object(), *reply, *result;
	uint64_t ttl;
	int rc;

	set_u64(body, "ID", lease);
	rc = etcd_call(c, "/v3/lease/keepalive", body, timeout_ms, &reply, err);
	if (rc != 0)
		return rc;
	result = json_object_get(reply, "result"); /* the first message of a stream */
	if (!json_is_object(result) || etcd_json_u64(result, "TTL", &ttl) != 0)
		rc = etcd_lacks(err);
	else if (ttl == 0)
		rc = error_set(err, ENOENT, "etcd: the lease has ended");
	json_decref(reply);
	return rc;
}

int
etcd_lease_revoke(struct etcd_client *c, uint64_t lease, unsigned int timeout_ms, struct error *err)
{
	json_t *body = json_object(), *reply;
	int rc;

	set_u64(body, "ID", lease);
	rc = etcd_call(c, "/v3/lease/revoke", body, timeout_ms, &reply, err);
	json_decref(reply);
	return rc;
}
