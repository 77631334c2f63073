/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_PERFTEST_H
#define ENGINE_PERFTEST_H

/**
 * @file
 * Private to lib/engine: perftest's parameter exchange over TCP, for services of kind "perftest"
 * with a tcp_port. Any host that reaches the port may talk, so a thread of its own without
 * capabilities reads the sockets. It asks the control thread only for what needs queue pairs: each
 * client has one question at a time, so the queues between both threads are bounded.
 */

#include <pthread.h>
#include <sys/time.h>

#include "engine/worker.h"
#include "svc/perftest_exchange.h"

#define PERFTEST_QPS      64 /* QPs of a session (perftest's option -q) */
#define PERFTEST_SESSIONS 64
/* time for the control thread's answer: far more than it needs for the questions of all sessions */
#define PERFTEST_ANSWER_S 30
/* as many may have ended, and wait for the control thread to close their queue pairs */
#define PERFTEST_PLACES (2 * PERFTEST_SESSIONS)

struct perftest_qp {
	unsigned int worker;
	struct svc_conn *conn;
	uint32_t remote_qpn;
	struct perftest_dest ours;
};

/** What the exchange's thread asks of the control thread. */
enum perftest_question {
	PERFTEST_ASK_NOTHING,
	PERFTEST_ASK_QP, /* a queue pair for .theirs */
	PERFTEST_ASK_PACKETS, /* how many packets the queue pairs have received */
	PERFTEST_ASK_CLOSE, /* close the queue pairs: the socket is closed */
};

/** A client: its socket and the QPs that were created for it. */
struct perftest_session {
	/* set when the session begins */
	struct engine *engine;
	unsigned int place; /* place of its service */
	union gid peer; /* address of its TCP connection */
	bool any_gid;
	char client[64]; /* the same with its port, for the log */

	/* used by the exchange's thread */
	bool used; /* its socket is open */
	bool announced; /* it has a queue pair */
	bool answered; /* .granted and .ours are the answer to its message */
	struct event *event;
	struct event *late; /* runs if the control thread does not answer in time */
	uint64_t started; /* TSC */
	uint64_t heard; /* TSC: when it last sent a message, or packets to its queue pairs */
	uint64_t packets; /* that its queue pairs had received then */
	uint64_t counting; /* TSC: when the packets were asked for */
	enum perftest_question question;
	uint8_t in[PERFTEST_MESSAGE_MAX];
	size_t len;

	/* from a question until its answer used by the control thread, else by the exchange's */
	struct perftest_exchange exchange;
	struct perftest_dest theirs, ours;
	bool granted;
	uint64_t counted;
	struct perftest_qp qp[PERFTEST_QPS];
	unsigned int num_qps;

	uint32_t abandoned; /* its socket was closed before the answer; atomic */
};

struct perftest_listener {
	struct perftest_sockets *sockets;
	struct allow_list allow; /* set before its sessions begin */
	bool any_gid;
	struct event *event; /* NULL: none */
};

/** Sessions that wait for the other thread; a session is in one queue at most. */
struct perftest_queue {
	struct perftest_session *at[PERFTEST_PLACES];
	unsigned int first;
	unsigned int num;
};

struct perftest_job {
	int (*fn)(struct perftest_sockets *t, void *arg);
	void *arg;
	int result;
	bool done;
};

struct perftest_sockets {
	struct engine *engine;
	uint32_t mtu; /* of new sessions; atomic */

	/* used by the exchange's thread, and by the control thread while that does not run */
	struct event_base *base;
	struct event *told; /* reads .told_fd */
	struct log_lines log;
	struct timeval patience; /* with the control thread: a session waits no longer */
	struct perftest_listener listener[ENGINE_SERVICE_PLACES]; /* by the service's place */
	struct perftest_session session[PERFTEST_PLACES];

	/* used by the control thread */
	pthread_t thread;
	bool started;
	struct event *asked; /* reads .asked_fd */

	int told_fd; /* wakes the exchange's thread */
	int asked_fd; /* wakes the control thread */
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed; /* .ready or the job's end */
	struct perftest_queue questions;
	struct perftest_queue answers;
	struct perftest_job *job;
	uint64_t watch; /* TSC for which to look at the deadlines; 0: not now */
	int ready; /* 0: not yet; 1: runs; negative: errno with which the thread has ended */
	bool stop;
};

/* --- perftest_thread.c: on the control thread, if not stated otherwise --- */

int perftest_create(struct engine *e, struct error *err);
/** Start the exchange's thread if a service has a tcp_port and workers run. */
int perftest_thread_start(struct engine *e, struct error *err);
void perftest_thread_stop(struct engine *e);
/**
 * Run fn on the exchange's thread and wait for it. That thread never waits for this one. If it does
 * not run, the caller runs fn.
 */
int perftest_call(struct perftest_sockets *t, int (*fn)(struct perftest_sockets *t, void *arg),
	void *arg);
/** Answer up to @p most questions. */
void perftest_serve(struct perftest_sockets *t, unsigned int most);
/** Close sessions that have not announced a queue pair in time, or are quiet. */
void perftest_watch(struct engine *e, uint64_t now);

/* --- perftest_queue.c --- */

/** @return false: it is the first in the queue, so the other thread may have to be woken */
bool perftest_enqueue(struct perftest_sockets *t, struct perftest_queue *q,
	struct perftest_session *s);
/** @return NULL: the queue is empty */
struct perftest_session *perftest_dequeue(struct perftest_sockets *t, struct perftest_queue *q);
/** The exchange's thread: ask the control thread; the answer comes to perftest_tcp_answered(). */
void perftest_ask(struct perftest_session *s, enum perftest_question question);

/* --- perftest_listen.c: on the control thread --- */

/** End the thread and its sessions, and free what perftest_create() has made. */
void perftest_destroy(struct engine *e);
/** Open the listening socket of a service that has a tcp_port, else do nothing. */
int perftest_listen(struct engine *e, unsigned int place, const struct svc_config *config,
	struct error *err);
/** Close the listening socket of a service. @param sessions  end them, too */
void perftest_unlisten(struct engine *e, unsigned int place, bool sessions);

/* --- perftest_tcp.c: the sockets --- */

#define PERFTEST_BACKLOG 16

/** What perftest_tcp_open() and perftest_tcp_shut() are about. */
struct perftest_place {
	unsigned int place;
	const struct svc_config *config;
	int fd;
	bool sessions; /* end them, too */
};
/** The exchange's thread: accept clients of a listening socket. @retval -ENOMEM */
int perftest_tcp_open(struct perftest_sockets *t, void *arg);
/** The exchange's thread: accept none any more. @return 0 */
int perftest_tcp_shut(struct perftest_sockets *t, void *arg);
/** The exchange's thread: the control thread has answered the session's question. */
void perftest_tcp_answered(struct perftest_session *s);
/** The exchange's thread: look at the deadlines of sessions. */
void perftest_tcp_watch(struct perftest_sockets *t, uint64_t now);

/* --- perftest_qp.c: the queue pairs, on the control thread --- */

/** Answer the session's question. */
void perftest_answer_question(struct perftest_session *s);
/** Largest path MTU that every port supports, in bytes. */
uint16_t perftest_mtu(const struct engine *e);

#endif
