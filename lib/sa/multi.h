/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_MULTI_H
#define SA_MULTI_H

/**
 * @file
 * GetMulti(MultiPathRecord): paths from any of some GIDs to any of others (sa-multipacket B7, B10).
 *
 * NumbPath limits all paths together, as in opensm. Pairs are taken along diagonals, and each gets
 * an even share of the remaining paths. So two paths between two sources and two destinations share
 * no end, which is what Independence asks for (UNCONFIRMED; we use it for nothing else).
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/path.h"

/** A query in progress. */
struct multi_query {
	struct mad_body *body; /**< the request; NULL: it is in .data */
	uint8_t data[SA2_AREA];
	uint8_t tmpl[PR_LEN]; /**< PathRecord template; the GIDs are set for each pair */
	uint64_t mask;
	uint16_t sgids;
	uint16_t dgids;
	uint16_t numb_path;
	uint16_t left; /**< paths still allowed */
	uint32_t at; /**< current pair */
	bool begun; /**< the current pair is in progress */
	uint32_t generation; /**< fabric_generation() at the start */
};

/**
 * Decode a request.
 *
 * @param body  a multi-packet request, which must outlive the query; NULL: @p data, SA2_AREA bytes
 * @param mask  MultiPathRecord's mask
 * @return a MAD status
 */
uint16_t multi_init(struct multi_query *m, struct mad_body *body, const uint8_t *data,
	uint64_t mask);
/** Start again from the first pair. */
void multi_rewind(struct multi_query *m);
/**
 * Continue, like path_query_step().
 *
 * @param p  the current pair; its .common applies to all paths
 * @retval -EPROTO  *status tells why
 */
int multi_step(struct multi_query *m, struct path_query *p, const struct sa_config *config,
	struct fabric *f, const struct requester *who, unsigned int *budget, path_sink *sink,
	void *arg, uint16_t *status);

#endif
