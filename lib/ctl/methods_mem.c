/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <sys/stat.h>

#include "ctl/methods.h"
#include "engine/verbs_pd.h"

/* --- protection domains --- */

static const struct table_row pd_params[] = {
	{ "pd", TABLE_UINT, TABLE_REQUIRED, offsetof(struct number_args, number), sizeof(uint32_t),
		.help = "number of the protection domain" },
	ROW_END,
};

static int
pd_create(struct rpc_call *call)
{
	uint32_t pd;
	int rc = engine_pd_alloc(call->e, &pd, &call->err);

	if (rc == 0)
		set_int(call->result, "pd", pd);
	return rc;
}

static int
pd_destroy(struct rpc_call *call)
{
	const struct number_args *a = call->args;

	return engine_pd_free(call->e, a->number, &call->err);
}

static json_t *
domain_row(struct engine *e, const struct mem_pd_info *info)
{
	json_t *row = json_object();

	set_int(row, "pd", info->pd);
	set_int(row, "users", info->users);
	set_service(row, engine_pd_service(e, info->pd));
	return row;
}

static int
pd_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint32_t cursor = (uint32_t)a->cursor;
	json_t *rows = json_array();
	struct mem_pd_info info;

	while (json_array_size(rows) < a->max) {
		if (!engine_pd_next(call->e, &cursor, &info)) {
			set_page(call, "domains", rows, false, 0);
			return 0;
		}
		json_array_append_new(rows, domain_row(call->e, &info));
	}
	set_page(call, "domains", rows, true, cursor);
	return 0;
}

/* --- memory regions --- */

struct mr_args {
	uint32_t present;
	uint32_t pd;
	uint32_t access;
	uint64_t length;
	uint64_t va;
	const char *file;
	const char *memzone;
	uint64_t offset;
	bool hugepages;
	int numa_node;
};
#define MR_LENGTH 0x1

static const struct table_row mr_register_params[] = {
	ROW(struct mr_args, pd, TABLE_UINT, .flags = TABLE_REQUIRED,
		.help = "protection domain that may use it"),
	ROW(struct mr_args, length, TABLE_UINT, .min = 1, .max = UINT64_MAX, .bit = MR_LENGTH,
		.def_text = "the rest of the file",
		.help = "bytes; required unless file is given"),
	ROW(struct mr_args, access, TABLE_FLAGS, .flags = TABLE_DEFAULT,
		.def = MEM_ACCESS_LOCAL_WRITE, .words = words_access,
		.help = "what may be done with it besides local reads; remote writes and atomics need LOCAL_WRITE"),
	ROW(struct mr_args, va, TABLE_UINT, .flags = TABLE_DEFAULT, .def = UINT64_MAX,
		.def_text = "the address in the server's memory",
		.help = "address that work requests and remote peers use for its first byte"),
	ROW(struct mr_args, file, TABLE_STRING, .max = 4095,
		.help = "map this file of the server's host, shared, instead of fresh zeroed memory"),
	ROW(struct mr_args, memzone, TABLE_STRING, .max = 31,
		.help = "use this named DPDK memzone"),
	ROW(struct mr_args, offset, TABLE_UINT, .flags = TABLE_DEFAULT,
		.help = "first byte of the file or memzone; of a file a multiple of the page size"),
	ROW(struct mr_args, hugepages, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "take hugepages where there are any; the reply says what was had"),
	ROW(struct mr_args, numa_node, TABLE_UINT, .flags = TABLE_DEFAULT, .max = 1023,
		.def = UINT64_MAX, .def_text = "the first worker's", .help = "NUMA node of fresh memory, if it has room; the reply says what was had"),
	ROW_END,
};

static void
set_region(json_t *row, const struct mem_mr_info *info)
{
	set_int(row, "key", info->key);
	set_int(row, "pd", info->pd);
	set_int(row, "va", info->va);
	set_int(row, "length", info->length);
	set(row, "access", json_flags(words_access, info->access));
	set(row, "hugepages", json_boolean(info->hugepages));
	set(row, "numa_node", json_integer(info->numa_node));
}

