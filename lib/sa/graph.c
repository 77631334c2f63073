/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The graph: switches, links, and shortest routes by breadth-first search.
 */

#include <string.h>

#include "sa/graph.h"
#include "sa/layout.h"
#include "sa/port_view.h"
#include "sa/select.h"
#include "wire/bytes.h"

#define NONE    UINT16_MAX
#define MTU_TOP 5

struct edge {
	uint16_t to;
	uint8_t mtu;
	uint8_t rate;
};

enum build_step {
	BUILD_SWITCHES,
	BUILD_LINKS,
	BUILD_DONE,
};

struct graph {
	const struct allocator *alloc;
	uint32_t max_switches;
	uint32_t max_links;
	uint32_t max_rows;
	uint32_t switches;
	uint32_t links;
	uint32_t rows;
	uint32_t next_row; /* row to reuse next */
	unsigned int work;
	bool overflow;
	enum build_step step;
	const struct store_version *version;
	struct store_cursor cursor;
	uint32_t filling; /* switch whose links are being read */
	uint16_t *of_lid; /* LID -> switch */
	uint32_t *first; /* switch -> its first edge; first[switches] is the end */
	struct edge *edge;
	uint16_t *row_of; /* switch -> its row of routes */
	uint16_t *owner; /* row -> switch */
	struct route *route; /* rows of max_switches routes */
	uint16_t *queue;
};

void
graph_destroy(struct graph *g)
{
	if (g == NULL)
		return;
	mem_free(g->alloc, g->of_lid);
	mem_free(g->alloc, g->first);
	mem_free(g->alloc, g->edge);
	mem_free(g->alloc, g->row_of);
	mem_free(g->alloc, g->owner);
	mem_free(g->alloc, g->route);
	mem_free(g->alloc, g->queue);
	mem_free(g->alloc, g);
}

static void
graph_clear(struct graph *g)
{
	g->switches = 0;
	g->links = 0;
	g->rows = 0;
	g->next_row = 0;
	g->overflow = false;
	g->filling = 0;
	g->step = BUILD_SWITCHES;
	memset(g->of_lid, 0xFF, LID_UNICAST_END * sizeof(*g->of_lid));
	memset(g->row_of, 0xFF, g->max_switches * sizeof(*g->row_of));
	g->first[0] = 0;
}

/*
 * Allocate an empty graph; graph_begin() fills it. switches, links: the most it holds, each link
 * counted once per direction. routes: switches whose routes are cached. NULL: no memory, or a
 * number is out of range.
 */
struct graph *
graph_create(const struct allocator *alloc, uint32_t switches, uint32_t links, uint32_t routes)
{
	struct graph *g;

	if (switches == 0 || switches >= NONE || routes == 0 || routes >= NONE)
		return NULL;
	g = mem_zalloc(alloc, sizeof(*g), 64);
	if (g == NULL)
		return NULL;
	g->alloc = alloc;
	g->max_switches = switches;
	g->max_links = links;
	g->max_rows = routes;
	g->of_lid = mem_zalloc(alloc, LID_UNICAST_END * sizeof(*g->of_lid), 64);
	g->first = mem_zalloc(alloc, ((size_t)switches + 1) * sizeof(*g->first), 64);
	g->edge = mem_zalloc(alloc, ((size_t)links + 1) * sizeof(*g->edge), 64);
	g->row_of = mem_zalloc(alloc, switches * sizeof(*g->row_of), 64);
	g->owner = mem_zalloc(alloc, routes * sizeof(*g->owner), 64);
	g->route = mem_zalloc(alloc, (size_t)routes * switches * sizeof(*g->route), 64);
	g->queue = mem_zalloc(alloc, switches * sizeof(*g->queue), 64);
	if (g->of_lid == NULL || g->first == NULL || g->edge == NULL || g->row_of == NULL ||
		g->owner == NULL || g->route == NULL || g->queue == NULL) {
		graph_destroy(g);
		return NULL;
	}
	graph_clear(g);
	g->step = BUILD_DONE;
	return g;
}

void
graph_begin(struct graph *g, const struct store_version *v)
{
	graph_clear(g);
	g->version = v;
	store_seek(&g->cursor, v, SA_TABLE_SWITCH_INFO, 0);
}

static void
graph_add_switch(struct graph *g, uint16_t lid)
{
	if (lid >= LID_UNICAST_END || g->of_lid[lid] != NONE)
		return;
	if (g->switches == g->max_switches) {
		g->overflow = true;
		return;
	}
	g->of_lid[lid] = g->switches++;
}

static uint16_t
switch_of(const struct graph *g, uint16_t lid)
{
	return lid < LID_UNICAST_END ? g->of_lid[lid] : NONE;
}

