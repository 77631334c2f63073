/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_FABRIC_H
#define SA_FABRIC_H

/**
 * @file
 * A worker's cache of the fabric, so that a path needs no search in the store: endports by LID and
 * GUID, filled as they are asked for, and the graph of switches. Both follow the newest version and
 * are rebuilt only when a table behind them has changed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sa/graph.h"
#include "sa/port_view.h"
#include "sa/sa.h"
#include "sa/walk.h"

struct fabric;

struct fabric *fabric_create(const struct sa_config *config, struct store_reader *reader);
void fabric_destroy(struct fabric *f);

/** Switch to the newest version; call first in every burst. */
void fabric_sync(struct fabric *f);
const struct store_version *fabric_version(const struct fabric *f);
/** Increases whenever endports or links may have changed. */
uint32_t fabric_generation(const struct fabric *f);

/** Find an endport; NULL: none. Valid until the next call. */
const struct port_view *fabric_lid(struct fabric *f, uint16_t lid);
const struct port_view *fabric_guid(struct fabric *f, uint64_t guid);
const struct port_view *fabric_gid(struct fabric *f, const uint8_t *gid);

/** True if the graph is current; otherwise continue building it. @retval false  call again later */
bool fabric_ready(struct fabric *f, unsigned int *budget);
/** Nobody waits for the graph: abandon a build, so that it holds no version. */
void fabric_pause(struct fabric *f);
/**
 * Compute the route from a port to a LID of another port: by the forwarding tables, or, if the
 * store lacks a table of a switch on the way, the shortest one over the links.
 *
 * @retval 0, -ENETUNREACH; -ENOSPC: the fabric is larger than the graph
 */
int fabric_route(struct fabric *f, const struct port_view *a, const struct port_view *b,
	uint16_t dlid, struct walk *w);
/** Links examined since the last call. */
unsigned int fabric_work(struct fabric *f);

struct fabric_counts {
	uint64_t walked; /**< routes by forwarding tables */
	uint64_t searched; /**< routes by search, because tables were missing */
};
const struct fabric_counts *fabric_counts(const struct fabric *f);

#endif
