/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Access rights: the SM_Key decides about trust, the partitions about what a requester sees.
 */

#include <string.h>

#include "sa/access.h"
#include "sa/layout.h"
#include "sa/tables.h"
#include "wire/bytes.h"

/* ::ffff:ffff:ffff:LID, for all of a port's LIDs. No real port has such a GUID. */
#define LID_IDENTITY UINT64_C(0xFFFFFFFFFFFF0000)

void
sa_gid_of_lid(uint16_t lid, union gid *gid)
{
	put_be64(gid->raw, 0);
	put_be64(gid->raw + 8, LID_IDENTITY | lid);
}

static bool
is_lid_identity(const union gid *gid)
{
	return get_be64(gid->raw) == 0 && get_be64(gid->raw + 8) >= LID_IDENTITY;
}

/*
 * Security: the LID identifies a port, a GRH cannot be checked. A GRH is believed only if its GID
 * is one of that port's own, or if the packet came from another subnet through a router. Otherwise
 * the requester gets the port's first GID.
 */
static void
name_port(uint64_t prefix, struct fabric *f, const struct av *av, struct requester *who)
{
	const struct port_view *named = av->grh ? fabric_gid(f, av->dgid.raw) : NULL;
	bool routed = av->grh && who->port.node_type == NODE_TYPE_ROUTER &&
		!gid_in_subnet(prefix, av->dgid.raw) && !is_lid_identity(&av->dgid);

	who->stranger = routed; /* it has the router's P_Keys but not the router's rights */
	if (routed || (named != NULL && named->lid == who->port.lid)) {
		who->gid = av->dgid;
		return;
	}
	put_be64(who->gid.raw, prefix);
	put_be64(who->gid.raw + 8, who->port.guid);
}

/*
 * A requester with an unknown LID gets the GID of its GRH if no known port owns that, else its
 * LID's.
 */
static void
name_stranger(struct fabric *f, const struct av *av, struct requester *who)
{
	if (av->grh && fabric_gid(f, av->dgid.raw) == NULL && !is_lid_identity(&av->dgid)) {
		who->gid = av->dgid;
		return;
	}
	sa_gid_of_lid(av->dlid, &who->gid);
}

/* Who sent the request: the owner of its records, its LID, and its port if that is known. */
static void
identify_requester(const struct sa_config *config, struct fabric *f, const struct mad_peer *peer,
	struct requester *who)
{
	const struct av *av = &peer->av;
	bool ib = av->encap == ENCAP_IB;
	const struct port_view *p = ib ? fabric_lid(f, av->dlid) : fabric_gid(f, av->dgid.raw);

	who->gid = av->dgid;
	if (!ib && is_lid_identity(&who->gid))
		memset(&who->gid, 0, sizeof(who->gid)); /* a RoCE requester is no unknown LID */
	who->lid = ib ? av->dlid : 0;
	who->stranger = p == NULL;
	if (p != NULL)
		who->port = *p;
	else
		port_view_stranger(&who->port);
	if (ib && who->stranger)
		name_stranger(f, av, who);
	else if (ib)
		name_port(config->gid_prefix, f, av, who);
}

bool
sa_requester(const struct sa_config *config, struct fabric *f, const struct mad_peer *peer,
	uint64_t sm_key, struct requester *who)
{
	bool all = config->trust == SA_TRUST_ALL;
	bool own = sm_key != 0 && sm_key == config->own_key;
	bool key = sm_key != 0 && sm_key == config->sm_key;

	who->trusted = all || own || key;
	who->manager = all || own || (key && sm_key != SA_SM_KEY_WELL_KNOWN);
	who->sight = own || (key && sm_key != SA_SM_KEY_WELL_KNOWN) ? SA_SEES_KEYS
		: who->trusted                                      ? SA_SEES_NO_KEYS
								    : SA_SEES_PARTITIONS;
	if (!who->trusted && sm_key != 0)
		return false;
	identify_requester(config, f, peer, who);
	return true;
}

bool
sa_owns(const struct store_version *v, uint64_t prefix, const struct requester *who,
	const uint8_t *gid)
{
	if (memcmp(gid, who->gid.raw, sizeof(who->gid.raw)) == 0)
		return true;
	return !who->stranger && gid_in_subnet(prefix, gid) &&
		port_lid_of_guid(v, get_be64(gid + 8)) == who->port.lid;
}

bool
sa_shares(const struct store_version *v, const struct requester *who, const struct port_view *p)
{
	if (!who->stranger && who->port.lid == p->lid)
		return true;
	return port_common_pkey(v, &who->port, p, 0) != 0;
}

static bool
sees_lid(struct fabric *f, const struct requester *who, uint16_t lid)
{
	const struct port_view *p = fabric_lid(f, lid);

	return p != NULL && sa_shares(fabric_version(f), who, p);
}

