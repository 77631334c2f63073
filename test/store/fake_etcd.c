/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#undef NDEBUG /* assertions have effects here */
#include "fake_etcd.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "store/etcd_client.h"

#define CONNS_MAX  32
#define LEASES_MAX 256
#define RULES_MAX  16
#define PATHS_MAX  16
#define STEP_MS    50
#define TRICKLES   80

/* What happened to a key at a revision. */
struct fake_event {
	char *key;
	uint8_t *value; /* NULL: the key was removed */
	size_t len;
	uint64_t created;
	uint64_t revision;
	uint64_t lease;
};

struct fake_conn {
	int fd; /* -1: unused */
	char *in;
	size_t in_len;
	char *out;
	size_t out_len;
	size_t trickle; /* bytes at a time; 0: all */
	struct timespec sent; /* the last of them */
	bool mute; /* the answer is lost: nothing more is sent */
	/* a watch */
	bool watches;
	char first[512];
	char end[512];
	uint64_t next;
};

struct fake_rule {
	char path[64];
	char key[512]; /* in base64; "": any */
	enum fake_how how;
	unsigned int times;
	char removed[512]; /* by another client, before; "": nothing */
	uint64_t ended; /* a lease that ends before; 0: none */
};

struct fake_etcd {
	pthread_t thread;
	pthread_mutex_t lock; /* protects all that follows */
	int listener;
	int wake[2];
	char url[64];
	bool stop;
	bool down;
	bool silent;
	bool full;
	bool alert;
	uint64_t cluster;
	uint64_t revision;
	uint64_t compacted;
	unsigned int max_ops;
	struct fake_event *event;
	size_t num_events;
	uint64_t lease[LEASES_MAX]; /* 0: it has ended */
	uint64_t next_lease;
	struct fake_conn conn[CONNS_MAX];
	struct fake_rule rule[RULES_MAX];
	json_t *late; /* a transaction that is executed when the test says so */
	struct {
		char path[64];
		unsigned int requests;
	} count[PATHS_MAX];
};

/* --- keys --- */

/* The last event of a key up to a revision, or NULL if the key does not exist then. */
static const struct fake_event *
key_at(const struct fake_etcd *e, const char *key, uint64_t revision)
{
	size_t i;

	for (i = e->num_events; i-- > 0;)
		if (e->event[i].revision <= revision && strcmp(e->event[i].key, key) == 0)
			return e->event[i].value != NULL ? &e->event[i] : NULL;
	return NULL;
}

static bool
fake_in_range(const char *key, const char *first, const char *end)
{
	return end[0] == '\0' ? strcmp(key, first) == 0
			      : strcmp(key, first) >= 0 && strcmp(key, end) < 0;
}

static void
fake_add_event(struct fake_etcd *e, const char *key, const void *value, size_t len, uint64_t lease,
	uint64_t revision)
{
	const struct fake_event *old = key_at(e, key, revision);
	uint64_t created = value == NULL ? 0 : old != NULL ? old->created : revision;
	struct fake_event *at;

	e->event = realloc(e->event, (e->num_events + 1) * sizeof(*e->event));
	at = &e->event[e->num_events++];
	*at = (struct fake_event){ strdup(key), NULL, len, created, revision, lease };
	if (value != NULL) {
		at->value = malloc(len + 1);
		memcpy(at->value, value, len);
		at->value[len] = '\0';
	}
}

