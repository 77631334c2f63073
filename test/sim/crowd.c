/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Scenario `crowd`: one worker serves 40 well-behaved peers and one hostile peer. The hostile peer
 * must not reduce the throughput of the others by 5 % or more.
 *
 * The worker is the bottleneck: it needs 110 ns to receive or send a packet, and 77 ns per KiB of
 * payload, as measured (performance.md). Each peer's link allows one packet in 4 us, which is three
 * times the rate of a well-behaved peer. The hostile peer can cause much work with one packet (64
 * KiB of Read responses for a request of 16 bytes); that must not matter.
 */

#include "lan.h"
#include "script.h"

#define GOOD     40
#define DEPTH    2 /* Reads of each */
#define READ     65536
#define PMTU     4096
#define WARM_NS  (2 * UINT64_C(1000000))
#define RUN_NS   (8 * UINT64_C(1000000))
#define FLOOD_NS 4000
#define BAD_QPN  0x666
#define LOSS_MAX 0.05

enum { SERVER, FRIENDS, BAD, NODES };

struct crowd;

struct bad_kind {
	const char *name;
	/* what the server does for the hostile peer in each turn of its worker */
	void (*server)(struct crowd *c);
	void (*flood)(struct crowd *c);
};

struct crowd {
	struct sim *s;
	struct lan *f;
	uint32_t qpn[GOOD], peer_qpn[GOOD];
	uint32_t bad_qpn; /* of the server's QP to the hostile peer */
	struct path path; /* from the hostile peer to the server */
	const struct bad_kind *kind;
	uint64_t next; /* when the next packet of the flood is due */
	uint64_t flooded;
};

static const struct lan_qp good_opt = {
	.pmtu = PMTU,
	.timeout = 16,
	.rnr_timer = 12,
	.rd_atomic = 16,
};
/* an ACK timeout of 131 us */
static const struct lan_qp bad_opt = {
	.pmtu = PMTU,
	.timeout = 5,
	.rnr_timer = 1,
	.rd_atomic = 16,
	.half = true,
};

/* --- well-behaved peers --- */

static void
keep_reading(struct lan_node *n, uint64_t now)
{
	struct crowd *c = n->arg;
	unsigned int i, posted;

	(void)now;
	for (i = 0; i < GOOD; i++)
		for (posted = lan_info(n, c->qpn[i]).sq_posted; posted < DEPTH; posted++)
			lan_post(n, c->qpn[i], &c->f->node[SERVER], WR_RDMA_READ, READ);
}

/* --- the hostile peer, and the server's work for it --- */

static void
send_to_it(struct crowd *c, enum wr_opcode opcode)
{
	struct lan_node *server = &c->f->node[SERVER];
	struct rc_qp_info info = lan_info(server, c->bad_qpn);
	unsigned int posted;

	if (info.attr.qp_state == QPS_ERR) /* its retries ran out: connect again */
		lan_reconnect(server, c->bad_qpn, &c->f->node[BAD], BAD_QPN, &bad_opt);
	for (posted = info.sq_posted; posted < 16; posted++)
		lan_post(server, c->bad_qpn, &c->f->node[BAD], opcode, 65536);
}

static void
write_to_it(struct crowd *c)
{
	send_to_it(c, WR_RDMA_WRITE);
}

static void
send_messages_to_it(struct crowd *c)
{
	send_to_it(c, WR_SEND);
}

static void
forge_one(struct crowd *c, const struct wire_headers *headers, uint32_t payload)
{
	struct wire_headers h = *headers;

	h.dest_qpn = c->bad_qpn;
	h.va = LAN_VA;
	if (h.rkey == 0)
		h.rkey = c->f->node[SERVER].key;
	lan_forge(&c->f->node[BAD], &c->path, &h, payload);
	c->flooded++;
}

/* Endless RNR NAKs with the shortest timer, 10 us. */
static void
crowd_not_ready(struct crowd *c)
{
	forge_one(c, &(struct wire_headers){ .opcode = RC_ACK, .syndrome = AETH_RNR_NAK | 1 }, 0);
}

static void
garbage_psns(struct crowd *c)
{
	forge_one(c,
		&(struct wire_headers){
			.opcode = RC_SEND_ONLY,
			.ackreq = true,
			.psn = sim_below(c->s, 1u << 24),
		},
		0);
}

/* One Read of 64 KiB, then its duplicates. */
static void
same_read(struct crowd *c)
{
	forge_one(c, &(struct wire_headers){ .opcode = RC_READ_REQUEST, .psn = 0, .dmalen = READ },
		0);
}

/* The first one puts the QP into ERR; the others still cost work. */
static void
bad_keys(struct crowd *c)
{
	forge_one(c,
		&(struct wire_headers){
			.opcode = RC_READ_REQUEST,
			.psn = 0,
			.dmalen = READ,
			.rkey = 0xBADBAD,
		},
		0);
}

