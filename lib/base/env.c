/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/env.h"

static void *
malloc_alloc(void *arg, size_t size, size_t align)
{
	void *mem;

	(void)arg;
	if (align < sizeof(void *))
		align = sizeof(void *);
	if (posix_memalign(&mem, align, size > 0 ? size : 1) != 0)
		return NULL;
	return memset(mem, 0, size);
}

static void
malloc_free(void *arg, void *mem)
{
	(void)arg;
	free(mem);
}

const struct allocator allocator_malloc = { malloc_alloc, malloc_free, NULL };

/* getrandom(2) never returns short or interrupted for up to 256 bytes once the pool is up. */
static void
kernel_read(void *buf, size_t len)
{
	uint8_t *p = buf;
	ssize_t n;

	while (len > 0) {
		n = getrandom(p, len < 256 ? len : 256, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			abort(); /* without randomness keys would be predictable */
		p += n;
		len -= (size_t)n;
	}
}

static void
kernel_fill(void *arg, void *buf, size_t len)
{
	static __thread uint8_t pool[256];
	static __thread size_t left;
	uint8_t *from;

	(void)arg;
	if (len > sizeof(pool)) {
		kernel_read(buf, len);
		return;
	}
	if (len > left) {
		kernel_read(pool, sizeof(pool));
		left = sizeof(pool);
	}
	left -= len;
	from = pool + left;
	memcpy(buf, from, len);
	memset(from, 0, len); /* do not keep random bytes that a caller uses as a secret */
}

const struct rng rng_kernel = { kernel_fill, NULL };
