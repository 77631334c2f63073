/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Create and destroy the tables. All memory is allocated at creation, sized by the configuration.
 */

#include "mem/table.h"

static void *
mem_table_alloc(const struct mem *mem, uint32_t entries, size_t size)
{
	return mem_zalloc(mem->alloc, RTE_MAX(entries, 1u) * size, 64);
}

static bool
fifo_create(const struct mem *mem, struct index_fifo *f, uint32_t size)
{
	uint32_t i;

	f->ring = mem_table_alloc(mem, size, sizeof(*f->ring));
	if (f->ring == NULL)
		return false;
	f->size = size;
	f->count = size;
	for (i = 0; i < size; i++)
		f->ring[i] = i;
	return true;
}

struct mem *
mem_create(const struct mem_config *config)
{
	const uint32_t most = UINT32_C(1) << KEY_INDEX_BITS_MAX;
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

	mem->records.record = mem_table_alloc(mem, mem->records.num, sizeof(*mem->records.record));
	mem->pd_refs = mem_table_alloc(mem, mem->max_pd, sizeof(*mem->pd_refs));
	mem->mrs = mem_table_alloc(mem, mem->max_mr, sizeof(*mem->mrs));
	mem->mws = mem_table_alloc(mem, mem->max_mw, sizeof(*mem->mws));
	mem->mw_states = mem_table_alloc(mem, mem->max_mw, sizeof(*mem->mw_states));
	if (mem->records.record == NULL || mem->pd_refs == NULL || mem->mrs == NULL ||
		mem->mws == NULL || mem->mw_states == NULL ||
		!fifo_create(mem, &mem->free_mr, mem->max_mr) ||
		!fifo_create(mem, &mem->free_mw, mem->max_mw)) {
		mem_destroy(mem);
		return NULL;
	}
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
	mem_free(mem->alloc, mem->free_mw.ring);
	mem_free(mem->alloc, mem->free_mr.ring);
	mem_free(mem->alloc, mem->mw_states);
	mem_free(mem->alloc, mem->mws);
	mem_free(mem->alloc, mem->mrs);
	mem_free(mem->alloc, mem->pd_refs);
	mem_free(mem->alloc, mem->records.record);
	mem_free(mem->alloc, mem);
}

bool
mem_grace_done(const struct mem *mem, uint64_t token)
{
	return token == 0 || mem->grace.done == NULL || mem->grace.done(mem->grace.arg, token);
}
