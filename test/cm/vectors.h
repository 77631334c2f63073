/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_CM_VECTORS_H
#define TEST_CM_VECTORS_H

/*
 * Each message once, with a value of its own in each field, and its bytes as cm.md 2 has them: hex
 * from behind the MAD header up to the private data, which fill the rest.
 */

#include "cm/message.h"

struct cm_vector {
	struct cm_msg msg; /* without private data */
	const char *hex;
	/*
	 * which bits are fields: what is left of a message of ones, its information lengths cut to
	 * 72
	 */
	const char *ones;
};
extern const struct cm_vector cm_vectors[CM_MESSAGES];

/* IP CM headers (cm.md 7, 8) */
struct cm_rdma_vector {
	struct cm_rdma rdma;
	const char *hex;
};
extern const struct cm_rdma_vector cm_rdma_v4, cm_rdma_v6;

/* A vector with private data 1, 2, 3 ... as a MAD. @return where private data begin in it */
unsigned int cm_vector_mad(const struct cm_vector *v, uint8_t mad[MAD_LEN]);

#endif
