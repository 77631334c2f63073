/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_SA_SEVERAL_H
#define POLCA_CTL_SA_SEVERAL_H

/**
 * @file
 * One question to several subnet administrators that serve the same database, as the appliances of
 * a fleet do: another one is asked if the first has failed, or does not answer soon. The first
 * answer counts.
 */

#include <signal.h>
#include <stdbool.h>

#include <jansson.h>

#include "connection.h"
#include "report.h"

struct sa_several {
	const struct options *o;
	struct connection *c;
	const char *words; /**< the command */
	const volatile sig_atomic_t *stop; /**< a signal to end the program, or 0 */
	/**
	 * A change is asked of one SA at a time, and of all with the same TID: a fleet makes it
	 * once. Two answers to a question do no harm.
	 */
	bool change;
};

/**
 * Ask the SA of @p params ("to"), or else those of "or", addresses with commas between them,
 * "hedge_ms" after each other. Both members are removed from @p params.
 *
 * @param number  set to the query that has an answer; the others are cancelled
 * @return 0, or an exit status: an error message was printed
 */
int sa_ask_several(const struct sa_several *s, json_t *params, json_int_t *number);

#endif
