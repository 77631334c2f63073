/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Connect each queue pair of an endpoint with one of its peer's, whose numbers are known. */

#include <errno.h>

#include <rte_cycles.h>

#include "command.h"
#include "report.h"
#include "traffic/bench.h"

#define RESOLVE_MS   5000
#define PROGRESS_QPS 1024
#define READS        16 /* Reads and Atomics under way */

void
endpoint_describe(struct endpoint *end, struct peer *p)
{
	*p = (struct peer){
		.gid = link_port_attr(engine_link(end->engine), end->port)->gid[0].gid,
		.psn = end->psn,
		.va = end->mr.va,
		.key = end->mr.key,
		.qpn = end->qpn,
	};
}

static int
connect_qp(struct endpoint *end, const struct peer *p, uint32_t i, const struct bench_options *o,
	struct error *err)
{
	struct engine_ah ah = { .port = end->port, .dgid = p->gid };
	struct qp_attr attr = {
		.qp_state = QPS_INIT,
		.qp_access_flags = MEM_ACCESS_REMOTE,
		.port = end->port,
		.path_mtu = (uint16_t)o->mtu,
		.timeout = (uint8_t)o->timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = (uint8_t)o->rnr_timer,
		.max_rd_atomic = READS,
		.max_dest_rd_atomic = READS,
		.sq_psn = end->psn,
		.rq_psn = p->psns != NULL ? p->psns[i] : p->psn,
		.dest_qp_num = p->qpn[i],
	};
	int ret;

	ret = engine_qp_modify(end->engine, end->qpn[i], &attr, NULL, QP_ATTR_STATE | QP_ATTRS_INIT,
		err);
	if (ret != 0)
		return ret;
	attr.qp_state = QPS_RTR;
	ret = engine_qp_modify(end->engine, end->qpn[i], &attr, &ah, QP_ATTR_STATE | QP_ATTRS_RTR,
		err);
	if (ret != 0)
		return ret;
	attr.qp_state = QPS_RTS;
	return engine_qp_modify(end->engine, end->qpn[i], &attr, NULL, QP_ATTR_STATE | QP_ATTRS_RTS,
		err);
}

int
endpoint_connect(struct endpoint *end, const struct peer *p, const struct bench_options *o,
	struct error *err)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < o->qps && ret == 0; i++) {
		if (i % PROGRESS_QPS == 0)
			report_progress("connecting queue pair %u of %u", i, o->qps);
		if (bench_stop != 0)
			return error_set(err, EINTR, "interrupted");
		ret = connect_qp(end, p, i, o, err);
	}
	return ret;
}

static bool
knows_next_hop(const struct endpoint *end)
{
	struct link_neighbour_info info;
	uint32_t cursor = 0;

	while (link_neighbour_next(engine_link(end->engine), &cursor, &info))
		if (info.port == end->port)
			return info.resolved;
	return false;
}

int
endpoints_resolve(struct endpoint *end, unsigned int n, struct error *err)
{
	uint64_t now = rte_get_tsc_cycles();
	uint64_t until = now + RESOLVE_MS * (rte_get_tsc_hz() / 1000);
	unsigned int i, w, known;

	for (; now < until; now = rte_get_tsc_cycles()) {
		for (i = 0, known = 0; i < n; i++) {
			for (w = 0; w < end[i].workers && !end[i].shared; w++)
				engine_turn(end[i].engine, w, now);
			known += knows_next_hop(&end[i]);
		}
		if (known == n)
			return 0;
		report_progress("waiting for the other end's address");
	}
	return error_set(err, ETIMEDOUT, "the other end's address is not resolved after %u ms",
		RESOLVE_MS);
}
