/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The SA's database as a whole: in from a file, out page by page.
 */

#include <errno.h>
#include <string.h>

#include "ctl/json_record.h"
#include "ctl/methods.h"

/* --- sa_export --- */

static int
sa_export(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	const struct sa_record_type *t;
	uint8_t rec[SA_RECORD_MAX];
	uint64_t cursor = a->cursor;
	json_t *rows = json_array();
	uint32_t rid;
	int rc = 1;

	while (json_array_size(rows) < a->max) {
		rc = engine_sa_export(call->e, &cursor, &t, &rid, rec, &call->err);
		if (rc != 1)
			break;
		json_array_append_new(rows, json_record(t, rid, rec));
	}
	if (rc < 0) {
		json_decref(rows);
		return rc;
	}
	set_page(call, "records", rows, rc == 1, cursor);
	return 0;
}

const struct rpc_method methods_sa_data[] = {
	{ "sa_export", sa_export, params_page, sizeof(struct page_args),
		"What the SA's database holds, as it was when the first page was asked for. A walk that rests for minutes, or that the database has changed away under, ends with ESTALE.",
		"records: list of objects: record (its type), rid, components by name" PAGE_RESULT,
		"polca-ctl sa export fabric.json" },
	{ NULL },
};
