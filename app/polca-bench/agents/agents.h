/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_AGENTS_H
#define BENCH_AGENTS_H

/*
 * The agents of QP1 on a link in memory, without EAL and engine. Every frame has its Ethernet, IPv4, UDP and BTH
 * headers and its ICRC, made by path_finish() and checked again by mad_receive(); what a NIC's
 * driver costs is all that is missing.
 *
 * The server's clock is its own time: it stands still while the client works, so that one core can
 * play both and the timeouts are those of a server that is never idle.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/client.h"
#include "sa/sa.h"
#include "wire/wire.h"

#define FRAME_ROOM        448
#define BENCH_BURST       32 /* packets taken in at a time, as the engine does */
#define BENCH_SEND_BUDGET 64
#define BENCH_SA_BUDGET   256
#define BENCH_PEERS       1024

/* --- frames.c: one direction of the link --- */

struct frame {
	uint64_t due; /* when it arrives, for links that take time */
	uint32_t start, len;
	uint8_t bytes[FRAME_ROOM];
};

struct frames {
	struct tx_sink sink; /* first: the sink is the queue */
	struct frame *frame;
	uint32_t size, head, tail;
	enum encap encap; /* RoCEv2 over IPv4, unless set */
	const struct path *path; /* of the packet reserved */
	uint32_t reserved;
	/* links that take time and lose packets; all 0: neither */
	uint64_t now, delay, gap, last_due;
	uint32_t loss; /* lost of 2^32 */
	uint64_t random;
	uint64_t lost;
};

void frames_init(struct frames *q, uint32_t size);
void frames_free(struct frames *q);
/* The oldest frame, parsed; it stays until frames_pop(). NULL: none, or not due yet. */
const struct packet *frames_front(struct frames *q, struct packet *pkt, uint64_t now);
void frames_pop(struct frames *q);
uint64_t frames_next_due(const struct frames *q); /* UINT64_MAX: empty */
uint64_t bench_random(uint64_t *state);

/* --- common.c --- */

void die(const char *what);
uint64_t bench_hz(void); /* of the TSC */
int bench_by_value(const void *a, const void *b); /* doubles, for qsort() */
/* Of n sorted values, the one that this share of them is below. */
double bench_quantile(const double *sorted, unsigned int n, double share);

struct bench_config {
	uint32_t sessions;
	uint64_t hz;                       /* 0: the TSC's */
	uint8_t subnet_timeout, resp_time; /* 0: 18 */
	uint32_t queue;                    /* frames, a power of two; 0: 4096 */
};
void bench_port(struct port_attr *port, uint32_t ip, uint8_t subnet_timeout);
void bench_limits(struct mad_limits *limits, const struct bench_config *config);

/* --- answer.c: requests of one packet, the same over and over --- */

/* One more request to be asked; its sender need not be anywhere. */
void answer_add(struct frames *requests, const struct mad_peer *to, const uint8_t *mad);
/*
 * Answers a second of a worker that takes in bursts of these requests; each must be answered.
 *
 * @param out  where its answers go; the last burst's are still there afterwards
 */
double answer_rate(struct frames *requests, struct frames *out, struct mad_worker *w,
		enum verdict (*receive)(struct mad_worker *w, const struct packet *pkt, uint64_t now),
		uint64_t count);
/* MAD of the last answer. */
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
/* What a worker's round does with the packets of in; its time is added to busy. @return packets */
unsigned int server_step(struct bench_server *s, struct frames *in, uint64_t now);
void server_load(struct bench_server *s, const struct sa_change *changes, size_t n);

/* --- sa_records.c --- */

/* n NodeRecords, LIDs from 1 on. */
void load_nodes(struct bench_server *s, uint32_t n);
/*
 * A fat tree of n channel adapters: leaves of 200 adapters, 25 spines, two links from each leaf to
 * each spine. LIDs from 1 on: adapters, then switches.
 */
void load_fabric(struct bench_server *s, uint32_t n);
#define BENCH_GUID(lid) (UINT64_C(0x0002c90300000000) + (lid))
#define BENCH_PREFIX    UINT64_C(0xfe80000000000000)

/* --- sa_client.c: many sessions, and as little work for each as can be --- */

enum ask {
	ASK_NODES, /* GetTable(NodeRecord), all */
	ASK_LINK,  /* GetTable(LinkRecord) of one port: one record */
	ASK_PATH,  /* Get(PathRecord) of two random ports */
};

struct bench_client {
	struct frames out;
	struct path path[BENCH_PEERS];
	uint8_t request[MAD_LEN];
	struct client_session *session;
	uint32_t sessions, ports;
	uint32_t begun; /* sessions that have been */
	unsigned int version;
	enum ask ask;
	uint64_t random;
	/* what came */
	uint64_t segments; /* in order */
	uint64_t completed;
	uint64_t failed; /* answered with a status, or aborted */
	uint64_t out_of_order;
};

void client_create(struct bench_client *c, enum ask ask, unsigned int version, uint32_t sessions,
		uint32_t ports);
void client_destroy(struct bench_client *c);
/* Begin with all sessions not begun yet, as far as the link has room. @return sessions begun */
uint32_t client_start(struct bench_client *c);
/* Take all that the server sent. */
void client_step(struct bench_client *c, struct frames *in);

/* --- sa_loss.c: one transfer on a link that takes time and loses packets --- */

struct sa_loss;
/* Tables of this many records, over a link with this round trip. */
struct sa_loss *sa_loss_create(uint32_t records, uint64_t rtt_ns);
void sa_loss_destroy(struct sa_loss *b);

struct sa_loss_result {
	uint64_t ns; /* how long the transfer took */
	uint32_t records;
	uint32_t lost; /* packets, both ways */
	struct mad_result result;
};
/* One table, losing one packet in so many (0: none). */
void sa_loss_run(struct sa_loss *b, unsigned int version, uint32_t one_in, uint64_t seed,
		struct sa_loss_result *result);

/* --- sa_cases.c: what a worker serves in a second --- */

struct sa_case {
	const char *name, *unit;
	enum ask ask;
	unsigned int version;
	uint32_t sessions;
	uint32_t count; /* segments or answers to be measured */
};

extern const struct sa_case sa_cases[];
extern const unsigned int sa_case_count;
/*
 * One measurement, with a database of its own.
 *
 * @param brief     a hundredth of everything
 * @param repeated  share of the packets that came out of order or twice
 * @return segments or answers a second of the server's time
 */
double sa_case_rate(const struct sa_case *k, bool brief, double *repeated);

/* --- ping_cases.c --- */

extern const char *const ping_cases[];
extern const unsigned int ping_case_count;
/* Answers a second of a worker, to requests of many sources. */
double ping_rate(unsigned int which, uint64_t count);

/* Two workers; one asks the other for an echo of len bytes. */
struct ping_pair;
struct ping_pair *ping_create(uint32_t len);
void ping_destroy(struct ping_pair *p);
/* @return TSC cycles from asking to the answer in hand */
uint64_t ping_echo(struct ping_pair *p);

/* --- cm_pair.c: two communication managers --- */

struct cm_pair;
/* TSC cycles. */
struct cm_cost {
	uint64_t active, passive;
};
struct cm_pair *cm_pair_create(void);
void cm_pair_destroy(struct cm_pair *p);
/* So many connections, each released as soon as it stands. */
struct cm_cost cm_pair_connect(struct cm_pair *p, uint64_t n);
/* As many more that stay. */
void cm_pair_stand(struct cm_pair *p, uint64_t n);
/* Until all has been released but these; nothing else may be left. */
void cm_pair_settle(struct cm_pair *p);

#endif
