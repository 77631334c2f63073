/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The leader's changes: each is one transaction of etcd's, or parts and a last transaction if it is
 * too large for one (fleet_parts.c).
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

#include "store/etcd_transport.h"
#include "store/fleet_private.h"

#define TXN_BYTES_MAX (1400u << 10) /* of etcd's 1.5 MiB, the rest for keys and framing */
#define LARGE_TRIES   10 /* of a transaction, each of which takes up to FLEET_REQUEST_MS */

struct change {
	const struct store_op **op; /* the last one of each record */
	size_t n;
	size_t sent; /* so many of them are in etcd, as parts */
	uint64_t part_revision; /* of the last part */
	unsigned int attempts; /* of the last transaction */
	/* one may be executed later, or more than once: */
	bool doubt;
	bool refused; /* the conditions of the last one do not hold */
	bool holds; /* it was refused, and we lead and nothing has changed, or for room */
	char nonce[17];
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

static bool
is_of_change(const struct etcd_kv *kv, const struct change *c)
{
	return kv != NULL && kv->value_len == strlen(c->nonce) &&
		memcmp(kv->value, c->nonce, kv->value_len) == 0;
}

/* The conditions failed: find out whether an earlier attempt had been executed. */
static int
change_refused(struct fleet *f, struct change *c, uint64_t lead, const json_t *reply,
	struct error *err)
{
	const struct etcd_kv *kv, *leader;
	struct etcd_kvs kvs;
	int rc = etcd_json_got(reply, &kvs, err);

