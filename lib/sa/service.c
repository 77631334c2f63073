/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * ServiceRecords: a port registers services for a lease, protected by a ServiceKey (sa-multipacket
 * B10).
 */

#include <string.h>

#include "base/secret.h"
#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

static bool
service_key_fits(const struct sa_write *w, const uint8_t *stored, const uint8_t *given)
{
	static const uint8_t none[SERVICE_KEY_LEN];

	return w->who.manager || memcmp(stored + SERVICE_OFF_KEY, none, SERVICE_KEY_LEN) == 0 ||
		secret_equal(stored + SERVICE_OFF_KEY, given + SERVICE_OFF_KEY, SERVICE_KEY_LEN);
}

/* Default components: the requester's GID, all partitions, the longest lease. */
static void
service_fill_in(const struct write_batch *b, struct sa_write *w)
{
	if ((w->mask & SA_BIT(SERVICE_BIT_GID)) == 0)
		memcpy(w->rec + SERVICE_OFF_GID, w->who.gid.raw, 16);
	if ((w->mask & SA_BIT(SERVICE_BIT_PKEY)) == 0)
		put_be16(w->rec + SERVICE_OFF_PKEY, 0);
	if ((w->mask & SA_BIT(SERVICE_BIT_LEASE)) == 0)
		put_be32(w->rec + SERVICE_OFF_LEASE, SERVICE_FOREVER);
	if (b->origin != 0 && get_be32(w->rec + SERVICE_OFF_LEASE) > STRANGER_LEASE)
		put_be32(w->rec + SERVICE_OFF_LEASE, STRANGER_LEASE);
}

uint16_t
write_service_set(struct write_batch *b, struct sa_write *w)
{
	const struct store_version *v = write_view(b);
	const struct store_record *old;
	uint16_t pkey;

	if ((w->mask & SA_BIT(SERVICE_BIT_ID)) == 0)
		return SA_STATUS_INSUFFICIENT;
	service_fill_in(b, w);
	pkey = get_be16(w->rec + SERVICE_OFF_PKEY);
	if (get_be32(w->rec + SERVICE_OFF_LEASE) == 0)
		return SA_STATUS_REQ_INVALID;
	if (!write_allowed(b, w, w->rec + SERVICE_OFF_GID) ||
		(pkey != 0 && !w->who.manager && port_member(v, &w->who.port, pkey) == 0))
		return SA_STATUS_DENIED;
	w->rid = write_same(b, w->type, w->rec);
	if (w->rid != 0) {
		old = store_get(v, w->type->table, w->rid);
		if (w->version == SA_V1) /* Set cannot edit (A6) */
			return SA_STATUS_REQ_INVALID;
		if (!service_key_fits(w, old->bytes, w->rec))
			return SA_STATUS_DENIED;
	} else {
		if (!share_has_room(b, w, SA_TABLE_SERVICE, w->rec + SERVICE_OFF_GID))
			return SA_STATUS_NO_RESOURCES;
		w->rid = write_new_rid(b, w->type->table);
		if (w->rid == 0)
			return SA_STATUS_NO_RESOURCES;
	}
	return lease_put_service(b, w->rid, w->rec);
}

/* Find the service that the given identifying components name. */
static const struct store_record *
service_record_find(const struct write_batch *b, const struct sa_write *w)
{
	uint64_t id = get_be64(w->rec + SERVICE_OFF_ID), at;
	const struct store_record *r;
	struct store_cursor c;

	store_seek_index(&c, write_view(b), SA_INDEX_SERVICE_ID, id);
	while ((r = store_next(&c, &at)) != NULL && at == id) {
		if (memcmp(r->bytes + SERVICE_OFF_GID, w->rec + SERVICE_OFF_GID, 16) != 0)
			continue;
		if ((w->mask & SA_BIT(SERVICE_BIT_PKEY)) == 0 ||
			memcmp(r->bytes + SERVICE_OFF_PKEY, w->rec + SERVICE_OFF_PKEY, 2) == 0)
			return r;
	}
	return NULL;
}

uint16_t
write_service_delete(struct write_batch *b, struct sa_write *w)
{
	const struct store_record *r;
	bool fits;

	if ((w->mask & SA_BIT(SERVICE_BIT_ID)) == 0)
		return SA_STATUS_INSUFFICIENT;
	if ((w->mask & SA_BIT(SERVICE_BIT_GID)) == 0)
		memcpy(w->rec + SERVICE_OFF_GID, w->who.gid.raw, 16);
	if (!write_allowed(b, w, w->rec + SERVICE_OFF_GID))
		return SA_STATUS_DENIED;
	r = service_record_find(b, w);
	if (r == NULL)
		return SA_STATUS_NO_RECORDS;
	fits = service_key_fits(w, r->bytes, w->rec);
	memcpy(w->rec, r->bytes, w->type->len);
	w->rid = r->rid;
	return fits ? write_del(b, w->type, w->rid) : SA_STATUS_DENIED;
}

uint16_t
write_service_owner(struct write_batch *b, const struct store_record *r, const uint8_t *gid)
{
	const struct sa_record_type *t = sa_table_type(SA_TABLE_SERVICE);
	struct service_tail tail = { 0 };
	uint8_t rec[SA_RECORD_MAX];

	memcpy(rec, r->bytes, t->len);
	memcpy(rec + SERVICE_OFF_GID, gid, 16);
	if (write_same(b, t, rec) != 0)
		return write_del(b, t, r->rid);
	tail.expiry = service_lease_end(r);
	return write_put(b, t, r->rid, rec, &tail, sizeof(tail));
}

/* Version 1, by RID: the request has no ServiceKey, so only the owner's address is checked. */
uint16_t
write_rid_delete(struct write_batch *b, struct sa_write *w)
{
	const struct store_record *r = store_get(write_view(b), w->type->table, w->rid);
	bool service = w->type->table == SA_TABLE_SERVICE;

	if (r == NULL)
		return SA_STATUS_NO_RECORDS;
	if (!write_allowed(b, w, r->bytes + (service ? SERVICE_OFF_GID : MC_OFF_PORT_GID)))
		return SA_STATUS_DENIED;
	if (!service)
		return mc_remove_member(b, w, r, 0xF);
	memcpy(w->rec, r->bytes, w->type->len);
	return write_del(b, w->type, w->rid);
}
