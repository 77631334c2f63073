/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>

#include "ctl/methods.h"

#define POLL_MAX    1024
#define TIMEOUT_MAX 60000

static const struct table_row cq_params[] = {
	NUMBER_ROW("cq", "number of the completion queue", .flags = TABLE_REQUIRED),
	ROW_END,
};

static const struct table_row cq_create_params[] = {
	NUMBER_ROW("depth", "completions it holds; one more makes it overrun (event CQ_ERR)",
		.min = 1, .max = 1 << 24, .def = 256),
	ROW_END,
};

static const struct table_row cq_create_results[] = {
	NUMBER_ROW("cq", "its number"),
	ROW_END,
};

static int
cq_create(struct rpc_call *call)
{
	const struct number_args *a = call->args;
	struct number_args *reply = call->reply;

	return engine_cq_create(call->e, a->number, &reply->number, &call->err);
}

struct cq_row {
	struct rc_cq_info info;
	const char *service;
};

#define CQ(field, t, ...) ROW_NAMED(struct cq_row, #field, info.field, t, __VA_ARGS__)

static const struct table_row cq_rows[] = {
	ROW_NAMED(struct cq_row, "cq", info.cqn, TABLE_UINT),
	CQ(depth, TABLE_UINT),
	CQ(pending, TABLE_UINT, "completions waiting"),
	CQ(users, TABLE_UINT, "queue pairs"),
	CQ(overrun, TABLE_BOOL),
	SERVICE_NAME_ROW(struct cq_row),
	ROW_END,
};

static const struct table_row cq_list_results[] = { PAGE_ROWS("cqs", struct cq_row, cq_rows),
	ROW_END };

static int
next_cq(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct cq_row *row = item;

	if (!engine_cq_next(call->e, cursor, &row->info))
		return 0;
	row->service = engine_cq_service(call->e, row->info.cqn);
	return 1;
}

struct cq_poll_args {
	uint32_t cq;
	uint32_t max;
	uint32_t timeout_ms;
	uint32_t min;
};

static const struct table_row cq_poll_params[] = {
	ROW(struct cq_poll_args, cq, TABLE_UINT, "number of the completion queue",
		.flags = TABLE_REQUIRED),
	ROW(struct cq_poll_args, max, TABLE_UINT, "completions in the reply at most", .min = 1,
		.max = POLL_MAX, .def = 16),
	ROW(struct cq_poll_args, timeout_ms, TABLE_UINT,
		"wait so long for min completions; fewer, or none, come back when it is over",
		.max = TIMEOUT_MAX),
	ROW(struct cq_poll_args, min, TABLE_UINT, "completions to wait for", .min = 1,
		.max = POLL_MAX, .def = 1),
	ROW_END,
};

/* As ibv_poll_cq: only wr_id, status and qp_num say anything of a work request that failed. */
struct wc_row {
	uint32_t present;
	const char *status;
	const char *opcode;
	struct wc wc;
};
#define WC_SUCCEEDED 0x1
#define WC_IMM       0x2
#define WC_INV       0x4
#define WC_MW        0x8

#define COMPLETION(name, field, t, ...) ROW_NAMED(struct wc_row, name, wc.field, t, __VA_ARGS__)

static const struct table_row wc_rows[] = {
	COMPLETION("wr_id", wr_id, TABLE_UINT),
	ROW(struct wc_row, status, TABLE_STRING),
	COMPLETION("qp_num", qp_num, TABLE_UINT),
	ROW(struct wc_row, opcode, TABLE_STRING, "this and what follows: where status is SUCCESS",
		.bit = WC_SUCCEEDED),
	COMPLETION("byte_len", byte_len, TABLE_UINT, .bit = WC_SUCCEEDED),
	COMPLETION("wc_flags", wc_flags, TABLE_FLAGS, .words = words_wc_flags, .bit = WC_SUCCEEDED),
	COMPLETION("imm_data", imm_data, TABLE_UINT, "WITH_IMM", .bit = WC_IMM),
	COMPLETION("invalidated_rkey", imm_data, TABLE_UINT, "WITH_INV", .bit = WC_INV),
	COMPLETION("mw_key", mw_key, TABLE_UINT, "a TYPE_1 bind", .bit = WC_MW),
	ROW_END,
};

