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

#define TAIL_MAX 192

static uint16_t (*const kinds[])(struct write_batch *b, struct sa_write *w) = {
	[WRITE_SERVICE_SET] = write_service_set,
	[WRITE_SERVICE_DELETE] = write_service_delete,
	[WRITE_MC_JOIN] = write_mc_join,
	[WRITE_MC_LEAVE] = write_mc_leave,
	[WRITE_SUBSCRIBE] = write_subscribe,
	[WRITE_RID_DELETE] = write_rid_delete,
	[WRITE_CONFIG] = write_config,
};

const struct store_version *
write_view(const struct write_batch *b)
{
	return store_txn_view(b->txn);
}

/* --- events: posted after the batch is durable --- */

/* A port that is removed and put again by one request causes no event. */
static bool
event_cancels(struct write_batch *b, uint16_t trap, const uint8_t *gid)
{
	struct sa_event *events = b->sa->writer.event;
	uint16_t opposite = trap ^ TRAP_IN_SERVICE ^ TRAP_OUT_OF_SERVICE;
	unsigned int i;

	if (trap != TRAP_IN_SERVICE)
		return false;
	for (i = b->mark; i < b->events; i++)
		if (events[i].trap == opposite && memcmp(events[i].gid.raw, gid, 16) == 0) {
			events[i] = events[--b->events];
			return true;
		}
	return false;
}

void
write_event(struct write_batch *b, uint16_t trap, uint16_t pkey, const uint8_t *gid)
{
	struct sa_event *e;

	if (b->events > WRITE_EVENTS || event_cancels(b, trap, gid))
		return;
	if (b->events++ == WRITE_EVENTS)
		return; /* too many: events > WRITE_EVENTS means that all are lost */
	e = &b->sa->writer.event[b->events - 1];
	e->trap = trap;
	e->pkey = pkey;
	memcpy(e->gid.raw, gid, 16);
}

static void
post_events(struct write_batch *b)
{
	unsigned int i;

	if (b->events > WRITE_EVENTS) {
		sa_events_lost(b->sa, b->events);
		return;
	}
	for (i = 0; i < b->events; i++)
		sa_event_post(b->sa, &b->sa->writer.event[i]);
}

static bool
port_is_stored(const struct write_batch *b, uint64_t guid)
{
	struct store_cursor c;
	uint64_t key;

	store_seek_index(&c, write_view(b), SA_INDEX_PORT_GUID, guid);
	return store_next(&c, &key) != NULL && key == guid;
}

static void
port_event(struct write_batch *b, uint16_t trap, uint64_t guid)
{
	uint8_t gid[16];

	put_be64(gid, b->sa->config.gid_prefix);
	put_be64(gid + 8, guid);
	write_event(b, trap, 0, gid);
}

/* --- records --- */

static uint16_t
write_status(int rc)
{
	if (rc == 0)
		return MAD_STATUS_OK;
	return rc == -ENOENT ? SA_STATUS_NO_RECORDS : SA_STATUS_NO_RESOURCES;
}

static uint64_t
port_guid_at(const struct write_batch *b, uint32_t rid)
{
	const struct store_record *r = store_get(write_view(b), SA_TABLE_NODE, rid);

	return r != NULL ? get_be64(r->bytes + NODE_OFF_PORT_GUID) : 0;
}

uint16_t
write_put(struct write_batch *b, const struct sa_record_type *t, uint32_t rid, const uint8_t *rec,
	const void *tail, size_t tail_len)
{
	uint8_t bytes[SA_RECORD_MAX + TAIL_MAX];
	bool node = t->table == SA_TABLE_NODE;
	uint64_t old = 0, guid = 0;
	bool known = false;
	int rc;

	_Static_assert(sizeof(struct subscriber) <= TAIL_MAX, "room behind a record");
	if (node) {
		old = port_guid_at(b, rid);
		guid = get_be64(rec + NODE_OFF_PORT_GUID);
		known = port_is_stored(b, guid);
	}
	memcpy(bytes, rec, t->len);
	if (tail_len != 0)
		memcpy(bytes + t->len, tail, tail_len);
	rc = store_put(b->txn, t->table, rid, bytes, t->len + tail_len);
	if (rc != 0)
		return write_status(rc);
	b->changes++;
	if (node && old != 0 && old != guid && !port_is_stored(b, old))
		port_event(b, TRAP_OUT_OF_SERVICE, old);
	if (node && !known)
		port_event(b, TRAP_IN_SERVICE, guid);
	return node || t->table == SA_TABLE_PORT_INFO ? write_adopt(b, rid >> 16) : MAD_STATUS_OK;
}

uint16_t
write_del(struct write_batch *b, const struct sa_record_type *t, uint32_t rid)
{
	uint64_t guid = t->table == SA_TABLE_NODE ? port_guid_at(b, rid) : 0;
	int rc = store_del(b->txn, t->table, rid);

	if (rc != 0)
		return write_status(rc);
	b->changes++;
	if (guid != 0 && !port_is_stored(b, guid))
		port_event(b, TRAP_OUT_OF_SERVICE, guid);
	return MAD_STATUS_OK;
}

