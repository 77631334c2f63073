/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_COMMON_CASE_H
#define BASE_COMMON_CASE_H

/**
 * @file
 * The switch that turns common cases off. Speed needs code of its own for the packets and work
 * requests that occur most; the general case must give the same results for them. Builds with
 * RTE_ENABLE_ASSERT (-Dchecks=true, debug and sanitized builds) can run the general case only, so
 * that tests and the simulation compare both. Other builds contain no switch.
 *
 * docs/conformance.md lists all common cases ("Pairs").
 */

#include <stdbool.h>

#ifdef RTE_ENABLE_ASSERT
/** Run the general case only; from the environment, POLCA_GENERAL_CASE=1. Set it at start only. */
extern bool general_case;
/** True if the common case may run: @p cond holds, and the switch is not off. */
#define COMMON_CASE(cond) (!general_case && (cond))
#else
#define general_case      false
#define COMMON_CASE(cond) (cond)
#endif

#endif
