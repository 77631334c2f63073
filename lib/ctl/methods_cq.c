/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>

#include "ctl/methods.h"

#define POLL_MAX    1024
#define TIMEOUT_MAX 60000

static const struct param cq_params[] = {
	{ "cq", PARAM_UINT, PARAM_REQUIRED, offsetof(struct number_args, number), sizeof(uint32_t),
		.help = "number of the completion queue" },
	P_END,
};

static const struct param cq_create_params[] = {
	{ "depth", PARAM_UINT, PARAM_DEFAULT, offsetof(struct number_args, number),
		sizeof(uint32_t), .min = 1, .max = 1 << 24, .def = 256,
		.help = "completions it holds; one more makes it overrun (event CQ_ERR)" },
	P_END,
};

static int
cq_create(struct rpc_call *call)
{
	const struct number_args *a = call->args;
	uint32_t cqn;
	int rc = engine_cq_create(call->e, a->number, &cqn, &call->err);

	if (rc == 0)
		set_int(call->result, "cq", cqn);
	return rc;
}

static int
cq_destroy(struct rpc_call *call)
{
	const struct number_args *a = call->args;

	return engine_cq_destroy(call->e, a->number, &call->err);
}

static json_t *
cq_row(struct engine *e, const struct rc_cq_info *info)
{
	json_t *row = json_object();

	set_int(row, "cq", info->cqn);
	set_int(row, "depth", info->depth);
	set_int(row, "pending", info->pending);
	set_int(row, "users", info->users);
	set(row, "overrun", json_boolean(info->overrun));
	set_service(row, engine_cq_service(e, info->cqn));
	return row;
}

static int
cq_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint32_t cursor = (uint32_t)a->cursor;
	json_t *rows = json_array();
	struct rc_cq_info info;

	while (json_array_size(rows) < a->max) {
		if (!engine_cq_next(call->e, &cursor, &info)) {
			set_page(call, "cqs", rows, false, 0);
			return 0;
		}
		json_array_append_new(rows, cq_row(call->e, &info));
	}
	set_page(call, "cqs", rows, true, cursor);
	return 0;
}

struct cq_poll_args {
	uint32_t cq;
	uint32_t max;
	uint32_t timeout_ms;
	uint32_t min;
};

static const struct param cq_poll_params[] = {
	P(struct cq_poll_args, cq, PARAM_UINT, .flags = PARAM_REQUIRED,
		.help = "number of the completion queue"),
	P(struct cq_poll_args, max, PARAM_UINT, .flags = PARAM_DEFAULT, .min = 1, .max = POLL_MAX,
		.def = 16, .help = "completions in the reply at most"),
	P(struct cq_poll_args, timeout_ms, PARAM_UINT, .flags = PARAM_DEFAULT, .max = TIMEOUT_MAX,
		.help = "wait so long for min completions; fewer, or none, come back when it is over"),
	P(struct cq_poll_args, min, PARAM_UINT, .flags = PARAM_DEFAULT, .min = 1, .max = POLL_MAX,
		.def = 1, .help = "completions to wait for"),
	P_END,
};

static json_t *
wc_row(const struct wc *wc)
{
	json_t *row = json_object();

	set_int(row, "wr_id", wc->wr_id);
	set(row, "status", json_string(wc_status_name(wc->status)));
	set_int(row, "qp_num", wc->qp_num);
	/* as ibv_poll_cq: only wr_id, status and qp_num say anything unless it succeeded */
	if (wc->status != WC_SUCCESS)
		return row;
	set(row, "opcode", json_string(wc_opcode_name(wc->opcode)));
	set_int(row, "byte_len", wc->byte_len);
	set(row, "wc_flags", json_flags(words_wc_flags, wc->wc_flags));
	if ((wc->wc_flags & WC_WITH_IMM) != 0)
		set_int(row, "imm_data", wc->imm_data);
	if ((wc->wc_flags & WC_WITH_INV) != 0)
		set_int(row, "invalidated_rkey", wc->imm_data);
	if (wc->opcode == WC_BIND_MW && wc->mw_key != 0)
		set_int(row, "mw_key", wc->mw_key);
	return row;
}

static int
cq_poll(struct rpc_call *call)
{
	const struct cq_poll_args *a = call->args;
	json_t *rows = json_object_get(call->result, "wc");
	struct wc wc[64];
	unsigned int room;
	int i, n;

	if (rows == NULL) {
		rows = json_array();
		set(call->result, "wc", rows);
	}
	do {
		room = a->max - (unsigned int)json_array_size(rows);
		n = engine_cq_poll(call->e, a->cq, wc, room < 64 ? room : 64, &call->err);
		/* completions already taken out are not lost to an error that comes after them */
		if (n < 0 && json_array_size(rows) == 0)
			return n;
		for (i = 0; i < n; i++)
			json_array_append_new(rows, wc_row(&wc[i]));
	} while (n == 64);
	if (n >= 0 && json_array_size(rows) < a->max && json_array_size(rows) < a->min &&
			!waited(call, a->timeout_ms))
		return RPC_WAIT;
	return 0;
}

struct cq_arm_args {
	uint32_t cq;
	bool solicited_only;
};

static const struct param cq_arm_params[] = {
	P(struct cq_arm_args, cq, PARAM_UINT, .flags = PARAM_REQUIRED,
		.help = "number of the completion queue"),
	P(struct cq_arm_args, solicited_only, PARAM_BOOL, .flags = PARAM_DEFAULT,
		.help = "only a solicited completion, or an error, counts"),
	P_END,
};

static int
cq_arm(struct rpc_call *call)
{
	const struct cq_arm_args *a = call->args;

	return engine_cq_arm(call->e, a->cq, a->solicited_only, &call->err);
}

const struct rpc_method methods_cq[] = {
	{ "cq_create", cq_create, cq_create_params, sizeof(struct number_args),
		"Make a completion queue.", "cq: its number", "polca-ctl cq create --depth 1024" },
	{ "cq_destroy", cq_destroy, cq_params, sizeof(struct number_args),
		"Destroy a completion queue. EBUSY while a queue pair uses it.", "",
		"polca-ctl cq destroy 1" },
	{ "cq_list", cq_list, params_page, sizeof(struct page_args), "List completion queues.",
		"cqs: list of cq, depth, pending (completions waiting), users (queue pairs), overrun, service (whose it is; null: a caller's own)" PAGE_RESULT,
		"polca-ctl cq list" },
	{ "cq_poll", cq_poll, cq_poll_params, sizeof(struct cq_poll_args),
		"Take completions from a queue, waiting for them if asked to. While it waits, later requests of the same connection wait too; other connections do not.",
		"wc: list of wr_id, status, qp_num, and of those with status SUCCESS: opcode, byte_len, wc_flags, imm_data (WITH_IMM), invalidated_rkey (WITH_INV), mw_key (a TYPE_1 bind)",
		"polca-ctl cq poll 1 --max 16 --timeout-ms 1000" },
	{ "cq_arm", cq_arm, cq_arm_params, sizeof(struct cq_arm_args),
		"Ask for one event CQ_COMPLETION at the next completion (ibv_req_notify_cq).", "",
		"polca-ctl cq arm 1" },
	{ NULL },
};
