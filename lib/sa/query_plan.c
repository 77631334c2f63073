/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Plan a query: choose the cheapest access to the records that a template selects, and match them.
 */

#include <string.h>

#include "sa/layout.h"
#include "sa/select.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

/* MCMember: with a selector, these values are compared by the selector instead of for equality. */
static const struct {
	uint8_t sel_bit;
	uint8_t offset;
	bool (*satisfies)(enum selector s, uint8_t want, uint8_t have);
} mc_selectors[] = {
	{ MC_BIT_MTU_SEL, MC_OFF_MTU, satisfies_mtu },
	{ MC_BIT_RATE_SEL, MC_OFF_RATE, satisfies_rate },
	{ MC_BIT_LIFE_SEL, MC_OFF_LIFE, satisfies_life },
};
#define MC_SELECTORS (sizeof(mc_selectors) / sizeof(mc_selectors[0]))

static uint64_t
selector_bits(struct query *q, const struct query_spec *spec)
{
	uint64_t skip = 0;
	unsigned int i;

	if (spec->type->table != SA_TABLE_MCMEMBER)
		return 0;
	for (i = 0; i < MC_SELECTORS; i++) {
		uint64_t sel = SA_BIT(mc_selectors[i].sel_bit);

		if ((spec->mask & sel) == 0)
			continue;
		skip |= sel | sel << 1;
		if ((spec->mask & sel << 1) == 0)
			continue;
		q->selectors |= 1u << i;
		q->wanted[i] = spec->tmpl[mc_selectors[i].offset];
	}
	return skip;
}

static bool
selectors_hold(const struct query *q, const uint8_t *rec)
{
	unsigned int i;

	for (i = 0; i < MC_SELECTORS; i++)
		if ((q->selectors & 1u << i) != 0 &&
			!mc_selectors[i].satisfies(q->wanted[i] >> 6, q->wanted[i] & 0x3F,
				rec[mc_selectors[i].offset] & 0x3F))
			return false;
	return true;
}

/* Compare with what the requester would be shown, see sa_redact(). */
static bool
query_matches(const struct query *q, const uint8_t *rec)
{
	uint8_t shown[SA_RECORD_MAX];

	if (sa_redacts(q->type, q->who.sight)) {
		memcpy(shown, rec, q->type->len);
		sa_redact(q->type, q->who.sight, get_be64(q->who.gid.raw + 8), shown);
		rec = shown;
	}
	return sa_match(&q->match, rec) && selectors_hold(q, rec);
}

bool
query_wants(const struct query *q, const struct store_record *r)
{
	if (!q->match_all && !query_matches(q, r->bytes))
		return false;
	return sa_visible(q->w->fabric, q->snapshot, &q->who, q->type, r->bytes);
}

static void
plan_records(struct query *q, const struct query_spec *spec)
{
	const struct sa_record_type *t = spec->type;
	uint64_t mask = spec->mask & sa_mask_known(t), skip = selector_bits(q, spec);
	struct sa_access_path lead;
	bool led = mask != 0 && sa_access_path(t, spec->tmpl, mask, &lead);

	q->snapshot = fabric_version(q->w->fabric);
	q->first_rid = spec->first_rid;
	q->last_rid = spec->last_rid;
	q->plan = QUERY_RIDS;
	q->match_all = mask == 0;
	if (led && lead.index) {
		q->plan = QUERY_INDEX;
		q->key = lead.key;
		store_seek_index(&q->cursor, q->snapshot, lead.which, lead.key);
	} else if (led) {
		q->first_rid = lead.first_rid;
		q->last_rid = lead.last_rid;
		skip |= LID_MASK;
	}
	if (!q->match_all) {
		sa_match_compile(&q->match, t, spec->tmpl, mask, skip);
		q->match_all = q->match.first == q->match.end && q->selectors == 0;
	}
	if (q->plan == QUERY_INDEX)
		return;
	if (spec->nothing || (q->match_all && q->who.trusted && !q->get)) {
		q->plan = QUERY_WHOLE;
		return;
	}
	store_seek(&q->cursor, q->snapshot, t->table,
		q->first_rid == 0 ? 0 : store_rank(q->snapshot, t->table, q->first_rid));
}

static uint16_t
plan_paths(struct query *q, const struct query_spec *spec)
{
	q->plan = QUERY_PATHS;
	return path_query_init(&q->path, q->w->config, q->w->fabric, spec->tmpl, spec->mask,
		spec->get);
}

static enum result_kind
query_result_kind(enum query_plan plan)
{
	switch (plan) {
	case QUERY_WHOLE:
		return RESULT_RANGE;
	case QUERY_PATHS:
	case QUERY_MULTI:
		return RESULT_PATHS;
	case QUERY_BULK:
		return RESULT_BULK;
	default:
		return RESULT_RECORDS;
	}
}

uint16_t
query_plan(struct query *q, const struct query_spec *spec)
{
	uint16_t status = MAD_STATUS_OK;

	if (spec->bulk) {
		q->plan = QUERY_BULK;
		q->snapshot = fabric_version(q->w->fabric);
	} else if (spec->multi) {
		q->plan = QUERY_MULTI;
		status = multi_init(&q->multi, spec->body, spec->tmpl, spec->mask);
	} else if (spec->type->attribute == SA_PATH) {
		status = plan_paths(q, spec);
	} else {
		plan_records(q, spec);
	}
	if (status != MAD_STATUS_OK || q->get)
		return status;
	q->result = result_new(q, query_result_kind(q->plan));
	if (q->result == NULL)
		return SA_STATUS_NO_RESOURCES;
	q->result->sight = q->who.sight;
	q->result->guid = get_be64(q->who.gid.raw + 8);
	q->result->tables = spec->bulk_tables;
	return MAD_STATUS_OK;
}
