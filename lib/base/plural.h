/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_PLURAL_H
#define BASE_PLURAL_H

/**
 * @file
 * The ending of a noun behind a number: printf("%u queue pair%s", n, plural(n)).
 */

#include <stdint.h>

/** "" for one, "s" for any other number. */
static inline const char *
plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

#endif
