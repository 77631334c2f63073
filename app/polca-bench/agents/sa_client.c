/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A client with many sessions, which does only what a lossless link needs: a request, and an Ack
 * for each window.
 */

#include <stdlib.h>
#include <string.h>

#include "agents/agents.h"
#include "wire/put.h"

#define QUEUE       (1u << 18)
#define WINDOW      64
#define CLIENT_QPN  1
#define PAYLOAD_OFF (BTH_LEN + 8)

struct client_session {
	uint32_t generation;
	uint32_t expected;
	uint32_t window_end; /* RMPP */
	uint32_t acked; /* class version 1 */
};

static void
compile_paths(struct bench_client *c)
{
	struct port_attr server, own;
	struct av av;
	uint32_t i;

	bench_port(&server, 1, 18);
	for (i = 0; i < BENCH_PEERS; i++) {
		bench_port(&own, 0x10000 + i, 18);
		av = (struct av){
			.encap = ENCAP_ROCEV2_IPV4,
			.sgid = own.gid[0].gid,
			.dgid = server.gid[0].gid,
			.vlan = PATH_NO_VLAN,
		};
		memcpy(av.smac, own.mac, 6);
		memcpy(av.dmac, server.mac, 6);
		path_init(&c->path[i], &av, CLIENT_QPN, 1);
		c->path[i].neighbour = PATH_NO_NEIGHBOUR;
	}
}

