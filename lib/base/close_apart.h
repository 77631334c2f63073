/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_CLOSE_APART_H
#define BASE_CLOSE_APART_H

/**
 * @file
 * To close a descriptor that a stranger has passed can wait for as long as the stranger likes: a
 * file on a file system that it serves (FUSE) waits for its answer to FLUSH, a socket with
 * SO_LINGER for its peer. So a thread does it that nobody waits for.
 */

#include "base/apart.h"

/** True if the file is in memory: a memfd, or on tmpfs or hugetlbfs. Asks no file system. */
bool fd_in_memory(int fd);
/** Close a descriptor that a stranger has passed, on a thread of its own unless it is in memory. */
void close_passed(int fd);
/**
 * Begin to close descriptors, in this order.
 *
 * @return NULL: they are closed, as there is no memory for a thread
 */
struct apart *close_apart_begin(const int *fds, unsigned int num);

#endif
