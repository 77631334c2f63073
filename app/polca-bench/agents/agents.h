/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_AGENTS_H
#define BENCH_AGENTS_H

/*
 * The agents of QP1 on a link in memory, without EAL and engine. Every frame has Ethernet, IPv4,
 * UDP and BTH headers and an ICRC; path_finish() writes them and mad_receive() checks them. Only
 * the cost of a NIC driver is missing.
 *
 * The server's clock is its busy time: it stands still while the client works. So one core can run
 * both, and timeouts are those of a server that is never idle.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/client.h"
#include "sa/sa.h"
#include "wire/wire.h"

#define FRAME_ROOM        448
#define BENCH_BURST       32 /* packets per receive burst, as in the engine */
#define BENCH_SEND_BUDGET 64
#define BENCH_SA_BUDGET   256
#define BENCH_PEERS       1024

/* --- frames.c: one direction of the link --- */

struct frame {
	uint64_t due; /* arrival time, for links with a delay */
	uint32_t start, len;
	uint8_t bytes[FRAME_ROOM];
};

struct frames {
	struct tx_sink sink; /* first: the sink is the queue */
	struct frame *frame;
	uint32_t size, head, tail;
	enum encap encap; /* RoCEv2 over IPv4, unless set */
	const struct path *path; /* of the reserved packet */
	uint32_t reserved;
	/* links with delay and loss; all 0: neither */
	uint64_t now, delay, gap, last_due;
	uint32_t loss; /* lost of 2^32 */
	uint64_t random;
	uint64_t lost;
};

void frames_init(struct frames *q, uint32_t size);
void frames_free(struct frames *q);
/* Parse the oldest frame, which stays until frames_pop(). NULL: none, or not due yet. */
const struct packet *frames_front(struct frames *q, struct packet *pkt, uint64_t now);
void frames_pop(struct frames *q);
uint64_t frames_next_due(const struct frames *q); /* UINT64_MAX: empty */
uint64_t bench_random(uint64_t *state);

/* --- common.c --- */

void bench_die(const char *what);
uint64_t bench_hz(void); /* of the TSC */
int bench_by_value(const void *a, const void *b); /* doubles, for qsort() */
/* The value below which this share of n sorted values lies. */
double bench_quantile(const double *sorted, unsigned int n, double share);

struct bench_config {
	uint32_t sessions;
	uint64_t hz; /* 0: the TSC's */
	uint8_t subnet_timeout, resp_time; /* 0: 18 */
	uint32_t queue; /* frames, a power of two; 0: 4096 */
};
void bench_port(struct port_attr *port, uint32_t ip, uint8_t subnet_timeout);
void agents_limits(struct mad_limits *limits, const struct bench_config *config);

/* --- answer.c: the same requests of one packet, repeated --- */

/* Add a request; no reply reaches its sender. */
void answer_add(struct frames *requests, const struct mad_peer *to, const uint8_t *mad);
/*
 * Answers per second of a worker that receives these requests in bursts. Each must be answered.
 *
 * @param out  for the answers; those of the last burst stay there
 */
double answer_rate(struct frames *requests, struct frames *out, struct mad_worker *w,
	enum verdict (*receive)(struct mad_worker *w, const struct packet *pkt, uint64_t now),
	uint64_t count);
/* The MAD of the last answer. */
const uint8_t *answer_last(const struct frames *out);

/* --- sa_server.c --- */

struct bench_server {
	struct store *store;
	struct sa *sa;
	struct sa_worker *worker;
	struct mad_worker *mad;
	struct timer_wheel *wheel;
	struct port_attr port;
	struct frames out;
	uint64_t busy; /* TSC cycles spent in server_step() */
};

void server_create(struct bench_server *s, const struct bench_config *config);
void server_destroy(struct bench_server *s);
/*
 * One iteration of a worker's loop: process the packets of in, and add the time to busy. @return
 * packets
 */
unsigned int server_step(struct bench_server *s, struct frames *in, uint64_t now);
void server_load(struct bench_server *s, const struct sa_change *changes, size_t n);

/* --- sa_records.c --- */

