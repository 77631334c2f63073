/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Own ports of appliances. Each has some of a few ports, which come and go; lib/engine/own_wish.c
 * has their records stored. The GUID of a port says whose it is.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/own_wish.h"
#include "fleet_sim.h"
#include "sa/layout.h"
#include "sa/owned.h"
#include "sa/server.h"
#include "wire/bytes.h"

#define PORTS     3 /* most of an appliance */
#define GUID      UINT64_C(0x02feed0000000000)
#define CHANGE_MS 4000 /* mean time between two changes of ports */

static uint64_t
port_guid(unsigned int app, unsigned int port)
{
	return GUID | (uint64_t)app << 8 | port;
}

/* --- what appliances have --- */

static void
app_port_add(struct sa_change *c, uint16_t attribute, unsigned int app, unsigned int port)
{
	c->type = sa_record_type(attribute);
	sa_put_named(c->type, "lid", c->rec, port + 1);
	if (attribute == SA_NODE) {
		sa_put_named(c->type, "port_guid", c->rec, port_guid(app, port));
	} else {
		sa_put_named(c->type, "port_num", c->rec, 1);
		sa_put_named(c->type, "base_lid", c->rec, port + 1);
	}
}

void
fleet_owned_renew(struct fleet_node *n)
{
	struct sa_change *c = calloc(2 * PORTS, sizeof(*c));
	unsigned int app = (unsigned int)(n->app - n->script->app), port, num = 0;
	uint8_t *bytes = malloc(OWNED_LEN_MAX);

	if (c == NULL || bytes == NULL)
		abort();
	for (port = 0; port < PORTS; port++)
		if (n->app->ports & 1u << port) {
			app_port_add(&c[num++], SA_NODE, app, port);
			app_port_add(&c[num++], SA_PORT_INFO, app, port);
		}
	own_wish_set(n->wish, bytes, owned_put(n->fleet->config.name, c, num, num, bytes));
	free(bytes);
	free(c);
}

static void
ports_change(struct sim *s, void *arg)
{
	struct fleet_script *fs = arg;
	unsigned int app = sim_below(s, fs->apps);
	struct fleet_app *a = &fs->app[app];

	if (fs->over)
		return;
	a->ports = sim_below(s, 1u << PORTS);
	sim_trace(s, "a%u: ports 0x%x", app, a->ports);
	if (a->node != NULL)
		fleet_owned_renew(a->node);
	sim_at(s, s->now + sim_wait(s, CHANGE_MS * SIM_MS), ports_change, fs);
}

void
fleet_owned_start(struct fleet_script *fs)
{
	unsigned int i;

	fs->own_ports = true;
	for (i = 0; i < fs->apps; i++) {
		fs->app[i].ports = 1 + sim_below(fs->sim, (1u << PORTS) - 1);
		fleet_owned_renew(fs->app[i].node);
	}
	sim_at(fs->sim, fs->sim->now + sim_wait(fs->sim, CHANGE_MS * SIM_MS), ports_change, fs);
}

/* --- what etcd has --- */

static const uint8_t *
record_of_table(const struct model_event *e, uint16_t attribute)
{
	const struct sa_record_type *t = sa_record_type(attribute);
	char head[16];

	snprintf(head, sizeof(head), "/p/r/%02x", t->table);
	return e != NULL && e->value != NULL && strncmp(e->key, head, strlen(head)) == 0 ? e->value
											 : NULL;
}

/* The port of a NodeRecord. @return false: it is not an appliance's own, or not of this kind */
static bool
port_of_record(const struct model_event *e, unsigned int *app, unsigned int *port)
{
	const uint8_t *rec = record_of_table(e, SA_NODE);
	uint64_t guid = rec != NULL ? get_be64(rec + NODE_OFF_PORT_GUID) : 0;

	if ((guid & ~UINT64_C(0xffffff)) != GUID)
		return false;
	*app = (unsigned int)(guid >> 8 & 0xffff);
	*port = guid & 0xff;
	return true;
}

/* True if the record's tail names this appliance. */
static bool
owner_is(const struct model_event *e, unsigned int app)
{
	size_t head = sa_record_type(SA_NODE)->len + 1;
	char name[16];

	snprintf(name, sizeof(name), "a%u", app);
	return e->len == head + strlen(name) && memcmp(e->value + head, name, strlen(name)) == 0;
}

static unsigned int
lid_of_key(const struct model_event *e)
{
	unsigned int lid = 0;

	sscanf(e->key + strlen("/p/r/00"), "%4x", &lid);
	return lid;
}

void
fleet_owned_wrote(struct fleet_script *fs, const struct model_event *e)
{
	const struct model_event *old =
		e->before != 0 ? &fs->net.model->event[e->before - 1] : NULL;
	unsigned int app, port, old_app, old_port;
	bool was = port_of_record(old, &old_app, &old_port);

	if (port_of_record(e, &app, &port)) {
		if (!owner_is(e, app))
			sim_fail(fs->sim, "port %u of a%u is stored as another's", port, app);
		if (get_be16(e->value) != lid_of_key(e))
			sim_fail(fs->sim, "port %u of a%u is stored under another LID", port, app);
	} else if (was && fs->calm && !fs->app[old_app].gone) {
		sim_fail(fs->sim, "port %u of a%u, which lives, is removed", old_port, old_app);
	}
}

/* How many records of a port etcd has. */
struct port_records {
	unsigned int nodes, infos;
};

static struct port_records
records_of_port(const struct etcd_model *m, unsigned int app, unsigned int port)
{
	size_t k = etcd_model_key(m, "/p/r/");
	struct port_records n = { 0, 0 };
	const struct model_event *e;
	unsigned int a, p;
	char info[32];

	for (; k < m->keys && strncmp(m->key[k].key, "/p/r/", 5) == 0; k++) {
		e = &m->event[m->key[k].last];
		if (!port_of_record(e, &a, &p) || a != app || p != port)
			continue;
		n.nodes++;
		snprintf(info, sizeof(info), "/p/r/%02x%.4s0100",
			sa_record_type(SA_PORT_INFO)->table, e->key + strlen("/p/r/00"));
		n.infos += etcd_model_at(m, info, m->revision) != NULL;
	}
	return n;
}

bool
fleet_owned_right(const struct fleet_script *fs, char *why, size_t size)
{
	unsigned int app, port;

	for (app = 0; app < fs->apps; app++)
		for (port = 0; port < PORTS; port++) {
			const struct fleet_app *a = &fs->app[app];
			struct port_records n = records_of_port(fs->net.model, app, port);
			bool there = !a->gone && (a->ports & 1u << port) != 0;

			if (n.nodes == there && n.infos == there)
				continue;
			snprintf(why, size,
				"port %u of a%u, which %s, has %u NodeRecords and %u PortInfoRecords",
				port, app,
				a->gone         ? "is dead"
					: there ? "lives"
						: "was removed",
				n.nodes, n.infos);
			return false;
		}
	return true;
}
