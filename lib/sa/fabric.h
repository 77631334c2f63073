/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_FABRIC_H
#define SA_FABRIC_H

/**
 * @file
 * A worker's picture of the fabric, so that a path costs no search in the store: endports by LID
 * and GUID as they are asked for, and the graph of switches. Both follow the newest version; each
 * is dropped only when a table it was made from has changed.
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

/** Look at the newest version: before the other functions, in every burst. */
void fabric_sync(struct fabric *f);
const struct store_version *fabric_version(const struct fabric *f);
/** Grows whenever endports or links may have changed. */
uint32_t fabric_generation(const struct fabric *f);

/** An endport, or NULL. Good until the next call. */
const struct port_view *fabric_lid(struct fabric *f, uint16_t lid);
const struct port_view *fabric_guid(struct fabric *f, uint64_t guid);
const struct port_view *fabric_gid(struct fabric *f, const uint8_t *gid);

/** Is the graph up to date? Else work on it. @retval false  go on later */
bool fabric_ready(struct fabric *f, unsigned int *budget);
/** Nobody waits for the graph any more: hold no version for what is half built. */
void fabric_pause(struct fabric *f);
/**
 * The way from a port to a LID of another: as the forwarding tables say, or, where a switch on it
 * has none in the store, the shortest one that the links allow.
 *
 * @retval 0, -ENETUNREACH, -ENOSPC  the fabric is larger than the graph
 */
int fabric_route(struct fabric *f, const struct port_view *a, const struct port_view *b,
	uint16_t dlid, struct walk *w);
/** Links looked at since the last call. */
unsigned int fabric_work(struct fabric *f);

struct fabric_counts {
	uint64_t walked; /**< routes by forwarding tables */
	uint64_t searched; /**< and for want of them by search */
};
const struct fabric_counts *fabric_counts(const struct fabric *f);

#endif
