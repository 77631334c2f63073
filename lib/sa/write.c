/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Execute batches of changes on the store's thread: one transaction; each request completely or
 * not.
 */

#include <errno.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

static uint16_t (*const kinds[])(struct write_batch *b, struct sa_write *w) = {
	[WRITE_SERVICE_SET] = write_service_set,
	[WRITE_SERVICE_DELETE] = write_service_delete,
	[WRITE_MC_JOIN] = write_mc_join,
	[WRITE_MC_LEAVE] = write_mc_leave,
	[WRITE_SUBSCRIBE] = write_subscribe,
	[WRITE_RID_DELETE] = write_rid_delete,
	[WRITE_CONFIG] = write_config,
	[WRITE_NOTICE] = write_notice,
	[WRITE_OWNED] = write_owned,
};

/* --- batches --- */

/* A fleet: the events become durable together with the changes. */
static void
keep_events(struct write_batch *b)
{
	const struct sa_keeper *k = &b->sa->keeper;
	unsigned int n = b->events <= WRITE_EVENTS ? b->events : 0;

	if (k->keep != NULL && !k->keep(k->arg, b->sa->writer.event, n))
		sa_events_lost(b->sa, n);
}

/* The batch is durable. */
static void
post_events(struct write_batch *b)
{
	unsigned int i;

	if (b->events > WRITE_EVENTS) {
		sa_events_lost(b->sa, b->events);
		return;
	}
	for (i = 0; i < b->events && b->sa->keeper.keep == NULL; i++)
		sa_event_post(b->sa, &b->sa->writer.event[i]);
}

static void
fail_all(struct sa_write **writes, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (writes[i]->status == MAD_STATUS_OK)
			writes[i]->status = SA_STATUS_NO_RESOURCES;
}

static void
execute_one(struct write_batch *b, struct sa_write *w)
{
	struct write_point before;

	b->mark = b->events;
	b->origin = share_origin(&w->who, &w->peer);
	write_save(b, &before);
	w->status = kinds[w->kind](b, w);
	if (w->status != MAD_STATUS_OK)
		write_undo(b, &before);
}

/*
 * End a batch: commit its changes and then post their events; without changes nothing is written.
 * @return 0 or the store's error
 */
static int
write_finish(struct write_batch *b, struct error *err)
{
	int rc;

	if (b->changes == 0) {
		store_abort(b->txn);
		return 0;
	}
	rc = store_commit(b->txn, err);
	if (rc == 0)
		post_events(b);
	return rc;
}

static bool
write_begin(struct write_batch *b, struct sa *sa)
{
	*b = (struct write_batch){ .sa = sa, .now = sa->writer.now };
	b->txn = store_begin(sa->config.store);
	return b->txn != NULL;
}

/* @param unfinished  set: it was a part of one request, which is to be executed again */
static int
settle_batch(struct sa *sa, struct sa_write **writes, unsigned int n,
	const struct sa_settle *settle, bool *unfinished)
{
	struct write_batch b;
	unsigned int i;
	int rc = 0;

	for (i = 0; i < n; i++)
		writes[i]->status = MAD_STATUS_OK;
	if (!write_begin(&b, sa))
		return -ENOMEM;
	for (i = 0; i < n; i++)
		execute_one(&b, writes[i]);
	keep_events(&b);
	*unfinished = b.unfinished;
	if (b.unfinished)
		rc = n > 1 ? -E2BIG : 0;
	else if (settle != NULL)
		rc = settle->fn(settle->arg, b.changes == 0);
	if (rc != 0) {
		store_abort(b.txn);
		return rc;
	}
	return write_finish(&b, NULL);
}

int
sa_write_settle(struct sa *sa, struct sa_write **writes, unsigned int n, uint64_t now,
	const struct sa_settle *settle)
{
	bool unfinished;
	int rc;

	sa->writer.now = now;
	do
		rc = settle_batch(sa, writes, n, settle, &unfinished);
	while (rc == 0 && unfinished);
	return rc;
}

void
sa_write_execute(struct sa *sa, struct sa_write **writes, unsigned int n, uint64_t now)
{
	RTE_ASSERT(n > 0);
	if (sa_write_settle(sa, writes, n, now, NULL) != 0)
		fail_all(writes, n);
}