static int
fake_compare_keys(const void *a, const void *b)
{
	const struct fake_event *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* Keys of a range at a revision, sorted; the caller frees the list. */
static size_t
keys_in(const struct fake_etcd *e, const char *first, const char *end, uint64_t revision,
	const struct fake_event ***list)
{
	size_t i, n = 0;

	*list = calloc(e->num_events + 1, sizeof(**list));
	for (i = 0; i < e->num_events; i++)
		if (fake_in_range(e->event[i].key, first, end) &&
			key_at(e, e->event[i].key, revision) == &e->event[i])
			(*list)[n++] = &e->event[i];
	qsort(*list, n, sizeof(**list), fake_compare_keys);
	return n;
}

/* --- JSON --- */

static json_t *
text_of_u64(uint64_t value)
{
	return json_sprintf("%" PRIu64, value);
}

static json_t *
base64_of(const void *bytes, size_t len)
{
	char *text = etcd_base64(bytes, len);
	json_t *j = json_string(text);

	free(text);
	return j;
}

static void
bytes_of(const json_t *object, const char *name, char *bytes, size_t size, size_t *len)
{
	const char *text = json_string_value(json_object_get(object, name));
	ptrdiff_t n = 0;

	if (text != NULL) {
		assert(strlen(text) / 4 * 3 < size);
		n = etcd_base64_decode(text, strlen(text), (uint8_t *)bytes);
		assert(n >= 0);
	}
	bytes[n] = '\0';
	if (len != NULL)
		*len = (size_t)n;
}

static uint64_t
u64_of(const json_t *object, const char *name)
{
	uint64_t value = 0;

	assert(etcd_json_u64(object, name, &value) == 0);
	return value;
}

static json_t *
header_of(const struct fake_etcd *e)
{
	return json_pack("{s:o, s:s, s:o}", "cluster_id", text_of_u64(e->cluster), "member_id", "1",
		"revision", text_of_u64(e->revision));
}

static json_t *
json_of_key(const struct fake_event *v)
{
	json_t *j = json_pack("{s:o, s:o}", "key", base64_of(v->key, strlen(v->key)),
		"mod_revision", text_of_u64(v->revision));

	if (v->value != NULL) {
		json_object_set_new(j, "create_revision", text_of_u64(v->created));
		json_object_set_new(j, "value", base64_of(v->value, v->len));
	}
	return j;
}

/* --- requests; each returns the answer, or NULL with an error's text --- */

static json_t *
run_range(struct fake_etcd *e, const json_t *q, const char **error)
{
	json_t *j = json_object(), *kvs = json_array();
	uint64_t revision = u64_of(q, "revision"), limit = u64_of(q, "limit");
	const struct fake_event **list;
	char first[512], end[512];
	size_t i, n;

	bytes_of(q, "key", first, sizeof(first), NULL);
	bytes_of(q, "range_end", end, sizeof(end), NULL);
	if (revision != 0 && (revision < e->compacted || revision > e->revision)) {
		json_decref(j);
		json_decref(kvs);
		*error = "{\"error\":\"etcdserver: mvcc: required revision has been compacted\","
			 "\"code\":11}";
		return NULL;
	}
	n = keys_in(e, first, end, revision != 0 ? revision : e->revision, &list);
	for (i = 0; i < n && (limit == 0 || i < limit); i++)
		json_array_append_new(kvs, json_of_key(list[i]));
	free(list);
	json_object_set_new(j, "header", header_of(e));
	json_object_set_new(j, "kvs", kvs);
	if (i < n)
		json_object_set_new(j, "more", json_true());
	return j;
}

static bool
lease_lives(const struct fake_etcd *e, uint64_t lease)
{
	return lease == 0 || (lease < LEASES_MAX && e->lease[lease] != 0);
}

static json_t *run_txn(struct fake_etcd *e, const json_t *q, uint64_t revision, bool *wrote,
	const char **error);

static json_t *
delete_range(struct fake_etcd *e, const json_t *del, const char *first, uint64_t revision,
	bool *wrote)
{
	const struct fake_event **list;
	char end[512], text[24], **keys;
	size_t i, n;

	bytes_of(del, "range_end", end, sizeof(end), NULL);
	n = keys_in(e, first, end, revision, &list);
	keys = calloc(n + 1, sizeof(keys[0]));
	for (i = 0; i < n; i++)
		keys[i] = strdup(list[i]->key);
	free(list);
	for (i = 0; i < n; i++) {
		fake_add_event(e, keys[i], NULL, 0, 0, revision);
		free(keys[i]);
	}
	free(keys);
	*wrote |= n > 0;
	snprintf(text, sizeof(text), "%zu", n);
	return json_pack("{s:{s:s}}", "response_delete_range", "deleted", text);
}

static json_t *
run_op(struct fake_etcd *e, const json_t *op, uint64_t revision, bool *wrote, const char **error)
{
	static char value[2 << 20];
	const json_t *put = json_object_get(op, "request_put");
	const json_t *del = json_object_get(op, "request_delete_range");
	const json_t *range = json_object_get(op, "request_range");
	const struct fake_event *old;
	char key[512];
	size_t len;

	if (range != NULL)
		return json_pack("{s:o}", "response_range", run_range(e, range, error));
	if (json_object_get(op, "request_txn") != NULL)
		return json_pack("{s:o}", "response_txn",
			run_txn(e, json_object_get(op, "request_txn"), revision, wrote, error));
	bytes_of(put != NULL ? put : del, "key", key, sizeof(key), NULL);
	if (put == NULL && json_object_get(del, "range_end") != NULL)
		return delete_range(e, del, key, revision, wrote);
	old = key_at(e, key, revision);
	if (put == NULL) {
		*wrote |= old != NULL;
		if (old != NULL)
			fake_add_event(e, key, NULL, 0, 0, revision);
		return json_pack("{s:{s:s}}", "response_delete_range", "deleted",
			old != NULL ? "1" : "0");
	}
	*wrote = true;
	if (json_is_true(json_object_get(put, "ignore_value"))) {
		memcpy(value, old->value, old->len);
		fake_add_event(e, key, value, old->len, old->lease, revision);
	} else {
		bytes_of(put, "value", value, sizeof(value), &len);
		fake_add_event(e, key, value, len, u64_of(put, "lease"), revision);
	}
	return json_pack("{s:{}}", "response_put");
}

/* What a comparison is about: a number of the key, all of which are 0 if it does not exist. */
static uint64_t
compared(const struct fake_event *at, const char *target)
{
	if (at == NULL)
		return 0;
	return strcmp(target, "MOD") == 0      ? at->revision
		: strcmp(target, "LEASE") == 0 ? at->lease
					       : at->created;
}

static bool
compares_hold(struct fake_etcd *e, const json_t *list)
{
	static const char *const fields[] = { "mod_revision", "create_revision", "lease" };
	char key[512];
	uint64_t is;
	size_t i, k;

	for (i = 0; i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i);

		bytes_of(c, "key", key, sizeof(key), NULL);
		is = compared(key_at(e, key, e->revision),
			json_string_value(json_object_get(c, "target")));
		for (k = 0; json_object_get(c, fields[k]) == NULL;)
			k++;
		if (is != u64_of(c, fields[k]))
			return false;
	}
	return true;
}

