/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RESOLVE_IP: choose the port from which a destination is reached, and its address, and wait for
 * the next hop's MAC. RESOLVE_ROUTE then has nothing left to ask: RoCE has no path records.
 */

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <event2/event.h>
#include <rte_cycles.h>

#include "engine/clients_private.h"
#include "engine/rdmacm_private.h"

#define WATCH_MS    10 /* between two looks at neighbours that are awaited */
#define WAIT_MS     2000 /* for a neighbour, if the program says nothing */
#define WAIT_MAX_MS 60000 /* whatever it says */
#define EVENTS_MAX  64 /* that a program has not fetched of one ID: it resolves no more */

/* --- which port --- */

static bool
gid_on_link(const struct port_gid *own, const union gid *gid)
{
	unsigned int bits = own->prefix_len, first = gid_is_ipv4(gid) ? 96 : 0, i;

	if (gid_is_ipv4(&own->gid) != gid_is_ipv4(gid))
		return false;
	for (i = first; i < first + bits; i++)
		if (((own->gid.raw[i / 8] ^ gid->raw[i / 8]) & 0x80 >> i % 8) != 0)
			return false;
	return true;
}

/* How well an address suits as the source of packets to @p dst; 0: not at all. */
static unsigned int
source_score(const struct port_attr *port, const struct port_gid *own, const union gid *dst)
{
	if (own->type != GID_ROCEV2 || gid_is_ipv4(&own->gid) != gid_is_ipv4(dst))
		return 0;
	if (gid_equal(&own->gid, dst))
		return 5;
	if (gid_on_link(own, dst))
		return port->up ? 4 : 3;
	if (!gid_is_zero(&own->gateway) && !gid_is_link_local(dst))
		return port->up ? 2 : 1;
	return 0;
}

/* The source address, of @p id->port if that is bound. @return false: there is no way */
static bool
choose_source(struct rdmacm_id *id, const union gid *dst)
{
	const struct link *l = id->program->engine->link;
	unsigned int i, k, score, best = 0;
	int only = id->port;

	for (i = 0; i < link_num_ports(l); i++) {
		const struct port_attr *port = link_port_attr(l, i);

		for (k = 0; k < port->num_gids && (only < 0 || (int)i == only); k++) {
			score = source_score(port, &port->gid[k], dst);
			if (score <= best)
				continue;
			best = score;
			id->port = (int)i;
			id->sgid_index = (uint16_t)k;
		}
	}
	return best > 0;
}

static bool
resolves_to_loopback(const union gid *gid)
{
	static const union gid loopback = { .raw = { [15] = 1 } };

	return gid_is_ipv4(gid) ? gid->raw[12] == 127 : gid_equal(gid, &loopback);
}

/* 127.0.0.1, ::1 and any: the first port's own address of the family, as the kernel's cma. */
static bool
choose_loopback(const struct rdmacm_id *id, struct rdmacm_address *dst)
{
	const struct link *l = id->program->engine->link;
	unsigned int i, k;

	for (i = 0; i < link_num_ports(l); i++) {
		const struct port_attr *port = link_port_attr(l, i);

		for (k = 0; k < port->num_gids; k++) {
			if (port->gid[k].type != GID_ROCEV2 ||
				gid_is_ipv4(&port->gid[k].gid) != (dst->family == AF_INET))
				continue;
			dst->gid = port->gid[k].gid;
			return true;
		}
	}
	return false;
}

/* --- resolving --- */

static void
resolve_restore(struct rdmacm_id *id)
{
	id->src = id->bound_src;
	id->port = id->bound_port;
}

static void
resolve_end(struct rdmacm_id *id, int status)
{
	if (status != 0)
		resolve_restore(id); /* the next destination may be on another port */
	id->state = status == 0 ? RDMACM_ADDR_RESOLVED : RDMACM_BOUND;
	rdmacm_event_put(id, status == 0 ? RDMACM_EVENT_ADDR_RESOLVED : RDMACM_EVENT_ADDR_ERROR,
		status);
}

static void
resolve_tick(struct rdmacm *r)
{
	static const struct timeval soon = { 0, WATCH_MS * 1000 };

	if (r->timer != NULL && !LIST_EMPTY(&r->waiting))
		evtimer_add(r->timer, &soon);
}

void
rdmacm_resolve_watch(struct rdmacm *r)
{
	uint64_t now = rte_get_tsc_cycles();
	struct rdmacm_id *id, *next;
	struct error err;

	for (id = LIST_FIRST(&r->waiting); id != NULL; id = next) {
		int rc = conn_path_hop(r->engine, &id->path, &err);

		next = LIST_NEXT(id, waiting_link);
		if (rc != 0 && now < id->deadline)
			continue;
		LIST_REMOVE(id, waiting_link);
		resolve_end(id, rc == 0 ? 0 : -ETIMEDOUT);
	}
	resolve_tick(r);
}

static void
resolve_wait(struct rdmacm_id *id, uint32_t timeout_ms)
{
	struct engine *e = id->program->engine;

	if (timeout_ms == 0)
		timeout_ms = WAIT_MS;
	if (timeout_ms > WAIT_MAX_MS)
		timeout_ms = WAIT_MAX_MS;
	id->state = RDMACM_ADDR_QUERY;
	id->deadline = rte_get_tsc_cycles() + e->hz / 1000 * timeout_ms;
	LIST_INSERT_HEAD(&e->rdmacm->waiting, id, waiting_link);
	resolve_tick(e->rdmacm);
}

