/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_SA_H
#define POLCA_CTL_SA_H

/**
 * @file
 * The subnet administration commands that make several calls: "sa get", "sa table", "sa bulk", "sa
 * set", "sa delete" and "sa config" start a query and fetch its result; "sa import" and "sa export"
 * read and write files. Their help and completion are derived from the methods they call.
 */

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "connection.h"
#include "report.h"

/** @return the exit status */
int sa_command_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

/* sa_print.c: print records one by one */
enum sa_form {
	SA_BLOCKS, /**< a heading, then one component per line */
	SA_ONE_LINE, /**< one line of NAME=VALUE */
	SA_JSON, /**< all records in one JSON object */
};
struct sa_printer {
	FILE *f;
	enum sa_form form;
	uint64_t records;
};
void sa_print_begin(struct sa_printer *p);
void sa_print_record(struct sa_printer *p, const json_t *record);
/** @param rest  further members of the JSON object, or NULL */
void sa_print_end(struct sa_printer *p, const json_t *rest);

#endif
