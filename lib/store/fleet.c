/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A fleet as the store's backend: changes are one transaction of etcd's.
 *
 * Each transaction has two conditions: the leader's key is still the one we made (a leader that was
 * replaced changes nothing), and the last change is the one that the store has published (a change
 * whose answer was lost, and that etcd executed or executes later, is never overlooked). It writes
 * a random number beside the records: if a repetition fails, the number tells that the first
 * request had been executed.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "store/etcd_http.h"
#include "store/fleet_private.h"

#define TXN_BYTES_MAX (1400u << 10) /* of etcd's 1.5 MiB, the rest for keys and framing */
#define LARGE_TRIES   10 /* of a transaction, each of which takes up to FLEET_REQUEST_MS */

/* --- apply --- */

struct change {
	const struct store_op **op; /* the last one of each record */
	size_t n;
	size_t sent; /* so many of them are in etcd, as parts */
	char nonce[17];
	struct etcd_header header;
	bool done;
	uint64_t revision; /* at which it was done */
};

static int
compare_ops(const void *a, const void *b)
{
	const struct store_op *x = *(const struct store_op *const *)a;
	const struct store_op *y = *(const struct store_op *const *)b;

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	if (x->rid != y->rid)
		return x->rid < y->rid ? -1 : 1;
	return x < y ? -1 : x > y; /* of one array: the later one is behind */
}

/* etcd refuses two operations on one key: keep the last. */
static int
choose_ops(const struct store_op *ops, size_t n, struct change *c, struct error *err)
{
	size_t i;

	c->op = calloc(n + 1, sizeof(c->op[0]));
	if (c->op == NULL)
		return error_set(err, ENOMEM, "no memory for a change");
	for (i = 0; i < n; i++)
		c->op[i] = &ops[i];
	qsort(c->op, n, sizeof(c->op[0]), compare_ops);
	for (i = 0; i < n; i++)
		if (i + 1 == n || c->op[i]->table != c->op[i + 1]->table ||
			c->op[i]->rid != c->op[i + 1]->rid)
			c->op[c->n++] = c->op[i];
	return 0;
}

/* How many records from c->sent on fit into a transaction with so many others and bytes. */
static size_t
count_fitting(const struct fleet *f, const struct change *c, size_t others, size_t bytes)
{
	size_t i = c->sent;

	for (; i < c->n && i - c->sent + others < f->config.max_txn_ops; i++) {
		bytes += sizeof(f->key.records) + c->op[i]->len;
		if (bytes > TXN_BYTES_MAX)
			break;
	}
	return i - c->sent;
}

static json_t *
record_ops(const struct fleet *f, const struct change *c, size_t n)
{
	json_t *list = json_array();
	char key[FLEET_KEY_MAX];
	size_t i;

	for (i = c->sent; i < c->sent + n; i++) {
		fleet_put_record_key(f, key, c->op[i]->table, c->op[i]->rid);
		json_array_append_new(list,
			c->op[i]->bytes != NULL ? etcd_put(key, c->op[i]->bytes, c->op[i]->len, 0)
						: etcd_delete(key));
	}
	return list;
}

static json_t *
change_ops(const struct fleet *f, const struct change *c)
{
	json_t *list = record_ops(f, c, c->n - c->sent);

	if (c->sent > 0)
		json_array_append_new(list, etcd_delete(f->key.part));
	if (c->n > 0)
		json_array_append_new(list, etcd_put(f->key.change, c->nonce, strlen(c->nonce), 0));
	return fleet_answer_ops(f, fleet_notice_ops(f, list));
}

/* True of a leader that was not replaced, if nothing has changed since it published. */
static json_t *
change_compares(const struct fleet *f, uint64_t lead)
{
	return json_pack("[o,o]", etcd_compare(f->key.leader, "CREATE", "create_revision", lead),
		etcd_compare(f->key.change, "MOD", "mod_revision", f->published));
}

static json_t *
change_request(const struct fleet *f, const struct change *c, uint64_t lead)
{
	return json_pack("{s:o, s:o, s:[o]}", "compare",
		fleet_answer_compares(f, change_compares(f, lead)), "success", change_ops(f, c),
		"failure", etcd_get(f->key.control, f->key.members));
}

