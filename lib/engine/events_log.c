/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Events as text, for the log and for the RPC `events`. A worker never logs: it raises an event,
 * and the control thread writes the line when it takes the event. An event that its raiser logs
 * itself, or that another event's line includes, is logged at debug level only.
 */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ether.h>

#include "base/plural.h"
#include "engine/connections.h"
#include "engine/verbs.h"
#include "engine/verbs_cm.h"
#include "engine/verbs_mad.h"
#include "wire/bytes.h"

/* After this many lines at once, so many a second; the others are counted. */
#define EVENT_LINES        100
#define EVENT_LINES_SECOND 20
#define LIMITS_S           10 /* a limit is logged at most once in so many seconds */

static const char *
port_name(const struct engine *e, uint32_t port)
{
	return port < e->config.link.num_ports ? e->config.link.port[port].name : "unknown port";
}

/* Which QP failed, why, and who its peer is: a GID, or without one a LID. */
static void
qp_error_text(const struct engine *e, const struct event *ev, char *buf, size_t size)
{
	const struct qp_failure *f = &ev->failure;
	char why[QP_FAILURE_MAX], peer[GID_STRLEN];

	if (f->dlid != 0)
		snprintf(peer, sizeof(peer), "lid:%u", f->dlid);
	else
		gid_print(&f->peer, peer);
	snprintf(buf, size, "QP 0x%x on %s is in ERR: %s; PSN %u, peer %s QP 0x%x%s%s%s%s",
		ev->element, port_name(e, f->port), qp_failure_print(f, why), f->psn, peer,
		f->peer_qpn, f->status != 0 ? ", completion " : "",
		f->status != 0 ? wc_status_name(f->status) : "",
		f->verdict < VERDICT_COUNT ? ", verdict " : "",
		f->verdict < VERDICT_COUNT ? verdict_infos[f->verdict].name : "");
}

static void
neighbour_text(const struct engine *e, const struct event *ev, const char *what, char *buf,
	size_t size)
{
	char mac[RTE_ETHER_ADDR_FMT_SIZE], gid[GID_STRLEN];

	rte_ether_format_addr(mac, sizeof(mac), (const struct rte_ether_addr *)ev->mac);
	snprintf(buf, size, "%s: %s %s%s%s", port_name(e, ev->element), gid_print(&ev->gid, gid),
		what, ev->type == EVENT_NEIGHBOUR_LOST ? "" : " ",
		ev->type == EVENT_NEIGHBOUR_LOST ? "" : mac);
}

static void
connection_text(const struct engine *e, const struct event *ev, char *buf, size_t size)
{
	const struct connection_change *c = &ev->connection;
	char peer[GID_STRLEN], others[40] = "";

	if (c->dlid != 0)
		snprintf(peer, sizeof(peer), "lid:%u", c->dlid);
	else
		gid_print(&c->peer, peer);
	if (c->unreported != 0)
		snprintf(others, sizeof(others), "; %u other%s not reported", c->unreported,
			c->unreported == 1 ? " was" : "s were");
	snprintf(buf, size,
		"connection of QP 0x%x on %s with %s QP 0x%x, service ID 0x%" PRIx64 " %s%s%s%s%s",
		ev->element, port_name(e, c->port), peer, c->peer_qpn, c->service_id,
		ev->type == EVENT_CONNECTION_MADE              ? "is made"
			: ev->type == EVENT_CONNECTION_REFUSED ? "is refused: "
							       : "has ended: ",
		ev->type == EVENT_CONNECTION_ENDED ? cm_end_name(c->end) : "",
		ev->type == EVENT_CONNECTION_ENDED && c->reason != 0 ? ": " : "",
		c->reason != 0 ? cm_reason_name(c->reason) : "", others);
}

