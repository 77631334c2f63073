/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The end of leases (lease.c), and their start for records that were imported without an end. A
 * stranger's membership or subscription whose port the database knows by then has no lease.
 */

#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"

/* Imported without an end: the lease starts now. */
static uint16_t
start_service(struct write_batch *b, const struct store_record *r)
{
	uint8_t rec[SA_RECORD_MAX];

	memcpy(rec, r->bytes, SERVICE_LEN);
	return lease_put_service(b, r->rid, rec);
}

static uint16_t
end_service(struct write_batch *b, const struct store_record *r)
{
	return write_del(b, sa_table_type(SA_TABLE_SERVICE), r->rid);
}

/* The port of a stranger may have become known. */
static bool
lease_owner_is_known(const struct write_batch *b, const uint8_t *gid)
{
	struct port_view port;

	return port_view_gid(write_view(b), b->sa->config.gid_prefix, gid, &port);
}

static uint16_t
start_membership(struct write_batch *b, const struct store_record *r)
{
	const struct sa_record_type *t = sa_table_type(SA_TABLE_MCMEMBER);
	uint8_t rec[SA_RECORD_MAX];
	struct member_tail tail;

	member_tail_of(r, &tail);
	tail.expiry = b->now + STRANGER_LEASE;
	memcpy(rec, r->bytes, t->len);
	if (lease_owner_is_known(b, rec + MC_OFF_PORT_GID))
		tail = (struct member_tail){ 0 };
	return write_put(b, t, r->rid, rec, &tail, sizeof(tail));
}

static uint16_t
end_membership(struct write_batch *b, const struct store_record *r)
{
	struct sa_write w = { .type = sa_table_type(SA_TABLE_MCMEMBER) };

	if (lease_owner_is_known(b, r->bytes + MC_OFF_PORT_GID))
		return start_membership(b, r);
	return mc_remove_member(b, &w, r, 0xF);
}

static uint16_t
start_subscription(struct write_batch *b, const struct store_record *r)
{
	const struct sa_record_type *t = sa_table_type(SA_TABLE_INFORM);
	uint8_t rec[SA_RECORD_MAX];
	struct subscriber s;

	if (!subscriber_of(r, &s))
		return write_del(b, t, r->rid);
	s.expiry = b->now + STRANGER_LEASE;
	memcpy(rec, r->bytes, t->len);
	if (lease_owner_is_known(b, rec + INFORM_OFF_GID))
		s.origin = s.expiry = 0;
	return write_put_subscriber(b, r->rid, rec, &s);
}

static uint16_t
end_subscription(struct write_batch *b, const struct store_record *r)
{
	if (lease_owner_is_known(b, r->bytes + INFORM_OFF_GID))
		return start_subscription(b, r);
	return write_del(b, sa_table_type(SA_TABLE_INFORM), r->rid);
}

static const struct {
	uint8_t index; /* by the end in seconds; 0: the lease has not started yet */
	uint16_t (*start)(struct write_batch *b, const struct store_record *r);
	uint16_t (*end)(struct write_batch *b, const struct store_record *r);
} lease_kinds[] = {
	{ SA_INDEX_LEASE_END, start_service, end_service },
	{ SA_INDEX_MEMBERSHIP_END, start_membership, end_membership },
	{ SA_INDEX_SUBSCRIPTION_END, start_subscription, end_subscription },
};

/*
 * The rest waits for the next transaction. The end of a lease changes few records, or as many as
 * half of a transaction if a group goes with it.
 */
static bool
expire_is_full(const struct write_batch *b)
{
	size_t max = store_max_ops(b->sa->config.store);

	return max != 0 && b->changes >= max / 4;
}

/* @return when the next lease of this kind ends; b->now or earlier: the store is full */
static uint64_t
expire_kind(struct write_batch *b, unsigned int kind)
{
	const struct store_record *r;
	struct write_point before;
	struct store_cursor c;
	uint64_t end;
	uint16_t status;

	for (;;) {
		store_seek_index(&c, write_view(b), lease_kinds[kind].index, 0);
		r = store_next(&c, &end);
		if (r == NULL)
			return LEASE_NEVER;
		if (end > b->now || expire_is_full(b))
			return end;
		write_save(b, &before);
		status = end != 0 ? lease_kinds[kind].end(b, r) : lease_kinds[kind].start(b, r);
		if (status == MAD_STATUS_OK)
			continue;
		write_undo(b, &before); /* a group goes as a whole or not at all */
		return end;
	}
}

unsigned int
lease_expire(struct write_batch *b, uint64_t *next)
{
	unsigned int kind;
	uint64_t end;

	*next = b->now != 0 ? LEASE_NEVER : 0;
	for (kind = 0; b->now != 0 && kind < sizeof(lease_kinds) / sizeof(lease_kinds[0]); kind++) {
		end = expire_kind(b, kind);
		if (end < *next)
			*next = end;
	}
	return b->changes;
}
