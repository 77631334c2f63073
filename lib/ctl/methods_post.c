/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Posting work requests: from decoded parameters to the verbs' structures, which live as long as
 * the call.
 */

#include <errno.h>

#include "ctl/methods.h"

#define WRS_MAX 4096

/* --- scatter/gather --- */

struct sge_args {
	uint32_t present;
	uint32_t lkey;
	uint32_t key;
	uint32_t length;
	uint64_t addr;
	uint64_t offset;
};
#define SGE_LKEY   0x1
#define SGE_ADDR   0x2
#define SGE_KEY    0x4
#define SGE_OFFSET 0x8

static const struct table_row params_sge[] = {
	ROW(struct sge_args, length, TABLE_UINT, "bytes", .flags = TABLE_REQUIRED),
	ROW(struct sge_args, key, TABLE_UINT,
		"key of the region, with offset; or say it by lkey and addr", .bit = SGE_KEY),
	ROW(struct sge_args, offset, TABLE_UINT, "first byte, counted from the region's first",
		.bit = SGE_OFFSET, .def_text = "0"),
	ROW(struct sge_args, lkey, TABLE_UINT, "key of the region, with addr, as in ibv_sge",
		.bit = SGE_LKEY),
	ROW(struct sge_args, addr, TABLE_UINT,
		"address of the first byte in the region's own addresses (its va)",
		.bit = SGE_ADDR),
	ROW_END,
};

#define SG_LIST_ROW(S)                                                                             \
	ROW(S, sg_list, TABLE_LIST, "the pieces of memory it works on", .max = RC_SGE_MAX,         \
		.fields = params_sge, .item_size = sizeof(struct sge_args),                        \
		.def_text = "no bytes")

static int
make_sge(struct rpc_call *call, const struct sge_args *a, struct sge *sge)
{
	struct mem_mr_info info;
	int rc;

	sge->length = a->length;
	if ((a->present & (SGE_LKEY | SGE_ADDR)) == (SGE_LKEY | SGE_ADDR) &&
		(a->present & (SGE_KEY | SGE_OFFSET)) == 0) {
		sge->lkey = a->lkey;
		sge->addr = a->addr;
		return 0;
	}
	if ((a->present & SGE_KEY) == 0 || (a->present & (SGE_LKEY | SGE_ADDR)) != 0)
		return error_set(&call->err, EINVAL,
			"sg_list: allowed: either key and offset, or lkey and addr");
	rc = find_region(call, a->key, &info);
	sge->lkey = a->key;
	sge->addr = info.va + a->offset;
	return rc;
}

static int
make_sg_list(struct rpc_call *call, const struct table_list *list, const struct sge **sg_list,
	uint32_t *num_sge)
{
	const struct sge_args *items = list->items;
	struct sge *sge;
	size_t i;
	int rc = 0;

	sge = arena_alloc(&call->arena, (list->num + 1) * sizeof(*sge));
	if (sge == NULL)
		return -ENOMEM;
	for (i = 0; i < list->num && rc == 0; i++)
		rc = make_sge(call, &items[i], &sge[i]);
	*sg_list = sge;
	*num_sge = (uint32_t)list->num;
	return rc;
}

const struct table_row results_posted[] = {
	ROW(struct posted_reply, posted, TABLE_UINT,
		"how many; of an error, data.posted says how many went before it"),
	ROW_END,
};

static int
tell_posted(struct rpc_call *call, int rc, size_t posted)
{
	struct posted_reply *reply = call->reply;

	reply->posted = posted;
	if (rc >= 0)
		return 0;
	call->data = table_encode(results_posted, reply);
	return rc;
}

/* --- receive requests --- */

const struct table_row params_recv_wr[] = {
	ROW(struct recv_wr_args, wr_id, TABLE_UINT, "comes back in the completion",
		.max = UINT64_MAX),
	SG_LIST_ROW(struct recv_wr_args),
	ROW_END,
};

/* In the verbs' form, in the call's arena */
static int
make_recv_wrs(struct rpc_call *call, const struct table_list *list, struct recv_wr **wrs)
{
	const struct recv_wr_args *items = list->items;
	struct recv_wr *wr = arena_alloc(&call->arena, (list->num + 1) * sizeof(*wr));
	size_t i;
	int rc = 0;

	if (wr == NULL)
		return -ENOMEM;
	for (i = 0; i < list->num && rc == 0; i++) {
		wr[i].wr_id = items[i].wr_id;
		rc = make_sg_list(call, &items[i].sg_list, &wr[i].sg_list, &wr[i].num_sge);
	}
	*wrs = wr;
	return rc;
}

