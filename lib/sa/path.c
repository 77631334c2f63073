/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Paths between endports (sa-multipacket B10 selectors, B8 status).
 */

#include <errno.h>
#include <string.h>

#include "sa/path.h"
#include "sa/select.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define NUMB_PATH_MAX 127
#define REVERSIBLE    0x80
#define RATE_LOWEST   2 /* 2.5 Gb/s: where nothing is known */
#define LINKS_PER_STEP 16 /* links looked at for a route that count as one record */

static bool
asked(const struct path_query *q, unsigned int bit)
{
	return (q->mask & SA_BIT(bit)) != 0;
}

/* The selector of a component; both mask bits must be set for it to count. */
static bool
selects(const struct path_query *q, unsigned int selector_bit)
{
	return (q->mask & (SA_BIT(selector_bit) | SA_BIT(selector_bit + 1)))
		== (SA_BIT(selector_bit) | SA_BIT(selector_bit + 1));
}

/* One end: by GID, by LID, by both or by none. @return a MAD status */
static uint16_t
find_end(struct path_query *q, struct fabric *f, struct path_end *end, unsigned int gid_bit,
	unsigned int gid_off, unsigned int lid_bit, unsigned int lid_off)
{
	const struct port_view *p;

	end->kind = PATH_ANY;
	if (asked(q, gid_bit)) {
		p = fabric_gid(f, q->tmpl + gid_off);
		if (p == NULL)
			return SA_STATUS_INVALID_GID;
		end->kind = PATH_PORT;
		end->guid = get_be64(q->tmpl + gid_off + 8);
		end->port = *p;
	}
	if (asked(q, lid_bit)) {
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

/* A multicast destination: the group's own values. */
static uint16_t
find_group(struct path_query *q, struct fabric *f)
{
	const uint8_t *mgid = q->tmpl + PR_OFF_DGID;
	const struct store_record *r;
	struct store_cursor c;
	uint64_t key;

	q->dst.kind = PATH_GROUP;
	store_seek_index(&c, fabric_version(f), SA_INDEX_MGID, sa_gid_key(mgid));
	while ((r = store_next(&c, &key)) != NULL && key == sa_gid_key(mgid)) {
		if (memcmp(r->bytes + MC_OFF_MGID, mgid, 16) != 0)
			continue;
		q->group = (struct path_entry){ .dguid = get_be64(mgid + 8),
			.dlid = get_be16(r->bytes + MC_OFF_MLID),
			.pkey = get_be16(r->bytes + MC_OFF_PKEY),
			.mtu = r->bytes[MC_OFF_MTU] & 0x3F,
			.rate = r->bytes[MC_OFF_RATE] & 0x3F };
		q->common.life = r->bytes[MC_OFF_LIFE] & 0x3F;
		if (asked(q, PR_BIT_DLID) && get_be16(q->tmpl + PR_OFF_DLID) != q->group.dlid)
			q->none = true;
		return MAD_STATUS_OK;
	}
	return SA_STATUS_INVALID_GID;
}

/* Demands that no path of this subnet meets: raw traffic, other SLs and classes of service. */
static bool
impossible(const struct path_query *q)
{
	uint16_t qos_sl = get_be16(q->tmpl + PR_OFF_SL);

	return (asked(q, PR_BIT_RAW) && (q->tmpl[PR_OFF_FLOW_HOP] & 0x80) != 0)
		|| (asked(q, PR_BIT_QOS_CLASS) && qos_sl >> 4 != 0)
		|| (asked(q, PR_BIT_SL) && (qos_sl & 0xF) != 0);
}

/* What all paths have in common. */
static void
fill_common(struct path_query *q, const struct sa_config *config)
{
	uint32_t flow_hop = get_be32(q->tmpl + PR_OFF_FLOW_HOP);

	q->common = (struct path_common){ .sprefix = config->gid_prefix,
		.dprefix = config->gid_prefix,
		.life = config->packet_life };
	if (asked(q, PR_BIT_SGID))
		q->common.sprefix = get_be64(q->tmpl + PR_OFF_SGID);
	if (asked(q, PR_BIT_DGID))
		q->common.dprefix = get_be64(q->tmpl + PR_OFF_DGID);
	if (asked(q, PR_BIT_FLOW))
		q->common.flow_hop |= flow_hop & 0x0FFFFF00;
	if (asked(q, PR_BIT_HOP))
		q->common.flow_hop |= flow_hop & 0xFF;
	if (asked(q, PR_BIT_TCLASS))
		q->common.tclass = q->tmpl[PR_OFF_TCLASS];
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
	fill_common(q, config);
	q->none = impossible(q);
	if (get)
		q->numb_path = 1;
	else if (asked(q, PR_BIT_NUMB_PATH))
		q->numb_path = tmpl[PR_OFF_NUMB_PATH] & NUMB_PATH_MAX;
	else
		q->numb_path = NUMB_PATH_MAX;
	status = find_end(q, f, &q->src, PR_BIT_SGID, PR_OFF_SGID, PR_BIT_SLID, PR_OFF_SLID);
	if (status != MAD_STATUS_OK)
		return status;
	if (asked(q, PR_BIT_DGID) && tmpl[PR_OFF_DGID] == 0xFF)
		status = find_group(q, f);
	else
		status = find_end(q, f, &q->dst, PR_BIT_DGID, PR_OFF_DGID, PR_BIT_DLID,
			PR_OFF_DLID);
	if (selects(q, PR_BIT_LIFE_SEL)
		&& !select_life(q->tmpl[PR_OFF_LIFE] >> 6, q->tmpl[PR_OFF_LIFE] & 0x3F,
			&q->common.life))
		q->none = true;
	return status;
}

/* MTU and rate as asked. @return false: the path is not good enough */
static bool
meets(const struct path_query *q, struct path_entry *e)
{
	if (selects(q, PR_BIT_MTU_SEL)
		&& !select_mtu(q->tmpl[PR_OFF_MTU] >> 6, q->tmpl[PR_OFF_MTU] & 0x3F, &e->mtu))
		return false;
	return !selects(q, PR_BIT_RATE_SEL)
		|| select_rate(q->tmpl[PR_OFF_RATE] >> 6, q->tmpl[PR_OFF_RATE] & 0x3F, &e->rate);
}

static uint16_t
asked_pkey(const struct path_query *q)
{
	return asked(q, PR_BIT_PKEY) ? get_be16(q->tmpl + PR_OFF_PKEY) : 0;
}

/* From a port to a group: the port must be in the group's partition. */
static int
path_to_group(struct path_query *q, struct fabric *f, const struct requester *who,
	const struct path_end *src, path_sink *sink, void *arg)
{
	const struct store_version *v = fabric_version(f);
	struct path_entry e = q->group;

	if (port_member(v, &src->port, e.pkey) == 0
		|| (asked(q, PR_BIT_PKEY) && ((asked_pkey(q) ^ e.pkey) & ~PKEY_FULL) != 0))
		return 0;
	if (!who->trusted && !sa_shares(v, who, &src->port))
		return 0;
	e.sguid = src->guid != 0 ? src->guid : src->port.guid;
	e.slid = src->lid != 0 ? src->lid : src->port.lid;
	return meets(q, &e) ? sink(arg, &e) : 0;
}

/*
 * Paths of a pair: LIDs of the one end with LIDs of the other, k-th with k-th, until both have had
 * all of theirs (LMC) or NumbPath is reached.
 */
static int
hand_out(struct path_query *q, const struct path_end *src, const struct path_end *dst,
	struct path_entry *e, path_sink *sink, void *arg)
{
	unsigned int slids = src->lid != 0 ? 1 : 1u << src->port.lmc;
	unsigned int dlids = dst->lid != 0 ? 1 : 1u << dst->port.lmc;
	unsigned int k, n = slids > dlids ? slids : dlids;
	int rc = 0;

	for (k = 0; k < n && k < q->numb_path && rc == 0; k++) {
		e->slid = src->lid != 0 ? src->lid : src->port.lid + k % slids;
		e->dlid = dst->lid != 0 ? dst->lid : dst->port.lid + k % dlids;
		rc = sink(arg, e);
	}
	return rc;
}

static int
path_pair(struct path_query *q, struct fabric *f, const struct requester *who,
	const struct path_end *src, const struct path_end *dst, path_sink *sink, void *arg)
{
	const struct store_version *v = fabric_version(f);
	struct path_entry e = { 0 };
	struct route route;
	int rc;

	if (!who->trusted && (!sa_shares(v, who, &src->port) || !sa_shares(v, who, &dst->port)))
		return 0;
	e.pkey = port_common_pkey(v, &src->port, &dst->port, asked_pkey(q));
	if (e.pkey == 0)
		return 0;
	rc = fabric_route(f, &src->port, &dst->port, &route);
	if (rc != 0)
		return rc == -ENETUNREACH ? 0 : rc;
	e.mtu = route.mtu;
	e.rate = route.rate != 0 ? route.rate : RATE_LOWEST;
	e.sguid = src->guid != 0 ? src->guid : src->port.guid;
	e.dguid = dst->guid != 0 ? dst->guid : dst->port.guid;
	return meets(q, &e) ? hand_out(q, src, dst, &e, sink, arg) : 0;
}

/* Endport number *at, in the order of NodeRecords. @return false: there are no more */
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
charge(struct fabric *f, unsigned int *budget)
{
	unsigned int cost = 1 + fabric_work(f) / LINKS_PER_STEP;

	*budget -= cost < *budget ? cost : *budget;
}

/* All destinations of the source that is loaded. */
static int
step_destinations(struct path_query *q, struct fabric *f, const struct requester *who,
	unsigned int *budget, path_sink *sink, void *arg)
{
	int rc = 0;

	if (q->dst.kind == PATH_GROUP)
		return path_to_group(q, f, who, &q->src, sink, arg);
	if (q->dst.kind == PATH_PORT) {
		rc = path_pair(q, f, who, &q->src, &q->dst, sink, arg);
		charge(f, budget);
		return rc;
	}
	while (rc == 0 && !all_seen(f, q->dst_at)) {
		if (!load_end(f, &q->dst, &q->dst_at, budget)) {
			if (*budget == 0)
				return -EAGAIN;
			break;
		}
		rc = path_pair(q, f, who, &q->src, &q->dst, sink, arg);
		charge(f, budget);
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
	rec[PR_OFF_NUMB_PATH] = REVERSIBLE | 1;
	put_be16(rec + PR_OFF_PKEY, e->pkey);
	rec[PR_OFF_MTU] = SELECT_EXACTLY << 6 | e->mtu;
	rec[PR_OFF_RATE] = SELECT_EXACTLY << 6 | e->rate;
	rec[PR_OFF_LIFE] = SELECT_EXACTLY << 6 | c->life;
}
