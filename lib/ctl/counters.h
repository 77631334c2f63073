/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_COUNTERS_H
#define CTL_COUNTERS_H

/**
 * @file
 * Walks over counters by name, so that stats_get, the metrics and the telemetry socket show the
 * same ones. Counters NULL: the names and helps, with values of 0.
 */

#include "base/verdict.h"
#include "engine/clients_info.h"
#include "engine/engine.h"

/** Called once per counter; the texts may be gone afterwards. */
typedef void (*counter_fn)(void *arg, const char *name, const char *help, uint64_t value);

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
void counters_svc(const struct svc_counters *c, counter_fn fn, void *arg);
void counters_rc(const struct rc_counters *c, counter_fn fn, void *arg);
void counters_clients(const struct clients_counters *c, counter_fn fn, void *arg);

enum counter_set {
	COUNTERS_PORT, /**< those that are no verdicts */
	COUNTERS_SERVED,
	COUNTERS_DROPPED,
	COUNTERS_RC,
	COUNTERS_MAD,
	COUNTERS_SA,
	COUNTERS_SMA, /**< of a port, all workers together */
	COUNTERS_LIVE,
	COUNTERS_CM,
	COUNTERS_CLIENTS, /**< of the verbs socket, all workers together */
};
/**
 * Walk over the present counters of an engine.
 *
 * @param port  of PORT to DROPPED, RC (-1: of all) and SMA
 * @param worker  what it has counted; -1: all together
 */
void counters_read(struct engine *e, enum counter_set set, int port, int worker, counter_fn fn,
	void *arg);

#endif
