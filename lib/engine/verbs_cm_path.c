/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The path of a connection that we open. RoCE: wait until the next hop's MAC is resolved, because a
 * REQ that is lost without it is repeated only after seconds. Native IB: query the SA, if there is
 * one, for a PathRecord, unless the caller gave LID, GID, MTU and packet life time.
 */

#include <errno.h>
#include <string.h>

#include "engine/connections.h"
#include "engine/verbs_private.h"

#define TIME_CODES 32 /* 4.096 us * 2^n, five bits */

static int
conn_path_check(struct engine *e, const struct conn_path_args *a, const struct port_attr **found,
	struct error *err)
{
	const struct port_attr *port = known_port(e, a->ah.port, err);

	if (port == NULL || check_pkey(port, a->pkey_index, err) != 0)
		return -EINVAL;
	if (a->path_mtu > port->active_mtu)
		return error_set(err, EINVAL, "path_mtu: got %u, but %s carries no more than %u",
			a->path_mtu, port->name, port->active_mtu);
	if (a->path_mtu != 0 && (a->path_mtu < 256 || (a->path_mtu & (a->path_mtu - 1)) != 0))
		return error_set(err, EINVAL,
			"path_mtu: got %u, expected 256, 512, 1024, 2048 or 4096", a->path_mtu);
	if (a->packet_life >= TIME_CODES)
		return error_set(err, EINVAL, "packet_life: got %u, expected 0 to %d",
			a->packet_life, TIME_CODES - 1);
	*found = port;
	return 0;
}

int
conn_path_plain(struct engine *e, const struct conn_path_args *a, struct cm_path *path,
	struct error *err)
{
	const struct port_attr *port;
	int ret = conn_path_check(e, a, &port, err);

	if (ret != 0)
		return ret;
	*path = (struct cm_path){
		.sgid_index = a->ah.sgid_index,
		.src_path_bits = a->ah.src_path_bits,
		.pkey_index = a->pkey_index,
		.pkey = port->pkey[a->pkey_index],
		.mtu = a->path_mtu != 0 ? a->path_mtu : port->active_mtu,
		.packet_life = a->packet_life != 0 ? a->packet_life : e->config.cm.packet_life,
		.present = true,
	};
	ret = ah_resolve(e, &a->ah, &path->av, &path->neighbour, err);
	/* the REQ contains GIDs in any case; packets need a GRH only to pass a router */
	path->av.grh = port->ib && a->ah.hop_limit > 1;
	return ret;
}

/* --- native IB --- */

static bool
conn_path_has_sa(const struct engine *e, const struct port_attr *port)
{
	return port->sm_lid != 0 || engine_sa_enabled(e);
}

static bool
conn_path_is_complete(const struct conn_path_args *a)
{
	return a->ah.dlid != 0 && !gid_is_zero(&a->ah.dgid) && a->path_mtu != 0 &&
		a->packet_life != 0;
}

int
conn_path_begin(struct engine *e, const struct conn_path_args *a, struct cm_path *path,
	struct error *err)
{
	const struct port_attr *port;
	int ret = conn_path_check(e, a, &port, err);

	if (ret != 0)
		return ret;
	if (port->ib && a->ah.dlid == 0 && gid_is_zero(&a->ah.dgid))
		return error_set(err, EINVAL, "peer: %s is an InfiniBand port: its LID or GID",
			port->name);
	if (port->ib && !conn_path_is_complete(a) && conn_path_has_sa(e, port))
		return CONN_PATH_ASK;
	ret = conn_path_plain(e, a, path, err);
	if (ret != 0)
		return ret;
	return path->neighbour == PATH_NO_NEIGHBOUR ? CONN_PATH_READY : CONN_PATH_NEXT_HOP;
}

static void
select_number(struct sa_query *q, const char *name, uint64_t value)
{
	const struct sa_field *f = sa_field_named(q->type, name);

	sa_put(f, q->tmpl, value);
	q->mask |= sa_mask(q->type, f, SA_V2);
}

static void
select_gid(struct sa_query *q, const char *name, const union gid *gid)
{
	const struct sa_field *f = sa_field_named(q->type, name);

	memcpy(q->tmpl + f->offset / 8, gid->raw, sizeof(gid->raw));
	q->mask |= sa_mask(q->type, f, SA_V2);
}

/*
 * The path that is asked for: one to the peer, usable in both directions, in this partition, with
 * what else the caller has chosen. The record then agrees with the caller, or there is no path: an
 * SL that the SA did not choose could lock the fabric up.
 */
static void
select_path(struct sa_query *q, const struct port_attr *port, const struct conn_path_args *a)
{
	if (gid_is_zero(&a->ah.dgid) || a->ah.src_path_bits != 0)
		select_number(q, "slid", port_slid(port, a->ah.src_path_bits));
	if (!gid_is_zero(&a->ah.dgid)) {
		select_gid(q, "sgid", &port->gid[a->ah.sgid_index].gid);
		select_gid(q, "dgid", &a->ah.dgid);
	}
	if (a->ah.dlid != 0)
		select_number(q, "dlid", a->ah.dlid);
	if (a->ah.sl != 0)
		select_number(q, "sl", a->ah.sl);
	if (a->ah.traffic_class != 0)
		select_number(q, "tclass", a->ah.traffic_class);
	if (a->ah.flow_label != 0)
		select_number(q, "flow_label", a->ah.flow_label);
	select_number(q, "reversible", 1);
	select_number(q, "numb_path", 1);
	select_number(q, "pkey", port->pkey[a->pkey_index]);
}

