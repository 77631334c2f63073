/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* An endpoint of a benchmark: a port of an engine, a region, completion queues and queue pairs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>

#include "command.h"
#include "engine/verbs_trace.h"
#include "report.h"
#include "traffic/bench.h"

#define BUFFER_VA    UINT64_C(0x100000)
#define FRAME_MTU    4200 /* a path MTU of 4096 and its headers */
#define PROGRESS_QPS 1024
#define LAT_SEND_WR  64
#define CQE_MAX      (UINT32_C(1) << 23)

bool
endpoint_sends(const struct bench_options *o, enum bench_role role)
{
	if (role == REQUESTER || o->bidirectional)
		return true;
	/* in a ping-pong, the responder answers */
	return o->mode == BENCH_LAT && (o->verb == BENCH_SEND || o->verb == BENCH_WRITE);
}

bool
endpoint_receives(const struct bench_options *o, enum bench_role role)
{
	return o->verb == BENCH_SEND &&
		(role == RESPONDER || o->bidirectional || o->mode == BENCH_LAT);
}

/*
 * Room for several requests: a ping-pong's answer may arrive before the ACK of the request, or that
 * ACK may be lost.
 */
static uint32_t
send_wr(const struct bench_options *o)
{
	return o->mode == BENCH_LAT ? LAT_SEND_WR : o->depth;
}

static int
get_rc_worker(struct worker *w, void *arg)
{
	*(struct rc_worker **)arg = worker_rc(w);
	return 0;
}

/* A port of a link in memory gets a MAC and an MTU; a device has its own. */
static int
endpoint_fill_port(struct link_port_config *p, const struct bench_options *o, const char *device,
	enum bench_role role, struct error *err)
{
	const uint8_t ip[4] = { 192, 0, 2, (uint8_t)(role + 1) };

	snprintf(p->name, sizeof(p->name), "port%u", role);
	snprintf(p->device, sizeof(p->device), "%s", device);
	p->vlan = PATH_NO_VLAN;
	p->trusted = true; /* both ends of a memif link are the user's benchmarks */
	p->num_addr = 1;
	p->addr[0].gid = gid_from_ipv4(ip);
	p->addr[0].prefix_len = 24;
	if (options_device(o))
		return link_device_address(o, &p->addr[0], err);
	p->mtu = FRAME_MTU;
	p->mac[0] = 2;
	p->mac[5] = (uint8_t)(role + 1);
	return 0;
}

/*
 * Callback of link_open(): print what it waits for, since DPDK's log is hidden, and stop after a
 * signal.
 */
static bool
bench_go_on_waiting(const char *what)
{
	if (what != NULL)
		fprintf(stderr, "polca-bench: %s\n", what);
	return bench_stop == 0;
}

static void
endpoint_fill_config(struct engine_config *c, const struct bench_options *o, uint32_t qps)
{
	*c = engine_config_default;
	c->limits = rc_limits_default;
	while (c->limits.max_qp < 2 * qps)
		c->limits.max_qp *= 2;
	c->limits.max_qp_wr = RTE_MAX(c->limits.max_qp_wr, RTE_MAX(send_wr(o), o->rx_depth));
	c->limits.max_inline = RC_INLINE_MAX;
	c->limits.max_cqe = CQE_MAX;
	c->sa.enabled = false;
	c->rehome = o->rehome;
	c->icrc_unchecked = !o->icrc;
	c->link.icrc_off = !o->icrc;
	c->max_pd = 8;
	c->max_mr = 64;
	c->max_mw = 64;
	c->link.go_on_waiting = bench_go_on_waiting;
}

/*
 * A queue pair with posted work requests stays on its worker. One that is only a target may follow
 * its packets to another worker.
 */
static bool
endpoint_pinned(const struct bench_options *o, enum bench_role role)
{
	return !o->rehome || endpoint_sends(o, role) || endpoint_receives(o, role);
}

/* With --handoff, this share of a worker's queue pairs has its peer on the next worker. */
static unsigned int
endpoint_worker_of(const struct endpoint *end, const struct bench_options *o, uint32_t i)
{
	uint32_t nth = i / end->workers;
	bool away = (nth + 1) * o->handoff / 100 != nth * o->handoff / 100;

	return (i + (end->role == RESPONDER && away)) % end->workers;
}

void
endpoint_qp_attr(const struct endpoint *end, const struct bench_options *o,
	struct qp_init_attr *init)
{
	*init = (struct qp_init_attr){
		.qp_type = QPT_RC,
		.pd = end->pd,
		.srq = RC_NO_SRQ,
		.ack_per_packet = o->ack_per_packet,
		.pinned = endpoint_pinned(o, end->role),
		.cap = { .max_send_wr = endpoint_sends(o, end->role) ? send_wr(o) : 1,
			.max_recv_wr = endpoint_receives(o, end->role) ? o->rx_depth : 1,
			.max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = o->inline_size, },
	};
}

