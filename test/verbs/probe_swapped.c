/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Registered memory that is swapped out: a part of it is registered again, with all its bytes. The
 * test has the kernel swap this program's pages out, and tells it to look, until all are.
 */

#include <sys/mman.h>

#include "probe.h"

#define PAGE  ((size_t)4096)
#define PAGES (SIDE_BYTES / PAGE)

static uint8_t
byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / PAGE);
}

static void
expect_bytes(const uint8_t *memory)
{
	for (size_t i = 0; i < SIDE_BYTES; i++)
		expect(memory[i] == byte_at(i));
}

static bool
all_swapped_out(uint8_t *memory)
{
	unsigned char present[PAGES];
	bool all = true;

	expect(mincore(memory, SIDE_BYTES, present) == 0);
	for (size_t i = 0; i < PAGES; i++)
		all = all && (present[i] & 1) == 0;
	return all;
}

int
probe_swapped(int argc, char **argv)
{
	struct ibv_mr *part;
	struct side a;

	(void)argc;
	(void)argv;
	side_make(&a, ibv_open_device(find_device("polca0")), NULL);
	for (size_t i = 0; i < SIDE_BYTES; i++)
		a.memory[i] = byte_at(i);
	probe_say("registered");
	for (probe_hear("look"); !all_swapped_out(a.memory); probe_hear("look"))
		probe_say("in memory");
	probe_say("swapped out");
	part = ibv_reg_mr(a.pd, a.memory + PAGE, SIDE_BYTES - 2 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	expect(part != NULL);
	expect_bytes(a.memory);
	expect(ibv_dereg_mr(part) == 0);
	probe_side_destroy(&a);
	expect_bytes(a.memory);
	return 0;
}
