/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * If the SA's database is empty, or there is a fleet (own_ports_fleet.c), it gets records of this
 * appliance's own RoCE ports, so that a new SA is not empty: one channel adapter, its ports, their
 * addresses and P_Keys, and links between ports that are joined back to back. A RoCE port has no
 * LID, so port i gets LID i + 1. Records of native IB ports come from their subnet management agent
 * (own_ports_follow.c).
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/subnet.h"
#include "sa/owned.h"
#include "wire/bytes.h"

#define RECORDS_A_PORT 5

struct filler {
	struct engine *engine;
	struct sa_change *changes;
	size_t num;
	uint64_t node_guid;
};

static uint16_t
own_ports_lid(const struct port_attr *port)
{
	return (uint16_t)(port->index + 1);
}

/* The interface ID of the port's link-local address, so that path queries by GID find the port. */
static uint64_t
own_ports_guid(const struct port_attr *port)
{
	unsigned int i;

	for (i = 0; i < port->num_gids; i++)
		if (gid_is_link_local(&port->gid[i].gid) && !gid_is_ipv4(&port->gid[i].gid))
			return get_be64(port->gid[i].gid.raw + 8);
	return port_eui64(port->mac);
}

static struct sa_change *
own_ports_add(struct filler *f, uint16_t attribute)
{
	struct sa_change *c = &f->changes[f->num++];

	c->type = sa_record_type(attribute);
	return c;
}

static void
own_ports_put(struct sa_change *c, const char *field, uint64_t value)
{
	sa_put_named(c->type, field, c->rec, value);
}

static void
own_ports_add_node(struct filler *f, const struct port_attr *port)
{
	struct sa_change *c = own_ports_add(f, SA_NODE);
	char text[64];

	own_ports_put(c, "lid", own_ports_lid(port));
	own_ports_put(c, "base_version", 1);
	own_ports_put(c, "class_version", 1);
	own_ports_put(c, "node_type", 1);
	own_ports_put(c, "num_ports", link_num_ports(f->engine->link));
	own_ports_put(c, "sys_guid", f->node_guid);
	own_ports_put(c, "node_guid", f->node_guid);
	own_ports_put(c, "port_guid", own_ports_guid(port));
	own_ports_put(c, "partition_cap", PORT_PKEYS_MAX);
	own_ports_put(c, "port_num", port->index + 1u);
	snprintf(text, sizeof(text), "polca %s", port->name);
	sa_parse(sa_field_named(c->type, "node_desc"), c->rec, text, NULL);
}

static void
put_speed(struct filler *f, struct sa_change *c, const struct port_attr *port)
{
	const struct port_speed *s = port_speed(f->engine->link, port->index);

	own_ports_put(c, "capability_mask",
		SMA_CAP_ANY_PORT | (s->speed_ext != 0 ? SMA_CAP_EXT_SPEEDS : 0));
	own_ports_put(c, "link_width_enabled", s->width);
	own_ports_put(c, "link_width_supported", s->width);
	own_ports_put(c, "link_width_active", s->width);
	own_ports_put(c, "link_speed_enabled", s->speed);
	own_ports_put(c, "link_speed_supported", s->speed);
	own_ports_put(c, "link_speed_active", s->speed);
	own_ports_put(c, "link_speed_ext_enabled", s->speed_ext);
	own_ports_put(c, "link_speed_ext_supported", s->speed_ext);
	own_ports_put(c, "link_speed_ext_active", s->speed_ext);
}

static void
add_port_info(struct filler *f, const struct port_attr *port)
{
	struct sa_change *c = own_ports_add(f, SA_PORT_INFO);

	own_ports_put(c, "lid", own_ports_lid(port));
	own_ports_put(c, "port_num", port->index + 1u);
	own_ports_put(c, "gid_prefix", LINK_LOCAL_PREFIX);
	own_ports_put(c, "base_lid", own_ports_lid(port));
	own_ports_put(c, "local_port_num", port->index + 1u);
	own_ports_put(c, "port_state", port->up ? 4 : 1);
	own_ports_put(c, "port_phys_state", port->up ? 5 : 2);
	own_ports_put(c, "neighbor_mtu", port_mtu_code(port->active_mtu));
	own_ports_put(c, "mtu_cap", port_mtu_code(port->active_mtu));
	own_ports_put(c, "vl_cap", 1);
	own_ports_put(c, "oper_vls", 1);
	own_ports_put(c, "guid_cap", GUIDS_IN_BLOCK);
	own_ports_put(c, "subnet_timeout", port->subnet_timeout);
	own_ports_put(c, "resp_time_value", f->engine->config.mad.resp_time);
	put_speed(f, c, port);
}

