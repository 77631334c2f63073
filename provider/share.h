/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_SHARE_H
#define PROVIDER_SHARE_H

/**
 * @file
 * Memory that the program shares already, by a file: it does not move. Polca maps the same file,
 * through a descriptor that the program can open for writing.
 */

#include <stddef.h>
#include <stdint.h>

/**
 * Find the file that stands at these addresses.
 *
 * @param mirror_fd  the mirror, which is no such file
 * @param offset     of the first byte, in the file
 * @return a descriptor, for the caller to close; -ENOENT: it is not shared memory; -EACCES: it is,
 *         and its pages are there, but the program cannot open its file; other negative errno: it
 *         cannot be shared with polca, and a line on standard error says why
 */
int share_open(int mirror_fd, uintptr_t addr, size_t length, uint64_t *offset);

#endif
