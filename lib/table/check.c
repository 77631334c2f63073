/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What table.h claims about rows, asserted. Tables are constants: a wrong row is a mistake of
 * whoever wrote it, never of the JSON that it reads.
 */

#include <rte_debug.h>

#include "table/check.h"

#ifdef RTE_ENABLE_ASSERT

/* field_load() and field_store() know these sizes. */
static bool
is_number_size(size_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* What the row's type needs of its other members */
static void
table_check_row(const struct table_row *row)
{
	switch (row->type) {
	case TABLE_UINT:
		RTE_ASSERT(row->max == 0 || row->min <= row->max);
		RTE_ASSERT(row->digits <= 16);
		RTE_ASSERT(is_number_size(row->size));
		break;
	case TABLE_ENUM:
	case TABLE_FLAGS:
		RTE_ASSERT(row->words != NULL);
		RTE_ASSERT(is_number_size(row->size));
		break;
	case TABLE_INT:
		RTE_ASSERT((int64_t)row->min <= (int64_t)row->max);
		RTE_ASSERT(is_number_size(row->size));
		break;
	case TABLE_BOOL:
		RTE_ASSERT(row->size == sizeof(bool));
		break;
	case TABLE_FORM:
		RTE_ASSERT(row->form != NULL);
		break;
	case TABLE_OBJECT:
	case TABLE_INCLUDE:
		RTE_ASSERT(row->fields != NULL);
		break;
	case TABLE_LIST:
		RTE_ASSERT(row->fields != NULL && row->item_size > 0);
		break;
	default:
		break;
	}
}

void
table_check(const struct table_row *rows)
{
	RTE_ASSERT(rows != NULL);
	for (; rows->name != NULL; rows++) {
		RTE_ASSERT(rows->type <= TABLE_MEMBERS);
		table_check_row(rows);
	}
}

#endif