static void
compile_request(struct bench_client *c)
{
	uint8_t *m = c->request;
	bool table = c->ask != ASK_PATH;

	m[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	m[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
	m[MAD_OFF_CLASS_VERSION] = (uint8_t)c->version;
	m[MAD_OFF_METHOD] = table ? SA_GET_TABLE : MAD_GET;
	put_be16(m + MAD_OFF_ATTRIBUTE,
		c->ask == ASK_NODES          ? SA_NODE
			: c->ask == ASK_LINK ? SA_LINK
					     : SA_PATH);
	if (c->version == 1) {
		put_be32(m + MAD_OFF_MODIFIER, 0xFFFFFFFF);
		put_be16(m + SA1_OFF_WINDOW, WINDOW);
	}
}

void
bench_client_create(struct bench_client *c, enum ask ask, unsigned int version, uint32_t sessions,
	uint32_t ports)
{
	*c = (struct bench_client){
		.ask = ask,
		.version = version,
		.sessions = sessions,
		.ports = ports,
		.random = 1,
	};
	frames_init(&c->out, QUEUE);
	compile_paths(c);
	compile_request(c);
	c->session = calloc(sessions, sizeof(*c->session));
	if (c->session == NULL)
		bench_die("no memory for the client");
}

void
bench_client_destroy(struct bench_client *c)
{
	frames_free(&c->out);
	free(c->session);
}

static void
client_send(struct bench_client *c, uint32_t i, const uint8_t *mad)
{
	uint8_t *bth = tx_reserve(&c->out.sink, &c->path[i % BENCH_PEERS], PAYLOAD_OFF + MAD_LEN);

	if (bth == NULL)
		bench_die("the client's link is full");
	put_ud(bth, 0xFFFF, QPN_GSI, MAD_QKEY, CLIENT_QPN);
	memcpy(bth + PAYLOAD_OFF, mad, MAD_LEN);
	tx_commit(&c->out.sink);
}

static void
fill_query(struct bench_client *c, uint8_t *m)
{
	uint8_t *data = m + (c->version == 1 ? SA1_OFF_DATA : SA2_OFF_DATA);
	uint8_t *mask = m + (c->version == 1 ? SA1_OFF_MASK : SA2_OFF_MASK);
	uint32_t a = (uint32_t)(bench_random(&c->random) % c->ports) + 1;
	uint32_t b = (uint32_t)(bench_random(&c->random) % c->ports) + 1;

	if (c->ask == ASK_PATH) {
		put_be64(data + 8, BENCH_PREFIX);
		put_be64(data + 16, BENCH_GUID(a));
		put_be64(data + 24, BENCH_PREFIX);
		put_be64(data + 32, BENCH_GUID(b));
		put_be64(mask, 1 << 2 | 1 << 3); /* DGID, SGID */
	} else if (c->ask == ASK_LINK && c->version == 2) {
		put_be16(data, (uint16_t)a);
		put_be64(mask, 1 << 0); /* FromLID */
	} else if (c->ask == ASK_LINK) {
		/* version 1 has no mask for the RID part: a range of one RID */
		put_be32(m + MAD_OFF_MODIFIER, a << 16);
		put_be32(m + SA1_OFF_END_RID, a << 16 | 0xFFFF);
	}
}

static void
client_begin_session(struct bench_client *c, uint32_t i)
{
	struct client_session *s = &c->session[i];
	uint8_t m[MAD_LEN];

	*s = (struct client_session){
		.generation = s->generation + 1,
		.expected = 1,
		.window_end = 1,
	};
	memcpy(m, c->request, MAD_LEN);
	put_be64(m + MAD_OFF_TID, (uint64_t)s->generation << 32 | i);
	if (c->ask != ASK_NODES)
		fill_query(c, m);
	client_send(c, i, m);
}

uint32_t
client_start(struct bench_client *c)
{
	uint32_t before = c->begun;

	/* half of the link is for requests, the other half for Acks */
	while (c->begun < c->sessions && c->out.tail - c->out.head < QUEUE / 2)
		client_begin_session(c, c->begun++);
	return c->begun - before;
}

static void
client_end_session(struct bench_client *c, uint32_t i, bool good)
{
	if (good)
		c->completed++;
	else
		c->failed++;
	client_begin_session(c, i);
}

/* @return false: the session is not finished */
static bool
take_v1(struct bench_client *c, struct client_session *s, uint32_t i, const uint8_t *mad)
{
	uint32_t segment = get_be32(mad + SA1_OFF_SEGMENT);
	bool last = mad[SA1_OFF_FRAGMENT] & SA1_LAST;
	uint8_t ack[MAD_LEN];

	if (mad[SA1_OFF_FRAGMENT] & SA1_KEEPALIVE)
		return false;
	if (segment != 0 && segment != s->expected) {
		c->unused++;
		return false;
	}
	c->segments++;
	if (segment == 0)
		return true;
	s->expected++;
	/* the server says after how many segments it waits */
	if (last ||
		segment - s->acked >=
			RTE_MIN((uint32_t)get_be16(mad + SA1_OFF_WINDOW), (uint32_t)WINDOW)) {
		s->acked = segment;
		memcpy(ack, mad, SA1_OFF_DATA);
		memset(ack + SA1_OFF_DATA, 0, MAD_LEN - SA1_OFF_DATA);
		ack[MAD_OFF_METHOD] ^= MAD_RESPONSE;
		ack[SA1_OFF_FRAGMENT] = SA1_ACK;
		put_be32(ack + SA1_OFF_PAYLOAD_LEN, 0);
		client_send(c, i, ack);
	}
	return last;
}

/* Take a packet of a response. @return true: it was the last, the session is finished */
static bool
take_v2(struct bench_client *c, struct client_session *s, uint32_t i, const uint8_t *mad)
{
	uint32_t segment = get_be32(mad + RMPP_OFF_SEGMENT);
	bool last = mad[RMPP_OFF_FLAGS] & RMPP_LAST;
	uint8_t ack[MAD_LEN];

	if (!(mad[RMPP_OFF_FLAGS] & RMPP_ACTIVE)) {
		c->segments++;
		return true;
	}
	if (segment != s->expected) {
		c->unused++;
		return false;
	}
	c->segments++;
	s->expected++;
	if (last || segment == s->window_end) {
		s->window_end = segment + WINDOW;
		memcpy(ack, mad, SA2_OFF_DATA);
		memset(ack + SA2_OFF_DATA, 0, MAD_LEN - SA2_OFF_DATA);
		ack[MAD_OFF_METHOD] ^= MAD_RESPONSE;
		ack[RMPP_OFF_TYPE] = RMPP_ACK;
		ack[RMPP_OFF_FLAGS] = RMPP_ACTIVE;
		put_be32(ack + RMPP_OFF_LENGTH, s->window_end);
		client_send(c, i, ack);
	}
	return last;
}

static void
client_take(struct bench_client *c, const uint8_t *mad)
{
	uint64_t tid = get_be64(mad + MAD_OFF_TID);
	uint32_t i = (uint32_t)tid;
	struct client_session *s = &c->session[i < c->sessions ? i : 0];

	if (i >= c->sessions || tid >> 32 != s->generation) {
		c->unused++;
		return;
	}
	if (get_be16(mad + MAD_OFF_STATUS) != 0 ||
		(c->version == 2 && (mad[RMPP_OFF_FLAGS] & RMPP_ACTIVE) &&
			mad[RMPP_OFF_TYPE] != RMPP_DATA))
		client_end_session(c, i, false);
	else if (c->version == 1 ? take_v1(c, s, i, mad) : take_v2(c, s, i, mad))
		client_end_session(c, i, true);
}

void
client_step(struct bench_client *c, struct frames *in)
{
	struct packet pkt;

	while (frames_front(in, &pkt, UINT64_MAX) != NULL) {
		client_take(c, pkt.payload);
		frames_pop(in);
	}
}
