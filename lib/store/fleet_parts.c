/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Changes of more records than one transaction of etcd's takes. The leader writes them in parts,
 * each of which writes c/part; the last transaction removes c/part and writes c/change. Nobody uses
 * the records of parts before c/change comes: the watch gathers them here. A leader that finds
 * c/part where no change goes on undoes the parts: it writes what its own copy has, as parts, too,
 * and then removes c/part without c/change.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_private.h"

#define UNDO_BYTES (1024u << 10) /* in one transaction */

/* --- the fleet's thread: what the watch brings --- */

static int
gather_make_room(struct fleet_gather *g, size_t bytes)
{
	size_t ops = g->room > 0 ? 2 * g->room : 64;
	size_t more = 2 * (g->used + bytes) + 4096;
	struct gathered_op *op = g->op;
	uint8_t *at = g->bytes;

	if (g->n == g->room) {
		op = reallocarray(g->op, ops, sizeof(*op));
		if (op == NULL)
			return -ENOMEM;
		g->op = op;
		g->room = ops;
	}
	if (g->used + bytes > g->bytes_room) {
		at = realloc(g->bytes, more);
		if (at == NULL)
			return -ENOMEM;
		g->bytes = at;
		g->bytes_room = more;
	}
	return 0;
}

int
fleet_gather_record(struct fleet *f, const struct etcd_kv *kv)
{
	struct fleet_gather *g = &f->gather;
	struct gathered_op op = { .at = g->used, .len = (uint16_t)kv->value_len, .gone = kv->gone };

	if (!fleet_record_key(f, kv->key, &op.table, &op.rid) || kv->value_len > UINT16_MAX)
		return 0; /* what people write there is no record */
	if (gather_make_room(g, kv->value_len) != 0)
		return -ENOMEM;
	if (kv->value_len > 0)
		memcpy(g->bytes + g->used, kv->value, kv->value_len);
	g->used += kv->value_len;
	g->op[g->n++] = op;
	return 0;
}

static bool
is_record_key(const struct fleet *f, const char *key)
{
	return strncmp(key, f->key.records, strlen(f->key.records)) == 0;
}

/* What the events of a revision say about the change that they belong to. */
struct revision_kind {
	bool change; /* it is complete */
	uint64_t part_created; /* of its c/part; 0: it is no part */
	bool undone;
};

static struct revision_kind
revision_kind_of(const struct fleet *f, const struct etcd_kv *kv, size_t n)
{
	struct revision_kind k = { .change = false };
	size_t i;

	for (i = 0; i < n; i++) {
		if (strcmp(kv[i].key, f->key.change) == 0)
			k.change = true;
		else if (strcmp(kv[i].key, f->key.part) == 0 && kv[i].gone)
			k.undone = true;
		else if (strcmp(kv[i].key, f->key.part) == 0)
			k.part_created = kv[i].create_revision;
	}
	return k;
}

int
fleet_gather(struct fleet *f, const struct etcd_kv *kv, size_t n)
{
	const struct revision_kind kind = revision_kind_of(f, kv, n);
	struct fleet_gather *g = &f->gather;
	size_t i;
	int rc = 0;

	if (!kind.change && kind.part_created == 0 && !g->open)
		return 0; /* no appliance writes records alone */
	for (i = 0; i < n && rc == 0; i++)
		if (is_record_key(f, kv[i].key))
			rc = fleet_gather_record(f, &kv[i]);
	if (rc != 0)
		return rc;
	if (kind.change) {
		g->complete = g->n;
		g->complete_revision = kv[0].mod_revision;
	}
	if (kind.part_created != 0)
		g->part_created = kind.part_created;
	g->open = (g->open || kind.part_created != 0) && !kind.change && !kind.undone;
	if (!g->open)
		g->n = g->complete;
	return 0;
}

void
fleet_gather_back(struct fleet *f, const struct fleet_gather *before)
{
	struct fleet_gather *g = &f->gather;

	g->n = before->n;
	g->used = before->used;
	g->complete = before->complete;
	g->complete_revision = before->complete_revision;
	g->open = before->open;
	g->part_created = before->part_created;
}

void
fleet_gather_drop(struct fleet *f, size_t n)
{
	struct fleet_gather *g = &f->gather;

	/* bytes of what stays are not moved: they go when nothing is left */
	if (g->n > n)
		memmove(g->op, g->op + n, (g->n - n) * sizeof(g->op[0]));
	g->n -= n;
	g->complete = 0;
	if (g->n == 0)
		g->used = 0;
}

