/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker's cache of endports by LID and GUID, cleared when the tables behind it change.
 */

#include <errno.h>
#include <string.h>

#include "sa/fabric.h"
#include "sa/layout.h"
#include "sa/select.h"
#include "wire/bytes.h"

#define GUID_WAYS    4
#define RESTARTS_MAX 3
#define WORK_PER_HOP 4 /* looking up a switch in tables costs as much as this many links */

struct guid_slot {
	uint64_t guid;
	uint32_t generation;
	uint16_t lid;
};

/* the tables behind endports and routes; the first GRAPH_TABLES are also behind the graph */
static const uint8_t tables[] = { SA_TABLE_LINK, SA_TABLE_PORT_INFO, SA_TABLE_SWITCH_INFO,
	SA_TABLE_NODE, SA_TABLE_GUID_INFO, SA_TABLE_PKEY, SA_TABLE_LFT, SA_TABLE_RFT,
	SA_TABLE_SLTOVL, SA_TABLE_PATH_SL };
#define GRAPH_TABLES 3
#define TABLES       (sizeof(tables))

struct fabric {
	const struct allocator *alloc;
	struct store_reader *reader;
	uint64_t gid_prefix;
	const struct store_version *version;
	uint64_t seen; /* version number of .changed */
	uint64_t changed[TABLES];
	uint32_t generation;
	uint32_t mask; /* size of .port - 1 */
	uint32_t guid_mask;
	uint32_t victim;
	struct port_view *port;
	struct guid_slot *guid;
	struct graph *graph;
	bool graph_current;
	bool graph_old; /* built from an outdated version: use it for this burst only */
	const struct store_version *building; /* version being read, held */
	unsigned int restarts; /* builds abandoned in a row */
	uint64_t building_changed[GRAPH_TABLES];
	struct fabric_counts counts;
	unsigned int work;
	/* an endport found under one of its LMC's LIDs, before it is cached */
	struct port_view direct;
};

static bool
is_power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

struct fabric *
fabric_create(const struct sa_config *config, struct store_reader *reader)
{
	const struct allocator *alloc = config->alloc;
	struct fabric *f;

	if (!is_power_of_two(config->path_ports))
		return NULL;
	f = mem_zalloc(alloc, sizeof(*f), 64);
	if (f == NULL)
		return NULL;
	f->alloc = alloc;
	f->reader = reader;
	f->gid_prefix = config->gid_prefix;
	f->generation = 1;
	f->seen = UINT64_MAX;
	f->mask = config->path_ports - 1;
	f->guid_mask = config->path_ports * 2 - 1;
	f->port = mem_zalloc(alloc, config->path_ports * sizeof(*f->port), 64);
	f->guid = mem_zalloc(alloc, (f->guid_mask + GUID_WAYS) * sizeof(*f->guid), 64);
	f->graph =
		graph_create(alloc, config->path_switches, config->path_links, config->path_routes);
	if (f->port == NULL || f->guid == NULL || f->graph == NULL) {
		fabric_destroy(f);
		return NULL;
	}
	return f;
}

static void
stop_building(struct fabric *f)
{
	if (f->building != NULL)
		store_unhold(f->reader, f->building);
	f->building = NULL;
}

void
fabric_destroy(struct fabric *f)
{
	if (f == NULL)
		return;
	stop_building(f);
	graph_destroy(f->graph);
	mem_free(f->alloc, f->guid);
	mem_free(f->alloc, f->port);
	mem_free(f->alloc, f);
}

void
fabric_sync(struct fabric *f)
{
	uint64_t number;
	bool changed = false;
	unsigned int i;

	if (f->graph_old)
		f->graph_current = f->graph_old = false;
	f->version = store_current(f->reader);
	number = store_version_number(f->version);
	if (number == f->seen)
		return;
	for (i = 0; i < TABLES; i++) {
		uint64_t at = store_table_changed(f->version, tables[i]);

		if (f->seen != UINT64_MAX && at == f->changed[i])
			continue;
		f->changed[i] = at;
		changed = true;
		if (i < GRAPH_TABLES)
			f->graph_current = false;
	}
	f->generation += changed;
	f->seen = number;
}

const struct store_version *
fabric_version(const struct fabric *f)
{
	return f->version;
}

uint32_t
fabric_generation(const struct fabric *f)
{
	return f->generation;
}

const struct port_view *
fabric_lid(struct fabric *f, uint16_t lid)
{
	struct port_view *p = &f->port[lid & f->mask];

	if (p->generation == f->generation && lid != 0 && p->lid == lid)
		return p;
	if (!port_view_lid(f->version, lid, &f->direct))
		return NULL;
	/* all LIDs of an LMC use the base LID's slot */
	p = &f->port[f->direct.lid & f->mask];
	*p = f->direct;
	p->generation = f->generation;
	return p;
}

