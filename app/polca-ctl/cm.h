/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_CM_H
#define POLCA_CTL_CM_H

/** @file "cm": connections and the services behind them, where they are more than a method. */

#include "connection.h"
#include "report.h"

/** @return the exit status: 4 where the peer says no, or nothing */
int cm_run(const struct options *o, struct connection *c, const json_t *command, json_t *params);

#define CM_SERVICES 1000 /* rows asked for in one call */

/** Replace "dest" by the method's own parameters, dgid or dlid. @return 0, or the exit status */
int cm_take_dest(json_t *params, const char *words);
/**
 * All services, however many pages they take.
 *
 * @param words  the command
 * @return 0: *result is service_list's with all rows; else the exit status
 */
int cm_all_services(const struct options *o, struct connection *c, const char *words,
	json_t **result);
/** cm_connect.c */
int cm_connect_run(const struct options *o, struct connection *c, json_t *params);

#endif
