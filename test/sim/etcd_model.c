/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd_model.h"
#include "store/etcd_client.h"

#define CLUSTER    "77"
#define KEY_MAX    512
#define VALUE_MAX  (2u << 20)
#define NS_PER_SEC UINT64_C(1000000000)

/* --- keys --- */

size_t
etcd_model_key(const struct etcd_model *m, const char *key)
{
	size_t low = 0, high = m->keys, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (strcmp(m->key[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct model_event *
event_of_key(const struct etcd_model *m, const struct model_key *k, uint64_t revision)
{
	const struct model_event *e = &m->event[k->last];

	while (e->revision > revision) {
		if (e->before == 0)
			return NULL;
		e = &m->event[e->before - 1];
	}
	return e->value != NULL ? e : NULL;
}

const struct model_event *
etcd_model_at(const struct etcd_model *m, const char *key, uint64_t revision)
{
	size_t i = etcd_model_key(m, key);

	if (i == m->keys || strcmp(m->key[i].key, key) != 0)
		return NULL;
	return event_of_key(m, &m->key[i], revision);
}

size_t
etcd_model_first(const struct etcd_model *m, uint64_t revision)
{
	size_t low = 0, high = m->events, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (m->event[middle].revision < revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void *
model_grow(void *at, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return at;
	*room = *room != 0 ? 2 * *room : 256;
	at = realloc(at, *room * size);
	if (at == NULL)
		abort();
	return at;
}

/* @param value  NULL: the key is removed */
static void
model_write(struct etcd_model *m, const char *key, const void *value, size_t len, uint64_t lease,
	uint64_t revision)
{
	size_t i = etcd_model_key(m, key);
	bool known = i < m->keys && strcmp(m->key[i].key, key) == 0;
	const struct model_event *old = known ? event_of_key(m, &m->key[i], revision) : NULL;
	struct model_event e = { .len = len, .revision = revision, .lease = lease };

	e.created = old != NULL ? old->created : revision;
	e.key = strdup(key);
	e.before = known ? m->key[i].last + 1 : 0;
	if (value != NULL) {
		e.value = malloc(len + 1);
		memcpy(e.value, value, len);
		e.value[len] = '\0';
	}
	m->event = model_grow(m->event, m->events, &m->events_room, sizeof(e));
	m->event[m->events] = e;
	if (!known) {
		m->key = model_grow(m->key, m->keys, &m->keys_room, sizeof(m->key[0]));
		memmove(&m->key[i + 1], &m->key[i], (m->keys - i) * sizeof(m->key[0]));
		m->keys++;
	}
	m->key[i] = (struct model_key){ e.key, m->events++ };
	if (m->wrote != NULL)
		m->wrote(m->arg, &m->event[m->events - 1]);
}

/* --- JSON --- */

static json_t *
model_number(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return json_string(text);
}

static void
model_set_bytes(json_t *j, const char *name, const void *bytes, size_t len)
{
	char *text = etcd_base64(bytes, len);

	json_object_set_new(j, name, json_string(text));
	free(text);
}

/* A member in base64, with a NUL behind it. @return its length */
static size_t
get_bytes(const json_t *j, const char *name, char *bytes, size_t size)
{
	const char *text = json_string_value(json_object_get(j, name));
	ptrdiff_t n = 0;

	if (text != NULL) {
		if (strlen(text) / 4 * 3 >= size)
			abort();
		n = etcd_base64_decode(text, strlen(text), (uint8_t *)bytes);
		if (n < 0)
			abort();
	}
	bytes[n] = '\0';
	return (size_t)n;
}

static uint64_t
get_number(const json_t *j, const char *name)
{
	uint64_t value;

	if (etcd_json_u64(j, name, &value) != 0)
		abort();
	return value;
}

static json_t *
model_header(uint64_t revision)
{
	json_t *j = json_object();

	json_object_set_new(j, "cluster_id", json_string(CLUSTER));
	json_object_set_new(j, "revision", model_number(revision));
	return j;
}

static json_t *
model_kv(const struct model_event *e)
{
	json_t *j = json_object();

	model_set_bytes(j, "key", e->key, strlen(e->key));
	model_set_bytes(j, "value", e->value, e->len);
	json_object_set_new(j, "create_revision", model_number(e->created));
	json_object_set_new(j, "mod_revision", model_number(e->revision));
	return j;
}

/* --- requests --- */

/* True for a key from `first` on that is in the range: before `end`, or `first` alone. */
static bool
key_is_in_range(const char *key, const char *first, const char *end)
{
	return end[0] != '\0' ? strcmp(key, end) < 0 : strcmp(key, first) == 0;
}

static bool
key_is_hidden(const struct etcd_model *m, const char *key)
{
	return m->plant == PLANT_MEMBER_HIDDEN && strcmp(key, "/p/m/a1") == 0;
}

static json_t *
model_range(struct etcd_model *m, const json_t *q, const char **error)
{
	uint64_t revision = get_number(q, "revision"), limit = get_number(q, "limit");
	uint64_t at = revision != 0 ? revision : m->revision;
	json_t *j, *kvs = json_array();
	char first[KEY_MAX], end[KEY_MAX];
	const struct model_event *e;
	bool more = false;
	size_t i;

	if (revision != 0 && (revision < m->compacted || revision > m->revision)) {
		json_decref(kvs);
		*error = "{\"error\":\"etcdserver: mvcc: required revision has been compacted\","
			 "\"code\":11}";
		return NULL;
	}
	get_bytes(q, "key", first, sizeof(first));
	get_bytes(q, "range_end", end, sizeof(end));
	for (i = etcd_model_key(m, first); i < m->keys && !more; i++) {
		if (!key_is_in_range(m->key[i].key, first, end))
			break;
		e = event_of_key(m, &m->key[i], at);
		if (e == NULL || (end[0] != '\0' && key_is_hidden(m, e->key)))
			continue;
		if (limit != 0 && json_array_size(kvs) == limit)
			more = true;
		else
			json_array_append_new(kvs, model_kv(e));
	}
	j = json_object();
	json_object_set_new(j, "header", model_header(m->revision));
	json_object_set_new(j, "kvs", kvs);
	if (more)
		json_object_set_new(j, "more", json_true());
	return j;
}

static bool
lease_is_known(const struct etcd_model *m, uint64_t id)
{
	return id == 0 || (id < m->leases && m->lease[id].seconds != 0);
}

bool
etcd_model_is_kind(const char *key, char kind)
{
	return strlen(key) > 4 && strncmp(key, "/p/", 3) == 0 && key[3] == kind;
}

/* A request for an import, or its answer: its ID has no class version and no method (put_id()). */
static bool
key_is_of_import(const char *key)
{
	return (etcd_model_is_kind(key, 'a') || etcd_model_is_kind(key, 'q')) &&
		strlen(key) > 5 + 48 && strncmp(key + 5 + 44, "0000", 4) == 0;
}

static bool
compare_holds(const struct etcd_model *m, const json_t *c)
{
	const char *target = json_string_value(json_object_get(c, "target"));
	const struct model_event *e;
	char key[KEY_MAX];

	get_bytes(c, "key", key, sizeof(key));
	if (m->plant == PLANT_NO_FENCE && strcmp(key, "/p/c/leader") == 0 &&
		get_number(c, "create_revision") != 0)
		return true;
	if (m->plant == PLANT_TWICE &&
		(etcd_model_is_kind(key, 'a') || etcd_model_is_kind(key, 'q')))
		return true;
	if (m->plant == PLANT_IMPORT_TWICE && key_is_of_import(key))
		return true;
	e = etcd_model_at(m, key, m->revision);
	if (strcmp(target, "MOD") == 0)
		return (e != NULL ? e->revision : 0) == get_number(c, "mod_revision");
	if (strcmp(target, "CREATE") == 0)
		return (e != NULL ? e->created : 0) == get_number(c, "create_revision");
	if (strcmp(target, "LEASE") == 0)
		return (e != NULL ? e->lease : 0) == get_number(c, "lease");
	abort(); /* a fleet compares nothing else */
}

static const json_t *
branch_of(const struct etcd_model *m, const json_t *q, bool *good)
{
	const json_t *list = json_object_get(q, "compare");
	size_t i;

	*good = true;
	for (i = 0; i < json_array_size(list) && *good; i++)
		*good = compare_holds(m, json_array_get(list, i));
	return json_object_get(q, *good ? "success" : "failure");
}

/* The error that etcd has for a transaction before it executes any of it, or NULL. */
static const char *
model_txn_error(const struct etcd_model *m, const json_t *q)
{
	const char *error = NULL;
	const json_t *ops, *put, *inner;
	bool good;
	size_t i;

	if (json_array_size(json_object_get(q, "compare")) > m->max_ops ||
		json_array_size(json_object_get(q, "success")) > m->max_ops)
		return "{\"error\":\"etcdserver: too many operations in txn request\",\"code\":3}";
	ops = branch_of(m, q, &good);
	for (i = 0; i < json_array_size(ops) && error == NULL; i++) {
		put = json_object_get(json_array_get(ops, i), "request_put");
		inner = json_object_get(json_array_get(ops, i), "request_txn");
		if (inner != NULL)
			error = model_txn_error(m, inner);
		else if (put != NULL && !lease_is_known(m, get_number(put, "lease")))
			error = "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}";
	}
	return error;
}

static json_t *model_txn(struct etcd_model *m, const json_t *q, uint64_t revision, bool *wrote,
	const char **error);

/* Take the key of the record before it in the same table. */
static void
take_wrong_key(const struct etcd_model *m, char key[KEY_MAX], uint64_t revision)
{
	size_t table = strlen("/p/r/00"), i = etcd_model_key(m, key);

	if (strncmp(key, "/p/r/", 5) != 0 || i == 0 || revision % 4 != 0 ||
		strncmp(m->key[i - 1].key, key, table) != 0 ||
		event_of_key(m, &m->key[i - 1], revision) == NULL)
		return;
	snprintf(key, KEY_MAX, "%s", m->key[i - 1].key);
}

static json_t *
model_put(struct etcd_model *m, const json_t *put, uint64_t revision)
{
	static char value[VALUE_MAX];
	const struct model_event *old;
	char key[KEY_MAX];
	size_t len;

	get_bytes(put, "key", key, sizeof(key));
	if (m->plant == PLANT_WRONG_KEY)
		take_wrong_key(m, key, revision);
	if (json_is_true(json_object_get(put, "ignore_value"))) {
		old = etcd_model_at(m, key, revision);
		if (old == NULL)
			return json_object(); /* only with PLANT_TWICE */
		memcpy(value, old->value, old->len);
		model_write(m, key, value, old->len, old->lease, revision);
	} else {
		len = get_bytes(put, "value", value, sizeof(value));
		model_write(m, key, value, len, get_number(put, "lease"), revision);
	}
	return json_object();
}

static json_t *
model_delete(struct etcd_model *m, const json_t *del, uint64_t revision, bool *wrote)
{
	char first[KEY_MAX], end[KEY_MAX];
	unsigned int deleted = 0;
	size_t i;

	get_bytes(del, "key", first, sizeof(first));
	get_bytes(del, "range_end", end, sizeof(end));
	for (i = etcd_model_key(m, first); i < m->keys; i++) {
		if (!key_is_in_range(m->key[i].key, first, end))
			break;
		if (event_of_key(m, &m->key[i], revision) == NULL)
			continue;
		model_write(m, m->key[i].key, NULL, 0, 0, revision); /* which adds no key */
		deleted++;
	}
	*wrote |= deleted > 0;
	return json_pack("{s:o}", "deleted", model_number(deleted));
}

static json_t *
model_op(struct etcd_model *m, const json_t *op, uint64_t revision, bool *wrote, const char **error)
{
	const json_t *put = json_object_get(op, "request_put");
	const json_t *del = json_object_get(op, "request_delete_range");
	const json_t *range = json_object_get(op, "request_range");

	if (range != NULL)
		return json_pack("{s:o}", "response_range", model_range(m, range, error));
	if (del != NULL)
		return json_pack("{s:o}", "response_delete_range",
			model_delete(m, del, revision, wrote));
	if (put == NULL)
		return json_pack("{s:o}", "response_txn",
			model_txn(m, json_object_get(op, "request_txn"), revision, wrote, error));
	*wrote = true;
	return json_pack("{s:o}", "response_put", model_put(m, put, revision));
}

/*
 * PLANT_HALF: a record in the second half of a transaction that is to be executed by half.
 * PLANT_IMPORT_TWICE: the removal of parts beside an answer. PLANT_NOTICE_LOST: notices.
 */
static bool
op_is_forgotten(const struct etcd_model *m, const json_t *ops, size_t i)
{
	const json_t *put = json_object_get(json_array_get(ops, i), "request_put");
	const json_t *del = json_object_get(json_array_get(ops, i), "request_delete_range");
	char key[KEY_MAX];

	if (m->plant == PLANT_IMPORT_TWICE && del != NULL && json_array_size(ops) > 1) {
		get_bytes(del, "key", key, sizeof(key));
		return etcd_model_is_kind(key, 's');
	}
	if (!m->forget || put == NULL)
		return false;
	get_bytes(put, "key", key, sizeof(key));
	if (m->plant == PLANT_NOTICE_LOST)
		return etcd_model_is_kind(key, 'e');
	return m->plant == PLANT_HALF && i >= json_array_size(ops) / 2 &&
		etcd_model_is_kind(key, 'r');
}

static json_t *
model_txn(struct etcd_model *m, const json_t *q, uint64_t revision, bool *wrote, const char **error)
{
	json_t *list = json_array();
	const json_t *ops;
	bool good;
	size_t i;

	ops = branch_of(m, q, &good);
	for (i = 0; i < json_array_size(ops); i++)
		if (op_is_forgotten(m, ops, i))
			json_array_append_new(list, json_object());
		else
			json_array_append_new(list,
				model_op(m, json_array_get(ops, i), revision, wrote, error));
	return json_pack("{s:b, s:o}", "succeeded", good, "responses", list);
}

/* PLANT_NOT_DURABLE: say that it was executed, and do nothing. */
static json_t *
model_pretend(const struct etcd_model *m)
{
	return json_pack("{s:b, s:[], s:o}", "succeeded", 1, "responses", "header",
		model_header(m->revision + 1));
}

static json_t *
model_run_txn(struct etcd_model *m, const json_t *q, const char **error)
{
	bool wrote = false, good;
	json_t *j;

	*error = model_txn_error(m, q);
	if (*error != NULL)
		return NULL;
	branch_of(m, q, &good);
	if (m->plant == PLANT_NOT_DURABLE && m->forget && good)
		return model_pretend(m);
	j = model_txn(m, q, m->revision + 1, &wrote, error);
	m->revision += wrote;
	json_object_set_new(j, "header", model_header(m->revision));
	return j;
}

/* --- leases --- */

static bool
key_stays(const struct etcd_model *m, const char *key)
{
	return (m->plant == PLANT_STAGE_STAYS && etcd_model_is_kind(key, 's')) ||
		(m->plant == PLANT_MEMBER_STAYS && etcd_model_is_kind(key, 'm'));
}

static bool
key_goes(const struct etcd_model *m, const struct model_event *e, uint64_t lease)
{
	if (m->plant == PLANT_NOTICE_GOES && etcd_model_is_kind(e->key, 'e'))
		return true;
	return e->lease == lease && !key_stays(m, e->key);
}

static void
model_end_lease(struct etcd_model *m, uint64_t id)
{
	const struct model_event *e;
	bool any = false;
	size_t i;

	for (i = 0; i < m->keys; i++) {
		e = event_of_key(m, &m->key[i], m->revision);
		if (e == NULL || !key_goes(m, e, id))
			continue;
		model_write(m, e->key, NULL, 0, 0, m->revision + 1);
		any = true;
	}
	m->revision += any;
	m->lease[id].seconds = 0;
}

/* PLANT_FAST_CLOCK: etcd's clock runs twice as fast as those of the appliances. */
static void
lease_begins(const struct etcd_model *m, struct model_lease *l)
{
	unsigned int rate = m->plant == PLANT_FAST_CLOCK ? 2 : 1;

	l->end = m->now + l->seconds * NS_PER_SEC / rate;
}

static json_t *
model_grant(struct etcd_model *m, uint64_t seconds)
{
	uint64_t id = m->leases++;

	m->lease = reallocarray(m->lease, m->leases, sizeof(m->lease[0]));
	if (m->lease == NULL)
		abort();
	m->lease[id].seconds = seconds;
	lease_begins(m, &m->lease[id]);
	return json_pack("{s:o, s:o}", "header", model_header(m->revision), "ID", model_number(id));
}

static json_t *
model_lease(struct etcd_model *m, const char *path, const json_t *q)
{
	uint64_t id = get_number(q, "ID");

	if (strcmp(path, "/v3/lease/grant") == 0)
		return model_grant(m, get_number(q, "TTL"));
	if (strcmp(path, "/v3/lease/revoke") == 0) {
		if (lease_is_known(m, id))
			model_end_lease(m, id);
		return json_pack("{s:o}", "header", model_header(m->revision));
	}
	if (lease_is_known(m, id))
		lease_begins(m, &m->lease[id]);
	return json_pack("{s:{s:o, s:o}}", "result", "header", model_header(m->revision), "TTL",
		model_number(lease_is_known(m, id) ? m->lease[id].seconds : 0));
}

void
etcd_model_expire(struct etcd_model *m)
{
	size_t id;

	for (id = 1; id < m->leases; id++)
		if (m->lease[id].seconds != 0 && m->lease[id].end <= m->now)
			model_end_lease(m, id);
}

void
etcd_model_promote(struct etcd_model *m)
{
	size_t id;

	for (id = 1; id < m->leases; id++)
		if (m->lease[id].seconds != 0)
			lease_begins(m, &m->lease[id]);
}

json_t *
etcd_model_run(struct etcd_model *m, const char *path, const json_t *q, const char **error)
{
	*error = NULL;
	if (strcmp(path, "/v3/kv/range") == 0)
		return model_range(m, q, error);
	if (strcmp(path, "/v3/kv/txn") == 0)
		return model_run_txn(m, q, error);
	if (strncmp(path, "/v3/lease/", 10) == 0)
		return model_lease(m, path, q);
	if (strcmp(path, "/v3/maintenance/status") == 0)
		return json_pack("{s:o, s:s, s:s}", "header", model_header(m->revision), "leader",
			"1", "version", "3.4.0");
	abort();
}

struct etcd_model *
etcd_model_create(void)
{
	struct etcd_model *m = calloc(1, sizeof(*m));

	if (m == NULL)
		abort();
	m->revision = 1;
	m->max_ops = 128;
	m->leases = 1; /* 0 is none */
	m->lease = calloc(1, sizeof(m->lease[0]));
	return m;
}

void
etcd_model_destroy(struct etcd_model *m)
{
	size_t i;

	for (i = 0; i < m->events; i++) {
		free(m->event[i].key);
		free(m->event[i].value);
	}
	free(m->event);
	free(m->key);
	free(m->lease);
	free(m);
}
