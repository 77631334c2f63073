/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_CONFIG_H
#define POLCA_CTL_CONFIG_H

/**
 * @file
 * "config diff" and "config reload": a table of changes, or in words that there are none.
 */

#include "connection.h"
#include "report.h"

/** @return the exit status */
int config_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

#endif
