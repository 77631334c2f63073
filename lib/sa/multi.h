/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_MULTI_H
#define SA_MULTI_H

/**
 * @file
 * GetMulti(MultiPathRecord): paths from any of some GIDs to any of others (sa-multipacket B7, B10).
 *
 * NumbPath bounds all paths together, as opensm has it. Pairs are taken diagonally, and each gets an
 * even share of what is left: so two paths between two ports and two others have no end in common,
 * which is what Independence asks for (UNCONFIRMED: it changes nothing else).
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/path.h"

/** On its way, from pair to pair. */
struct multi_query {
	struct mad_body *body; /**< the request, or NULL: it is in .data */
	uint8_t data[SA2_AREA];
	uint8_t tmpl[PR_LEN]; /**< of the PathRecords, but for their GIDs */
	uint64_t mask;
	uint16_t sgids;
	uint16_t dgids;
	uint16_t numb_path;
	uint16_t left; /**< of them */
	uint32_t at; /**< pair */
	bool begun; /**< it is under way */
	uint32_t generation; /**< of the fabric */
};

/**
 * Understand a request.
 *
 * @param body  in many packets, else NULL and @p data has SA2_AREA bytes. It must live as long
 * @param mask  of MultiPathRecord
 * @return a MAD status
 */
uint16_t multi_init(struct multi_query *m, struct mad_body *body, const uint8_t *data,
	uint64_t mask);
/** From the beginning. */
void multi_rewind(struct multi_query *m);
/**
 * Go on, as path_query_step() does.
 *
 * @param p  the pair under way; its .common holds for all paths
 * @retval -EPROTO  *status says why
 */
int multi_step(struct multi_query *m, struct path_query *p, const struct sa_config *config,
	struct fabric *f, const struct requester *who, unsigned int *budget, path_sink *sink,
	void *arg, uint16_t *status);

#endif