struct cq_poll_reply {
	struct table_list wc;
};

static const struct table_row cq_poll_results[] = {
	ROW_LIST(struct cq_poll_reply, wc, struct wc_row, wc_rows),
	ROW_END,
};

static int
add_completion(struct rpc_call *call, const struct wc *wc)
{
	struct cq_poll_reply *reply = call->reply;
	struct wc_row *row = ADD(call, &reply->wc, struct wc_row);

	if (row == NULL)
		return -ENOMEM;
	row->wc = *wc;
	row->status = wc_status_name(wc->status);
	if (wc->status != WC_SUCCESS)
		return 0;
	row->opcode = wc_opcode_name(wc->opcode);
	row->present = WC_SUCCEEDED;
	if ((wc->wc_flags & WC_WITH_IMM) != 0)
		row->present |= WC_IMM;
	if ((wc->wc_flags & WC_WITH_INV) != 0)
		row->present |= WC_INV;
	if (wc->opcode == WC_BIND_MW && wc->mw_key != 0)
		row->present |= WC_MW;
	return 0;
}

static int
cq_poll(struct rpc_call *call)
{
	const struct cq_poll_args *a = call->args;
	struct cq_poll_reply *reply = call->reply;
	struct wc wc[64];
	size_t room;
	int i, n = 0;

	if (a->timeout_ms > 0)
		n = engine_cq_await(call->e, a->cq, &call->err);
	if (n < 0)
		return n;

	do {
		room = a->max - reply->wc.num;
		n = engine_cq_poll(call->e, a->cq, wc, room < 64 ? (unsigned int)room : 64,
			&call->err);
		/* completions already taken out are not lost to an error that comes after them */
		if (n < 0 && reply->wc.num == 0)
			return n;
		for (i = 0; i < n; i++)
			if (add_completion(call, &wc[i]) != 0)
				return -ENOMEM;
	} while (n == 64);
	if (n >= 0 && reply->wc.num < a->max && reply->wc.num < a->min &&
		!waited(call, a->timeout_ms))
		return RPC_WAIT;
	return 0;
}

struct cq_arm_args {
	uint32_t cq;
	bool solicited_only;
};

static const struct table_row cq_arm_params[] = {
	ROW(struct cq_arm_args, cq, TABLE_UINT, "number of the completion queue",
		.flags = TABLE_REQUIRED),
	ROW(struct cq_arm_args, solicited_only, TABLE_BOOL,
		"only a solicited completion, or an error, counts"),
	ROW_END,
};

static int
cq_arm(struct rpc_call *call)
{
	const struct cq_arm_args *a = call->args;

	return engine_cq_arm(call->e, a->cq, a->solicited_only, &call->err);
}

const struct rpc_method methods_cq[] = {
	{ "cq_create", cq_create, cq_create_params, sizeof(struct number_args),
		"Make a completion queue.", "polca-ctl cq create --depth 1024",
		RESULTS(cq_create_results, struct number_args) },
	{ "cq_destroy", number_method, cq_params, sizeof(struct number_args),
		"Destroy a completion queue. EBUSY while a queue pair uses it.",
		"polca-ctl cq destroy 1", .verb = engine_cq_destroy },
	{ "cq_list", page_list, params_page, sizeof(struct page_args), "List completion queues.",
		"polca-ctl cq list", PAGES(cq_list_results, next_cq) },
	{ "cq_poll", cq_poll, cq_poll_params, sizeof(struct cq_poll_args),
		"Take completions from a queue, waiting for them if asked to. While it waits, later requests of the same connection wait too; other connections do not.",
		"polca-ctl cq poll 1 --max 16 --timeout-ms 1000",
		RESULTS(cq_poll_results, struct cq_poll_reply) },
	{ "cq_arm", cq_arm, cq_arm_params, sizeof(struct cq_arm_args),
		"Ask for one event CQ_COMPLETION at the next completion (ibv_req_notify_cq).",
		"polca-ctl cq arm 1" },
	{ NULL },
};
