/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_LOG_LEVEL_H
#define BASE_LOG_LEVEL_H

/**
 * @file
 * Log components and their levels. The configuration and the control socket accept the same names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_log.h>

#include "base/error.h"

/**
 * Rows of a table of names and values: DPDK's names, and syslog's where they differ. Readers ignore
 * case.
 */
/* clang-format off */
#define LOG_LEVEL_WORDS                                                                            \
	{ "emergency", RTE_LOG_EMERG }, { "emerg", RTE_LOG_EMERG }, { "alert", RTE_LOG_ALERT },    \
		{ "critical", RTE_LOG_CRIT }, { "crit", RTE_LOG_CRIT }, { "error", RTE_LOG_ERR },  \
		{ "err", RTE_LOG_ERR }, { "warning", RTE_LOG_WARNING },                            \
		{ "warn", RTE_LOG_WARNING }, { "notice", RTE_LOG_NOTICE },                        \
		{ "info", RTE_LOG_INFO }, { "debug", RTE_LOG_DEBUG }
/* clang-format on */

/** Called for each log component. @return false: stop */
typedef bool (*log_component_fn)(void *arg, const char *component, const char *level);
/** Call @p fn for each log component. Components of drivers exist only after rte_eal_init(). */
void log_components(log_component_fn fn, void *arg);

/**
 * Name of the component with DPDK's number @p type, "unknown" if there is none. Slow: it reads
 * DPDK's list.
 */
void log_component_name(uint32_t type, char *name, size_t size);

/**
 * Check that a shell pattern matches a component.
 *
 * @retval -EINVAL  it matches none; err lists the components of the same kind ("polca.", "lib.",
 * "pmd.") and does not
 *                  name the parameter
 */
int log_component_check(const char *pattern, struct error *err);

/**
 * Set the level of each component that a shell pattern matches.
 *
 * @retval -EINVAL  no component matches: see log_component_check()
 */
int log_level_set(const char *pattern, uint32_t level, struct error *err);

#endif