void
fleet_gather_free(struct fleet *f)
{
	free(f->gather.op);
	free(f->gather.bytes);
	f->gather = (struct fleet_gather){ .op = NULL };
}

/* --- the fleet's thread, before it leads: undo parts --- */

/* A record that parts have changed, and what our copy has. */
struct undo_record {
	uint8_t table;
	uint32_t rid;
	uint8_t *bytes; /* NULL: it was not there */
	uint16_t len;
};

struct undo {
	struct undo_record *record;
	size_t n;
};

static int
undo_compare(const void *a, const void *b)
{
	const struct undo_record *x = a, *y = b;

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->rid < y->rid ? -1 : x->rid > y->rid;
}

static int
undo_remember(void *to, const struct store_op *op)
{
	struct undo_record key = { .table = op->table, .rid = op->rid }, *r;
	struct undo *u = to;

	r = bsearch(&key, u->record, u->n, sizeof(*r), undo_compare);
	if (r == NULL)
		return 0;
	r->bytes = malloc(op->len > 0 ? op->len : 1);
	if (r->bytes == NULL)
		return -ENOMEM;
	memcpy(r->bytes, op->bytes, op->len);
	r->len = op->len;
	return 0;
}

static int
undo_prepare(struct fleet *f, struct undo *u, struct error *err)
{
	const struct fleet_gather *g = &f->gather;
	size_t i, k = 0;

	u->record = calloc(g->n + 1, sizeof(u->record[0]));
	if (u->record == NULL)
		return error_set(err, ENOMEM, "no memory to undo a change");
	for (i = 0; i < g->n; i++) {
		u->record[i].table = g->op[i].table;
		u->record[i].rid = g->op[i].rid;
	}
	qsort(u->record, g->n, sizeof(u->record[0]), undo_compare);
	for (i = 0; i < g->n; i++)
		if (i == 0 || undo_compare(&u->record[i], &u->record[i - 1]) != 0)
			u->record[k++] = u->record[i];
	u->n = k;
	return f->copy.load(f->copy.arg, undo_remember, u, err);
}

/* Not executed late, when the undo has ended and c/part is gone. */
static int
undo_send(struct fleet *f, json_t *ops, struct error *err)
{
	json_t *reply;
	int rc;

	rc = etcd_call(f->session, "/v3/kv/txn",
		json_pack("{s:[o, o], s:o}", "compare",
			etcd_compare(f->key.leader, "CREATE", "create_revision", f->campaigned),
			etcd_compare(f->key.part, "CREATE", "create_revision",
				f->gather.part_created),
			"success", ops),
		FLEET_REQUEST_MS, &reply, err);
	if (rc == 0 && !json_is_true(json_object_get(reply, "succeeded")))
		rc = error_set(err, ESTALE, "another appliance leads, or has undone it");
	json_decref(reply);
	return rc;
}

static int
undo_all(struct fleet *f, const struct undo *u, struct error *err)
{
	const struct undo_record *r = u->record, *end = u->record + u->n;
	char key[FLEET_KEY_MAX];
	json_t *ops;
	size_t num, bytes;
	int rc = 0;

	while (rc == 0 && r < end) {
		ops = json_array();
		json_array_append_new(ops, etcd_put(f->key.part, "undo", 4, 0));
		for (num = 1, bytes = 0;
			r < end && num < f->config.max_txn_ops - 1u && bytes < UNDO_BYTES;
			r++, num++, bytes += r[-1].len) {
			fleet_put_record_key(f, key, r->table, r->rid);
			json_array_append_new(ops,
				r->bytes != NULL ? etcd_put(key, r->bytes, r->len, 0)
						 : etcd_delete(key));
		}
		rc = undo_send(f, ops, err);
	}
	if (rc != 0)
		return rc;
	ops = json_array();
	json_array_append_new(ops, etcd_delete(f->key.part));
	return undo_send(f, ops, err);
}

int
fleet_undo_parts(struct fleet *f, struct error *err)
{
	struct undo u = { NULL, 0 };
	size_t i;
	int rc;

	if (!f->gather.open)
		return 0;
	if (f->copy_stopped)
		return error_set(err, ENODATA,
			"a large change is to be undone, and the copy on disk is too old for that: another appliance must lead");
	FLEET_LOG(NOTICE, "%s undoes a large change that its leader did not complete: %zu records",
		f->config.name, f->gather.n);
	rc = undo_prepare(f, &u, err);
	if (rc == 0)
		rc = undo_all(f, &u, err);
	for (i = 0; i < u.n; i++)
		free(u.record[i].bytes);
	free(u.record);
	return rc;
}