static bool
sees_pkey(struct fabric *f, const struct requester *who, uint16_t pkey)
{
	return port_member(fabric_version(f), &who->port, pkey) != 0;
}

static bool
sees_service(struct fabric *f, const struct requester *who, const uint8_t *rec)
{
	uint16_t pkey = get_be16(rec + SERVICE_OFF_PKEY);
	const struct port_view *p;

	if (pkey != 0)
		return sees_pkey(f, who, pkey);
	/* P_Key 0 means every partition: visible to all who share one with the service's port */
	if (memcmp(rec + SERVICE_OFF_GID, who->gid.raw, 16) == 0)
		return true;
	p = fabric_gid(f, rec + SERVICE_OFF_GID);
	return p != NULL ? sa_shares(fabric_version(f), who, p) : sees_pkey(f, who, PKEY_DEFAULT);
}

static bool
is_own_membership(uint64_t guid, const uint8_t *rec)
{
	return guid != 0 && get_be64(rec + MC_OFF_PORT_GID + 8) == guid;
}

/*
 * Show one record of each group: the requester's own membership, else the oldest one; sa_redact()
 * then hides whose it is.
 */
static bool
sees_member(struct fabric *f, const struct store_version *v, const struct requester *who,
	const uint8_t *rec)
{
	uint64_t own = get_be64(who->gid.raw + 8), key = sa_gid_key(rec + MC_OFF_MGID), at;
	const struct store_record *r, *first = NULL;
	struct store_cursor c;

	if (!sees_pkey(f, who, get_be16(rec + MC_OFF_PKEY)))
		return false;
	if (is_own_membership(own, rec))
		return true;
	store_seek_index(&c, v, SA_INDEX_MC_MEMBER, sa_member_key(rec + MC_OFF_MGID, who->gid.raw));
	r = store_next(&c, &at);
	if (r != NULL && at == sa_member_key(rec + MC_OFF_MGID, who->gid.raw) &&
		memcmp(r->bytes, rec, 16) == 0)
		return false; /* the requester's own record is shown instead */
	store_seek_index(&c, v, SA_INDEX_MGID, key);
	while (first == NULL && (r = store_next(&c, &at)) != NULL && at == key)
		if (memcmp(r->bytes, rec, 16) == 0)
			first = r;
	return first != NULL && memcmp(first->bytes, rec, MC_OFF_QKEY) == 0;
}

bool
sa_visible(struct fabric *f, const struct store_version *v, const struct requester *who,
	const struct sa_record_type *t, const uint8_t *rec)
{
	if (who->trusted)
		return true;
	switch (t->table) {
	case SA_TABLE_SERVICE:
		return sees_service(f, who, rec);
	case SA_TABLE_MCMEMBER:
		return sees_member(f, v, who, rec);
	case SA_TABLE_INFORM:
		return memcmp(rec + INFORM_OFF_GID, who->gid.raw, 16) == 0;
	case SA_TABLE_LINK:
		return sees_lid(f, who, get_be16(rec + LINK_OFF_FROM_LID)) &&
			sees_lid(f, who, get_be16(rec + LINK_OFF_TO_LID));
	default:
		return sees_lid(f, who, get_be16(rec));
	}
}

bool
sa_redacts(const struct sa_record_type *t, enum sa_sight sight)
{
	if (!t->stored)
		return false;
	switch (t->table) {
	case SA_TABLE_PORT_INFO:
	case SA_TABLE_SM_INFO:
	case SA_TABLE_SERVICE:
		return sight != SA_SEES_KEYS;
	case SA_TABLE_MCMEMBER:
		return sight == SA_SEES_PARTITIONS;
	default:
		return false;
	}
}

void
sa_redact(const struct sa_record_type *t, enum sa_sight sight, uint64_t guid, uint8_t *rec)
{
	if (!sa_redacts(t, sight))
		return;
	switch (t->table) {
	case SA_TABLE_PORT_INFO:
		memset(rec + PORT_OFF_M_KEY, 0, 8);
		break;
	case SA_TABLE_SM_INFO:
		memset(rec + SMINFO_OFF_SM_KEY, 0, 8);
		break;
	case SA_TABLE_SERVICE:
		memset(rec + SERVICE_OFF_KEY, 0, SERVICE_KEY_LEN);
		break;
	case SA_TABLE_MCMEMBER:
		if (is_own_membership(guid, rec))
			break;
		memset(rec + MC_OFF_PORT_GID, 0, 16);
		rec[MC_OFF_SCOPE_STATE] &= 0xF0;
		rec[MC_OFF_PROXY] = 0;
		break;
	default:
		break;
	}
}
