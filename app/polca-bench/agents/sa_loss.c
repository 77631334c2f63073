/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Client and server under a virtual clock of nanoseconds. The link takes half the round-trip time
 * in each direction and 200 ns per packet (5 million per second), and loses packets.
 */

#include <stdlib.h>
#include <string.h>

#include "agents/agents.h"

#define NS           UINT64_C(1000000000)
#define PACKET_NS    200
#define WHEEL_TICK   1024
#define LOSS_SECONDS 600 /* virtual time, longer than any retries last */

struct sa_loss {
	struct bench_server server;
	struct port_attr port;
	struct frames out; /* the client's */
	struct timer_wheel *wheel;
	struct mad_worker *mad;
	struct sa_client *client;
	uint64_t now;
	struct sa_loss_result *result;
	bool done;
};

static const struct port_attr *
loss_port_of(void *arg, uint16_t port)
{
	return port == 0 ? arg : NULL;
}

static void
create_client(struct sa_loss *b, const struct bench_config *config)
{
	struct mad_worker_config mad = {
		.workers = 1,
		.hash_key = 99,
		.hz = NS,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &b->out.sink,
		.port = loss_port_of,
		.port_arg = &b->port,
	};

	agents_limits(&mad.limits, config);
	bench_port(&b->port, 2, 18);
	b->wheel = timer_wheel_create(&allocator_malloc, WHEEL_TICK, 0);
	mad.wheel = b->wheel;
	b->mad = mad_worker_create(&mad);
	if (b->mad == NULL)
		bench_die("no memory for the client");
	b->client = sa_client_create(b->mad, &allocator_malloc, 1);
	if (b->client == NULL)
		bench_die("no memory for the client");
}

struct sa_loss *
sa_loss_create(uint32_t records, uint64_t rtt_ns)
{
	const struct bench_config config = { .sessions = 1024, .hz = NS, .queue = 4096 };
	struct sa_loss *b = calloc(1, sizeof(*b));

	if (b == NULL)
		bench_die("no memory");
	server_create(&b->server, &config);
	load_nodes(&b->server, records);
	frames_init(&b->out, 4096);
	create_client(b, &config);
	b->out.delay = b->server.out.delay = rtt_ns / 2;
	b->out.gap = b->server.out.gap = PACKET_NS;
	b->now = 1;
	return b;
}

void
sa_loss_destroy(struct sa_loss *b)
{
	server_destroy(&b->server);
	mad_worker_destroy(b->mad);
	sa_client_destroy(b->client);
	timer_wheel_destroy(b->wheel);
	frames_free(&b->out);
	free(b);
}

static int
loss_take_record(void *arg, const struct sa_record_type *type, uint32_t rid, const uint8_t *rec)
{
	struct sa_loss *b = arg;

	(void)type;
	(void)rid;
	(void)rec;
	b->result->records++;
	return 0;
}

static void
loss_take_end(void *arg, const struct mad_result *result, uint64_t sa_key)
{
	struct sa_loss *b = arg;

	(void)sa_key;
	b->result->result = *result;
	b->result->result.mad = NULL;
	b->done = true;
}

static unsigned int
client_round(struct sa_loss *b)
{
	struct packet pkt;
	unsigned int n;

	for (n = 0; n < BENCH_BURST && frames_front(&b->server.out, &pkt, b->now) != NULL; n++) {
		mad_receive(b->mad, &pkt, b->now);
		frames_pop(&b->server.out);
	}
	n += timer_wheel_run(b->wheel, b->now);
	n += mad_run(b->mad, b->now, BENCH_SEND_BUDGET);
	timer_wheel_sent(b->wheel, b->now);
	return n;
}

static uint64_t
earlier_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Advance to the time of the next event. */
static void
loss_advance(struct sa_loss *b)
{
	uint64_t next =
		earlier_of(earlier_of(frames_next_due(&b->out), frames_next_due(&b->server.out)),
			earlier_of(timer_wheel_next(b->wheel), timer_wheel_next(b->server.wheel)));

	if (next <= b->now || mad_pending(b->mad) || mad_pending(b->server.mad) ||
		sa_pending(b->server.worker))
		next = b->now + PACKET_NS;
	b->now = next;
}

static void
loss_ask(struct sa_loss *b, unsigned int version)
{
	struct sa_query q = {
		.op = SA_OP_TABLE,
		.version = (enum sa_version)version,
		.type = sa_record_type(SA_NODE),
		.resp_time = 18,
	};
	const struct sa_taker taker = { b, loss_take_record, loss_take_end };
	struct error err = { 0 };
	mad_handle h;

	q.to.av = (struct av){
		.encap = ENCAP_ROCEV2_IPV4,
		.sgid = b->port.gid[0].gid,
		.dgid = b->server.port.gid[0].gid,
		.vlan = PATH_NO_VLAN,
	};
	memcpy(q.to.av.smac, b->port.mac, 6);
	memcpy(q.to.av.dmac, b->server.port.mac, 6);
	q.to.qpn = 1;
	q.to.qkey = MAD_QKEY;
	q.to.pkey = 0xFFFF;
	q.to.neighbour = PATH_NO_NEIGHBOUR;
	if (sa_ask(b->client, &q, &taker, b->now, &h, &err) != 0)
		bench_die(err.text);
}

void
sa_loss_run(struct sa_loss *b, unsigned int version, uint32_t one_in, uint64_t seed,
	struct sa_loss_result *result)
{
	struct frames *links[2] = { &b->out, &b->server.out };
	uint64_t start = b->now;
	unsigned int i;

	*result = (struct sa_loss_result){ 0 };
	b->result = result;
	b->done = false;
	for (i = 0; i < 2; i++) {
		links[i]->loss = one_in != 0 ? UINT32_MAX / one_in : 0;
		links[i]->random = seed * 2 + i;
		links[i]->lost = 0;
		links[i]->now = b->now;
	}
	loss_ask(b, version);
	while (!b->done && b->now - start < LOSS_SECONDS * NS) {
		links[0]->now = links[1]->now = b->now;
		if (client_round(b) + server_step(&b->server, &b->out, b->now) == 0)
			loss_advance(b);
	}
	if (!b->done)
		bench_die("a transfer does not end");
	result->ns = b->now - start;
	result->lost = (uint32_t)(links[0]->lost + links[1]->lost);
}
