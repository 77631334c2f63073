/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_CM_WORLD_H
#define TEST_CM_WORLD_H

/*
 * Two nodes, each with lib/rc, lib/mad and lib/cm of one worker, connected by a wire in memory,
 * under virtual time (ns). With .scripted only node a exists, and the test acts as its peer. a is
 * 10.0.0.1 and LID 1, b is 10.0.0.2 and LID 2.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../counted.h"
#include "cm/cm.h"
#include "cm/message.h"
#include "cm/timing.h"
#include "wire/bytes.h"
#include "wire/wire.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

#define WORLD_FRAMES  4096 /* size of the ring of sent frames */
#define WORLD_LIVES   128 /* number of connection users remembered per node */
#define WORLD_MEM     8192
#define WORLD_PORT    7174
#define WORLD_SERVICE UINT64_C(0x0000000001061C06) /* TCP, WORLD_PORT */
#define GUID_A        UINT64_C(0x020000FFFE000001)
#define GUID_B        UINT64_C(0x020000FFFE000002)
/* numbers of the peer that the test acts as */
#define PEER_ID  0xB0B00001u
#define PEER_QPN 0x000456u
#define PEER_PSN 0x123456u
#define PEER_TID UINT64_C(0xB0B0000000000001)

struct node;

/* The user of a connection, and the callbacks it has had. */
struct life {
	struct node *node;
	cm_id id;
	uint32_t qpn;
	char log[80]; /* "request prepare established ended released " */
	struct cm_info info; /* of established(), ended() */
	uint8_t private_data[CM_PRIVATE_MAX];
	uint8_t private_len;
	unsigned int receives; /* completions */
};

struct frame {
	uint8_t bytes[1280];
	uint32_t len;
	bool lost;
};

struct node {
	struct tx_sink sink; /* the first member: world_sink_reserve() casts it to struct node */
	struct world *world;
	struct node *peer;
	unsigned int room; /* packets the sink takes before it is full */
	const struct path *path;
	uint32_t reserved;
	struct frame *frames;
	uint64_t sent, delivered, seen;
	uint16_t lose[16]; /* attribute IDs of the CM messages to lose next */
	unsigned int num_lose;
	uint32_t
		loss; /* of 1000 CM messages it sends, so many are lost, and so many arrive twice */
	bool deaf; /* it receives nothing */
	bool lose_data; /* it receives only MADs */
	unsigned int lose_acks; /* ACKs that it sends to lose next */
	bool twice; /* each CM message that it sends arrives twice */

	uint64_t guid;
	struct port_attr port;
	struct mem *mem;
	struct timer_wheel *wheel;
	struct rc_dev *dev;
	struct rc_worker *rc;
	struct mad_worker *mad;
	struct cm *cm;
	struct counted memory; /* of .cm */
	uint32_t pd, send_cq, recv_cq, key;
	uint64_t va;
	uint8_t bytes[WORLD_MEM];

	/* as a listener */
	uint8_t barred_net; /* 10.0.x.y is not admitted; 0: all are */
	uint16_t answer; /* result of request() */
	int prepare_error;
	struct cm_conn_param param;
	struct cm_request request; /* the last one */
	uint8_t request_private[CM_REQ_PRIVATE];
	unsigned int requests;
	unsigned int (*work)(struct node *n); /* also called by run(); may be NULL */
	void (*leave)(struct node *n); /* called at the end, after cm_destroy(); may be NULL */
	void (*on_established)(struct life *l);
	void (*on_ended)(struct life *l);
	struct life lives[WORLD_LIVES]; /* in order */
	uint64_t num_lives;
	uint64_t established, ended, released; /* calls */
	/* events: refused connections, ended ones, and what those say of others left out */
	unsigned int refused_events, ended_events, unreported;
	uint32_t ended_qpn; /* of the last such event; 0: it had no queue pair */
};

struct world {
	struct node a, b;
	uint64_t now;
	uint32_t chance; /* state of the random generator */
	bool ib;
	bool scripted; /* the test acts as b: .b.cm == NULL */
	struct cm_limits limits;
	uint32_t max_qp;
};

extern const struct cm_user world_user;

struct world *world_create(const struct world *like);
void world_destroy(struct world *w);
int world_setup(void **state); /* a and b with RoCE; b listens */
int world_setup_ib(void **state);
int scripted_setup(void **state); /* only a, which listens */
int world_teardown(void **state);

/* --- time and the wire --- */

void exchange(struct world *w); /* run both nodes and deliver until no frame is left */
void run(struct node *n); /* run cm, mad and rc until nothing is sent */
void deliver(struct node *n);
void pass(struct world *w, uint64_t ns); /* advance time, run timers, then exchange() */
void pass_alone(struct world *w, uint64_t ns); /* advance time, run timers; deliver nothing */
void lose(struct node *n, enum cm_message type); /* lose n's next such message */

/* --- expectations --- */

/* Expect these CM messages and no others from n since the last expectation. */
void expect_sent(struct node *n, const char *first, ...);
#define expect_messages(n, ...) expect_sent(n, __VA_ARGS__, NULL)
#define expect_silence(n)       expect_sent(n, NULL)
/*
 * The next CM message that n has sent, decoded. Private data stay valid until WORLD_FRAMES later.
 */
struct cm_msg next_message(struct node *n, enum cm_message type);
void skip_messages(struct node *n);
void expect_state(const struct node *n, cm_id id, enum cm_state state);
void expect_gone(const struct node *n, cm_id id);
void expect_log(const struct life *l, const char *log);
/* Expect no connections, no QPs and no work left. */
void expect_nothing_left(struct node *n);
unsigned int count_qps(const struct node *n);
unsigned int count_conns(const struct node *n);
enum qp_state qp_state_of(const struct node *n, uint32_t qpn);
struct cm_counters counters_of(const struct node *n);

/* --- actions of users --- */

void connect_init(struct node *n, struct cm_connect *c);
struct life *start(struct node *n); /* cm_connect() to the peer; deliver nothing */
struct life *life_of(struct node *n, unsigned int i); /* the i-th user since the beginning */
struct life *last_life(struct node *n);
/* Connect a to b; both are established. */
void establish(struct world *w, struct life **a, struct life **b);
int disconnect(struct life *l);
void send_data(struct life *l); /* one Send of 64 bytes */
unsigned int received(struct node *n); /* successful receive completions since the last call */

/* --- between the files world*.c --- */

struct frame *world_frame(const struct node *n, uint64_t i);
void world_parse(const struct node *from, const struct frame *f, struct packet *pkt);
bool world_is_cm(const struct packet *pkt); /* a CM message? */
void world_param(const struct node *n, struct cm_conn_param *p);

/* --- the test acts as b --- */

struct av world_av(const struct node *from);
void peer_req(struct world *w, struct cm_msg *m); /* make a valid REQ, which the test changes */
void peer_rep(struct world *w, struct cm_msg *m, const struct cm_msg *req);
void peer_say(struct world *w, const struct cm_msg *m); /* deliver it, and run a */
void peer_say_raw(struct world *w, const uint8_t *mad);
void peer_say_from(struct world *w, const struct cm_msg *m, uint8_t host); /* 10.0.0.host */
void peer_say_as(struct world *w, const struct cm_msg *m, const union gid *sgid);
/* Deliver messages that have only the two IDs. */
void peer_answer(struct world *w, enum cm_message type, cm_id ours);
void peer_rej(struct world *w, cm_id ours, uint32_t theirs, uint16_t reason);
void peer_dreq(struct world *w, cm_id ours, uint32_t theirs, uint32_t qpn);

#endif
