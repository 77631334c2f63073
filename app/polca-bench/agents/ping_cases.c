/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Liveness: how many requests a worker answers, and how long an echo takes between two workers of
 * lib/mad that share a core, including the calls on both sides.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "agents/agents.h"
#include "live/live.h"

#define REQUESTS   1024 /* each from its own source */
#define WHEEL_TICK 32768

/* --- a worker --- */

struct side {
	struct mad_worker *mad;
	struct timer_wheel *wheel;
	struct live *live;
	struct port_attr port;
	struct frames out;
};

static const struct port_attr *
ping_port_of(void *arg, uint16_t port)
{
	return port == 0 ? arg : NULL;
}

static void
echo_side_create(struct side *s, uint32_t ip)
{
	const struct bench_config config = { .sessions = 4096 };
	struct mad_worker_config mad = {
		.workers = 1,
		.hash_key = 0x1234567,
		.hz = bench_hz(),
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &s->out.sink,
		.port = ping_port_of,
		.port_arg = &s->port,
	};
	struct live_config live = {
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.hz = mad.hz,
		.limits = live_limits_default,
		.host = "bench.example",
		.port = ping_port_of,
		.port_arg = &s->port,
	};

	agents_limits(&mad.limits, &config);
	bench_port(&s->port, ip, 18);
	frames_init(&s->out, 4096);
	s->wheel = timer_wheel_create(&allocator_malloc, WHEEL_TICK, rte_rdtsc());
	mad.wheel = s->wheel;
	s->mad = mad_worker_create(&mad);
	if (s->mad == NULL)
		bench_die("no memory for the sessions");
	live.mad = s->mad;
	live.limits.rate = UINT32_MAX; /* sources are looked up, but never limited */
	s->live = live_create(&live);
	if (s->live == NULL)
		bench_die("no memory for the agent");
	live_set_clock(s->live, rte_rdtsc(), 0);
}

static void
echo_side_destroy(struct side *s)
{
	mad_worker_destroy(s->mad);
	live_destroy(s->live);
	timer_wheel_destroy(s->wheel);
	frames_free(&s->out);
}

/* The peer from one address to another: 10.0.x.y. */
static struct mad_peer
ping_peer(uint32_t from, uint32_t to)
{
	const uint8_t s[4] = { 10, 0, (uint8_t)(from >> 8), (uint8_t)from };
	const uint8_t d[4] = { 10, 0, (uint8_t)(to >> 8), (uint8_t)to };

	return (struct mad_peer){
		.av = { .encap = ENCAP_ROCEV2_IPV4,
			.sgid = gid_from_ipv4(s), .dgid = gid_from_ipv4(d),
			.smac = { 2, 0, 0, 0, 0, (uint8_t)from },
			.dmac = { 2, 0, 0, 0, 0, (uint8_t)to },
			.vlan = PATH_NO_VLAN, .grh = true, },
		.qpn = 1, .qkey = MAD_QKEY, .pkey = 0xFFFF, .neighbour = PATH_NO_NEIGHBOUR,
	};
}

/* --- answers per second --- */

static const struct live_request requests_of[] = {
	{ .mode = LIVE_MODE_ECHO },
	{ .mode = LIVE_MODE_TIMESTAMP },
	{ .mode = LIVE_MODE_LIDGUID },
	{ .mode = LIVE_MODE_IBPING },
};
const char *const ping_cases[] = { "echo, 208 bytes", "timestamp", "LID/GUID", "ibping" };
const unsigned int ping_case_count = RTE_DIM(ping_cases);

