/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <string.h>

#include "ctl/methods.h"

/* May packets to dgid come from this address? */
static bool
suits(const struct port_gid *own, const union gid *dgid)
{
	return own->type != GID_ROCEV1 && gid_is_ipv4(&own->gid) == gid_is_ipv4(dgid) &&
		gid_is_link_local(&own->gid) == gid_is_link_local(dgid);
}

/* The first address in the peer's subnet, else the first of its family and scope. */
static int
pick_sgid(const struct port_attr *port, const union gid *dgid)
{
	int best = -1;
	unsigned int i;

	for (i = 0; i < port->num_gids; i++) {
		if (!suits(&port->gid[i], dgid))
			continue;
		if (gid_same_subnet(&port->gid[i].gid, dgid, port->gid[i].prefix_len))
			return (int)i;
		if (best < 0)
			best = (int)i;
	}
	return best;
}

/* Somebody must be named, in the way of the port's kind. */
static int
check_ah_peer(struct rpc_call *call, const struct ah_args *a, uint16_t port)
{
	bool ib;

	if (ctl_check_port(call, port) != 0)
		return -EINVAL;
	if (!gid_is_zero(&a->dgid))
		return 0;
	ib = link_port_attr(engine_link(call->e), port)->ib;
	if (ib && a->dlid == 0)
		return error_set(&call->err, EINVAL,
			"dlid: missing, local port %u is a native InfiniBand port: give the peer's LID",
			port);
	if (!ib && a->dlid != 0)
		return error_set(&call->err, EINVAL,
			"dlid: got %u, but local port %u is a RoCE port: give dgid, the peer's address, or another port",
			a->dlid, port);
	if (!ib)
		return error_set(&call->err, EINVAL,
			"dgid: missing, local port %u is a RoCE port: give the peer's address",
			port);
	return 0;
}

int
make_ah(struct rpc_call *call, const struct ah_args *a, uint16_t port, struct engine_ah *ah)
{
	char text[GID_STRLEN];
	int index = a->sgid_index;

	if (check_ah_peer(call, a, port) != 0)
		return -EINVAL;
	if ((a->present & AH_SGID_INDEX) == 0)
		index = gid_is_zero(&a->dgid)
			? 0
			: pick_sgid(link_port_attr(engine_link(call->e), port), &a->dgid);
	if (index < 0)
		return error_set(&call->err, EINVAL,
			"dgid: got %s, but port %u has no address of that kind (port_list shows what it has)",
			gid_print(&a->dgid, text), port);
	*ah = (struct engine_ah){
		.port = port,
		.sgid_index = (uint16_t)index,
		.dgid = a->dgid,
		.traffic_class = a->traffic_class,
		.flow_label = a->flow_label,
		.hop_limit = a->hop_limit,
		.sl = a->sl,
		.dlid = a->dlid,
		.has_dmac = (a->present & AH_DMAC) != 0,
	};
	memcpy(ah->dmac, a->dmac, sizeof(ah->dmac));
	return 0;
}

bool
hop_known(struct rpc_call *call, const struct engine_ah *ah)
{
	const struct port_attr *port = link_port_attr(engine_link(call->e), ah->port);
	struct link_neighbour_info hop;
	uint32_t cursor;

	if (ah->has_dmac || port->ib || ah->sgid_index >= port->num_gids ||
		link_neighbour(engine_link(call->e), ah->port, &port->gid[ah->sgid_index].gid,
			&ah->dgid, &cursor, NULL) != 0)
		return true;
	return !link_neighbour_next(engine_link(call->e), &cursor, &hop) || hop.resolved;
}

#define AV(field, t, ...) ROW(struct av, field, t, __VA_ARGS__)

const struct table_row rows_ah[] = {
	AV(dgid, TABLE_GID),
	AV(sgid, TABLE_GID),
	AV(traffic_class, TABLE_UINT),
	AV(flow_label, TABLE_UINT),
	AV(hop_limit, TABLE_UINT),
	AV(sl, TABLE_UINT),
	AV(dlid, TABLE_UINT, "native InfiniBand", .min = 1),
	ROW_END,
};
