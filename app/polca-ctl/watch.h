/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_WATCH_H
#define POLCA_CTL_WATCH_H

/** @file "live watch": many endports asked again and again; what becomes of each. */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "connection.h"
#include "report.h"

/**
 * @return the exit status: 0 if in the end all endports are up, else 1; 2 for a wrong command line,
 * 3 without a server
 */
int watch_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

/* --- watch_state.c: one endport --- */

#define WATCH_SAMPLES 1000 /* answers whose times are kept: figures are of the last ones */

enum watch_state {
	WATCH_NEW, /**< not asked yet */
	WATCH_UP, /**< the last request was answered */
	WATCH_SUSPECT, /**< the last one was not */
	WATCH_DOWN, /**< nor were those before it */
};
const char *watch_state_name(enum watch_state state);

struct watch_endport {
	char *name; /**< as the user wrote it */
	json_t *params; /**< of live_ping */
	enum watch_state state;
	uint64_t since; /**< that it is in this state; all times are microseconds */
	uint64_t due; /**< when it is asked next */
	bool busy; /**< a request is under way */
	unsigned int missed; /**< requests in a row without a good answer */
	uint64_t sent, received;
	double *rtt; /**< [WATCH_SAMPLES] */
	uint32_t *residence; /**< [WATCH_SAMPLES], milliseconds; of answers that tell none 0 */
	bool has_residence;
};

/** @retval false  no memory */
bool watch_endport_init(struct watch_endport *e, const char *name, uint64_t now);
void watch_endport_fini(struct watch_endport *e);

/** What a request came to. */
struct watch_change {
	enum watch_state was;
	uint64_t lasted; /**< how long it was that */
};
/**
 * @param row     reply to one request, as live_ping tells it
 * @param misses  so many in a row make the endport down
 * @retval true   its state has changed
 */
bool watch_reply(struct watch_endport *e, const json_t *row, unsigned int misses, uint64_t now,
	struct watch_change *change);
/** Its row of a report. */
json_t *watch_report(const struct watch_endport *e, uint64_t now);

/* --- watch_print.c: on standard output --- */
/** @param row  reply that changed it */
void watch_print_change(const struct options *o, const struct watch_endport *e,
	const struct watch_change *change, const json_t *row);
/** @param rows  of watch_report(); taken over */
void watch_print_report(const struct options *o, json_t *rows);

#endif
