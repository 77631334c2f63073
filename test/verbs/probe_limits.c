/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * As many objects as ibv_query_device() says can be made, and not one more: the error is the one
 * that a kernel driver gives. When one has gone, there is room again.
 */

#include <sys/mman.h>

#include "probe.h"

#define PAGE ((size_t)4096)
#define MOST 4096

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint8_t *memory;

static void *
make_pd(void)
{
	return ibv_alloc_pd(context);
}

static int
free_pd(void *object)
{
	return ibv_dealloc_pd(object);
}

static void *
make_cq(void)
{
	return ibv_create_cq(context, 1, NULL, NULL, 0);
}

static int
free_cq(void *object)
{
	return ibv_destroy_cq(object);
}

static void *
limit_make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &init);
}

static int
free_qp(void *object)
{
	return ibv_destroy_qp(object);
}

static void *
make_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(pd, &init);
}

static int
free_srq(void *object)
{
	return ibv_destroy_srq(object);
}

static void *
make_mr(void)
{
	return ibv_reg_mr(pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
}

static int
free_mr(void *object)
{
	return ibv_dereg_mr(object);
}

static void *
limit_make_mw(void)
{
	return ibv_alloc_mw(pd, IBV_MW_TYPE_1);
}

static int
free_mw(void *object)
{
	return ibv_dealloc_mw(object);
}

static void *
make_channel(void)
{
	return ibv_create_comp_channel(context);
}

static int
free_channel(void *object)
{
	return ibv_destroy_comp_channel(object);
}

static void *
make_context(void)
{
	return ibv_open_device(find_device("polca0"));
}

static int
free_context(void *object)
{
	return ibv_close_device(object);
}

/* @param most  there are already @p there of so many; -1: told by the test */
static void
expect_most(const char *what, void *(*make)(void), int (*destroy)(void *), int most, int there,
	int error)
{
	static void *object[MOST];
	int n = 0;

	while ((object[n] = make()) != NULL) {
		n++;
		expect(n < MOST);
	}
	expect(errno == error);
	printf("%s: %d\n", what, there + n);
	fflush(stdout);
	expect(most < 0 || there + n == most);
	expect(n > 0);
	expect(destroy(object[n - 1]) == 0);
	do {
		object[n - 1] = make(); /* a channel, or a client, that polca has not yet seen go */
	} while (object[n - 1] == NULL && most < 0);
	expect(object[n - 1] != NULL);
	while (n > 0)
		expect(destroy(object[--n]) == 0);
}

static void
expect_most_bytes(uint64_t most)
{
	size_t length = (size_t)most;
	uint8_t *p = mmap(NULL, length + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	struct ibv_mr *mr;

	expect(p != MAP_FAILED);
	expect(ibv_reg_mr(pd, p, length + PAGE, 0) == NULL && errno == ENOMEM);
	mr = ibv_reg_mr(pd, p, length, 0);
	expect(mr != NULL);
	expect(ibv_reg_mr(pd, p, PAGE, 0) == NULL && errno == ENOMEM);
	expect(ibv_dereg_mr(mr) == 0);
	expect(munmap(p, length + PAGE) == 0);
}

/* One value beyond what a single object may have. */
static void
expect_most_in_one(const struct ibv_device_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { (uint32_t)attr->max_qp_wr + 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = (uint32_t)attr->max_srq_wr + 1, .max_sge = 1 },
	};

	expect(ibv_create_qp(pd, &init) == NULL && errno == EINVAL);
	init.cap.max_send_wr = 1;
	init.cap.max_recv_sge = (uint32_t)attr->max_sge + 1;
	expect(ibv_create_qp(pd, &init) == NULL && errno == EINVAL);
	expect(ibv_create_srq(pd, &srq) == NULL && errno == EINVAL);
	expect(ibv_create_cq(context, attr->max_cqe + 1, NULL, NULL, 0) == NULL && errno == EINVAL);
}

int
probe_limits(int argc, char **argv)
{
	struct ibv_device_attr attr;

	(void)argc;
	(void)argv;
	context = make_context();
	expect(context != NULL && ibv_query_device(context, &attr) == 0);
	memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(memory != MAP_FAILED);
	pd = make_pd();
	cq = make_cq();
	expect(pd != NULL && cq != NULL);
	expect_most("contexts", make_context, free_context, -1, 1, ENOMEM);
	expect_most("pds", make_pd, free_pd, attr.max_pd, 1, ENOMEM);
	expect_most("cqs", make_cq, free_cq, attr.max_cq, 1, ENOMEM);
	expect_most("qps", limit_make_qp, free_qp, attr.max_qp, 0, ENOMEM);
	expect(ibv_create_cq(context, 1, NULL, NULL, context->num_comp_vectors) == NULL);
	expect(errno == EINVAL);
	expect_most("srqs", make_srq, free_srq, attr.max_srq, 0, ENOMEM);
	expect_most("regions", make_mr, free_mr, attr.max_mr, 0, ENOMEM);
	expect_most("windows", limit_make_mw, free_mw, attr.max_mw, 0, ENOMEM);
	expect_most("channels", make_channel, free_channel, -1, 0, EMFILE);
	expect_most_bytes(attr.max_mr_size);
	expect_most_in_one(&attr);
	expect(free_cq(cq) == 0 && free_pd(pd) == 0 && free_context(context) == 0);
	return 0;
}