void
sa_followed(struct sa *sa)
{
	memset(sa->writer.next_rid, 0, sizeof(sa->writer.next_rid));
	sa->writer.next_expiry = 0;
}

unsigned int
sa_expire(struct sa *sa, uint64_t now)
{
	struct write_batch b;
	unsigned int changes;
	uint64_t next;

	sa->writer.now = now;
	if (now < sa->writer.next_expiry || !write_begin(&b, sa))
		return 0;
	changes = lease_expire(&b, &next);
	keep_events(&b);
	if (write_finish(&b, NULL) != 0)
		return 0;
	sa->writer.next_expiry = next;
	return changes;
}

void
sa_keep_events(struct sa *sa, const struct sa_keeper *keeper)
{
	sa->keeper = *keeper;
}

/* --- changes by the operator --- */

static int
change_error(const struct sa_change *c, uint16_t status, uint32_t rid, struct error *err)
{
	if (status == SA_STATUS_NO_RECORDS)
		return error_set(err, ENOENT, "%s: there is no record 0x%08x", c->type->name, rid);
	return error_set(err, ENOSPC, "%s: no room in the store", c->type->name);
}

static int
apply_change(struct write_batch *b, const struct sa_change *c, struct error *err)
{
	uint32_t rid = c->rid;
	uint16_t status;

	if (!c->type->stored)
		return error_set(err, EINVAL, "%s: is not stored", c->type->name);
	if (rid == 0)
		rid = sa_rid_assigned(c->type->table) ? write_same(b, c->type, c->rec)
						      : sa_rid(c->type, c->rec);
	if (rid == 0 && !c->remove && sa_rid_assigned(c->type->table)) {
		rid = write_new_rid(b, c->type->table);
		if (rid == 0)
			return change_error(c, SA_STATUS_NO_RESOURCES, 0, err);
	}
	if (rid == 0 && !c->remove)
		return error_set(err, EINVAL, "%s: LID 0", c->type->name);
	if (!c->remove && !sa_rid_assigned(c->type->table) && rid != sa_rid(c->type, c->rec))
		return error_set(err, EINVAL, "%s: got RID 0x%08x, but its components make 0x%08x",
			c->type->name, rid, sa_rid(c->type, c->rec));
	status = c->remove ? write_del(b, c->type, rid) : write_put_plain(b, c->type, rid, c->rec);
	return status == MAD_STATUS_OK ? 0 : change_error(c, status, rid, err);
}

static int
remove_table(struct write_batch *b, unsigned int table, struct error *err)
{
	const struct sa_record_type *t = sa_table_type(table);
	struct store_cursor c;

	while (store_count(write_view(b), table) > 0) {
		store_seek(&c, write_view(b), table, 0);
		if (write_del(b, t, store_next(&c, NULL)->rid) != MAD_STATUS_OK)
			return error_set(err, ENOSPC, "%s: no room in the store", t->name);
	}
	return 0;
}

/* True for tables that a sweep reads from the subnet; requesters wrote the others. */
static bool
is_of_subnet(unsigned int table)
{
	return !sa_rid_assigned(table) && table != SA_TABLE_PATH_SL;
}

static int
remove_before(struct write_batch *b, enum sa_replaced what, struct error *err)
{
	unsigned int table;
	int rc = 0;

	for (table = 0; table < SA_TABLES && rc == 0; table++)
		if (what == SA_REPLACE_ALL || (what == SA_REPLACE_SUBNET && is_of_subnet(table)))
			rc = remove_table(b, table, err);
	return rc;
}

int
sa_replace(struct sa *sa, enum sa_replaced what, const struct sa_change *changes, size_t n,
	struct error *err)
{
	struct write_batch b;
	size_t i;
	int rc;

	if (!write_begin(&b, sa))
		return error_set(err, ENOMEM, "no memory for a transaction");
	rc = remove_before(&b, what, err);
	for (i = 0; i < n && rc == 0; i++)
		rc = apply_change(&b, &changes[i], err);
	if (rc != 0) {
		store_abort(b.txn);
		return rc;
	}
	keep_events(&b);
	return write_finish(&b, err);
}

int
sa_change(struct sa *sa, const struct sa_change *changes, size_t n, struct error *err)
{
	return sa_replace(sa, SA_REPLACE_NOTHING, changes, n, err);
}
