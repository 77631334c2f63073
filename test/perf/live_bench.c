/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What liveness costs: requests that one worker answers, and how long an echo takes between two
 * workers of lib/mad that one core runs by turns, calls and answers included.
 *
 *	live_bench [--runs N] [--short]
 *
 * Runs are interleaved; the medians of the rounds are printed. --short only checks that it works.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "bench.h"
#include "live/live.h"

#define REQUESTS   1024 /* of as many sources */
#define WHEEL_TICK 32768

static unsigned int runs;
static bool brief;

/* --- a worker --- */

struct side {
	struct mad_worker *mad;
	struct timer_wheel *wheel;
	struct live *live;
	struct port_attr port;
	struct link_queue out;
};

static const struct port_attr *
port_of(void *arg, uint16_t port)
{
	return port == 0 ? arg : NULL;
}

static void
side_create(struct side *s, uint32_t ip)
{
	const struct bench_config config = { .sessions = 4096 };
	struct mad_worker_config mad = {
		.workers = 1,
		.hash_key = 0x1234567,
		.hz = bench_hz(),
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &s->out.sink,
		.port = port_of,
		.port_arg = &s->port,
	};
	struct live_config live = {
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.hz = mad.hz,
		.limits = live_limits_default,
		.host = "bench.example",
		.port = port_of,
		.port_arg = &s->port,
	};

	bench_limits(&mad.limits, &config);
	bench_port(&s->port, ip, 18);
	link_init(&s->out, 4096);
	s->wheel = timer_wheel_create(&allocator_malloc, WHEEL_TICK, rte_rdtsc());
	mad.wheel = s->wheel;
	s->mad = mad_worker_create(&mad);
	if (s->mad == NULL)
		die("no memory for the sessions");
	live.mad = s->mad;
	live.limits.rate = UINT32_MAX; /* each source is looked up, none has too many */
	s->live = live_create(&live);
	if (s->live == NULL)
		die("no memory for the agent");
	live_set_clock(s->live, rte_rdtsc(), 0);
}

static void
side_destroy(struct side *s)
{
	mad_worker_destroy(s->mad);
	live_destroy(s->live);
	timer_wheel_destroy(s->wheel);
	link_free(&s->out);
}

/* From one address to another: 10.0.x.y. */
static struct mad_peer
peer(uint32_t from, uint32_t to)
{
	const uint8_t s[4] = { 10, 0, (uint8_t)(from >> 8), (uint8_t)from };
	const uint8_t d[4] = { 10, 0, (uint8_t)(to >> 8), (uint8_t)to };

	return (struct mad_peer){
		.av = { .encap = ENCAP_ROCEV2_IPV4, .sgid = gid_from_ipv4(s), .dgid = gid_from_ipv4(d),
			.smac = { 2, 0, 0, 0, 0, (uint8_t)from }, .dmac = { 2, 0, 0, 0, 0, (uint8_t)to },
			.vlan = PATH_NO_VLAN, .grh = true },
		.qpn = 1, .qkey = MAD_QKEY, .pkey = 0xFFFF, .neighbour = PATH_NO_NEIGHBOUR,
	};
}

/* --- answers a second --- */

static const struct {
	const char *name;
	struct live_request req;
} cases[] = {
	{ "echo, 208 bytes", { .mode = LIVE_MODE_ECHO } },
	{ "timestamp", { .mode = LIVE_MODE_TIMESTAMP } },
	{ "LID/GUID", { .mode = LIVE_MODE_LIDGUID } },
	{ "ibping", { .mode = LIVE_MODE_IBPING } },
};

static double
measure(const struct live_request *req)
{
	struct link_queue requests;
	struct mad_peer to;
	struct side s;
	uint8_t mad[MAD_LEN];
	double rate;
	uint32_t i;

	side_create(&s, 1);
	link_init(&requests, REQUESTS);
	live_build(req, mad, NULL);
	for (i = 0; i < REQUESTS; i++) {
		mad[MAD_OFF_TID + 7] = (uint8_t)i;
		to = peer(2 + i, 1);
		answer_add(&requests, &to, mad);
	}
	rate = answer_rate(&requests, &s.out, s.mad, mad_receive, brief ? 10000 : 1000000);
	if (answer_last(&s.out)[MAD_OFF_METHOD] != MAD_GET_RESP || answer_last(&s.out)[5] != 0)
		die("not an answer");
	link_free(&requests);
	side_destroy(&s);
	return rate;
}

