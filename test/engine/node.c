/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "base/eal_host.h"
#include "config.h"
#include "eal.h"
#include "engine/worker.h"
#include "default_config.h"
#include "node.h"
#include "tsan_dpdk.h"

unsigned int node_workers = 2;
static struct config config;
static struct engine_config used;

int
eal_setup(void **state)
{
	struct error err = { "" };
	static struct config_errors errs;
	int ret;

	(void)state;
	ret = config_load(&config, NULL, default_config, &errs);
	config_errors_print(&errs, stderr);
	config.workers = node_workers; /* also on a machine with fewer CPUs */
	if (ret == 0)
		ret = eal_start(&config, "--no-telemetry", &err);
	if (ret != 0)
		print_error("%s\n", err.text);
	else
		tsan_use_mbuf_pools();
	return ret;
}

int
eal_teardown(void **state)
{
	unsigned int lcore;

	(void)state;
	/* a test whose setup failed has no teardown; the EAL would wait for its workers for ever */
	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (rte_eal_get_lcore_state(lcore) == RUNNING) {
			print_error(
				"lcore %u still runs: a setup failed, or a test did not stop its engine\n",
				lcore);
			fflush(NULL);
			_exit(1);
		}
	}
	return eal_cleanup();
}

struct engine_config *
node_config(void)
{
	used = config.engine;
	used.num_services = 0; /* tests have their own */
	used.rehome = false; /* QPs stay on the workers that the test chose */
	return &used;
}

struct engine_config *
node_config_ib(bool active)
{
	struct engine_config *c = node_config();
	unsigned int i;

	for (i = 0; i < 2; i++) {
		c->link.port[i].ib = true;
		c->link.port[i].num_addr = 0;
		if (active)
			c->sma.port[i] = (struct sma_port_config){
				.lid = (uint16_t)(i + 1),
				.sm_lid = 2,
				.active = true,
			};
	}
	return c;
}

struct engine *
node_create(void)
{
	struct error err = { "" };
	struct engine *e;

	e = engine_create(&used, &err);
	if (e == NULL)
		fail_msg("%s", err.text);
	tsan_watch_ports();
	return e;
}

struct engine *
node_start(void)
{
	struct error err = { "" };
	struct engine *e = node_create();

	assert_ok(engine_start(e, &err));
	assert_int_equal(engine_workers(e), node_workers);
	return e;
}

void
node_stop(struct engine *e, unsigned int drain_ms)
{
	engine_stop(e, drain_ms);
	engine_destroy(e);
}

void
pause_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

void
ports_up(struct engine *e)
{
	const struct own_following *f = &e->own_following;

	eventually(link_port_attr(e->link, 0)->up && link_port_attr(e->link, 1)->up);
	/* the store's thread writes them: nothing is under way, and nothing is to be tried again */
	eventually((engine_watch(e), f->ports == NULL && f->retry_at == 0));
}

void
end_create(struct engine *e, struct end *end, int worker)
{
	struct mem_mr_attr mr = {
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE,
		.length = BUF_SIZE,
		.va = 0x10000,
		.numa_node = -1,
	};
	struct qp_init_attr init = {
		.qp_type = QPT_RC,
		.srq = RC_NO_SRQ,
		.cap = { .max_send_wr = 256,
				.max_recv_wr = 256,
				.max_send_sge = 1,
				.max_recv_sge = 1, },
	};
	struct error err = { "" };

	*end = (struct end){ 0 };
	assert_ok(engine_pd_alloc(e, &end->pd, &err));
	mr.pd = end->pd;
	assert_ok(engine_mr_register(e, &mr, 0, &end->mr, &err));
	assert_ok(engine_cq_create(e, 1024, &end->cq, &err));
	init.pd = end->pd;
	init.send_cq = end->cq;
	init.recv_cq = end->cq;
	assert_ok(engine_qp_create(e, worker, &init, &end->qpn, &err));
}

void
end_destroy(struct engine *e, struct end *end)
{
	struct error err = { "" };

	if (end->qpn != 0)
		assert_ok(engine_qp_destroy(e, end->qpn, &err));
	assert_ok(engine_cq_destroy(e, end->cq, &err));
	if (end->mr.key != 0)
		assert_ok(engine_mr_deregister(e, end->mr.key, &err));
	assert_ok(engine_pd_free(e, end->pd, &err));
}

