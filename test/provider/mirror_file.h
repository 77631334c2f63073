/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MIRROR_FILE_H
#define MIRROR_FILE_H

/** @file A mirror for a test, and what the tests look at it for. Include after cmocka.h. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

static int file = -1;

static inline int
mirror_setup(void **state)
{
	(void)state;
	file = memfd_create("mirror", MFD_CLOEXEC);
	return file >= 0 && ftruncate(file, (off_t)1 << 47) == 0 ? 0 : -1;
}

static inline int
mirror_teardown(void **state)
{
	(void)state;
	return close(file);
}

static inline uint8_t *
make_anonymous(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* As polca maps it. */
static inline uint8_t *
map_mirror(const uint8_t *of, size_t bytes)
{
	uint8_t *p =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)(uintptr_t)of);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* True if the file has a page for this address. */
static inline bool
has_page(const uint8_t *p)
{
	off_t at = (off_t)((uintptr_t)p & ~(PAGE - 1));

	return lseek(file, at, SEEK_DATA) == at;
}

#endif
