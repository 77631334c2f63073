/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A verbs program that executes commands line by line: "command key=value ..." in, then lines of
 * data, then one line "ok key=value ..." or "err errno what". Objects are small numbers that the
 * commands return.
 *
 *	ping token=WORD			returns the word, to test the connection
 *	mr size= access=		a registered buffer		-> mr addr lkey rkey
 *	mr_dereg mr=
 *	fill/check mr= off= len= seed=	write / compare the pattern of a seed
 *	peek mr= off= len= / poke mr= off= hex=
 *	qp sq= rq= sge= inline=		an RC QP with its own CQ	-> qp qpn
 *	init qp= access=
 *	rtr qp= dest= psn= gid= sgid_index= mtu= rd= min_rnr= tclass= hops=
 *	rts qp= psn= timeout= retry= rnr= rd=
 *	state qp= to=reset|sqd|rts|err	a bare modify
 *	query qp=			-> state
 *	qp_destroy qp=
 *	mw / mw_bind qp= mw= mr= off= len= access= / mw_dealloc mw=
 *	post qp= op= mr= off= len= raddr= rkey= imm= inv= add= cmp= swap= wr_id= flags= n= stride=
 *	recv qp= mr= off= len= wr_id= n= stride=
 *	poll qp= n= ms=			wc lines			-> n
 *	events				event lines			-> n
 *	port				-> state mtu
 *	gid index=			-> gid
 *	sleep ms=
 *	reset				free everything
 *	quit				free everything and end
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define SLOTS     64
#define MAX_WORDS 40

struct region {
	struct ibv_mr *mr;
	uint8_t *buf;
	size_t size;
};