static int
endpoint_make_qps(struct endpoint *end, const struct bench_options *o, struct error *err)
{
	struct qp_init_attr init;
	unsigned int worker;
	uint32_t i;
	int ret = 0;

	end->qpn = calloc(o->qps, sizeof(*end->qpn));
	if (end->qpn == NULL)
		return error_set(err, ENOMEM, "no memory for %u queue pairs", o->qps);
	if (options_connects(o))
		return 0; /* the connection manager creates the queue pairs */
	if (o->record)
		engine_trace_switch_all(end->engine, ENGINE_TRACED_QP, true);
	endpoint_qp_attr(end, o, &init);
	for (i = 0; i < o->qps && ret == 0; i++) {
		if (i % PROGRESS_QPS == 0)
			report_progress("queue pair %u of %u", i, o->qps);
		if (bench_stop != 0)
			return error_set(err, EINTR, "interrupted");
		worker = endpoint_worker_of(end, o, i);
		init.send_cq = init.recv_cq = end->cq[worker];
		ret = engine_qp_create(end->engine, (int)worker, &init, &end->qpn[i], err);
	}
	end->qps = i;
	return ret;
}

static int
endpoint_make_objects(struct endpoint *end, const struct bench_options *o, struct error *err)
{
	struct mem_mr_attr mr = {
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE,
		.length = memory_bytes(o),
		.va = BUFFER_VA,
		.hugepages = true,
		.numa_node = -1,
	};
	uint64_t cqe = 1 +
		(uint64_t)o->qps *
			((endpoint_sends(o, end->role) ? send_wr(o) : 0) +
				(endpoint_receives(o, end->role) ? o->rx_depth : 0));
	unsigned int i;
	int ret;

	for (i = 0; i < end->workers; i++)
		engine_call(end->engine, i, get_rc_worker, &end->rc[i]);
	end->psn = (uint32_t)rng_u64(&rng_kernel) & 0xFFFFFF;
	ret = engine_pd_alloc(end->engine, &end->pd, err);
	mr.pd = end->pd;
	if (ret == 0)
		ret = engine_mr_register(end->engine, &mr, 0, &end->mr, err);
	for (i = 0; i < end->workers && ret == 0; i++)
		ret = engine_cq_create(end->engine, (uint32_t)RTE_MIN(cqe, CQE_MAX), &end->cq[i],
			err);
	if (ret != 0)
		return ret;
	memory_fill(end, o);
	return endpoint_make_qps(end, o, err);
}

int
endpoint_create(struct endpoint *end, const struct bench_options *o, const char *device,
	enum bench_role role, unsigned int lcore, struct error *err)
{
	struct engine_config config;

	*end = (struct endpoint){ .role = role, .workers = 1 };
	endpoint_fill_config(&config, o, o->qps);
	config.link.num_ports = 1;
	if (endpoint_fill_port(&config.link.port[0], o, device, role, err) != 0)
		return -EINVAL;
	config.first_worker = lcore;
	config.workers = 1;
	end->engine = engine_create(&config, err);
	return end->engine != NULL ? endpoint_make_objects(end, o, err) : -EIO;
}

int
endpoints_create(struct endpoint end[ROLES], const struct bench_options *o, struct error *err)
{
	struct engine_config config;
	unsigned int i;
	int ret = 0;

	endpoint_fill_config(&config, o, 2 * o->qps);
	config.link.num_ports = ROLES;
	config.workers = o->workers;
	for (i = 0; i < ROLES; i++) {
		end[i] = (struct endpoint){ .role = i, .workers = o->workers, .port = (uint16_t)i };
		endpoint_fill_port(&config.link.port[i], o, "", i, err);
	}
	end[RESPONDER].shared = true;
	snprintf(config.link.port[0].back_to_back, sizeof(config.link.port[0].back_to_back), "%s",
		config.link.port[1].name);
	end[0].engine = end[1].engine = engine_create(&config, err);
	if (end[0].engine == NULL)
		return -EIO;
	for (i = 0; i < ROLES && ret == 0; i++)
		ret = endpoint_make_objects(&end[i], o, err);
	return ret;
}

int
endpoint_add(struct endpoint *end, const struct endpoint *of, const struct bench_options *o,
	struct error *err)
{
	*end = (struct endpoint){
		.engine = of->engine,
		.shared = true,
		.role = of->role,
		.port = of->port,
		.workers = of->workers,
	};
	return endpoint_make_objects(end, o, err);
}

void
endpoint_destroy(struct endpoint *end)
{
	if (!end->shared)
		engine_destroy(end->engine);
	free(end->qpn);
	free(end->connection);
}
