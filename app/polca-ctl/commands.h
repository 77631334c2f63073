/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_COMMANDS_H
#define POLCA_CTL_COMMANDS_H

/**
 * @file
 * Commands that are more than one call, or print a result in a way of their own. Their help and
 * completion come from the methods under them.
 */

#include <stdbool.h>

#include <jansson.h>

#include "connection.h"
#include "report.h"

/** Add them to the method table, as methods that have a "command" member: the method under each. */
void commands_add(json_t *methods);

/** Is it one of these, or is it called and its result printed as a table? */
bool commands_own(const json_t *method);
/** @return the exit status */
int commands_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

#endif