struct pair {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct region regions[SLOTS];
static struct pair pairs[SLOTS];
static struct ibv_mw *windows[SLOTS];

/* ---- one line: words and their values */

static char *words[MAX_WORDS];
static int n_words;

static const char *
argument(const char *key, const char *otherwise)
{
	size_t n = strlen(key);
	int i;

	for (i = 1; i < n_words; i++)
		if (strncmp(words[i], key, n) == 0 && words[i][n] == '=')
			return words[i] + n + 1;
	return otherwise;
}

static uint64_t
number_of(const char *key, uint64_t otherwise)
{
	const char *t = argument(key, NULL);

	return t == NULL ? otherwise : strtoull(t, NULL, 0);
}

static int
print_failure(int err, const char *what)
{
	printf("err %d %s: %s\n", err, what, strerror(err));
	return -1;
}

static int
done(int rc, const char *what)
{
	if (rc != 0)
		return print_failure(rc > 0 ? rc : errno, what);
	printf("ok\n");
	return 0;
}

static struct region *
region_of_line(void)
{
	uint64_t i = number_of("mr", SLOTS);

	return i < SLOTS && regions[i].mr != NULL ? &regions[i] : NULL;
}

/* the bytes off..off+len of a region, or NULL if they are not inside it */
static uint8_t *
range_of_line(size_t *len)
{
	struct region *r = region_of_line();
	uint64_t off = number_of("off", 0);

	if (r == NULL || off > r->size)
		return NULL;
	*len = number_of("len", r->size - off);
	return *len > r->size - off ? NULL : r->buf + off;
}

static struct pair *
pair_of_line(void)
{
	uint64_t i = number_of("qp", SLOTS);

	return i < SLOTS && pairs[i].qp != NULL ? &pairs[i] : NULL;
}

/* ---- memory */

static int
cmd_mr(void)
{
	size_t size = number_of("size", 4096);
	struct region *r;
	void *p;
	int i;

	for (i = 0; i < SLOTS && regions[i].mr != NULL; i++)
		;
	if (i == SLOTS)
		return print_failure(ENOSPC, "mr");
	r = &regions[i];
	if (posix_memalign(&p, 4096, size ? size : 1) != 0)
		return print_failure(ENOMEM, "mr");
	memset(p, 0, size);
	r->mr = ibv_reg_mr(pd, p, size, number_of("access", 15));
	if (r->mr == NULL) {
		free(p);
		return print_failure(errno, "ibv_reg_mr");
	}
	r->buf = p;
	r->size = size;
	printf("ok mr=%d addr=0x%llx lkey=0x%x rkey=0x%x\n", i, (unsigned long long)(uintptr_t)p,
		r->mr->lkey, r->mr->rkey);
	return 0;
}

static int
drop_region(struct region *r)
{
	int rc = ibv_dereg_mr(r->mr);

	if (rc != 0)
		return rc;
	free(r->buf);
	memset(r, 0, sizeof(*r));
	return 0;
}

static int
cmd_mr_dereg(void)
{
	struct region *r = region_of_line();

	return r == NULL ? print_failure(ENOENT, "mr") : done(drop_region(r), "ibv_dereg_mr");
}

/* pattern of a seed: the little-endian words (seed + k) * 2654435761 of k = 0, 1, ... */
static uint8_t
seed_pattern(uint32_t seed, size_t i)
{
	return ((seed + (uint32_t)(i / 4)) * 2654435761u) >> (8 * (i % 4));
}

static int
cmd_fill(void)
{
	uint32_t seed = number_of("seed", 0);
	size_t len, i;
	uint8_t *p = range_of_line(&len);

	if (p == NULL)
		return print_failure(EINVAL, "range");
	for (i = 0; i < len; i++)
		p[i] = seed_pattern(seed, i);
	return done(0, "fill");
}

static int
cmd_check(void)
{
	uint32_t seed = number_of("seed", 0);
	size_t len, i;
	uint8_t *p = range_of_line(&len);

	if (p == NULL)
		return print_failure(EINVAL, "range");
	for (i = 0; i < len; i++)
		if (p[i] != seed_pattern(seed, i)) {
			printf("ok same=0 at=%zu got=0x%02x want=0x%02x\n", i, p[i],
				seed_pattern(seed, i));
			return 0;
		}
	printf("ok same=1\n");
	return 0;
}

static int
cmd_peek(void)
{
	size_t len, i;
	uint8_t *p = range_of_line(&len);

	if (p == NULL)
		return print_failure(EINVAL, "range");
	printf("ok hex=");
	for (i = 0; i < len; i++)
		printf("%02x", p[i]);
	printf("\n");
	return 0;
}

static int
cmd_poke(void)
{
	const char *hex = argument("hex", "");
	size_t len, i, n = strlen(hex) / 2;
	uint8_t *p = range_of_line(&len);
	unsigned int v;

	if (p == NULL || n > len)
		return print_failure(EINVAL, "range");
	for (i = 0; i < n && sscanf(hex + 2 * i, "%2x", &v) == 1; i++)
		p[i] = v;
	return done(0, "poke");
}

/* ---- queue pairs */

static int
cmd_qp(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags =
			IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};
	struct pair *p;
	int i;

	for (i = 0; i < SLOTS && pairs[i].qp != NULL; i++)
		;
	if (i == SLOTS)
		return print_failure(ENOSPC, "qp");
	p = &pairs[i];
	attr.cap.max_send_wr = number_of("sq", 64);
	attr.cap.max_recv_wr = number_of("rq", 64);
	attr.cap.max_send_sge = attr.cap.max_recv_sge = number_of("sge", 1);
	attr.cap.max_inline_data = number_of("inline", 0);
	p->cq = ibv_create_cq(ctx, attr.cap.max_send_wr + attr.cap.max_recv_wr + 1, NULL, NULL, 0);
	if (p->cq == NULL)
		return print_failure(errno, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = p->cq;
	p->qp = ibv_create_qp_ex(ctx, &attr);
	if (p->qp == NULL) {
		ibv_destroy_cq(p->cq);
		return print_failure(errno, "ibv_create_qp");
	}
	printf("ok qp=%d qpn=0x%x\n", i, p->qp->qp_num);
	return 0;
}

static int
cmd_init(void)
{
	struct pair *p = pair_of_line();
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = number_of("access", 14),
	};

