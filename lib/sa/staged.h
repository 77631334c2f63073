/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_STAGED_H
#define SA_STAGED_H

/**
 * @file
 * An import, or a large Config, that reaches an appliance of a fleet which does not lead. It is
 * larger than a request, so the appliance stages its records in etcd, in parts. The request, a
 * change of kind WRITE_IMPORT or WRITE_CONFIG_STAGED (sa/write.h), names them; the leader reads
 * them and executes the request as one change.
 */

#include "sa/owned.h"
#include "sa/sa.h"
#include "sa/write.h"

#define STAGED_PART_MAX (512u << 10) /**< bytes; etcd takes requests of 1.5 MiB */
#define STAGED_HEAD_MAX 128 /**< bytes of the request's data */
#define STAGED_TEXT_MAX 160 /**< bytes of an answer's text, the NUL included */

/** The data of the request. */
struct staged_head {
	enum sa_replaced replace;
	char owner[OWNED_NAME_MAX]; /**< the appliance that has staged the parts */
	uint64_t id; /**< random: of this request */
	uint32_t parts;
	uint64_t len; /**< bytes of all parts */
	uint64_t sum; /**< of all bytes: fnv_add() */
};

/** @param bytes  STAGED_HEAD_MAX bytes. @return length */
size_t staged_put_head(const struct staged_head *h, uint8_t *bytes);
/** @retval -EBADMSG  it is none */
int staged_get_head(struct staged_head *h, const uint8_t *bytes, size_t len);

/**
 * Write as many records as a part takes.
 *
 * @param size  of the part: at least one record's, at most STAGED_PART_MAX
 * @param taken  set to their number, which is not 0
 * @return length of the part
 */
size_t staged_put_part(const struct sa_change *records, size_t n, uint8_t *bytes, size_t size,
	size_t *taken);

/** True if the request names parts. */
static inline bool
staged_is(const struct sa_write *w)
{
	return w->kind == WRITE_IMPORT || w->kind == WRITE_CONFIG_STAGED;
}

/** Set number, length and sum of the parts of a Config, which has records. */
void staged_count_config(const struct sa_write *w, struct staged_head *h);
/** Copy a part of a Config's records. @param bytes  STAGED_PART_MAX bytes. @return length */
size_t staged_config_part(const struct sa_write *w, uint32_t part, uint8_t *bytes);

#endif
