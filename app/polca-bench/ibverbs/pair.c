/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "command.h"
#include "ibverbs/pair.h"

#define ACCESS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
		IBV_ACCESS_REMOTE_ATOMIC)
#define READS 16 /* Reads and Atomics that a QP may have under way */

static int
verbs_failed(const char *what, struct error *err)
{
	int code = errno != 0 ? errno : EIO;

	return error_set(err, code, "--verbs: %s: %s", what, strerror(code));
}

static int
verbs_open(struct verbs_side *s, const char *name, size_t length, struct error *err)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d;

	for (d = list; d != NULL && *d != NULL && s->context == NULL; d++)
		if (strlen(ibv_get_device_name(*d)) == length &&
			strncmp(ibv_get_device_name(*d), name, length) == 0)
			s->context = ibv_open_device(*d);
	if (list != NULL)
		ibv_free_device_list(list);
	if (s->context == NULL)
		return error_set(err, ENODEV,
			"--verbs: there is no device %.*s: start polca, and this program by polca-run",
			(int)length, name);
	return 0;
}

static int
verbs_make_objects(struct verbs_pair *p, struct verbs_side *s, struct error *err)
{
	const struct bench_options *o = p->o;

	s->pd = ibv_alloc_pd(s->context);
	s->send_cq = ibv_create_cq(s->context, (int)(o->qps * o->depth), NULL, NULL, 0);
	s->receive_cq = ibv_create_cq(s->context, (int)(o->qps * o->rx_depth), NULL, NULL, 0);
	if (s->pd == NULL || s->send_cq == NULL || s->receive_cq == NULL)
		return verbs_failed("no completion queues", err);
	s->memory = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s->memory == MAP_FAILED) {
		s->memory = NULL;
		return verbs_failed("no memory", err);
	}
	s->mr = ibv_reg_mr(s->pd, s->memory, p->bytes, ACCESS);
	if (s->mr == NULL)
		return verbs_failed("memory cannot be registered", err);
	s->qp = calloc(o->qps, sizeof(struct ibv_qp *));
	return s->qp == NULL ? verbs_failed("no memory", err) : 0;
}

static int
verbs_make_qps(struct verbs_pair *p, struct verbs_side *s, struct error *err)
{
	const struct bench_options *o = p->o;
	struct ibv_qp_init_attr init = {
		.send_cq = s->send_cq,
		.recv_cq = s->receive_cq,
		.cap = { .max_send_wr = o->depth,
			.max_recv_wr = o->rx_depth,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = RTE_MAX(o->inline_size, (uint32_t)VERBS_INLINE) },
		.qp_type = IBV_QPT_RC,
	};
	uint32_t i;

	for (i = 0; i < o->qps; i++) {
		s->qp[i] = ibv_create_qp(s->pd, &init);
		if (s->qp[i] == NULL)
			return verbs_failed("no queue pair", err);
	}
	return 0;
}

static int
verbs_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct error *err)
{
	errno = ibv_modify_qp(qp, attr, mask);
	return errno == 0 ? 0 : verbs_failed("a queue pair cannot be connected", err);
}

/* From RESET to RTS: towards the other side's queue pair. */
static int
verbs_connect(const struct bench_options *o, struct ibv_qp *qp, struct ibv_qp *peer,
	struct error *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(o->mtu) - 7),
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = READS,
		.max_rd_atomic = READS,
		.min_rnr_timer = (uint8_t)o->rnr_timer,
		.timeout = (uint8_t)o->timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } },
	};
	int ret;

	if (ibv_query_gid(peer->context, 1, 0, &attr.ah_attr.grh.dgid) != 0)
		return verbs_failed("no address", err);
	ret = verbs_modify(qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, err);
	attr.qp_state = IBV_QPS_RTR;
	if (ret == 0)
		ret = verbs_modify(qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
			err);
	attr.qp_state = IBV_QPS_RTS;
	if (ret == 0)
		ret = verbs_modify(qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
			err);
	return ret;
}

static int
verbs_connect_all(struct verbs_pair *p, struct error *err)
{
	const struct bench_options *o = p->o;
	uint32_t i, n, side;
	int ret = 0;

	for (i = 0; i < o->qps && ret == 0; i++) {
		p->credit[i] = o->depth;
		for (side = 0; side < VERBS_SIDES && ret == 0; side++)
			ret = verbs_connect(o, p->side[side].qp[i], p->side[!side].qp[i], err);
		for (side = 0; side < VERBS_SIDES && o->verb == BENCH_SEND; side++)
			for (n = 0; n < o->rx_depth && ret == 0; n++)
				ret = verbs_post_receive(p, side, i, err);
	}
	return ret;
}

