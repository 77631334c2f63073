/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Put a record whose caller has no tail for it. */

#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"

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
	uint16_t status;

	if (t->table == SA_TABLE_INFORM && subscriber_at(b, rid, rec, &s))
		return write_put_subscriber(b, rid, rec, &s);
	if (t->table == SA_TABLE_SERVICE)
		return lease_put_service(b, rid, rec);
	status = write_put(b, t, rid, rec, NULL, 0);
	if (status == MAD_STATUS_OK &&
		(t->table == SA_TABLE_NODE || t->table == SA_TABLE_PORT_INFO))
		return write_adopt(b, rid >> 16);
	return status;
}
