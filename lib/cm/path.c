/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Paths: encode ours into a REQ or LAP; turn the one of a peer's REQ or LAP around (cm.md 2, 7). */

#include "cm/private.h"

#define HOPS_DEFAULT  64 /* used if struct av's hop_limit is 0 */
#define VL_NONE       15 /* in sl_to_vl: the port drops this SL */
#define RATE_RESERVED 1

const struct port_attr *
cm_port(const struct cm *cm, uint16_t port)
{
	return cm->config.port(cm->config.port_arg, port);
}

uint8_t
cm_packet_life(const struct cm *cm, const struct cm_path *path)
{
	return path->av.encap == ENCAP_IB ? path->packet_life : cm->limits.packet_life;
}

bool
cm_path_take_pkey(const struct cm *cm, struct cm_path *path, uint16_t pkey)
{
	const struct port_attr *port = cm_port(cm, path->av.port);
	int i = port_pkey_find(port, pkey);

	if (i < 0)
		return false;
	path->pkey_index = (uint16_t)i;
	path->pkey = port->pkey[i];
	return true;
}

/* --- paths that we send --- */

/* cm.md 7: HopLimit > 1 means a routed path */
static void
say_roce(const struct av *av, struct cm_msg_path *m)
{
	m->hop_limit = av->hop_limit != 0 ? av->hop_limit : HOPS_DEFAULT;
	m->subnet_local = m->hop_limit <= 1;
	m->local_lid = m->subnet_local ? 0 : PORT_LID_PERMISSIVE;
	m->remote_lid = m->local_lid;
}

static void
say_ib(const struct cm *cm, const struct cm_path *path, struct cm_msg_path *m)
{
	const struct port_attr *port = cm_port(cm, path->av.port);
	const struct av *av = &path->av;

	m->hop_limit = av->hop_limit;
	m->subnet_local = !av->grh;
	m->local_lid = av->slid;
	m->remote_lid = av->dlid;
	if (gid_is_zero(&m->local_gid) && port != NULL && path->sgid_index < port->num_gids)
		m->local_gid = port->gid[path->sgid_index].gid;
}

void
cm_path_say(const struct cm *cm, const struct cm_path *path, uint8_t ack_timeout,
	struct cm_msg_path *m)
{
	const struct av *av = &path->av;

	*m = (struct cm_msg_path){
		.local_gid = av->sgid,
		.remote_gid = av->dgid,
		.flow_label = av->flow_label,
		.rate = path->rate,
		.traffic_class = av->traffic_class,
		.sl = av->sl,
		.ack_timeout = ack_timeout,
	};
	if (av->encap == ENCAP_IB)
		say_ib(cm, path, m);
	else
		say_roce(av, m);
}

/* --- paths that a peer sends --- */

static enum gid_type
gid_type_of(enum encap encap)
{
	return encap == ENCAP_IB ? GID_IB : encap == ENCAP_ROCEV1 ? GID_ROCEV1 : GID_ROCEV2;
}

/* The port that has this GID; the one the message came in on is tried first. */
static const struct port_attr *
port_of_gid(const struct cm *cm, uint16_t first, const union gid *gid, enum gid_type type,
	int *index)
{
	const struct port_attr *port = cm_port(cm, first);
	uint16_t i;

	*index = port != NULL ? port_gid_find(port, gid, type) : -1;
	for (i = 0; *index < 0 && i < CM_PORTS_MAX; i++) {
		port = cm_port(cm, i);
		if (port != NULL)
			*index = port_gid_find(port, gid, type);
	}
	return *index >= 0 ? port : NULL;
}

/* The port that has this LID; if none has it, the one the message came in on. */
static const struct port_attr *
port_of_lid(const struct cm *cm, uint16_t first, uint16_t lid)
{
	const struct port_attr *port = cm_port(cm, first);
	uint16_t i;

	for (i = 0; i < CM_PORTS_MAX; i++) {
		if (port != NULL && port->ib && port_lid_own(port, lid))
			return port;
		port = cm_port(cm, i);
	}
	return cm_port(cm, first);
}

/*
 * True if LIDs alone address the path: within an IB subnet a sender may leave the GIDs zero (cm.md
 * 2).
 */
static bool
by_lid(const struct cm_msg_path *m, enum encap encap)
{
	return encap == ENCAP_IB && m->subnet_local;
}

static const struct port_attr *
port_named(const struct cm_rx *rx, const struct cm_msg_path *m, int *index)
{
	const struct av *av = &rx->peer->av;

	if (!by_lid(m, av->encap) || !gid_is_zero(&m->remote_gid))
		return port_of_gid(rx->cm, av->port, &m->remote_gid, gid_type_of(av->encap), index);
	*index = 0;
	return port_of_lid(rx->cm, av->port, m->remote_lid);
}

/*
 * Start from the address vector back to the sender; for another port, with that port's own fields.
 */
static void
start_from(const struct cm_rx *rx, const struct port_attr *port, struct av *av)
{
	*av = rx->peer->av;
	if (port->index == av->port)
		return;
	av->port = port->index;
	av->vlan = port->vlan;
	av->ethertype = port->ethertype;
	memcpy(av->smac, port->mac, sizeof(av->smac));
}