int
verbs_pair_create(struct verbs_pair *p, const struct bench_options *o, struct error *err)
{
	const char *comma = strchr(o->verbs, ',');
	size_t length = comma != NULL ? (size_t)(comma - o->verbs) : strlen(o->verbs);
	const char *second = comma != NULL ? comma + 1 : o->verbs;
	unsigned int i;
	int ret;

	*p = (struct verbs_pair){ .o = o };
	p->stride = RTE_ALIGN_CEIL(o->size, RTE_CACHE_LINE_SIZE);
	p->bytes = RTE_ALIGN_CEIL(RTE_MAX((uint64_t)o->footprint, p->stride), UINT64_C(4096));
	p->credit = calloc(o->qps, sizeof(*p->credit));
	p->since_signal = calloc(o->qps, sizeof(*p->since_signal));
	if (p->credit == NULL || p->since_signal == NULL)
		return error_set(err, ENOMEM, "no memory");
	ret = verbs_open(&p->side[VERBS_REQUESTER], o->verbs, length, err);
	if (ret == 0)
		ret = verbs_open(&p->side[VERBS_RESPONDER], second,
			comma != NULL ? strlen(second) : length, err);
	for (i = 0; i < VERBS_SIDES && ret == 0; i++) {
		ret = verbs_make_objects(p, &p->side[i], err);
		if (ret == 0)
			ret = verbs_make_qps(p, &p->side[i], err);
	}
	return ret == 0 ? verbs_connect_all(p, err) : ret;
}

static void
verbs_side_destroy(struct verbs_side *s, uint32_t qps, uint64_t bytes)
{
	uint32_t i;

	for (i = 0; s->qp != NULL && i < qps && s->qp[i] != NULL; i++)
		ibv_destroy_qp(s->qp[i]);
	free(s->qp);
	if (s->mr != NULL)
		ibv_dereg_mr(s->mr);
	if (s->memory != NULL)
		munmap(s->memory, bytes);
	if (s->send_cq != NULL)
		ibv_destroy_cq(s->send_cq);
	if (s->receive_cq != NULL)
		ibv_destroy_cq(s->receive_cq);
	if (s->pd != NULL)
		ibv_dealloc_pd(s->pd);
	if (s->context != NULL)
		ibv_close_device(s->context);
}

void
verbs_pair_destroy(struct verbs_pair *p)
{
	unsigned int i;

	for (i = 0; i < VERBS_SIDES && p->o != NULL; i++)
		verbs_side_destroy(&p->side[i], p->o->qps, p->bytes);
	free(p->credit);
	free(p->since_signal);
}

uint64_t
verbs_next(const struct verbs_pair *p, struct verbs_side *s)
{
	uint64_t at = s->next;

	s->next += p->stride;
	if (s->next + p->stride > p->bytes)
		s->next = 0;
	return at;
}

int
verbs_post_receive(struct verbs_pair *p, unsigned int side, uint32_t qp, struct error *err)
{
	struct verbs_side *s = &p->side[side];
	struct ibv_sge sge = { (uintptr_t)s->memory + verbs_next(p, s), p->o->size, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = qp, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(s->qp[qp], &wr, &bad);
	return errno == 0 ? 0 : verbs_failed("ibv_post_recv", err);
}

int
verbs_post_send(struct verbs_pair *p, unsigned int side, uint32_t qp, enum ibv_wr_opcode opcode,
	unsigned int flags, struct error *err)
{
	struct verbs_side *s = &p->side[side], *to = &p->side[!side];
	uint64_t at = verbs_next(p, s);
	struct ibv_sge sge = { (uintptr_t)s->memory + at, p->o->size, s->mr->lkey };
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = qp,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = flags,
			.wr.rdma = { (uintptr_t)to->memory + at, to->mr->rkey },
		};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 0;
		wr.wr.atomic.rkey = to->mr->rkey;
	}
	errno = ibv_post_send(s->qp[qp], &wr, &bad);
	return errno == 0 ? 0 : verbs_failed("ibv_post_send", err);
}

int
verbs_check(const struct ibv_wc *wc, struct error *err)
{
	if (wc->status == IBV_WC_SUCCESS)
		return 0;
	return error_set(err, EIO, "--verbs: a request failed: %s", ibv_wc_status_str(wc->status));
}

int
verbs_wait(struct ibv_cq *cq, struct ibv_wc *wc, struct error *err)
{
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
	} while (n == 0 && bench_stop == 0);
	if (n < 0)
		return error_set(err, EIO, "--verbs: polca has ended");
	return n == 0 ? error_set(err, EINTR, "--verbs: ended by the user") : verbs_check(wc, err);
}
