/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the changes of a batch do to records: put, remove, find, and note the events that follow.
 */

#include <errno.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define TAIL_MAX 192

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

/* @return NULL: too many; events > WRITE_EVENTS means that all are lost */
static struct sa_event *
new_event(struct write_batch *b)
{
	struct sa_event *e;

	if (b->events > WRITE_EVENTS || b->events++ == WRITE_EVENTS)
		return NULL;
	e = &b->sa->writer.event[b->events - 1];
	memset(e, 0, sizeof(*e));
	return e;
}

void
write_event(struct write_batch *b, uint16_t trap, uint16_t pkey, const uint8_t *gid)
{
	struct sa_event *e;

	if (b->events > WRITE_EVENTS || event_cancels(b, trap, gid))
		return;
	e = new_event(b);
	if (e == NULL)
		return;
	e->trap = trap;
	e->pkey = pkey;
	memcpy(e->gid.raw, gid, 16);
}

void
write_trap_event(struct write_batch *b, const uint8_t *notice)
{
	struct sa_event *e = new_event(b);

	if (e == NULL)
		return;
	e->is_trap = true;
	memcpy(e->notice, notice, sizeof(e->notice));
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

	_Static_assert(SUBSCRIBER_TAIL_MAX <= TAIL_MAX, "room behind a record");
	RTE_ASSERT(rid != 0 && tail_len <= TAIL_MAX && (tail != NULL || tail_len == 0));
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
	return MAD_STATUS_OK;
}

uint16_t
write_put_subscriber(struct write_batch *b, uint32_t rid, const uint8_t *rec,
	const struct subscriber *s)
{
	uint8_t tail[SUBSCRIBER_TAIL_MAX];
	size_t len = subscriber_put(s, tail);

	return write_put(b, sa_table_type(SA_TABLE_INFORM), rid, rec, tail, len);
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

void
write_save(struct write_batch *b, struct write_point *p)
{
	store_save(b->txn, &p->store);
	p->events = b->events;
	p->changes = b->changes;
}

void
write_undo(struct write_batch *b, const struct write_point *p)
{
	store_rollback(b->txn, &p->store);
	b->events = p->events;
	b->changes = p->changes;
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
