/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A requester whose LID is no known port subscribes and offers services under an identity made of
 * its LID (access.h). When the operator or a sweep stores the port of that LID, its subscriptions
 * and services become that port's, under the port's first GID.
 */

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

static const struct {
	uint8_t table;
	uint8_t index;
	uint8_t gid; /* offset of the owner's GID in the record */
	uint16_t (*give)(struct write_batch *b, const struct store_record *r, const uint8_t *gid);
} kinds[] = {
	{ SA_TABLE_INFORM, SA_INDEX_SUBSCRIBER, INFORM_OFF_GID, write_subscriber },
	{ SA_TABLE_SERVICE, SA_INDEX_SERVICE_GID, SERVICE_OFF_GID, write_service_owner },
};

/* Move all records of one LID. Each moved record leaves the LID's index key, so the loop ends. */
static uint16_t
adopt_lid(struct write_batch *b, uint16_t lid, const union gid *port, unsigned int kind)
{
	uint16_t status = MAD_STATUS_OK;
	const struct store_record *r;
	union gid gid;

	sa_gid_of_lid(lid, &gid);
	while (status == MAD_STATUS_OK &&
		(r = write_find(write_view(b), kinds[kind].index, sa_gid_key(gid.raw),
			 kinds[kind].gid, gid.raw, sizeof(gid.raw))) != NULL)
		status = kinds[kind].give(b, r, port->raw);
	return status;
}

uint16_t
write_adopt(struct write_batch *b, uint16_t lid)
{
	uint16_t status = MAD_STATUS_OK;
	struct port_view port;
	unsigned int i, kind;
	union gid gid;

	for (kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		if (store_count(write_view(b), kinds[kind].table) == 0 ||
			!port_view_lid(write_view(b), lid, &port))
			continue;
		put_be64(gid.raw, b->sa->config.gid_prefix);
		put_be64(gid.raw + 8, port.guid);
		for (i = 0; i < 1u << port.lmc && status == MAD_STATUS_OK; i++)
			status = adopt_lid(b, port.lid + i, &gid, kind);
	}
	return status;
}
