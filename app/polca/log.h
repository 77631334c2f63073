/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_LOG_H
#define POLCA_LOG_H

/**
 * @file
 * Where the log goes and how its lines look. Everything goes to stderr, each message once: DPDK's
 * own copy to syslog is switched off. Messages of several lines become several lines of the log.
 */

#include <stdint.h>

#include "base/error.h"

/** How a line looks. */
enum log_format {
	LOG_PLAIN, /**< the text alone, for a file or a pipe */
	LOG_TIME, /**< local time and the text, for a terminal */
	LOG_JOURNAL, /**< "<4>text": the journal takes the priority from it (sd-daemon(3)) */
	LOG_JSON, /**< an object: time (UTC), level, component, text */
};

/**
 * Choose the format, before anything is logged.
 *
 * @param name  plain, time, journal or json; NULL: journal if stderr is the journal
 *   ($JOURNAL_STREAM), time if it is a terminal, else plain
 * @retval -EINVAL  another name
 */
int log_choose(const char *name, struct error *err);

/** Before rte_eal_init(): DPDK logs to stderr only, and not to syslog, too. */
void log_to_stderr_only(void);

/** After rte_eal_init(): take over DPDK's log, which is Polca's, too. */
void log_take_over(void);

/**
 * Log @p lines of this program itself, also before log_take_over().
 *
 * @param level  RTE_LOG_ERR: why polca cannot start or go on
 */
void log_say(uint32_t level, const char *lines);

#endif
