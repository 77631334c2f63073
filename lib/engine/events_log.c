/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Events as text, for the log and for the RPC `events`. A worker never logs: it raises an event,
 * and the control thread writes the line when it takes the event. An event that its raiser logs
 * itself, or that another event's line includes, is logged at debug level only.
 */

#include <inttypes.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_ether.h>

#include "engine/connections.h"
#include "engine/verbs.h"
#include "engine/verbs_cm.h"

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
	snprintf(buf, size, "%s: %s %s %s", port_name(e, ev->element), gid_print(&ev->gid, gid),
		what, ev->type == EVENT_NEIGHBOUR_LOST ? "" : mac);
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
		snprintf(others, sizeof(others), "; %u others were not reported", c->unreported);
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
			snprintf(buf, size, "%s has the address %s, too", port_name(e, ev->element),
				gid_print(&ev->gid, gid));
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
	default:
		snprintf(buf, size, "%s of 0x%x", name, ev->element);
		return RTE_LOG_DEBUG;
	}
}

void
events_log_line(struct engine *e, uint32_t level, const char *text)
{
	struct events_log *log = &e->events_log;
	uint64_t now = rte_get_tsc_cycles();

	if (log->lines.interval == 0)
		token_bucket_init(&log->lines, e->hz / EVENT_LINES_SECOND, EVENT_LINES);
	if (!token_bucket_take(&log->lines, now)) {
		log->suppressed++;
		return;
	}
	if (log->suppressed > 0)
		ENGINE_LOG(NOTICE,
			"%" PRIu64 " lines were not logged: polca-ctl events shows those of events",
			log->suppressed);
	log->suppressed = 0;
	rte_log(level, (uint32_t)engine_logtype, "engine: %s\n", text);
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

/* Limits that workers run into, and what to do about it. */
static const char *const limit_texts[EVENTS_LIMITS] = {
	"requests to connect were dropped: raise cm.max_half_open, or find who sends them",
	"management requests were refused: raise mad.max_sessions or mad.max_bytes",
	"packets found the ring to another worker full: raise workers.handoff_ring, or use more workers",
	"events were lost, and not logged",
	"connections were refused for lack of a QP or connection: raise cm.max_connections or limits.max_qp",
	"changes of SA records were refused: strangers have their share; import their ports, or find who sends them",
	"connections to services were refused: their address has its share; raise max_connections_per_peer of the service",
};

static void
read_limits(const struct engine *e, uint64_t now[EVENTS_LIMITS])
{
	struct mad_counters mad;
	struct cm_counters cm;
	struct sa_counters sa;
	unsigned int i;

	engine_sa_counters(e, -1, &sa);
	engine_cm_counters(e, -1, &cm);
	engine_mad_counters(e, -1, &mad);
	now[0] = cm.half_open_limit;
	now[1] = mad.sessions_refused;
	now[2] = 0;
	now[4] = cm.no_resources;
	now[5] = sa.share_full;
	now[6] = services_peer_limit(e);
	now[3] = e->control_lost;
	for (i = 0; i < e->num_workers; i++) {
		now[2] += relaxed(&e->worker[i]->stats.handoff_full);
		now[3] += relaxed(&e->worker[i]->stats.events_lost);
	}
}

/* A line that sums up what others changed in the SA's database. */
static void
watch_sa(struct engine *e)
{
	struct sa_counters sa;

	engine_sa_counters(e, -1, &sa);
	if (sa.writes != e->events_log.sa_writes)
		ENGINE_LOG(NOTICE,
			"SA: %" PRIu64 " changes of records, %" PRIu64 " of them refused",
			sa.writes - e->events_log.sa_writes,
			sa.write_conflicts - e->events_log.sa_conflicts);
	e->events_log.sa_writes = sa.writes;
	e->events_log.sa_conflicts = sa.write_conflicts;
}

/* A line for each limit that was reached since the last look, with how often. */
static void
watch_limits(struct engine *e)
{
	uint64_t now[EVENTS_LIMITS], tsc = rte_get_tsc_cycles();
	unsigned int i;

	if (tsc < e->events_log.limits_next)
		return;
	e->events_log.limits_next = tsc + LIMITS_S * e->hz;
	watch_sa(e);
	read_limits(e, now);
	for (i = 0; i < EVENTS_LIMITS; i++) {
		if (now[i] > e->events_log.limits[i])
			ENGINE_LOG(WARNING, "limit reached: %" PRIu64 " %s",
				now[i] - e->events_log.limits[i], limit_texts[i]);
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
		ENGINE_LOG(INFO,
			"%" PRIu64 " connections made or ended were not reported one by one",
			held - e->events_log.held);
	e->events_log.held = held;
}
