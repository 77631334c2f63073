/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The simulated disk under the store. It holds all committed batches, so it is the reference for
 * answers. It survives restarts; a crash may come before or after any batch. A watch records every
 * version that may answer a query.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sa_sim.h"

struct sa_model_chunk {
	struct sa_model_chunk *next;
	uint32_t used;
	uint8_t bytes[1u << 20];
};

struct sa_model *
sa_model_create(struct sim *s)
{
	struct sa_model *m = calloc(1, sizeof(*m));

	if (m == NULL)
		abort();
	m->sim = s;
	m->slot_mask = 1023;
	m->slot = calloc(m->slot_mask + 1, sizeof(*m->slot));
	return m;
}

void
sa_model_destroy(struct sa_model *m)
{
	while (m->chunks != NULL) {
		struct sa_model_chunk *c = m->chunks;

		m->chunks = c->next;
		free(c);
	}
	free(m->rec);
	free(m->slot);
	free(m);
}

static uint64_t
sa_model_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return z ^ (z >> 31);
}

uint64_t
sa_record_sum(unsigned int table, const uint8_t *bytes, uint16_t len)
{
	uint64_t sum = sa_model_mix(0x9E3779B97F4A7C15ull + table), word;
	uint16_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, bytes + i, 8);
		sum = sa_model_mix(sum ^ word) + i;
	}
	for (; i < len; i++)
		sum = sa_model_mix(sum ^ bytes[i]) + i;
	return sum;
}

/* --- records by table and RID --- */

static uint32_t *
slot_of(const struct sa_model *m, unsigned int table, uint32_t rid)
{
	uint32_t h = (uint32_t)sa_model_mix((uint64_t)table << 32 | rid);

	for (;; h++) {
		uint32_t *slot = &m->slot[h & m->slot_mask];
		const struct sa_model_record *r = &m->rec[*slot - 1];

		if (*slot == 0 || (r->rid == rid && r->table == table))
			return slot;
	}
}

static void
grow(struct sa_model *m)
{
	if (m->records == m->size) {
		m->size = m->size == 0 ? 256 : 2 * m->size;
		m->rec = realloc(m->rec, m->size * sizeof(*m->rec));
		if (m->rec == NULL)
			abort();
	}
	if (2 * m->records < m->slot_mask)
		return;
	free(m->slot);
	m->slot_mask = 4 * m->slot_mask + 3;
	m->slot = calloc(m->slot_mask + 1, sizeof(*m->slot));
	if (m->slot == NULL)
		abort();
	for (uint32_t i = 0; i < m->records; i++)
		*slot_of(m, m->rec[i].table, m->rec[i].rid) = i + 1;
}

static const uint8_t *
keep(struct sa_model *m, const uint8_t *bytes, uint16_t len)
{
	struct sa_model_chunk *c = m->chunks;

	if (c == NULL || c->used + len > sizeof(c->bytes)) {
		c = malloc(sizeof(*c));
		if (c == NULL)
			abort();
		c->next = m->chunks;
		c->used = 0;
		m->chunks = c;
	}
	memcpy(c->bytes + c->used, bytes, len);
	c->used += len;
	return c->bytes + c->used - len;
}

const struct sa_model_record *
sa_model_get(const struct sa_model *m, unsigned int table, uint32_t rid)
{
	uint32_t i = *slot_of(m, table, rid);

	return i != 0 && m->rec[i - 1].live ? &m->rec[i - 1] : NULL;
}

const struct sa_model_record *
sa_model_any(struct sa_model *m, unsigned int table)
{
	uint32_t start = sim_below(m->sim, m->records);

	for (uint32_t i = 0; i < m->records && i < 5000; i++) {
		const struct sa_model_record *r = &m->rec[(start + i) % m->records];

		if (r->table == table && r->live)
			return r;
	}
	return NULL;
}

/* --- watches --- */

/* @return length without the SA's own data behind the record */
static uint16_t
record_len(unsigned int table, uint16_t len)
{
	const struct sa_record_type *t = sa_type_of(table);

	return t != NULL && t->len < len ? t->len : len;
}

static bool
selected(const struct sa_watch *w, unsigned int table, uint32_t rid, const uint8_t *bytes)
{
	if (!(w->tables & 1u << table) || rid < w->first_rid || rid > w->last_rid)
		return false;
	if (w->mask == 0)
		return true;
	/* compare each component, as the sheet says */
	for (unsigned int i = 0; i < w->type->num_fields; i++) {
		const struct sa_field *f = &w->type->fields[i];

		if ((sa_mask(w->type, f, SA_V2) & w->mask) == 0)
			continue;
		for (unsigned int bit = f->offset; bit < f->offset + f->bits; bit++)
			if ((bytes[bit / 8] ^ w->tmpl[bit / 8]) & 0x80 >> bit % 8)
				return false;
	}
	return true;
}

static void
sa_model_account(struct sa_model *m, unsigned int table, uint32_t rid, const uint8_t *bytes,
	uint16_t len, int sign)
{
	uint64_t sum = sa_record_sum(table, bytes, record_len(table, len));

	m->count[table] += (uint64_t)sign;
	for (struct sa_watch *w = m->watches; w != NULL; w = w->next)
		if (selected(w, table, rid, bytes)) {
			w->now.count += (uint64_t)sign;
			w->now.sum += sign > 0 ? sum : -sum;
		}
}

static void
allow(struct sa_watch *w)
{
	if (w->num_allowed > 0 && w->allowed[w->num_allowed - 1].count == w->now.count &&
		w->allowed[w->num_allowed - 1].sum == w->now.sum)
		return;
	if (w->num_allowed == w->size_allowed) {
		w->size_allowed = w->size_allowed == 0 ? 4 : 2 * w->size_allowed;
		w->allowed = realloc(w->allowed, w->size_allowed * sizeof(*w->allowed));
		if (w->allowed == NULL)
			abort();
	}
	w->allowed[w->num_allowed++] = w->now;
}

