/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Results: their pool, and what is read of them: lists of records or paths (result_list.c), ranges
 * without a list, whole tables.
 */

#include <errno.h>
#include <string.h>

#include "sa/bulk.h"
#include "sa/result_private.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

struct result_pool *
result_pool_create(const struct allocator *alloc, uint32_t transfers, uint32_t bytes)
{
	uint32_t i, n = bytes / CHUNK_BYTES;
	struct result_pool *p = mem_zalloc(alloc, sizeof(*p), 64);

	if (p == NULL)
		return NULL;
	p->alloc = alloc;
	p->results = mem_zalloc(alloc, ((size_t)transfers + 1) * sizeof(*p->results), 64);
	p->chunks = mem_zalloc(alloc, ((size_t)n + 1) * sizeof(*p->chunks), 64);
	if (p->results == NULL || p->chunks == NULL) {
		result_pool_destroy(p);
		return NULL;
	}
	for (i = 0; i < transfers; i++) {
		p->results[i].next_free = p->free_results;
		p->free_results = &p->results[i];
	}
	for (i = 0; i < n; i++) {
		p->chunks[i].next = p->free_chunks;
		p->free_chunks = &p->chunks[i];
	}
	return p;
}

void
result_pool_destroy(struct result_pool *p)
{
	if (p == NULL)
		return;
	mem_free(p->alloc, p->results);
	mem_free(p->alloc, p->chunks);
	mem_free(p->alloc, p);
}

struct result *
result_new(const struct query *q, enum result_kind kind)
{
	struct sa_worker *w = q->w;
	struct result *r;

	if (w->results->free_results == NULL)
		mad_make_room(w->mad, q->handle);
	r = w->results->free_results;
	if (r == NULL)
		return NULL;
	w->results->free_results = r->next_free;
	memset(r, 0, sizeof(*r));
	r->w = w;
	r->kind = kind;
	r->type = q->type;
	r->class_version = q->version;
	r->handle = q->handle;
	memcpy(r->owner, q->who.gid.raw, sizeof(r->owner));
	r->give_way.origin = q->give_way.origin;
	r->at_index = UINT64_MAX;
	return r;
}

void
result_clear(struct result *r)
{
	struct result_pool *p = r->w->results;

	give_way_list_gone(r);
	if (r->newest != NULL) {
		r->oldest->next = p->free_chunks;
		p->free_chunks = r->newest;
	}
	r->oldest = r->newest = r->root = NULL;
	r->leaf = NULL;
	r->span = 0;
	r->count = 0;
}

void
result_free(struct result *r)
{
	struct sa_worker *w = r->w;

	result_clear(r);
	if (r->held)
		store_unhold(w->reader, r->version);
	if (w->scratch_of == r)
		w->scratch_of = NULL;
	r->next_free = w->results->free_results;
	w->results->free_results = r;
}

int
result_hold(struct result *r, const struct store_version *v)
{
	int rc = store_hold(r->w->reader, v);

	RTE_ASSERT(!r->held && r->kind != RESULT_PATHS); /* paths are copies */
	if (rc != 0)
		return rc;
	r->version = v;
	r->held = true;
	return 0;
}

static struct chunk *
result_find_leaf(const struct result *r, uint64_t n)
{
	struct chunk *c = r->root;
	uint64_t span;

	for (span = r->span; span > 1; span /= FANOUT)
		c = c->child[n / (span / FANOUT) % FANOUT];
	return c;
}

static const void *
result_entry(struct result *r, uint64_t i, unsigned int per_chunk, size_t size)
{
	uint64_t n = i / per_chunk;

	if (n != r->leaf_number) {
		r->leaf = result_find_leaf(r, n);
		r->leaf_number = n;
	}
	return r->leaf->data + i % per_chunk * size;
}

static const struct store_record *
record_at(struct result *r, uint64_t i)
{
	const struct store_record *rec;

	if (r->kind == RESULT_RECORDS) {
		memcpy(&rec, result_entry(r, i, RECORDS_PER_CHUNK, sizeof(rec)), sizeof(rec));
		return rec;
	}
	if (r->at_index == i)
		return r->at;
	if (r->at_index == UINT64_MAX || r->cursor.ordinal != r->first + i)
		store_seek(&r->cursor, r->version, r->type->table, r->first + i);
	r->at = store_next(&r->cursor, NULL);
	r->at_index = i;
	return r->at;
}

void
result_encode(const struct sa_record_type *t, enum sa_version v, const uint8_t *rec, uint32_t rid,
	enum sa_sight sight, uint64_t guid, uint8_t *wire)
{
	uint8_t copy[SA_RECORD_MAX];