static void
add_guids(struct filler *f, const struct port_attr *port)
{
	struct sa_change *c = own_ports_add(f, SA_GUID_INFO);
	uint64_t guids[GUIDS_IN_BLOCK] = { own_ports_guid(port) }, guid;
	unsigned int i, k, n = 1;
	char name[16];

	for (i = 0; i < port->num_gids && n < GUIDS_IN_BLOCK; i++) {
		guid = get_be64(port->gid[i].gid.raw + 8);
		for (k = 0; k < n && guids[k] != guid; k++)
			;
		if (k == n)
			guids[n++] = guid;
	}
	own_ports_put(c, "lid", own_ports_lid(port));
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "guid%u", i);
		own_ports_put(c, name, guids[i]);
	}
}

static void
add_pkeys(struct filler *f, const struct port_attr *port)
{
	struct sa_change *c = own_ports_add(f, SA_PKEY_TABLE);
	char text[PKEYS_IN_BLOCK * 8] = "";
	unsigned int i;

	own_ports_put(c, "lid", own_ports_lid(port));
	own_ports_put(c, "port_num", port->index + 1u);
	for (i = 0; i < PKEYS_IN_BLOCK; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s0x%04x",
			i > 0 ? "," : "", i < port->num_pkeys ? port->pkey[i] : 0);
	sa_parse(sa_field_named(c->type, "pkeys"), c->rec, text, NULL);
}

static void
own_ports_add_link(struct filler *f, const struct port_attr *port)
{
	const struct link_config *config = &f->engine->config.link;
	const struct port_attr *peer;
	struct sa_change *c;
	unsigned int i;

	for (i = 0; i < config->num_ports; i++) {
		if (strcmp(config->port[port->index].back_to_back, config->port[i].name) != 0)
			continue;
		peer = link_port_attr(f->engine->link, i);
		c = own_ports_add(f, SA_LINK);
		own_ports_put(c, "from_lid", own_ports_lid(port));
		own_ports_put(c, "from_port", port->index + 1u);
		own_ports_put(c, "to_port", peer->index + 1u);
		own_ports_put(c, "to_lid", own_ports_lid(peer));
	}
}

static bool
own_ports_store_is_empty(struct engine *e)
{
	const struct store_version *v = store_current(store_reader(e->store, e->num_workers));
	unsigned int table;

	for (table = 0; table < sa_num_tables; table++)
		if (store_count(v, table) > 0)
			return false;
	return true;
}

/* Records of all RoCE ports. The caller frees .changes; NULL: no memory */
static struct filler
own_ports_fill(struct engine *e)
{
	unsigned int i, n = link_num_ports(e->link);
	struct filler f = { .engine = e, .node_guid = node_guid(e) };

	f.changes = calloc(n, RECORDS_A_PORT * sizeof(f.changes[0]));
	for (i = 0; i < n && f.changes != NULL; i++) {
		const struct port_attr *port = link_port_attr(e->link, i);

		if (port->ib)
			continue; /* own_ports_follow.c */
		own_ports_add_node(&f, port);
		add_port_info(&f, port);
		add_guids(&f, port);
		add_pkeys(&f, port);
		own_ports_add_link(&f, port);
	}
	return f;
}

int
own_ports_store(struct engine *e, struct error *err)
{
	struct filler f;
	int ret;

	if (!own_ports_store_is_empty(e))
		return 0;
	f = own_ports_fill(e);
	if (f.changes == NULL)
		return error_set(err, ENOMEM, "no memory for the SA's own ports");
	ret = sa_change(e->sa, f.changes, f.num, err);
	free(f.changes);
	return ret;
}

size_t
own_ports_request(struct engine *e, const struct sa_change *native, size_t num_native,
	uint8_t *bytes)
{
	struct filler f = own_ports_fill(e);
	struct sa_change *all = NULL;
	size_t len = 0;

	if (f.changes != NULL)
		all = reallocarray(f.changes, f.num + num_native + 1, sizeof(*all));
	if (all == NULL) {
		free(f.changes);
		return 0;
	}
	if (num_native > 0)
		memcpy(all + f.num, native, num_native * sizeof(*all));
	len = owned_put(fleet_name(e->fleet), all, f.num + num_native, f.num, bytes);
	free(all);
	return len;
}
