/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_REPORT_H
#define POLCA_CTL_REPORT_H

/**
 * @file
 * The command line's options, and how a command ends: what is said on stderr, and the exit status.
 */

#include <stdbool.h>

#include <jansson.h>

#include "connection.h"

enum exit_status {
	EXIT_DONE = 0,
	EXIT_SERVER = 1,
	EXIT_USAGE = 2,
	EXIT_CONNECTION = 3,
	EXIT_STATUS = 4, /**< whom the server asked for us said no, or nothing */
};

struct options {
	char socket[256];
	bool json;
	bool help;
	bool version;
	unsigned int wait_ms;
	char **words; /**< what is left for the command */
	int num;
	const json_t *command; /**< the one that runs, for the names in its errors; NULL: none yet */
};

/* Each says what to do next. @return the exit status */
int usage_error(const char *fmt, const char *what);
int no_connection(const struct options *o, int eno);
int no_reply(int eno);
int no_such_command(const struct options *o, const json_t *methods);
/** @param words  the command */
int server_error(const struct options *o, json_t *error, const char *words);

/**
 * A call whose failure is told.
 *
 * @param words  the command
 * @return 0: *result is set; else the exit status
 */
int ask_server(const struct options *o, struct connection *c, const char *words, const char *method,
	json_t *params, unsigned int wait_ms, json_t **result);
/** A result's "status": nothing to say of OK, others by name. @return the exit status */
int status_end(const char *words, const json_t *result);
void print_json(const json_t *result);

#endif
