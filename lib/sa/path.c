/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Compute paths between endports (sa-multipacket B10 selectors, B8 status, B12 routes).
 */

#include <errno.h>
#include <string.h>

#include "sa/path.h"
#include "sa/select.h"
#include "sa/tables.h"
#include "sa/walk.h"
#include "wire/bytes.h"

#define NUMB_PATH_MAX  127
#define REVERSIBLE     0x80
#define RATE_LOWEST    2 /* 2.5 Gb/s, if no rate is known */
#define DEFAULT_SL     0
#define OVERLAPPING    2 /* opensm's preference of paths that share a LID */
#define HOP_LIMIT_MAX  0xFF
#define SCOPE_LOCAL    2
#define LINKS_PER_STEP 16 /* examining this many links costs as much as a record */

static bool
path_asked(const struct path_query *q, unsigned int bit)
{
	return (q->mask & SA_BIT(bit)) != 0;
}

/* True if a component's selector counts: its mask bit and the value's must both be set. */
static bool
selects(const struct path_query *q, unsigned int selector_bit)
{
	return (q->mask & (SA_BIT(selector_bit) | SA_BIT(selector_bit + 1))) ==
		(SA_BIT(selector_bit) | SA_BIT(selector_bit + 1));
}

/* Determine one end, given by GID, LID, both or neither. @return a MAD status */
static uint16_t
path_find_end(struct path_query *q, struct fabric *f, struct path_end *end, unsigned int gid_bit,
	unsigned int gid_off, unsigned int lid_bit, unsigned int lid_off)
{
	const struct port_view *p;

	end->kind = PATH_ANY;
	if (path_asked(q, gid_bit)) {
		p = fabric_gid(f, q->tmpl + gid_off);
		if (p == NULL)
			return SA_STATUS_INVALID_GID;
		end->kind = PATH_PORT;
		end->guid = get_be64(q->tmpl + gid_off + 8);
		end->port = *p;
	}
	if (path_asked(q, lid_bit)) {
		end->lid = get_be16(q->tmpl + lid_off);
		p = fabric_lid(f, end->lid);
		if (p == NULL || (end->kind == PATH_PORT && p->lid != end->port.lid)) {
			q->none = true;
			return MAD_STATUS_OK;
		}
		end->kind = PATH_PORT;
		end->port = *p;
	}
	return MAD_STATUS_OK;
}

/* True if the group has the values asked for: a sender cannot choose a group's values (opensm). */
static bool
is_groups_own(const struct path_query *q, const uint8_t *group)
{
	uint32_t flow_hop = get_be32(q->tmpl + PR_OFF_FLOW_HOP);

	return (!path_asked(q, PR_BIT_DLID) || get_be16(q->tmpl + PR_OFF_DLID) == q->group.dlid) &&
		(!path_asked(q, PR_BIT_SL) ||
			(get_be16(q->tmpl + PR_OFF_SL) & 0xF) == q->group.sl) &&
		(!path_asked(q, PR_BIT_FLOW) ||
			((flow_hop ^ q->common.flow_hop) & 0x0FFFFF00) == 0) &&
		(!path_asked(q, PR_BIT_HOP) ||
			(flow_hop & 0xFF) == group[MC_OFF_SL_FLOW_HOP + 3]) &&
		(!path_asked(q, PR_BIT_TCLASS) || q->tmpl[PR_OFF_TCLASS] == q->common.tclass);
}

/* The destination is a multicast group: use the group's values. */
static void
take_group(struct path_query *q, const uint8_t *group)
{
	uint32_t sl_flow_hop = get_be32(group + MC_OFF_SL_FLOW_HOP);

	q->group = (struct path_entry){
		.dguid = get_be64(group + MC_OFF_MGID + 8),
		.dlid = get_be16(group + MC_OFF_MLID),
		.pkey = get_be16(group + MC_OFF_PKEY),
		.mtu = group[MC_OFF_MTU] & 0x3F,
		.rate = group[MC_OFF_RATE] & 0x3F,
		.sl = sl_flow_hop >> 28,
		.one_way = true,
	};
	q->common.life = group[MC_OFF_LIFE] & 0x3F;
	q->common.tclass = group[MC_OFF_TCLASS];
	q->common.flow_hop = sl_flow_hop & 0x0FFFFFFF;
	if (!is_groups_own(q, group))
		q->none = true;
	/*
	 * like opensm: a group beyond link-local scope may pass routers, whatever its own HopLimit
	 */
	if ((group[MC_OFF_MGID + 1] & 0xF) != SCOPE_LOCAL)
		q->common.flow_hop |= HOP_LIMIT_MAX;
}

