/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_WATCH_H
#define POLCA_CTL_WATCH_H

/**
 * @file
 * "live watch": send liveness requests to many endports and print their changes of state.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "connection.h"
#include "report.h"

/**
 * @return the exit status: 0 if all endports are up at the end, else 1; 2 for a wrong command line,
 * 3 without a server
 */
int watch_run(const struct options *o, struct connection *c, const json_t *command, json_t *params);

/* --- watch_state.c: one endport --- */

#define WATCH_SAMPLES 1000 /* answers whose times are kept; the statistics cover these */

enum watch_state {
	WATCH_NEW, /**< no request sent yet */
	WATCH_UP, /**< the last request was answered */
	WATCH_SUSPECT, /**< the last request was not answered */
	WATCH_DOWN, /**< the last `misses` requests were not answered */
};
const char *watch_state_name(enum watch_state state);

struct watch_endport {
	char *name; /**< as the user wrote it */
	json_t *params; /**< of live_ping */
	enum watch_state state;
	uint64_t since; /**< when it entered this state; all times are microseconds */
	uint64_t due; /**< when the next request is due */
	bool busy; /**< a request is under way */
	unsigned int missed; /**< requests in a row without a good answer */
	uint64_t sent, received;
	double *rtt; /**< [WATCH_SAMPLES] */
	uint32_t *residence; /**< [WATCH_SAMPLES], milliseconds; 0 for answers without one */
	bool has_residence;
};

/** @retval false  no memory */
bool watch_endport_init(struct watch_endport *e, const char *name, uint64_t now);
void watch_endport_fini(struct watch_endport *e);

/** A change of state. */
struct watch_change {
	enum watch_state was;
	uint64_t lasted; /**< how long the endport was in the state .was */
};
/**
 * Count the reply to one request.
 *
 * @param row     one of live_ping's replies
 * @param misses  this many in a row make the endport down
 * @retval true   the state has changed
 */
bool watch_reply(struct watch_endport *e, const json_t *row, unsigned int misses, uint64_t now,
	struct watch_change *change);
/** The endport's row of a report. */
json_t *watch_report(const struct watch_endport *e, uint64_t now);

/* --- watch_print.c: on standard output --- */
/** @param row  the reply that changed the state */
void watch_print_change(const struct options *o, const struct watch_endport *e,
	const struct watch_change *change, const json_t *row);
/** @param rows  of watch_report(); taken over */
void watch_print_report(const struct options *o, json_t *rows);

#endif
