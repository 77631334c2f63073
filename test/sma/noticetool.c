/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Print the packets of some traps, from the LRH on, in hex: test_notice_tshark.py dissects them. */

#include <stdio.h>
#include <string.h>

#include "trap_fixture.h"

static void
raise(struct bench *b, const uint8_t *notice)
{
	assert_non_null(sma_trap_raise(b->p, notice, b->now));
}

static void
raise_mkey(struct bench *b)
{
	uint8_t mad[MAD_LEN] = { 1, 0x81, 1, 0x02, [6] = 4, [7] = 3 }, notice[SMA_DATA_LEN];
	struct smp smp = {
		.mad = mad,
		.method = 0x02,
		.attribute = 0x0015,
		.modifier = 0x01020304,
	};

	put_be64(mad + 24, UINT64_C(0x8899AABBCCDDEEFF));
	put_be16(mad + 32, 0xFFFE);
	memcpy(mad + 192, "\0\x11\x22\x33", 4);
	sma_notice_mkey(b->p, &smp, notice);
	raise(b, notice);
}

int
main(void)
{
	static const struct sma_bad_key key = {
		.key = 0x8001,
		.lid1 = 0x0A0B,
		.lid2 = 0x0C0D,
		.sl = 0xD,
		.qp1 = 0x123456,
		.qp2 = 0xABCDEF,
		.gid1.raw = { 0xFE, 0x80, [15] = 1 },
		.gid2.raw = { 0xFE, 0x80, [15] = 2 },
	};
	uint8_t notice[SMA_DATA_LEN];
	struct bench *b;
	unsigned int i;
	uint32_t at;

	bench_setup((void **)&b);
	bench_port_info(b->p, LID, 0x1234);
	bench_port_info(b->p, MASTER_SM_LID, 0x0567);
	put_be32(b->p->info + 20, 0xA1B2C3D4);
	sma_notice_change(b->p, 0x0005, notice);
	raise(b, notice);
	raise_mkey(b);
	sma_notice_key(b->p, &key, notice);
	raise(b, notice);
	bench_pass(b, 1);
	for (i = 0; i < b->num_sent; i++) {
		for (at = 14; at < b->sent[i].len; at++)
			printf("%02x", b->sent[i].frame[at]);
		printf("\n");
	}
	bench_teardown((void **)&b);
	return 0;
}