static uint16_t
path_find_group(struct path_query *q, struct fabric *f)
{
	const uint8_t *mgid = q->tmpl + PR_OFF_DGID;
	const struct store_record *r;
	struct store_cursor c;
	uint64_t key;

	q->dst.kind = PATH_GROUP;
	store_seek_index(&c, fabric_version(f), SA_INDEX_MGID, sa_gid_key(mgid));
	while ((r = store_next(&c, &key)) != NULL && key == sa_gid_key(mgid))
		if (memcmp(r->bytes + MC_OFF_MGID, mgid, 16) == 0) {
			take_group(q, r->bytes);
			return MAD_STATUS_OK;
		}
	return SA_STATUS_INVALID_GID;
}

/* True if no path of this subnet can match: raw traffic or a QoS class is asked for. */
static bool
impossible(const struct path_query *q)
{
	return (path_asked(q, PR_BIT_RAW) && (q->tmpl[PR_OFF_FLOW_HOP] & 0x80) != 0) ||
		(path_asked(q, PR_BIT_QOS_CLASS) && get_be16(q->tmpl + PR_OFF_SL) >> 4 != 0);
}

/* Set the values that all paths share. */
static void
fill_common(struct path_query *q, const struct sa_config *config)
{
	uint32_t flow_hop = get_be32(q->tmpl + PR_OFF_FLOW_HOP);

	q->common = (struct path_common){
		.sprefix = config->gid_prefix,
		.dprefix = config->gid_prefix,
		.life = config->packet_life,
	};
	if (path_asked(q, PR_BIT_SGID))
		q->common.sprefix = get_be64(q->tmpl + PR_OFF_SGID);
	if (path_asked(q, PR_BIT_DGID))
		q->common.dprefix = get_be64(q->tmpl + PR_OFF_DGID);
	if (path_asked(q, PR_BIT_FLOW))
		q->common.flow_hop |= flow_hop & 0x0FFFFF00;
	if (path_asked(q, PR_BIT_HOP))
		q->common.flow_hop |= flow_hop & 0xFF;
	if (path_asked(q, PR_BIT_TCLASS))
		q->common.tclass = q->tmpl[PR_OFF_TCLASS];
}

static bool
life_meets(const struct path_query *q, uint8_t *life)
{
	return !selects(q, PR_BIT_LIFE_SEL) ||
		select_life(q->tmpl[PR_OFF_LIFE] >> 6, q->tmpl[PR_OFF_LIFE] & 0x3F, life);
}

uint16_t
path_query_init(struct path_query *q, const struct sa_config *config, struct fabric *f,
	const uint8_t *tmpl, uint64_t mask, bool get)
{
	uint16_t status;

	memset(q, 0, sizeof(*q));
	q->mask = mask;
	memcpy(q->tmpl, tmpl, PR_LEN);
	q->generation = fabric_generation(f);
	q->config = config;
	fill_common(q, config);
	q->none = impossible(q);
	if (get)
		q->numb_path = 1;
	else if (path_asked(q, PR_BIT_NUMB_PATH))
		q->numb_path = tmpl[PR_OFF_NUMB_PATH] & NUMB_PATH_MAX;
	else
		q->numb_path = NUMB_PATH_MAX;
	status = path_find_end(q, f, &q->src, PR_BIT_SGID, PR_OFF_SGID, PR_BIT_SLID, PR_OFF_SLID);
	if (status != MAD_STATUS_OK)
		return status;
	if (path_asked(q, PR_BIT_DGID) && tmpl[PR_OFF_DGID] == 0xFF)
		status = path_find_group(q, f);
	else
		status = path_find_end(q, f, &q->dst, PR_BIT_DGID, PR_OFF_DGID, PR_BIT_DLID,
			PR_OFF_DLID);
	q->no_other = !life_meets(q, &q->common.life);
	q->no_loopback = !life_meets(q, &q->common.loopback_life);
	return status;
}