/* Load n NodeRecords with LIDs from 1 on. */
void load_nodes(struct bench_server *s, uint32_t n);
/*
 * Load a fat tree of n channel adapters: leaves of 200 adapters, 25 spines, two links from each
 * leaf to each spine. LIDs from 1 on, first of the adapters, then of the switches.
 */
void load_fabric(struct bench_server *s, uint32_t n);
#define BENCH_GUID(lid) (UINT64_C(0x0002c90300000000) + (lid))
#define BENCH_PREFIX    UINT64_C(0xfe80000000000000)

/* --- sa_client.c: many sessions, each with the least possible work --- */

enum ask {
	ASK_NODES, /* GetTable(NodeRecord), all */
	ASK_LINK, /* GetTable(LinkRecord) of one port: one record */
	ASK_PATH, /* Get(PathRecord) of two random ports */
};

struct bench_client {
	struct frames out;
	struct path path[BENCH_PEERS];
	uint8_t request[MAD_LEN];
	struct client_session *session;
	uint32_t sessions, ports;
	uint32_t begun; /* sessions begun so far */
	unsigned int version;
	enum ask ask;
	uint64_t random;
	/* what arrived */
	uint64_t segments; /* in order */
	uint64_t completed;
	uint64_t failed; /* answered with a status, or aborted */
	uint64_t unused; /* packets that came repeated, out of order, or for a finished session */
};

void bench_client_create(struct bench_client *c, enum ask ask, unsigned int version,
	uint32_t sessions, uint32_t ports);
void bench_client_destroy(struct bench_client *c);
/* Begin as many of the remaining sessions as the link has room for. @return sessions begun */
uint32_t client_start(struct bench_client *c);
/* Process all that the server sent. */
void client_step(struct bench_client *c, struct frames *in);

/* --- sa_loss.c: one transfer over a link with delay and loss --- */

struct sa_loss;
/* Transfer tables of this many records over a link with this round-trip time. */
struct sa_loss *sa_loss_create(uint32_t records, uint64_t rtt_ns);
void sa_loss_destroy(struct sa_loss *b);

struct sa_loss_result {
	uint64_t ns; /* duration of the transfer */
	uint32_t records;
	uint32_t lost; /* packets, both directions */
	struct mad_result result;
};
/* Transfer a table once, and lose one packet in one_in (0: none). */
void sa_loss_run(struct sa_loss *b, unsigned int version, uint32_t one_in, uint64_t seed,
	struct sa_loss_result *result);

/* --- sa_cases.c: what a worker serves per second --- */

struct sa_case {
	const char *name, *unit;
	enum ask ask;
	unsigned int version;
	uint32_t sessions;
	uint32_t count; /* segments or answers to measure */
};

extern const struct sa_case sa_cases[];
extern const unsigned int sa_case_count;
/*
 * Run one measurement with its own database.
 *
 * @param brief     a hundredth of everything
 * @param repeated  set to the share of packets out of order or duplicated
 * @return segments or answers per second of the server's time
 */
double sa_case_rate(const struct sa_case *k, bool brief, double *repeated);

/* --- ping_cases.c --- */

extern const char *const ping_cases[];
extern const unsigned int ping_case_count;
/* Answers per second of a worker to requests of many sources. */
double ping_rate(unsigned int which, uint64_t count);

/* Two workers, one of which asks the other for an echo of len bytes. */
struct ping_pair;
struct ping_pair *ping_create(uint32_t len);
void ping_destroy(struct ping_pair *p);
/* @return TSC cycles from the request to the received answer */
uint64_t ping_echo(struct ping_pair *p);

/* --- cm_pair.c: two communication managers --- */

struct cm_pair;
/* TSC cycles. */
struct cm_cost {
	uint64_t active, passive;
};
struct cm_pair *cm_pair_create(void);
void cm_pair_destroy(struct cm_pair *p);
/* Make this many connections, and release each as soon as it is established. */
struct cm_cost cm_pair_connect(struct cm_pair *p, uint64_t n);
/* Make this many more connections that stay. */
void cm_pair_stand(struct cm_pair *p, uint64_t n);
/* Run until all other connections are released; anything left over is an error. */
void cm_pair_settle(struct cm_pair *p);

#endif