/* A Write of one packet, then its duplicates, as if the ACK had been lost. */
static void
same_write(struct crowd *c)
{
	forge_one(c,
		&(struct wire_headers){
			.opcode = RC_WRITE_ONLY,
			.psn = 0,
			.ackreq = true,
			.dmalen = 512,
		},
		512);
}

static void
all_sorts(struct crowd *c)
{
	static void (*const sorts[])(
		struct crowd *) = { garbage_psns, same_read, same_write, crowd_not_ready };

	sorts[sim_below(c->s, 4)](c);
}

static const struct bad_kind kinds[] = {
	{ "never acknowledges", write_to_it, NULL },
	{ "is never ready", send_messages_to_it, crowd_not_ready },
	{ "sends garbage PSNs", NULL, garbage_psns },
	{ "sends one Read of 64 KiB for ever", NULL, same_read },
	{ "sends wrong keys", NULL, bad_keys },
	{ "retransmits for ever", NULL, same_write },
	{ "does all of it", send_messages_to_it, all_sorts },
};

static void
serve_it(struct lan_node *n, uint64_t now)
{
	struct crowd *c = n->arg;

	(void)now;
	if (c->kind != NULL && c->kind->server != NULL)
		c->kind->server(c);
}

static void
crowd_flood(struct lan_node *n, uint64_t now)
{
	struct crowd *c = n->arg;

	if (c->kind == NULL || c->kind->flood == NULL)
		return;
	for (; c->next <= now; c->next += FLOOD_NS)
		c->kind->flood(c);
	n->wake = c->next;
}

/* --- a run --- */

static void
crowd_create(struct crowd *c)
{
	struct rc_limits limits = rc_limits_default;
	uint32_t bad = BAD_QPN;
	struct lan_node *server;
	struct av av;
	unsigned int i;

	limits.max_qp = 64;
	c->f = lan_create(NODES, &limits);
	server = &c->f->node[SERVER];
	server->packet_ns = 110;
	server->kb_ns = 77;
	server->rx_room = 1024;
	server->turn = serve_it;
	c->f->node[FRIENDS].turn = keep_reading;
	c->f->node[FRIENDS].wake = c->f->now;
	c->f->node[BAD].turn = crowd_flood;
	c->f->node[BAD].mute = true;
	c->f->node[BAD].wake = c->next = c->f->now;
	for (i = 0; i < NODES; i++)
		c->f->node[i].arg = c;
	for (i = 0; i < GOOD; i++)
		lan_connect(&c->f->node[FRIENDS], server, &good_opt, &c->qpn[i], &c->peer_qpn[i]);
	lan_connect(server, &c->f->node[BAD], &bad_opt, &c->bad_qpn, &bad);
	av = lan_av(&c->f->node[BAD], server);
	path_init(&c->path, &av, BAD_QPN, c->bad_qpn);
}

static void
crowd_received(const struct crowd *c, uint64_t *bytes)
{
	unsigned int i;

	for (i = 0; i < GOOD; i++)
		bytes[i] = lan_info(&c->f->node[FRIENDS], c->qpn[i]).counters.rcvd_bytes;
}

/* Measure bytes received by the well-behaved peers: their sum, and the least of one peer. */
static void
crowd_run(struct sim *s, const struct bad_kind *kind, uint64_t *sum, uint64_t *least)
{
	struct crowd c = { .s = s, .kind = kind };
	uint64_t before[GOOD], after[GOOD];
	unsigned int i;

	crowd_create(&c);
	lan_run(c.f, c.f->now + WARM_NS);
	crowd_received(&c, before);
	lan_run(c.f, c.f->now + RUN_NS);
	crowd_received(&c, after);
	*sum = 0;
	*least = UINT64_MAX;
	for (i = 0; i < GOOD; i++) {
		uint64_t bytes = after[i] - before[i];

		*sum += bytes;
		*least = bytes < *least ? bytes : *least;
	}
	if (kind != NULL && kind->flood != NULL && c.flooded < (WARM_NS + RUN_NS) / FLOOD_NS)
		sim_fail(s, "%s: only %llu packets", kind->name, (unsigned long long)c.flooded);
	lan_destroy(c.f);
}

void
scenario_crowd(struct sim *s)
{
	uint64_t alone, worst_alone, sum, least;
	unsigned int i;

	crowd_run(s, NULL, &alone, &worst_alone);
	sim_trace(s, "without: %.2f Gb/s", (double)alone * 8 / RUN_NS);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !s->failed; i++) {
		crowd_run(s, &kinds[i], &sum, &least);
		sim_trace(s, "one that %s: %.2f Gb/s, they lose %.2f %%, the worst off %.2f %%",
			kinds[i].name, (double)sum * 8 / RUN_NS, 100 - 100.0 * sum / alone,
			100 - 100.0 * least / worst_alone);
		if (sum < (1 - LOSS_MAX) * alone)
			sim_fail(s, "a peer that %s takes %.2f %% from the others", kinds[i].name,
				100 - 100.0 * sum / alone);
	}
}
