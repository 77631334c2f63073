/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The tails of records: our own data about a record, stored after its bytes and never sent. */

#include <stddef.h>
#include <string.h>

#include "sa/form.h"
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

#define SUBSCRIBER_FORM 1

static void
form_subscriber(struct form *f, struct subscriber *s)
{
	NUMBER(f, s->origin);
	form_peer(f, &s->peer);
	NUMBER(f, s->class_version);
	FLAG(f, s->trusted);
	FLAG(f, s->sees_keys);
	NUMBER(f, s->asked);
	NUMBER(f, s->expiry);
}

size_t
subscriber_put(const struct subscriber *s, uint8_t tail[SUBSCRIBER_TAIL_MAX])
{
	struct form f = { .out = tail, .len = SUBSCRIBER_TAIL_MAX, .at = 1 };
	struct subscriber copy = *s;

	tail[0] = SUBSCRIBER_FORM;
	form_subscriber(&f, &copy);
	return f.at;
}

bool
subscriber_of(const struct store_record *r, struct subscriber *s)
{
	const struct sa_record_type *t = sa_table_type(SA_TABLE_INFORM);
	size_t len = r->len > t->len ? (size_t)r->len - t->len : 0;
	struct form f = { .in = r->bytes + t->len, .len = len, .at = 1 };

	memset(s, 0, sizeof(*s));
	/* databases of earlier releases have the structure itself, at first without .expiry */
	if (len == sizeof(*s) || len == offsetof(struct subscriber, expiry)) {
		memcpy(s, r->bytes + t->len, len);
		return true;
	}
	if (len == 0 || r->bytes[t->len] != SUBSCRIBER_FORM)
		return false;
	form_subscriber(&f, s);
	s->peer.neighbour = PATH_NO_NEIGHBOUR;
	return !f.bad && f.at == len;
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
