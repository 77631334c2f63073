/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Records of our own native IB ports in our own SA. They are copies of the attributes of the port's
 * subnet management agent, and are updated whenever subnet management changes a port. Old records
 * of a port are found by its GUID, whatever LID they have. A port without LID has no records. In a
 * fleet the leader stores them (own_ports_fleet.c).
 */

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/own_ports_fleet.h"
#include "engine/subnet.h"
#include "engine/verbs_mad.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define OWN_RECORDS 16 /* most records of a port: see own_rows */
#define OWN_CHANGES 64 /* most changes for a port: records put and removed */
#define RETRY_MS    1000 /* after a failure: the store is full */

/* Number of blocks of an attribute that are in use. */
static unsigned int
no_block(const struct port_attr *port)
{
	(void)port;
	return 0;
}

static unsigned int
one_block(const struct port_attr *port)
{
	(void)port;
	return 1;
}

static unsigned int
guid_blocks(const struct port_attr *port)
{
	return RTE_MAX((port->num_gids + GUIDS_IN_BLOCK - 1) / GUIDS_IN_BLOCK, 1u);
}

static unsigned int
pkey_blocks(const struct port_attr *port)
{
	return RTE_MAX((port->num_pkeys + PKEYS_IN_BLOCK - 1) / PKEYS_IN_BLOCK, 1u);
}

static unsigned int
vlarb_parts(const struct port_attr *port)
{
	(void)port;
	return 4;
}

/* The attribute from which each record is made; the modifier of block i is (first + i) << shift. */
static const struct own_row {
	uint16_t record;
	uint16_t attribute;
	unsigned int (*blocks)(const struct port_attr *port);
	uint8_t first;
	uint8_t shift;
	const char *port_field; /* field of the RID with the port's number; NULL: none */
	const char *block_field; /* field of the RID with the block's number; NULL: none */
} own_rows[] = {
	{ SA_NODE, SMA_NODE_INFO, one_block, 0, 0, NULL, NULL },
	{ SA_PORT_INFO, SMA_PORT_INFO, one_block, 0, 0, "port_num", NULL },
	{ SA_GUID_INFO, SMA_GUID_INFO, guid_blocks, 0, 0, NULL, "block_num" },
	{ SA_PKEY_TABLE, SMA_PKEY_TABLE, pkey_blocks, 0, 0, "port_num", "block_num" },
	{ SA_SLTOVL, SMA_SLTOVL, one_block, 0, 0, "out_port", NULL },
	{ SA_VLARB, SMA_VLARB, vlarb_parts, 1, 16, "port_num", "block_num" },
	/* if an SM is configured (ib.sm) */
	{ SA_SM_INFO, SMA_SM_INFO, one_block, 0, 0, NULL, NULL },
	/* not from the agent: follow_add_link() */
	{ SA_LINK, 0, no_block, 0, 0, "from_port", NULL },
};

struct own {
	struct engine *engine;
	struct port_attr port; /* a copy, because the store's thread may use it late */
	struct sa_change put[OWN_RECORDS];
	size_t num_put;
	struct sa_change change[OWN_CHANGES]; /* of the store */
	size_t num_change;
	struct error err;
};

struct own_ports {
	unsigned int n;
	struct own own[];
};

/* --- on worker 0: read the agent's attributes --- */

static void
read_block(struct worker *w, struct own *own, const struct own_row *row, unsigned int block)
{
	struct sa_change *c = &own->put[own->num_put];
	const struct sa_record_type *t = sa_record_type(row->record);
	uint8_t data[SMA_DATA_LEN] = { 0 };

	if (own->num_put == OWN_RECORDS ||
		sma_read(w->sma, own->port.index, row->attribute,
			(row->first + block) << row->shift, data) != MAD_STATUS_OK)
		return; /* the port does not have this attribute */
	*c = (struct sa_change){ .type = t };
	sa_put_named(t, "lid", c->rec, own->port.lid);
	if (row->port_field != NULL)
		sa_put_named(t, row->port_field, c->rec, own->port.index + 1u);
	if (row->block_field != NULL)
		sa_put_named(t, row->block_field, c->rec, row->first + block);
	memcpy(c->rec + t->rid_len, data, RTE_MIN(t->len - t->rid_len, SMA_DATA_LEN));
	own->num_put++;
}