/* The error that etcd has for a transaction before it executes any of it, or NULL. */
static const char *
txn_error(struct fake_etcd *e, const json_t *q)
{
	const json_t *ops = json_object_get(q,
		compares_hold(e, json_object_get(q, "compare")) ? "success" : "failure");
	const char *error = NULL;
	size_t i;

	if (json_array_size(json_object_get(q, "compare")) > e->max_ops ||
		json_array_size(json_object_get(q, "success")) > e->max_ops)
		return "{\"error\":\"etcdserver: too many operations in txn request\",\"code\":3}";
	for (i = 0; i < json_array_size(ops) && error == NULL; i++) {
		const json_t *put = json_object_get(json_array_get(ops, i), "request_put");
		const json_t *inner = json_object_get(json_array_get(ops, i), "request_txn");

		if (inner != NULL)
			error = txn_error(e, inner);
		if (put != NULL && !lease_lives(e, u64_of(put, "lease")))
			return "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}";
	}
	return error;
}

static json_t *
run_txn(struct fake_etcd *e, const json_t *q, uint64_t revision, bool *wrote, const char **error)
{
	bool good = compares_hold(e, json_object_get(q, "compare"));
	const json_t *ops = json_object_get(q, good ? "success" : "failure");
	json_t *list;
	size_t i;

	*error = txn_error(e, q);
	if (*error != NULL)
		return NULL;
	list = json_array();
	for (i = 0; i < json_array_size(ops); i++)
		json_array_append_new(list,
			run_op(e, json_array_get(ops, i), revision, wrote, error));
	return json_pack("{s:b, s:o}", "succeeded", good, "responses", list);
}

