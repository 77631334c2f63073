/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The tails of records: our own data about a record, stored after its bytes and never sent. */

#include <stddef.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/tables.h"
#include "sa/write.h"
#include "wire/bytes.h"

void
member_tail_of(const struct store_record *r, struct member_tail *tail)
{
	memset(tail, 0, sizeof(*tail));
	/* without .expiry: written before strangers' memberships had leases */
	if (r->len == MC_LEN + sizeof(*tail) ||
		r->len == MC_LEN + offsetof(struct member_tail, expiry))
		memcpy(tail, r->bytes + MC_LEN, r->len - MC_LEN);
}

bool
subscriber_of(const struct store_record *r, struct subscriber *s)
{
	const struct sa_record_type *t = sa_table_type(SA_TABLE_INFORM);

	memset(s, 0, sizeof(*s));
	/* without .expiry: written before strangers' subscriptions had leases */
	if (r->len != t->len + sizeof(*s) && r->len != t->len + offsetof(struct subscriber, expiry))
		return false;
	memcpy(s, r->bytes + t->len, r->len - t->len);
	return true;
}

/* False for a record without a tail (imported). */
static bool
service_tail_of(const struct store_record *r, struct service_tail *tail)
{
	if (r->len != SERVICE_LEN + sizeof(*tail))
		return false;
	memcpy(tail, r->bytes + SERVICE_LEN, sizeof(*tail));
	return true;
}

uint64_t
service_lease_end(const struct store_record *r)
{
	bool endless = get_be32(r->bytes + SERVICE_OFF_LEASE) == SERVICE_FOREVER;
	struct service_tail tail;

	if (service_tail_of(r, &tail))
		return tail.expiry;
	return endless ? LEASE_NEVER : 0;
}

uint64_t
service_origin(const struct store_record *r)
{
	struct service_tail tail;

	return service_tail_of(r, &tail) ? tail.origin : 0;
}