/* The conditions failed: find out whether an earlier attempt had been executed. */
static int
change_refused(struct fleet *f, struct change *c, const json_t *reply, struct error *err)
{
	const json_t *range =
		json_object_get(json_array_get(json_object_get(reply, "responses"), 0),
			"response_range");
	const struct etcd_kv *kv;
	struct etcd_kvs kvs;

	if (etcd_json_kvs(json_object_get(range, "kvs"), &kvs) != 0)
		return error_set(err, EPROTO, "etcd's answer lacks what its API promises");
	kv = etcd_kvs_find(&kvs, f->key.change);
	if (kv != NULL && kv->value_len == strlen(c->nonce) &&
		memcmp(kv->value, c->nonce, kv->value_len) == 0) {
		c->done = true;
		c->revision = kv->mod_revision;
	}
	etcd_kvs_free(&kvs);
	return c->done
		? 0
		: error_set(err, EAGAIN, "the fleet's database has changed meanwhile; try again");
}

static int
change_commit(struct fleet *f, struct change *c, uint64_t lead, struct error *err)
{
	json_t *reply;
	int rc = fleet_writer_call(f, change_request(f, c, lead), &reply, err);

	if (rc != 0)
		return rc;
	if (etcd_json_header(reply, &c->header) != 0) {
		rc = error_set(err, EPROTO, "etcd's answer lacks what its API promises");
	} else if (json_is_true(json_object_get(reply, "succeeded"))) {
		c->done = true;
		c->revision = c->header.revision;
	} else {
		rc = change_refused(f, c, reply, err);
	}
	json_decref(reply);
	return rc;
}

/* A transaction of a large change. It may be repeated: it puts the same once more. */
static int
change_part(struct fleet *f, const struct change *c, size_t n, uint64_t lead, struct error *err)
{
	json_t *ops = record_ops(f, c, n), *reply;
	int rc;

	json_array_append_new(ops, etcd_put(f->key.part, c->nonce, strlen(c->nonce), 0));
	rc = fleet_writer_call(f,
		json_pack("{s:o, s:o}", "compare", change_compares(f, lead), "success", ops),
		&reply, err);
	if (rc == 0 && !json_is_true(json_object_get(reply, "succeeded")))
		rc = error_set(err, EAGAIN,
			"the fleet's database has changed meanwhile; try again");
	json_decref(reply);
	return rc;
}

/* So many transactions follow each other that one without an answer must not end them all. */
static bool
large_change_goes_on(const struct fleet *f, int rc, unsigned int tries)
{
	return etcd_gave_no_answer(rc) && tries < LARGE_TRIES && fleet_leads(f);
}

/*
 * Write what does not fit into the last transaction. Once a part may be in etcd, a failure ends
 * this lead: whoever leads next undoes the parts (fleet_parts.c).
 */
static int
change_parts(struct fleet *f, struct change *c, uint64_t lead, struct error *err)
{
	/* the last one: c/change, no c/part, a notice, answers */
	size_t others = 3 + fleet_num_answer_ops(f), n;
	unsigned int tries;
	int rc = 0;

	while (rc == 0 && count_fitting(f, c, others, f->keep_len) < c->n - c->sent) {
		n = count_fitting(f, c, 1, 0);
		tries = 0;
		do
			rc = change_part(f, c, n, lead, err);
		while (large_change_goes_on(f, rc, ++tries));
		if (rc == 0 || etcd_gave_no_answer(rc))
			c->sent += n;
	}
	return rc;
}

static int
not_here(struct fleet *f, struct error *err)
{
	char leader[FLEET_NAME_MAX];

	pthread_mutex_lock(&f->lock);
	strcpy(leader, f->status.leader);
	pthread_mutex_unlock(&f->lock);
	if (__atomic_load_n(&f->away, __ATOMIC_RELAXED))
		return error_set(err, EAGAIN, "etcd does not answer: no change is possible");
	if (leader[0] == '\0' || strcmp(leader, f->config.name) == 0)
		return error_set(err, EAGAIN, "the fleet has no leader at the moment; try again");
	return error_set(err, EAGAIN, "%s leads the fleet: make the change there", leader);
}

static void
count_change(struct fleet *f, int rc)
{
	pthread_mutex_lock(&f->lock);
	if (rc == 0)
		f->status.changes++;
	else
		f->status.changes_failed++;
	f->status.revision = f->published;
	pthread_mutex_unlock(&f->lock);
}

