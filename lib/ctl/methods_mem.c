/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>

#include "base/file_kind.h"
#include "ctl/forms.h"
#include "ctl/methods.h"
#include "engine/verbs_pd.h"

/* --- protection domains --- */

static const struct table_row pd_params[] = {
	NUMBER_ROW("pd", "number of the protection domain", .flags = TABLE_REQUIRED),
	ROW_END,
};

static const struct table_row pd_create_results[] = { NUMBER_ROW("pd", "its number"), ROW_END };

static int
pd_create(struct rpc_call *call)
{
	struct number_args *reply = call->reply;

	return engine_pd_alloc(call->e, &reply->number, &call->err);
}

struct domain_row {
	struct mem_pd_info info;
	const char *service;
};

static const struct table_row domain_rows[] = {
	ROW_NAMED(struct domain_row, "pd", info.pd, TABLE_UINT),
	ROW_NAMED(struct domain_row, "users", info.users, TABLE_UINT,
		"regions, windows, queue pairs and shared receive queues in it"),
	SERVICE_NAME_ROW(struct domain_row),
	ROW_END,
};

static const struct table_row pd_list_results[] = {
	PAGE_ROWS("domains", struct domain_row, domain_rows),
	ROW_END,
};

static int
next_domain(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct domain_row *row = item;

	if (!engine_pd_next(call->e, cursor, &row->info))
		return 0;
	row->service = engine_pd_service(call->e, row->info.pd);
	return 1;
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
	uint32_t local_port;
};
#define MR_LENGTH 0x1

static const struct table_row mr_register_params[] = {
	ROW(struct mr_args, pd, TABLE_UINT, "protection domain that may use it",
		.flags = TABLE_REQUIRED),
	ROW(struct mr_args, length, TABLE_UINT, "bytes; required unless file is given", .min = 1,
		.max = UINT64_MAX, .bit = MR_LENGTH, .def_text = "the rest of the file"),
	ROW(struct mr_args, access, TABLE_FLAGS,
		"what may be done with it besides local reads; remote writes and atomics need LOCAL_WRITE",
		.def = MEM_ACCESS_LOCAL_WRITE, .words = words_access),
	ROW(struct mr_args, va, TABLE_UINT,
		"address that work requests and remote peers use for its first byte",
		.def = UINT64_MAX, .def_text = "the address in the server's memory"),
	ROW(struct mr_args, file, TABLE_FILE,
		.help = "map this file, shared, instead of fresh zeroed memory; for LOCAL_WRITE it is open for reading and writing; no file of a file system that a program serves (FUSE)"),
	ROW(struct mr_args, memzone, TABLE_STRING, "use this named DPDK memzone", .max = 31),
	ROW(struct mr_args, offset, TABLE_UINT,
		"first byte of the file or memzone; of a file a multiple of the page size"),
	ROW(struct mr_args, hugepages, TABLE_BOOL,
		"take hugepages where there are any; the reply says what was had"),
	ROW(struct mr_args, numa_node, TABLE_UINT,
		"NUMA node of fresh memory, if it has room; the reply says what was had",
		.max = 1023, .def = UINT64_MAX, .def_text = "the local port's"),
	ROW(struct mr_args, local_port, TABLE_UINT,
		"local port that will use it, counted from 0: fresh memory is on its card's NUMA node",
		.max = LINK_PORTS_MAX - 1),
	ROW_END,
};

#define REGION(field, t, ...) ROW(struct mem_mr_info, field, t, __VA_ARGS__)

static const struct table_row region_rows[] = {
	REGION(key, TABLE_UINT, .flags = TABLE_SECRET),
	REGION(pd, TABLE_UINT),
	REGION(va, TABLE_UINT, "address of its first byte in work requests"),
	REGION(length, TABLE_UINT),
	REGION(access, TABLE_FLAGS, .words = words_access),
	REGION(hugepages, TABLE_BOOL, "whether hugepages were had"),
	REGION(numa_node, TABLE_INT, "of its first byte"),
	REGION(lost, TABLE_BOOL, "whether its file was shortened: no access is allowed any more"),
	ROW_END,
};