	return p == NULL ? print_failure(ENOENT, "qp")
			 : done(ibv_modify_qp(p->qp, &a,
					IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS),
				   "to INIT");
}

static enum ibv_mtu
mtu_of_line(void)
{
	switch (number_of("mtu", 1024)) {
	case 256:
		return IBV_MTU_256;
	case 512:
		return IBV_MTU_512;
	case 2048:
		return IBV_MTU_2048;
	case 4096:
		return IBV_MTU_4096;
	default:
		return IBV_MTU_1024;
	}
}

static int
cmd_rtr(void)
{
	struct pair *p = pair_of_line();
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_of_line(),
		.dest_qp_num = number_of("dest", 0),
		.rq_psn = number_of("psn", 0),
		.max_dest_rd_atomic = number_of("rd", 16),
		.min_rnr_timer = number_of("min_rnr", 12),
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.sgid_index = number_of("sgid_index", 1),
				.hop_limit = number_of("hops", 64),
				.traffic_class = number_of("tclass", 0),
			},
		},
	};

	if (p == NULL)
		return print_failure(ENOENT, "qp");
	if (inet_pton(AF_INET6, argument("gid", ""), &a.ah_attr.grh.dgid) != 1)
		return print_failure(EINVAL, "gid");
	return done(ibv_modify_qp(p->qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
		"to RTR");
}

static int
cmd_rts(void)
{
	struct pair *p = pair_of_line();
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.timeout = number_of("timeout", 18),
		.retry_cnt = number_of("retry", 7),
		.rnr_retry = number_of("rnr", 7),
		.sq_psn = number_of("psn", 0),
		.max_rd_atomic = number_of("rd", 16),
	};

	return p == NULL
		? print_failure(ENOENT, "qp")
		: done(ibv_modify_qp(p->qp, &a,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
			  "to RTS");
}

static const char *const state_names[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "err" };

static int
cmd_state(void)
{
	struct pair *p = pair_of_line();
	const char *to = argument("to", "");
	struct ibv_qp_attr a = { 0 };
	unsigned int i;

	for (i = 0; i < 7 && strcmp(to, state_names[i]) != 0; i++)
		;
	if (p == NULL || i == 7)
		return print_failure(EINVAL, "state");
	a.qp_state = (enum ibv_qp_state)i;
	return done(ibv_modify_qp(p->qp, &a, IBV_QP_STATE), "modify");
}

static int
cmd_query(void)
{
	struct pair *p = pair_of_line();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int rc;

	if (p == NULL)
		return print_failure(ENOENT, "qp");
	rc = ibv_query_qp(p->qp, &a, IBV_QP_STATE, &init);
	if (rc != 0)
		return print_failure(rc, "ibv_query_qp");
	printf("ok state=%s\n", a.qp_state < 7 ? state_names[a.qp_state] : "?");
	return 0;
}

static int
drop_pair(struct pair *p)
{
	int rc = ibv_destroy_qp(p->qp);

	if (rc == 0)
		rc = ibv_destroy_cq(p->cq);
	memset(p, 0, sizeof(*p));
	return rc;
}

static int
cmd_qp_destroy(void)
{
	struct pair *p = pair_of_line();

	return p == NULL ? print_failure(ENOENT, "qp") : done(drop_pair(p), "destroy");
}

/* ---- memory windows, type 2 */

static struct ibv_mw **
window_of_line(void)
{
	uint64_t i = number_of("mw", SLOTS);

	return i < SLOTS && windows[i] != NULL ? &windows[i] : NULL;
}