/* A NodeRecord is NodeInfo followed by NodeDescription. */
static void
follow_add_description(struct worker *w, struct own *own)
{
	struct sa_change *c = &own->put[0];
	uint8_t data[SMA_DATA_LEN];

	if (own->num_put > 0 &&
		sma_read(w->sma, own->port.index, SMA_NODE_DESCRIPTION, 0, data) == MAD_STATUS_OK)
		memcpy(c->rec + c->type->len - SMA_NODE_DESC_LEN, data, SMA_NODE_DESC_LEN);
}

static int
follow_read_here(struct worker *w, void *arg)
{
	struct own *own = arg;
	unsigned int i, block;

	for (i = 0; i < RTE_DIM(own_rows); i++) {
		for (block = 0; block < own_rows[i].blocks(&own->port); block++)
			read_block(w, own, &own_rows[i], block);
		if (i == 0)
			follow_add_description(w, own);
	}
	return 0;
}

/* --- on the store's thread: compare with the stored records --- */

static void
follow_add_change(struct own *own, const struct sa_change *c)
{
	if (own->num_change < OWN_CHANGES)
		own->change[own->num_change++] = *c;
}

static bool
follow_is_put(const struct own *own, const struct store_record *r)
{
	size_t i;

	for (i = 0; i < own->num_put; i++)
		if (own->put[i].type->table == r->table &&
			sa_rid(own->put[i].type, own->put[i].rec) == r->rid)
			return true;
	return false;
}

/* Remove the port's records of a LID it had, except those that are about to be put. */
static void
remove_of_lid(struct own *own, const struct store_version *v, const struct own_row *row,
	uint16_t lid)
{
	const struct sa_record_type *t = sa_record_type(row->record);
	const struct store_record *r;
	struct store_cursor c;

	for (r = sa_first_of_lid(v, t->table, lid, &c); r != NULL && r->rid >> 16 == lid;
		r = store_next(&c, NULL)) {
		struct sa_change gone = { .type = t, .remove = true, .rid = r->rid };

		if (row->port_field != NULL &&
			sa_get_named(t, row->port_field, r->bytes) != own->port.index + 1u)
			continue; /* another port's of this LID */
		if (!follow_is_put(own, r))
			follow_add_change(own, &gone);
	}
}

/* Remove outdated records under every LID that the database has for the port. */
static void
follow_remove_old(struct own *own, const struct store_version *v)
{
	const struct store_record *r;
	struct store_cursor c;
	unsigned int i;
	uint64_t key;

	store_seek_index(&c, v, SA_INDEX_PORT_GUID, own->port.guid);
	while ((r = store_next(&c, &key)) != NULL && key == own->port.guid)
		for (i = 0; i < RTE_DIM(own_rows); i++)
			remove_of_lid(own, v, &own_rows[i], (uint16_t)(r->rid >> 16));
}

static void
follow_put_new(struct own *own, const struct store_version *v)
{
	const struct store_record *r;
	size_t i;

	for (i = 0; i < own->num_put; i++) {
		const struct sa_change *c = &own->put[i];

		r = store_get(v, c->type->table, sa_rid(c->type, c->rec));
		if (r == NULL || r->len != c->type->len ||
			memcmp(r->bytes, c->rec, c->type->len) != 0)
			follow_add_change(own, c);
	}
}

/* The store's thread is the only writer, so it may read the current version without a hold. */
static int
follow_change_store(struct engine *e, void *arg)
{
	const struct store_version *v = store_current(store_reader(e->store, e->num_workers));
	struct own *own = arg;

	follow_remove_old(own, v);
	follow_put_new(own, v);
	return own->num_change > 0 ? sa_change(e->sa, own->change, own->num_change, &own->err) : 0;
}

/* --- on the control thread --- */

/* LinkRecords to other ports of ours that are joined back to back with this one. */
static void
follow_add_link(struct own *own)
{
	const struct link_config *config = &own->engine->config.link;
	const struct sa_record_type *t = sa_record_type(SA_LINK);
	const struct port_attr *peer;
	struct sa_change *c;
	unsigned int i;

	for (i = 0; i < config->num_ports && own->num_put < OWN_RECORDS; i++) {
		peer = link_port_attr(own->engine->link, i);
		if (peer->lid == 0 ||
			strcmp(config->port[own->port.index].back_to_back, config->port[i].name) !=
				0)
			continue;
		c = &own->put[own->num_put++];
		*c = (struct sa_change){ .type = t };
		sa_put_named(t, "from_lid", c->rec, own->port.lid);
		sa_put_named(t, "from_port", c->rec, own->port.index + 1u);
		sa_put_named(t, "to_lid", c->rec, peer->lid);
		sa_put_named(t, "to_port", c->rec, i + 1);
	}
}