/*
 * Fit MTU and rate to what was asked, and check the life time. @return false: the path does not
 * match
 */
static bool
path_meets(const struct path_query *q, struct path_entry *e)
{
	uint8_t mtu = e->mtu, rate = e->rate;

	if (e->loopback ? q->no_loopback : q->no_other)
		return false;
	if (selects(q, PR_BIT_MTU_SEL) &&
		!select_mtu(q->tmpl[PR_OFF_MTU] >> 6, q->tmpl[PR_OFF_MTU] & 0x3F, &mtu))
		return false;
	if (selects(q, PR_BIT_RATE_SEL) &&
		!select_rate(q->tmpl[PR_OFF_RATE] >> 6, q->tmpl[PR_OFF_RATE] & 0x3F, &rate))
		return false;
	e->mtu = mtu;
	e->rate = rate;
	return true;
}

static uint16_t
asked_pkey(const struct path_query *q)
{
	return path_asked(q, PR_BIT_PKEY) ? get_be16(q->tmpl + PR_OFF_PKEY) : 0;
}

static bool
has_member(const struct store_version *v, const uint8_t *mgid, uint64_t prefix, uint64_t guid)
{
	const struct store_record *r;
	struct store_cursor c;
	uint8_t gid[16];
	uint64_t key, at;

	put_be64(gid, prefix);
	put_be64(gid + 8, guid);
	key = sa_member_key(mgid, gid);
	store_seek_index(&c, v, SA_INDEX_MC_MEMBER, key);
	while ((r = store_next(&c, &at)) != NULL && at == key)
		if (memcmp(r->bytes + MC_OFF_MGID, mgid, 16) == 0 &&
			memcmp(r->bytes + MC_OFF_PORT_GID, gid, 16) == 0)
			return true;
	return false;
}

/*
 * A path from a port to a group: the port must be a member (opensm) and in the group's partition.
 */
static int
path_to_group(struct path_query *q, struct fabric *f, const struct requester *who,
	const struct path_end *src, path_sink *sink, void *arg)
{
	const struct store_version *v = fabric_version(f);
	const uint8_t *mgid = q->tmpl + PR_OFF_DGID;
	struct path_entry e = q->group;

	e.sguid = src->guid != 0 ? src->guid : src->port.guid;
	e.slid = src->lid != 0 ? src->lid : src->port.lid;
	if (!has_member(v, mgid, q->config->gid_prefix, e.sguid) &&
		!has_member(v, mgid, GID_LINK_LOCAL, e.sguid))
		return 0;
	if (port_member(v, &src->port, e.pkey) == 0 ||
		(path_asked(q, PR_BIT_PKEY) && ((asked_pkey(q) ^ e.pkey) & ~PKEY_FULL) != 0))
		return 0;
	if (!who->trusted && !sa_shares(v, who, &src->port))
		return 0;
	return path_meets(q, &e) ? sink(arg, &e) : 0;
}

/*
 * Choose a path's SL: the one that the subnet manager gave it; else the one asked for, if the
 * SLtoVL tables of the whole route carry it; else its partition's SL or the default, or the lowest
 * SL that is carried if the tables drop that one. @return false: no SL is possible
 */
static bool
choose_sl(const struct path_query *q, const struct walk *w, int given, struct path_entry *e)
{
	unsigned int want = get_be16(q->tmpl + PR_OFF_SL) & 0xF;
	int partition = sa_partition_sl(q->config, e->pkey);
	unsigned int usual = partition >= 0 ? (unsigned int)partition : DEFAULT_SL;
	uint16_t usable = w->sls;

	if (given >= 0)
		usable &= 1u << given;
	else if (path_asked(q, PR_BIT_SL) && !w->sls_known)
		usable &= 1u << usual;
	if (path_asked(q, PR_BIT_SL))
		usable &= 1u << want;
	if (usable == 0)
		return false;
	e->sl = (usable & 1u << usual) != 0 ? usual : (unsigned int)__builtin_ctz(usable);
	return true;
}

