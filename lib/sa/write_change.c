/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Parts of an operator's change: records that are put or removed, and tables that are replaced. */

#include <errno.h>

#include "sa/server.h"
#include "sa/tables.h"

static int
change_error(const struct sa_change *c, uint16_t status, uint32_t rid, struct error *err)
{
	if (status == SA_STATUS_NO_RECORDS)
		return error_set(err, ENOENT, "%s: there is no record 0x%08x", c->type->name, rid);
	return error_set(err, ENOSPC, "%s: no room in the store", c->type->name);
}

int
write_change(struct write_batch *b, const struct sa_change *c, struct error *err)
{
	uint32_t rid = c->rid;
	uint16_t status;

	if (!c->type->stored)
		return error_set(err, EINVAL, "%s: is not stored", c->type->name);
	if (rid == 0)
		rid = sa_rid_assigned(c->type->table) ? write_same(b, c->type, c->rec)
						      : sa_rid(c->type, c->rec);
	if (rid == 0 && !c->remove && sa_rid_assigned(c->type->table)) {
		rid = write_new_rid(b, c->type->table);
		if (rid == 0)
			return change_error(c, SA_STATUS_NO_RESOURCES, 0, err);
	}
	if (rid == 0 && !c->remove)
		return error_set(err, EINVAL, "%s: LID 0", c->type->name);
	if (!c->remove && !sa_rid_assigned(c->type->table) && rid != sa_rid(c->type, c->rec))
		return error_set(err, EINVAL, "%s: got RID 0x%08x, but its components make 0x%08x",
			c->type->name, rid, sa_rid(c->type, c->rec));
	status = c->remove ? write_del(b, c->type, rid) : write_put_plain(b, c->type, rid, c->rec);
	return status == MAD_STATUS_OK ? 0 : change_error(c, status, rid, err);
}

static int
remove_table(struct write_batch *b, unsigned int table, struct error *err)
{
	const struct sa_record_type *t = sa_table_type(table);
	struct store_cursor c;

	while (store_count(write_view(b), table) > 0) {
		store_seek(&c, write_view(b), table, 0);
		if (write_del(b, t, store_next(&c, NULL)->rid) != MAD_STATUS_OK)
			return error_set(err, ENOSPC, "%s: no room in the store", t->name);
	}
	return 0;
}

/* True for tables that a sweep reads from the subnet; requesters wrote the others. */
static bool
is_of_subnet(unsigned int table)
{
	return !sa_rid_assigned(table) && table != SA_TABLE_PATH_SL;
}

int
write_remove_before(struct write_batch *b, enum sa_replaced what, struct error *err)
{
	unsigned int table;
	int rc = 0;

	for (table = 0; table < SA_TABLES && rc == 0; table++)
		if (what == SA_REPLACE_ALL || (what == SA_REPLACE_SUBNET && is_of_subnet(table)))
			rc = remove_table(b, table, err);
	return rc;
}
