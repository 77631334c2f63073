/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Publish changes that others made: the backend hands them over in batches. */

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "store/private.h"

static int
follow_one(struct store_txn *t, const struct store_op *op)
{
	int rc;

	if (op->table >= t->store->config.tables)
		return -EBADMSG;
	if (op->bytes != NULL)
		return store_put(t, op->table, op->rid, op->bytes, op->len);
	rc = store_del(t, op->table, op->rid);
	return rc == -ENOENT ? 0 : rc;
}

static int
follow_changes(struct store_txn *t, const struct store_batch *b)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < b->n && rc == 0; i++)
		rc = follow_one(t, &b->ops[i]);
	return rc;
}

static bool
is_same(const struct store_record *r, const struct store_op *op)
{
	return r->len == op->len && memcmp(r->bytes, op->bytes, op->len) == 0;
}

/*
 * Make one table's records equal to its part of a complete batch. Both are walked in the order of
 * RIDs, the records in the version before the transaction, which does not change meanwhile.
 *
 * @return number of the batch's records that were in this table, or an error
 */
static ssize_t
replace_table(struct store_txn *t, unsigned int table, const struct store_op *ops, size_t n)
{
	const struct store_record *r;
	struct store_cursor c;
	size_t i = 0;
	int rc = 0;

	store_seek(&c, t->store->current, table, 0);
	r = store_next(&c, NULL);
	while (rc == 0 && (r != NULL || (i < n && ops[i].table == table))) {
		bool have = i < n && ops[i].table == table;

		if (r != NULL && (!have || r->rid < ops[i].rid)) {
			rc = store_del(t, table, r->rid);
			r = store_next(&c, NULL);
		} else if (r != NULL && r->rid == ops[i].rid) {
			if (!is_same(r, &ops[i]))
				rc = follow_one(t, &ops[i]);
			i++;
			r = store_next(&c, NULL);
		} else {
			rc = follow_one(t, &ops[i++]);
		}
	}
	return rc == 0 ? (ssize_t)i : rc;
}

static int
follow_replace(struct store_txn *t, const struct store_batch *b)
{
	const struct store_op *ops = b->ops; /* NULL if there is no record */
	size_t left = b->n;
	unsigned int table;
	ssize_t got;

	for (table = 0; table < t->store->config.tables; table++) {
		got = replace_table(t, table, ops, left);
		if (got < 0)
			return (int)got;
		if (got > 0)
			ops += got;
		left -= (size_t)got;
	}
	return left == 0 ? 0 : -EBADMSG;
}

int
store_follow(struct store *s, struct error *err)
{
	const struct store_backend *backend = &s->config.backend;
	const struct store_batch *batch;
	struct store_txn *t;
	int rc;

	batch = backend->watch != NULL ? backend->watch(backend->arg) : NULL;
	if (batch == NULL)
		return 0;
	t = store_begin(s);
	if (t == NULL)
		return error_set(err, ENOMEM, "no memory for records that came from elsewhere");
	rc = batch->replace ? follow_replace(t, batch) : follow_changes(t, batch);
	if (rc != 0) {
		store_abort(t);
		return error_set(err, -rc, "records that came from elsewhere: %s",
			rc == -EBADMSG ? "this program does not know their table" : strerror(-rc));
	}
	if (t->num_ops > 0)
		txn_publish(t);
	else
		store_abort(t);
	backend->taken(backend->arg);
	return 1;
}

size_t
store_max_ops(const struct store *s)
{
	return s->config.backend.max_ops;
}
