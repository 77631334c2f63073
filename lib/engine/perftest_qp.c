/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * QPs for perftest's clients: for each QP that a client announces, one of ours is created and
 * connected to the announced address. All runs on the control thread, between a session's question
 * and the answer.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/connections.h"
#include "engine/perftest.h"
#include "engine/verbs_private.h"
#include "svc/perftest.h"

#define TIMEOUT 18 /* 1.07 s */

struct qp_args {
	unsigned int place;
	const union gid *peer;
	struct qp_attr attr;
	const struct port_attr *port; /* the port attributes from which .attr was made */
	const struct perftest_dest *theirs;
	struct perftest_qp *qp;
	struct error *err;
};

/* --- on the worker --- */

static int
open_here(struct worker *w, void *arg)
{
	struct qp_args *a = arg;
	struct svc_worker *s = service_here(w, a->place);
	const union gid addr = cm_address(&a->attr.av);
	const struct port_attr *now;

	if (s == NULL)
		return error_set(a->err, ENOENT, "the service has ended");
	if (cm_is_paused(w->cm, a->peer, w->last) || cm_is_paused(w->cm, &addr, w->last))
		return error_set(a->err, EPERM,
			"it has used wrong keys too often: try again later");
	a->qp->conn = svc_direct_open(s, a->peer, &a->attr, a->err);
	if (a->qp->conn == NULL)
		return -EIO;
	perftest_direct(a->qp->conn, a->theirs, &a->qp->ours);
	/* subnet management may have changed the port since .attr was made */
	now = link_port_attr(w->engine->link, a->attr.port);
	if (now != a->port)
		rc_path_changed(w->rc, a->attr.port, now);
	return 0;
}

static int
perftest_again_here(struct worker *w, void *arg)
{
	RTE_SET_USED(w);
	perftest_direct_again(arg);
	return 0;
}

struct packets_args {
	const struct perftest_session *session;
	uint64_t packets;
};

static int
add_packets_here(struct worker *w, void *arg)
{
	struct packets_args *a = arg;
	const struct perftest_session *s = a->session;
	struct rc_qp_received r;
	unsigned int i;

	for (i = 0; i < s->num_qps; i++)
		if (s->qp[i].worker == w->id && svc_conn_received(s->qp[i].conn, &r) == 0)
			a->packets += r.packets;
	return 0;
}

static int
close_here(struct worker *w, void *arg)
{
	RTE_SET_USED(w);
	svc_direct_close(arg);
	return 0;
}

/* --- the choice of our address --- */

/*
 * Rank of an address as source of packets to the peer: 3 on the peer's subnet, 2 with a gateway,
 * 1 of the same family, 0 not usable.
 */
static unsigned int
perftest_gid_rank(const struct port_gid *ours, const union gid *theirs)
{
	if (ours->type != GID_ROCEV2 || gid_is_ipv4(&ours->gid) != gid_is_ipv4(theirs))
		return 0;
	if (gid_same_subnet(&ours->gid, theirs, ours->prefix_len))
		return 3;
	return gid_is_zero(&ours->gateway) ? 1 : 2;
}

static bool
find_ethernet(const struct engine *e, const struct perftest_dest *theirs, struct engine_ah *ah)
{
	const struct port_attr *p;
	unsigned int best = 0, found, i, k;

	for (i = 0; i < link_num_ports(e->link); i++) {
		p = link_port_attr(e->link, i);
		for (k = 0; k < p->num_gids; k++) {
			found = perftest_gid_rank(&p->gid[k], &theirs->gid);
			if (found <= best)
				continue;
			best = found;
			ah->port = (uint16_t)i;
			ah->sgid_index = (uint16_t)k;
		}
	}
	ah->dgid = theirs->gid;
	return best > 0;
}

/* The first native IB port; within the subnet no GRH is needed. */
static bool
find_native(const struct engine *e, const struct perftest_dest *theirs, struct engine_ah *ah)
{
	unsigned int i;

	for (i = 0; i < link_num_ports(e->link); i++) {
		if (!link_port_attr(e->link, i)->ib)
			continue;
		ah->port = (uint16_t)i;
		ah->dlid = theirs->lid;
		return true;
	}
	return false;
}

/* perftest's clients name no P_Key: use the first of the port that the service's list admits. */
static int
perftest_find_pkey(const struct perftest_session *s, const struct port_attr *port, uint16_t *pkey,
	struct error *err)
{
	const struct allow_list *allow = &s->engine->perftest->listener[s->place].allow;
	unsigned int i;

	for (i = 0; i < port->num_pkeys; i++) {
		*pkey = port->pkey[i];
		if (*pkey != 0 && allow_list_admits(allow, &s->peer, *pkey))
			return 0;
	}
	return error_set(err, EPERM, "the service's allow list has no P_Key of our port");
}

static int
perftest_find_path(const struct perftest_session *s, const struct perftest_dest *theirs,
	struct qp_attr *attr, const struct port_attr **port, struct error *err)
{
	struct engine *e = s->engine;
	struct engine_ah ah = { 0 };
	bool found = theirs->lid != 0 ? find_native(e, theirs, &ah)
				      : theirs->has_gid && find_ethernet(e, theirs, &ah);