static void
follow_read_port(struct engine *e, const struct port_attr *port, struct own *own)
{
	own->engine = e;
	own->port = *port;
	if (port->lid == 0)
		return;
	engine_call(e, 0, follow_read_here, own);
	follow_add_link(own);
}

/* On the store's thread. @return 0, or the error of a port; the others are up to date */
static int
follow_change_all(struct engine *e, void *arg)
{
	struct own_ports *ports = arg;
	unsigned int i;
	int rc, result = 0;

	for (i = 0; i < ports->n; i++) {
		rc = follow_change_store(e, &ports->own[i]);
		result = rc != 0 ? rc : result;
	}
	return result;
}

static void
follow_again(struct engine *e)
{
	e->own_following.retry_at = rte_get_tsc_cycles() + e->hz / 1000 * RETRY_MS;
}

/* The task has ended. What failed is tried again, and logged once until it succeeds. */
static void
follow_end(struct engine *e)
{
	struct own_following *f = &e->own_following;
	unsigned int i;

	for (i = 0; i < f->ports->n && f->retry_at == 0; i++)
		if (f->ports->own[i].err.text[0] != '\0')
			ENGINE_LOG(WARNING,
				"%s: its records in the SA are not up to date, and are tried again: %s",
				f->ports->own[i].port.name, f->ports->own[i].err.text);
	if (f->task.result == 0 && f->retry_at != 0)
		ENGINE_LOG(NOTICE, "the SA's records of our ports are up to date again");
	f->retry_at = 0;
	if (f->task.result != 0)
		follow_again(e);
	free(f->ports);
	f->ports = NULL;
}

/* In a fleet the records belong to this appliance, and the leader stores them. */
static void
follow_in_fleet(struct engine *e, const struct own_ports *ports)
{
	struct sa_change *records = calloc(ports->n * OWN_RECORDS + 1, sizeof(*records));
	unsigned int i;
	size_t n = 0;

	if (records == NULL) {
		follow_again(e);
		return;
	}
	for (i = 0; i < ports->n; i++) {
		memcpy(records + n, ports->own[i].put, ports->own[i].num_put * sizeof(*records));
		n += ports->own[i].num_put;
	}
	own_ports_fleet_native(e, records, n);
	e->own_following.retry_at = 0;
}

static void
follow_begin(struct engine *e)
{
	struct own_following *f = &e->own_following;
	unsigned int port, n = link_num_ports(e->link);
	struct own_ports *ports = calloc(1, sizeof(*ports) + n * sizeof(ports->own[0]));

	if (ports == NULL) {
		follow_again(e);
		return;
	}
	for (port = 0; port < n; port++)
		if (engine_sma_managed(e, port))
			follow_read_port(e, link_port_attr(e->link, port), &ports->own[ports->n++]);
	if (e->own_wish != NULL) {
		follow_in_fleet(e, ports);
		free(ports);
		return;
	}
	f->ports = ports;
	f->task = (struct store_task){ .fn = follow_change_all, .arg = ports };
	store_thread_post(e, &f->task);
}

static bool
follow_has_changed(struct engine *e, unsigned int port)
{
	struct own_seen *seen = &e->own_seen[port];
	const struct port_attr *attr = link_port_attr(e->link, port);
	struct sma_counters c;

	engine_sma_counters(e, port, &c);
	if (seen->attr == attr && seen->sets == c.smp_set && seen->sm == c.sm_changes)
		return false;
	*seen = (struct own_seen){ attr, c.smp_set, c.sm_changes };
	return true;
}

void
own_ports_follow(struct engine *e)
{
	struct own_following *f = &e->own_following;
	unsigned int port, changed = 0;

	if (e->sa == NULL || e->worker[0]->sma == NULL)
		return;
	if (f->ports != NULL && !store_thread_ended(&f->task))
		return;
	if (f->ports != NULL)
		follow_end(e);
	for (port = 0; port < link_num_ports(e->link); port++)
		changed += engine_sma_managed(e, port) && follow_has_changed(e, port);
	/* update all ports: a change of one may change the LinkRecord of another */
	if (changed > 0 || (f->retry_at != 0 && rte_get_tsc_cycles() >= f->retry_at))
		follow_begin(e);
	if (f->ports != NULL && store_thread_ended(&f->task))
		follow_end(e);
}

/* After the store's thread has stopped. */
void
own_ports_end(struct engine *e)
{
	free(e->own_following.ports);
	e->own_following.ports = NULL;
}