/*
 * Where the Reports of the stored subscription go. @return false: there is none, its GID differs,
 * or it has no such address
 */
static bool
subscriber_at(const struct write_batch *b, uint32_t rid, const uint8_t *rec, struct subscriber *s)
{
	const struct store_record *r = store_get(write_view(b), SA_TABLE_INFORM, rid);

	return r != NULL && memcmp(r->bytes + INFORM_OFF_GID, rec + INFORM_OFF_GID, 16) == 0 &&
		subscriber_of(r, s);
}

uint16_t
write_put_plain(struct write_batch *b, const struct sa_record_type *t, uint32_t rid,
	const uint8_t *rec)
{
	struct subscriber s;

	if (t->table == SA_TABLE_INFORM && subscriber_at(b, rid, rec, &s))
		return write_put(b, t, rid, rec, &s, sizeof(s));
	if (t->table == SA_TABLE_SERVICE)
		return lease_put_service(b, rid, rec);
	return write_put(b, t, rid, rec, NULL, 0);
}

uint32_t
write_new_rid(struct write_batch *b, unsigned int table)
{
	const struct store_version *v = write_view(b);
	uint32_t *next = &b->sa->writer.next_rid[table];
	uint64_t n = store_count(v, table), tries;
	struct store_cursor c;

	if (*next == 0) {
		*next = 1;
		if (n > 0) {
			store_seek(&c, v, table, n - 1);
			*next = store_next(&c, NULL)->rid + 1;
		}
	}
	/*
	 * take RIDs in turn, so that one is not reused for long; n + 1 tries find a free one, if
	 * any
	 */
	for (tries = 0; tries <= n; tries++) {
		uint32_t rid = (*next)++;

		if (rid != 0 && rid != SA_RID_TEMPLATE && store_get(v, table, rid) == NULL)
			return rid;
	}
	return 0;
}

const struct store_record *
write_find(const struct store_version *v, unsigned int index, uint64_t key, unsigned int offset,
	const uint8_t *bytes, size_t len)
{
	const struct store_record *r;
	struct store_cursor c;
	uint64_t at;

	store_seek_index(&c, v, index, key);
	while ((r = store_next(&c, &at)) != NULL && at == key)
		if (memcmp(r->bytes + offset, bytes, len) == 0)
			return r;
	return NULL;
}

uint32_t
write_same(const struct write_batch *b, const struct sa_record_type *t, const uint8_t *rec)
{
	const struct store_version *v = write_view(b);
	const struct store_record *r = NULL;

	if (t->table == SA_TABLE_SERVICE)
		r = write_find(v, SA_INDEX_SERVICE_ID, get_be64(rec), 0, rec, SERVICE_OFF_PKEY + 2);
	else if (t->table == SA_TABLE_MCMEMBER)
		r = write_find(v, SA_INDEX_MC_MEMBER, sa_member_key(rec, rec + MC_OFF_PORT_GID), 0,
			rec, MC_OFF_QKEY);
	else if (t->table == SA_TABLE_INFORM)
		r = write_find(v, SA_INDEX_SUBSCRIBER, sa_gid_key(rec), 0, rec,
			INFORM_OFF_ENUM + 2);
	return r != NULL ? r->rid : 0;
}

bool
write_allowed(const struct write_batch *b, const struct sa_write *w, const uint8_t *gid)
{
	return w->who.manager || sa_owns(write_view(b), b->sa->config.gid_prefix, &w->who, gid);
}

/* --- batches --- */

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
	struct store_savepoint sp;
	unsigned int events = b->events, changes = b->changes;

	b->mark = events;
	b->origin = share_origin(&w->who, &w->peer);
	store_save(b->txn, &sp);
	w->status = kinds[w->kind](b, w);
	if (w->status == MAD_STATUS_OK)
		return;
	store_rollback(b->txn, &sp);
	b->events = events;
	b->changes = changes;
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

void
sa_write_execute(struct sa *sa, struct sa_write **writes, unsigned int n, uint64_t now)
{
	struct write_batch b;
	unsigned int i;

	sa->writer.now = now;
	for (i = 0; i < n; i++)
		writes[i]->status = MAD_STATUS_OK;
	if (!write_begin(&b, sa)) {
		fail_all(writes, n);
		return;
	}
	for (i = 0; i < n; i++)
		execute_one(&b, writes[i]);
	if (write_finish(&b, NULL) != 0)
		fail_all(writes, n);
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
	if (write_finish(&b, NULL) != 0)
		return 0;
	sa->writer.next_expiry = next;
	return changes;
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
	return write_finish(&b, err);
}

int
sa_change(struct sa *sa, const struct sa_change *changes, size_t n, struct error *err)
{
	return sa_replace(sa, SA_REPLACE_NOTHING, changes, n, err);
}
