/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_RESULT_PRIVATE_H
#define SA_RESULT_PRIVATE_H

/**
 * @file
 * Private to result.c and result_list.c: what a list consists of.
 */

#include "sa/result.h"

/*
 * A list is a tree of chunks, so that reading at any offset, as a Resend needs, costs the same.
 * Leaves hold entries, other chunks hold the chunks below. All chunks of a list are also linked by
 * .next, so that they can be freed together.
 */
struct chunk {
	struct chunk *next;
	union {
		struct chunk *child[(CHUNK_BYTES - sizeof(void *)) / sizeof(void *)];
		uint8_t data[CHUNK_BYTES - sizeof(void *)];
	};
};
#define FANOUT            (sizeof(((struct chunk *)0)->child) / sizeof(struct chunk *))
#define RECORDS_PER_CHUNK (sizeof(((struct chunk *)0)->data) / sizeof(struct store_record *))
#define PATHS_PER_CHUNK   (sizeof(((struct chunk *)0)->data) / sizeof(struct path_entry))

struct result_pool {
	const struct allocator *alloc;
	struct result *results;
	struct result *free_results;
	struct chunk *chunks;
	struct chunk *free_chunks;
};

#endif