static void
end_lease(struct fake_etcd *e, uint64_t lease)
{
	const struct fake_event **list;
	size_t i, n = keys_in(e, "", "\x7f", e->revision, &list), gone = 0;
	char **names = calloc(n + 1, sizeof(*names));

	for (i = 0; i < n; i++)
		if (list[i]->lease == lease)
			names[gone++] = strdup(list[i]->key);
	for (i = 0; i < gone; i++) {
		fake_add_event(e, names[i], NULL, 0, 0, e->revision + 1);
		free(names[i]);
	}
	e->revision += gone > 0;
	e->lease[lease] = 0;
	free(names);
	free(list);
}

static json_t *
run_lease(struct fake_etcd *e, const char *path, const json_t *q)
{
	uint64_t id = u64_of(q, "ID");

	if (strcmp(path, "/v3/lease/grant") == 0) {
		id = e->next_lease++;
		assert(id < LEASES_MAX);
		e->lease[id] = u64_of(q, "TTL");
		return json_pack("{s:o, s:o}", "header", header_of(e), "ID", text_of_u64(id));
	}
	if (strcmp(path, "/v3/lease/revoke") == 0) {
		end_lease(e, id);
		return json_pack("{s:o}", "header", header_of(e));
	}
	return json_pack("{s:{s:o, s:o}}", "result", "header", header_of(e), "TTL",
		text_of_u64(e->lease[id]));
}

static const char no_space[] =
	"{\"error\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}";

/* True of a request that takes room, as etcd counts: not what an inner transaction puts. */
static bool
takes_room(const char *path, const json_t *q)
{
	static const char *const ways[] = { "success", "failure" };
	size_t i, way;

	for (way = 0; way < 2; way++)
		for (i = 0; i < json_array_size(json_object_get(q, ways[way])); i++) {
			const json_t *op = json_array_get(json_object_get(q, ways[way]), i);

			if (json_object_get(op, "request_put") != NULL)
				return true;
		}
	return strcmp(path, "/v3/lease/grant") == 0;
}

static json_t *
fake_status(const struct fake_etcd *e)
{
	json_t *j = json_pack("{s:o, s:s, s:s, s:s, s:s}", "header", header_of(e), "leader", "1",
		"version", "3.4.0", "dbSize", "5000", "dbSizeInUse", "4000");

	if (e->full)
		json_object_set_new(j, "errors",
			json_pack("[s, s]", "memberID:1 alarm:NOSPACE ",
				"memberID:2 alarm:CORRUPT "));
	return j;
}

static json_t *
run_request(struct fake_etcd *e, const char *path, const json_t *q, const char **error)
{
	bool wrote = false;
	json_t *j;

	if (e->full && takes_room(path, q)) {
		*error = no_space;
		return NULL;
	}
	if (strcmp(path, "/v3/kv/range") == 0)
		return run_range(e, q, error);
	if (strncmp(path, "/v3/lease/", 10) == 0)
		return run_lease(e, path, q);
	if (strcmp(path, "/v3/maintenance/status") == 0)
		return fake_status(e);
	if (strcmp(path, "/v3/auth/authenticate") == 0)
		return json_pack("{s:o, s:s}", "header", header_of(e), "token", "any");
	assert(strcmp(path, "/v3/kv/txn") == 0);
	j = run_txn(e, q, e->revision + 1, &wrote, error);
	if (j == NULL)
		return NULL;
	e->revision += wrote;
	json_object_set_new(j, "header", header_of(e));
	return j;
}

/* --- connections --- */

static void
conn_send(struct fake_conn *c, const char *bytes, size_t len)
{
	if (c->mute)
		return;
	c->out = realloc(c->out, c->out_len + len);
	memcpy(c->out + c->out_len, bytes, len);
	c->out_len += len;
}

static void
send_line(struct fake_conn *c, json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);

	conn_send(c, text, strlen(text));
	conn_send(c, "\n", 1);
	free(text);
	json_decref(j);
}

static void
conn_close(struct fake_conn *c)
{
	close(c->fd);
	free(c->in);
	free(c->out);
	*c = (struct fake_conn){ .fd = -1 };
}

static void
send_answer(struct fake_conn *c, json_t *j, const char *error)
{
	char *text = j != NULL ? json_dumps(j, JSON_COMPACT) : strdup(error);
	char head[128];
	int n = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n",
		j == NULL ? "400 Bad Request" : "200 OK", strlen(text));

	conn_send(c, head, (size_t)n);
	conn_send(c, text, strlen(text));
	free(text);
	json_decref(j);
}