/* Length of a file from an offset on. */
static int
rest_of_file(struct rpc_call *call, const struct mr_args *a, uint64_t *length)
{
	struct stat st;

	if (stat(a->file, &st) != 0)
		return error_set(&call->err, errno, "file: cannot look at it: %m");
	if (a->offset >= (uint64_t)st.st_size)
		return error_set(&call->err, EINVAL,
			"offset: got %llu, but the file has %llu bytes",
			(unsigned long long)a->offset, (unsigned long long)st.st_size);
	*length = (uint64_t)st.st_size - a->offset;
	return 0;
}

static int
mr_register(struct rpc_call *call)
{
	const struct mr_args *a = call->args;
	struct mem_mr_attr attr = {
		.pd = a->pd,
		.access = a->access,
		.length = a->length,
		.va = (a->access & MEM_ACCESS_ZERO_BASED) != 0 ? 0 : a->va,
		.offset = a->offset,
		.hugepages = a->hugepages,
		.numa_node = a->numa_node,
	};
	struct mem_mr_info info;
	int rc;

	if (a->file != NULL && a->memzone != NULL)
		return error_set(&call->err, EINVAL, "file, memzone: give one of them or none");
	if (a->file != NULL) {
		attr.backing = MEM_FILE;
		attr.path = a->file;
	} else if (a->memzone != NULL) {
		attr.backing = MEM_EXTERNAL;
		attr.path = a->memzone;
	}
	if ((a->present & MR_LENGTH) == 0) {
		if (a->file == NULL)
			return error_set(&call->err, EINVAL, "length: missing, allowed: 1 or more");
		rc = rest_of_file(call, a, &attr.length);
		if (rc != 0)
			return rc;
	}
	rc = engine_mr_register(call->e, &attr, &info, &call->err);
	if (rc != 0)
		return rc;
	set_region(call->result, &info);
	set_int(call->result, "lkey", info.key);
	set_int(call->result, "rkey", info.key);
	return 0;
}

static const struct table_row key_params[] = {
	{ "key", TABLE_UINT, TABLE_REQUIRED, offsetof(struct number_args, number), sizeof(uint32_t),
		.help = "key of the region (its lkey and rkey are this one number)" },
	ROW_END,
};

static int
mr_deregister(struct rpc_call *call)
{
	const struct number_args *a = call->args;

	return engine_mr_deregister(call->e, a->number, &call->err);
}

static int
mr_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint32_t cursor = (uint32_t)a->cursor;
	json_t *row, *rows = json_array();
	struct mem_mr_info info;

	while (json_array_size(rows) < a->max) {
		if (!engine_mr_next(call->e, &cursor, &info)) {
			set_page(call, "regions", rows, false, 0);
			return 0;
		}
		row = json_object();
		set_region(row, &info);
		set_service(row, engine_pd_service(call->e, info.pd));
		json_array_append_new(rows, row);
	}
	set_page(call, "regions", rows, true, cursor);
	return 0;
}

/* --- memory windows --- */

struct mw_args {
	uint32_t pd;
	uint32_t type;
};

static const struct table_row mw_create_params[] = {
	ROW(struct mw_args, pd, TABLE_UINT, .flags = TABLE_REQUIRED,
		.help = "protection domain that may use it"),
	ROW(struct mw_args, type, TABLE_ENUM, .flags = TABLE_DEFAULT, .def = MEM_MW_TYPE_2,
		.words = words_mw_type,
		.help = "TYPE_1: valid for every QP of the domain; TYPE_2: bound to one QP, which chooses the key's low 8 bits and may invalidate it"),
	ROW_END,
};

static const struct table_row mw_key_params[] = {
	{ "key", TABLE_UINT, TABLE_REQUIRED, offsetof(struct number_args, number), sizeof(uint32_t),
		.help = "current key of the window" },
	ROW_END,
};

static int
mw_create(struct rpc_call *call)
{
	const struct mw_args *a = call->args;
	uint32_t key;
	int rc = engine_mw_alloc(call->e, a->pd, (enum mem_mw_type)a->type, &key, &call->err);

	if (rc == 0)
		set_int(call->result, "key", key);
	return rc;
}

