/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Limits of a user's programs together: two programs of one user share them, and another user has
 * its own.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client_node.h"
#include "engine/clients_info.h"

#define USER    1000u
#define ANOTHER 1001u

#define REGION       (1 << 20)
#define REGION_BYTES (4 * 4096)

static struct engine *e;
static struct verbs_client *first, *second, *other; /* two of USER, one of ANOTHER */
static uint32_t pd[3];

static struct verbs_client *
limits_open(const struct verbs_client_limits *limits, uint32_t pid, uint32_t uid, uint32_t *domain)
{
	static const char pages[REGION_BYTES];
	struct ring_hello_reply hello;
	int fds[RING_HELLO_FDS];
	struct verbs_client *c;
	struct error err;

	assert_ok(engine_client_create(e, 0, limits, -1, &c, &err));
	engine_client_hello(c, &hello, fds);
	/* the program's pages, in its mirror */
	assert_int_equal(pwrite(fds[1], pages, REGION_BYTES, REGION), REGION_BYTES);
	engine_client_set_owner(c, pid, uid);
	assert_ok(engine_client_pd_alloc(c, domain, &err));
	return c;
}

static void
limits_open_all(const struct verbs_user_limits *user)
{
	struct verbs_client_limits limits = program_limits;

	limits.max_wr = 4096;
	limits.user = *user;
	first = limits_open(&limits, 1, USER, &pd[0]);
	second = limits_open(&limits, 2, USER, &pd[1]);
	other = limits_open(&limits, 3, ANOTHER, &pd[2]);
}

static int
limits_setup(void **state)
{
	(void)state;
	node_config();
	e = node_create();
	return 0;
}

static int
limits_teardown(void **state)
{
	(void)state;
	engine_client_destroy(first);
	engine_client_destroy(second);
	engine_client_destroy(other);
	node_stop(e, 0);
	return 0;
}

static void
assert_limit(int rc, const struct error *err, const char *text)
{
	assert_int_equal(rc, -ENOMEM);
	assert_string_equal(err->text, text);
}

static int
limits_make_cq(struct verbs_client *c, uint32_t *slot, struct error *err)
{
	struct ring_cq_create create = { .cqe = 4, .channel = RING_NONE };
	struct ring_cq_reply made;
	int rc = engine_client_cq_create(c, &create, &made, err);

	*slot = made.slot;
	return rc;
}

static int
limits_make_qp(struct verbs_client *c, uint32_t domain, uint32_t cq, uint32_t max_wr,
	uint32_t *slot, struct error *err)
{
	struct ring_qp_create create = {
		.caps = { max_wr, max_wr, 1, 1, 0 },
		.pd = domain,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = RING_NONE,
	};
	struct ring_queue_reply made;
	int rc = engine_client_qp_create(c, &create, &made, err);

	*slot = made.slot;
	return rc;
}

static int
limits_make_mr(struct verbs_client *c, uint32_t domain, uint64_t length, uint32_t *slot,
	struct error *err)
{
	struct ring_mr create = { .addr = REGION, .length = length, .pd = domain };
	struct ring_mr_reply made;
	int rc = engine_client_mr_register(c, &create, &made, err);

	*slot = made.slot;
	return rc;
}

static int
limits_make_srq(struct verbs_client *c, uint32_t domain, uint32_t *slot, struct error *err)
{
	struct ring_srq_create create = { .pd = domain, .max_wr = 4, .max_sge = 1 };
	struct ring_queue_reply made;
	int rc = engine_client_srq_create(c, &create, &made, err);

	*slot = made.slot;
	return rc;
}

static int
limits_make_mw(struct verbs_client *c, uint32_t domain, uint32_t *slot, struct error *err)
{
	struct ring_mw create = { .pd = domain, .type = MEM_MW_TYPE_2 };
	struct ring_mr_reply made;
	int rc = engine_client_mw_alloc(c, &create, &made, err);

	*slot = made.slot;
	return rc;
}

static const struct verbs_user_limits plenty = {
	.max_qp = 100,
	.max_cq = 100,
	.max_srq = 100,
	.max_pd = 100,
	.max_mr = 100,
	.max_mw = 100,
	.max_wr = 1000,
	.max_mr_bytes = 1 << 20,
};

static void
test_completion_queues_of_a_user(void **state)
{
	struct verbs_user_limits user = plenty;
	struct error err;
	uint32_t slot, mine;

	(void)state;
	user.max_cq = 2;
	limits_open_all(&user);
	assert_ok(limits_make_cq(first, &mine, &err));
	assert_ok(limits_make_cq(second, &slot, &err));
	assert_limit(limits_make_cq(second, &slot, &err), &err,
		"cq: all 2 of the user are in use (verbs.max_user_cq)");
	assert_ok(limits_make_cq(other, &slot, &err));
	assert_ok(engine_client_cq_destroy(first, mine, &err));
	assert_ok(limits_make_cq(second, &slot, &err));
}

