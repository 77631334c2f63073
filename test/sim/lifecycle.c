/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Scenarios of objects instead of packets: QP states, windows, SRQs and CQs. */

#include <string.h>

#include "coverage.h"
#include "script.h"

#define BIT(status) (1u << (status))

static void
modify_state(struct sim *s, struct conn *c, unsigned int node, enum qp_state to, bool must)
{
	struct qp_attr a = { .qp_state = to, .en_sqd_async_notify = true };
	uint32_t mask = QP_ATTR_STATE;

	if (c->destroyed[node])
		return;
	if (to == QPS_SQD && conn_state(c, node) == QPS_RTS)
		mask |= QP_ATTR_EN_SQD_ASYNC_NOTIFY;
	if (conn_modify(c, node, &a, mask) < 0 && must)
		sim_fail(s, "modify to %s failed", qp_state_name(to));
}

static void
lifecycle_resume(struct sim *s, void *arg)
{
	struct conn *c = s->script->conn[0];
	unsigned int node = arg != NULL;

	if (conn_state(c, node) != QPS_SQD)
		return;
	modify_state(s, c, node, QPS_SQD, false); /* SQD -> SQD, refused while it still drains */
	modify_state(s, c, node, QPS_RTS, true);
	modify_state(s, c, node, QPS_RTS, true); /* RTS -> RTS */
}

static void
lifecycle_drain_now(struct sim *s)
{
	struct conn *c = s->script->conn[0];
	unsigned int node = sim_below(s, 2);

	if (conn_state(c, node) != QPS_RTS)
		return;
	modify_state(s, c, node, QPS_SQD, true);
	sim_at(s, s->now + sim_below(s, 3000000), lifecycle_resume, node ? (void *)1 : NULL);
}

static void
lifecycle_error_now(struct sim *s)
{
	struct conn *c = s->script->conn[0];
	unsigned int node = sim_below(s, 2);

	if (sim_below(s, 2) && conn_state(c, node) == QPS_RTS)
		modify_state(s, c, node, QPS_SQD, true);
	modify_state(s, c, node, QPS_ERR, true);
	modify_state(s, c, node, QPS_ERR, true);
}

static void
lifecycle_reset_now(struct sim *s)
{
	struct conn *c = s->script->conn[0];
	unsigned int node = sim_below(s, 2);

	if (sim_below(s, 2) && conn_state(c, node) == QPS_RTS)
		modify_state(s, c, node, QPS_SQD, true);
	modify_state(s, c, node, QPS_RESET, true);
	/* RESET drops outstanding requests without completion, as the standard says */
	c->flow[node].gone = true;
}

/* Step through the states of a QP without traffic: each state is left for RESET and for ERR. */
static void
walk(struct sim *s)
{
	static const enum qp_state ends[] = { QPS_RESET, QPS_ERR };
	struct conn_options o = conn_options_random(s);
	struct conn *c;

	o.stay_init = true;
	c = script_connect(s, &o);
	for (unsigned int i = 0; i < SIM_NODES && !s->failed; i++) {
		struct qp_attr a = {
			.qp_state = QPS_INIT,
			.pkey = 0xFFFF,
			.qp_access_flags = MEM_ACCESS_REMOTE,
		};
		unsigned int deep = sim_below(s, 3);

		modify_state(s, c, i, QPS_INIT, true); /* INIT -> INIT */
		if (conn_modify(c, i, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX) < 0)
			sim_fail(s, "INIT to INIT failed");
		if (deep > 0)
			conn_to_rtr(c, i);
		if (deep > 1)
			conn_to_rts(c, i);
		modify_state(s, c, i, ends[sim_below(s, 2)], true);
		modify_state(s, c, i, QPS_RESET, true);
		modify_state(s, c, i, QPS_RTS, false); /* refused in RESET */
		if (conn_state(c, i) != QPS_RESET)
			sim_fail(s, "RESET to RTS was accepted");
	}
}

void
scenario_states(struct sim *s)
{
	static void (*const acts[])(
		struct sim * s) = { lifecycle_drain_now, lifecycle_error_now, lifecycle_reset_now };
	struct script *sc = script_create(s);
	unsigned int which = sim_below(s, 3);
	struct conn_options o;
	struct conn *c;

	script_nodes(s);
	o = conn_options_random(s);
	c = script_connect(s, &o);
	flow_plan(&c->flow[0], 40, KINDS_ALL);
	flow_plan(&c->flow[1], sim_below(s, 30), KINDS_ALL);
	sc->act = acts[which];
	sc->act_at = s->now + sim_below(s, 300000);
	if (which != 0)
		for (unsigned int i = 0; i < SIM_NODES; i++)
			script_allow(&c->flow[i],
				BIT(WC_RETRY_EXC_ERR) | BIT(WC_WR_FLUSH_ERR) |
					BIT(WC_RNR_RETRY_EXC_ERR));
	walk(s);
	script_run(s);
}

