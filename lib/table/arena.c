/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>

#include "table/table.h"

struct arena_block {
	struct arena_block *next;
	json_t *json; /* released with the block */
	max_align_t mem[];
};

void *
arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b;

	RTE_ASSERT(a != NULL);
	b = calloc(1, sizeof(*b) + size);
	if (b == NULL)
		return NULL;
	b->next = a->blocks;
	a->blocks = b;
	return b->mem;
}

json_t *
arena_json(struct arena *a, json_t *v)
{
	if (v == NULL || arena_alloc(a, 0) == NULL) {
		json_decref(v);
		return NULL;
	}
	a->blocks->json = v;
	return v;
}

const char *
arena_printf(struct arena *a, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	if (len >= 0)
		text = arena_alloc(a, (size_t)len + 1);
	if (text != NULL)
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return text;
}

void
arena_free(struct arena *a)
{
	struct arena_block *b;

	while ((b = a->blocks) != NULL) {
		a->blocks = b->next;
		json_decref(b->json);
		free(b);
	}
}

/* The list has room for the next power of two of items, and is copied when that is used up. */
void *
list_add(struct arena *a, struct table_list *list, size_t item_size)
{
	void *more;

	RTE_ASSERT(item_size > 0);
	RTE_ASSERT((list->items == NULL) == (list->num == 0));
	if ((list->num & (list->num - 1)) == 0) {
		more = arena_alloc(a, (list->num == 0 ? 1 : 2 * list->num) * item_size);
		if (more == NULL)
			return NULL;
		if (list->num > 0)
			memcpy(more, list->items, list->num * item_size);
		list->items = more;
	}
	return (char *)list->items + list->num++ * item_size;
}
