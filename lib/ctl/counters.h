/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_COUNTERS_H
#define CTL_COUNTERS_H

/**
 * @file
 * Walks over counters by name, so that stats_get and the telemetry socket show the same ones.
 */

#include "base/verdict.h"
#include "engine/engine.h"
#include "engine/verbs_cm.h"

/** Called once per counter. */
typedef void (*counter_fn)(void *arg, const char *name, uint64_t value);

/** Those of a port that are no verdicts: rx_packets, ... */
void counters_port(const struct link_counters *c, counter_fn fn, void *arg);
/** Verdicts of one kind, or of both (-1). */
void counters_verdicts(const struct link_counters *c, int kind, counter_fn fn, void *arg);
void counters_mad(const struct mad_counters *c, counter_fn fn, void *arg);
void counters_sa(const struct sa_counters *c, counter_fn fn, void *arg);
void counters_sma(const struct sma_counters *c, counter_fn fn, void *arg);
void counters_live(const struct live_counters *c, counter_fn fn, void *arg);
/** Messages by name, and REJ reasons by name where they are not 0. */
void counters_cm(const struct cm_counters *c, counter_fn fn, void *arg);
/** The names of all of them, with what they mean. */
void counters_cm_help(void (*fn)(void *arg, const char *name, const char *help), void *arg);
void counters_svc(const struct svc_counters *c, counter_fn fn, void *arg);
void counters_rc(const struct rc_counters *c, counter_fn fn, void *arg);

#endif
