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

#include <stdbool.h>
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

/**
 * Take over DPDK's log, which is Polca's, too, but write it in a form that keeps level and
 * component apart from the text: for eal_output.c, which holds it back while DPDK starts. The form
 * of a line is LOG_HELD, level, LOG_HELD_END, component, LOG_HELD_END, text.
 */
void log_hold(void);
#define LOG_HELD     '\x1e' /* ASCII's record separator */
#define LOG_HELD_END '\x1f' /* its unit separator */

/** Take over DPDK's log, with the chosen format. */
void log_take_over(void);

/** A line that was held back. */
struct log_held {
	uint32_t level;
	const char *component;
	const char *text;
};
/**
 * Read a line of the form of log_hold(); @p line is changed and must outlive @p held.
 *
 * @return false: it has another form, and .text is the line
 */
bool log_held_line(char *line, struct log_held *held);
/** Log it now. */
void log_say_held(const struct log_held *held);

/**
 * Log @p lines of this program itself, also before log_take_over().
 *
 * @param level  RTE_LOG_ERR: why polca cannot start or go on
 */
void log_say(uint32_t level, const char *lines);

#endif
