/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Leases. Services end with theirs. The memberships and subscriptions of strangers end an hour
 * after they last asked for them, because a stranger's address may be forged and nobody would ever
 * remove them. lease_expire.c removes what has outlived its lease.
 */

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

static void
lease_note(struct write_batch *b, uint64_t end)
{
	if (end < b->sa->writer.next_expiry)
		b->sa->writer.next_expiry = end;
}

uint64_t
lease_of_stranger(struct write_batch *b)
{
	uint64_t end = b->now != 0 ? b->now + STRANGER_LEASE : 0;

	if (b->origin == 0)
		return 0;
	lease_note(b, end);
	return end;
}

static struct service_tail
service_tail(const struct write_batch *b, const uint8_t *rec)
{
	uint32_t lease = get_be32(rec + SERVICE_OFF_LEASE);
	struct service_tail tail = { LEASE_NEVER, b->origin };

	if (lease != SERVICE_FOREVER)
		tail.expiry = b->now != 0 ? b->now + lease : 0;
	return tail;
}

uint16_t
lease_put_service(struct write_batch *b, uint32_t rid, const uint8_t *rec)
{
	struct service_tail tail = service_tail(b, rec);

	lease_note(b, tail.expiry);
	return write_put(b, sa_table_type(SA_TABLE_SERVICE), rid, rec, &tail, sizeof(tail));
}