uint32_t
engine_event_text(const struct engine *e, const struct event *ev, char *buf, size_t size)
{
	const char *name = event_type_name(ev->type);
	char gid[GID_STRLEN];

	switch (ev->type) {
	case EVENT_QP_ERROR:
		qp_error_text(e, ev, buf, size);
		return RTE_LOG_WARNING;
	case EVENT_NEIGHBOUR_MOVED:
		neighbour_text(e, ev, "is a neighbour that has moved to", buf, size);
		return RTE_LOG_NOTICE;
	case EVENT_NEIGHBOUR_LOST:
		neighbour_text(e, ev, "is a neighbour that does not answer any more", buf, size);
		return RTE_LOG_NOTICE;
	case EVENT_ADDRESS_CONFLICT:
		neighbour_text(e, ev, "is our address, but also used by", buf, size);
		return RTE_LOG_WARNING;
	case EVENT_PEER_PAUSED:
		snprintf(buf, size,
			"%s: %s has used wrong keys %u times within a minute: no new connections for %u s",
			port_name(e, ev->element), gid_print(&ev->gid, gid), e->config.key_errors,
			e->config.key_error_pause_s);
		return RTE_LOG_WARNING;
	case EVENT_CONNECTION_MADE:
	case EVENT_CONNECTION_ENDED:
		connection_text(e, ev, buf, size);
		return RTE_LOG_INFO;
	case EVENT_CONNECTION_REFUSED:
		connection_text(e, ev, buf, size);
		return RTE_LOG_NOTICE;
	case EVENT_CQ_ERR:
		snprintf(buf, size, "CQ %u has overrun: its queue pairs go to ERR", ev->element);
		return RTE_LOG_ERR;
	case EVENT_PATH_MIG:
		snprintf(buf, size, "QP 0x%x uses its alternate path now", ev->element);
		return RTE_LOG_NOTICE;
	case EVENT_PATH_MIG_ERR:
		snprintf(buf, size, "QP 0x%x: its peer tried a path that is not the alternate one",
			ev->element);
		return RTE_LOG_WARNING;
	case EVENT_LID_CHANGE:
	case EVENT_PKEY_CHANGE:
	case EVENT_SM_CHANGE:
	case EVENT_CLIENT_REREGISTER:
		snprintf(buf, size, "%s: %s, by subnet management", port_name(e, ev->element),
			name);
		return RTE_LOG_NOTICE;
	case EVENT_GID_CHANGE:
		if (gid_is_zero(&ev->gid))
			snprintf(buf, size, "%s: %s, by subnet management",
				port_name(e, ev->element), name);
		else
			snprintf(buf, size, "%s %s the address %s, %s", port_name(e, ev->element),
				ev->removed ? "gave up" : "has", gid_print(&ev->gid, gid),
				ev->removed ? "which the fleet's leader has" : "too");
		return RTE_LOG_NOTICE;
	case EVENT_PORT_ERR:
	case EVENT_PORT_ACTIVE:
		snprintf(buf, size, "%s: link is %s", port_name(e, ev->element),
			ev->type == EVENT_PORT_ACTIVE ? "up" : "down");
		return RTE_LOG_DEBUG; /* lib/link logs it */
	case EVENT_QP_REQ_ERR:
	case EVENT_QP_ACCESS_ERR:
		snprintf(buf, size, "QP 0x%x: %s", ev->element,
			ev->type == EVENT_QP_ACCESS_ERR
				? "a request of its peer was refused for its key, range or rights"
				: "a request of its peer was invalid");
		return RTE_LOG_DEBUG; /* QP_ERROR's line says more */
	case EVENT_FLEET_LEADS:
	case EVENT_FLEET_FOLLOWS:
		snprintf(buf, size, "this appliance leads its fleet%s",
			ev->type == EVENT_FLEET_LEADS ? "" : " no more");
		return RTE_LOG_DEBUG; /* lib/store logs these */
	case EVENT_FLEET_CONNECTED:
	case EVENT_FLEET_AWAY:
		snprintf(buf, size, "etcd %s",
			ev->type == EVENT_FLEET_CONNECTED ? "answers"
							  : "does not answer: changes are refused");
		return RTE_LOG_DEBUG;
	case EVENT_FLEET_REFUSED:
		snprintf(buf, size, "etcd refuses this appliance: changes are refused");
		return RTE_LOG_DEBUG;
	case EVENT_FLEET_FULL:
	case EVENT_FLEET_ROOM:
		snprintf(buf, size, "etcd has %s",
			ev->type == EVENT_FLEET_ROOM
				? "room again"
				: "no room (its quota is exceeded): changes are refused");
		return RTE_LOG_DEBUG;
	default:
		snprintf(buf, size, "%s of 0x%x", name, ev->element);
		return RTE_LOG_DEBUG;
	}
}

void
log_line(struct log_lines *lines, uint64_t hz, uint32_t level, const char *text)
{
	uint64_t now = rte_get_tsc_cycles();

	if (lines->bucket.interval == 0)
		token_bucket_init(&lines->bucket, hz / EVENT_LINES_SECOND, EVENT_LINES);
	if (!token_bucket_take(&lines->bucket, now)) {
		lines->suppressed++;
		return;
	}
	if (lines->suppressed > 0)
		ENGINE_LOG(NOTICE,
			"%" PRIu64 " line%s not logged: polca-ctl events shows those of events",
			lines->suppressed, lines->suppressed == 1 ? " was" : "s were");
	lines->suppressed = 0;
	rte_log(level, (uint32_t)engine_logtype, "engine: %s\n", text);
}

