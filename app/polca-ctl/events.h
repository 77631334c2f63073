/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_EVENTS_H
#define POLCA_CTL_EVENTS_H

/** @file The command events, which may follow them. */

#include <jansson.h>

#include "connection.h"
#include "report.h"

/** @return the exit status */
int events_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

#endif
