/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Create and destroy the tables. All memory is allocated at creation, sized by the configuration.
 */

#include "mem/table.h"

/* The tables, and the number of entries of each */
#define TABLES(X)                                                                                  \
	X(records.record, records.num)                                                             \
	X(pd_refs, max_pd)                                                                         \
	X(mrs, max_mr)                                                                             \
	X(mws, max_mw) X(mw_states, max_mw) X(free_mr.ring, max_mr) X(free_mw.ring, max_mw)

static void
fifo_fill(struct index_fifo *f, uint32_t size)
{
	f->size = size;
	for (; f->count < size; f->count++)
		f->ring[f->count] = f->count;
}

struct mem *
mem_create(const struct mem_config *config)
{
	const uint32_t most = UINT32_C(1) << KEY_INDEX_BITS_MAX;
	bool complete = true;
	struct mem *mem;
	uint32_t i;

	RTE_ASSERT(config->alloc != NULL && config->rng != NULL);
	RTE_ASSERT((config->grace.start == NULL) == (config->grace.done == NULL));
	if (config->max_pd == 0 || config->max_pd >= COUNT_CLOSED || config->max_mr == 0 ||
		config->max_mr > most || config->max_mw > most - config->max_mr)
		return NULL;
	mem = mem_zalloc(config->alloc, sizeof(*mem), 64);
	if (mem == NULL)
		return NULL;
	mem->alloc = config->alloc;
	mem->grace = config->grace;
	mem->max_pd = config->max_pd;
	mem->max_mr = config->max_mr;
	mem->max_mw = config->max_mw;
	mem->records.num = config->max_mr + config->max_mw;
	key_space_init(&mem->keys, config->rng, mem->records.num);

#define ALLOCATE(table, entries)                                                                   \
	mem->table = mem_zalloc(mem->alloc, RTE_MAX(mem->entries, 1u) * sizeof(*mem->table), 64);  \
	complete = complete && mem->table != NULL;
	TABLES(ALLOCATE)
#undef ALLOCATE
	if (!complete) {
		mem_destroy(mem);
		return NULL;
	}
	fifo_fill(&mem->free_mr, mem->max_mr);
	fifo_fill(&mem->free_mw, mem->max_mw);
	for (i = 0; i < mem->max_pd; i++)
		mem->pd_refs[i] = COUNT_CLOSED;
	for (i = 0; i < mem->max_mr; i++)
		mem->mrs[i].windows = COUNT_CLOSED;
	return mem;
}

void
mem_destroy(struct mem *mem)
{
	uint32_t i;

	if (mem == NULL)
		return;
	for (i = 0; mem->mrs != NULL && i < mem->max_mr; i++)
		backing_close(&mem->mrs[i].backing);
#define FREE(table, entries) mem_free(mem->alloc, mem->table);
	TABLES(FREE)
#undef FREE
	mem_free(mem->alloc, mem);
}

bool
mem_grace_done(const struct mem *mem, uint64_t token)
{
	return token == 0 || mem->grace.done == NULL || mem->grace.done(mem->grace.arg, token);
}