void
sa_watch_start(struct sa_model *m, struct sa_watch *w)
{
	w->now = (struct sa_snapshot){ 0 };
	w->num_allowed = 0;
	for (uint32_t i = 0; i < m->records && w->tables != 0; i++) {
		const struct sa_model_record *r = &m->rec[i];

		if (r->live && selected(w, r->table, r->rid, r->bytes)) {
			w->now.count++;
			w->now.sum +=
				sa_record_sum(r->table, r->bytes, record_len(r->table, r->len));
		}
	}
	allow(w);
	w->next = m->watches;
	m->watches = w;
}

void
sa_watch_stop(struct sa_model *m, struct sa_watch *w)
{
	struct sa_watch **p = &m->watches;

	while (*p != NULL && *p != w)
		p = &(*p)->next;
	if (*p != NULL)
		*p = w->next;
}

bool
sa_watch_allows(const struct sa_watch *w, uint64_t count, uint64_t sum)
{
	for (unsigned int i = 0; i < w->num_allowed; i++)
		if (w->allowed[i].count == count && w->allowed[i].sum == sum)
			return true;
	return false;
}

/* --- changes --- */

static void
sim_sa_model_put(struct sa_model *m, const struct store_op *op)
{
	struct sa_model_record *r;
	uint32_t *slot;

	grow(m);
	slot = slot_of(m, op->table, op->rid);
	if (*slot == 0) {
		*slot = ++m->records;
		m->rec[*slot - 1] = (struct sa_model_record){ .table = op->table, .rid = op->rid };
	}
	r = &m->rec[*slot - 1];
	for (struct sa_watch *w = m->watches; w != NULL; w = w->next)
		if (w->op != NULL)
			w->op(w->arg, op, r->live ? r->bytes : NULL);
	if (r->live)
		sa_model_account(m, r->table, r->rid, r->bytes, r->len, -1);
	r->live = op->bytes != NULL;
	if (!r->live)
		return;
	r->bytes = keep(m, op->bytes, op->len);
	r->len = op->len;
	sa_model_account(m, r->table, r->rid, r->bytes, r->len, 1);
}

void
sa_model_put(struct sa_model *m, unsigned int table, uint32_t rid, const uint8_t *bytes,
	uint16_t len)
{
	sim_sa_model_put(m, &(struct store_op){ (uint8_t)table, rid, bytes, len });
}

static void
sa_model_commit(struct sa_model *m, const struct store_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sim_sa_model_put(m, &ops[i]);
	m->commits++;
	for (struct sa_watch *w = m->watches; w != NULL; w = w->next) {
		if (w->op != NULL)
			w->op(w->arg, NULL, NULL);
		allow(w);
	}
	sim_trace(m->sim, "commit %llu of %zu operations", (unsigned long long)m->commits, n);
}

/* --- the backend --- */

static int
disk_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to, struct error *err)
{
	struct sa_model *m = arg;

	(void)err;
	for (uint32_t i = 0; i < m->records; i++) {
		const struct sa_model_record *r = &m->rec[i];
		struct store_op op = { r->table, r->rid, r->bytes, r->len };
		int rc = r->live ? each(to, &op) : 0;

		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
disk_apply(void *arg, const struct store_op *ops, size_t n, struct error *err)
{
	struct sa_model *m = arg;
	enum sa_crash crash = SA_CRASH_NONE;

	if (m->side->down) /* the node has crashed: nothing is written */
		return error_set(err, EIO, "disk: the node is down");
	if (m->crash != SA_CRASH_NONE && m->crash_after-- == 0) {
		crash = m->crash;
		m->crash = SA_CRASH_NONE;
		sim_trace(m->sim, "disk: %s",
			crash == SA_DISK_FULL              ? "full"
				: crash == SA_CRASH_BEFORE ? "crash before the batch"
							   : "crash after the batch");
	}
	if (crash == SA_CRASH_NONE || crash == SA_CRASH_AFTER)
		sa_model_commit(m, ops, n);
	if (crash == SA_CRASH_NONE)
		return 0;
	if (crash != SA_DISK_FULL)
		sa_side_restart(m->side, 1000 + sim_below(m->sim, 5000000));
	return error_set(err, EIO, "disk: no space");
}

static void
disk_close(void *arg)
{
	(void)arg;
}

struct store_backend
sa_model_backend(struct sa_model *m)
{
	return (struct store_backend){
		.arg = m,
		.load = disk_load,
		.apply = disk_apply,
		.close = disk_close,
	};
}

void
sa_model_check_store(struct sa_model *m, const struct store_version *v)
{
	for (unsigned int table = 0; table < sa_num_tables; table++) {
		struct store_cursor c;
		const struct store_record *r;
		uint64_t n = 0;

		store_seek(&c, v, table, 0);
		while ((r = store_next(&c, NULL)) != NULL) {
			const struct sa_model_record *mr = sa_model_get(m, table, r->rid);

			n++;
			if (mr == NULL || mr->len != r->len ||
				memcmp(mr->bytes, r->bytes, r->len) != 0) {
				sim_fail(m->sim,
					"table %u rid 0x%08x: the store differs from the disk",
					table, r->rid);
				return;
			}
		}
		if (n != m->count[table])
			sim_fail(m->sim, "table %u: the store has %llu records, the disk %llu",
				table, (unsigned long long)n, (unsigned long long)m->count[table]);
	}
}
