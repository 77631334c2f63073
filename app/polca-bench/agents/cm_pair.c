/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connects and disconnects per second: two communication managers, each with lib/rc and lib/mad as
 * in a worker, on a link in memory with real frames. One core alternates between both sides; the
 * time of each is measured separately, so that the rates are those of a core with one side only.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "agents/agents.h"
#include "cm/cm.h"
#include "rc/rc.h"

#define FLIGHT  256 /* connections under way at a time */
#define SERVICE UINT64_C(0x0106461E)
#define QUEUE   4096

struct side {
	struct cm_pair *pair;
	struct port_attr port;
	struct frames out;
	struct timer_wheel *wheel;
	struct mem *mem;
	struct rc_dev *dev;
	struct rc_worker *rc;
	struct mad_worker *mad;
	struct cm *cm;
	struct cm_conn_param param;
	uint64_t busy; /* TSC cycles */
	uint64_t begun, established, released;
	bool keep; /* do not disconnect established connections */
};

struct cm_pair {
	struct side active, passive;
	uint64_t now; /* ns */
	uint64_t standing;
};

/* --- users --- */

static uint16_t
side_on_request(void *listener, const struct cm_request *req, struct cm_conn_param *param,
	void **user)
{
	struct side *s = listener;

	(void)req;
	*param = s->param;
	*user = s;
	return 0;
}

static void
side_on_established(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	struct side *s = user;

	(void)data;
	(void)len;
	s->established++;
	if (info->active && !s->keep)
		cm_disconnect(s->cm, info->id, NULL, 0, s->pair->now);
}

static void
side_on_released(void *user)
{
	struct side *s = user;

	s->released++;
}

static const struct cm_user user = {
	.name = "bench",
	.request = side_on_request,
	.established = side_on_established,
	.released = side_on_released,
};

/* --- creation --- */

static const struct port_attr *
side_get_port(void *arg, uint16_t port)
{
	struct side *s = arg;

	return port == 0 ? &s->port : NULL;
}

static void
side_take_event(void *arg, const struct event *ev)
{
	struct side *s = arg;

	if (s->cm != NULL)
		cm_qp_event(s->cm, ev);
}

static void
create_rc(struct side *s)
{
	struct mem_config mc = {
		.max_pd = 1,
		.max_mr = 1,
		.max_mw = 1,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = 1,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_worker_config wc = {
		.wheel = s->wheel,
		.tx = &s->out.sink,
		.event = side_take_event,
		.event_arg = s,
	};
	uint32_t pd = 0, cq = 0;

	s->mem = mem_create(&mc);
	dc.mem = s->mem;
	dc.limits.max_qp = 32768;
	s->dev = rc_dev_create(&dc);
	s->rc = s->dev != NULL ? rc_worker_create(s->dev, &wc) : NULL;
	if (s->rc == NULL || mem_pd_alloc(s->mem, &pd, NULL) != 0 ||
		rc_cq_create(s->dev, 64, &cq, NULL) != 0)
		bench_die("no memory for queue pairs");
	s->param = (struct cm_conn_param){
		.qp = { .qp_type = QPT_RC, .pd = pd, .send_cq = cq, .recv_cq = cq,
			.srq = RC_NO_SRQ,
			.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
				.max_recv_sge = 1, }, },
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.min_rnr_timer = 12,
	};
}

static void
side_create(struct side *s, struct cm_pair *pair, uint32_t ip)
{
	struct bench_config config = { .sessions = 64 };
	struct mad_worker_config mc = {
		.workers = 1,
		.hash_key = ip,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &s->out.sink,
		.port = side_get_port,
		.port_arg = s,
	};
	struct cm_config cc = {
		.workers = 1,
		.hash_key = ip,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.ca_guid = ip,
		.port = side_get_port,
		.port_arg = s,
		.limits = cm_limits_default,
	};

	*s = (struct side){ .pair = pair };
	bench_port(&s->port, ip, 18);
	frames_init(&s->out, QUEUE);
	s->wheel = timer_wheel_create(&allocator_malloc, 1 << 16, 0);
	create_rc(s);
	agents_limits(&mc.limits, &config);
	mc.wheel = s->wheel;
	s->mad = mad_worker_create(&mc);
	cc.limits.max_connections = 32768;
	cc.limits.max_connections_per_peer = 32768;
	cc.limits.max_half_open_per_peer = cc.limits.max_half_open;
	/* a TIMEWAIT of milliseconds: the benchmark measures its work, not its length */
	cc.limits.packet_life = 8;
	cc.limits.ack_delay = 8;
	cc.wheel = s->wheel;
	cc.mad = s->mad;
	cc.rc = s->rc;
	s->cm = s->mad != NULL ? cm_create(&cc) : NULL;
	if (s->cm == NULL || cm_listen(s->cm, SERVICE, UINT64_MAX, &user, s) != 0)
		bench_die("no memory for connections");
}