	if (sa_redacts(t, sight)) {
		memcpy(copy, rec, t->len);
		sa_redact(t, sight, guid, copy);
		rec = copy;
	}
	sa_encode(t, v, rec, rid, wire);
}

static void
result_encode_entry(struct result *r, uint64_t i, uint8_t *wire)
{
	const struct store_record *rec;
	uint8_t path[PR_LEN];

	if (r->kind == RESULT_PATHS) {
		path_record(&r->common,
			result_entry(r, i, PATHS_PER_CHUNK, sizeof(struct path_entry)), path);
		sa_encode(r->type, r->class_version, path, 0, wire);
		return;
	}
	rec = record_at(r, i);
	result_encode(r->type, r->class_version, rec->bytes, rec->rid, r->sight, r->guid, wire);
}

/* Read bytes [offset, offset + len) of the encoded records. */
static void
read_records(struct result *r, uint64_t offset, uint8_t *buf, uint32_t len)
{
	uint16_t size = sa_wire_len(r->type, r->class_version);
	struct sa_worker *w = r->w;
	uint64_t i = offset / size;
	uint32_t skip = offset % size, n;

	for (; len > 0; i++, skip = 0, buf += n, len -= n) {
		n = size - skip < len ? size - skip : len;
		if (n == size) {
			result_encode_entry(r, i, buf);
			continue;
		}
		/*
			 * the two segments with parts of this record follow each other: encode it
			 * once
			 */
		if (w->scratch_of != r || w->scratch_index != i) {
			result_encode_entry(r, i, w->scratch);
			w->scratch_of = r;
			w->scratch_index = i;
		}
		memcpy(buf, w->scratch + skip, n);
	}
}

/* --- GetBulk: whole tables, one after the other --- */

static uint64_t
bulk_table_length(const struct result *r, unsigned int table)
{
	return SA_BULK_HEADER +
		store_count(r->version, table) * sa_wire_len(sa_table_type(table), SA_V1);
}

static void
bulk_header(const struct result *r, unsigned int table, uint8_t *header)
{
	const struct sa_record_type *t = sa_table_type(table);

	put_be16(header + SA_BULK_ATTRIBUTE, t->attribute);
	put_be16(header + SA_BULK_RECORD_LEN, sa_wire_len(t, SA_V1));
	put_be32(header + SA_BULK_COUNT, store_count(r->version, table));
}

/* Read bytes of one table's part, which begins with its header. */
static void
read_bulk_table(struct result *r, unsigned int table, uint64_t offset, uint8_t *buf, uint32_t len)
{
	uint8_t header[SA_BULK_HEADER];
	uint32_t n;

	if (offset < SA_BULK_HEADER) {
		n = SA_BULK_HEADER - offset < len ? SA_BULK_HEADER - offset : len;
		bulk_header(r, table, header);
		memcpy(buf, header + offset, n);
		buf += n;
		len -= n;
		offset += n;
	}
	if (len == 0)
		return;
	if (r->type != sa_table_type(table)) { /* another table than before */
		r->type = sa_table_type(table);
		r->at_index = UINT64_MAX;
		r->w->scratch_of = NULL;
	}
	read_records(r, offset - SA_BULK_HEADER, buf, len);
}

static void
read_bulk(struct result *r, uint64_t offset, uint8_t *buf, uint32_t len)
{
	unsigned int table;

	for (table = 0; table < SA_TABLES && len > 0; table++) {
		uint64_t size;
		uint32_t n;

		if ((r->tables & 1u << table) == 0)
			continue;
		size = bulk_table_length(r, table);
		if (offset >= size) {
			offset -= size;
			continue;
		}
		n = size - offset < len ? size - offset : len;
		read_bulk_table(r, table, offset, buf, n);
		buf += n;
		len -= n;
		offset = 0;
	}
}

uint64_t
result_length(const struct result *r)
{
	uint64_t length = 0;
	unsigned int table;

	if (r->kind != RESULT_BULK)
		return r->count * sa_wire_len(r->type, r->class_version);
	for (table = 0; table < SA_TABLES; table++)
		if ((r->tables & 1u << table) != 0)
			length += bulk_table_length(r, table);
	return length;
}

static int
result_read(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	struct result *r = arg;

	if (r->version != NULL && store_stale(r->version)) {
		r->w->counters.stale++;
		return -ESTALE;
	}
	if (r->kind == RESULT_BULK)
		read_bulk(r, offset, buf, len);
	else
		read_records(r, offset, buf, len);
	return 0;
}

static void
result_release(void *arg)
{
	result_free(arg);
}

void
result_source(struct result *r, struct mad_source *source)
{
	*source = (struct mad_source){
		.arg = r,
		.length = result_length(r),
		.read = result_read,
		.release = result_release,
	};
}
