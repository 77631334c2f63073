/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "ctl/methods.h"

struct srq_create_args {
	uint32_t pd;
	uint32_t max_wr;
	uint32_t max_sge;
	int worker;
};

static const struct param srq_create_params[] = {
	P(struct srq_create_args, pd, PARAM_UINT, .flags = PARAM_REQUIRED,
		.help = "protection domain of its buffers"),
	P(struct srq_create_args, max_wr, PARAM_UINT, .flags = PARAM_DEFAULT, .min = 1, .def = 256,
		.help = "receive requests it holds"),
	P(struct srq_create_args, max_sge, PARAM_UINT, .flags = PARAM_DEFAULT, .min = 1, .def = 1,
		.max = RC_SGE_MAX, .help = "scatter entries of a request"),
	P(struct srq_create_args, worker, PARAM_UINT, .flags = PARAM_DEFAULT,
		.max = RC_WORKERS_MAX - 1, .def = UINT64_MAX, .def_text = "the least loaded",
		.help = "worker that owns it; the queue pairs that use it live there too"),
	P_END,
};

#define SRQ_ROW                                                                                    \
	{ "srq", PARAM_UINT, PARAM_REQUIRED, 0, sizeof(uint32_t),                                  \
		.help = "number of the shared receive queue" }

struct srq_modify_args {
	uint32_t srq;
	uint32_t limit;
};

struct srq_post_args {
	uint32_t srq;
	struct param_list wr;
};

static const struct param srq_params[] = { SRQ_ROW, P_END };

static const struct param srq_modify_params[] = {
	SRQ_ROW,
	P(struct srq_modify_args, limit, PARAM_UINT, .flags = PARAM_REQUIRED,
		.help = "raise the event SRQ_LIMIT_REACHED once when fewer requests are posted; 0: do not"),
	P_END,
};

static const struct param srq_post_params[] = {
	SRQ_ROW,
	P(struct srq_post_args, wr, PARAM_LIST, .flags = PARAM_REQUIRED, .min = 1, .max = 4096,
		.fields = params_recv_wr, .item_size = sizeof(struct recv_wr_args),
		.help = "receive requests, posted in order"),
	P_END,
};

static int
srq_create(struct rpc_call *call)
{
	const struct srq_create_args *a = call->args;
	uint32_t srqn;
	int rc = engine_srq_create(call->e, a->worker, a->pd, a->max_wr, a->max_sge, &srqn,
		&call->err);

	if (rc == 0)
		set_int(call->result, "srq", srqn);
	return rc;
}

static int
srq_modify(struct rpc_call *call)
{
	const struct srq_modify_args *a = call->args;

	return engine_srq_modify(call->e, a->srq, a->limit, &call->err);
}

static int
srq_destroy(struct rpc_call *call)
{
	const struct number_args *a = call->args;

	return engine_srq_destroy(call->e, a->number, &call->err);
}

static json_t *
srq_row(const struct rc_srq_info *info)
{
	json_t *row = json_object();

	set_int(row, "srq", info->srqn);
	set_int(row, "worker", info->worker);
	set_int(row, "pd", info->pd);
	set_int(row, "max_wr", info->max_wr);
	set_int(row, "max_sge", info->max_sge);
	set_int(row, "posted", info->posted);
	set_int(row, "limit", info->limit);
	set_int(row, "users", info->users);
	return row;
}

static int
srq_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint64_t cursor = a->cursor;
	json_t *rows = json_array();
	struct rc_srq_info info;

	while (json_array_size(rows) < a->max) {
		if (!engine_srq_next(call->e, &cursor, &info)) {
			set_page(call, "srqs", rows, false, 0);
			return 0;
		}
		json_array_append_new(rows, srq_row(&info));
	}
	set_page(call, "srqs", rows, true, cursor);
	return 0;
}

static int
srq_post(struct rpc_call *call)
{
	const struct srq_post_args *a = call->args;

	return post_recv_wrs(call, engine_srq_post, a->srq, &a->wr);
}

const struct rpc_method methods_srq[] = {
	{ "srq_create", srq_create, srq_create_params, sizeof(struct srq_create_args),
		"Make a shared receive queue.", "srq: its number", "polca-ctl srq create --pd 1" },
	{ "srq_modify", srq_modify, srq_modify_params, sizeof(struct srq_modify_args),
		"Arm the limit event of a shared receive queue.", "",
		"polca-ctl srq modify 1 --limit 16" },
	{ "srq_destroy", srq_destroy, srq_params, sizeof(struct number_args),
		"Destroy a shared receive queue. EBUSY while a queue pair uses it.", "",
		"polca-ctl srq destroy 1" },
	{ "srq_list", srq_list, params_page, sizeof(struct page_args),
		"List shared receive queues.",
		"srqs: list of srq, worker, pd, max_wr, max_sge, posted, limit, users" PAGE_RESULT,
		"polca-ctl srq list" },
	{ "srq_post", srq_post, srq_post_params, sizeof(struct srq_post_args),
		"Post receive requests to a shared receive queue.",
		"posted: how many; of an error, data.posted says how many went before it",
		"polca-ctl srq post 1 --wr wr_id=7 --sg-list key=0x1a2b3c4d,length=4096" },
	{ NULL },
};
