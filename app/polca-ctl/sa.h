/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_SA_H
#define POLCA_CTL_SA_H

/**
 * @file
 * Commands of subnet administration that are more than one call: "sa get", "sa table", "sa bulk",
 * "sa set", "sa delete", "sa config" start a query and fetch what it brings; "sa import" and
 * "sa export" read and write files. Their help and completion come from the methods under them.
 */

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "connection.h"
#include "report.h"

/** @return the exit status */
int sa_run(const struct options *o, struct connection *c, const json_t *command, json_t *params);

/* sa_print.c: records as they come */
enum sa_form {
	SA_BLOCKS, /**< a record is a heading and its components below */
	SA_ONE_LINE, /**< a record is a line of NAME=VALUE */
	SA_JSON, /**< all is one JSON object */
};
struct sa_printer {
	FILE *f;
	enum sa_form form;
	uint64_t records;
};
void sa_print_begin(struct sa_printer *p);
void sa_print_record(struct sa_printer *p, const json_t *record);
/** @param rest  members of the object besides the records, or NULL */
void sa_print_end(struct sa_printer *p, const json_t *rest);

#endif
