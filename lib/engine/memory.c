/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Memory for objects and rings. With hugepages it comes from EAL: on the caller's NUMA node (the
 * owning worker creates its objects), for a thread that is bound to no node on memory_home_node(),
 * and if that node is full, on any other. Without hugepages it comes from the C library: pages that
 * are not touched cost nothing, and EAL's small arena stays free for mbufs.
 */

#include <stdlib.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "engine/placement.h"
#include "engine/worker.h"

static int home = SOCKET_ID_ANY;

void
memory_home(int numa_node)
{
	home = numa_node;
}

int
memory_home_node(void)
{
	return home;
}

static void *
alloc_on(size_t size, size_t align, int numa_node)
{
	void *mem = rte_zmalloc_socket(NULL, size, align, numa_node);

	if (mem == NULL && numa_node != SOCKET_ID_ANY)
		mem = rte_zmalloc(NULL, size, align);
	return mem;
}

static void *
huge_alloc(void *arg, size_t size, size_t align)
{
	int here = (int)rte_socket_id();

	RTE_SET_USED(arg);
	return alloc_on(size, align, here == SOCKET_ID_ANY ? home : here);
}

static void
huge_free(void *arg, void *mem)
{
	RTE_SET_USED(arg);
	rte_free(mem);
}

/*
 * calloc() leaves large blocks untouched but does not align them: a pointer to the start of the
 * block is stored in front of the object.
 */
static void *
plain_alloc(void *arg, size_t size, size_t align)
{
	uintptr_t block, mem;

	RTE_SET_USED(arg);
	if (align < sizeof(void *))
		align = sizeof(void *);
	if (size > SIZE_MAX - align - sizeof(void *))
		return NULL;
	block = (uintptr_t)calloc(1, size + align + sizeof(void *));
	if (block == 0)
		return NULL;
	mem = RTE_ALIGN_CEIL(block + sizeof(void *), align);
	((void **)mem)[-1] = (void *)block;
	return (void *)mem;
}

static void
plain_free(void *arg, void *mem)
{
	RTE_SET_USED(arg);
	free(((void **)mem)[-1]);
}

static const struct allocator huge_allocator = { huge_alloc, huge_free, NULL };
static const struct allocator plain_allocator = { plain_alloc, plain_free, NULL };

const struct allocator *
engine_allocator(void)
{
	return rte_eal_has_hugepages() ? &huge_allocator : &plain_allocator;
}

struct rte_ring *
engine_ring(const char *name, unsigned int esize, unsigned int count, int socket,
	unsigned int flags)
{
	ssize_t size = rte_ring_get_memsize_elem(esize, count);
	struct rte_ring *r;

	if (size < 0)
		return NULL;
	r = alloc_on((size_t)size, RTE_CACHE_LINE_SIZE, socket);
	if (r != NULL && rte_ring_init(r, name, count, flags) != 0) {
		rte_free(r);
		return NULL;
	}
	return r;
}

void
engine_ring_free(struct rte_ring *r)
{
	rte_free(r);
}
