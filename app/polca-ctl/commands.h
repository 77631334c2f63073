/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_COMMANDS_H
#define POLCA_CTL_COMMANDS_H

/**
 * @file
 * Commands that make several calls, or print their result in their own format. Their help and
 * completion are derived from the methods they call.
 */

#include <stdbool.h>

#include <jansson.h>

#include "connection.h"
#include "report.h"

/**
 * Add the commands to the method table. Their rows have a member "command": the method they call.
 */
void commands_add(json_t *methods);

/**
 * True if the method is a command of this file or has its own function here; other methods are
 * called once and their result is printed as a table.
 */
bool commands_own(const json_t *method);
/** @return the exit status */
int commands_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

#endif
