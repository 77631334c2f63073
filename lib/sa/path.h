/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_PATH_H
#define SA_PATH_H

/**
 * @file
 * PathRecords, computed on request from endports, forwarding tables and partitions (sa-multipacket
 * B12).
 *
 * A path may be used with a smaller MTU and a lower rate than it has, so "less than" and "exactly"
 * are answered with the value asked for. Within a subnet the sender may choose FlowLabel, TClass
 * and HopLimit: the answer repeats what was asked. A path to a multicast group has the group's
 * values.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sa/access.h"
#include "sa/fabric.h"
#include "sa/layout.h"

/** A path, without the values that all paths of an answer share. */
struct path_entry {
	uint64_t sguid;
	uint64_t dguid;
	uint16_t slid;
	uint16_t dlid;
	uint16_t pkey;
	uint16_t mtu : 3; /* codes */
	uint16_t rate : 6;
	uint16_t sl : 4;
	uint16_t one_way : 1; /**< not reversible */
	uint16_t overlaps : 1; /**< shares a LID with a preferred path of the same pair */
	uint16_t loopback : 1; /**< from a port to itself */
};

struct path_common {
	uint64_t sprefix;
	uint64_t dprefix;
	uint32_t flow_hop; /**< FlowLabel and HopLimit */
	uint8_t tclass;
	uint8_t life;
	uint8_t loopback_life; /**< for paths from a port to itself */
};

enum path_end_kind {
	PATH_ANY, /**< every endport */
	PATH_PORT,
	PATH_GROUP, /**< destination: a multicast group */
};

struct path_end {
	enum path_end_kind kind;
	uint16_t lid; /**< LID asked for, 0: none */
	uint64_t guid; /**< GUID asked for, 0: use the port's own */
	struct port_view port;
};

/** A query for paths in progress. */
struct path_query {
	uint64_t mask;
	uint8_t tmpl[PR_LEN];
	struct path_common common;
	struct path_end src;
	struct path_end dst;
	struct path_entry group; /**< PATH_GROUP: the path without its source */
	const struct sa_config *config;
	unsigned int numb_path;
	bool none; /**< no path can match */
	bool no_loopback; /**< no path from a port to itself can match */
	bool no_other; /**< no other path can match */
	/* position among the endports, in the order of NodeRecords */
	uint32_t generation;
	uint64_t src_at;
	uint64_t dst_at;
	bool src_loaded;
};

/** Receives a path. @return 0: continue; else stop and return this */
typedef int path_sink(void *arg, const struct path_entry *e);

/**
 * Start a query from a template. Call fabric_sync() before.
 *
 * @return a MAD status
 */
uint16_t path_query_init(struct path_query *q, const struct sa_config *config, struct fabric *f,
	const uint8_t *tmpl, uint64_t mask, bool get);
/**
 * Continue.
 *
 * @retval 0  all paths have been given to the sink
 * @retval -EAGAIN  the budget is used up
 * @retval -ESTALE  the fabric has changed: start again with path_query_init()
 * @retval -ENOSPC  the fabric is too large for the limits
 * @return else what the sink returned
 */
int path_query_step(struct path_query *q, struct fabric *f, const struct requester *who,
	unsigned int *budget, path_sink *sink, void *arg);
void path_record(const struct path_common *c, const struct path_entry *e, uint8_t *rec);

#endif
