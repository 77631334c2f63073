/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Config of class version 1: config_add, delete or edit records of one type, all or none
 * (sa-multipacket A6).
 */

#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"

void
config_read_wire(const struct sa_write *w, uint64_t offset, uint8_t *wire, size_t len)
{
	if (w->staged != NULL)
		memcpy(wire, w->staged + offset, len);
	else if (w->forwarded != NULL)
		memcpy(wire, w->forwarded + offset, len);
	else if (w->body != NULL)
		mad_body_read(w->body, offset, wire, len);
	else
		memcpy(wire, w->data + offset, len);
}

static bool
is_lid_rid(uint32_t rid)
{
	return rid >> 16 != 0 && rid >> 16 < LID_UNICAST_END;
}

static uint16_t
config_add(struct write_batch *b, const struct sa_record_type *t, uint32_t rid, const uint8_t *rec)
{
	bool assigned = sa_rid_assigned(t->table);

	if (assigned && write_same(b, t, rec) != 0)
		return SA_STATUS_REQ_INVALID;
	if (assigned && rid == 0) {
		rid = write_new_rid(b, t->table);
		if (rid == 0)
			return SA_STATUS_NO_RESOURCES;
	}
	if (rid == SA_RID_TEMPLATE || (!assigned && !is_lid_rid(rid)))
		return MAD_STATUS_INVALID_FIELD;
	if (store_get(write_view(b), t->table, rid) != NULL)
		return SA_STATUS_REQ_INVALID;
	return write_put_plain(b, t, rid, rec);
}

static uint16_t
config_edit(struct write_batch *b, const struct sa_record_type *t, uint32_t rid, const uint8_t *rec)
{
	uint32_t same;

	if (store_get(write_view(b), t->table, rid) == NULL)
		return SA_STATUS_NO_RECORDS;
	same = sa_rid_assigned(t->table) ? write_same(b, t, rec) : 0;
	if (same != 0 && same != rid)
		return SA_STATUS_REQ_INVALID;
	return write_put_plain(b, t, rid, rec);
}

static uint16_t
config_one(struct write_batch *b, const struct sa_write *w, uint32_t rid, const uint8_t *rec)
{
	switch (w->edit) {
	case SA_EDIT_ADD:
		return config_add(b, w->type, rid, rec);
	case SA_EDIT_DELETE:
		return write_del(b, w->type, rid);
	case SA_EDIT_EDIT:
	default:
		return config_edit(b, w->type, rid, rec);
	}
}

uint16_t
write_config(struct write_batch *b, struct sa_write *w)
{
	uint16_t size = sa_wire_len(w->type, SA_V1), status = MAD_STATUS_OK;
	uint8_t wire[SA_RECORD_MAX + 4], rec[SA_RECORD_MAX] = { 0 };
	size_t len = w->staged != NULL ? w->staged_len : w->data_len, offset;
	uint32_t rid;

	if (len % size != 0)
		return SA_STATUS_REQ_INVALID;
	for (offset = 0; offset < len && status == MAD_STATUS_OK; offset += size) {
		config_read_wire(w, offset, wire, size);
		sa_decode(w->type, SA_V1, wire, rec, &rid);
		status = config_one(b, w, rid, rec);
	}
	return status;
}
