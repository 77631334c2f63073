/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_CM_WORLD_H
#define TEST_CM_WORLD_H

/*
 * Two nodes, each with lib/rc, lib/mad and lib/cm of one worker, on a wire in memory under virtual
 * time (ns); or one, and a peer that the test plays. a is 10.0.0.1 and LID 1, b 10.0.0.2 and LID 2.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cm/cm.h"
#include "cm/message.h"
#include "cm/timing.h"
#include "wire/bytes.h"
#include "wire/wire.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

#define WORLD_FRAMES  4096 /* a ring */
#define WORLD_LIVES   128 /* users of connections that are remembered, per node */
#define WORLD_MEM     8192
#define WORLD_PORT    7174
#define WORLD_SERVICE UINT64_C(0x0000000001061C06) /* TCP, WORLD_PORT */
#define GUID_A        UINT64_C(0x020000FFFE000001)
#define GUID_B        UINT64_C(0x020000FFFE000002)
/* of the peer played by the test */
#define PEER_ID  0xB0B00001u
#define PEER_QPN 0x000456u
#define PEER_PSN 0x123456u
#define PEER_TID UINT64_C(0xB0B0000000000001)

struct node;

/* A user of a connection, and what it was told. */
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
	struct tx_sink sink; /* first: the sink is the node */
	struct world *world;
	struct node *peer;
	unsigned int room; /* packets the sink takes before it is full */
	const struct path *path;
	uint32_t reserved;
	struct frame *frames;
	uint64_t sent, delivered, seen;
	uint16_t lose[16]; /* attribute IDs of CM messages to be lost, once each */
	unsigned int num_lose;
	uint32_t loss; /* of its CM messages, in a thousand; and as many arrive twice */
	bool deaf; /* nothing arrives */
	bool lose_data; /* nor anything but MADs */
	bool twice; /* each CM message that it sends arrives twice */

	uint64_t guid;
	struct port_attr port;
	struct mem *mem;
	struct timer_wheel *wheel;
	struct rc_dev *dev;
	struct rc_worker *rc;
	struct mad_worker *mad;
	struct cm *cm;
	uint32_t pd, send_cq, recv_cq, key;
	uint64_t va;
	uint8_t bytes[WORLD_MEM];

	/* as a listener */
	uint16_t answer; /* request()'s */
	int prepare_error;
	struct cm_conn_param param;
	struct cm_request request; /* the last one */
	uint8_t request_private[CM_REQ_PRIVATE];
	unsigned int requests;
	unsigned int (*work)(struct node *n); /* one more in run(); may be NULL */
	void (*leave)(struct node *n); /* at the end, when the CM is gone; may be NULL */
	void (*on_established)(struct life *l);
	void (*on_ended)(struct life *l);
	struct life lives[WORLD_LIVES]; /* in order */
	uint64_t num_lives;
	uint64_t established, ended, released; /* calls */
};

struct world {
	struct node a, b;
	uint64_t now;
	uint32_t chance; /* state of the dice */
	bool ib;
	bool scripted; /* b is the test's: .b.cm == NULL */
	struct cm_limits limits;
	uint32_t max_qp;
};

extern const struct cm_user world_user;

struct world *world_create(const struct world *like);
void world_destroy(struct world *w);
int world_setup(void **state); /* a and b, RoCE; b listens */
int world_setup_ib(void **state);
int scripted_setup(void **state); /* a and the test; a listens */
int world_teardown(void **state);

/* --- time and the wire --- */

void exchange(struct world *w); /* until nothing is under way */
void run(struct node *n); /* cm, mad, rc once each, until nothing is sent */
void deliver(struct node *n);
void pass(struct world *w, uint64_t ns); /* time, timers; then exchange() */
void pass_alone(struct world *w, uint64_t ns); /* time, timers; what is sent is not delivered */
void lose(struct node *n, enum cm_message type); /* n's next such message */

/* --- expectations --- */

/* The CM messages that n sent since the last expectation: all of them. */
void expect_sent(struct node *n, const char *first, ...);
#define expect_messages(n, ...) expect_sent(n, __VA_ARGS__, NULL)
#define expect_silence(n)       expect_sent(n, NULL)
/* The next CM message that n sent, decoded; it stays valid for a while. */
struct cm_msg next_message(struct node *n, enum cm_message type);
void skip_messages(struct node *n);
void expect_state(const struct node *n, cm_id id, enum cm_state state);
void expect_gone(const struct node *n, cm_id id);
void expect_log(const struct life *l, const char *log);
/* No connections, no QPs, nothing to do. */
void expect_nothing_left(struct node *n);
unsigned int count_qps(const struct node *n);
unsigned int count_conns(const struct node *n);
enum qp_state qp_state_of(const struct node *n, uint32_t qpn);
struct cm_counters counters_of(const struct node *n);

/* --- acts --- */

void connect_init(struct node *n, struct cm_connect *c);
struct life *start(struct node *n); /* cm_connect() to the peer, nothing delivered */
struct life *life_of(struct node *n, unsigned int i); /* in order of birth */
struct life *last_life(struct node *n);
/* Connect a to b as a whole: both established. */
void establish(struct world *w, struct life **a, struct life **b);
int disconnect(struct life *l);
void send_data(struct life *l); /* one Send of 64 bytes */
unsigned int received(struct node *n); /* successful receive completions since last asked */

/* --- between the parts of this harness --- */

struct frame *world_frame(const struct node *n, uint64_t i);
void world_parse(const struct node *from, const struct frame *f, struct packet *pkt);
bool world_is_cm(const struct packet *pkt); /* a CM message? */
void world_param(const struct node *n, struct cm_conn_param *p);

/* --- b, played by the test --- */

struct av world_av(const struct node *from);
void peer_req(struct world *w, struct cm_msg *m); /* a good one, to be changed */
void peer_rep(struct world *w, struct cm_msg *m, const struct cm_msg *req);
void peer_say(struct world *w, const struct cm_msg *m); /* arrives; answers are sent */
void peer_say_raw(struct world *w, const uint8_t *mad);
void peer_say_from(struct world *w, const struct cm_msg *m, uint8_t host); /* 10.0.0.host */
void peer_say_as(struct world *w, const struct cm_msg *m, const union gid *sgid);
/* Plain messages of the two IDs. */
void peer_answer(struct world *w, enum cm_message type, cm_id ours);
void peer_rej(struct world *w, cm_id ours, uint32_t theirs, uint16_t reason);
void peer_dreq(struct world *w, cm_id ours, uint32_t theirs, uint32_t qpn);

#endif