static void
passive_ready(struct sim *s)
{
	s->script->served = s->node[1].verdicts[VERDICT_REQUEST];
	conn_to_rts(s->script->conn[0], 1);
}

/* A QP in RTR executes requests and raises COMM_EST once (rc-transport 11). */
void
scenario_passive(struct sim *s)
{
	struct script *sc = script_create(s);
	struct conn_options o;
	struct conn *c;

	script_nodes(s);
	script_bad_network(s, 200);
	o = conn_options_random(s);
	o.stay_init = true;
	c = script_connect(s, &o);
	conn_to_rtr(c, 0);
	conn_to_rtr(c, 1);
	conn_to_rts(c, 0);
	flow_plan(&c->flow[0], 1 + sim_below(s, 40), KINDS_ALL);
	sc->act = passive_ready;
	sc->act_at = s->now + 50000 + sim_below(s, 1000000);
	script_run(s);
	if (!s->failed && sc->served > 0 && s->node[1].event_count[EVENT_COMM_EST] != 1)
		sim_fail(s, "%llu COMM_EST events",
			(unsigned long long)s->node[1].event_count[EVENT_COMM_EST]);
}

static int
lifecycle_post_bind(struct sim_node *n, uint32_t qpn, uint32_t mw, uint32_t new_key, uint32_t mr,
	uint64_t va, uint64_t len)
{
	struct send_wr wr = { .wr_id = 1, .opcode = WR_BIND_MW, .send_flags = SEND_SIGNALED };
	struct error err = { 0 };
	int rc;

	wr.bind_mw.mw_key = mw;
	wr.bind_mw.new_key = new_key;
	wr.bind_mw.mr_key = mr;
	wr.bind_mw.addr = va;
	wr.bind_mw.length = len;
	wr.bind_mw.access = MEM_ACCESS_REMOTE_WRITE;
	rc = rc_post_send(n->worker, qpn, &wr, &err);
	if (rc < 0)
		sim_fail(n->sim, "bind: %s", err.text);
	return rc;
}

static uint32_t
post_write(struct sim_node *n, uint32_t qpn, const struct flow *f, uint32_t rkey, uint32_t at,
	uint32_t len)
{
	struct sge sge = { SIM_VA + f->src, len, f->src_key };
	struct send_wr wr = {
		.wr_id = 2,
		.opcode = WR_RDMA_WRITE,
		.num_sge = 1,
		.sg_list = &sge,
		.send_flags = SEND_SIGNALED,
		.remote_addr = SIM_VA + at,
		.rkey = rkey,
	};
	struct error err = { 0 };

	if (rc_post_send(n->worker, qpn, &wr, &err) < 0)
		sim_fail(n->sim, "write: %s", err.text);
	return len;
}

static void
lifecycle_expect_wc(struct sim *s, struct sim_node *n, uint32_t cqn, uint32_t status,
	const char *what)
{
	uint64_t until = s->now + SIM_SECOND;
	struct wc wc;
	int got = 0;

	while (!s->failed && s->now < until && (got = rc_cq_poll(n->dev, cqn, &wc, 1)) == 0)
		sim_run(s, s->now + 10000 < until ? s->now + 10000 : until, NULL);
	if (got != 1) {
		sim_fail(s, "%s: no completion", what);
		return;
	}
	coverage_status(s->coverage, wc.status);
	if (wc.status != status)
		sim_fail(s, "%s: %s", what, wc_status_name(wc.status));
}

/*
 * A type 2 window: the target binds it, the peer uses it, the target or the peer's Send invalidates
 * it, and further use is refused.
 */