static int
cmd_mw(void)
{
	int i;

	for (i = 0; i < SLOTS && windows[i] != NULL; i++)
		;
	if (i == SLOTS)
		return print_failure(ENOSPC, "mw");
	windows[i] = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	if (windows[i] == NULL)
		return print_failure(errno, "ibv_alloc_mw");
	printf("ok mw=%d rkey=0x%x\n", i, windows[i]->rkey);
	return 0;
}

static int
cmd_mw_bind(void)
{
	struct pair *p = pair_of_line();
	struct region *r = region_of_line();
	struct ibv_mw **w = window_of_line();
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = number_of("wr_id", 0),
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
		};
	uint32_t rkey;
	size_t len;
	int rc;

	if (p == NULL || r == NULL || w == NULL)
		return print_failure(ENOENT, "mw_bind");
	rkey = ibv_inc_rkey((*w)->rkey);
	wr.bind_mw.mw = *w;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info.mr = r->mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)range_of_line(&len);
	wr.bind_mw.bind_info.length = len;
	wr.bind_mw.bind_info.mw_access_flags = number_of("access", 14);
	rc = ibv_post_send(p->qp, &wr, &bad);
	if (rc != 0)
		return print_failure(rc, "bind");
	(*w)->rkey = rkey;
	printf("ok rkey=0x%x\n", rkey);
	return 0;
}

static int
cmd_mw_dealloc(void)
{
	struct ibv_mw **w = window_of_line();
	int rc;

	if (w == NULL)
		return print_failure(ENOENT, "mw");
	rc = ibv_dealloc_mw(*w);
	if (rc == 0)
		*w = NULL;
	return done(rc, "ibv_dealloc_mw");
}

/* ---- work requests */

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} ops[] = {
	{ "send", IBV_WR_SEND },
	{ "send_imm", IBV_WR_SEND_WITH_IMM },
	{ "send_inv", IBV_WR_SEND_WITH_INV },
	{ "write", IBV_WR_RDMA_WRITE },
	{ "write_imm", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "read", IBV_WR_RDMA_READ },
	{ "cmp_swp", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "local_inv", IBV_WR_LOCAL_INV },
};

static int
send_flags_of_line(void)
{
	const char *t = argument("flags", "");
	int flags = IBV_SEND_SIGNALED;

	if (strstr(t, "unsignaled") != NULL)
		flags = 0;
	if (strstr(t, "fence") != NULL)
		flags |= IBV_SEND_FENCE;
	if (strstr(t, "solicited") != NULL)
		flags |= IBV_SEND_SOLICITED;
	if (strstr(t, "inline") != NULL)
		flags |= IBV_SEND_INLINE;
	return flags;
}

/*
 * Post atomics by the extended verbs: ibv_post_send() of rxe's provider rejects an address that is
 * not a multiple of eight, but tests need to send such a request to the responder.
 */
static int
post_atomic(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(x);
	x->wr_id = wr->wr_id;
	x->wr_flags = wr->send_flags;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		ibv_wr_atomic_cmp_swp(x, number_of("rkey", 0), wr->wr.rdma.remote_addr,
			number_of("cmp", 0), number_of("swap", 0));
	else
		ibv_wr_atomic_fetch_add(x, number_of("rkey", 0), wr->wr.rdma.remote_addr,
			number_of("add", 0));
	if (wr->num_sge != 0)
		ibv_wr_set_sge(x, wr->sg_list->lkey, wr->sg_list->addr, wr->sg_list->length);
	return ibv_wr_complete(x);
}

