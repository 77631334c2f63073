/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_CHECK_H
#define BASE_CHECK_H

/**
 * @file
 * For the check.c of a folder: an invariant of an object that its flight recorder may follow.
 * Include it only within RTE_ENABLE_ASSERT: release builds check nothing.
 */

#include <stdio.h>

#include <rte_branch_prediction.h>
#include <rte_debug.h>

/**
 * End the program as RTE_ASSERT() does if the condition is false, but print first which object it
 * is and what it did last.
 *
 * @param what  the condition
 * @param say   void say(FILE *f, const struct OBJECT *object)
 */
#define CHECK_OF(what, say, object)                                                                \
	do {                                                                                       \
		if (unlikely(!(what))) {                                                           \
			say(stderr, object);                                                       \
			rte_panic("%s:%d: assert \"%s\" failed\n", __FILE__, __LINE__, #what);     \
		}                                                                                  \
	} while (0)

#endif
