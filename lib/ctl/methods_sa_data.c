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

/* --- sa_import --- */

struct import_args {
	const char *path;
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
	ROW(struct import_args, path, TABLE_STRING, .max = 4095,
		.help = "file on the server's host; it or text is required"),
	ROW(struct import_args, text, TABLE_STRING, .max = 1 << 20, .help = "what such a file holds"),
	ROW(struct import_args, format, TABLE_ENUM, .flags = TABLE_DEFAULT, .def = FORMAT_JSON,
		.words = words_format,
		.help = "json: as sa export and sa table --json write it; ibnetdiscover: that tool's output, LIDs included, and dump_fts's behind it or alone"),
	ROW(struct import_args, mtu, TABLE_ENUM, .flags = TABLE_DEFAULT, .words = words_mtu,
		.help = "of ports whose MTU the file does not say, as ibnetdiscover's never does; paths through ports of unknown MTU claim 256"),
	ROW(struct import_args, replace, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "remove everything that is stored before"),
	ROW_END,
};

int
wait_for_import(struct rpc_call *call)
{
	struct engine_sa_imported i;

	engine_sa_import_poll(call->e, &i, &call->err);
	if (!i.done)
		return RPC_WAIT;
	if (i.result != 0)
		return i.result;
	set_int(call->result, "records", i.records);
	set_int(call->result, "elapsed_us", i.elapsed_us);
	return 0;
}

static int
sa_import(struct rpc_call *call)
{
	const struct import_args *a = call->args;
	struct engine_sa_import import = {
		.path = a->path,
		.text = a->text,
		.len = a->text != NULL ? strlen(a->text) : 0,
		.parser = parsers[a->format],
		.replace = a->replace ? SA_REPLACE_ALL : SA_REPLACE_NOTHING,
		.mtu = (uint8_t)a->mtu,
	};
	int rc;

	if (call->progress != 0)
		return wait_for_import(call);
	if ((a->path == NULL) == (a->text == NULL))
		return error_set(&call->err, EINVAL, "path, text: give one of them");
	rc = engine_sa_import_start(call->e, &import, &call->err);
	if (rc != 0)
		return rc;
	call->progress = 1;
	return RPC_WAIT;
}

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
	{ "sa_import", sa_import, import_params, sizeof(struct import_args),
		"Put records into the SA's database, all of them or, if one is wrong, none. The reply comes when they are on disk.",
		"records: how many\n"
		"elapsed_us: how long it took",
		"polca-ctl sa import fabric.json --replace" },
	{ "sa_export", sa_export, params_page, sizeof(struct page_args),
		"What the SA's database holds, as it was when the first page was asked for. A walk that rests for minutes, or that the database has changed away under, ends with ESTALE.",
		"records: list of objects: record (its type), rid, components by name" PAGE_RESULT,
		"polca-ctl sa export fabric.json" },
	{ NULL },
};
