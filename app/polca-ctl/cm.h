/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_CM_H
#define POLCA_CTL_CM_H

/**
 * @file
 * The "cm" commands that need more than one call of a method.
 */

#include "connection.h"
#include "report.h"

/** @return the exit status: 4 if the peer rejects or does not answer */
int cm_command_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

#define CM_SERVICES 1000 /* rows per service_list call */

/** Replace "dest" by the method's own parameters, dgid or dlid. @return 0, or the exit status */
int cm_take_dest(json_t *params, const char *words);
/**
 * Call service_list until all its pages are read.
 *
 * @param words  the command
 * @return 0: *result is the first reply with all rows; else the exit status
 */
int cm_all_services(const struct options *o, struct connection *c, const char *words,
	json_t **result);
/** cm_connect.c */
int cm_connect_run(const struct options *o, struct connection *c, json_t *params);

#endif