void
scenario_windows(struct sim *s)
{
	struct sim_node *a = &s->node[0], *b = &s->node[1];
	struct send_wr inv = { .wr_id = 3, .opcode = WR_LOCAL_INV, .send_flags = SEND_SIGNALED };
	struct error err = { 0 };
	struct conn_options o;
	struct conn *c;
	struct flow *f;
	uint32_t mw, key, len;

	script_create(s);
	script_nodes(s);
	o = conn_options_random(s);
	c = script_connect(s, &o);
	f = &c->flow[0];
	if (mem_mw_alloc(b->mem, b->pd, MEM_MW_TYPE_2, &mw, &err) < 0) {
		sim_fail(s, "mw_alloc: %s", err.text);
		goto out;
	}
	key = (mw & ~0xFFu) | ((mw + 1) & 0xFF);
	len = 1 + sim_below(s, 4 * o.pmtu);
	lifecycle_post_bind(b, c->qpn[1], mw, key, f->hot_key, SIM_VA + f->hot, len);
	lifecycle_expect_wc(s, b, c->send_cq[1], WC_SUCCESS, "bind");
	memcpy(b->model + f->hot, a->arena + f->src, post_write(a, c->qpn[0], f, key, f->hot, len));
	lifecycle_expect_wc(s, a, c->send_cq[0], WC_SUCCESS, "write through the window");
	sim_check_memory(s);
	if (s->failed)
		goto out;
	if (sim_below(s, 2)) {
		inv.invalidate_rkey = key;
		if (rc_post_send(b->worker, c->qpn[1], &inv, &err) < 0)
			sim_fail(s, "local invalidate: %s", err.text);
		lifecycle_expect_wc(s, b, c->send_cq[1], WC_SUCCESS, "local invalidate");
	} else {
		struct flow_op *op = &f->op[0];

		/* a Send with Invalidate whose last packet carries the key */
		inv.opcode = WR_SEND_WITH_INV;
		inv.invalidate_rkey = key;
		op->opcode = WR_SEND_WITH_INV;
		op->num_sge = 1;
		op->sge_offset[0] = f->src;
		op->length = op->sge_len[0] = sim_below(s, 2) ? 3 * o.pmtu : sim_below(s, 64);
		inv.num_sge = 1;
		inv.sg_list = &(struct sge){ SIM_VA + f->src, op->length, f->src_key };
		inv.wr_id = 0;
		f->ops = f->posted = 1;
		op->signaled = true;
		flow_post_recv(f, 1);
		if (rc_post_send(a->worker, c->qpn[0], &inv, &err) < 0)
			sim_fail(s, "send with invalidate: %s", err.text);
		for (int i = 0; i < 1000 && f->completed == 0 && !s->failed; i++) {
			sim_run(s, s->now + 10000, NULL);
			flow_poll(f);
		}
		if (f->completed != 1 || f->received != 1)
			sim_fail(s, "Send with Invalidate did not arrive");
		f->failed = true; /* the next request must fail */
	}
	post_write(a, c->qpn[0], f, key, f->hot, len);
	lifecycle_expect_wc(s, a, c->send_cq[0], WC_REM_ACCESS_ERR,
		"write through an invalidated window");
	sim_check_memory(s);
out:
	return;
}

/* One QP on a shared queue: the limit event once, LAST_WQE when it goes to ERR. */
void
scenario_srq(struct sim *s)
{
	struct script *sc = script_create(s);
	struct sim_node *b = &s->node[1];
	struct conn_options o;
	struct error err = { 0 };
	struct conn *c;
	uint32_t srq;

	script_nodes(s);
	sc->recv_ahead = 12;
	if (rc_srq_create(b->worker, b->pd, 16, FLOW_SGES, &srq, &err) < 0 ||
		rc_srq_modify(b->worker, srq, 4, &err) < 0) {
		sim_fail(s, "srq: %s", err.text);
		return;
	}
	o = conn_options_random(s);
	o.srq[1] = srq;
	c = script_connect(s, &o);
	flow_plan(&c->flow[0], 60, KINDS_ALL);
	script_run(s);
	modify_state(s, c, 1, QPS_ERR, true);
	if (!s->failed && b->event_count[EVENT_QP_LAST_WQE_REACHED] != 1)
		sim_fail(s, "no LAST_WQE_REACHED event");
	c->flow[0].recv_failed = true;
	sc->srq = srq;
}

/* Nobody polls: the CQ overruns, raises one event, and its QPs go to ERR. */
void
scenario_cq_overrun(struct sim *s)
{
	struct script *sc = script_create(s);
	struct conn_options o;
	struct conn *c;
	uint64_t errors;

	script_nodes(s);
	sc->no_poll = true;
	sc->recv_ahead = 30;
	o = conn_options_random(s);
	o.cq_depth = 4;
	o.sq_depth = 32;
	c = script_connect(s, &o);
	flow_plan(&c->flow[0], 60, KIND(WR_SEND) | KIND(WR_RDMA_WRITE));
	c->flow[0].lenient = true;
	c->flow[1].lenient = true;
	sc->limit = s->now + SIM_SECOND;
	sc->may_time_out = true;
	script_run(s);
	errors = s->node[0].event_count[EVENT_CQ_ERR] + s->node[1].event_count[EVENT_CQ_ERR];
	if (!s->failed && (errors == 0 || errors > 4) /* one per CQ */)
		sim_fail(s, "%llu CQ error events", (unsigned long long)errors);
	if (!s->failed && conn_state(c, 0) != QPS_ERR && conn_state(c, 1) != QPS_ERR)
		sim_fail(s, "no QP went to ERR when its CQ overran");
}
