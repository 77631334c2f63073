/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Anti-exhaustion: what requesters that may not change everything may store. Each address has a
 * share of a table. A stranger can forge any number of addresses, so all strangers at one port
 * share a second limit, and all strangers together a third one. Known ports and the operator
 * always find room: strangers have at most half of the MLIDs, and a few MB of the store. They have
 * to leave three quarters of a small store, and known ports half of it to the operator.
 */

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define SHARE_OF_ADDRESS   1024
#define SHARE_OF_PORT      4096
#define SHARE_OF_STRANGERS 8192
/* percent of the store's room */
#define ROOM_FOR_STRANGERS 25
#define ROOM_FOR_PORTS     50

static const struct {
	uint8_t owner; /* index by the owner's GID */
	uint8_t stranger; /* index by origin, of strangers' records only */
} shares[SA_TABLES] = {
	[SA_TABLE_SERVICE] = { SA_INDEX_SERVICE_GID, SA_INDEX_STRANGER_SERVICE },
	[SA_TABLE_MCMEMBER] = { SA_INDEX_MC_PORT, SA_INDEX_STRANGER_MEMBER },
	[SA_TABLE_INFORM] = { SA_INDEX_SUBSCRIBER, SA_INDEX_STRANGER_SUBSCRIBER },
};

uint64_t
share_origin(const struct requester *who, const struct mad_peer *peer)
{
	if (!who->stranger || who->manager)
		return 0;
	if (peer->av.encap == ENCAP_IB)
		return 1 + (uint64_t)peer->av.dlid;
	/* stored, so not sa_gid_key(), whose secret is new at each start */
	return (get_be64(peer->av.sgid.raw) ^ get_be64(peer->av.sgid.raw + 8)) | UINT64_C(1) << 63;
}

bool
share_has_room(const struct write_batch *b, struct sa_write *w, unsigned int table,
	const uint8_t *gid)
{
	const struct store_version *v = write_view(b);
	unsigned int stranger = shares[table].stranger;
	uint64_t key = sa_gid_key(gid);

	if (w->who.manager)
		return true;
	w->share_full = store_is_above(b->sa->config.store,
				b->origin != 0 ? ROOM_FOR_STRANGERS : ROOM_FOR_PORTS) ||
		store_index_count(v, shares[table].owner, key, key) >= SHARE_OF_ADDRESS ||
		(b->origin != 0 &&
			(store_index_count(v, stranger, b->origin, b->origin) >= SHARE_OF_PORT ||
				store_index_count(v, stranger, 0, UINT64_MAX) >=
					SHARE_OF_STRANGERS));
	return !w->share_full;
}
