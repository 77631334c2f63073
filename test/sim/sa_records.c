/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Databases for queries: records of random bytes with RIDs in the standard's form. */

#include <string.h>

#include "sa/layout.h"
#include "sa_sim.h"
#include "wire/bytes.h"

#define PER_LID 200 /* ports or blocks per LID */

static const uint16_t types[] = { SA_NODE, SA_PORT_INFO, SA_SM_INFO, SA_LINK, SA_GUID_INFO,
	SA_PKEY_TABLE, SA_SLTOVL, SA_VLARB, SA_SWITCH_INFO };

const struct sa_record_type *
sa_type_of(unsigned int table)
{
	for (unsigned int i = 0; i < sa_num_record_types; i++)
		if (sa_record_types[i].stored && sa_record_types[i].table == table)
			return &sa_record_types[i];
	return NULL;
}

const struct sa_record_type *
sa_random_type(struct sim *s)
{
	return sa_record_type(types[sim_below(s, sizeof(types) / sizeof(types[0]))]);
}

/* @return true if RIDs of this type contain these bits */
static bool
keeps(const struct sa_record_type *t, uint32_t bits)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };

	sa_rid_put(t, rec, bits);
	return sa_rid(t, rec) == bits;
}

uint32_t
sa_nth_rid(const struct sa_record_type *t, uint16_t lid, uint32_t i)
{
	if (keeps(t, 0x0100))
		return (uint32_t)(lid + i / PER_LID) << 16 | (1 + i % PER_LID) << 8 |
			(keeps(t, 0x0001) ? 1 : 0);
	if (keeps(t, 0x0001))
		return (uint32_t)(lid + i / PER_LID) << 16 | i % PER_LID;
	return (lid + i) << 16;
}

uint32_t
sa_lids(const struct sa_record_type *t, uint32_t records)
{
	return keeps(t, 0x0100) || keeps(t, 0x0001) ? (records + PER_LID - 1) / PER_LID : records;
}

void
sa_random_record(struct sim *s, const struct sa_record_type *t, uint32_t rid, uint8_t *rec)
{
	static const char *const keys[] = { "m_key", "sm_key" };

	for (uint16_t i = 0; i < SA_RECORD_MAX; i += 8) {
		uint64_t r = sim_rand(s);

		memcpy(rec + i, &r, 8);
	}
	memset(rec + t->len, 0, SA_RECORD_MAX - t->len);
	sa_rid_put(t, rec, rid);
	for (unsigned int i = 0; i < 2; i++)
		if (sa_field_named(t, keys[i]) != NULL)
			sa_put_named(t, keys[i], rec, 0);
}

static void
fill_table(struct sa_script *sc, const struct sa_record_type *t, uint32_t n)
{
	uint8_t rec[SA_RECORD_MAX];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t rid = sa_nth_rid(t, 1, i);

		sa_random_record(sc->sim, t, rid, rec);
		sa_model_put(sc->model, t->table, rid, rec, t->len);
	}
}

/* Add an active port with the node's LID and GUID, in the default partition. */
static void
fill_port(struct sa_script *sc, unsigned int node)
{
	const struct sa_record_type *t = sa_record_type(SA_NODE);
	uint32_t rid = (uint32_t)SA_LID(node) << 16;
	uint8_t rec[SA_RECORD_MAX] = { 0 };

	sa_rid_put(t, rec, rid);
	rec[NODE_OFF_TYPE] = NODE_TYPE_CA;
	put_be64(rec + NODE_OFF_NODE_GUID, 1 + node);
	put_be64(rec + NODE_OFF_PORT_GUID, 1 + node);
	rec[NODE_OFF_PORT] = 1;
	sa_model_put(sc->model, t->table, rid, rec, t->len);

	t = sa_record_type(SA_PORT_INFO);
	memset(rec, 0, sizeof(rec));
	sa_rid_put(t, rec, rid | 0x0100);
	rec[PORT_OFF_WIDTH] = 2; /* 4x */
	rec[PORT_OFF_STATE] = 4; /* active */
	rec[PORT_OFF_SPEED] = 1 << 4;
	rec[PORT_OFF_MTU] = 4 << 4;
	rec[PORT_OFF_MTU_CAP] = 4;
	sa_model_put(sc->model, t->table, rid | 0x0100, rec, t->len);

	t = sa_record_type(SA_PKEY_TABLE);
	memset(rec, 0, sizeof(rec));
	sa_rid_put(t, rec, rid | 0x0100);
	put_be16(rec + PKEY_OFF_KEYS, 0xFFFF);
	sa_model_put(sc->model, t->table, rid | 0x0100, rec, t->len);

	t = sa_record_type(SA_LINK);
	memset(rec, 0, sizeof(rec));
	sa_rid_put(t, rec, rid | 0x0100);
	rec[LINK_OFF_TO_PORT] = 1;
	put_be16(rec + LINK_OFF_TO_LID, SA_LID(!node));
	sa_model_put(sc->model, t->table, rid | 0x0100, rec, t->len);
}

void
sa_fill(struct sa_script *sc)
{
	for (unsigned int i = 0; i < SIM_NODES; i++)
		fill_port(sc, i);
	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const struct sa_record_type *t = sa_record_type(types[i]);

		fill_table(sc, t, t == sc->main ? sc->main_records : sim_below(sc->sim, 12));
	}
}