void
end_connect(struct engine *e, struct end *end, uint16_t port, const struct end *peer)
{
	const struct port_attr *peer_port = link_port_attr(engine_link(e), !port);
	struct engine_ah ah = {
		.port = port,
		.dlid = peer_port->lid | peer->path_bits,
		.src_path_bits = end->path_bits,
		.traffic_class = end->traffic_class,
	};
	struct qp_attr attr = {
		.qp_state = QPS_INIT,
		.qp_access_flags = MEM_ACCESS_REMOTE,
		.port = port,
		.path_mtu = 1024,
		.timeout = 18, /* the machine may stall for 200 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.sq_psn = 0xFFFFF0,
		.rq_psn = 0xFFFFF0,
		.dest_qp_num = peer->qpn,
	};
	struct error err = { "" };

	if (!peer_port->ib || end->grh)
		ah.dgid = peer_port->gid[0].gid;
	assert_ok(engine_qp_modify(e, end->qpn, &attr, NULL,
		QP_ATTR_STATE | QP_ATTR_PORT | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS, &err));
	attr.qp_state = QPS_RTR;
	assert_ok(engine_qp_modify(e, end->qpn, &attr, &ah,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
		&err));
	attr.qp_state = QPS_RTS;
	assert_ok(engine_qp_modify(e, end->qpn, &attr, NULL,
		QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC,
		&err));
}

void
pair_create(struct engine *e, struct pair *p, int worker_a, int worker_b)
{
	end_create(e, &p->a, worker_a);
	end_create(e, &p->b, worker_b);
	end_connect(e, &p->a, 0, &p->b);
	end_connect(e, &p->b, 1, &p->a);
}

void
pair_destroy(struct engine *e, struct pair *p)
{
	end_destroy(e, &p->a);
	end_destroy(e, &p->b);
}

int
post(struct engine *e, struct end *end, enum wr_opcode op, const struct end *peer, uint64_t local,
	uint64_t remote, uint32_t len, uint64_t wr_id)
{
	struct sge sge = { end->mr.va + local, len, end->mr.key };
	struct send_wr wr = {
		.wr_id = wr_id,
		.opcode = op,
		.send_flags = SEND_SIGNALED,
		.num_sge = len > 0,
		.sg_list = &sge,
		.remote_addr = peer->mr.va + remote,
		.rkey = peer->mr.key,
		.compare_add = 1,
		.swap = 2,
	};

	return engine_post_send(e, end->qpn, &wr, 1, NULL);
}

void
post_recvs(struct engine *e, struct end *end, uint64_t local, uint32_t len, unsigned int n)
{
	struct sge sge = { end->mr.va + local, len, end->mr.key };
	struct recv_wr wr[64];
	struct error err = { "" };
	unsigned int i;

	for (i = 0; i < n && i < 64; i++)
		wr[i] = (struct recv_wr){ .wr_id = 1000 + i, .num_sge = 1, .sg_list = &sge };
	assert_ok(engine_post_recv(e, end->qpn, wr, n, &err));
}

unsigned int
wait_wc(struct engine *e, uint32_t cq, struct wc *wc, unsigned int n, unsigned int ms)
{
	unsigned int got = 0, waited = 0;
	int ret;

	while (got < n) {
		ret = engine_cq_poll(e, cq, wc + got, n - got, NULL);
		if (ret < 0)
			break;
		got += (unsigned int)ret;
		if (ret == 0 && waited++ >= ms)
			break;
		if (ret == 0)
			pause_ms(1);
	}
	return got;
}

void
fill(uint8_t *buf, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		buf[i] = (uint8_t)(seed >> 24);
	}
}

uint64_t
verdict_total(const struct engine *e, enum verdict v)
{
	struct link_counters sum;
	uint64_t total = 0;
	unsigned int port;

	for (port = 0; port < 2; port++) {
		engine_port_counters(e, port, -1, &sum);
		total += sum.verdict[v];
	}
	return total;
}

struct record_changes {
	const struct sa_change *changes;
	size_t n;
	struct error *err;
};

static int
node_change_store(struct engine *e, void *arg)
{
	const struct record_changes *a = arg;

	return sa_change(e->sa, a->changes, a->n, a->err);
}

void
change_records(struct engine *e, const struct sa_change *changes, size_t n)
{
	struct error err = { "" };
	struct record_changes a = { changes, n, &err };

	assert_ok(store_thread_call(e, node_change_store, &a));
}