static const struct table_row mr_register_results[] = {
	{ .name = "", .type = TABLE_INCLUDE, .fields = region_rows },
	ROW_NAMED(struct mem_mr_info, "lkey", key, TABLE_UINT,
		"as key and rkey: one number, which names the region in work requests here"),
	ROW_NAMED(struct mem_mr_info, "rkey", key, TABLE_UINT,
		"the same number, for work requests of remote peers"),
	ROW_END,
};

/* Length of a file from an offset on. */
static int
rest_of_file(struct rpc_call *call, const struct mr_args *a, uint64_t *length)
{
	struct statx st;

	if (file_known(call->fd, &st) != 0)
		return error_set(&call->err, errno, "file: %m");
	if (a->offset >= st.stx_size)
		return error_set(&call->err, EINVAL,
			"offset: got %llu, but the file has %llu bytes",
			(unsigned long long)a->offset, (unsigned long long)st.stx_size);
	*length = st.stx_size - a->offset;
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
	int rc = ctl_check_local_port(call, a->local_port);

	if (rc != 0)
		return rc;
	if (a->file != NULL && a->memzone != NULL)
		return error_set(&call->err, EINVAL, "file, memzone: give one of them or none");
	if (a->file != NULL) {
		attr.backing = MEM_FILE;
		attr.fd = call->fd;
	} else if (a->memzone != NULL) {
		attr.backing = MEM_EXTERNAL;
		attr.memzone = a->memzone;
	}
	if ((a->present & MR_LENGTH) == 0) {
		if (a->file == NULL)
			return error_set(&call->err, EINVAL, "length: missing, allowed: 1 or more");
		rc = rest_of_file(call, a, &attr.length);
		if (rc != 0)
			return rc;
	}
	return engine_mr_register(call->e, &attr, a->local_port, call->reply, &call->err);
}

static const struct table_row key_params[] = {
	NUMBER_ROW("key", "key of the region (its lkey and rkey are this one number)",
		.flags = TABLE_REQUIRED),
	ROW_END,
};

struct region_row {
	struct mem_mr_info info;
	const char *service;
};

static const struct table_row mr_list_rows[] = {
	ROW_INCLUDE(struct region_row, info, region_rows),
	SERVICE_NAME_ROW(struct region_row),
	ROW_END,
};

static const struct table_row mr_list_results[] = {
	PAGE_ROWS("regions", struct region_row, mr_list_rows),
	ROW_END,
};

static int
next_region(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct region_row *row = item;

	if (!engine_mr_next(call->e, cursor, &row->info))
		return 0;
	row->service = engine_pd_service(call->e, row->info.pd);
	return 1;
}

/* --- memory windows --- */

struct mw_args {
	uint32_t pd;
	uint32_t type;
};

static const struct table_row mw_create_params[] = {
	ROW(struct mw_args, pd, TABLE_UINT, "protection domain that may use it",
		.flags = TABLE_REQUIRED),
	ROW(struct mw_args, type, TABLE_ENUM,
		"TYPE_1: valid for every QP of the domain; TYPE_2: bound to one QP, which chooses the key's low 8 bits and may invalidate it",
		.def = MEM_MW_TYPE_2, .words = words_mw_type),
	ROW_END,
};

static const struct table_row mw_key_params[] = {
	NUMBER_ROW("key", "current key of the window", .flags = TABLE_REQUIRED),
	ROW_END,
};

static const struct table_row mw_create_results[] = {
	NUMBER_ROW("key", "of the unbound window"),
	ROW_END,
};

static int
mw_create(struct rpc_call *call)
{
	const struct mw_args *a = call->args;
	struct number_args *reply = call->reply;

	return engine_mw_alloc(call->e, a->pd, (enum mem_mw_type)a->type, &reply->number,
		&call->err);
}