static int
cmd_post(void)
{
	struct pair *p = pair_of_line();
	struct region *r = region_of_line();
	uint64_t n = number_of("n", 1), stride = number_of("stride", 0), i;
	struct ibv_send_wr *bad, wr = { .wr_id = number_of("wr_id", 0) };
	const char *op = argument("op", "");
	struct ibv_sge sge = { 0 };
	size_t o;
	int rc;

	for (o = 0; o < sizeof(ops) / sizeof(ops[0]) && strcmp(op, ops[o].name) != 0; o++)
		;
	if (p == NULL || o == sizeof(ops) / sizeof(ops[0]))
		return print_failure(EINVAL, "post");
	wr.opcode = ops[o].opcode;
	wr.send_flags = send_flags_of_line();
	if (r != NULL) {
		sge.addr = (uintptr_t)r->buf + number_of("off", 0);
		sge.length = number_of("len", 0);
		sge.lkey = r->mr->lkey;
		wr.sg_list = &sge;
		wr.num_sge = sge.length != 0;
	}
	if (wr.opcode == IBV_WR_SEND_WITH_INV || wr.opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = number_of("inv", 0);
	else
		wr.imm_data = htonl(number_of("imm", 0));
	for (i = 0; i < n; i++) {
		wr.wr.rdma.remote_addr = number_of("raddr", 0) + i * stride;
		wr.wr.rdma.rkey = number_of("rkey", 0);
		if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
			wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			rc = post_atomic(p->qp, &wr);
		else
			rc = ibv_post_send(p->qp, &wr, &bad);
		if (rc != 0)
			return print_failure(rc, "ibv_post_send");
		wr.wr_id++;
		sge.addr += stride;
	}
	return done(0, "post");
}

static int
cmd_recv(void)
{
	struct pair *p = pair_of_line();
	struct region *r = region_of_line();
	uint64_t n = number_of("n", 1), stride = number_of("stride", 0), i;
	struct ibv_recv_wr *bad, wr = { .wr_id = number_of("wr_id", 0) };
	struct ibv_sge sge = { .length = number_of("len", 0) };
	int rc;

	if (p == NULL)
		return print_failure(ENOENT, "qp");
	if (r != NULL) {
		sge.addr = (uintptr_t)r->buf + number_of("off", 0);
		sge.lkey = r->mr->lkey;
		wr.sg_list = &sge;
		wr.num_sge = sge.length != 0;
	}
	for (i = 0; i < n; i++) {
		rc = ibv_post_recv(p->qp, &wr, &bad);
		if (rc != 0)
			return print_failure(rc, "ibv_post_recv");
		wr.wr_id++;
		sge.addr += stride;
	}
	return done(0, "recv");
}

static uint64_t
milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
print_wc(const struct ibv_wc *w)
{
	printf("wc wr_id=%llu status=%d opcode=%d byte_len=%u flags=%u qp_num=0x%x",
		(unsigned long long)w->wr_id, w->status, w->opcode, w->byte_len, w->wc_flags,
		w->qp_num);
	if (w->wc_flags & IBV_WC_WITH_IMM)
		printf(" imm=0x%x", ntohl(w->imm_data));
	/* rxe of Linux 6.1 passes the kernel's value of this flag, 4, instead of the verbs' 8 */
	if (w->wc_flags & (IBV_WC_WITH_INV | 4))
		printf(" inv=0x%x", w->invalidated_rkey);
	printf("\n");
}

static int
cmd_poll(void)
{
	struct pair *p = pair_of_line();
	uint64_t n = number_of("n", 1), got = 0, end = milliseconds() + number_of("ms", 0);
	struct ibv_wc wc;
	int rc;

	if (p == NULL)
		return print_failure(ENOENT, "qp");
	while (got < n) {
		rc = ibv_poll_cq(p->cq, 1, &wc);
		if (rc < 0)
			return print_failure(EIO, "ibv_poll_cq");
		if (rc == 0) {
			if (milliseconds() >= end)
				break;
			usleep(200);
			continue;
		}
		print_wc(&wc);
		got++;
	}
	printf("ok n=%llu\n", (unsigned long long)got);
	return 0;
}

static int
cmd_events(void)
{
	struct ibv_async_event e;
	unsigned int qpn;
	int n = 0, i;

	while (ibv_get_async_event(ctx, &e) == 0) {
		qpn = 0;
		for (i = 0; i < SLOTS; i++)
			if (pairs[i].qp != NULL && pairs[i].qp == e.element.qp)
				qpn = pairs[i].qp->qp_num;
		printf("event type=%d qp_num=0x%x\n", e.event_type, qpn);
		ibv_ack_async_event(&e);
		n++;
	}
	printf("ok n=%d\n", n);
	return 0;
}

/* ---- other commands */

static int
cmd_port(void)
{
	struct ibv_port_attr a;
	int rc = ibv_query_port(ctx, 1, &a);

	if (rc != 0)
		return print_failure(rc, "ibv_query_port");
	printf("ok state=%d mtu=%d\n", a.state, 128 << a.active_mtu);
	return 0;
}

static int
cmd_gid(void)
{
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	if (ibv_query_gid(ctx, 1, number_of("index", 0), &gid) != 0)
		return print_failure(ENOENT, "gid");
	printf("ok gid=%s\n", inet_ntop(AF_INET6, &gid, text, sizeof(text)));
	return 0;
}

static int
cmd_ping(void)
{
	printf("ok token=%s\n", argument("token", ""));
	return 0;
}

static int
cmd_sleep(void)
{
	usleep(number_of("ms", 0) * 1000);
	return done(0, "sleep");
}

static void
free_all(void)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (pairs[i].qp != NULL)
			drop_pair(&pairs[i]);
	for (i = 0; i < SLOTS; i++)
		if (windows[i] != NULL)
			ibv_dealloc_mw(windows[i]);
	memset(windows, 0, sizeof(windows));
	for (i = 0; i < SLOTS; i++)
		if (regions[i].mr != NULL)
			drop_region(&regions[i]);
}

