/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Memory of queue pairs: how much is allocated, and what happens when an allocation fails. */

#include <errno.h>
#include <stdlib.h>

#include "pair.h"

/* An allocator that fails after a number of allocations, and counts the blocks in use. */
struct counted {
	unsigned int calls, live, left;
};

static void *
memory_counted_alloc(void *arg, size_t size, size_t align)
{
	struct counted *c = arg;

	if (c->left == 0)
		return NULL;
	c->left--;
	c->calls++;
	c->live++;
	return allocator_malloc.alloc(allocator_malloc.arg, size, align);
}

static void
memory_counted_free(void *arg, void *mem)
{
	struct counted *c = arg;

	c->live--;
	allocator_malloc.free(allocator_malloc.arg, mem);
}

static uint8_t *
memory_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	(void)sink;
	(void)path;
	(void)len;
	return NULL;
}

struct ca {
	struct counted counted;
	struct allocator alloc;
	struct mem *mem;
	struct timer_wheel *wheel;
	struct tx_sink sink;
	struct rc_dev *dev;
	struct rc_worker *w;
	uint32_t pd, cq;
	bool dcqcn; /* queue pairs have rate limiters */
};

static void
ca_init(struct ca *ca, unsigned int left)
{
	struct mem_config mc = {
		.max_pd = 1,
		.max_mr = 1,
		.max_mw = 1,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};

	*ca = (struct ca){ .counted.left = left,
		.sink = { memory_reserve, NULL, tx_send_in_parts } };
	ca->alloc = (struct allocator){ memory_counted_alloc, memory_counted_free, &ca->counted };
	ca->mem = mem_create(&mc);
	ca->wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	assert_int_equal(mem_pd_alloc(ca->mem, &ca->pd, NULL), 0);
}

static void
ca_fini(struct ca *ca)
{
	rc_worker_destroy(ca->w);
	rc_dev_destroy(ca->dev);
	assert_int_equal(ca->counted.live, 0);
	assert_int_equal(mem_pd_free(ca->mem, ca->pd, NULL), 0); /* no QP holds it */
	mem_destroy(ca->mem);
	timer_wheel_destroy(ca->wheel);
}

static bool
ca_create(struct ca *ca, uint32_t max_qp)
{
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = 1,
		.hz = 1000000000,
		.alloc = &ca->alloc,
		.rng = &rng_kernel,
		.mem = ca->mem,
	};
	struct rc_worker_config wc = { .wheel = ca->wheel, .tx = &ca->sink };

	dc.limits.max_qp = max_qp;
	if (ca->dcqcn)
		dc.limits.congestion = usual_congestion;
	ca->dev = rc_dev_create(&dc);
	if (ca->dev == NULL)
		return false;
	ca->w = rc_worker_create(ca->dev, &wc);
	return ca->w != NULL && rc_cq_create(ca->dev, 16, &ca->cq, NULL) == 0;
}

/* @return the first error */
static int
memory_make_qp(struct ca *ca, uint32_t srq)
{
	struct qp_init_attr init = { .qp_type = QPT_RC, .pd = ca->pd, .send_cq = ca->cq,
		.recv_cq = ca->cq, .srq = srq, .cap = { .max_send_wr = 16, .max_recv_wr = 16,
			.max_send_sge = 1, .max_recv_sge = 1, }, };
	struct qp_attr attr = {
		.qp_state = QPS_INIT,
		.pkey = 0xFFFF,
		.path_mtu = 256,
		.dest_qp_num = 99,
		.max_dest_rd_atomic = 4,
		.neighbour = PATH_NO_NEIGHBOUR,
		.av = { .encap = ENCAP_IB, .dlid = 2, .slid = 1 },
	};
	struct error err = { "" };
	uint32_t qpn;
	int rc;

	rc = rc_qp_create(ca->w, &init, &qpn, &err);
	if (rc != 0)
		return rc;
	assert_int_equal(rc_qp_modify(ca->w, qpn, &attr, MASK_INIT, &err), 0);
	attr.qp_state = QPS_RTR;
	return rc_qp_modify(ca->w, qpn, &attr, MASK_RTR, &err);
}

