/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_FILE_KIND_H
#define BASE_FILE_KIND_H

/**
 * @file
 * What a file is, in words, for messages about one that is not regular.
 */

#include <fcntl.h>
#include <sys/stat.h>

/**
 * As fstat(), but of what this host knows already: a file system that a program serves (FUSE), or
 * another host, is not asked, and may have newer values. @return 0, or -1 and errno
 */
static inline int
file_known(int fd, struct statx *st)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, st);
}

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