static int
cmd_reset(void)
{
	free_all();
	return done(0, "reset");
}

static const struct {
	const char *name;
	int (*run)(void);
} commands[] = {
	{ "ping", cmd_ping },
	{ "mr", cmd_mr },
	{ "mr_dereg", cmd_mr_dereg },
	{ "fill", cmd_fill },
	{ "check", cmd_check },
	{ "peek", cmd_peek },
	{ "poke", cmd_poke },
	{ "qp", cmd_qp },
	{ "init", cmd_init },
	{ "rtr", cmd_rtr },
	{ "rts", cmd_rts },
	{ "state", cmd_state },
	{ "query", cmd_query },
	{ "qp_destroy", cmd_qp_destroy },
	{ "mw", cmd_mw },
	{ "mw_bind", cmd_mw_bind },
	{ "mw_dealloc", cmd_mw_dealloc },
	{ "post", cmd_post },
	{ "recv", cmd_recv },
	{ "poll", cmd_poll },
	{ "events", cmd_events },
	{ "port", cmd_port },
	{ "gid", cmd_gid },
	{ "sleep", cmd_sleep },
	{ "reset", cmd_reset },
};

static void
run_line(char *line)
{
	size_t i;
	char *w;

	n_words = 0;
	for (w = strtok(line, " \r\n"); w != NULL && n_words < MAX_WORDS; w = strtok(NULL, " \r\n"))
		words[n_words++] = w;
	if (n_words == 0)
		return;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(words[0], commands[i].name) == 0) {
			commands[i].run();
			return;
		}
	print_failure(ENOSYS, words[0]);
}

static int
open_rdma_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (list == NULL || list[0] == NULL)
		return print_failure(ENODEV, "no RDMA device");
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (ctx == NULL)
		return print_failure(errno, "ibv_open_device");
	fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK);
	pd = ibv_alloc_pd(ctx);
	return pd == NULL ? print_failure(errno, "ibv_alloc_pd") : 0;
}

int
main(void)
{
	char *line = NULL;
	size_t room = 0;

	if (open_rdma_device() != 0)
		return 1;
	while (getline(&line, &room, stdin) > 0 && strncmp(line, "quit", 4) != 0) {
		run_line(line);
		fflush(stdout);
	}
	free(line);
	free_all();
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	return 0;
}
