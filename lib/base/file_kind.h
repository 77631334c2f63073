/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_FILE_KIND_H
#define BASE_FILE_KIND_H

/**
 * @file
 * What a path names, in words, for messages about a path that names no regular file.
 */

#include <sys/stat.h>

/** "a directory", for example, of the st_mode of stat(). */
static inline const char *
file_kind(mode_t mode)
{
	return S_ISREG(mode)                     ? "a regular file"
		: S_ISDIR(mode)                  ? "a directory"
		: S_ISFIFO(mode)                 ? "a pipe"
		: S_ISSOCK(mode)                 ? "a socket"
		: S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
						 : "no file";
}

#endif
