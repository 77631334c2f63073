/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_PING_H
#define POLCA_CTL_PING_H

/**
 * @file
 * "ping": liveness requests, printed and counted as ping prints and counts echoes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "connection.h"
#include "report.h"

/**
 * @return the exit status: 0 if any request was answered, else 1; 2 for a wrong command line, 3
 * without a server
 */
int ping_command_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

/** "live ping": one call of the method. @return as ping_command_run() */
int live_ping_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

/* ping_stats.c */
struct ping_stats {
	uint64_t sent;
	uint64_t received;
	double min, max; /**< microseconds */
	double sum, squares;
};
void ping_stats_reply(struct ping_stats *s, double us);
double ping_stats_loss(const struct ping_stats *s); /**< percent */
double ping_stats_avg(const struct ping_stats *s);
/** Mean deviation as ping computes it: the root of the mean square less the square of the mean. */
double ping_stats_mdev(const struct ping_stats *s);
/** Print the two lines at the end. @param ms  from the first request to the end */
void ping_stats_print(FILE *f, const struct ping_stats *s, const char *dest, uint64_t ms);

/* ping_print.c: on standard output */
/** @param params  of live_ping */
void ping_print_head(const char *dest, const json_t *params);
/** @param reply  a row of live_ping's replies */
void ping_print_reply(const char *dest, uint64_t seq, const json_t *reply);
void ping_print_json(const char *dest, json_t *replies, const struct ping_stats *s, uint64_t ms);

/* ping_stats.c */
/** Parse "1" or "0.2" into milliseconds. @retval false  not a number, or not within min and max */
bool ping_seconds(const char *text, double min, double max, double *ms);

#endif
