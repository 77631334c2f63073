/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Create and destroy a store; load records from the backend. */

#include <errno.h>

#include "store/private.h"

/* Put a record of the backend into the transaction. */
static int
store_take_version(void *to, const struct store_op *op)
{
	struct store *s = to;

	if (op->table >= s->config.tables)
		return -EBADMSG;
	return store_put(&s->txn, op->table, op->rid, op->bytes, op->len);
}

/* The records come from the backend: they are not applied to it again. */
static int
store_load(struct store *s, struct error *err)
{
	struct store_backend b = s->config.backend;
	int rc;

	if (b.load == NULL)
		return 0;
	if (store_begin(s) == NULL)
		return error_set(err, ENOMEM, "no memory to load the record store");
	error_set(err, EIO, "the records that are stored cannot be loaded");
	rc = b.load(b.arg, store_take_version, s, err);
	if (rc != 0) {
		store_abort(&s->txn);
		return rc;
	}
	s->config.backend.apply = NULL;
	rc = store_commit(&s->txn, err);
	s->config.backend = b;
	return rc;
}

static int
make_readers(struct store *s)
{
	const struct allocator *a = s->config.alloc;
	unsigned int i;

	s->readers = mem_zalloc(a, s->config.readers * sizeof(s->readers[0]), 64);
	if (s->readers == NULL)
		return -ENOMEM;
	for (i = 0; i < s->config.readers; i++) {
		s->readers[i].store = s;
		s->readers[i].held = mem_zalloc(a, s->slots * sizeof(struct held), 64);
		if (s->readers[i].held == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void
close_backend(const struct store_config *config)
{
	if (config->backend.close != NULL)
		config->backend.close(config->backend.arg);
}

struct store *
store_create(const struct store_config *config, struct error *err)
{
	struct store_version *first;
	struct store *s;

	if (config->tables > STORE_TABLES_MAX || config->num_indexes > STORE_INDEXES_MAX ||
		config->readers > STORE_READERS_MAX || config->max_versions == 0) {
		error_set(err, EINVAL, "store: more tables, indexes or readers than there can be");
		close_backend(config);
		return NULL;
	}
	s = mem_zalloc(config->alloc, sizeof(*s), 64);
	if (s == NULL) {
		error_set(err, ENOMEM, "no memory for the record store");
		close_backend(config);
		return NULL;
	}
	s->config = *config;
	s->slots = 2 * config->max_versions;
	s->old_tail = &s->old;
	txn_init(s);
	first = store_alloc(s, sizeof(*first));
	if (first == NULL)
		goto no_memory;
	first->number = 1;
	first->store = s;
	s->current = first;
	stat_set(s, version, 1);
	if (make_readers(s) != 0)
		goto no_memory;
	if (store_load(s, err) != 0) {
		store_destroy(s);
		return NULL;
	}
	return s;

no_memory:
	error_set(err, ENOMEM, "no memory for the record store");
	store_destroy(s);
	return NULL;
}

static void
free_records(struct store *s, const struct tree *t)
{
	const struct store_record *r;
	const struct tree_node *leaf;
	uint64_t at = 0;
	uint32_t i;

	while ((leaf = tree_select(t, at, &i)) != NULL) {
		for (; i < leaf->n; i++, at++) {
			r = leaf->record[i];
			store_free(s, (void *)(uintptr_t)r, (uint32_t)sizeof(*r) + r->len);
		}
	}
}

static void
free_nodes(struct store *s, struct tree_node *n)
{
	unsigned int i;

	if (n == NULL)
		return;
	for (i = 0; !n->leaf && i < n->n; i++)
		free_nodes(s, n->child[i]);
	store_free(s, n, tree_node_size(n->leaf));
}

void
store_destroy(struct store *s)
{
	struct store_version *v;
	unsigned int i;

	if (s == NULL)
		return;
	reclaim_all(s);
	v = (struct store_version *)(uintptr_t)s->current;
	for (i = 0; v != NULL && i < s->config.tables; i++)
		free_records(s, &v->tree[i]);
	for (i = 0; v != NULL && i < TREES_MAX; i++)
		free_nodes(s, v->tree[i].root);
	if (s->txn.next != NULL)
		store_free(s, s->txn.next, sizeof(*v));
	if (v != NULL)
		store_free(s, v, sizeof(*v));
	txn_fini(s);
	for (i = 0; s->readers != NULL && i < s->config.readers; i++)
		mem_free(s->config.alloc, s->readers[i].held);
	mem_free(s->config.alloc, s->readers);
	close_backend(&s->config);
	mem_free(s->config.alloc, s);
}

void
store_stats(const struct store *s, struct store_stats *stats)
{
	const uint64_t *from = (const uint64_t *)&s->stats;
	uint64_t *to = (uint64_t *)stats;
	unsigned int i;

	for (i = 0; i < sizeof(*stats) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