void
events_log_line(struct engine *e, uint32_t level, const char *text)
{
	log_line(&e->events_log.lines, e->hz, level, text);
}

void
events_log(struct engine *e, const struct event *ev)
{
	char text[EVENT_TEXT_MAX];
	uint32_t level;

	if (ev->type == EVENT_CQ_COMPLETION) /* as many as there are messages */
		return;
	level = engine_event_text(e, ev, text, sizeof(text));
	if (rte_log_can_log((uint32_t)engine_logtype, level))
		events_log_line(e, level, text);
}

/* --- limits reached --- */

#define LIMIT_OPTIONS 4
#define LIMIT_OPTION(key, field)                                                                   \
	{                                                                                          \
		key, offsetof(struct engine_config, field),                                        \
			sizeof(((struct engine_config *)0)->field)                                 \
	}

/* What is counted when a limit is reached, and the options that change the limit. */
static const struct limit_info {
	const char *text;
	struct {
		const char *key;
		size_t offset, size; /* of its value */
	} option[LIMIT_OPTIONS];
} limit_infos[LIMIT_COUNT] = {
	[LIMIT_HALF_OPEN] = { "requests to connect were dropped: too many of one peer are half open",
		{ LIMIT_OPTION("cm.max_half_open_per_peer", cm.max_half_open_per_peer) } },
	[LIMIT_HALF_OPEN_EVICTED] = { "half-open connections were ended for newer ones",
		{ LIMIT_OPTION("cm.max_half_open", cm.max_half_open),
			LIMIT_OPTION("cm.max_half_open_per_peer", cm.max_half_open_per_peer) } },
	[LIMIT_CONNECTIONS] = { "connections were refused for lack of a QP or connection",
		{ LIMIT_OPTION("cm.max_connections", cm.max_connections),
			LIMIT_OPTION("cm.max_connections_per_peer", cm.max_connections_per_peer),
			LIMIT_OPTION("limits.max_qp", limits.max_qp) } },
	[LIMIT_SERVICE] = { "connections were ended as they were established: cm.max_connections is reached, or their service's max_connections",
		{ LIMIT_OPTION("cm.max_connections", cm.max_connections) } },
	[LIMIT_SERVICE_PEER] = { "connections to services were refused: their address has its share; raise the service's max_connections_per_peer" },
	[LIMIT_SESSIONS] = { "management requests were refused: no session or memory is free",
		{ LIMIT_OPTION("mad.max_sessions", mad.max_sessions),
			LIMIT_OPTION("mad.max_sessions_per_peer", mad.max_sessions_per_peer),
			LIMIT_OPTION("mad.max_bytes", mad.max_bytes),
			LIMIT_OPTION("mad.max_bytes_per_peer", mad.max_bytes_per_peer) } },
	[LIMIT_RECLAIMED] = { "management sessions were ended to make room for other addresses",
		{ LIMIT_OPTION("mad.max_sessions", mad.max_sessions),
			LIMIT_OPTION("mad.max_bytes", mad.max_bytes) } },
	[LIMIT_HANDOFF] = { "packets found the ring to another worker full; more workers help, too",
		{ LIMIT_OPTION("workers.handoff_ring", handoff_ring) } },
	[LIMIT_EVENTS] = { "events were lost, and not logged: they came faster than they are read" },
	[LIMIT_SA_SHARE] = { "changes of SA records were refused: strangers have their share; import their ports, or find who sends them",
		{ LIMIT_OPTION("sa.map_mb", sa.map_mb) } },
	[LIMIT_SA_STRANGERS] = { "SA changes and queries were refused: strangers have their share of those under way",
		{ LIMIT_OPTION("sa.max_writes", sa.server.max_writes),
			LIMIT_OPTION("sa.max_queries", sa.server.max_queries) } },
	[LIMIT_SA_GAVE_WAY] = { "SA queries and results were ended to make room for other addresses",
		{ LIMIT_OPTION("sa.max_queries", sa.server.max_queries),
			LIMIT_OPTION("sa.max_result_mb", sa.max_result_mb) } },
	[LIMIT_SA_RESOURCES] = { "SA requests were answered \"no resources\" or \"busy\"",
		{ LIMIT_OPTION("sa.max_writes", sa.server.max_writes),
			LIMIT_OPTION("sa.max_queries", sa.server.max_queries),
			LIMIT_OPTION("sa.max_results", sa.server.max_results),
			LIMIT_OPTION("sa.map_mb", sa.map_mb) } },
	[LIMIT_SA_VERSIONS] = { "SA transfers were ended: their version of the database was given up",
		{ LIMIT_OPTION("sa.max_versions", sa.max_versions),
			LIMIT_OPTION("sa.old_mb", sa.old_mb) } },
	[LIMIT_SA_NOTICES] = { "notices of the SA were sent to nobody: too many at one time",
		{ LIMIT_OPTION("sa.notices_max", sa.server.notices_max) } },
	[LIMIT_LIVE_RATE] = { "requests of ping were dropped: their source sent too many",
		{ LIMIT_OPTION("live.rate", live.rate), LIMIT_OPTION("live.burst", live.burst) } },
	[LIMIT_VL15] = { "SMPs were dropped: the VL15 buffer of their port was full",
		{ LIMIT_OPTION("sma.vl15_buffer", sma.vl15_buffer) } },
	[LIMIT_NEIGHBOURS] = { "neighbours were refused: their table, or strangers' share of it, is full" },
};

