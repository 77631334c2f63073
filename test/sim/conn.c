/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "flow.h"

static const uint16_t pmtus[] = { 256, 512, 1024, 2048, 4096 };

struct conn_options
conn_options_random(struct sim *s)
{
	struct conn_options o = {
		.pmtu = pmtus[sim_below(s, 5)],
		.psn = { (uint32_t)sim_rand(s) & PSN_MASK, (uint32_t)sim_rand(s) & PSN_MASK },
		.timeout = (uint8_t)(4 + sim_below(s, 6)), /* 65 us to 2 ms of virtual time */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = (uint8_t)(1 + sim_below(s, 14)),
		.max_rd_atomic = (uint8_t)(1 + sim_below(s, 8)),
		.ack_per_packet = sim_below(s, 4) == 0,
		.flow_control = sim_below(s, 2),
		.sq_depth = 4 + sim_below(s, 28),
		.rq_depth = 4 + sim_below(s, 28),
		.cq_depth = 512,
		.access = MEM_ACCESS_REMOTE,
		.srq = { RC_NO_SRQ, RC_NO_SRQ },
		.encap = sim_below(s, 2) ? ENCAP_ROCEV2_IPV4 : (enum encap)sim_below(s, 4),
	};

	o.max_dest_rd_atomic = o.max_rd_atomic;
	return o;
}

enum qp_state
conn_state(struct conn *c, unsigned int node)
{
	struct rc_qp_info info;

	if (c->destroyed[node] || rc_qp_query(c->sim->node[node].worker, c->qpn[node], &info) < 0)
		return QPS_RESET;
	return info.attr.qp_state;
}

int
conn_modify(struct conn *c, unsigned int node, const struct qp_attr *attr, uint32_t mask)
{
	struct sim *s = c->sim;
	enum qp_state before = conn_state(c, node);
	struct error err = { 0 };
	int rc = rc_qp_modify(s->node[node].worker, c->qpn[node], attr, mask, &err);

	sim_trace(s, "node %u modify %s -> %s: %d %s", node, qp_state_name(before),
		mask & QP_ATTR_STATE ? qp_state_name(attr->qp_state) : "same", rc, err.text);
	if (rc == 0)
		coverage_transition(s->coverage, before, conn_state(c, node));
	return rc;
}

void
conn_to_rtr(struct conn *c, unsigned int node)
{
	struct sim_node *n = &c->sim->node[node], *peer = &c->sim->node[!node];
	struct qp_attr a = {
		.qp_state = QPS_RTR,
		.path_mtu = c->opt.pmtu,
		.dest_qp_num = c->qpn[!node],
		.rq_psn = c->opt.psn[!node],
		.max_dest_rd_atomic = c->opt.max_dest_rd_atomic,
		.min_rnr_timer = c->opt.min_rnr_timer,
		.neighbour = PATH_NO_NEIGHBOUR,
		.av = {
			.encap = c->opt.encap,
			.sgid = c->opt.encap == ENCAP_ROCEV2_IPV4 ? n->gid : n->gid6,
			.dgid = c->opt.encap == ENCAP_ROCEV2_IPV4 ? peer->gid : peer->gid6,
			.slid = (uint16_t)(1 + node),
			.dlid = (uint16_t)(1 + !node),
			.grh = c->opt.rq_depth & 1,
			.smac = { 2, 0, 0, 0, 0, (uint8_t)node },
			.dmac = { 2, 0, 0, 0, 0, (uint8_t)!node },
			.vlan = PATH_NO_VLAN,
		},
	};

	if (conn_modify(c, node, &a,
		    QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
			    QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER) <
		0)
		sim_fail(c->sim, "INIT to RTR failed");
}

void
conn_to_rts(struct conn *c, unsigned int node)
{
	struct qp_attr a = {
		.qp_state = QPS_RTS,
		.timeout = c->opt.timeout,
		.retry_cnt = c->opt.retry_cnt,
		.rnr_retry = c->opt.rnr_retry,
		.sq_psn = c->opt.psn[node],
		.max_rd_atomic = c->opt.max_rd_atomic,
	};

	if (conn_modify(c, node, &a,
		    QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			    QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC) < 0)
		sim_fail(c->sim, "RTR to RTS failed");
}