int
post_recv_wrs(struct rpc_call *call, recv_poster *post, uint32_t queue,
	const struct table_list *list)
{
	struct recv_wr *wrs;
	size_t posted = 0;
	int rc = make_recv_wrs(call, list, &wrs);

	/* a short count hides the reason: the rest, posted again, tells it */
	while (rc >= 0 && posted < list->num) {
		rc = post(call->e, queue, wrs + posted, (unsigned int)(list->num - posted),
			&call->err);
		posted += rc > 0 ? (size_t)rc : 0;
	}
	return tell_posted(call, rc, posted);
}

struct post_args {
	uint32_t qp_num;
	struct table_list wr;
};

#define QP_ROW                                                                                     \
	ROW(struct post_args, qp_num, TABLE_UINT, "the queue pair", .flags = TABLE_REQUIRED,       \
		.max = 0xffffff)

static const struct table_row post_recv_params[] = {
	QP_ROW,
	ROW(struct post_args, wr, TABLE_LIST, "receive requests, posted in order",
		.flags = TABLE_REQUIRED, .min = 1, .max = WRS_MAX, .fields = params_recv_wr,
		.item_size = sizeof(struct recv_wr_args)),
	ROW_END,
};

static int
method_post_recv(struct rpc_call *call)
{
	const struct post_args *a = call->args;

	return post_recv_wrs(call, engine_post_recv, a->qp_num, &a->wr);
}

/* --- send requests --- */

struct bind_args {
	uint32_t mw_key;
	uint32_t new_key;
	uint32_t mr_key;
	uint32_t access;
	uint64_t addr;
	uint64_t length;
};

static const struct table_row params_bind[] = {
	ROW(struct bind_args, mw_key, TABLE_UINT, "current key of the window",
		.flags = TABLE_REQUIRED),
	ROW(struct bind_args, mr_key, TABLE_UINT, "key of the region it opens on"),
	ROW(struct bind_args, addr, TABLE_UINT,
		"first byte, in the region's own addresses (its va)"),
	ROW(struct bind_args, length, TABLE_UINT, "bytes; 0 unbinds"),
	ROW(struct bind_args, access, TABLE_FLAGS, "what the peer may do", .words = words_access),
	ROW(struct bind_args, new_key, TABLE_UINT,
		"TYPE_2: the key it gets: the same upper 24 bits, low 8 bits as you like"),
	ROW_END,
};

struct send_wr_args {
	uint32_t present;
	uint32_t opcode;
	uint32_t send_flags;
	uint32_t imm_data;
	uint32_t invalidate_rkey;
	uint32_t rkey;
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add;
	uint64_t swap;
	struct table_list sg_list;
	struct table_bytes inline_data;
	struct bind_args bind_mw;
};
#define SEND_HAS_INLINE 0x1
#define SEND_HAS_BIND   0x2

static const struct table_row params_send_wr[] = {
	ROW(struct send_wr_args, opcode, TABLE_ENUM, "the operation", .flags = TABLE_REQUIRED,
		.words = words_wr_opcode),
	ROW(struct send_wr_args, wr_id, TABLE_UINT, "comes back in the completion",
		.max = UINT64_MAX),
	SG_LIST_ROW(struct send_wr_args),
	ROW(struct send_wr_args, send_flags, TABLE_FLAGS,
		"SIGNALED matters on queue pairs made with sq_sig_all false; INLINE is set by inline_data",
		.words = words_send_flags),
	ROW(struct send_wr_args, inline_data, TABLE_BYTES,
		"the bytes themselves, in place of sg_list", .max = RC_INLINE_MAX,
		.bit = SEND_HAS_INLINE),
	ROW(struct send_wr_args, imm_data, TABLE_UINT,
		"..._WITH_IMM: 32 bits that reach the peer's completion"),
	ROW(struct send_wr_args, invalidate_rkey, TABLE_UINT,
		"SEND_WITH_INV: the peer's key to invalidate; LOCAL_INV: our own"),
	ROW(struct send_wr_args, remote_addr, TABLE_UINT, "RDMA and Atomics: address at the peer",
		.max = UINT64_MAX),
	ROW(struct send_wr_args, rkey, TABLE_UINT, "RDMA and Atomics: the peer's key"),
	ROW(struct send_wr_args, compare_add, TABLE_UINT,
		"Atomics: value to compare with, or to add", .max = UINT64_MAX),
	ROW(struct send_wr_args, swap, TABLE_UINT, "ATOMIC_CMP_AND_SWP: value to store when equal",
		.max = UINT64_MAX),
	ROW(struct send_wr_args, bind_mw, TABLE_OBJECT, "BIND_MW: what to bind",
		.bit = SEND_HAS_BIND, .fields = params_bind),
	ROW_END,
};

