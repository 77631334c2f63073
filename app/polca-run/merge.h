/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_RUN_MERGE_H
#define POLCA_RUN_MERGE_H

#include <stdbool.h>
#include <stddef.h>

/** libibverbs asks the kernel for devices, by a socket, and reads no directory. */
bool kernel_has_rdma(void);

/**
 * Make a tree with polca's devices and the kernel's, or bring it up to date.
 *
 * @param tree polca's own
 * @param[out] merged its path
 * @return 0 or a negative errno
 */
int merge_trees(const char *tree, char *merged, size_t size);

#endif
