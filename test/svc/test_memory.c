/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The service kind "memory" (docs/services.md). */

#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define LENGTH 65536

static const struct svc_config shared = { .kind = "memory", .length = LENGTH };

static uint32_t
granted_key(const struct life *l)
{
	return get_be32(l->private_data + 4);
}

static uint64_t
granted_va(const struct life *l)
{
	return get_be64(l->private_data + 8);
}

/* @return the only region of b with this length */
static struct mem_mr_info
region_of(const struct bench *b, uint64_t length)
{
	struct mem_mr_info info;
	uint64_t cursor = 0;

	while (mem_mr_next(b->w->b.mem, &cursor, &info)) {
		if (info.length == length)
			return info;
	}
	fail_msg("no region");
	abort();
}

static void
test_private_data_is_the_documented_grant(void **state)
{
	struct bench *b = *state;
	uint8_t want[24] = {
		1, 0x07, 0, 0, /* version; read, write, Atomics */
		0, 0, 0, 0, /* R_Key */
		0, 0, 0, 1, 0, 0, 0, 0, /* address */
		0, 0, 0, 0, 0, 1, 0, 0, /* length */
	};
	struct life *l;

	serve(b, &b->w->b, &shared);
	l = call(b);
	put_be32(want + 4, region_of(b, LENGTH).key);
	assert_int_equal(l->private_len, CM_REP_PRIVATE);
	assert_memory_equal(l->private_data, want, sizeof(want));
}

static void
test_write_read_and_atomics_reach_the_region(void **state)
{
	struct bench *b = *state;
	struct node *a = &b->w->a;
	struct life *l;
	const uint8_t *bytes;
	uint64_t va;
	unsigned int i;

	serve(b, &b->w->b, &shared);
	l = call(b);
	va = granted_va(l);
	bytes = region_of(b, LENGTH).base;
	for (i = 0; i < WORLD_MEM; i++)
		a->bytes[i] = (uint8_t)(i * 7 + 3);

	/* the last bytes of the region */
	assert_int_equal(rdma(b, l, WR_RDMA_WRITE, 0, 2000, va + LENGTH - 2000, granted_key(l)),
		WC_SUCCESS);
	assert_memory_equal(bytes + LENGTH - 2000, a->bytes, 2000);
	assert_int_equal(bytes[LENGTH - 2001], 0);
	assert_int_equal(rdma(b, l, WR_RDMA_READ, 2048, 2000, va + LENGTH - 2000, granted_key(l)),
		WC_SUCCESS);
	assert_memory_equal(a->bytes + 2048, a->bytes, 2000);
	assert_int_equal(rdma(b, l, WR_ATOMIC_FETCH_AND_ADD, 0, 8, va + 8, granted_key(l)),
		WC_SUCCESS);
	assert_int_equal(*(const uint64_t *)(bytes + 8), 1);
}

static void
test_rdma_outside_ends_only_its_own_connection(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &shared);
	struct life *good = call(b), *bad = call(b);

	assert_int_equal(figures(s).connections, 2);
	assert_int_equal(rdma(b, bad, WR_RDMA_WRITE, 0, 8, granted_va(bad) + LENGTH - 7,
				 granted_key(bad)),
		WC_REM_ACCESS_ERR);
	exchange(b->w);
	assert_int_equal(figures(s).connections, 1);
	assert_int_equal(rdma(b, good, WR_RDMA_WRITE, 0, 8, granted_va(good), granted_key(good)),
		WC_SUCCESS);
	pass(b->w, 10 * SECOND);
	assert_int_equal(svc_worker_connections(s->w), 1);
	expect_log(bad, "prepare established disconnected released");
}

static void
test_read_only_grant_is_not_written(void **state)
{
	struct bench *b = *state;
	struct life *l;

	serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "memory",
			.length = LENGTH,
			.access = MEM_ACCESS_REMOTE_READ,
		});
	l = call(b);
	assert_int_equal(l->private_data[1], 0x01);
	assert_int_equal(rdma(b, l, WR_RDMA_READ, 0, 8, granted_va(l), granted_key(l)), WC_SUCCESS);
	/* the QP does not allow remote writes */
	assert_int_equal(rdma(b, l, WR_RDMA_WRITE, 0, 8, granted_va(l), granted_key(l)),
		WC_REM_INV_REQ_ERR);
}

static void
test_existing_region_is_granted(void **state)
{
	struct bench *b = *state;
	struct node *n = &b->w->b;
	struct life *l;

	serve(b, n, &(struct svc_config){ .kind = "memory", .mr_key = n->key });
	l = call(b);
	assert_int_equal(granted_key(l), n->key);
	assert_true(granted_va(l) == n->va);
	assert_int_equal(get_be64(l->private_data + 16), WORLD_MEM);
	memcpy(b->w->a.bytes, "polca", 5);
	assert_int_equal(rdma(b, l, WR_RDMA_WRITE, 0, 5, n->va + 100, n->key), WC_SUCCESS);
	assert_memory_equal(n->bytes + 100, "polca", 5);
}

/* --- per_connection --- */

static const struct svc_config own = {
	.kind = "memory",
	.length = 1000,
	.per_connection = true,
	.max_connections = 2,
};

