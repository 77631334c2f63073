/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connects and disconnects a second: two communication managers, each with lib/rc and lib/mad as a
 * worker has them, on a link in memory with real frames. One core plays both sides by turns; the
 * time of each is counted apart, so that the figures are those of a core that has one side only.
 *
 *	cm_bench [--runs N] [--short]
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "bench.h"
#include "cm/cm.h"
#include "rc/rc.h"

#define FLIGHT    256 /* connections under way at a time */
#define STANDING  10000
#define SERVICE   UINT64_C(0x0106461E)
#define QUEUE     4096

struct side {
	struct port_attr port;
	struct link_queue out;
	struct timer_wheel *wheel;
	struct mem *mem;
	struct rc_dev *dev;
	struct rc_worker *rc;
	struct mad_worker *mad;
	struct cm *cm;
	struct cm_conn_param param;
	uint64_t busy; /* TSC cycles */
	uint64_t begun, established, released;
	bool keep; /* do not disconnect what is established */
};

static struct side active, passive;
static uint64_t clock_now; /* ns */

/* --- users --- */

static uint16_t
on_request(void *listener, const struct cm_request *req, struct cm_conn_param *param, void **user)
{
	struct side *s = listener;

	(void)req;
	*param = s->param;
	*user = s;
	return 0;
}

static void
on_established(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	struct side *s = user;

	(void)data;
	(void)len;
	s->established++;
	if (info->active && !s->keep)
		cm_disconnect(s->cm, info->id, NULL, 0, clock_now);
}

static void
on_released(void *user)
{
	struct side *s = user;

	s->released++;
}

static const struct cm_user user = {
	.name = "bench",
	.request = on_request,
	.established = on_established,
	.released = on_released,
};

/* --- set-up --- */

static const struct port_attr *
get_port(void *arg, uint16_t port)
{
	struct side *s = arg;

	return port == 0 ? &s->port : NULL;
}

static void
take_event(void *arg, const struct event *ev)
{
	struct side *s = arg;

	if (s->cm != NULL)
		cm_qp_event(s->cm, ev);
}

static void
create_rc(struct side *s)
{
	struct mem_config mc = { .max_pd = 1, .max_mr = 1, .max_mw = 1,
		.alloc = &allocator_malloc, .rng = &rng_kernel };
	struct rc_dev_config dc = { .limits = rc_limits_default, .workers = 1, .hz = 1000000000,
		.alloc = &allocator_malloc, .rng = &rng_kernel };
	struct rc_worker_config wc = { .wheel = s->wheel, .tx = &s->out.sink,
		.event = take_event, .event_arg = s };
	uint32_t pd = 0, cq = 0;

	s->mem = mem_create(&mc);
	dc.mem = s->mem;
	dc.limits.max_qp = 32768;
	s->dev = rc_dev_create(&dc);
	s->rc = s->dev != NULL ? rc_worker_create(s->dev, &wc) : NULL;
	if (s->rc == NULL || mem_pd_alloc(s->mem, &pd, NULL) != 0 ||
			rc_cq_create(s->dev, 64, &cq, NULL) != 0)
		die("no memory for queue pairs");
	s->param = (struct cm_conn_param){
		.qp = { .qp_type = QPT_RC, .pd = pd, .send_cq = cq, .recv_cq = cq,
			.srq = RC_NO_SRQ,
			.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
				.max_recv_sge = 1 } },
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.min_rnr_timer = 12,
	};
}

static void
create(struct side *s, uint32_t ip)
{
	struct bench_config config = { .sessions = 64 };
	struct mad_worker_config mc = { .workers = 1, .hash_key = ip, .hz = 1000000000,
		.alloc = &allocator_malloc, .rng = &rng_kernel, .tx = &s->out.sink,
		.port = get_port, .port_arg = s };
	struct cm_config cc = { .workers = 1, .hash_key = ip, .hz = 1000000000,
		.alloc = &allocator_malloc, .rng = &rng_kernel, .ca_guid = ip,
		.port = get_port, .port_arg = s, .limits = cm_limits_default };

	*s = (struct side){ .keep = false };
	bench_port(&s->port, ip, 18);
	link_init(&s->out, QUEUE);
	s->wheel = timer_wheel_create(&allocator_malloc, 1 << 16, 0);
	create_rc(s);
	bench_limits(&mc.limits, &config);
	mc.wheel = s->wheel;
	s->mad = mad_worker_create(&mc);
	cc.limits.max_connections = 32768;
	cc.limits.max_connections_per_peer = 32768;
	cc.limits.max_half_open_per_peer = cc.limits.max_half_open;
	/* TIMEWAIT of milliseconds: it is its work that counts, not its wait */
	cc.limits.packet_life = 8;
	cc.limits.ack_delay = 8;
	cc.wheel = s->wheel;
	cc.mad = s->mad;
	cc.rc = s->rc;
	s->cm = s->mad != NULL ? cm_create(&cc) : NULL;
	if (s->cm == NULL || cm_listen(s->cm, SERVICE, UINT64_MAX, &user, s) != 0)
		die("no memory for connections");
}

