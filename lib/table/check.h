/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TABLE_CHECK_H
#define TABLE_CHECK_H

/**
 * @file
 * Private to lib/table: invariants of a table. Builds with RTE_ENABLE_ASSERT check each table
 * before they decode or encode with it; others contain none of it.
 */

#include <rte_common.h>

#include "table/table.h"

#ifdef RTE_ENABLE_ASSERT
/** The rows themselves; those of its objects and lists are checked when they are used. */
void table_check(const struct table_row *rows);
#else
#define table_check(rows) RTE_SET_USED(rows)
#endif

#endif
