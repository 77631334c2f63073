/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The destination of our own MAD requests.
 */

#include <errno.h>
#include <string.h>

#include "engine/verbs_mad.h"
#include "engine/verbs_private.h"
#include "wire/layout.h"
#include "wire/wire.h"

/* QP0 of another port of the subnet, by LID or by directed route. */
static int
smp_peer(const struct port_attr *port, const struct engine_mad_ask *ask, struct mad_peer *to,
	struct error *err)
{
	bool directed = ask->mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_ROUTED;

	if (!port->ib)
		return error_set(err, EINVAL,
			"port: %s is no native InfiniBand port: it has no QP0", port->name);
	if (!directed && port->lid == 0)
		return error_set(err, EINVAL,
			"%s has no LID yet: only a directed route leads on from it", port->name);
	if (!directed && (ask->ah->dlid == 0 || ask->ah->dlid >= PORT_LID_MULTICAST))
		return error_set(err, EINVAL, "dlid: got 0x%04x, expected 0x0001 to 0xbfff",
			ask->ah->dlid);
	to->av = (struct av){
		.encap = ENCAP_IB,
		.port = ask->ah->port,
		.vlan = port->vlan,
		.slid = directed ? PORT_LID_PERMISSIVE : port->lid,
		.dlid = directed ? PORT_LID_PERMISSIVE : ask->ah->dlid,
		.vl = LRH_VL_SMP,
		.ethertype = port->ethertype,
	};
	memcpy(to->av.smac, port->mac, sizeof(to->av.smac));
	if (ask->ah->has_dmac)
		memcpy(to->av.dmac, ask->ah->dmac, sizeof(to->av.dmac));
	to->pkey = 0xFFFF;
	to->neighbour = PATH_NO_NEIGHBOUR;
	return 0;
}

static int
gsi_peer(struct engine *e, const struct port_attr *port, const struct engine_mad_ask *ask,
	struct mad_peer *to, struct error *err)
{
	if (check_pkey(port, ask->pkey_index, err) != 0)
		return -EINVAL;
	to->qpn = QPN_GSI;
	to->qkey = MAD_QKEY;
	to->pkey = port->pkey[ask->pkey_index];
	return ah_resolve(e, ask->ah, &to->av, &to->neighbour, err);
}

int
mad_ask_peer(struct engine *e, const struct engine_mad_ask *ask, struct mad_peer *to,
	struct error *err)
{
	const struct port_attr *port = known_port(e, ask->ah->port, err);

	if (port == NULL)
		return -EINVAL;
	if (ask->qpn > QPN_GSI)
		return error_set(err, EINVAL, "qpn: got %u, managers have 0 and 1", ask->qpn);
	return ask->qpn == QPN_SMI ? smp_peer(port, ask, to, err) : gsi_peer(e, port, ask, to, err);
}