	if (!found)
		return error_set(err, EINVAL, "no port of ours reaches the client's address");
	*port = link_port_attr(e->link, ah.port);
	attr->port = ah.port;
	attr->sgid_index = ah.sgid_index;
	if (perftest_find_pkey(s, *port, &attr->pkey, err) != 0)
		return -EPERM;
	return ah_resolve(e, &ah, &attr->av, &attr->neighbour, err);
}

uint16_t
perftest_mtu(const struct engine *e)
{
	uint16_t least = 4096;
	unsigned int i;

	for (i = 0; i < link_num_ports(e->link); i++)
		least = RTE_MIN(least, link_port_attr(e->link, i)->active_mtu);
	return least;
}

/* --- the QPs of a session --- */

/*
 * Anti-amplification: one forged Read makes the QP send megabytes to the client's address. So a
 * GID is the address that has proven itself by TCP, and a LID, which TCP cannot prove, is refused,
 * unless the operator admits any address.
 */
static int
perftest_check_address(const struct perftest_session *s, const struct perftest_dest *theirs,
	struct error *err)
{
	char gid[GID_STRLEN], peer[GID_STRLEN];

	if (s->any_gid)
		return 0;
	if (theirs->lid != 0)
		return error_set(err, EPERM,
			"its LID %u: TCP proves no LID (tcp_any_gid admits any)", theirs->lid);
	if (!theirs->has_gid || memcmp(theirs->gid.raw, s->peer.raw, sizeof(s->peer.raw)) == 0)
		return 0;
	return error_set(err, EPERM,
		"its GID %s is not the address of its TCP connection, %s (tcp_any_gid admits it)",
		gid_print(&theirs->gid, gid), gid_print(&s->peer, peer));
}

static int
perftest_open_qp(struct perftest_session *s, const struct perftest_dest *theirs, struct error *err)
{
	struct engine *e = s->engine;
	struct perftest_qp *qp = &s->qp[s->num_qps];
	struct qp_args a = {
		.place = s->place,
		.peer = &s->peer,
		.theirs = theirs,
		.qp = qp,
		.err = err,
	};
	int ret;

	if (s->num_qps == PERFTEST_QPS)
		return error_set(err, ENOSPC, "more than %u queue pairs", PERFTEST_QPS);
	*qp = (struct perftest_qp){ .remote_qpn = theirs->qpn };
	a.attr = (struct qp_attr){
		.path_mtu = s->exchange.mtu,
		.dest_qp_num = theirs->qpn & 0xFFFFFF,
		.rq_psn = theirs->psn & 0xFFFFFF,
		.sq_psn = rng_u32(&rng_kernel) & 0xFFFFFF,
		.timeout = TIMEOUT,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = e->config.limits.max_rd_atomic,
	};
	ret = perftest_check_address(s, theirs, err);
	if (ret != 0)
		return ret;
	if (!link_neighbour_allowed(e->link, &s->peer, LINK_PER_STRANGER))
		return error_set(err, ENOSPC,
			"too many addresses that clients named do not answer: try again later");
	ret = perftest_find_path(s, theirs, &a.attr, &a.port, err);
	if (ret != 0)
		return ret;
	link_neighbour_caused(e->link, a.attr.neighbour, &s->peer);
	qp->worker = e->perftest_turn++ % e->num_workers;
	ret = engine_call(e, qp->worker, open_here, &a);
	if (ret != 0)
		return ret;
	qp->ours.lid = a.port->lid;
	qp->ours.gid = a.attr.av.sgid;
	qp->ours.psn = a.attr.sq_psn;
	qp->ours.out_reads = RTE_MIN(qp->ours.out_reads, a.attr.max_dest_rd_atomic);
	s->num_qps++;
	return 0;
}

/* Create or reuse a QP for the client's QP s->theirs, and describe it in s->ours. */
static bool
perftest_grant_qp(struct perftest_session *s)
{
	struct error err = { "" };
	char line[sizeof(err.text) + 64];
	unsigned int i;

	for (i = 0; i < s->num_qps && s->qp[i].remote_qpn != s->theirs.qpn; i++)
		;
	if (i < s->num_qps) {
		engine_call(s->engine, s->qp[i].worker, perftest_again_here, s->qp[i].conn);
	} else if (perftest_open_qp(s, &s->theirs, &err) != 0) {
		snprintf(line, sizeof(line), "perftest: no queue pair for a client: %s", err.text);
		events_log_line(s->engine, RTE_LOG_WARNING, line);
		return false;
	}
	s->ours = s->qp[i].ours;
	return true;
}

static void
perftest_close_qps(struct perftest_session *s)
{
	while (s->num_qps > 0) {
		s->num_qps--;
		engine_call(s->engine, s->qp[s->num_qps].worker, close_here,
			s->qp[s->num_qps].conn);
	}
}

/* @return packets that the session's queue pairs have received */
static uint64_t
perftest_packets(struct perftest_session *s)
{
	struct packets_args a = { .session = s };
	unsigned int i;

	for (i = 0; i < s->engine->num_workers; i++)
		engine_call(s->engine, i, add_packets_here, &a);
	return a.packets;
}

void
perftest_answer_question(struct perftest_session *s)
{
	if (s->question == PERFTEST_ASK_CLOSE ||
		__atomic_load_n(&s->abandoned, __ATOMIC_RELAXED) != 0)
		perftest_close_qps(s);
	else if (s->question == PERFTEST_ASK_QP)
		s->granted = perftest_grant_qp(s);
	else
		s->counted = perftest_packets(s);
}