struct window_row {
	uint32_t present;
	struct mem_mw_info info;
	const char *service;
};
#define WINDOW_BOUND    0x1
#define WINDOW_BOUND_QP 0x2

#define WINDOW(field, t, ...) ROW_NAMED(struct window_row, #field, info.field, t, __VA_ARGS__)

static const struct table_row window_rows[] = {
	WINDOW(key, TABLE_UINT, .flags = TABLE_SECRET),
	WINDOW(pd, TABLE_UINT),
	WINDOW(type, TABLE_ENUM, .words = words_mw_type),
	WINDOW(bound, TABLE_BOOL),
	SERVICE_NAME_ROW(struct window_row),
	WINDOW(mr_key, TABLE_UINT, "this and what follows: of those bound", .bit = WINDOW_BOUND,
		.flags = TABLE_SECRET),
	ROW_NAMED(struct window_row, "qp_num", info.qpn, TABLE_UINT, "TYPE_2",
		.bit = WINDOW_BOUND_QP),
	WINDOW(va, TABLE_UINT, .bit = WINDOW_BOUND),
	WINDOW(length, TABLE_UINT, .bit = WINDOW_BOUND),
	WINDOW(access, TABLE_FLAGS, .words = words_access, .bit = WINDOW_BOUND),
	ROW_END,
};

static const struct table_row mw_list_results[] = {
	PAGE_ROWS("windows", struct window_row, window_rows),
	ROW_END,
};

static int
next_window(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct window_row *row = item;

	if (!engine_mw_next(call->e, cursor, &row->info))
		return 0;
	row->service = engine_pd_service(call->e, row->info.pd);
	if (row->info.bound)
		row->present = WINDOW_BOUND;
	if (row->info.bound && row->info.type == MEM_MW_TYPE_2)
		row->present |= WINDOW_BOUND_QP;
	return 1;
}

const struct rpc_method methods_mem[] = {
	{ "pd_create", pd_create, params_none, 0,
		"Make a protection domain: regions, windows and queue pairs of one domain may work together.",
		"polca-ctl pd create", RESULTS(pd_create_results, struct number_args) },
	{ "pd_destroy", number_method, pd_params, sizeof(struct number_args),
		"Destroy a protection domain. EBUSY while anything belongs to it.",
		"polca-ctl pd destroy 1", .verb = engine_pd_free },
	{ "pd_list", page_list, params_page, sizeof(struct page_args), "List protection domains.",
		"polca-ctl pd list", PAGES(pd_list_results, next_domain) },
	{ "mr_register", mr_register, mr_register_params, sizeof(struct mr_args),
		"Register a memory region: fresh zeroed memory of the server, a file, or a DPDK memzone.",
		"polca-ctl mr register --pd 1 --length 1048576 --access LOCAL_WRITE,REMOTE_WRITE,REMOTE_READ",
		RESULTS(mr_register_results, struct mem_mr_info) },
	{ "mr_deregister", number_method, key_params, sizeof(struct number_args),
		"Deregister a region and free its memory. EBUSY while windows are bound to it. When the reply comes no packet can reach it any more.",
		"polca-ctl mr deregister 0x1a2b3c4d", .verb = engine_mr_deregister },
	{ "mr_list", page_list, params_page, sizeof(struct page_args), "List memory regions.",
		"polca-ctl mr list", PAGES(mr_list_results, next_region) },
	{ "mw_create", mw_create, mw_create_params, sizeof(struct mw_args),
		"Make a memory window; a BIND_MW work request binds it to a part of a region.",
		"polca-ctl mw create --pd 1 --type TYPE_2",
		RESULTS(mw_create_results, struct number_args) },
	{ "mw_destroy", number_method, mw_key_params, sizeof(struct number_args),
		"Destroy a memory window, bound or not.", "polca-ctl mw destroy 0x1a2b3c4d",
		.verb = engine_mw_free },
	{ "mw_list", page_list, params_page, sizeof(struct page_args), "List memory windows.",
		"polca-ctl mw list", PAGES(mw_list_results, next_window) },
	{ NULL },
};