static int
mw_destroy(struct rpc_call *call)
{
	const struct number_args *a = call->args;

	return engine_mw_free(call->e, a->number, &call->err);
}

static json_t *
window_row(struct engine *e, const struct mem_mw_info *info)
{
	json_t *row = json_object();

	set_int(row, "key", info->key);
	set_int(row, "pd", info->pd);
	set(row, "type", json_word(words_mw_type, info->type));
	set(row, "bound", json_boolean(info->bound));
	set_service(row, engine_pd_service(e, info->pd));
	if (!info->bound)
		return row;
	set_int(row, "mr_key", info->mr_key);
	if (info->type == MEM_MW_TYPE_2)
		set_int(row, "qp_num", info->qpn);
	set_int(row, "va", info->va);
	set_int(row, "length", info->length);
	set(row, "access", json_flags(words_access, info->access));
	return row;
}

static int
mw_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint32_t cursor = (uint32_t)a->cursor;
	json_t *rows = json_array();
	struct mem_mw_info info;

	while (json_array_size(rows) < a->max) {
		if (!engine_mw_next(call->e, &cursor, &info)) {
			set_page(call, "windows", rows, false, 0);
			return 0;
		}
		json_array_append_new(rows, window_row(call->e, &info));
	}
	set_page(call, "windows", rows, true, cursor);
	return 0;
}

const struct rpc_method methods_mem[] = {
	{ "pd_create", pd_create, params_none, 0,
		"Make a protection domain: regions, windows and queue pairs of one domain may work together.",
		"pd: its number", "polca-ctl pd create" },
	{ "pd_destroy", pd_destroy, pd_params, sizeof(struct number_args),
		"Destroy a protection domain. EBUSY while anything belongs to it.", "",
		"polca-ctl pd destroy 1" },
	{ "pd_list", pd_list, params_page, sizeof(struct page_args), "List protection domains.",
		"domains: list of pd, users (regions, windows, queue pairs and shared receive queues in it), service (whose it is; null: a caller's own)" PAGE_RESULT,
		"polca-ctl pd list" },
	{ "mr_register", mr_register, mr_register_params, sizeof(struct mr_args),
		"Register a memory region: fresh zeroed memory of the server, a file, or a DPDK memzone.",
		"key, lkey, rkey: one number, which names the region in work requests here and at remote peers\n"
		"pd, length, access: as registered\n"
		"va: address of its first byte in work requests\n"
		"hugepages: whether hugepages were had; numa_node: of its first byte",
		"polca-ctl mr register --pd 1 --length 1048576 --access LOCAL_WRITE,REMOTE_WRITE,REMOTE_READ" },
	{ "mr_deregister", mr_deregister, key_params, sizeof(struct number_args),
		"Deregister a region and free its memory. EBUSY while windows are bound to it. When the reply comes no packet can reach it any more.",
		"", "polca-ctl mr deregister 0x1a2b3c4d" },
	{ "mr_list", mr_list, params_page, sizeof(struct page_args), "List memory regions.",
		"regions: list of key, pd, va, length, access, hugepages, numa_node (of its first byte), service (whose it is; null: a caller's own)" PAGE_RESULT,
		"polca-ctl mr list" },
	{ "mw_create", mw_create, mw_create_params, sizeof(struct mw_args),
		"Make a memory window; a BIND_MW work request binds it to a part of a region.",
		"key: of the unbound window", "polca-ctl mw create --pd 1 --type TYPE_2" },
	{ "mw_destroy", mw_destroy, mw_key_params, sizeof(struct number_args),
		"Destroy a memory window, bound or not.", "", "polca-ctl mw destroy 0x1a2b3c4d" },
	{ "mw_list", mw_list, params_page, sizeof(struct page_args), "List memory windows.",
		"windows: list of key, pd, type, bound, service (whose it is; null: a caller's own), and of those bound: mr_key, qp_num (TYPE_2), va, length, access" PAGE_RESULT,
		"polca-ctl mw list" },
	{ NULL },
};
