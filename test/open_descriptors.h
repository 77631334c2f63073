/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_OPEN_DESCRIPTORS_H
#define TEST_OPEN_DESCRIPTORS_H

/* Tests compare the number before and after: none may be left. */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static inline unsigned int
open_descriptors(void)
{
	DIR *fds = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(fds);
	while (readdir(fds) != NULL)
		n++;
	closedir(fds);
	return n;
}

#endif
