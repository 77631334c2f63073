/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_CM_VECTORS_H
#define TEST_CM_VECTORS_H

/*
 * One example of each message, with a different value in each field, and its bytes by cm.md 2: hex
 * from the end of the MAD header to the private data, which fill the rest.
 */

#include "cm/message.h"

struct cm_vector {
	struct cm_msg msg; /* without private data */
	const char *hex;
	/* mask of the fields: a message of ones, decoded and encoded; information lengths are 72 */
	const char *ones;
};
extern const struct cm_vector cm_vectors[CM_MESSAGES];

/* IP CM headers (cm.md 7, 8) */
struct cm_rdma_vector {
	struct cm_rdma rdma;
	const char *hex;
};
extern const struct cm_rdma_vector cm_rdma_v4, cm_rdma_v6;

/* Encode a vector with private data 1, 2, 3 ... @return offset of the private data in the MAD */
unsigned int cm_vector_mad(const struct cm_vector *v, uint8_t mad[MAD_LEN]);

#endif
