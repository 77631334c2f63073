/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Print how long parsing, building and each CRC kernel take: the best of several runs. The program
 * never fails, as times vary on a shared machine. Compare ratios within one run only.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sample.h"
#include "wire/crc32.h"

#define RUNS 7

static volatile uint32_t sink;

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* ns per call, the best of RUNS */
#define BEST(count, call)                                                                          \
	({                                                                                         \
		double best = 1e18, start;                                                         \
		int run, i;                                                                        \
                                                                                                   \
		for (run = 0; run < RUNS; run++) {                                                 \
			start = now_ns();                                                          \
			for (i = 0; i < (count); i++)                                              \
				call;                                                              \
			start = (now_ns() - start) / (count);                                      \
			best = start < best ? start : best;                                        \
		}                                                                                  \
		best;                                                                              \
	})

static void
crc_kernels(void)
{
	static const char *const names[] = { "portable", "pclmul", "vpclmul" };
	static const uint32_t sizes[] = { 16, 48, 64, 128, 256, 512, 1024, 4096 };
	static uint8_t data[4096];
	unsigned int k, s;

	printf("CRC-32, GB/s         ");
	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		printf("%8u", sizes[s]);
	printf("\n");
	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		if (crc32_use(names[k]) != 0)
			continue;
		printf("%-21s", names[k]);
		for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			printf("%8.1f",
				sizes[s] /
					BEST(50000,
						sink = crc_kernel->update(sink, data, sizes[s])));
		printf("\n");
	}
}

static void
packet(const char *what, uint8_t opcode, uint32_t payload_len)
{
	struct sample s;
	struct packet pkt;
	enum verdict why;
	uint8_t *bth = s.buf + PATH_HEADER_MAX;
	double parse, check, build, finish;
	uint32_t len;

	sample_make(&s, &sample_carriers[0], opcode, payload_len);
	len = s.l3_len - 28 - ICRC_LEN;
	parse = BEST(50000, sink = wire_parse(ENCAP_ROCEV2_IPV4, s.l3, s.l3_len, &pkt, &why));
	check = BEST(50000, sink = wire_crc_ok(&pkt, &why));
	build = BEST(50000, sink = wire_build(bth, &s.h));
	finish = BEST(50000, sink = path_finish(&s.path, bth, len, i));
	printf("%-21s%8.1f%8.1f%8.1f%8.1f\n", what, parse, check, build, finish);
}

int
main(void)
{
	crc_kernels();
	printf("ns per packet           parse   check   build  finish\n");
	packet("Acknowledge", RC_ACK, 0);
	packet("SEND Only 64", RC_SEND_ONLY, 64);
	packet("SEND Only 256", RC_SEND_ONLY, 256);
	packet("WRITE First 1024", RC_WRITE_FIRST, 1024);
	packet("WRITE First 4096", RC_WRITE_FIRST, 4096);
	return 0;
}
