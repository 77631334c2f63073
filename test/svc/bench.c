/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static struct bench *current; /* the hooks of struct node have no argument */

static unsigned int
bench_work(struct node *n)
{
	unsigned int i, done = 0;

	for (i = 0; i < current->num_services; i++) {
		if (current->services[i].node == n)
			done += svc_worker_run(current->services[i].w, n->world->now, 64);
	}
	return done;
}

static unsigned int
count_regions(const struct node *n)
{
	struct mem_mr_info info;
	uint64_t cursor = 0;
	unsigned int count = 0;

	while (mem_mr_next(n->mem, &cursor, &info))
		count++;
	return count;
}

static void
bench_expect_clean(struct node *n)
{
	struct rc_cq_info info;
	uint64_t cursor = 0;
	unsigned int cqs = 0;

	while (rc_cq_next(n->dev, &cursor, &info))
		cqs++;
	assert_int_equal(cqs, 2); /* the node's own */
	assert_int_equal(count_regions(n), 1);
}

/* As when an appliance stops: connections end first, then services. */
static void
bench_leave(struct node *n)
{
	struct service *s;

	for (s = current->services; s < current->services + current->num_services; s++) {
		if (s->node != n)
			continue;
		svc_worker_destroy(s->w);
		assert_int_equal(svc_destroy(s->svc), 0);
	}
	bench_expect_clean(n);
}

struct bench *
bench_create(const struct world *like)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->w = world_create(like);
	b->w->a.work = bench_work;
	b->w->b.work = bench_work;
	b->w->a.leave = bench_leave;
	b->w->b.leave = bench_leave;
	current = b;
	return b;
}

void
bench_destroy(struct bench *b)
{
	world_destroy(b->w);
	free(b);
}

int
bench_setup(void **state)
{
	static const struct world plain;

	*state = bench_create(&plain);
	return 0;
}

int
bench_teardown(void **state)
{
	bench_destroy(*state);
	return 0;
}

struct svc_env
bench_env(struct node *n)
{
	return (struct svc_env){
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.mem = n->mem,
		.dev = n->dev,
		.workers = 1,
		.hz = 1000000000,
		.max_cqe = 65536,
		.max_qp_wr = rc_limits_default.max_qp_wr,
		.numa_node = -1,
	};
}

struct service *
serve(struct bench *b, struct node *n, const struct svc_config *config)
{
	struct service *s = &b->services[b->num_services++];
	struct svc_env env = bench_env(n);
	struct svc_config c = *config;
	struct error err = { "" };

	assert_true(b->num_services <= BENCH_SERVICES);
	c.service_id = WORLD_SERVICE;
	c.service_mask = UINT64_MAX;
	s->node = n;
	s->svc = svc_create(&env, &c, &err);
	if (s->svc == NULL)
		fail_msg("%s", err.text);
	s->w = svc_worker_create(s->svc, n->cm, n->rc, 0, &err);
	assert_non_null(s->w);
	if (!c.active) {
		assert_int_equal(cm_unlisten(n->cm, WORLD_SERVICE, UINT64_MAX), 0);
		assert_int_equal(svc_worker_listen(s->w), 0);
	}
	return s;
}

void
expect_refusal(struct bench *b, const struct svc_config *config, const char *text)
{
	struct svc_env env = bench_env(&b->w->b);
	struct error err = { "" };

	assert_null(svc_create(&env, config, &err));
	assert_string_equal(err.text, text);
}

int
begin(struct service *s, cm_id *id, struct error *err)
{
	struct cm_connect c;

	connect_init(s->node, &c);
	c.ops = NULL;
	memset(&c.param, 0xEE, sizeof(c.param)); /* the service must set every member */
	return svc_worker_connect(s->w, &c, s->node->world->now, id, err);
}

cm_id
dial(struct bench *b, struct service *s)
{
	struct error err = { "" };
	cm_id id;

	if (begin(s, &id, &err) != 0)
		fail_msg("%s", err.text);
	exchange(b->w);
	return id;
}

struct svc_counters
figures(const struct service *s)
{
	struct svc_counters sum = { 0 };

	svc_counters_add(s->svc, -1, &sum);
	return sum;
}

struct life *
call(struct bench *b)
{
	struct life *l = start(&b->w->a);

	exchange(b->w);
	return l;
}

/* --- a test's own connection --- */

enum wc_status
act(struct bench *b, struct life *l, const struct send_wr *wr)
{
	struct error err = { "" };
	struct wc wc;

	if (rc_post_send(l->node->rc, l->qpn, wr, &err) != 0)
		fail_msg("%s", err.text);
	exchange(b->w);
	if (rc_cq_poll(l->node->dev, l->node->send_cq, &wc, 1) != 1)
		fail_msg("no completion");
	assert_int_equal(wc.qp_num, l->qpn);
	return wc.status;
}

enum wc_status
say(struct bench *b, struct life *l, uint32_t len)
{
	struct sge sge = { l->node->va, len, l->node->key };
	struct send_wr wr = {
		.opcode = WR_SEND,
		.send_flags = SEND_SIGNALED,
		.num_sge = len != 0,
		.sg_list = &sge,
	};

	return act(b, l, &wr);
}

enum wc_status
rdma(struct bench *b, struct life *l, enum wr_opcode opcode, uint32_t at, uint32_t len,
	uint64_t remote, uint32_t rkey)
{
	struct sge sge = { l->node->va + at, len, l->node->key };
	struct send_wr wr = {
		.opcode = opcode,
		.send_flags = SEND_SIGNALED,
		.num_sge = 1,
		.sg_list = &sge,
		.remote_addr = remote,
		.rkey = rkey,
		.compare_add = 1,
	};

	return act(b, l, &wr);
}

struct wc
heard(struct life *l)
{
	struct node *n = l->node;
	struct sge sge = { n->va, 64, n->key };
	struct recv_wr wr = { .num_sge = 1, .sg_list = &sge };
	struct wc wc;

	do {
		if (rc_cq_poll(n->dev, n->recv_cq, &wc, 1) != 1)
			fail_msg("nothing received");
	} while (wc.qp_num != l->qpn);
	assert_int_equal(wc.status, WC_SUCCESS);
	assert_int_equal(rc_post_recv(n->rc, l->qpn, &wr, NULL), 0);
	return wc;
}

void
expect_nothing_heard(struct life *l)
{
	struct wc wc;

	assert_int_equal(rc_cq_poll(l->node->dev, l->node->recv_cq, &wc, 1), 0);
}

void
expect_all_released(struct bench *b)
{
	struct service *s;

	pass(b->w, 10 * SECOND);
	for (s = b->services; s < b->services + b->num_services; s++) {
		assert_int_equal(svc_worker_connections(s->w), 0);
		assert_int_equal(figures(s).connections, 0);
	}
	expect_nothing_left(&b->w->a);
	expect_nothing_left(&b->w->b);
}
