/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Subscriptions to notices: a requester sets InformInfo for itself (sa-multipacket B10).
 */

#include <stddef.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define SUBSCRIPTIONS_PER_PORT 64

/*
 * True if two InformInfos subscribe to the same. Subscribe, RespTime and the QP are ignored: a
 * requester has only one subscription to the same notices.
 */
static bool
same_info(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, INFO_OFF_SUBSCRIBE) == 0 &&
		memcmp(a + INFO_OFF_TYPE, b + INFO_OFF_TYPE, INFO_OFF_QPN - INFO_OFF_TYPE) == 0 &&
		memcmp(a + INFO_OFF_PRODUCER, b + INFO_OFF_PRODUCER, 3) == 0;
}

/*
 * Find a subscriber's subscription to the same, and an Enum that it does not use yet. @return
 * number of its subscriptions
 */
static unsigned int
inform_look_up(const struct write_batch *b, const uint8_t *gid, const uint8_t *info,
	const struct store_record **same, uint16_t *free_enum)
{
	uint64_t key = sa_gid_key(gid), used = 0, at;
	const struct store_record *r;
	struct store_cursor c;
	unsigned int n = 0;

	*same = NULL;
	store_seek_index(&c, write_view(b), SA_INDEX_SUBSCRIBER, key);
	while ((r = store_next(&c, &at)) != NULL && at == key) {
		uint16_t number = get_be16(r->bytes + INFORM_OFF_ENUM);

		if (memcmp(r->bytes + INFORM_OFF_GID, gid, 16) != 0)
			continue;
		n++;
		if (number < SUBSCRIPTIONS_PER_PORT)
			used |= UINT64_C(1) << number;
		if (same_info(r->bytes + INFORM_OFF_INFO, info))
			*same = r;
	}
	*free_enum = used != UINT64_MAX ? __builtin_ctzll(~used) : SUBSCRIPTIONS_PER_PORT;
	return n;
}

static uint16_t
inform_subscribe(struct write_batch *b, struct sa_write *w, const struct store_record *same,
	uint16_t number)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct subscriber s, old;

	w->rid = same != NULL ? same->rid : write_new_rid(b, SA_TABLE_INFORM);
	if (w->rid == 0)
		return SA_STATUS_NO_RESOURCES;
	if (same != NULL)
		number = get_be16(same->bytes + INFORM_OFF_ENUM);
	memcpy(rec + INFORM_OFF_GID, w->who.gid.raw, 16);
	put_be16(rec + INFORM_OFF_ENUM, number);
	memcpy(rec + INFORM_OFF_INFO, w->rec, INFO_LEN);
	memset(&s, 0, sizeof(s));
	s.origin = b->origin;
	s.expiry = lease_of_stranger(b);
	s.peer = w->peer;
	/* the index is not valid after a restart: use the MAC */
	s.peer.neighbour = PATH_NO_NEIGHBOUR;
	s.class_version = w->version;
	s.trusted = w->who.trusted;
	s.sees_keys = w->who.sight == SA_SEES_KEYS;
	if (same != NULL && subscriber_of(same, &old))
		s.asked = old.asked + 1;
	return write_put_subscriber(b, w->rid, rec, &s);
}

uint16_t
write_subscribe(struct write_batch *b, struct sa_write *w)
{
	const struct store_record *same;
	uint16_t number;
	unsigned int n;

	if (w->rec[INFO_OFF_GENERIC] > 1 || w->rec[INFO_OFF_SUBSCRIBE] > 1)
		return MAD_STATUS_INVALID_FIELD;
	/* Reports go to the QP that subscribes, not to one that it names */
	put_be32(w->rec + INFO_OFF_QPN,
		w->peer.qpn << 8 | (get_be32(w->rec + INFO_OFF_QPN) & 0x1F));
	n = inform_look_up(b, w->who.gid.raw, w->rec, &same, &number);
	if (w->rec[INFO_OFF_SUBSCRIBE] == 0) {
		if (same == NULL)
			return SA_STATUS_REQ_INVALID;
		return write_del(b, sa_table_type(SA_TABLE_INFORM), same->rid);
	}
	if (same == NULL &&
		(n >= SUBSCRIPTIONS_PER_PORT || number >= SUBSCRIPTIONS_PER_PORT ||
			!share_has_room(b, w, SA_TABLE_INFORM, w->who.gid.raw)))
		return SA_STATUS_NO_RESOURCES;
	return inform_subscribe(b, w, same, number);
}

uint16_t
write_subscriber(struct write_batch *b, const struct store_record *r, const uint8_t *gid)
{
	const struct sa_record_type *t = sa_table_type(SA_TABLE_INFORM);
	const struct store_record *same;
	uint8_t rec[SA_RECORD_MAX];
	struct subscriber s;
	uint16_t number;

	inform_look_up(b, gid, r->bytes + INFORM_OFF_INFO, &same, &number);
	if (same != NULL || number >= SUBSCRIPTIONS_PER_PORT)
		return write_del(b, t, r->rid);
	memcpy(rec, r->bytes, t->len);
	memcpy(rec + INFORM_OFF_GID, gid, 16);
	put_be16(rec + INFORM_OFF_ENUM, number);
	if (!subscriber_of(r, &s))
		return write_put(b, t, r->rid, rec, NULL, 0);
	s.origin = s.expiry = 0;
	return write_put_subscriber(b, r->rid, rec, &s);
}