static void
test_queue_pairs_of_a_user(void **state)
{
	struct verbs_user_limits user = plenty;
	uint32_t cq[3], slot, mine;
	struct error err;

	(void)state;
	user.max_qp = 2;
	limits_open_all(&user);
	assert_ok(limits_make_cq(first, &cq[0], &err));
	assert_ok(limits_make_cq(second, &cq[1], &err));
	assert_ok(limits_make_cq(other, &cq[2], &err));
	assert_ok(limits_make_qp(first, pd[0], cq[0], 1, &mine, &err));
	assert_ok(limits_make_qp(first, pd[0], cq[0], 1, &slot, &err));
	assert_limit(limits_make_qp(second, pd[1], cq[1], 1, &slot, &err), &err,
		"qp: all 2 of the user are in use (verbs.max_user_qp)");
	assert_ok(limits_make_qp(other, pd[2], cq[2], 1, &slot, &err));
	assert_ok(engine_client_qp_destroy(first, mine, &err));
	assert_ok(limits_make_qp(second, pd[1], cq[1], 1, &slot, &err));
}

static void
test_shared_receive_queues_of_a_user(void **state)
{
	struct verbs_user_limits user = plenty;
	uint32_t slot, mine;
	struct error err;

	(void)state;
	user.max_srq = 2;
	limits_open_all(&user);
	assert_ok(limits_make_srq(first, pd[0], &mine, &err));
	assert_ok(limits_make_srq(second, pd[1], &slot, &err));
	assert_limit(limits_make_srq(second, pd[1], &slot, &err), &err,
		"srq: all 2 of the user are in use (verbs.max_user_srq)");
	assert_ok(limits_make_srq(other, pd[2], &slot, &err));
	assert_ok(engine_client_srq_destroy(first, mine, &err));
	assert_ok(limits_make_srq(second, pd[1], &slot, &err));
}

/* Each of the user's two programs has a domain already. */
static void
test_protection_domains_of_a_user(void **state)
{
	struct verbs_user_limits user = plenty;
	uint32_t slot, mine;
	struct error err;

	(void)state;
	user.max_pd = 3;
	limits_open_all(&user);
	assert_ok(engine_client_pd_alloc(first, &mine, &err));
	assert_limit(engine_client_pd_alloc(second, &slot, &err), &err,
		"pd: all 3 of the user are in use (verbs.max_user_pd)");
	assert_ok(engine_client_pd_alloc(other, &slot, &err));
	assert_ok(engine_client_pd_free(first, mine, &err));
	assert_ok(engine_client_pd_alloc(second, &slot, &err));
}

static void
test_memory_windows_of_a_user(void **state)
{
	struct verbs_user_limits user = plenty;
	uint32_t slot, mine;
	struct error err;

	(void)state;
	user.max_mw = 2;
	limits_open_all(&user);
	assert_ok(limits_make_mw(first, pd[0], &mine, &err));
	assert_ok(limits_make_mw(second, pd[1], &slot, &err));
	assert_limit(limits_make_mw(second, pd[1], &slot, &err), &err,
		"mw: all 2 of the user are in use (verbs.max_user_mw)");
	assert_ok(limits_make_mw(other, pd[2], &slot, &err));
	assert_ok(engine_client_mw_free(first, mine, &err));
	assert_ok(limits_make_mw(second, pd[1], &slot, &err));
}

/* Windows have a limit of their own, whatever that of regions. */
static void
test_memory_windows_of_a_client(void **state)
{
	struct error err;
	uint32_t slot;

	(void)state;
	limits_open_all(&plenty);
	assert_true(program_limits.max_mw > program_limits.max_mr);
	while (limits_make_mw(first, pd[0], &slot, &err) == 0)
		assert_true(slot < program_limits.max_mw);
	assert_int_equal(slot, program_limits.max_mw - 1);
	assert_limit(limits_make_mw(first, pd[0], &slot, &err), &err,
		"mw: all 5 are in use (verbs.max_mw)");
	assert_ok(engine_client_mw_free(first, 2, &err));
	assert_ok(limits_make_mw(first, pd[0], &slot, &err));
	assert_int_equal(slot, 2);
}

/* A queue pair counts with the requests that both its queues have room for: powers of two. */
static void
test_requests_of_a_user(void **state)
{
	struct verbs_user_limits user = plenty;
	uint32_t cq[3], slot, mine;
	struct error err;

	(void)state;
	user.max_wr = 100;
	limits_open_all(&user);
	assert_ok(limits_make_cq(first, &cq[0], &err));
	assert_ok(limits_make_cq(second, &cq[1], &err));
	assert_ok(limits_make_cq(other, &cq[2], &err));
	assert_ok(limits_make_qp(first, pd[0], cq[0], 32, &mine, &err));
	assert_limit(limits_make_qp(second, pd[1], cq[1], 17, &slot, &err), &err,
		"max_wr: got 64, allowed: 36 more of the user (verbs.max_user_wr)");
	assert_ok(limits_make_qp(second, pd[1], cq[1], 16, &slot, &err));
	assert_ok(limits_make_qp(other, pd[2], cq[2], 32, &slot, &err));
	assert_ok(engine_client_qp_destroy(first, mine, &err));
	assert_ok(limits_make_qp(second, pd[1], cq[1], 32, &slot, &err));
}

