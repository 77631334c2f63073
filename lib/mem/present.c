/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "mem/backing.h"

#define PRESENT_STEP 4096 /* pages asked for at a time */

#define PRESENT_TRIES 8 /* a page that was read may leave memory again, if that is scarce */

static bool
page_in_memory(void *page, size_t bytes)
{
	unsigned char present;

	return mincore(page, bytes, &present) == 0 && (present & 1) != 0;
}

/*
 * Of a page that is swapped out, mincore() says the same as of a hole. A read tells them apart: it
 * brings the one into memory, and makes nothing of the other.
 */
static bool
page_was_swapped(int fd, uint64_t offset, void *page, size_t bytes)
{
	unsigned int i;
	char byte;

	for (i = 0; i < PRESENT_TRIES; i++)
		if (pread(fd, &byte, 1, (off_t)offset) == 1 && page_in_memory(page, bytes))
			return true;
	return false;
}

bool
present_pages(int fd, uint64_t offset, void *map, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = length / page, at, i, num;
	unsigned char present[PRESENT_STEP];

	for (at = 0; at < pages; at += num) {
		num = pages - at < PRESENT_STEP ? pages - at : PRESENT_STEP;
		if (mincore((char *)map + at * page, num * page, present) != 0)
			return false;
		for (i = at; i < at + num; i++)
			if ((present[i - at] & 1) == 0 &&
				!page_was_swapped(fd, offset + i * page, (char *)map + i * page,
					page))
				return false;
	}
	return true;
}
