/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_LIMIT_LINES_H
#define CTL_LIMIT_LINES_H

/**
 * @file
 * Log that a client of a socket ran into a limit: who, and which. A client that asks again and
 * again does not fill the log: beyond a rate lines are only counted. For the control thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/token_bucket.h"

struct limit_lines {
	struct token_bucket bucket; /**< in ms; zeroed: 20 lines at once, then one a second */
	uint64_t suppressed; /**< lines since the last one that was logged */
};

/** The clock of the control thread's sockets, in milliseconds. */
uint64_t monotonic_ms(void);

#define CALLER_TEXT_MAX 96
/** The other end of a Unix socket: the user by name and number, and the process. @return buf */
const char *caller_text(int fd, char *buf, size_t size);

/**
 * Log a warning: "MODULE: limit reached: WHAT by CALLER: TEXT".
 *
 * @param module  the name of the log type, without "polca."
 * @param fd      Unix socket of the client that ran into the limit; -1: the client is unknown
 * @param now     monotonic_ms()
 */
void limit_lines_log(struct limit_lines *lines, int logtype, const char *module, int fd,
	const char *what, const char *text, uint64_t now);

#endif
