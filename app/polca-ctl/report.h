/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_REPORT_H
#define POLCA_CTL_REPORT_H

/**
 * @file
 * The global options, and how a command ends: its message on stderr and its exit status.
 */

#include <stdbool.h>

#include <jansson.h>

#include "connection.h"

enum exit_status {
	EXIT_DONE = 0,
	EXIT_SERVER = 1,
	EXIT_USAGE = 2,
	EXIT_CONNECTION = 3,
	EXIT_STATUS = 4, /**< the peer that the server asked refused or did not answer */
};

struct options {
	char socket[256];
	bool json;
	bool help;
	bool version;
	unsigned int wait_ms;
	char **words; /**< the words without global options */
	int num;
	/** the command that runs, for option names in its errors; NULL: not yet known */
	const json_t *command;
};

/* Print an error and what to do next. @return the exit status */
int usage_error(const char *fmt, const char *what);
int no_connection(const struct options *o, int eno);
int no_reply(int eno);
int no_such_command(const struct options *o, const json_t *methods);
/** @param words  the command */
int server_error(const struct options *o, json_t *error, const char *words);

/**
 * Call a method and report a failure.
 *
 * @param words  the command
 * @return 0: *result is set; else the exit status
 */
int ask_server(const struct options *o, struct connection *c, const char *words, const char *method,
	json_t *params, unsigned int wait_ms, json_t **result);
/** Report a result's "status" unless it is OK. @return the exit status */
int status_end(const char *words, const json_t *result);
void print_json(const json_t *result);

#endif