static void
test_requests_of_a_client(void **state)
{
	struct ring_srq_create srq = { .max_wr = 4000, .max_sge = 1 };
	struct ring_queue_reply made;
	uint32_t cq, slot;
	struct error err;

	(void)state;
	limits_open_all(&program_limits.user);
	srq.pd = pd[0];
	assert_ok(limits_make_cq(first, &cq, &err));
	assert_ok(engine_client_srq_create(first, &srq, &made, &err));
	assert_limit(limits_make_qp(first, pd[0], cq, 49, &slot, &err), &err,
		"max_wr: got 128, allowed: 96 more (verbs.max_wr)");
	assert_ok(limits_make_qp(first, pd[0], cq, 32, &slot, &err));
}

static void
test_regions_of_a_user(void **state)
{
	struct verbs_user_limits user = plenty;
	uint32_t slot, mine;
	struct error err;

	(void)state;
	user.max_mr = 3;
	user.max_mr_bytes = 4 * 4096;
	limits_open_all(&user);
	assert_ok(limits_make_mr(first, pd[0], 2 * 4096, &mine, &err));
	assert_limit(limits_make_mr(second, pd[1], 2 * 4096 + 1, &slot, &err), &err,
		"length: got 8193, allowed: 8192 more of the user (verbs.user_mr_mb)");
	/* whole pages count */
	assert_ok(limits_make_mr(second, pd[1], 2048, &slot, &err));
	assert_ok(limits_make_mr(second, pd[1], 2048, &slot, &err));
	assert_limit(limits_make_mr(second, pd[1], 1, &slot, &err), &err,
		"mr: all 3 of the user are in use (verbs.max_user_mr)");
	assert_ok(limits_make_mr(other, pd[2], 4 * 4096, &slot, &err));
}

/* What a program has is its user's again when it ends, however it ends. */
static void
test_a_user_is_listed_with_what_it_has(void **state)
{
	struct engine_client_user user;
	uint64_t cursor = 0;
	uint32_t cq, slot;
	struct error err;

	(void)state;
	limits_open_all(&plenty);
	assert_ok(limits_make_cq(first, &cq, &err));
	assert_ok(limits_make_qp(first, pd[0], cq, 8, &slot, &err));
	assert_ok(limits_make_cq(second, &cq, &err));
	assert_ok(limits_make_mr(second, pd[1], 4096, &slot, &err));
	assert_ok(limits_make_mw(second, pd[1], &slot, &err));
	assert_ok(limits_make_srq(first, pd[0], &slot, &err));
	assert_true(engine_client_user_next(e, &cursor, &user));
	assert_int_equal(user.uid, USER);
	assert_int_equal(user.clients, 2);
	assert_int_equal(user.use.cqs, 2);
	assert_int_equal(user.use.qps, 1);
	assert_int_equal(user.use.srqs, 1);
	assert_int_equal(user.use.pds, 2);
	assert_int_equal(user.use.windows, 1);
	assert_int_equal(user.use.requests, 20);
	assert_int_equal(user.use.regions, 1);
	assert_int_equal(user.use.bytes, 4096);
	assert_int_equal(user.limits.requests, 1000);
	assert_int_equal(user.limits.srqs, 100);
	assert_int_equal(user.limits.pds, 100);
	assert_int_equal(user.limits.windows, 100);
	assert_true(engine_client_user_next(e, &cursor, &user));
	assert_int_equal(user.uid, ANOTHER);
	assert_int_equal(user.use.cqs, 0);
	assert_false(engine_client_user_next(e, &cursor, &user));
	engine_client_destroy(first);
	cursor = 0;
	assert_true(engine_client_user_next(e, &cursor, &user));
	assert_int_equal(user.use.qps, 0);
	assert_int_equal(user.use.srqs, 0);
	assert_int_equal(user.use.pds, 1);
	assert_int_equal(user.use.cqs, 1);
	first = limits_open(&program_limits, 1, USER, &pd[0]);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, limits_setup, limits_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_completion_queues_of_a_user),
		CASE(test_queue_pairs_of_a_user),
		CASE(test_shared_receive_queues_of_a_user),
		CASE(test_protection_domains_of_a_user),
		CASE(test_memory_windows_of_a_user),
		CASE(test_memory_windows_of_a_client),
		CASE(test_requests_of_a_user),
		CASE(test_requests_of_a_client),
		CASE(test_regions_of_a_user),
		CASE(test_a_user_is_listed_with_what_it_has),
	};

	node_workers = 1;
	return cmocka_run_group_tests_name("engine: limits of clients", tests, eal_setup,
		eal_teardown);
}