/* Find the route from LID to LID. @retval 0, -ENETUNREACH (none that matches), -ENOSPC */
static int
find_way(const struct path_query *q, struct fabric *f, const struct path_end *src,
	const struct path_end *dst, struct path_entry *e)
{
	struct walk w;
	int rc = fabric_route(f, &src->port, &dst->port, e->dlid, &w);

	if (rc != 0)
		return rc;
	e->loopback = src->port.lid == dst->port.lid;
	e->mtu = w.mtu;
	e->rate = w.rate != 0 ? w.rate : RATE_LOWEST;
	if (!path_meets(q, e) ||
		!choose_sl(q, &w, walk_path_sl(fabric_version(f), e->slid, e->dlid), e))
		return -ENETUNREACH;
	return 0;
}

/* True if the route back matches the query, too. */
static bool
is_reversible(const struct path_query *q, struct fabric *f, const struct path_end *src,
	const struct path_end *dst, const struct path_entry *e)
{
	struct path_entry back = { .slid = e->dlid, .dlid = e->slid, .pkey = e->pkey };

	return !walk_possible(fabric_version(f)) || find_way(q, f, dst, src, &back) == 0;
}

/* Compute the path from LID to LID. @retval 0 (*e is the path), -ENETUNREACH, -ENOSPC */
static int
path_of_lids(const struct path_query *q, struct fabric *f, const struct path_end *src,
	const struct path_end *dst, struct path_entry *e)
{
	int rc = find_way(q, f, src, dst, e);

	if (rc != 0)
		return rc;
	e->one_way = !is_reversible(q, f, src, dst, e);
	if (e->one_way && path_asked(q, PR_BIT_REVERSIBLE) &&
		(q->tmpl[PR_OFF_NUMB_PATH] & REVERSIBLE) != 0)
		return -ENETUNREACH;
	return 0;
}

/*
 * Emit the paths of a pair, up to NumbPath: each LID of one end with each of the other (LMC). Like
 * opensm, first the paths that share no LID: the k-th LID with the k-th.
 */
static int
hand_out(struct path_query *q, struct fabric *f, const struct path_end *src,
	const struct path_end *dst, const struct path_entry *common, path_sink *sink, void *arg)
{
	unsigned int slids = src->lid != 0 ? 1 : 1u << src->port.lmc;
	unsigned int dlids = dst->lid != 0 ? 1 : 1u << dst->port.lmc;
	unsigned int diagonal = slids < dlids ? slids : dlids;
	unsigned int k, s, d, found = 0;
	int rc;

	for (k = 0; k < diagonal + slids * dlids && found < q->numb_path; k++) {
		struct path_entry e = *common;

		e.overlaps = k >= diagonal;
		s = e.overlaps ? (k - diagonal) / dlids : k;
		d = e.overlaps ? (k - diagonal) % dlids : k;
		if (e.overlaps && s == d)
			continue;
		e.slid = src->lid != 0 ? src->lid : src->port.lid + s;
		e.dlid = dst->lid != 0 ? dst->lid : dst->port.lid + d;
		rc = path_of_lids(q, f, src, dst, &e);
		if (rc == -ENETUNREACH)
			continue;
		if (rc == 0)
			rc = sink(arg, &e);
		if (rc != 0)
			return rc;
		found++;
	}
	return 0;
}

static int
path_pair(struct path_query *q, struct fabric *f, const struct requester *who,
	const struct path_end *src, const struct path_end *dst, path_sink *sink, void *arg)
{
	const struct store_version *v = fabric_version(f);
	struct path_entry common = { 0 };

	if (!who->trusted && (!sa_shares(v, who, &src->port) || !sa_shares(v, who, &dst->port)))
		return 0;
	common.pkey = port_common_pkey(v, &src->port, &dst->port, asked_pkey(q));
	if (common.pkey == 0)
		return 0;
	common.sguid = src->guid != 0 ? src->guid : src->port.guid;
	common.dguid = dst->guid != 0 ? dst->guid : dst->port.guid;
	return hand_out(q, f, src, dst, &common, sink, arg);
}

