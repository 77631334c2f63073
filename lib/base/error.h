/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/**
 * @file
 * Why a control-plane call failed, in words for its user: the parameter, the value received and the
 * values allowed. Never used on the fast path.
 */

#include <stdbool.h>

struct error {
	char text[1024]; /**< empty if no reason was given */
	bool limit; /**< with a text: a limit of the configuration or of Polca was reached */
};

/**
 * Set the text (bytes that are not UTF-8 become "?") and return the error:
 * `return error_set(err, EINVAL, "path_mtu: got %u, ...", mtu);`
 *
 * @param err   may be NULL: only the number is returned
 * @param eno   positive errno value
 * @return -eno
 */
int error_set(struct error *err, int eno, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** The same, if a limit was reached; the text names the option that changes it. It is logged. */
int error_set_limit(struct error *err, int eno, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