	if (rc != 0)
		return rc;
	leader = etcd_kvs_find(&kvs, f->key.leader);
	kv = etcd_kvs_find(&kvs, f->key.change);
	c->holds = leader != NULL && leader->create_revision == lead &&
		(kv != NULL ? kv->mod_revision : 0) == f->published;
	c->refused = !is_of_change(kv, c);
	if (c->refused)
		rc = error_set(err, EAGAIN,
			"the fleet's database has changed meanwhile; try again");
	else
		c->revision = kv->mod_revision;
	etcd_kvs_free(&kvs);
	return rc;
}

/*
 * A transaction of a change. etcd looks at its quota before it takes one, and again when it has
 * executed it: -ENOSPC may be said of one that was executed. Then @p key, which it puts, has our
 * nonce with a revision that is new.
 *
 * @param reply  NULL if such a transaction was executed: *@p revision is that of the key
 */
static int
change_call(struct fleet *f, struct change *c, json_t *body, const char *key, uint64_t *revision,
	json_t **reply, struct error *err)
{
	int rc = fleet_writer_call(f, body, reply, err), found;
	const struct etcd_kv *kv;
	struct etcd_kvs kvs;

	c->attempts = f->writer->attempts;
	c->doubt |= (rc != 0 && rc != -ENOSPC) || c->attempts != 1;
	if (rc != -ENOSPC)
		return rc;
	found = fleet_writer_call(f, json_pack("{s:[o]}", "success", etcd_get(key, NULL)), reply,
		NULL);
	if (found == 0)
		found = etcd_json_got(*reply, &kvs, NULL);
	json_decref(*reply);
	*reply = NULL;
	if (found != 0) {
		c->doubt = true;
		return error_set(err, EAGAIN,
			"etcd has no room, and does not say whether it has made the change");
	}
	kv = etcd_kvs_find(&kvs, key);
	if (is_of_change(kv, c) && kv->mod_revision > *revision) {
		*revision = kv->mod_revision;
		rc = 0;
	} else {
		c->holds = true;
	}
	etcd_kvs_free(&kvs);
	return rc;
}

static int
change_commit(struct fleet *f, struct change *c, uint64_t lead, struct error *err)
{
	struct etcd_header header;
	json_t *reply;
	int rc = change_call(f, c, change_request(f, c, lead), f->key.change, &c->revision, &reply,
		err);

	if (rc != 0 || reply == NULL)
		return rc;
	if (etcd_json_header(reply, &header) != 0)
		rc = error_set(err, EPROTO, "etcd's answer lacks what its API promises");
	else if (json_is_true(json_object_get(reply, "succeeded")))
		c->revision = header.revision;
	else
		rc = change_refused(f, c, lead, reply, err);
	json_decref(reply);
	return rc;
}

/* A transaction of a large change. It may be repeated: it puts the same once more. */
static int
change_part(struct fleet *f, struct change *c, size_t n, uint64_t lead, struct error *err)
{
	json_t *ops = record_ops(f, c, n), *reply;
	struct etcd_header header;
	int rc;

	json_array_append_new(ops, etcd_put(f->key.part, c->nonce, strlen(c->nonce), 0));
	rc = change_call(f, c,
		json_pack("{s:o, s:o}", "compare", change_compares(f, lead), "success", ops),
		f->key.part, &c->part_revision, &reply, err);
	c->refused = rc == 0 && reply != NULL && !json_is_true(json_object_get(reply, "succeeded"));
	if (c->refused)
		rc = error_set(err, EAGAIN,
			"the fleet's database has changed meanwhile; try again");
	else if (rc == 0 && reply != NULL && etcd_json_header(reply, &header) == 0)
		c->part_revision = header.revision;
	json_decref(reply);
	return rc;
}

/*
 * True if etcd may have executed a request that failed. A refusal by the only endpoint that was
 * asked says that it has not; an earlier one may have executed it without an answer.
 */
static bool
may_be_executed(const struct change *c, int rc)
{
	return c->attempts > 1 || rc == -EAGAIN || rc == -EPROTO || etcd_gave_no_answer(rc);
}

/*
 * So many transactions follow each other that one without an answer, or one that etcd does not take
 * while it elects a leader, must not end them all.
 */
static bool
large_change_goes_on(const struct fleet *f, const struct change *c, int rc, unsigned int tries)
{
	return (etcd_gave_no_answer(rc) || (rc == -EAGAIN && !c->refused)) && tries < LARGE_TRIES &&
		fleet_leads(f);
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
	bool there;
	int rc = 0;

	while (rc == 0 && count_fitting(f, c, others, f->keep_len) < c->n - c->sent) {
		if (__atomic_load_n(&f->long_work_ends, __ATOMIC_RELAXED))
			return error_set(err, ECANCELED, "the appliance stops");
		n = count_fitting(f, c, 1, 0);
		tries = 0;
		there = false;
		do {
			rc = change_part(f, c, n, lead, err);
			there |= rc == 0 || may_be_executed(c, rc);
		} while (large_change_goes_on(f, c, rc, ++tries));
		if (there)
			c->sent += n;
	}
	return rc;
}

/*
 * Parts are in etcd, and the last transaction is not. If it was refused although we lead and
 * nothing has changed, because a request has gone that it was to answer, this lead undoes the
 * parts; if one may be executed later, only another lead keeps it out.
 */
static void
change_stopped(struct fleet *f, const struct change *c, uint64_t lead)
{
	bool in_place = c->holds && !c->doubt;

	__atomic_store_n(&f->undo_behind, in_place ? c->part_revision : 0, __ATOMIC_RELEASE);
	__atomic_store_n(&f->stopped, lead, __ATOMIC_RELEASE);
}

static int
not_here(struct fleet *f, struct error *err)
{
	char leader[FLEET_NAME_MAX];

	pthread_mutex_lock(&f->lock);
	strcpy(leader, f->status.leader);
	pthread_mutex_unlock(&f->lock);
	if (__atomic_load_n(&f->away, __ATOMIC_RELAXED))
		return fleet_not_served(f, err);
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
	if (etcd_random(&random) != 0)
		return error_set(err, EIO, "the kernel gives no random numbers");
	snprintf(c.nonce, sizeof(c.nonce), "%016" PRIx64, random);
	rc = choose_ops(ops, n, &c, err);
	if (rc == 0)
		rc = change_parts(f, &c, lead, err);
	if (rc == 0)
		do
			rc = change_commit(f, &c, lead, err);
		while (c.sent > 0 && large_change_goes_on(f, &c, rc, ++tries));
	if (rc != 0 && c.sent > 0)
		change_stopped(f, &c, lead);
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

int
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
