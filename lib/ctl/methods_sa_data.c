/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The SA's database as a whole: in from a file, out page by page.
 */

#include <errno.h>
#include <string.h>

#include "ctl/forms.h"
#include "ctl/json_record.h"
#include "ctl/methods.h"

/* --- sa_import --- */

struct import_args {
	const char *file;
	const char *text;
	uint32_t format;
	uint32_t mtu;
	bool replace;
};

enum import_format {
	FORMAT_JSON,
	FORMAT_IBNETDISCOVER,
};

static const struct table_word words_format[] = {
	{ "json", FORMAT_JSON },
	{ "ibnetdiscover", FORMAT_IBNETDISCOVER },
	{ NULL, 0 },
};

static const struct table_word words_mtu[] = {
	{ "unknown", 0 },
	{ "256", 1 },
	{ "512", 2 },
	{ "1024", 3 },
	{ "2048", 4 },
	{ "4096", 5 },
	{ NULL, 0 },
};

static const engine_sa_parser parsers[] = {
	[FORMAT_JSON] = sa_import_json,
	[FORMAT_IBNETDISCOVER] = sa_import_ibnetdiscover,
};

static const struct table_row import_params[] = {
	ROW(struct import_args, file, TABLE_FILE,
		.help = "read from its beginning to its end, at most sa.max_import_mb; it or text is required"),
	ROW(struct import_args, text, TABLE_STRING, "what such a file holds", .max = 1 << 20),
	ROW(struct import_args, format, TABLE_ENUM,
		"json: as sa export and sa table --json write it; ibnetdiscover: that tool's output, LIDs included, and dump_fts's behind it or alone",
		.def = FORMAT_JSON, .words = words_format),
	ROW(struct import_args, mtu, TABLE_ENUM,
		"of ports whose MTU the file does not say, as ibnetdiscover's never does; paths through ports of unknown MTU claim 256",
		.words = words_mtu),
	ROW(struct import_args, replace, TABLE_BOOL, "remove everything that is stored before"),
	ROW_END,
};

int
wait_for_import(struct rpc_call *call, struct engine_sa_imported *imported)
{
	engine_sa_import_poll(call->e, imported, &call->err);
	return imported->done ? imported->result : RPC_WAIT;
}

static const struct table_row sa_import_results[] = {
	ROW(struct engine_sa_imported, records, TABLE_UINT, "how many"),
	ROW(struct engine_sa_imported, elapsed_us, TABLE_UINT, "how long it took"),
	ROW_END,
};

static int
sa_import(struct rpc_call *call)
{
	const struct import_args *a = call->args;
	struct engine_sa_import import = {
		.fd = call->fd,
		.text = a->text,
		.len = a->text != NULL ? strlen(a->text) : 0,
		.parser = parsers[a->format],
		.replace = a->replace ? SA_REPLACE_ALL : SA_REPLACE_NOTHING,
		.mtu = (uint8_t)a->mtu,
	};
	int rc;

	if (call->progress != 0)
		return wait_for_import(call, call->reply);
	if ((a->file == NULL) == (a->text == NULL))
		return error_set(&call->err, EINVAL, "file, text: give one of them");
	rc = engine_sa_import_start(call->e, &import, &call->err);
	if (rc != 0)
		return rc;
	call->progress = 1;
	return RPC_WAIT;
}

/* --- sa_export --- */

struct export_reply {
	json_t *records;
	uint64_t cursor; /* 0: that was all */
};

static const struct table_row sa_export_results[] = {
	RECORDS_ROW(struct export_reply),
	ROW(struct export_reply, cursor, TABLE_UINT,
		"pass it to get the rows that follow; null: there are none", .flags = TABLE_NULL,
		.min = 1),
	ROW_END,
};

static int
sa_export(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	struct export_reply *reply = call->reply;
	const struct sa_record_type *t;
	uint8_t rec[SA_RECORD_MAX];
	uint64_t cursor = a->cursor;
	uint32_t rid;
	int rc = 1;

	reply->records = arena_json(&call->arena, json_array());
	while (rc == 1 && json_array_size(reply->records) < a->max) {
		rc = engine_sa_export(call->e, &cursor, &t, &rid, rec, &call->err);
		if (rc == 1 && json_array_append_new(reply->records, json_record(t, rid, rec)) != 0)
			return -ENOMEM;
	}
	if (rc < 0)
		return rc;
	reply->cursor = rc == 1 ? cursor : 0;
	return 0;
}

const struct rpc_method methods_sa_data[] = {
	{ "sa_import", sa_import, import_params, sizeof(struct import_args),
		"Put records into the SA's database, all of them or, if one is wrong, none. The reply comes when they are on disk.",
		"polca-ctl sa import fabric.json --replace",
		RESULTS(sa_import_results, struct engine_sa_imported) },
	{ "sa_export", sa_export, params_page, sizeof(struct page_args),
		"What the SA's database holds, as it was when the first page was asked for. A walk that rests for minutes, or that the database has changed away under, ends with ESTALE.",
		"polca-ctl sa export fabric.json",
		RESULTS(sa_export_results, struct export_reply) },
	{ NULL },
};
