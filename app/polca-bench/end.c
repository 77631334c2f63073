/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* One end of a benchmark: an engine with a port, a region, a completion queue and queue pairs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "bench.h"

#define BUFFER_VA UINT64_C(0x100000)
#define CONNECT_MS 2000

static int
take_worker(struct worker *w, void *arg)
{
	*(struct rc_worker **)arg = worker_rc(w);
	return 0;
}

static void
fill_port(struct link_port_config *p, const char *device, enum bench_role role)
{
	const uint8_t ip[4] = { 192, 0, 2, (uint8_t)(role + 1) };

	snprintf(p->name, sizeof(p->name), "port0");
	snprintf(p->device, sizeof(p->device), "%s", device);
	p->vlan = PATH_NO_VLAN;
	p->mtu = 4200;
	p->mac[0] = 2;
	p->mac[5] = (uint8_t)(role + 1);
	p->num_addr = 1;
	p->addr[0].gid = gid_from_ipv4(ip);
	p->addr[0].prefix_len = 24;
}

static int
make_objects(struct end *end, const struct bench_options *o, struct error *err)
{
	struct mem_mr_attr mr = {
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE,
		.length = (uint64_t)o->footprint + o->size,
		.va = BUFFER_VA,
		.hugepages = true,
		.numa_node = -1,
	};
	struct qp_init_attr init = {
		.qp_type = QPT_RC,
		.srq = RC_NO_SRQ,
		.ack_per_packet = o->ack_per_packet,
		.cap = { .max_send_wr = o->depth, .max_recv_wr = o->rx_depth, .max_send_sge = 1,
			.max_recv_sge = 1, .max_inline_data = o->inline_size },
	};
	uint32_t i;
	int ret;

	ret = engine_pd_alloc(end->engine, &end->pd, err);
	mr.pd = end->pd;
	if (ret == 0)
		ret = engine_mr_register(end->engine, &mr, &end->mr, err);
	if (ret == 0)
		ret = engine_cq_create(end->engine, 2 * o->qps * (o->depth + o->rx_depth), &end->cq, err);
	if (ret != 0)
		return ret;
	/* so that what arrives can be told from zeroes */
	for (i = 0; i < mr.length; i++)
		end->mr.base[i] = (uint8_t)(i * 2654435761u >> 11);
	end->qpn = calloc(o->qps, sizeof(*end->qpn));
	if (end->qpn == NULL)
		return error_set(err, ENOMEM, "no memory for %u queue pairs", o->qps);
	init.pd = end->pd;
	init.send_cq = init.recv_cq = end->cq;
	for (i = 0; i < o->qps && ret == 0; i++)
		ret = engine_qp_create(end->engine, 0, &init, &end->qpn[i], err);
	end->qps = i;
	return ret;
}

int
end_create(struct end *end, const struct bench_options *o, const char *device,
	enum bench_role role, unsigned int lcore, struct error *err)
{
	struct engine_config config = engine_config_default;
	uint32_t i;

	*end = (struct end){ .role = role };
	config.limits = rc_limits_default;
	for (i = config.limits.max_qp; i < 2 * o->qps; i *= 2)
		;
	config.limits.max_qp = i;
	config.limits.max_cqe = UINT32_C(1) << 23;
	config.link.num_ports = 1;
	fill_port(&config.link.port[0], device, role);
	config.sa.enabled = false;
	config.icrc_unchecked = !o->icrc;
	config.first_worker = lcore;
	config.workers = 1;
	end->engine = engine_create(&config, err);
	if (end->engine == NULL)
		return -EIO;
	engine_call(end->engine, 0, take_worker, &end->rc);
	return make_objects(end, o, err);
}

void
end_destroy(struct end *end)
{
	engine_destroy(end->engine);
	free(end->qpn);
}

/* --- connecting --- */

static int
connect_qp(struct end *end, const struct end *peer, uint32_t i, const struct bench_options *o,
	struct error *err)
{
	struct engine_ah ah = {
		.dgid = link_port_attr(engine_link(peer->engine), 0)->gid[0].gid,
	};
	struct qp_attr attr = {
		.qp_state = QPS_INIT,
		.qp_access_flags = MEM_ACCESS_REMOTE,
		.path_mtu = (uint16_t)o->mtu,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.sq_psn = 0x123456,
		.rq_psn = 0x123456,
		.dest_qp_num = peer->qpn[i],
	};
	int ret;

	ret = engine_qp_modify(end->engine, end->qpn[i], &attr, NULL,
			QP_ATTR_STATE | QP_ATTR_PORT | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS,
			err);
	if (ret != 0)
		return ret;
	attr.qp_state = QPS_RTR;
	ret = engine_qp_modify(end->engine, end->qpn[i], &attr, &ah,
			QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
					QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
					QP_ATTR_MIN_RNR_TIMER,
			err);
	if (ret != 0)
		return ret;
	attr.qp_state = QPS_RTS;
	return engine_qp_modify(end->engine, end->qpn[i], &attr, NULL,
			QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
					QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC,
			err);
}

static bool
knows_next_hop(const struct end *end)
{
	struct link_neighbour_info info;
	uint32_t cursor = 0;

	return link_neighbour_next(engine_link(end->engine), &cursor, &info) && info.resolved;
}

int
end_connect(struct end *a, struct end *b, const struct bench_options *o, struct error *err)
{
	uint64_t now, until;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < o->qps && ret == 0; i++) {
		ret = connect_qp(a, b, i, o, err);
		if (ret == 0)
			ret = connect_qp(b, a, i, o, err);
	}
	if (ret != 0)
		return ret;
	until = rte_get_tsc_cycles() + CONNECT_MS * (rte_get_tsc_hz() / 1000);
	do {
		now = rte_get_tsc_cycles();
		engine_turn(a->engine, 0, now);
		engine_turn(b->engine, 0, now);
		if (knows_next_hop(a) && knows_next_hop(b))
			return 0;
	} while (now < until);
	return error_set(err, ETIMEDOUT, "the ports' addresses are not resolved after %u ms",
			CONNECT_MS);
}