static void
test_each_connection_has_memory_of_its_own(void **state)
{
	struct bench *b = *state;
	struct life *one, *two;

	serve(b, &b->w->b, &own);
	one = call(b);
	two = call(b);
	assert_int_equal(one->private_data[1], 0x0F);
	assert_int_equal(get_be64(one->private_data + 16), 1000);
	assert_true(granted_key(one) != granted_key(two));
	assert_true(granted_va(one) != granted_va(two));
	memcpy(b->w->a.bytes, "one", 4);
	assert_int_equal(rdma(b, one, WR_RDMA_WRITE, 0, 4, granted_va(one), granted_key(one)),
		WC_SUCCESS);
	assert_int_equal(rdma(b, two, WR_RDMA_READ, 64, 4, granted_va(two), granted_key(two)),
		WC_SUCCESS);
	assert_memory_equal(b->w->a.bytes + 64, "\0\0\0", 4);
	/* the key of the other connection works on its QP only */
	assert_int_equal(rdma(b, two, WR_RDMA_READ, 64, 4, granted_va(one), granted_key(one)),
		WC_REM_ACCESS_ERR);
}

static void
test_neighbouring_memory_is_out_of_bounds(void **state)
{
	struct bench *b = *state;
	struct life *l;

	serve(b, &b->w->b, &own);
	l = call(b);
	assert_int_equal(rdma(b, l, WR_RDMA_READ, 0, 8, granted_va(l) + 993, granted_key(l)),
		WC_REM_ACCESS_ERR);
}

static void
test_next_connection_gets_zeros_and_another_key(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &own);
	struct life *l = call(b), *next;
	uint32_t key = granted_key(l);
	uint64_t va = granted_va(l);
	unsigned int i, same = 0;

	memset(b->w->a.bytes, 0xAA, 1000);
	assert_int_equal(rdma(b, l, WR_RDMA_WRITE, 0, 1000, va, key), WC_SUCCESS);
	disconnect(l);
	exchange(b->w);
	pass(b->w, 10 * SECOND);
	assert_int_equal(svc_worker_connections(s->w), 0);
	for (i = 0; i < 2; i++) { /* one of the two places is the former one */
		next = call(b);
		assert_true(granted_key(next) != key);
		same += granted_va(next) == va;
		assert_int_equal(rdma(b, next, WR_RDMA_READ, 0, 1000, granted_va(next),
					 granted_key(next)),
			WC_SUCCESS);
		assert_int_equal(b->w->a.bytes[0], 0);
		assert_memory_equal(b->w->a.bytes, b->w->a.bytes + 1, 999);
	}
	assert_int_equal(same, 1);
	assert_int_equal(rdma(b, next, WR_RDMA_READ, 0, 1, va, key), WC_REM_ACCESS_ERR);
}

/* Memory is zeroed in slices; the place is not free before all are done. */
static void
test_place_is_not_given_before_it_is_zeroed(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "memory",
			.length = 1 << 20,
			.per_connection = true,
			.max_connections = 1,
		});
	struct life *l = call(b);
	unsigned int turns = 0;

	disconnect(l);
	exchange(b->w);
	b->w->b.work = NULL; /* the test itself calls the service's turns */
	pass(b->w, 10 * SECOND);
	while (svc_worker_connections(s->w) != 0) {
		l = call(b);
		assert_int_equal(l->info.end, CM_END_REJECTED);
		assert_int_equal(l->info.reason, CM_REJ_NO_RESOURCES);
		svc_worker_run(s->w, b->w->now, 64);
		turns++;
	}
	assert_int_equal(turns, 4); /* 16 slices of 64 KiB, 4 per turn */
	expect_log(call(b), "prepare established");
}

static void
test_parameters_are_checked(void **state)
{
	struct bench *b = *state;
	struct svc_env env = bench_env(&b->w->b);
	struct error err = { "" };

	expect_refusal(b,
		&(struct svc_config){
			.kind = "memory",
			.per_connection = true,
			.mr_key = b->w->b.key,
		},
		"per_connection: not with mr_key");
	expect_refusal(b, &(struct svc_config){ .kind = "memory", .mr_key = 0x12345678 },
		"mr_key: there is no memory region 0x12345678");
	expect_refusal(b, &(struct svc_config){ .kind = "memory", .access = 0x10 },
		"access: got 0x10, allowed: bits of 0xe");
	expect_refusal(b, &(struct svc_config){ .kind = "memory", .max_connections = 1u << 21 },
		"max_connections: got 2097152, allowed: 1 to 1048576");
	assert_null(svc_create(&env, &(struct svc_config){ .kind = "storage" }, &err));
	assert_non_null(
		strstr(err.text, "kind: got \"storage\", allowed: memory, echo, sink, rping"));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_private_data_is_the_documented_grant),
		T(test_write_read_and_atomics_reach_the_region),
		T(test_rdma_outside_ends_only_its_own_connection),
		T(test_read_only_grant_is_not_written),
		T(test_existing_region_is_granted),
		T(test_each_connection_has_memory_of_its_own),
		T(test_neighbouring_memory_is_out_of_bounds),
		T(test_next_connection_gets_zeros_and_another_key),
		T(test_place_is_not_given_before_it_is_zeroed),
		T(test_parameters_are_checked),
	};

	return cmocka_run_group_tests_name("svc: memory", tests, NULL, NULL);
}