double
ping_rate(unsigned int which, uint64_t count)
{
	struct frames requests;
	struct mad_peer to;
	struct side s;
	uint8_t mad[MAD_LEN];
	double rate;
	uint32_t i;

	echo_side_create(&s, 1);
	frames_init(&requests, REQUESTS);
	live_build(&requests_of[which], mad, NULL);
	for (i = 0; i < REQUESTS; i++) {
		mad[MAD_OFF_TID + 7] = (uint8_t)i;
		to = ping_peer(2 + i, 1);
		answer_add(&requests, &to, mad);
	}
	rate = answer_rate(&requests, &s.out, s.mad, mad_receive, count);
	if (answer_last(&s.out)[MAD_OFF_METHOD] != MAD_GET_RESP || answer_last(&s.out)[5] != 0)
		bench_die("not an answer");
	frames_free(&requests);
	echo_side_destroy(&s);
	return rate;
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
echo_read_body(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	const struct echo *e = arg;

	memcpy(buf, e->body + offset, len);
	return 0;
}

static int
side_receive(void *arg, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct echo *e = arg;

	memcpy(e->back + offset, data, len);
	e->got = offset + len;
	return 0;
}

static void
echo_done(void *arg, const struct mad_result *r)
{
	struct echo *e = arg;

	e->done = true;
	e->end = r->end;
	if (r->mad != NULL)
		memcpy(e->mad, r->mad, MAD_LEN);
}

static void
side_turn(struct side *s, struct frames *in)
{
	uint64_t now = rte_rdtsc();
	struct packet pkt;

	while (frames_front(in, &pkt, now) != NULL) {
		mad_receive(s->mad, &pkt, now);
		frames_pop(in);
	}
	timer_wheel_run(s->wheel, now);
	mad_run(s->mad, now, BENCH_SEND_BUDGET);
	timer_wheel_sent(s->wheel, now);
}

/* @return cycles from the request to the received answer */
static uint64_t
run_echo(struct side *server, struct side *client, const struct live_request *req, struct echo *e)
{
	struct live_reply reply;
	struct mad_call call = {
		.to = ping_peer(2, 1),
		.protocol = MAD_RMPP,
		.data_offset = VENDOR_OFF_DATA,
		.resp_time = 18,
		.taker = { .arg = e, .data = side_receive, .done = echo_done },
	};
	uint64_t start = rte_rdtsc(), end;
	uint8_t mad[MAD_LEN];

	e->got = 0;
	e->done = false;
	if (live_build(req, mad, e->body)) {
		call.flags = MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE;
		call.source = (struct mad_source){
			.arg = e,
			.length = 8 + (uint64_t)req->len,
			.read = echo_read_body,
		};
	}
	call.mad = mad;
	if (mad_call(client->mad, &call, start, NULL) != 0)
		bench_die("no session");
	while (!e->done) {
		side_turn(client, &server->out);
		side_turn(server, &client->out);
	}
	end = rte_rdtsc();
	live_check(req, e->mad, e->got != 0 ? e->back : e->mad + VENDOR_OFF_DATA,
		e->got != 0 ? e->got : VENDOR_AREA, &reply);
	if (e->end != MAD_END_OK || reply.error != NULL)
		bench_die(reply.error != NULL ? reply.error : mad_end_name(e->end));
	return end - start;
}

struct ping_pair {
	struct side server, client;
	struct live_request req;
	struct echo echo;
	uint8_t *data;
};

struct ping_pair *
ping_create(uint32_t len)
{
	struct ping_pair *p = calloc(1, sizeof(*p));
	uint32_t i;

	if (p == NULL)
		bench_die("no memory");
	p->data = malloc(len);
	p->echo.body = malloc(8 + (size_t)len);
	p->echo.back = malloc(8 + (size_t)len);
	if (p->data == NULL || p->echo.body == NULL || p->echo.back == NULL)
		bench_die("no memory");
	for (i = 0; i < len; i++)
		p->data[i] = (uint8_t)(i * 7 + (i >> 8));
	p->req = (struct live_request){ .mode = LIVE_MODE_ECHO, .data = p->data, .len = len };
	echo_side_create(&p->server, 1);
	echo_side_create(&p->client, 2);
	return p;
}

void
ping_destroy(struct ping_pair *p)
{
	echo_side_destroy(&p->client);
	echo_side_destroy(&p->server);
	free(p->echo.body);
	free(p->echo.back);
	free(p->data);
	free(p);
}

uint64_t
ping_echo(struct ping_pair *p)
{
	p->req.sequence++;
	return run_echo(&p->server, &p->client, &p->req, &p->echo);
}
