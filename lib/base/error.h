/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/**
 * @file
 * Why a control-plane call failed, in words for its user: which parameter, what was got, what is
 * allowed. Never used on the fast path.
 */

struct error {
	char text[256]; /**< empty when nothing was said */
};

/**
 * Say why, and hand the error on: `return error_set(err, EINVAL, "path_mtu: got %u, ...", mtu);`
 *
 * @param err   may be NULL: then only the number is kept
 * @param eno   positive errno value
 * @return -eno
 */
int error_set(struct error *err, int eno, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
