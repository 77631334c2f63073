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

static const struct table_row srq_create_params[] = {
	ROW(struct srq_create_args, pd, TABLE_UINT, "protection domain of its buffers",
		.flags = TABLE_REQUIRED),
	ROW(struct srq_create_args, max_wr, TABLE_UINT, "receive requests it holds", .min = 1,
		.def = 256),
	ROW(struct srq_create_args, max_sge, TABLE_UINT, "scatter entries of a request", .min = 1,
		.def = 1, .max = RC_SGE_MAX),
	ROW(struct srq_create_args, worker, TABLE_UINT,
		"worker that owns it; the queue pairs that use it live there too",
		.max = RC_WORKERS_MAX - 1, .def = UINT64_MAX, .def_text = "the least loaded"),
	ROW_END,
};

/* the first member of all parameters here */
#define SRQ_ROW NUMBER_ROW("srq", "number of the shared receive queue", .flags = TABLE_REQUIRED)

struct srq_modify_args {
	uint32_t srq;
	uint32_t limit;
};

struct srq_post_args {
	uint32_t srq;
	struct table_list wr;
};

static const struct table_row srq_params[] = { SRQ_ROW, ROW_END };

static const struct table_row srq_modify_params[] = {
	SRQ_ROW,
	ROW(struct srq_modify_args, limit, TABLE_UINT,
		"raise the event SRQ_LIMIT_REACHED once when fewer requests are posted; 0: do not",
		.flags = TABLE_REQUIRED),
	ROW_END,
};

static const struct table_row srq_post_params[] = {
	SRQ_ROW,
	ROW(struct srq_post_args, wr, TABLE_LIST, "receive requests, posted in order",
		.flags = TABLE_REQUIRED, .min = 1, .max = 4096, .fields = params_recv_wr,
		.item_size = sizeof(struct recv_wr_args)),
	ROW_END,
};

static const struct table_row srq_create_results[] = {
	NUMBER_ROW("srq", "its number"),
	ROW_END,
};

static int
srq_create(struct rpc_call *call)
{
	const struct srq_create_args *a = call->args;
	struct number_args *reply = call->reply;

	return engine_srq_create(call->e, a->worker, a->pd, a->max_wr, a->max_sge, &reply->number,
		&call->err);
}

static int
srq_modify(struct rpc_call *call)
{
	const struct srq_modify_args *a = call->args;

	return engine_srq_modify(call->e, a->srq, a->limit, &call->err);
}

#define SRQ(field, ...) ROW(struct rc_srq_info, field, TABLE_UINT, __VA_ARGS__)

static const struct table_row srq_rows[] = {
	ROW_NAMED(struct rc_srq_info, "srq", srqn, TABLE_UINT),
	SRQ(worker),
	SRQ(pd),
	SRQ(max_wr),
	SRQ(max_sge),
	SRQ(posted),
	SRQ(limit),
	SRQ(users),
	ROW_END,
};

static const struct table_row srq_list_results[] = {
	PAGE_ROWS("srqs", struct rc_srq_info, srq_rows),
	ROW_END,
};

static int
next_srq(struct rpc_call *call, uint64_t *cursor, void *row)
{
	return engine_srq_next(call->e, cursor, row);
}

static int
srq_post(struct rpc_call *call)
{
	const struct srq_post_args *a = call->args;

	return post_recv_wrs(call, engine_srq_post, a->srq, &a->wr);
}

const struct rpc_method methods_srq[] = {
	{ "srq_create", srq_create, srq_create_params, sizeof(struct srq_create_args),
		"Make a shared receive queue.", "polca-ctl srq create --pd 1",
		RESULTS(srq_create_results, struct number_args) },
	{ "srq_modify", srq_modify, srq_modify_params, sizeof(struct srq_modify_args),
		"Arm the limit event of a shared receive queue.",
		"polca-ctl srq modify 1 --limit 16" },
	{ "srq_destroy", number_method, srq_params, sizeof(struct number_args),
		"Destroy a shared receive queue. EBUSY while a queue pair uses it.",
		"polca-ctl srq destroy 1", .verb = engine_srq_destroy },
	{ "srq_list", page_list, params_page, sizeof(struct page_args),
		"List shared receive queues.", "polca-ctl srq list",
		PAGES(srq_list_results, next_srq) },
	{ "srq_post", srq_post, srq_post_params, sizeof(struct srq_post_args),
		"Post receive requests to a shared receive queue.",
		"polca-ctl srq post 1 --wr wr_id=7 --sg-list key=0x1a2b3c4d,length=4096",
		RESULTS(results_posted, struct posted_reply) },
	{ NULL },
};