static void
watch_begin(struct fake_etcd *e, struct fake_conn *c, const json_t *q)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
	const json_t *create = json_object_get(q, "create_request");

	bytes_of(create, "key", c->first, sizeof(c->first), NULL);
	bytes_of(create, "range_end", c->end, sizeof(c->end), NULL);
	c->next = u64_of(create, "start_revision");
	c->watches = true;
	conn_send(c, head, strlen(head));
	if (!e->silent)
		send_line(c,
			json_pack("{s:{s:o, s:b}}", "result", "header", header_of(e), "created",
				1));
	if (c->next < e->compacted)
		send_line(c,
			json_pack("{s:{s:o, s:b, s:o}}", "result", "header", header_of(e),
				"canceled", 1, "compact_revision", text_of_u64(e->compacted)));
}

/* One message for each revision that the watch has not brought. Events are in their order. */
static void
watch_go_on(struct fake_etcd *e, struct fake_conn *c)
{
	size_t i = e->num_events;
	json_t *list;

	while (i > 0 && e->event[i - 1].revision >= c->next)
		i--;
	for (; c->next <= e->revision; c->next++) {
		list = json_array();
		for (; i < e->num_events && e->event[i].revision == c->next; i++) {
			const struct fake_event *v = &e->event[i];
			json_t *j;

			if (!fake_in_range(v->key, c->first, c->end))
				continue;
			j = json_pack("{s:o}", "kv", json_of_key(v));
			if (v->value == NULL)
				json_object_set_new(j, "type", json_string("DELETE"));
			json_array_append_new(list, j);
		}
		if (json_array_size(list) == 0)
			json_decref(list);
		else
			send_line(c,
				json_pack("{s:{s:o, s:o}}", "result", "header", header_of(e),
					"events", list));
	}
}

static enum fake_how
how_to_treat(struct fake_etcd *e, const char *path, const char *body)
{
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++) {
		if (e->count[i].path[0] == '\0')
			snprintf(e->count[i].path, sizeof(e->count[i].path), "%s", path);
		if (strcmp(e->count[i].path, path) == 0) {
			e->count[i].requests++;
			break;
		}
	}
	for (i = 0; i < RULES_MAX; i++) {
		struct fake_rule *r = &e->rule[i];

		if (r->times == 0 || strcmp(r->path, path) != 0 || strstr(body, r->key) == NULL)
			continue;
		r->times--;
		if (r->ended != 0)
			end_lease(e, r->ended);
		if (r->removed[0] != '\0')
			fake_add_event(e, r->removed, NULL, 0, 0, ++e->revision);
		return r->how;
	}
	return FAKE_ANSWER;
}

static void
fake_etcd_serve(struct fake_etcd *e, struct fake_conn *c, const char *path, const char *body)
{
	enum fake_how how = how_to_treat(e, path, body);
	json_t *q = json_loads(body, 0, NULL), *answer;
	const char *error = NULL;

	assert(q != NULL);
	if (how == FAKE_LOSE_REQUEST) {
		c->mute = true;
	} else if (how == FAKE_LATE) {
		c->mute = true;
		e->late = json_incref(q);
	} else if (how == FAKE_NO_SPACE) {
		send_answer(c, NULL, no_space);
	} else if (how == FAKE_NO_LEADER) {
		send_answer(c, NULL, "{\"error\":\"etcdserver: no leader\",\"code\":14}");
	} else if (how == FAKE_NO_USER) {
		send_answer(c, NULL, "{\"error\":\"etcdserver: user name is empty\",\"code\":3}");
	} else if (how == FAKE_NO_TOKEN) {
		send_answer(c, NULL, "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}");
	} else if (strcmp(path, "/v3/watch") == 0) {
		watch_begin(e, c, q);
	} else {
		answer = run_request(e, path, q, &error);
		if (how == FAKE_DONE_NO_SPACE) {
			json_decref(answer);
			answer = NULL;
			error = no_space;
		}
		c->mute = how == FAKE_LOSE_ANSWER;
		send_answer(c, answer, error);
		c->trickle = how == FAKE_TRICKLE ? c->out_len / TRICKLES + 1 : 0;
	}
	json_decref(q);
}

