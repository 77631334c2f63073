/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_FAULT_H
#define BASE_FAULT_H

/**
 * @file
 * Faults (SIGBUS, SIGSEGV) of memory that another process can change or take away: a file whose
 * owner shortens it, a ring that a memif peer writes. Modules with such memory ask to see a fault
 * before it ends the process.
 */

#include <stdbool.h>

struct fault {
	int sig; /**< SIGBUS or SIGSEGV */
	void *addr; /**< the address that was touched */
	const void *ip; /**< the instruction that touched it */
};

/**
 * Called on the thread that faulted; async-signal-safe. It may leave by siglongjmp(),
 * which must restore the signal mask.
 *
 * @return true if the access shall be tried again
 */
typedef bool (*fault_handler)(const struct fault *f);

/**
 * Ask `h` at each fault, after those that were added before it. If all return false, the former
 * action of the signal follows: a core dump, or a sanitizer's report. Up to four. A repeated
 * call only makes sure that nobody else took the signals. For the control thread, and for good.
 */
void fault_add(fault_handler h);

/** Machine code of a loaded program or library */
struct code_range {
	const void *from, *to; /**< [from, to) */
};

/** The code of the first object whose file name contains `name`; empty: none is loaded. */
struct code_range code_of_object(const char *name);

#endif