/* RoCEv2: both GIDs must be IPv4 or both IPv6. Sets the encapsulation to that IP version. */
static bool
family_fits(enum encap *encap, const struct cm_msg_path *m)
{
	bool v4 = gid_is_ipv4(&m->local_gid);

	if (*encap != ENCAP_ROCEV2_IPV4 && *encap != ENCAP_ROCEV2_IPV6)
		return true;
	*encap = v4 ? ENCAP_ROCEV2_IPV4 : ENCAP_ROCEV2_IPV6;
	return gid_is_ipv4(&m->remote_gid) == v4;
}

static uint16_t
back_ib(const struct cm_msg_path *m, const struct port_attr *port, struct cm_path *path)
{
	struct av *av = &path->av;

	av->grh = !m->subnet_local;
	av->vl = port->sl_to_vl[m->sl];
	if (av->vl == VL_NONE)
		return CM_REJ_INVALID_SL;
	/* a permissive LID means a router is between us: keep the LIDs of the received packet */
	if (m->remote_lid != PORT_LID_PERMISSIVE) {
		if (!port_lid_own(port, m->remote_lid))
			return CM_REJ_INVALID_LID;
		av->slid = m->remote_lid;
	}
	if (m->local_lid != PORT_LID_PERMISSIVE) {
		if (m->local_lid == 0 || m->local_lid >= PORT_LID_MULTICAST)
			return CM_REJ_INVALID_LID;
		av->dlid = m->local_lid;
	}
	if (av->grh && m->hop_limit < 2)
		return CM_REJ_INVALID_HOP_LIMIT;
	path->src_path_bits = (uint8_t)(av->slid & ((1u << port->lmc) - 1));
	return 0;
}

/*
 * Anti-reflection (a choice): on RoCE each path, also an alternate one, must lead back to the GID
 * that the message came from; in a LAP of connection c, also to the address that c began with. A
 * path that named a victim's GID would make us send to a host that asked for nothing. On native IB
 * a path may lead to another port of the peer.
 */
static bool
leads_back(const struct cm_rx *rx, const struct cm_conn *c, const struct cm_msg_path *m)
{
	const struct av *from = &rx->peer->av;

	return from->encap == ENCAP_IB || gid_equal(&m->local_gid, &from->dgid) ||
		(c != NULL && gid_equal(&m->local_gid, &c->peer->addr));
}

uint16_t
cm_path_back(const struct cm_rx *rx, const struct cm_conn *c, const struct cm_msg_path *m,
	struct cm_path *path)
{
	enum encap encap = rx->peer->av.encap;
	const struct port_attr *port;
	int gid;

	if (!leads_back(rx, c, m))
		return CM_REJ_INVALID_GID;
	port = port_named(rx, m, &gid);
	if (port == NULL || (gid_is_zero(&m->local_gid) && !by_lid(m, encap)))
		return CM_REJ_INVALID_GID;
	if (m->rate == RATE_RESERVED)
		return CM_REJ_INVALID_RATE;
	*path = (struct cm_path){
		.neighbour = rx->peer->neighbour,
		.sgid_index = (uint16_t)gid,
		.mtu = port->active_mtu,
		.rate = m->rate,
		.packet_life = m->ack_timeout > 0 ? m->ack_timeout - 1 : 0,
		.present = true,
	};
	start_from(rx, port, &path->av);
	if (!family_fits(&path->av.encap, m))
		return CM_REJ_INVALID_GID;
	path->av.sgid = port->gid[gid].gid;
	path->av.dgid = m->local_gid;
	path->av.sl = m->sl;
	path->av.traffic_class = m->traffic_class;
	path->av.flow_label = m->flow_label;
	path->av.hop_limit = m->hop_limit;
	return encap == ENCAP_IB ? back_ib(m, port, path) : 0;
}

/* --- reasons --- */

/* X(primary, alternate, APR status): cm.md 3 */
/* clang-format off */
#define PATH_REASONS(X)                                                                            \
	X(INVALID_GID, INVALID_ALT_GID, INVALID_GID)                                               \
	X(INVALID_LID, INVALID_ALT_LID, INVALID_LID)                                               \
	X(INVALID_SL, INVALID_ALT_SL, INVALID_SL)                                                  \
	X(INVALID_HOP_LIMIT, INVALID_ALT_HOP_LIMIT, INVALID_HOP_LIMIT)                             \
	X(INVALID_RATE, INVALID_ALT_RATE, INVALID_RATE)
/* clang-format on */

uint16_t
cm_reason_alternate(uint16_t reason)
{
	static const uint16_t alternates[CM_REASONS] = {
#define X(primary, alternate, apr) [CM_REJ_##primary] = CM_REJ_##alternate,
		PATH_REASONS(X)
#undef X
	};

	return alternates[reason];
}

uint8_t
cm_reason_apr(uint16_t reason)
{
	static const uint8_t statuses[CM_REASONS] = {
#define X(primary, alternate, apr) [CM_REJ_##primary] = CM_APR_##apr,
		PATH_REASONS(X)
#undef X
	};

	return statuses[reason];
}
