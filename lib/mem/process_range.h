/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_PROCESS_RANGE_H
#define MEM_PROCESS_RANGE_H

/**
 * @file
 * Addresses of another process at which a file in memory is mapped, shared and writable: the file
 * is opened for reading and writing, also if it has no path and no descriptor.
 *
 * The process is not trusted. It may change its mappings at any time, run another program, or end;
 * and each call can wait for as long as it likes, so no thread that others wait for may make it.
 * Whatever it does, what is opened is a regular file in memory that belongs to its user, so that it
 * was never kept from it. And the process has it mapped, shared and writable, after it was opened:
 *
 * - process_range_find() opens the list of mappings, which stays that of one address space, then
 *   sees that the process is the user's own and hides nothing, and only then reads the list: an
 *   address space that is gone by then has an empty list.
 * - process_range_open() opens what is mapped.
 * - process_range_confirm() reads the same list again, and compares it with the open file.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/** A line of the list. */
struct process_mapping {
	uint64_t from, to, offset, inode;
	dev_t device;
	char perms[5];
};

struct process_range {
	int process; /**< directory of the process in /proc */
	int maps; /**< its list of mappings */
	uid_t uid; /**< its user */
	uint64_t addr, length;
	struct process_mapping first; /**< that has .addr */
};

/** The mappings that a range may lie in. */
#define PROCESS_RANGE_MAPPINGS 16

/** True if this thread may raise the capabilities that it takes; else @p err says which way. */
bool process_range_permitted(struct error *err);
/** Open the directory of a process in /proc. It stays that of this process. @return -errno */
int process_directory_open(pid_t pid);

/** @param uid  whose process it must be. @return 0, then process_range_close() is due; -errno */
int process_range_find(struct process_range *r, int process, uid_t uid, uint64_t addr,
	uint64_t length, struct error *err);
/** @return a descriptor, or -errno */
int process_range_open(const struct process_range *r, struct error *err);
int process_range_confirm(const struct process_range *r, int fd, struct error *err);
void process_range_close(const struct process_range *r);

/** All of it, with the capabilities. @return a descriptor, and *offset in its file; or -errno */
int process_range_file(int process, uid_t uid, uint64_t addr, uint64_t length, uint64_t *offset,
	struct error *err);

#endif