/* Apply MTU and rate of one end of a link. @return false: the port is down */
static bool
end_of_link(const struct graph *g, uint16_t lid, uint8_t port, struct edge *e)
{
	const struct store_record *r =
		store_get(g->version, SA_TABLE_PORT_INFO, RID_LID(lid) | (uint32_t)port << 8);

	if (r == NULL)
		return true; /* no PortInfo: assume that it is up */
	if ((r->bytes[PORT_OFF_STATE] & 0xF) == PORT_STATE_DOWN)
		return false;
	e->mtu = mtu_min(e->mtu, port_info_mtu(r->bytes));
	e->rate = rate_min(e->rate, port_info_rate(r->bytes));
	return true;
}

/* LinkRecords are sorted by FromLID, and switches are numbered in that order: so are the edges. */
static void
graph_add_link(struct graph *g, const uint8_t *rec)
{
	uint16_t from_lid = get_be16(rec + LINK_OFF_FROM_LID);
	uint16_t to_lid = get_be16(rec + LINK_OFF_TO_LID);
	uint16_t from = switch_of(g, from_lid), to = switch_of(g, to_lid);
	struct edge e = { .to = to, .mtu = MTU_TOP };

	if (from == NONE || to == NONE || from == to)
		return;
	if (!end_of_link(g, from_lid, rec[LINK_OFF_FROM_PORT], &e) ||
		!end_of_link(g, to_lid, rec[LINK_OFF_TO_PORT], &e))
		return;
	if (g->links == g->max_links) {
		g->overflow = true;
		return;
	}
	while (g->filling < from)
		g->first[++g->filling] = g->links;
	g->edge[g->links++] = e;
}

bool
graph_build(struct graph *g, unsigned int *budget)
{
	const struct store_record *r;

	while (g->step != BUILD_DONE) {
		if (*budget == 0)
			return false;
		--*budget;
		r = store_next(&g->cursor, NULL);
		if (g->step == BUILD_SWITCHES && r != NULL) {
			graph_add_switch(g, r->rid >> 16);
		} else if (g->step == BUILD_SWITCHES) {
			g->step = BUILD_LINKS;
			store_seek(&g->cursor, g->version, SA_TABLE_LINK, 0);
		} else if (r != NULL) {
			graph_add_link(g, r->bytes);
		} else {
			while (g->filling < g->switches)
				g->first[++g->filling] = g->links;
			g->step = BUILD_DONE;
		}
	}
	return true;
}

bool
graph_overflow(const struct graph *g)
{
	return g->overflow;
}

bool
graph_has_switch(const struct graph *g, uint16_t lid)
{
	return switch_of(g, lid) != NONE;
}

static bool
route_better(const struct route *a, const struct route *b)
{
	if (a->mtu != b->mtu)
		return a->mtu > b->mtu;
	return a->rate != b->rate && rate_min(a->rate, b->rate) == b->rate;
}

/* Breadth-first search: all routes of h links are final before a route of h + 1 links is made. */
static void
fill_row(struct graph *g, uint16_t from, struct route *row)
{
	uint32_t head = 0, tail = 0, i;

	memset(row, 0, g->switches * sizeof(*row));
	row[from] = (struct route){ .mtu = MTU_TOP, .reached = true };
	g->queue[tail++] = from;
	while (head < tail) {
		uint16_t at = g->queue[head++];

		for (i = g->first[at]; i < g->first[at + 1]; i++) {
			const struct edge *e = &g->edge[i];
			struct route *known = &row[e->to];
			struct route made = {
				.hops = row[at].hops + 1,
				.mtu = mtu_min(row[at].mtu, e->mtu),
				.rate = rate_min(row[at].rate, e->rate),
				.reached = true,
			};

			if (!known->reached)
				g->queue[tail++] = e->to;
			else if (known->hops != made.hops || !route_better(&made, known))
				continue;
			*known = made;
		}
	}
	g->work += g->links;
}

static struct route *
graph_row(struct graph *g, uint16_t from)
{
	uint16_t row = g->row_of[from];

	if (row != NONE)
		return &g->route[(size_t)row * g->max_switches];
	if (g->rows < g->max_rows) {
		row = g->rows++;
	} else {
		row = g->next_row++ % g->max_rows;
		g->row_of[g->owner[row]] = NONE;
	}
	g->row_of[from] = row;
	g->owner[row] = from;
	fill_row(g, from, &g->route[(size_t)row * g->max_switches]);
	return &g->route[(size_t)row * g->max_switches];
}

bool
graph_route(struct graph *g, uint16_t from_lid, uint16_t to_lid, struct route *route)
{
	uint16_t from = switch_of(g, from_lid), to = switch_of(g, to_lid);

	if (from == NONE || to == NONE)
		return false;
	*route = graph_row(g, from)[to];
	return route->reached;
}

unsigned int
graph_work(struct graph *g)
{
	unsigned int work = g->work;

	g->work = 0;
	return work;
}