/* Serve a whole request, if there is one. @return bytes of it */
static size_t
take_request(struct fake_etcd *e, struct fake_conn *c)
{
	char *end = strstr(c->in, "\r\n\r\n"), *length, path[64], *body;
	size_t len, head;

	if (end == NULL)
		return 0;
	length = strcasestr(c->in, "content-length:");
	assert(length != NULL && sscanf(c->in, "POST %63s", path) == 1);
	len = strtoul(length + 15, NULL, 10);
	head = (size_t)(end - c->in) + 4;
	if (c->in_len < head + len)
		return 0;
	body = strndup(c->in + head, len);
	fake_etcd_serve(e, c, path, body);
	free(body);
	return head + len;
}

static void
conn_read(struct fake_etcd *e, struct fake_conn *c)
{
	char bytes[65536];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);
	size_t used;

	if (n <= 0) {
		conn_close(c);
		return;
	}
	if (e->alert) {
		conn_send(c, "\x15\x03\x03\x00\x02\x02\x2a", 7);
		return;
	}
	c->in = realloc(c->in, c->in_len + (size_t)n + 1);
	memcpy(c->in + c->in_len, bytes, (size_t)n);
	c->in_len += (size_t)n;
	c->in[c->in_len] = '\0';
	while ((used = take_request(e, c)) > 0) {
		c->in_len -= used;
		memmove(c->in, c->in + used, c->in_len + 1);
	}
}

static void
conn_write(struct fake_conn *c)
{
	size_t len = c->trickle > 0 && c->trickle < c->out_len ? c->trickle : c->out_len;
	struct timespec now;
	ssize_t n;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (c->trickle > 0 &&
		(now.tv_sec - c->sent.tv_sec) * 1000 + (now.tv_nsec - c->sent.tv_nsec) / 1000000 <
			STEP_MS)
		return;
	n = send(c->fd, c->out, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n <= 0)
		return;
	c->sent = now;
	c->out_len -= (size_t)n;
	memmove(c->out, c->out + n, c->out_len);
}

static void
conn_accept(struct fake_etcd *e)
{
	int fd = accept4(e->listener, NULL, NULL, SOCK_CLOEXEC);
	unsigned int i;

	for (i = 0; fd >= 0 && !e->down && i < CONNS_MAX; i++)
		if (e->conn[i].fd < 0) {
			e->conn[i].fd = fd;
			return;
		}
	if (fd >= 0)
		close(fd);
}

static void
fake_step(struct fake_etcd *e, const struct pollfd *p)
{
	unsigned int i;
	char byte;

	if (p[0].revents != 0 && read(e->wake[0], &byte, 1) != 1)
		return;
	if (p[1].revents != 0)
		conn_accept(e);
	for (i = 0; i < CONNS_MAX; i++) {
		struct fake_conn *c = &e->conn[i];

		if (c->fd >= 0 && e->down)
			conn_close(c);
		else if (c->fd >= 0 && c->fd == p[2 + i].fd && (p[2 + i].revents & ~POLLOUT) != 0)
			conn_read(e, c);
		if (c->fd >= 0 && c->watches && !e->silent)
			watch_go_on(e, c);
		if (c->fd >= 0 && c->out_len > 0)
			conn_write(c);
	}
}