int
conn_path_ask(struct engine *e, const struct conn_path_args *a, uint32_t timeout_ms,
	uint32_t *query, struct error *err)
{
	const struct port_attr *port = link_port_attr(e->link, a->ah.port);
	struct engine_ah sa = { .port = a->ah.port, .dlid = port->sm_lid, .sl = port->sm_sl };
	struct engine_sa_query q = {
		.query = {
			.op = SA_OP_GET,
			.version = SA_V2,
			.type = sa_record_type(SA_PATH),
			.resp_time = SA_RESP_TIME_ASK,
		},
		/* our own SA if PortInfo.MasterSMLID is unset or one of our LIDs */
		.own = engine_sa_enabled(e) &&
			(port->sm_lid == 0 || port_lid_own(port, port->sm_lid)),
		.ah = &sa,
		.timeout_ms = timeout_ms,
		.worker = -1,
	};

	if (a->ah.sgid_index >= port->num_gids)
		return error_set(err, EINVAL, "sgid_index: got %u, %s has 0..%u", a->ah.sgid_index,
			port->name, port->num_gids - 1);
	select_path(&q.query, port, a);
	return engine_sa_query(e, &q, query, err);
}

/*
 * Take the path from the record, but the packet life time that the caller has set. The other values
 * that the caller chose were part of the request.
 */
static int
conn_path_take_record(struct engine *e, const struct engine_sa_record *r, struct conn_path_args *a,
	struct cm_path *path, struct error *err)
{
	const struct port_attr *port = link_port_attr(e->link, a->ah.port);
	uint64_t slid = sa_get_named(r->type, "slid", r->bytes);
	uint64_t mtu = 128u << RTE_MIN(sa_get_named(r->type, "mtu", r->bytes), 5u);
	int ret;

	a->ah.dlid = (uint16_t)sa_get_named(r->type, "dlid", r->bytes);
	a->ah.sl = (uint8_t)sa_get_named(r->type, "sl", r->bytes);
	a->ah.src_path_bits = (uint8_t)(slid & ((1u << port->lmc) - 1));
	a->ah.traffic_class = (uint8_t)sa_get_named(r->type, "tclass", r->bytes);
	a->ah.flow_label = (uint32_t)sa_get_named(r->type, "flow_label", r->bytes);
	a->ah.hop_limit = (uint8_t)sa_get_named(r->type, "hop_limit", r->bytes);
	memcpy(a->ah.dgid.raw, r->bytes + sa_field_named(r->type, "dgid")->offset / 8,
		sizeof(a->ah.dgid.raw));
	if (a->packet_life == 0)
		a->packet_life =
			(uint8_t)(sa_get_named(r->type, "packet_life", r->bytes) % TIME_CODES);
	ret = conn_path_plain(e, a, path, err);
	if (ret != 0)
		return ret;
	path->mtu = (uint16_t)RTE_MIN(path->mtu, mtu);
	path->rate = (uint8_t)sa_get_named(r->type, "rate", r->bytes);
	return 0;
}

int
conn_path_answer(struct engine *e, uint32_t query, struct conn_path_args *a, struct cm_path *path,
	struct error *err)
{
	struct engine_sa_progress p;
	struct engine_sa_record r;
	uint64_t cursor = 0;
	int ret = engine_sa_progress(e, query, &p, err);

	if (ret != 0)
		return ret;
	if (!p.done)
		return -EAGAIN;
	if (p.end == MAD_END_OK && engine_sa_next(e, query, &cursor, &r))
		ret = conn_path_take_record(e, &r, a, path, err);
	else if (p.end == MAD_END_STATUS || p.end == MAD_END_OK)
		ret = error_set(err, ENOENT, "the SA knows no path to the peer (%s)",
			mad_status_name(p.status));
	else if (a->ah.dlid != 0)
		ret = conn_path_plain(e, a, path, err); /* the LID is enough to reach the peer */
	else
		ret = error_set(err, ETIMEDOUT, "the SA did not answer (%s)", mad_end_name(p.end));
	engine_sa_cancel(e, query, NULL);
	return ret;
}

/* --- RoCE --- */

int
conn_path_hop(struct engine *e, const struct cm_path *path, struct error *err)
{
	struct link_neighbour_info hop;
	uint32_t cursor = path->neighbour;
	char text[GID_STRLEN];

	if (path->neighbour == PATH_NO_NEIGHBOUR)
		return 0;
	/* the next entry of the table is another's, if this one was given up */
	if (!link_neighbour_next(e->link, &cursor, &hop) || cursor != path->neighbour + 1)
		return error_set(err, EAGAIN, "the next hop is no longer known");
	if (hop.resolved)
		return 0;
	return error_set(err, EAGAIN,
		"next hop %s does not answer %s: is it up, on this link, and the address right?",
		gid_print(&hop.gid, text), gid_is_ipv4(&hop.gid) ? "ARP" : "neighbour discovery");
}
