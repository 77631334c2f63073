/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_SWEEP_H
#define SA_SWEEP_H

/**
 * @file
 * A live subnet, read by subnet management packets along directed routes, as records: nodes, ports,
 * links, switches and their forwarding tables, SLtoVL and P_Key tables, GUIDs. Knows which packets to
 * send and what their answers mean; sending them is the caller's. It changes nothing in the subnet.
 *
 * Nodes without a LID (no subnet manager has been there) are walked through and give no records.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "sa/import.h"

#define SWEEP_HOPS_MAX 63
#define SWEEP_DATA     64 /* bytes of an attribute */

/** A Get to be sent. */
struct sweep_request {
	uint16_t attribute;
	uint32_t modifier;
	uint8_t hops;
	uint8_t port[SWEEP_HOPS_MAX + 1]; /**< to leave by, from [1] on */
	/* the sweep's own */
	uint32_t node; /* that is asked; of NodeInfo the one before it */
	uint8_t via; /* port of that one; 0: ours, the first */
};

struct sweep_counts {
	uint32_t nodes;
	uint32_t switches;
	uint32_t links; /**< both ways of a cable count */
	uint32_t asked;
	uint32_t unanswered;
	uint32_t without_lid; /**< endports */
};

struct sweep;

struct sweep *sweep_create(const struct allocator *alloc);
void sweep_destroy(struct sweep *s);
/** The next Get. @retval false  none, until an answer leads on; if none is under way the end is reached */
bool sweep_next(struct sweep *s, struct sweep_request *r);
/** @param data  SWEEP_DATA bytes; NULL: nobody answered, or with a status */
void sweep_answer(struct sweep *s, const struct sweep_request *r, const uint8_t *data);
/** Why it cannot go on: -ENOMEM; 0: it can. */
int sweep_error(const struct sweep *s);
void sweep_counts(const struct sweep *s, struct sweep_counts *c);
/** All records, once the end is reached. @return what the sink said */
int sweep_records(struct sweep *s, const struct sa_import_sink *sink);

#endif
