/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What a call of libibverbs takes the program, while polca's worker runs on another CPU. */

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "ibverbs/compare.h"

#define POSTS    16 /* in a row; at most the queue's depth */
#define POLLS    4096
#define REQUESTS 64

const char *const verbs_call_names[VERBS_CALLS] = {
	[VERBS_POST] = "ibv_post_send, 64 bytes inline",
	[VERBS_POLL] = "ibv_poll_cq, empty",
	[VERBS_REQUEST] = "empty request",
};

static double
ns_since(uint64_t start)
{
	return (double)(rte_rdtsc() - start) * 1e9 / (double)rte_get_tsc_hz();
}

/* Writes, which need no receives. All earlier requests are completed. */
static int
time_posts(struct verbs_pair *p, double *ns, struct error *err)
{
	struct verbs_side *s = &p->side[VERBS_REQUESTER], *to = &p->side[VERBS_RESPONDER];
	struct ibv_sge sge = { (uintptr_t)s->memory, VERBS_INLINE, 0 };
	struct ibv_send_wr *bad,
		wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)to->memory, to->mr->rkey },
		};
	uint32_t n = RTE_MIN(p->credit[0], (uint32_t)POSTS), i;
	uint64_t start = rte_rdtsc();
	struct ibv_wc wc;
	int ret = 0;

	for (i = 0; i < n && ret == 0; i++)
		ret = ibv_post_send(s->qp[0], &wr, &bad);
	*ns = ns_since(start) / n;
	if (ret != 0)
		return error_set(err, ret, "--verbs: ibv_post_send: %s", strerror(ret));
	for (i = 0; i < n && ret == 0; i++)
		ret = verbs_wait(s->send_cq, &wc, err);
	return ret;
}

static int
time_polls(struct verbs_pair *p, double *ns, struct error *err)
{
	struct ibv_cq *cq = p->side[VERBS_REQUESTER].send_cq;
	uint64_t start = rte_rdtsc();
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < POLLS; i++)
		if (ibv_poll_cq(cq, 1, &wc) != 0)
			return error_set(err, EIO, "--verbs: a completion that nobody waits for");
	*ns = ns_since(start) / POLLS;
	return 0;
}

/* The least that registering memory, for example, can take. */
static int
time_requests(struct verbs_pair *p, double *ns, struct error *err)
{
	struct ibv_context *context = p->side[VERBS_REQUESTER].context;
	uint64_t start = rte_rdtsc();
	struct ibv_port_attr attr;
	unsigned int i;
	int ret;

	for (i = 0; i < REQUESTS; i++) {
		ret = ibv_query_port(context, 1, &attr);
		if (ret != 0)
			return error_set(err, ret, "--verbs: ibv_query_port: %s", strerror(ret));
	}
	*ns = ns_since(start) / REQUESTS;
	return 0;
}

int
verbs_calls(struct verbs_pair *p, double ns[VERBS_CALLS], struct error *err)
{
	int ret = time_posts(p, &ns[VERBS_POST], err);

	if (ret == 0)
		ret = time_polls(p, &ns[VERBS_POLL], err);
	if (ret == 0)
		ret = time_requests(p, &ns[VERBS_REQUEST], err);
	return ret;
}