const struct port_view *
fabric_guid(struct fabric *f, uint64_t guid)
{
	uint64_t hash = guid * UINT64_C(0x9E3779B97F4A7C15);
	struct guid_slot *s = &f->guid[(hash >> 32) & f->guid_mask];
	unsigned int i;
	uint16_t lid;

	for (i = 0; i < GUID_WAYS; i++)
		if (s[i].guid == guid && s[i].generation == f->generation)
			return fabric_lid(f, s[i].lid);
	lid = port_lid_of_guid(f->version, guid);
	if (lid == 0)
		return NULL;
	for (i = 0; i < GUID_WAYS && s[i].generation == f->generation; i++)
		;
	if (i == GUID_WAYS)
		i = f->victim++ % GUID_WAYS;
	s[i] = (struct guid_slot){ guid, f->generation, lid };
	return fabric_lid(f, lid);
}

const struct port_view *
fabric_gid(struct fabric *f, const uint8_t *gid)
{
	return gid_in_subnet(f->gid_prefix, gid) ? fabric_guid(f, get_be64(gid + 8)) : NULL;
}

/* True if the tables have changed since the version that the graph is being built from. */
static bool
building_outdated(const struct fabric *f)
{
	return memcmp(f->building_changed, f->changed, sizeof(f->building_changed)) != 0;
}

static bool
begin_building(struct fabric *f)
{
	if (store_hold(f->reader, f->version) != 0)
		return false;
	f->building = f->version;
	graph_begin(f->graph, f->version);
	memcpy(f->building_changed, f->changed, sizeof(f->building_changed));
	return true;
}

bool
fabric_ready(struct fabric *f, unsigned int *budget)
{
	if (f->graph_current)
		return true;
	/*
		 * Links may change faster than they can be read. After RESTARTS_MAX restarts finish
		 * the graph anyway: one that is a few changes old is better than none.
		 */
	if (f->building != NULL &&
		(store_stale(f->building) ||
			(building_outdated(f) && f->restarts < RESTARTS_MAX))) {
		stop_building(f);
		f->restarts++;
	}
	if (f->building == NULL && !begin_building(f))
		return false;
	if (!graph_build(f->graph, budget))
		return false;
	f->graph_current = true;
	f->graph_old = building_outdated(f);
	stop_building(f);
	f->restarts = 0;
	return true;
}

void
fabric_pause(struct fabric *f)
{
	stop_building(f);
}

/* No forwarding tables: find the shortest route in the graph. */
static int
fabric_search(struct fabric *f, const struct port_view *a, const struct port_view *b,
	struct walk *w)
{
	uint16_t from = a->node_type == NODE_TYPE_SWITCH ? a->lid : a->link_lid;
	uint16_t to = b->node_type == NODE_TYPE_SWITCH ? b->lid : b->link_lid;
	struct route inner;

	f->counts.searched++;
	/* two endports connected directly, without a switch */
	if (from == b->lid && to == a->lid && a->node_type != NODE_TYPE_SWITCH)
		return 0;
	if (from == to && graph_has_switch(f->graph, from))
		return 0;
	if (!graph_route(f->graph, from, to, &inner))
		return graph_overflow(f->graph) ? -ENOSPC : -ENETUNREACH;
	w->hops = inner.hops + 1;
	w->mtu = mtu_min(w->mtu, inner.mtu);
	w->rate = rate_min(w->rate, inner.rate);
	return 0;
}

int
fabric_route(struct fabric *f, const struct port_view *a, const struct port_view *b, uint16_t dlid,
	struct walk *w)
{
	struct walk ends = {
		.mtu = mtu_min(a->mtu, b->mtu),
		.rate = rate_min(a->rate, b->rate),
		.sls = UINT16_MAX,
	};
	int rc = -ENODATA;

	*w = ends;
	if (a->lid == b->lid)
		return 0;
	if (walk_possible(f->version))
		rc = walk_route(f->version, a, b, dlid, w);
	if (rc != -ENODATA) {
		f->counts.walked++;
		f->work += w->hops * WORK_PER_HOP;
		return rc;
	}
	*w = ends;
	return fabric_search(f, a, b, w);
}

unsigned int
fabric_work(struct fabric *f)
{
	unsigned int work = f->work + graph_work(f->graph);

	f->work = 0;
	return work;
}

const struct fabric_counts *
fabric_counts(const struct fabric *f)
{
	return &f->counts;
}
