/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_SWEEP_H
#define SA_SWEEP_H

/**
 * @file Read a live subnet by subnet management packets along directed routes, and make records of
 * it: nodes, ports, links, switches and their forwarding tables, SLtoVL and P_Key tables, GUIDs.
 * This code decides which packets to send and what the answers mean; the caller sends them. The
 * subnet is not changed.
 *
 * Nodes without a LID, which no subnet manager has configured, are searched but give no records.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "sa/import.h"

#define SWEEP_HOPS_MAX 63
#define SWEEP_DATA     64 /* length of an attribute */

/** A Get to send. */
struct sweep_request {
	uint16_t attribute;
	uint32_t modifier;
	uint8_t hops;
	uint8_t port[SWEEP_HOPS_MAX + 1]; /**< output ports of the route, from [1] on */
	/* private to the sweep */
	uint32_t node; /* the node asked; for NodeInfo the node before it */
	uint8_t via; /* output port of that node; 0: our own port is asked */
};

struct sweep_counts {
	uint32_t nodes;
	uint32_t switches;
	uint32_t links; /**< a cable counts twice, once per direction */
	uint32_t asked;
	uint32_t unanswered;
	uint32_t without_lid; /**< endports without a LID */
};

struct sweep;

struct sweep *sweep_create(const struct allocator *alloc);
void sweep_destroy(struct sweep *s);
/**
 * The next Get. @retval false  none until another answer arrives; if no request is in flight, the
 * sweep is complete
 */
bool sweep_next(struct sweep *s, struct sweep_request *r);
/** @param data  SWEEP_DATA bytes; NULL: no answer, or an answer with a status */
void sweep_answer(struct sweep *s, const struct sweep_request *r, const uint8_t *data);
/** @retval -ENOMEM  the sweep has failed; 0: no error */
int sweep_error(const struct sweep *s);
void sweep_counts(const struct sweep *s, struct sweep_counts *c);
/** Emit all records of a complete sweep. @return what the sink returned */
int sweep_records(struct sweep *s, const struct sa_import_sink *sink);

#endif