static void *
fake_main(void *arg)
{
	struct pollfd p[2 + CONNS_MAX];
	struct fake_etcd *e = arg;
	bool slow = false;
	unsigned int i;

	pthread_mutex_lock(&e->lock);
	while (!e->stop) {
		p[0] = (struct pollfd){ e->wake[0], POLLIN, 0 };
		p[1] = (struct pollfd){ e->listener, POLLIN, 0 };
		slow = false;
		for (i = 0; i < CONNS_MAX; i++) {
			bool more = e->conn[i].out_len > 0 && e->conn[i].trickle == 0;

			p[2 + i] = (struct pollfd){ e->conn[i].fd,
				(short)(POLLIN | (more ? POLLOUT : 0)), 0 };
			slow |= e->conn[i].trickle > 0 && e->conn[i].out_len > 0;
		}
		pthread_mutex_unlock(&e->lock);
		poll(p, 2 + CONNS_MAX, slow ? STEP_MS : 1000);
		pthread_mutex_lock(&e->lock);
		fake_step(e, p);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* --- what a test calls --- */

static void
fake_let_go(struct fake_etcd *e)
{
	pthread_mutex_unlock(&e->lock);
	assert(write(e->wake[1], "", 1) == 1);
}

struct fake_etcd *
fake_etcd_start(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct fake_etcd *e = calloc(1, sizeof(*e));
	socklen_t len = sizeof(at);
	unsigned int i;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	e->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(bind(e->listener, (struct sockaddr *)&at, sizeof(at)) == 0);
	assert(listen(e->listener, 16) == 0 && pipe2(e->wake, O_CLOEXEC) == 0);
	assert(getsockname(e->listener, (struct sockaddr *)&at, &len) == 0);
	snprintf(e->url, sizeof(e->url), "http://127.0.0.1:%u", ntohs(at.sin_port));
	for (i = 0; i < CONNS_MAX; i++)
		e->conn[i].fd = -1;
	e->cluster = 77;
	e->revision = e->next_lease = 1;
	e->max_ops = 128;
	pthread_mutex_init(&e->lock, NULL);
	assert(pthread_create(&e->thread, NULL, fake_main, e) == 0);
	return e;
}

static void
drop_events(struct fake_etcd *e, size_t keep)
{
	while (e->num_events > keep) {
		free(e->event[--e->num_events].key);
		free(e->event[e->num_events].value);
	}
}

void
fake_etcd_stop(struct fake_etcd *e)
{
	unsigned int i;

	pthread_mutex_lock(&e->lock);
	e->stop = true;
	fake_let_go(e);
	pthread_join(e->thread, NULL);
	for (i = 0; i < CONNS_MAX; i++)
		if (e->conn[i].fd >= 0)
			conn_close(&e->conn[i]);
	drop_events(e, 0);
	json_decref(e->late);
	free(e->event);
	close(e->listener);
	close(e->wake[0]);
	close(e->wake[1]);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

const char *
fake_etcd_url(const struct fake_etcd *e)
{
	return e->url;
}

static void
add_rule(struct fake_etcd *e, const char *path, const char *key, struct fake_rule rule)
{
	char *text = etcd_base64(key != NULL ? key : "", key != NULL ? strlen(key) : 0);
	unsigned int i;

	pthread_mutex_lock(&e->lock);
	for (i = 0; e->rule[i].times > 0; i++)
		assert(i + 1 < RULES_MAX);
	e->rule[i] = rule;
	snprintf(e->rule[i].path, sizeof(e->rule[i].path), "%s", path);
	snprintf(e->rule[i].key, sizeof(e->rule[i].key), "%s", text);
	fake_let_go(e);
	free(text);
}

void
fake_etcd_next(struct fake_etcd *e, const char *path, const char *key, enum fake_how how,
	unsigned int times)
{
	add_rule(e, path, key, (struct fake_rule){ .how = how, .times = times });
}

void
fake_etcd_before(struct fake_etcd *e, const char *path, const char *key, const char *removed)
{
	struct fake_rule rule = { .how = FAKE_ANSWER, .times = 1 };

	snprintf(rule.removed, sizeof(rule.removed), "%s", removed);
	add_rule(e, path, key, rule);
}

void
fake_etcd_ends_before(struct fake_etcd *e, const char *path, const char *key, uint64_t lease)
{
	add_rule(e, path, key,
		(struct fake_rule){ .how = FAKE_ANSWER, .times = 1, .ended = lease });
}

bool
fake_etcd_has_late(struct fake_etcd *e)
{
	bool has;

	pthread_mutex_lock(&e->lock);
	has = e->late != NULL;
	pthread_mutex_unlock(&e->lock);
	return has;
}

void
fake_etcd_run_late(struct fake_etcd *e)
{
	const char *error = NULL;

	pthread_mutex_lock(&e->lock);
	json_decref(run_request(e, "/v3/kv/txn", e->late, &error));
	json_decref(e->late);
	e->late = NULL;
	fake_let_go(e);
}

unsigned int
fake_etcd_count(struct fake_etcd *e, const char *path)
{
	unsigned int i, n = 0;

	pthread_mutex_lock(&e->lock);
	for (i = 0; i < PATHS_MAX; i++)
		if (strcmp(e->count[i].path, path) == 0)
			n = e->count[i].requests;
	pthread_mutex_unlock(&e->lock);
	return n;
}

void
fake_etcd_max_ops(struct fake_etcd *e, unsigned int ops)
{
	pthread_mutex_lock(&e->lock);
	e->max_ops = ops;
	fake_let_go(e);
}

uint64_t
fake_etcd_write(struct fake_etcd *e, const char *key, const char *value)
{
	uint64_t revision;

	pthread_mutex_lock(&e->lock);
	revision = ++e->revision;
	fake_add_event(e, key, value, value != NULL ? strlen(value) : 0, 0, revision);
	fake_let_go(e);
	return revision;
}

const char *
fake_etcd_read(struct fake_etcd *e, const char *key)
{
	static char value[4096];
	const struct fake_event *v;

	pthread_mutex_lock(&e->lock);
	v = key_at(e, key, e->revision);
	if (v != NULL) {
		memset(value, 0, sizeof(value));
		memcpy(value, v->value, v->len < sizeof(value) ? v->len : sizeof(value) - 1);
	}
	pthread_mutex_unlock(&e->lock);
	return v != NULL ? value : NULL;
}

uint64_t
fake_etcd_revision(struct fake_etcd *e)
{
	uint64_t revision;

	pthread_mutex_lock(&e->lock);
	revision = e->revision;
	pthread_mutex_unlock(&e->lock);
	return revision;
}

unsigned int
fake_etcd_keys(struct fake_etcd *e, const char *prefix)
{
	const struct fake_event **list;
	unsigned int n = 0;
	size_t i, all;

	pthread_mutex_lock(&e->lock);
	all = keys_in(e, "", "\x7f", e->revision, &list);
	for (i = 0; i < all; i++)
		n += strncmp(list[i]->key, prefix, strlen(prefix)) == 0;
	free(list);
	pthread_mutex_unlock(&e->lock);
	return n;
}

uint64_t
fake_etcd_lease_of(struct fake_etcd *e, const char *key)
{
	const struct fake_event *v;
	uint64_t lease;

	pthread_mutex_lock(&e->lock);
	v = key_at(e, key, e->revision);
	lease = v != NULL ? v->lease : 0;
	pthread_mutex_unlock(&e->lock);
	return lease;
}

void
fake_etcd_end_lease(struct fake_etcd *e, uint64_t lease)
{
	pthread_mutex_lock(&e->lock);
	end_lease(e, lease);
	fake_let_go(e);
}

void
fake_etcd_down(struct fake_etcd *e, bool down)
{
	pthread_mutex_lock(&e->lock);
	e->down = down;
	fake_let_go(e);
}

void
fake_etcd_restore(struct fake_etcd *e, uint64_t revision)
{
	size_t keep = e->num_events;

	pthread_mutex_lock(&e->lock);
	while (keep > 0 && e->event[keep - 1].revision > revision)
		keep--;
	drop_events(e, keep);
	e->revision = revision;
	fake_let_go(e);
}

void
fake_etcd_replace(struct fake_etcd *e)
{
	pthread_mutex_lock(&e->lock);
	drop_events(e, 0);
	e->revision = 1;
	e->compacted = 0;
	e->cluster++;
	fake_let_go(e);
}

void
fake_etcd_compact(struct fake_etcd *e, uint64_t revision)
{
	pthread_mutex_lock(&e->lock);
	e->compacted = revision;
	fake_let_go(e);
}

void
fake_etcd_full(struct fake_etcd *e, bool full)
{
	pthread_mutex_lock(&e->lock);
	e->full = full;
	fake_let_go(e);
}

void
fake_etcd_alert(struct fake_etcd *e, bool alert)
{
	pthread_mutex_lock(&e->lock);
	e->alert = alert;
	fake_let_go(e);
}

void
fake_etcd_silence(struct fake_etcd *e, bool silent)
{
	pthread_mutex_lock(&e->lock);
	e->silent = silent;
	fake_let_go(e);
}