/* Load endport number *at, in the order of NodeRecords. @return false: no more, or no budget */
static bool
load_end(struct fabric *f, struct path_end *end, uint64_t *at, unsigned int *budget)
{
	const struct store_version *v = fabric_version(f);
	const struct store_record *r;
	const struct port_view *p;
	struct store_cursor c;

	store_seek(&c, v, SA_TABLE_NODE, *at);
	while (*budget > 0 && (r = store_next(&c, NULL)) != NULL) {
		++*at;
		--*budget;
		p = fabric_lid(f, get_be16(r->bytes + NODE_OFF_LID));
		if (p == NULL)
			continue;
		end->port = *p;
		return true;
	}
	return false;
}

static bool
all_seen(struct fabric *f, uint64_t at)
{
	return at >= store_count(fabric_version(f), SA_TABLE_NODE);
}

static void
path_charge(struct fabric *f, unsigned int *budget)
{
	unsigned int cost = 1 + fabric_work(f) / LINKS_PER_STEP;

	*budget -= cost < *budget ? cost : *budget;
}

/* Paths from the loaded source to all destinations. */
static int
step_destinations(struct path_query *q, struct fabric *f, const struct requester *who,
	unsigned int *budget, path_sink *sink, void *arg)
{
	int rc = 0;

	if (q->dst.kind == PATH_GROUP)
		return path_to_group(q, f, who, &q->src, sink, arg);
	if (q->dst.kind == PATH_PORT) {
		rc = path_pair(q, f, who, &q->src, &q->dst, sink, arg);
		path_charge(f, budget);
		return rc;
	}
	while (rc == 0 && !all_seen(f, q->dst_at)) {
		if (!load_end(f, &q->dst, &q->dst_at, budget)) {
			if (*budget == 0)
				return -EAGAIN;
			break;
		}
		rc = path_pair(q, f, who, &q->src, &q->dst, sink, arg);
		path_charge(f, budget);
	}
	return rc;
}

int
path_query_step(struct path_query *q, struct fabric *f, const struct requester *who,
	unsigned int *budget, path_sink *sink, void *arg)
{
	int rc;

	if (q->none)
		return 0;
	if (!fabric_ready(f, budget))
		return -EAGAIN;
	if (q->generation != fabric_generation(f))
		return -ESTALE;
	if (q->src.kind == PATH_PORT)
		return step_destinations(q, f, who, budget, sink, arg);
	for (;;) {
		if (!q->src_loaded) {
			if (all_seen(f, q->src_at))
				return 0;
			if (!load_end(f, &q->src, &q->src_at, budget))
				return *budget == 0 ? -EAGAIN : 0;
			q->src_loaded = true;
			q->dst_at = 0;
		}
		rc = step_destinations(q, f, who, budget, sink, arg);
		if (rc != 0)
			return rc;
		q->src_loaded = false;
		if (*budget == 0)
			return -EAGAIN;
	}
}

void
path_record(const struct path_common *c, const struct path_entry *e, uint8_t *rec)
{
	memset(rec, 0, PR_LEN);
	put_be64(rec + PR_OFF_DGID, c->dprefix);
	put_be64(rec + PR_OFF_DGID + 8, e->dguid);
	put_be64(rec + PR_OFF_SGID, c->sprefix);
	put_be64(rec + PR_OFF_SGID + 8, e->sguid);
	put_be16(rec + PR_OFF_DLID, e->dlid);
	put_be16(rec + PR_OFF_SLID, e->slid);
	put_be32(rec + PR_OFF_FLOW_HOP, c->flow_hop);
	rec[PR_OFF_TCLASS] = c->tclass;
	rec[PR_OFF_NUMB_PATH] = (e->one_way ? 0 : REVERSIBLE) | 1;
	put_be16(rec + PR_OFF_PKEY, e->pkey);
	put_be16(rec + PR_OFF_SL, e->sl);
	rec[PR_OFF_MTU] = SELECT_EXACTLY << 6 | e->mtu;
	rec[PR_OFF_RATE] = SELECT_EXACTLY << 6 | e->rate;
	rec[PR_OFF_LIFE] = SELECT_EXACTLY << 6 | (e->loopback ? c->loopback_life : c->life);
	rec[PR_OFF_PREFERENCE] = e->overlaps ? OVERLAPPING : 0;
}