static int
change_apply(struct fleet *f, const struct store_op *ops, size_t n, struct error *err)
{
	uint64_t lead = __atomic_load_n(&f->lead, __ATOMIC_ACQUIRE), random;
	struct change c = { .n = 0 };
	unsigned int tries = 0;
	int rc;

	if (lead == 0 || __atomic_load_n(&f->away, __ATOMIC_RELAXED))
		return not_here(f, err);
	if (lead == __atomic_load_n(&f->stopped, __ATOMIC_RELAXED))
		return error_set(err, EAGAIN,
			"a large change has stopped in the middle, and is being undone; try again");
	if (f->num_answers > 0 && __atomic_load_n(&f->answer_lease, __ATOMIC_ACQUIRE) == 0)
		return error_set(err, EAGAIN, "the lease of answers is being renewed");
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(err, EIO, "the kernel gives no random numbers");
	snprintf(c.nonce, sizeof(c.nonce), "%016" PRIx64, random);
	rc = choose_ops(ops, n, &c, err);
	if (rc == 0)
		rc = change_parts(f, &c, lead, err);
	if (rc == 0)
		do
			rc = change_commit(f, &c, lead, err);
		while (c.sent > 0 && large_change_goes_on(f, rc, ++tries));
	if (rc != 0 && c.sent > 0)
		__atomic_store_n(&f->stopped, lead, __ATOMIC_RELEASE);
	if (rc == 0) {
		if (c.n > 0)
			f->published = c.revision;
	} else if (rc != -E2BIG) {
		if (rc == -ENOENT) /* the answers' lease has ended */
			__atomic_store_n(&f->answer_lease, 0, __ATOMIC_RELEASE);
		if (etcd_gave_no_answer(rc))
			fleet_is_away(f);
		fleet_look_now(f);
	}
	count_change(f, rc);
	free(c.op);
	return rc;
}

static int
fleet_apply(void *arg, const struct store_op *ops, size_t n, struct error *err)
{
	struct fleet *f = arg;
	int rc = change_apply(f, ops, n, err);

	f->keep_len = 0;
	return rc;
}

int
fleet_write_answers(struct fleet *f, struct error *err)
{
	return fleet_apply(f, NULL, 0, err);
}

/* --- watch --- */

/*
 * A batch of changes without news is our own. A complete one is older than the store if the store
 * has published a change of ours since; the watch goes on behind it and brings that change again.
 */
static bool
is_news(const struct fleet *f, const struct fleet_batch *b)
{
	if (b->batch.replace)
		return b->restored || b->revision >= f->published;
	return b->changed > f->published;
}

static const struct store_batch *
fleet_watch(void *arg)
{
	struct fleet *f = arg;
	struct fleet_batch *b;

	pthread_mutex_lock(&f->lock);
	while ((b = STAILQ_FIRST(&f->queue)) != NULL && !is_news(f, b)) {
		fleet_unqueue(f);
		fleet_batch_free(b);
	}
	pthread_mutex_unlock(&f->lock);
	f->taking = b;
	return b != NULL ? &b->batch : NULL;
}

static void
fleet_taken(void *arg)
{
	struct fleet *f = arg;

	f->published = f->taking->changed;
	pthread_mutex_lock(&f->lock);
	fleet_unqueue(f);
	f->status.revision = f->published;
	pthread_mutex_unlock(&f->lock);
	fleet_batch_free(f->taking);
	f->taking = NULL;
}

int
fleet_accept_empty(struct fleet *f, struct error *err)
{
	if (!__atomic_load_n(&f->refuses_empty, __ATOMIC_ACQUIRE))
		return error_set(err, ENOENT,
			"there is nothing to accept: this appliance has not refused an etcd without records");
	__atomic_store_n(&f->accept_empty, true, __ATOMIC_RELEASE);
	fleet_look_now(f);
	return 0;
}

/* --- open, start, stop, close --- */

static int
fleet_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to, struct error *err)
{
	struct fleet *f = arg;

	return f->copy.load(f->copy.arg, each, to, err);
}

