/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Resolve an address handle to what a path needs: the encapsulation, our own addresses and the next
 * hop.
 */

#include <errno.h>
#include <string.h>

#include "engine/verbs_private.h"

static int
ah_check_index(const struct port_attr *port, const struct engine_ah *ah, struct error *err)
{
	if (port->num_gids == 0)
		return error_set(err, EINVAL, "sgid_index: %s has no address", port->name);
	if (ah->sgid_index >= port->num_gids)
		return error_set(err, EINVAL, "sgid_index: got %u, %s has 0..%u", ah->sgid_index,
			port->name, port->num_gids - 1);
	if (ah->flow_label > 0xFFFFF)
		return error_set(err, EINVAL, "flow_label: got 0x%x, expected 20 bits",
			ah->flow_label);
	return 0;
}

/* RC packets and requests of ours have exactly one receiver, so the DGID must not be a group. */
static int
check_dgid(const union gid *dgid, struct error *err)
{
	char text[GID_STRLEN];

	if (gid_is_multicast(dgid))
		return error_set(err, EINVAL,
			"dgid: got %s, a multicast group, expected the address of one endport",
			gid_print(dgid, text));
	return 0;
}

/* Both ends of a path have addresses of one family. */
static int
check_family(const union gid *sgid, const union gid *dgid, struct error *err)
{
	char s[GID_STRLEN], d[GID_STRLEN];

	if (gid_is_zero(dgid))
		return error_set(err, EINVAL, "dgid: missing");
	if (gid_is_ipv4(sgid) != gid_is_ipv4(dgid))
		return error_set(err, EINVAL,
			"dgid: got %s, but the source address (sgid_index) is %s: both must be IPv4 or both IPv6",
			gid_print(dgid, d), gid_print(sgid, s));
	return 0;
}

static enum encap
encap_of(const struct port_gid *gid)
{
	switch (gid->type) {
	case GID_ROCEV1:
		return ENCAP_ROCEV1;
	case GID_IB:
		return ENCAP_IB;
	case GID_ROCEV2:
		break;
	}
	return gid_is_ipv4(&gid->gid) ? ENCAP_ROCEV2_IPV4 : ENCAP_ROCEV2_IPV6;
}

/* Programs that name addresses which nobody has must not fill the table. */
static int
ah_check_user(const struct engine *e, const struct engine_ah *ah, const struct av *av,
	struct error *err)
{
	if (ah->user == NULL || link_neighbour_known(e->link, ah->port, &av->sgid, &av->dgid) ||
		link_neighbour_allowed(e->link, ah->user, LINK_PER_USER))
		return 0;
	return error_set_limit(err, ENOMEM,
		"dgid: too many addresses that programs named do not answer, or they fill half of the neighbour table");
}

static int
ah_next_hop(struct engine *e, const struct engine_ah *ah, struct av *av, uint32_t *neighbour,
	struct error *err)
{
	int ret;

	*neighbour = PATH_NO_NEIGHBOUR;
	if (ah->has_dmac) {
		memcpy(av->dmac, ah->dmac, sizeof(av->dmac));
		return 0;
	}
	ret = ah_check_user(e, ah, av, err);
	if (ret == 0)
		ret = link_neighbour(e->link, ah->port, &av->sgid, &av->dgid, neighbour, err);
	if (ret == 0 && ah->user != NULL)
		link_neighbour_caused(e->link, *neighbour, ah->user);
	return ret;
}

static int
resolve_roce(struct engine *e, const struct engine_ah *ah, struct av *av, uint32_t *neighbour,
	struct error *err)
{
	int ret = check_family(&av->sgid, &av->dgid, err);

	return ret != 0 ? ret : ah_next_hop(e, ah, av, neighbour, err);
}

/* On a native IB link LIDs name both ends; packets carry a GRH if a GID is given. */
static int
resolve_ib(const struct port_attr *port, const struct engine_ah *ah, struct av *av,
	uint32_t *neighbour, struct error *err)
{
	if (ah->dlid == 0)
		return error_set(err, EINVAL,
			"dlid: missing: %s is a native InfiniBand port, where a GID alone "
			"leads nowhere: give the peer's LID",
			port->name);
	if (ah->dlid == PORT_LID_PERMISSIVE)
		return error_set(err, EINVAL, "dlid: got 0xffff, which is for SMPs");
	if (ah->dlid >= PORT_LID_MULTICAST)
		return error_set(err, EINVAL,
			"dlid: got 0x%04x, a multicast LID, expected 0x0001 to 0xbfff", ah->dlid);
	if (port->lid == 0)
		return error_set(err, EINVAL,
			"port: %s has no LID yet: no subnet manager has been there (or set "
			"its lid in the configuration)",
			port->name);
	if (ah->src_path_bits >> port->lmc != 0)
		return error_set(err, EINVAL, "src_path_bits: got %u, %s has 2^%u LIDs",
			ah->src_path_bits, port->name, port->lmc);
	if (ah->sl >= PORT_SLS)
		return error_set(err, EINVAL, "sl: got %u, expected 0 to 15", ah->sl);
	av->slid = port_slid(port, ah->src_path_bits);
	av->dlid = ah->dlid;
	av->vl = port->sl_to_vl[ah->sl];
	av->ethertype = port->ethertype;
	av->grh = !gid_is_zero(&ah->dgid);
	if (ah->has_dmac)
		memcpy(av->dmac, ah->dmac, sizeof(av->dmac));
	*neighbour = PATH_NO_NEIGHBOUR;
	return 0;
}

const struct port_attr *
known_port(const struct engine *e, unsigned int number, struct error *err)
{
	if (number < link_num_ports(e->link))
		return link_port_attr(e->link, number);
	error_set(err, EINVAL, "port: got %u, there are %u ports from 0 on", number,
		link_num_ports(e->link));
	return NULL;
}

int
check_pkey(const struct port_attr *port, uint16_t index, struct error *err)
{
	if (index < port->num_pkeys && port->pkey[index] != 0)
		return 0;
	return error_set(err, EINVAL, "pkey_index: got %u, which holds no P_Key of %s", index,
		port->name);
}

int
ah_resolve(struct engine *e, const struct engine_ah *ah, struct av *av, uint32_t *neighbour,
	struct error *err)
{
	const struct port_attr *port = known_port(e, ah->port, err);
	int ret;

	if (port == NULL)
		return -EINVAL;
	ret = ah_check_index(port, ah, err);
	if (ret == 0)
		ret = check_dgid(&ah->dgid, err);
	if (ret != 0)
		return ret;
	*av = (struct av){
		.encap = encap_of(&port->gid[ah->sgid_index]),
		.port = ah->port,
		.sgid = port->gid[ah->sgid_index].gid,
		.dgid = ah->dgid,
		.vlan = port->vlan,
		.sl = ah->sl,
		.traffic_class = ah->traffic_class,
		.hop_limit = ah->hop_limit,
		.flow_label = ah->flow_label,
	};
	memcpy(av->smac, port->mac, sizeof(av->smac));
	if (av->encap == ENCAP_IB)
		return resolve_ib(port, ah, av, neighbour, err);
	return resolve_roce(e, ah, av, neighbour, err);
}
