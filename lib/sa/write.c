/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Execute batches of changes on the store's thread: one transaction; each request completely or
 * not.
 */

#include <errno.h>
#include <string.h>

#include "sa/server.h"

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
	[WRITE_IMPORT] = write_import,
	[WRITE_CONFIG_STAGED] = write_config,
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

int
sa_replace(struct sa *sa, enum sa_replaced what, const struct sa_change *changes, size_t n,
	struct error *err)
{
	struct write_batch b;
	size_t i;
	int rc;

	if (!write_begin(&b, sa))
		return error_set(err, ENOMEM, "no memory for a transaction");
	rc = write_remove_before(&b, what, err);
	for (i = 0; i < n && rc == 0; i++)
		rc = write_change(&b, &changes[i], err);
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