static uint64_t
limit_value(const struct engine_config *c, size_t offset, size_t size)
{
	const char *at = (const char *)c + offset;

	return size == sizeof(uint64_t) ? *(const uint64_t *)at : *(const uint32_t *)at;
}

/* The options of a limit and their values: " (cm.max_half_open is 1024)". */
static void
limit_options_text(const struct engine_config *c, const struct limit_info *limit, char *buf,
	size_t size)
{
	size_t len = 0;
	unsigned int i;

	buf[0] = '\0';
	for (i = 0; i < LIMIT_OPTIONS && limit->option[i].key != NULL && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s is %" PRIu64,
			i == 0 ? " (" : ", ", limit->option[i].key,
			limit_value(c, limit->option[i].offset, limit->option[i].size));
	if (i > 0 && len < size)
		snprintf(buf + len, size - len, ")");
}

/* A GID, or a LID in the form of lib/sa (::ffff:ffff:ffff:lid) or of lib/mad and lib/cm (::lid). */
static void
limit_peer_text(const union gid *peer, char *buf, size_t size)
{
	static const uint8_t ff[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, zero[14];
	char gid[GID_STRLEN];

	if (memcmp(peer->raw, zero, 14) == 0 ||
		(memcmp(peer->raw, zero, 8) == 0 && memcmp(peer->raw + 8, ff, 6) == 0))
		snprintf(buf, size, ", the first of lid:%u", get_be16(peer->raw + 14));
	else
		snprintf(buf, size, ", the first of %s", gid_print(peer, gid));
}

static void
limit_log(const struct engine *e, enum limit which, uint64_t times, const union gid *peer)
{
	char options[256], who[GID_STRLEN + 16] = "";

	limit_options_text(&e->config, &limit_infos[which], options, sizeof(options));
	if (peer != NULL)
		limit_peer_text(peer, who, sizeof(who));
	ENGINE_LOG(WARNING, "limit reached: %" PRIu64 " %s%s%s", times, limit_infos[which].text,
		who, options);
}

/* What @p all counts without what @p part, read before it, counts already. */
static uint64_t
without(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

static void
read_port_limits(struct engine *e, uint64_t now[LIMIT_COUNT])
{
	struct link_neighbour_counts neighbours;
	struct link_counters link;
	unsigned int i;

	link_neighbour_counts(e->link, &neighbours);
	now[LIMIT_NEIGHBOURS] = neighbours.refused;
	for (i = 0; i < e->config.link.num_ports; i++) {
		engine_port_counters(e, i, -1, &link);
		now[LIMIT_VL15] += link.verdict[VERDICT_VL15_DROPPED];
	}
}

static void
read_limits(struct engine *e, uint64_t now[LIMIT_COUNT])
{
	struct live_counters live;
	struct mad_counters mad;
	struct cm_counters cm;
	struct sa_counters sa;
	unsigned int i;

	engine_sa_counters(e, -1, &sa);
	engine_cm_counters(e, -1, &cm);
	engine_mad_counters(e, -1, &mad);
	engine_live_counters(e, -1, &live);
	now[LIMIT_HALF_OPEN] = cm.half_open_limit;
	now[LIMIT_HALF_OPEN_EVICTED] = cm.half_open_evicted;
	now[LIMIT_CONNECTIONS] = cm.no_resources;
	now[LIMIT_SERVICE] = cm.no_place;
	now[LIMIT_SERVICE_PEER] = services_peer_limit(e);
	now[LIMIT_SESSIONS] = mad.sessions_refused;
	now[LIMIT_RECLAIMED] = without(mad.sessions_reclaimed, sa.gave_way);
	now[LIMIT_SA_SHARE] = sa.share_full;
	now[LIMIT_SA_STRANGERS] = sa.strangers_busy;
	now[LIMIT_SA_GAVE_WAY] = sa.gave_way;
	now[LIMIT_SA_RESOURCES] = without(sa.no_resources, sa.share_full + sa.strangers_busy);
	now[LIMIT_SA_VERSIONS] = sa.stale;
	now[LIMIT_SA_NOTICES] = sa.events_lost;
	now[LIMIT_LIVE_RATE] = live.rate_limited;
	now[LIMIT_EVENTS] = e->control_lost;
	for (i = 0; i < e->num_workers; i++) {
		now[LIMIT_HANDOFF] += relaxed(&e->worker[i]->stats.handoff_full);
		now[LIMIT_EVENTS] += relaxed(&e->worker[i]->stats.events_lost);
	}
	read_port_limits(e, now);
}

/* Where a worker notes whom a limit affected; NULL: nowhere. */
static struct limit_peer *
limit_note(struct worker *w, enum limit which)
{
	struct sa_limited *sa = w->sa != NULL ? sa_worker_limited(w->sa) : NULL;

	switch (which) {
	case LIMIT_HALF_OPEN:
		return &cm_limited(w->cm)->half_open;
	case LIMIT_HALF_OPEN_EVICTED:
		return &cm_limited(w->cm)->evicted;
	case LIMIT_CONNECTIONS:
		return &cm_limited(w->cm)->no_resources;
	case LIMIT_SERVICE:
		return &cm_limited(w->cm)->no_place;
	case LIMIT_SESSIONS:
		return &mad_worker_limited(w->mad)->refused;
	case LIMIT_RECLAIMED:
		return &mad_worker_limited(w->mad)->reclaimed;
	case LIMIT_SA_SHARE:
		return sa != NULL ? &sa->share_full : NULL;
	case LIMIT_SA_STRANGERS:
		return sa != NULL ? &sa->strangers_busy : NULL;
	case LIMIT_SA_GAVE_WAY:
		return sa != NULL ? &sa->gave_way : NULL;
	default:
		return NULL;
	}
}

/* Take the notes of all workers. @return false: there was none */
static bool
limit_take_peer(const struct engine *e, enum limit which, union gid *peer)
{
	struct limit_peer *note;
	bool found = false;
	union gid other;
	unsigned int i;

	for (i = 0; i < e->num_workers; i++) {
		note = limit_note(e->worker[i], which);
		if (note != NULL && limit_peer_take(note, found ? other.raw : peer->raw))
			found = true;
	}
	return found;
}

/* A line that sums up what others changed in the SA's database. */
static void
watch_sa(struct engine *e)
{
	struct sa_counters sa;

	engine_sa_counters(e, -1, &sa);
	if (sa.writes != e->events_log.sa_writes)
		ENGINE_LOG(NOTICE,
			"SA: %" PRIu64 " change%s of records, %" PRIu64 " of them refused",
			sa.writes - e->events_log.sa_writes,
			plural(sa.writes - e->events_log.sa_writes),
			sa.write_conflicts - e->events_log.sa_conflicts);
	e->events_log.sa_writes = sa.writes;
	e->events_log.sa_conflicts = sa.write_conflicts;
}

/* A line for each limit that was reached since the last look, with how often, and by whom. */
static void
watch_limits(struct engine *e)
{
	uint64_t now[LIMIT_COUNT] = { 0 }, tsc = rte_get_tsc_cycles();
	union gid peer;
	unsigned int i;
	bool known;

	if (tsc < e->events_log.limits_next)
		return;
	e->events_log.limits_next = tsc + LIMITS_S * e->hz;
	watch_sa(e);
	read_limits(e, now);
	for (i = 0; i < LIMIT_COUNT; i++) {
		known = limit_take_peer(e, i, &peer);
		if (now[i] > e->events_log.limits[i])
			limit_log(e, i, now[i] - e->events_log.limits[i], known ? &peer : NULL);
		e->events_log.limits[i] = now[i];
	}
}

void
events_log_watch(struct engine *e)
{
	uint64_t held = 0;
	unsigned int i;

	watch_limits(e);
	for (i = 0; i < e->num_workers; i++)
		held += relaxed(&e->worker[i]->stats.events_held);
	if (held != e->events_log.held)
		ENGINE_LOG(INFO, "%" PRIu64 " connection%s made or ended, not reported one by one",
			held - e->events_log.held, plural(held - e->events_log.held));
	e->events_log.held = held;
}