static void
destroy(struct side *s)
{
	cm_destroy(s->cm);
	s->cm = NULL;
	mad_worker_destroy(s->mad);
	rc_worker_destroy(s->rc);
	rc_dev_destroy(s->dev);
	mem_destroy(s->mem);
	timer_wheel_destroy(s->wheel);
	link_free(&s->out);
}

/* --- the work --- */

static void
connect_one(struct side *s, const struct side *to)
{
	struct cm_connect c = {
		.service_id = SERVICE,
		.path = { .neighbour = PATH_NO_NEIGHBOUR, .pkey = 0xFFFF, .mtu = 4096,
			.present = true,
			.av = { .encap = ENCAP_ROCEV2_IPV4, .vlan = PATH_NO_VLAN,
				.sgid = s->port.gid[0].gid, .dgid = to->port.gid[0].gid } },
		.rdma = { .present = true, .src_port = 7, .src = s->port.gid[0].gid,
			.dst = to->port.gid[0].gid },
		.param = s->param,
		.ops = &user,
		.user = s,
	};
	struct error err;
	cm_id id;

	memcpy(c.path.av.smac, s->port.mac, 6);
	memcpy(c.path.av.dmac, to->port.mac, 6);
	if (cm_connect(s->cm, &c, clock_now, &id, &err) != 0)
		die(err.text);
	s->begun++;
}

/* A round of a worker: what has arrived, timers, what is to be sent. */
static void
step(struct side *s, struct link_queue *in, uint32_t connects, const struct side *to)
{
	uint64_t start = rte_rdtsc();
	const struct packet *p;
	struct packet pkt;
	unsigned int i;

	for (i = 0; i < BENCH_BURST && (p = link_front(in, &pkt, 0)) != NULL; i++) {
		mad_receive(s->mad, p, clock_now);
		link_pop(in);
	}
	for (; connects > 0; connects--)
		connect_one(s, to);
	timer_wheel_run(s->wheel, clock_now);
	cm_run(s->cm, clock_now, 64);
	mad_run(s->mad, clock_now, 64);
	rc_run(s->rc, clock_now, 64);
	s->busy += rte_rdtsc() - start;
}

/* Until total have been established; at most FLIGHT under way. */
static void
run(uint64_t total)
{
	uint64_t goal = active.established + total, last = active.begun + total;

	while (active.established < goal || active.out.head != active.out.tail ||
			passive.out.head != passive.out.tail) {
		uint64_t room = FLIGHT - (active.begun - active.established);

		clock_now += 20000; /* a round's time, about */
		step(&active, &passive.out, (uint32_t)RTE_MIN(RTE_MIN(room, last - active.begun),
			16u), &passive);
		step(&passive, &active.out, 0, NULL);
	}
}

static double
rate(unsigned int n, uint64_t cycles)
{
	return n * (double)bench_hz() / (double)cycles;
}

static void
print(const char *what, unsigned int runs, double *active_rates, double *passive_rates)
{
	qsort(active_rates, runs, sizeof(double), bench_by_value);
	qsort(passive_rates, runs, sizeof(double), bench_by_value);
	printf("%-44s active %8.0f/s  passive %8.0f/s per core\n", what,
			bench_quantile(active_rates, runs, 0.5),
			bench_quantile(passive_rates, runs, 0.5));
}

static void
measure(const char *what, unsigned int runs, unsigned int n)
{
	double a[BENCH_RUNS_MAX], p[BENCH_RUNS_MAX];
	uint64_t before[2];
	unsigned int i;

	for (i = 0; i < runs; i++) {
		before[0] = active.busy;
		before[1] = passive.busy;
		run(n);
		a[i] = rate(n, active.busy - before[0]);
		p[i] = rate(n, passive.busy - before[1]);
	}
	print(what, runs, a, p);
}

/* What all that has left behind must be nothing. */
static void
settle(uint64_t standing)
{
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		clock_now += 1000000;
		step(&active, &passive.out, 0, NULL);
		step(&passive, &active.out, 0, NULL);
	}
	if (active.established - active.released != standing ||
			passive.established - passive.released != standing)
		die("connections are left behind");
}

int
main(int argc, char **argv)
{
	bool brief = false;
	unsigned int runs = bench_options(argc, argv, &brief, NULL);
	unsigned int n = brief ? 2000 : 20000, standing = brief ? 500 : STANDING;

	bench_print_machine(runs);
	create(&active, 1);
	create(&passive, 2);
	run(n / 2); /* memory touched, tables warm */
	measure("connect and disconnect", runs, n);
	settle(0);
	active.keep = true;
	run(standing);
	settle(standing);
	active.keep = false;
	printf("%u connections stand\n", standing);
	measure("connect and disconnect beside them", runs, n);
	settle(standing);
	destroy(&active);
	destroy(&passive);
	return 0;
}