/* Each allocation fails in turn: the caller gets an error text, and nothing leaks. */
static void
test_every_allocation_may_fail(void **state)
{
	unsigned int left, refused = 0;
	struct error err;
	struct ca ca;
	uint32_t srq, cq;
	int rc = -ENOMEM;

	(void)state;
	for (left = 0; rc != 0; left++) {
		ca_init(&ca, left);
		ca.dcqcn = true;
		rc = -ENOMEM;
		if (ca_create(&ca, 64))
			rc = memory_make_qp(&ca, RC_NO_SRQ);
		if (rc == 0)
			rc = rc_srq_create(ca.w, ca.pd, 16, 1, &srq, NULL);
		if (rc == 0)
			rc = memory_make_qp(&ca, srq);
		if (rc == 0)
			rc = rc_cq_create(ca.dev, 16, &cq, NULL);
		if (rc == 0) {
			rc = rc_cq_reserve(ca.dev, cq, 0, &err);
			if (rc != 0)
				assert_string_equal(err.text,
					"no memory for 16 completions of worker 0");
		}
		if (rc == 0 && rc_trace_switch_all(ca.w, true) != 2)
			rc = -ENOMEM; /* for the steps of one of the two QPs */
		if (rc != 0) {
			assert_int_equal(rc, -ENOMEM);
			refused++;
		}
		ca_fini(&ca);
	}
	/*
	 * device and memory 2 at least, worker 2, CQs 4, QPs 2, rate limiters 2, saved requests 2,
	 * SRQ 1 and its WQE's copy 1
	 */
	assert_in_range(refused, 16, 26);
}

/* A device or a worker with numbers that cannot be is not made, and takes no memory. */
static void
test_numbers_that_cannot_be(void **state)
{
	struct rc_worker_config wc = { 0 };
	struct rc_dev_config dc;
	unsigned int live;
	struct ca ca;

	(void)state;
	ca_init(&ca, UINT32_MAX);
	dc = (struct rc_dev_config){ .limits = rc_limits_default,
		.workers = 1,
		.hz = 1000000000,
		.alloc = &ca.alloc,
		.rng = &rng_kernel,
		.mem = ca.mem };
	dc.limits.max_qp = 63; /* no power of two */
	assert_null(rc_dev_create(&dc));
	dc.limits.max_qp = 64;
	dc.workers = 0;
	assert_null(rc_dev_create(&dc));
	dc.workers = RC_WORKERS_MAX + 1;
	assert_null(rc_dev_create(&dc));
	assert_int_equal(ca.counted.calls, 0);
	assert_true(ca_create(&ca, 64));
	live = ca.counted.live;
	wc.wheel = ca.wheel;
	wc.tx = &ca.sink;
	assert_null(rc_worker_create(ca.dev, &wc)); /* there is a worker 0 */
	wc.id = 1;
	assert_null(rc_worker_create(ca.dev, &wc));
	assert_int_equal(rc_cq_follow(ca.dev, ca.cq + 1), -ENOENT);
	assert_int_equal(rc_qp_join(ca.w, 5, NULL), -ENOENT);
	assert_int_equal(ca.counted.live, live);
	ca_fini(&ca);
}

/* 10,000 QPs with their queues and 4 saved Reads each take far fewer than 10,000 allocations. */
static void
test_many_queue_pairs_take_few_allocations(void **state)
{
	unsigned int i, before;
	struct ca ca;

	(void)state;
	ca_init(&ca, UINT32_MAX);
	assert_true(ca_create(&ca, 16384));
	before = ca.counted.calls;
	for (i = 0; i < 10000; i++)
		assert_int_equal(memory_make_qp(&ca, RC_NO_SRQ), 0);
	assert_in_range(ca.counted.calls - before, 10, 50);
	ca_fini(&ca);
}

/* ibv_modify_qp: max_dest_rd_atomic may be raised while the send queue is drained */
static void
test_max_dest_rd_atomic_may_grow_in_sqd(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.rd_atomic = 1,
	});
	struct qp_attr attr;
	struct node *n;
	unsigned int i;

	*state = p;
	post(&p->a, WR_RDMA_READ, 1, 100); /* one Read is saved already */
	exchange(p);
	expect_wc(&p->a, 1, WC_SUCCESS);
	for (n = &p->a; n <= &p->b; n++) {
		must_modify(n, QPS_SQD, QP_ATTR_STATE);
		attr = qp_attr_of(n);
		attr.max_rd_atomic = attr.max_dest_rd_atomic = 8;
		attr.qp_state = QPS_SQD;
		assert_int_equal(modify_attr(n, &attr,
					 QP_ATTR_STATE | QP_ATTR_MAX_QP_RD_ATOMIC |
						 QP_ATTR_MAX_DEST_RD_ATOMIC,
					 NULL),
			0);
		must_modify(n, QPS_RTS, QP_ATTR_STATE);
	}
	for (i = 2; i <= 9; i++)
		post(&p->a, WR_RDMA_READ, i, 100);
	transmit(&p->a); /* eight at once */
	exchange(p);
	for (i = 2; i <= 9; i++)
		expect_wc(&p->a, i, WC_SUCCESS);
	assert_int_equal(counters_of(&p->b).rx_read_requests, 9);
	assert_int_equal(counters_of(&p->b).resp_invalid_requests, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_allocation_may_fail),
		cmocka_unit_test(test_numbers_that_cannot_be),
		cmocka_unit_test(test_many_queue_pairs_take_few_allocations),
		cmocka_unit_test_teardown(test_max_dest_rd_atomic_may_grow_in_sqd, pair_teardown),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
