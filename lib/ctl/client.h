/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

/**
 * @file
 * One connection: bytes in, calls, bytes out. Requests of a connection are answered in their
 * order; one that waits holds back those behind it and nobody else's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "ctl/ctl.h"
#include "ctl/rpc.h"

struct client {
	LIST_ENTRY(client) link;
	int fd;
	struct event_base *base;
	struct event *event; /* libevent's: lib/rc has a structure of this name, too */
	short interest; /* events asked for */
	bool readable; /* the event loop says so */
	const struct ctl_limits *limits;
	struct evbuffer *in;
	struct evbuffer *out;
	size_t scanned; /* bytes of in known to hold no newline */
	struct rpc_call *call; /* the one under way */
	uint64_t next_event; /* the first that this client has not read */
	int waiting; /* what rpc_step() said of it */
	/*
	 * The call of the last reply, if it can be undone: client_destroy() undoes it if the client
	 * closed before it read that reply. Of earlier replies nobody knows whether they were read.
	 */
	struct rpc_call *answered;
	uint64_t half_since; /* when the incomplete line began; 0: there is none */
	uint64_t stalled_since; /* when out last moved; 0: out is empty */
	uint64_t active; /* when a request last came */
	int passed_fd; /* came with bytes of in, and no call has taken it; -1: none */
	bool read_only; /* a client of the monitoring socket: no call changes anything */
	bool eof; /* nothing more will come */
	bool gone; /* nobody will read */
	bool unread; /* the client closed with a reply unread in its socket, or lost one */
};

extern int ctl_logtype;

/** What a connection wants next. */
enum client_want {
	CLIENT_IDLE, /**< wait for the socket, or a deadline of seconds */
	CLIENT_WAITS, /**< its call waits until the engine wakes us, or until call->until */
	CLIENT_NOW, /**< there is work left */
	CLIENT_CLOSE,
};

struct client *client_create(int fd, struct event_base *base, const struct ctl_limits *limits,
	uint64_t now);
void client_destroy(struct client *cl);
/** Read, answer some requests, write what can be written, mind the deadlines. */
enum client_want client_run(struct client *cl, struct rpc_state *state, uint64_t now);
/** Say why, and close once it is written. */
void client_refuse(struct client *cl, enum rpc_code code, const char *text);
/** Log that this client ran into a limit. Beyond a rate lines are only counted. */
void ctl_log_limit(struct rpc_state *state, const struct client *cl, const char *what,
	const char *text, uint64_t now);

#endif