void
rdmacm_use_neighbours(const struct engine *e, struct link_neighbours_used *used)
{
	const struct rdmacm_program *p;
	const struct rdmacm_id *id;
	uint32_t i;

	LIST_FOREACH(p, &e->rdmacm->programs, link)
		for (i = 0; i < p->limits.max_ids; i++) {
			id = p->id[i];
			if (id != NULL && id->state >= RDMACM_ADDR_QUERY &&
				id->state <= RDMACM_CONNECT)
				link_neighbour_use(used, id->path.neighbour);
		}
}

static int
resolve_path(struct rdmacm_id *id, struct error *err)
{
	struct engine *e = id->program->engine;
	const union gid user = clients_account(id->program->uid);
	struct conn_path_args args = {
		.ah = {
			.port = (uint16_t)id->port,
			.sgid_index = id->sgid_index,
			.dgid = id->dst.gid,
			.hop_limit = 64,
			.traffic_class = id->tos,
			.user = &user,
		},
	};

	return conn_path_plain(e, &args, &id->path, err);
}

/* The source address that the program leaves open is the chosen one from now on. */
static void
resolve_take_source(struct rdmacm_id *id)
{
	const struct port_attr *port =
		link_port_attr(id->program->engine->link, (unsigned int)id->port);

	if (rdmacm_address_is_any(&id->src))
		id->src.gid = port->gid[id->sgid_index].gid;
	id->src.family = id->dst.family;
}

static int
resolve_check(const struct rdmacm_id *id, const struct rdmacm_address *src,
	const struct rdmacm_address *dst, struct error *err)
{
	if (id->state != RDMACM_IDLE && id->state != RDMACM_BOUND)
		return error_set(err, EINVAL, "resolve: the ID is resolved, or used, already");
	if (id->events_waiting >= EVENTS_MAX)
		return error_set_limit(err, ENOBUFS,
			"resolve: %u events of the ID wait to be fetched", EVENTS_MAX);
	if (src->family != 0 && src->family != dst->family)
		return error_set(err, EINVAL, "resolve: addresses of two families");
	return 0;
}

/*
 * Addresses that lead nowhere are the event ADDR_ERROR, as in the kernel, where only a worker finds
 * it out. A limit that is reached is the command's own error, so that it is logged.
 */
static int
resolve_begin(struct rdmacm_call *c, const struct rdmacm_address *src, struct rdmacm_address *dst,
	uint32_t timeout_ms)
{
	struct rdmacm_id *id = c->id;
	struct rdmacm_address any = { .family = dst->family };
	bool own;
	int rc = resolve_check(id, src, dst, c->err);

	if (rc == 0 && id->state == RDMACM_IDLE) {
		if (dst->family == AF_INET)
			any.gid = gid_from_ipv4((const uint8_t[4]){ 0 });
		rc = rdmacm_bind(id, src->family != 0 ? src : &any, c->err);
	}
	if (rc != 0)
		return rc;
	own = resolves_to_loopback(&dst->gid) || rdmacm_address_is_any(dst);
	if (own && !choose_loopback(id, dst))
		return error_set(c->err, ENODEV, "resolve: no port has an address");
	id->dst = *dst;
	id->bound_src = id->src;
	id->bound_port = id->port;
	if (rdmacm_address_is_any(&id->src) && !choose_source(id, &dst->gid)) {
		resolve_end(id, -ENETUNREACH);
		return 0;
	}
	resolve_take_source(id);
	rc = resolve_path(id, c->err);
	if (rc != 0 && c->err->limit) {
		resolve_restore(id);
		return rc;
	}
	if (rc != 0)
		resolve_end(id, rc);
	else if (conn_path_hop(id->program->engine, &id->path, c->err) == 0)
		resolve_end(id, 0);
	else
		resolve_wait(id, timeout_ms);
	return 0;
}

int
rdmacm_resolve_ip(struct rdmacm_call *c)
{
	const struct rdma_ucm_resolve_ip *cmd = c->body;
	struct rdmacm_address src = { .family = 0 }, dst;
	int rc = rdmacm_address_read(&cmd->dst_addr, sizeof(cmd->dst_addr), &dst, c->err);

	if (rc == 0 && cmd->src_addr.sin6_family != AF_UNSPEC)
		rc = rdmacm_address_read(&cmd->src_addr, sizeof(cmd->src_addr), &src, c->err);
	return rc != 0 ? rc : resolve_begin(c, &src, &dst, cmd->timeout_ms);
}

int
rdmacm_resolve_addr(struct rdmacm_call *c)
{
	const struct rdma_ucm_resolve_addr *cmd = c->body;
	struct rdmacm_address src = { .family = 0 }, dst;
	int rc;

	if (cmd->reserved != 0 || cmd->dst_size > sizeof(cmd->dst_addr) ||
		cmd->src_size > sizeof(cmd->src_addr))
		return error_set(c->err, EINVAL, "resolve: src_size, dst_size: got %u, %u",
			cmd->src_size, cmd->dst_size);
	rc = rdmacm_address_read(&cmd->dst_addr, cmd->dst_size, &dst, c->err);
	if (rc == 0 && cmd->src_size > 0)
		rc = rdmacm_address_read(&cmd->src_addr, cmd->src_size, &src, c->err);
	return rc != 0 ? rc : resolve_begin(c, &src, &dst, cmd->timeout_ms);
}

int
rdmacm_resolve_route(struct rdmacm_call *c)
{
	if (c->id->state != RDMACM_ADDR_RESOLVED)
		return error_set(c->err, EINVAL, "resolve_route: resolve the address first");
	c->id->state = RDMACM_ROUTE_RESOLVED;
	rdmacm_event_put(c->id, RDMACM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}