static void
conn_create_end(struct conn *c, unsigned int node)
{
	struct sim_node *n = &c->sim->node[node];
	struct qp_init_attr init = {
		.qp_type = QPT_RC,
		.pd = n->pd,
		.srq = c->opt.srq[node],
		.cap = {
			.max_send_wr = c->opt.sq_depth,
			.max_recv_wr = c->opt.rq_depth,
			.max_send_sge = FLOW_SGES,
			.max_recv_sge = FLOW_SGES,
			.max_inline_data = 64,
		},
		.ack_per_packet = c->opt.ack_per_packet,
		.flow_control = c->opt.flow_control,
	};
	struct qp_attr a = {
		.qp_state = QPS_INIT,
		.pkey = 0xFFFF,
		.qp_access_flags = c->opt.access,
	};
	struct error err = { 0 };

	if (rc_cq_create(n->dev, c->opt.cq_depth, &c->send_cq[node], &err) < 0 ||
		rc_cq_create(n->dev, c->opt.cq_depth, &c->recv_cq[node], &err) < 0) {
		sim_fail(c->sim, "cq_create: %s", err.text);
		return;
	}
	if (n->other != NULL &&
		(rc_cq_reserve(n->dev, c->send_cq[node], 1, &err) < 0 ||
			rc_cq_reserve(n->dev, c->recv_cq[node], 1, &err) < 0)) {
		sim_fail(c->sim, "cq_reserve: %s", err.text);
		return;
	}
	init.send_cq = c->send_cq[node];
	init.recv_cq = c->recv_cq[node];
	if (rc_qp_create(n->worker, &init, &c->qpn[node], &err) < 0) {
		sim_fail(c->sim, "qp_create: %s", err.text);
		return;
	}
	if (conn_modify(c, node, &a,
		    QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS) < 0)
		sim_fail(c->sim, "RESET to INIT failed");
}

static void
flow_init(struct flow *f, struct conn *c, unsigned int from)
{
	struct sim_node *a = &c->sim->node[from], *b = &c->sim->node[!from];

	f->conn = c;
	f->from = a;
	f->to = b;
	f->qpn = c->qpn[from];
	f->send_cq = c->send_cq[from];
	f->recv_cq = c->recv_cq[!from];
	f->src = sim_arena(a, 2 * FLOW_MSG_MAX);
	f->src_key = sim_register(a, f->src, 2 * FLOW_MSG_MAX, 0);
	f->land = sim_arena(a, 12 * FLOW_MSG_MAX);
	f->land_key = sim_register(a, f->land, 12 * FLOW_MSG_MAX, MEM_ACCESS_LOCAL_WRITE);
	f->land_ro_key = sim_register(a, f->land, 12 * FLOW_MSG_MAX, 0);
	f->hot = sim_arena(b, 2 * FLOW_MSG_MAX);
	f->hot_key = sim_register(b, f->hot, 2 * FLOW_MSG_MAX,
		MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_MW_BIND);
	f->hot_ro_key = sim_register(b, f->hot, 2 * FLOW_MSG_MAX, MEM_ACCESS_REMOTE_READ);
	f->once = sim_arena(b, 8 * FLOW_MSG_MAX);
	f->once_key = sim_register(b, f->once, 8 * FLOW_MSG_MAX,
		MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_READ);
	f->konst = sim_arena(b, 2 * FLOW_MSG_MAX);
	f->konst_key = sim_register(b, f->konst, 2 * FLOW_MSG_MAX, MEM_ACCESS_REMOTE_READ);
	f->words = sim_arena(b, FLOW_WORDS * 8);
	f->words_key = sim_register(b, f->words, FLOW_WORDS * 8,
		MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE_ATOMIC | MEM_ACCESS_REMOTE_READ);
	f->pool = sim_arena(b, FLOW_POOL);
	f->pool_key = sim_register(b, f->pool, FLOW_POOL, MEM_ACCESS_LOCAL_WRITE);
}

struct conn *
conn_create(struct sim *s, const struct conn_options *opt)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		abort();
	c->sim = s;
	c->opt = *opt;
	for (unsigned int i = 0; i < SIM_NODES && !s->failed; i++)
		conn_create_end(c, i);
	for (unsigned int i = 0; i < SIM_NODES && !s->failed; i++) {
		flow_init(&c->flow[i], c, i);
		s->flows[s->num_flows++] = &c->flow[i];
	}
	if (opt->stay_init)
		return c;
	for (unsigned int i = 0; i < SIM_NODES && !s->failed; i++)
		conn_to_rtr(c, i);
	for (unsigned int i = 0; i < SIM_NODES && !s->failed; i++)
		conn_to_rts(c, i);
	return c;
}

void
conn_destroy_qp(struct conn *c, unsigned int node)
{
	struct error err = { 0 };

	if (c->destroyed[node])
		return;
	sim_trace(c->sim, "node %u destroys QP 0x%x", node, c->qpn[node]);
	if (rc_qp_destroy(c->sim->node[node].worker, c->qpn[node], &err) < 0)
		sim_fail(c->sim, "qp_destroy: %s", err.text);
	c->destroyed[node] = true;
	c->flow[node].gone = true;
}

void
conn_destroy(struct conn *c)
{
	struct error err = { 0 };

	for (unsigned int i = 0; i < SIM_NODES; i++) {
		struct rc_dev *dev = c->sim->node[i].dev;

		conn_destroy_qp(c, i);
		if (rc_cq_destroy(dev, c->send_cq[i], &err) < 0 ||
			rc_cq_destroy(dev, c->recv_cq[i], &err) < 0)
			sim_fail(c->sim, "cq_destroy: %s", err.text);
	}
	free(c);
}
