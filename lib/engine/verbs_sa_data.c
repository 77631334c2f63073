/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The SA's database as a whole. An export reads a version that is held for it. The control thread
 * is an RCU reader like the workers, but online only while it reads.
 */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/verbs_private.h"
#include "engine/verbs_sa.h"
#include "engine/verbs_private.h"
#include "sa/tables.h"

#define FORGET_S 120 /* an export that is not continued ends after this time */

/* Layout of a cursor: the walk's index and serial, the table, the number of its records read. */
#define CURSOR_WALK(c)   ((unsigned int)((c) >> 56) - 1)
#define CURSOR_SERIAL(c) ((uint8_t)((c) >> 48))
#define CURSOR_TABLE(c)  ((unsigned int)((c) >> 40) & 0xFF)
/* clang-format off */
#define CURSOR_ORDINAL(c) ((c) & ((UINT64_C(1) << 40) - 1))
/* clang-format on */

static uint64_t
cursor_make(unsigned int walk, uint8_t serial, unsigned int table, uint64_t ordinal)
{
	return (uint64_t)(walk + 1) << 56 | (uint64_t)serial << 48 | (uint64_t)table << 40 |
		ordinal;
}

static struct store_reader *
sa_data_reader(struct engine *e)
{
	return store_reader(e->store, e->num_workers);
}

static void
sa_data_online(struct engine *e)
{
	rte_rcu_qsbr_thread_online(e->rcu, e->num_workers);
}

static void
sa_data_offline(struct engine *e)
{
	rte_rcu_qsbr_thread_offline(e->rcu, e->num_workers);
}

static void
end_walk(struct engine *e, struct sa_walk *w)
{
	sa_data_online(e);
	store_unhold(sa_data_reader(e), w->version);
	sa_data_offline(e);
	w->version = NULL;
	w->serial++;
}

static int
begin_walk(struct engine *e, uint64_t *cursor, struct error *err)
{
	const struct store_version *v;
	unsigned int i = 0;
	int ret;

	while (i < SA_WALKS && e->walk[i].version != NULL)
		i++;
	if (i == SA_WALKS)
		return error_set_limit(err, ENOSPC, "%d exports are under way already", SA_WALKS);
	sa_data_online(e);
	v = store_current(sa_data_reader(e));
	ret = store_hold(sa_data_reader(e), v);
	sa_data_offline(e);
	if (ret != 0)
		return error_set(err, -ret,
			"too many versions of the database are held: wait, or raise sa.max_versions");
	e->walk[i].version = v;
	*cursor = cursor_make(i, e->walk[i].serial, 0, 0);
	return 0;
}

/* @return 1: rec and *cursor are set; 0: the end */
static int
next_record(struct sa_walk *w, uint64_t *cursor, const struct sa_record_type **type, uint32_t *rid,
	uint8_t *bytes)
{
	unsigned int table = CURSOR_TABLE(*cursor);
	uint64_t ordinal = CURSOR_ORDINAL(*cursor);
	const struct store_record *r = NULL;

	/* continue after the last record, or seek if the caller repeats a page */
	if (w->next != *cursor)
		store_seek(&w->place, w->version, table, ordinal);
	for (; table < sa_num_tables; table++, ordinal = 0) {
		if (ordinal == 0)
			store_seek(&w->place, w->version, table, 0);
		r = store_next(&w->place, NULL);
		if (r != NULL)
			break;
	}
	if (r == NULL)
		return 0;
	*type = sa_table_type(table);
	*rid = r->rid;
	memset(bytes, 0, SA_RECORD_MAX);
	memcpy(bytes, r->bytes, RTE_MIN(r->len, (uint16_t)SA_RECORD_MAX));
	*cursor = cursor_make(CURSOR_WALK(*cursor), w->serial, table, ordinal + 1);
	w->next = *cursor;
	return 1;
}

int
engine_sa_export(struct engine *e, uint64_t *cursor, const struct sa_record_type **type,
	uint32_t *rid, uint8_t *bytes, struct error *err)
{
	struct sa_walk *w;
	int ret = 0;

	if (e->sa == NULL)
		return error_set(err, EINVAL, "this appliance serves no SA (sa.enabled)");
	if (*cursor == 0)
		ret = begin_walk(e, cursor, err);
	if (ret != 0)
		return ret;
	w = CURSOR_WALK(*cursor) < SA_WALKS ? &e->walk[CURSOR_WALK(*cursor)] : NULL;
	if (w == NULL || w->version == NULL || w->serial != CURSOR_SERIAL(*cursor))
		return error_set(err, EINVAL,
			"cursor: the export it belongs to has ended: begin anew with 0");
	w->seen = rte_get_tsc_cycles();
	sa_data_online(e);
	ret = store_stale(w->version) ? -ESTALE : next_record(w, cursor, type, rid, bytes);
	sa_data_offline(e);
	if (ret <= 0)
		end_walk(e, w);
	return ret >= 0
		? ret
		: error_set(err, ESTALE, "the database has changed too much meanwhile: begin anew");
}

void
sa_walks_watch(struct engine *e)
{
	uint64_t now = rte_get_tsc_cycles();
	unsigned int i;

	for (i = 0; i < SA_WALKS; i++)
		if (e->walk[i].version != NULL && now > e->walk[i].seen &&
			now - e->walk[i].seen > FORGET_S * e->hz)
			end_walk(e, &e->walk[i]);
}

void
sa_walks_end(struct engine *e)
{
	unsigned int i;

	for (i = 0; i < SA_WALKS; i++)
		if (e->walk[i].version != NULL)
			end_walk(e, &e->walk[i]);
}