static void
fleet_close(void *arg)
{
	struct fleet *f = arg;
	struct fleet_batch *b;

	fleet_stop(f);
	while ((b = STAILQ_FIRST(&f->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&f->queue, next);
		fleet_batch_free(b);
	}
	fleet_requests_free(f);
	fleet_notices_free(f);
	fleet_gather_free(f);
	free(f->names[0].at);
	free(f->names[1].at);
	etcd_client_destroy(f->writer);
	etcd_client_destroy(f->session);
	if (f->copy.close != NULL)
		f->copy.close(f->copy.arg);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static void
name_keys(struct fleet *f)
{
	const char *prefix = f->config.prefix;
	struct fleet_keys *k = &f->key;

#define NAME_KEY(field, fmt, ...)                                                                  \
	snprintf(k->field, sizeof(k->field), "%s" fmt, prefix, ##__VA_ARGS__)
	NAME_KEY(all, "/");
	NAME_KEY(all_end, "0"); /* the character behind '/' */
	NAME_KEY(control, "/c/");
	NAME_KEY(leader, "/c/leader");
	NAME_KEY(change, "/c/change");
	NAME_KEY(part, "/c/part");
	NAME_KEY(format, "/c/format");
	NAME_KEY(members, "/m/");
	NAME_KEY(control_end, "/m0");
	NAME_KEY(self, "/m/%s", f->config.name);
	NAME_KEY(requests, "/q/");
	NAME_KEY(requests_end, "/q0");
	NAME_KEY(answers, "/a/");
	NAME_KEY(notices, "/e/");
	NAME_KEY(records, "/r/");
	NAME_KEY(records_end, "/r0");
#undef NAME_KEY
}

int
fleet_open(const struct fleet_config *config, const char *path, uint64_t map_bytes,
	struct fleet **fleet, struct store_backend *backend, struct error *err)
{
	struct fleet *f = calloc(1, sizeof(*f));
	int rc = -ENOMEM;

	if (f == NULL)
		return error_set(err, ENOMEM, "no memory for the fleet");
	f->config = *config;
	pthread_mutex_init(&f->lock, NULL);
	STAILQ_INIT(&f->queue);
	STAILQ_INIT(&f->news);
	TAILQ_INIT(&f->requests);
	TAILQ_INIT(&f->notices);
	if (f->config.name[0] == '\0')
		gethostname(f->config.name, sizeof(f->config.name) - 1);
	name_keys(f);
	strcpy(f->status.name, f->config.name);
	f->status.copy_ok = true;
	f->away = true;
	f->writer = etcd_client_create(config, err);
	f->session = etcd_client_create(config, err);
	if (f->writer == NULL || f->session == NULL)
		goto fail;
	rc = lmdb_copy_open(path, map_bytes, f->config.prefix, &f->copy, err);
	if (rc == 0)
		rc = lmdb_copy_position(&f->copy, &f->position, err);
	if (rc != 0 && rc != -ENOENT)
		goto fail;
	f->instance = lmdb_copy_instance(&f->copy);
	f->published = f->position.changed;
	f->status.revision = f->published;
	*backend = (struct store_backend){
		.arg = f,
		.max_ops = config->max_txn_ops - 2,
		.load = fleet_load,
		.apply = fleet_apply,
		.watch = fleet_watch,
		.taken = fleet_taken,
		.close = fleet_close,
	};
	*fleet = f;
	return 0;
fail:
	fleet_close(f);
	return rc;
}

int
fleet_start(struct fleet *f, void (*wake)(void *arg), void *arg, struct error *err)
{
	int rc;

	f->wake = wake;
	f->wake_arg = arg;
	f->stop = false;
	rc = pthread_create(&f->thread, NULL, fleet_main, f);
	if (rc != 0)
		return error_set(err, rc, "the fleet's thread does not start");
	f->started = true;
	return 0;
}

void
fleet_stop(struct fleet *f)
{
	if (!f->started)
		return;
	__atomic_store_n(&f->stop, true, __ATOMIC_RELEASE);
	etcd_client_wake(f->session);
	pthread_join(f->thread, NULL);
	f->started = false;
}

void
fleet_status(struct fleet *f, struct fleet_status *status)
{
	pthread_mutex_lock(&f->lock);
	*status = f->status;
	pthread_mutex_unlock(&f->lock);
	if (status->silent_ms != 0)
		status->silent_ms = etcd_now_ms() - status->silent_ms;
	status->leads = fleet_leads(f);
	status->connected = fleet_connected(f);
}