static const struct table_row post_send_params[] = {
	QP_ROW,
	ROW(struct post_args, wr, TABLE_LIST, "work requests, posted in order",
		.flags = TABLE_REQUIRED, .min = 1, .max = WRS_MAX, .fields = params_send_wr,
		.item_size = sizeof(struct send_wr_args)),
	ROW_END,
};

static int
make_send_wr(struct rpc_call *call, const struct send_wr_args *a, struct send_wr *wr)
{
	*wr = (struct send_wr){
		.wr_id = a->wr_id,
		.opcode = (enum wr_opcode)a->opcode,
		.send_flags = a->send_flags,
		.imm_data = a->imm_data,
		.invalidate_rkey = a->invalidate_rkey,
		.remote_addr = a->remote_addr,
		.rkey = a->rkey,
		.compare_add = a->compare_add,
		.swap = a->swap,
	};
	wr->bind_mw.mw_key = a->bind_mw.mw_key;
	wr->bind_mw.new_key = a->bind_mw.new_key;
	wr->bind_mw.mr_key = a->bind_mw.mr_key;
	wr->bind_mw.access = a->bind_mw.access;
	wr->bind_mw.addr = a->bind_mw.addr;
	wr->bind_mw.length = a->bind_mw.length;
	if ((a->opcode == WR_BIND_MW) != ((a->present & SEND_HAS_BIND) != 0))
		return error_set(&call->err, EINVAL,
			"bind_mw: goes with the opcode BIND_MW, and only with it");
	if ((a->present & SEND_HAS_INLINE) == 0) {
		if ((a->send_flags & SEND_INLINE) != 0)
			return error_set(&call->err, EINVAL,
				"send_flags: INLINE takes its bytes from inline_data, which is missing");
		return make_sg_list(call, &a->sg_list, &wr->sg_list, &wr->num_sge);
	}
	if (a->sg_list.num > 0)
		return error_set(&call->err, EINVAL, "sg_list, inline_data: give one of them");
	wr->send_flags |= SEND_INLINE;
	wr->inline_data = a->inline_data.data;
	wr->inline_len = (uint32_t)a->inline_data.len;
	return 0;
}

static int
post_send(struct rpc_call *call)
{
	const struct post_args *a = call->args;
	const struct send_wr_args *items = a->wr.items;
	struct send_wr *wrs = arena_alloc(&call->arena, a->wr.num * sizeof(*wrs));
	size_t i, posted = 0;
	int rc = 0;

	if (wrs == NULL)
		return -ENOMEM;
	for (i = 0; i < a->wr.num && rc == 0; i++)
		rc = make_send_wr(call, &items[i], &wrs[i]);
	while (rc >= 0 && posted < a->wr.num) {
		rc = engine_post_send(call->e, a->qp_num, wrs + posted,
			(unsigned int)(a->wr.num - posted), &call->err);
		posted += rc > 0 ? (size_t)rc : 0;
	}
	return tell_posted(call, rc, posted);
}

const struct rpc_method methods_post[] = {
	{ "post_send", post_send, post_send_params, sizeof(struct post_args),
		"Post work requests to the send queue. ENOMEM: the queue is full; poll completions and post again.",
		"polca-ctl post send 17 --opcode RDMA_WRITE --sg-list key=0x1a2b3c4d,length=4096 --remote-addr 0x7f0000000000 --rkey 0x5e6f7a8b",
		RESULTS(results_posted, struct posted_reply) },
	{ "post_recv", method_post_recv, post_recv_params, sizeof(struct post_args),
		"Post receive requests to the receive queue.",
		"polca-ctl post recv 17 --wr-id 7 --sg-list key=0x1a2b3c4d,length=4096",
		RESULTS(results_posted, struct posted_reply) },
	{ NULL },
};