static void
side_destroy(struct side *s)
{
	cm_destroy(s->cm);
	s->cm = NULL;
	mad_worker_destroy(s->mad);
	rc_worker_destroy(s->rc);
	rc_dev_destroy(s->dev);
	mem_destroy(s->mem);
	timer_wheel_destroy(s->wheel);
	frames_free(&s->out);
}

/* --- iterations --- */

static void
side_connect(struct side *s, const struct side *to)
{
	struct cm_connect c = {
		.service_id = SERVICE,
		.path = { .neighbour = PATH_NO_NEIGHBOUR, .pkey = 0xFFFF, .mtu = 4096,
			.present = true,
			.av = { .encap = ENCAP_ROCEV2_IPV4, .vlan = PATH_NO_VLAN,
				.sgid = s->port.gid[0].gid, .dgid = to->port.gid[0].gid, }, },
		.rdma = { .present = true, .src_port = 7, .src = s->port.gid[0].gid,
			.dst = to->port.gid[0].gid, },
		.param = s->param,
		.ops = &user,
		.user = s,
	};
	struct error err;
	cm_id id;

	memcpy(c.path.av.smac, s->port.mac, 6);
	memcpy(c.path.av.dmac, to->port.mac, 6);
	if (cm_connect(s->cm, &c, s->pair->now, &id, &err) != 0)
		bench_die(err.text);
	s->begun++;
}

/* One iteration of a worker: received frames, timers, transmission. */
static void
side_step(struct side *s, struct frames *in, uint32_t connects, const struct side *to)
{
	uint64_t start = rte_rdtsc();
	const struct packet *p;
	struct packet pkt;
	unsigned int i;

	for (i = 0; i < BENCH_BURST && (p = frames_front(in, &pkt, 0)) != NULL; i++) {
		mad_receive(s->mad, p, s->pair->now);
		frames_pop(in);
	}
	for (; connects > 0; connects--)
		side_connect(s, to);
	timer_wheel_run(s->wheel, s->pair->now);
	cm_run(s->cm, s->pair->now, 64);
	mad_run(s->mad, s->pair->now, 64);
	rc_run(s->rc, s->pair->now, 64);
	timer_wheel_sent(s->wheel, s->pair->now);
	s->busy += rte_rdtsc() - start;
}

/* Run until total connections have been established, at most FLIGHT at a time. */
static void
cm_pair_run(struct cm_pair *p, uint64_t total)
{
	struct side *active = &p->active, *passive = &p->passive;
	uint64_t goal = active->established + total, last = active->begun + total, room;

	while (active->established < goal || active->out.head != active->out.tail ||
		passive->out.head != passive->out.tail) {
		room = FLIGHT - (active->begun - active->established);
		p->now += 20000; /* about the time of an iteration */
		side_step(active, &passive->out,
			(uint32_t)RTE_MIN(RTE_MIN(room, last - active->begun), 16u), passive);
		side_step(passive, &active->out, 0, NULL);
	}
}

struct cm_pair *
cm_pair_create(void)
{
	struct cm_pair *p = calloc(1, sizeof(*p));

	if (p == NULL)
		bench_die("no memory");
	side_create(&p->active, p, 1);
	side_create(&p->passive, p, 2);
	return p;
}

void
cm_pair_destroy(struct cm_pair *p)
{
	side_destroy(&p->active);
	side_destroy(&p->passive);
	free(p);
}

struct cm_cost
cm_pair_connect(struct cm_pair *p, uint64_t n)
{
	struct cm_cost before = { p->active.busy, p->passive.busy };

	cm_pair_run(p, n);
	return (struct cm_cost){ p->active.busy - before.active, p->passive.busy - before.passive };
}

void
cm_pair_stand(struct cm_pair *p, uint64_t n)
{
	p->active.keep = true;
	cm_pair_run(p, n);
	p->active.keep = false;
	p->standing += n;
}

void
cm_pair_settle(struct cm_pair *p)
{
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		p->now += 1000000;
		side_step(&p->active, &p->passive.out, 0, NULL);
		side_step(&p->passive, &p->active.out, 0, NULL);
	}
	if (p->active.established - p->active.released != p->standing ||
		p->passive.established - p->passive.released != p->standing)
		bench_die("connections are left behind");
}
