/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Print messages for test_message_tshark.py: each message of vectors.c, encoded with private data
 * 1, 2,
 * 3 ..., then the REQ with each RDMA-CM header. One MAD per line, in hex.
 */

#include <stdio.h>

#include "vectors.h"

static void
cmtool_print(const struct cm_msg *m)
{
	uint8_t mad[MAD_LEN];

	cm_msg_encode(m, mad);
	for (unsigned int i = 0; i < MAD_LEN; i++)
		printf("%02x", mad[i]);
	putchar('\n');
}

static void
print_with_header(const struct cm_rdma_vector *v)
{
	struct cm_msg m = cm_vectors[CM_REQ].msg;
	uint8_t private[CM_REQ_PRIVATE] = { [CM_RDMA_LEN] = 0x5A };

	cm_rdma_encode(&v->rdma, private);
	m.private_data = private;
	m.private_len = sizeof(private);
	cmtool_print(&m);
}

int
main(void)
{
	uint8_t private[CM_PRIVATE_MAX];

	for (unsigned int i = 0; i < sizeof(private); i++)
	private[i] = (uint8_t)(i + 1);
	for (unsigned int i = 0; i < CM_MESSAGES; i++) {
		struct cm_msg m = cm_vectors[i].msg;

		m.private_data = private;
		m.private_len = cm_msg_layouts[i].private_len;
		cmtool_print(&m);
	}
	print_with_header(&cm_rdma_v4);
	print_with_header(&cm_rdma_v6);
	return 0;
}
