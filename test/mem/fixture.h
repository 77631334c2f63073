/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_MEM_FIXTURE_H
#define TEST_MEM_FIXTURE_H

/*
 * The memory of a small device, with a grace period that ends when the test calls grace_passes(),
 * and helpers with default arguments.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "mem/access.h"
#include "mem/mem.h"

#define LW   MEM_ACCESS_LOCAL_WRITE
#define RW   MEM_ACCESS_REMOTE_WRITE
#define RR   MEM_ACCESS_REMOTE_READ
#define RA   MEM_ACCESS_REMOTE_ATOMIC
#define BIND MEM_ACCESS_MW_BIND
#define ZERO MEM_ACCESS_ZERO_BASED
#define ALL  (LW | RW | RR | RA | BIND)

#define QPN 0x11

struct fake_grace {
	uint64_t started; /* the last token */
	uint64_t passed; /* the grace periods of tokens up to this one are over */
};

struct fixture {
	struct mem *mem;
	struct fake_grace grace;
	uint32_t pd;
	uint32_t hint; /* where the last key was found, of whichever access */
	struct error err;
	_Alignas(4096) uint8_t bytes[8192];
};

static inline uint64_t
fake_start(void *arg)
{
	struct fake_grace *g = arg;

	return ++g->started;
}

static inline bool
fake_done(void *arg, uint64_t token)
{
	const struct fake_grace *g = arg;

	return token <= g->passed;
}

static inline void
grace_passes(struct fixture *f)
{
	f->grace.passed = f->grace.started;
}

static inline int
fixture_setup(void **state)
{
	struct fixture *f = aligned_alloc(4096, sizeof(*f));
	struct mem_config config = {
		.max_pd = 4,
		.max_mr = 8,
		.max_mw = 8,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.grace = { fake_start, fake_done, NULL },
	};

	if (f == NULL)
		return -1;
	memset(f, 0, sizeof(*f));
	config.grace.arg = &f->grace;
	f->mem = mem_create(&config);
	*state = f;
	return f->mem != NULL ? mem_pd_alloc(f->mem, &f->pd, NULL) : -1;
}

static inline int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	mem_destroy(f->mem);
	free(f);
	return 0;
}

/* A region over f->bytes; the peer's address of byte 0 is va. */
static inline uint32_t
region(struct fixture *f, uint32_t access, uint64_t va, uint64_t length)
{
	struct mem_mr_attr attr = {
		.pd = f->pd,
		.access = access,
		.length = length,
		.va = va,
		.backing = MEM_EXTERNAL,
		.base = f->bytes,
		.numa_node = -1,
	};
	struct mem_mr_info info;

	assert_int_equal(mem_mr_register(f->mem, &attr, &info, &f->err), 0);
	return info.key;
}

static inline void
deregister(struct fixture *f, uint32_t key)
{
	int rc = mem_mr_deregister(f->mem, key, &f->err);

	if (rc == -EAGAIN) {
		grace_passes(f);
		rc = mem_mr_deregister(f->mem, key, &f->err);
	}
	assert_int_equal(rc, 0);
}

static inline uint32_t
window(struct fixture *f, enum mem_mw_type type)
{
	uint32_t key;

	assert_int_equal(mem_mw_alloc(f->mem, f->pd, type, &key, &f->err), 0);
	return key;
}

static inline enum mem_verdict
mem_access(const struct mem *mem, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t va,
	uint64_t len, uint32_t access, uint8_t **host)
{
	uint32_t hint = 0;

	return mem_access_hint(mem, &hint, key, pd, qpn, va, len, access, host);
}

static inline enum mem_verdict
access_by(struct fixture *f, uint32_t qpn, uint32_t key, uint64_t va, uint64_t len, uint32_t access)
{
	uint8_t *host = NULL, *same = NULL;
	enum mem_verdict v = mem_access(f->mem, key, f->pd, qpn, va, len, access, &host);

	assert_int_equal(mem_access_hint(f->mem, &f->hint, key, f->pd, qpn, va, len, access, &same),
		v);
	assert_ptr_equal(same, host);
	return v;
}

static inline enum mem_verdict
access_at(struct fixture *f, uint32_t key, uint64_t va, uint64_t len, uint32_t access)
{
	return access_by(f, QPN, key, va, len, access);
}

/* @return the offset into f->bytes that an access reaches; the access must be allowed */
static inline ptrdiff_t
lands(struct fixture *f, uint32_t qpn, uint32_t key, uint64_t va, uint64_t len, uint32_t access)
{
	uint8_t *host = NULL;

	assert_int_equal(mem_access(f->mem, key, f->pd, qpn, va, len, access, &host), MEM_OK);
	return host - f->bytes;
}

static inline bool
is_mapped(void *page)
{
	unsigned char vec;

	return mincore(page, 4096, &vec) == 0;
}

#endif
