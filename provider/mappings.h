/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_MAPPINGS_H
#define PROVIDER_MAPPINGS_H

/**
 * @file
 * The kernel's list of this process's mappings: what stands at an address. Linux 6.11 answers for
 * one address; before, the list is read as text.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct mapping {
	uintptr_t from, to;
	uint64_t offset; /**< of from, in the file */
	uint64_t page_bytes; /**< 0: not known */
	uint64_t inode; /**< 0: anonymous memory */
	dev_t device;
	int protection; /**< PROT_* */
	bool shared;
	char name[PATH_MAX]; /**< path, "[heap]", ..., "" */
};

struct mappings {
	int fd;
	FILE *text; /**< NULL: the kernel answers for an address */
	bool keep; /**< .fd stays open */
};

/** @return errno value */
int mappings_open(struct mappings *l);
/**
 * Find the first mapping that ends after an address. Ask with ascending addresses.
 *
 * @return false: there is none
 */
bool mappings_next(struct mappings *l, uintptr_t at, struct mapping *m);
void mappings_close(struct mappings *l);
/** True if it has pages of hugetlbfs. */
bool mapping_is_huge(const struct mapping *m);
/** In a forked child: close the list of its parent, which may be open still. */
void mappings_forget_parent(void);
/** For tests: read the list as text, as on an older kernel. */
void mappings_read_text(bool on);

#endif