static void
throughput(void)
{
	double rate[RTE_DIM(cases)][BENCH_RUNS_MAX];
	unsigned int i, r;

	for (r = 0; r < runs; r++)
		for (i = 0; i < RTE_DIM(cases); i++)
			rate[i][r] = measure(&cases[i].req);
	printf("%-24s %12s %12s %12s\n", "answers/s of one core", "median", "lowest", "highest");
	for (i = 0; i < RTE_DIM(cases); i++) {
		qsort(rate[i], runs, sizeof(double), bench_by_value);
		printf("%-24s %12.0f %12.0f %12.0f\n", cases[i].name,
				bench_quantile(rate[i], runs, 0.5), rate[i][0], rate[i][runs - 1]);
	}
}

/* --- time of an echo --- */

struct echo {
	uint8_t *body, *back;
	uint64_t got;
	bool done;
	enum mad_end end;
	uint8_t mad[MAD_LEN];
};

static int
read_body(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	const struct echo *e = arg;

	memcpy(buf, e->body + offset, len);
	return 0;
}

static int
take(void *arg, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct echo *e = arg;

	memcpy(e->back + offset, data, len);
	e->got = offset + len;
	return 0;
}

static void
done(void *arg, const struct mad_result *r)
{
	struct echo *e = arg;

	e->done = true;
	e->end = r->end;
	if (r->mad != NULL)
		memcpy(e->mad, r->mad, MAD_LEN);
}

static void
turn(struct side *s, struct link_queue *in)
{
	uint64_t now = rte_rdtsc();
	struct packet pkt;

	while (link_front(in, &pkt, now) != NULL) {
		mad_receive(s->mad, &pkt, now);
		link_pop(in);
	}
	timer_wheel_run(s->wheel, now);
	mad_run(s->mad, now, BENCH_SEND_BUDGET);
}

/* @return cycles from asking to the answer in hand */
static uint64_t
echo(struct side *server, struct side *client, const struct live_request *req, struct echo *e)
{
	struct live_reply reply;
	struct mad_call call = {
		.to = peer(2, 1),
		.protocol = MAD_RMPP,
		.data_offset = VENDOR_OFF_DATA,
		.resp_time = 18,
		.taker = { .arg = e, .data = take, .done = done },
	};
	uint64_t start = rte_rdtsc(), end;
	uint8_t mad[MAD_LEN];

	e->got = 0;
	e->done = false;
	if (live_build(req, mad, e->body)) {
		call.flags = MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE;
		call.source = (struct mad_source){ .arg = e, .length = 8 + (uint64_t)req->len,
			.read = read_body };
	}
	call.mad = mad;
	if (mad_call(client->mad, &call, start, NULL) != 0)
		die("no session");
	while (!e->done) {
		turn(client, &server->out);
		turn(server, &client->out);
	}
	end = rte_rdtsc();
	live_check(req, e->mad, e->got != 0 ? e->back : e->mad + VENDOR_OFF_DATA,
			e->got != 0 ? e->got : VENDOR_AREA, &reply);
	if (e->end != MAD_END_OK || reply.error != NULL)
		die(reply.error != NULL ? reply.error : mad_end_name(e->end));
	return end - start;
}

static void
times(uint32_t len, unsigned int count)
{
	struct echo e = { .body = malloc(8 + (size_t)len), .back = malloc(8 + (size_t)len) };
	double *us = malloc(count * sizeof(*us));
	uint8_t *data = malloc(len);
	struct live_request req = { .mode = LIVE_MODE_ECHO, .data = data, .len = len };
	struct side server, client;
	unsigned int i;

	if (e.body == NULL || e.back == NULL || us == NULL || data == NULL)
		die("no memory");
	for (i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	side_create(&server, 1);
	side_create(&client, 2);
	for (i = 0; i < count / 10; i++) /* caches and round trips */
		echo(&server, &client, &req, &e);
	for (i = 0; i < count; i++) {
		req.sequence = (uint16_t)i;
		us[i] = (double)echo(&server, &client, &req, &e) * 1e6 / (double)bench_hz();
	}
	qsort(us, count, sizeof(*us), bench_by_value);
	printf("%-24u %12.2f %12.2f %12.2f %12.2f\n", len, bench_quantile(us, count, 0.5),
			bench_quantile(us, count, 0.9), bench_quantile(us, count, 0.99), us[count - 1]);
	side_destroy(&client);
	side_destroy(&server);
	free(data);
	free(us);
	free(e.body);
	free(e.back);
}

int
main(int argc, char **argv)
{
	runs = bench_options(argc, argv, &brief, NULL);
	bench_print_machine(runs);
	throughput();
	printf("\n%-24s %12s %12s %12s %12s\n", "echo of so many bytes", "50 % us", "90 % us", "99 % us",
			"longest us");
	times(56, brief ? 1000 : 200000);
	times(208, brief ? 1000 : 200000);
	times(4096, brief ? 100 : 20000);
	times(65536, brief ? 20 : 2000);
	times(1 << 20, brief ? 3 : 200);
	return 0;
}
