/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_APART_H
#define BASE_APART_H

/**
 * @file
 * Work that can wait for as long as a stranger likes, as for the file system of a descriptor that
 * it has passed: a thread does it that nobody waits for.
 */

#include <stdbool.h>

struct apart;

/** @return NULL: there is no memory for a thread, and the work is not begun */
struct apart *apart_begin(void (*work)(void *arg), void *arg);
/** True if the work is done; then it is freed. */
bool apart_ended(struct apart *a);
/**
 * Interrupt what the thread waits for, if the kernel allows that, as it does with a socket that
 * lingers. It may begin to wait just after: repeat it until the work is done.
 */
void apart_hurry(const struct apart *a);
/** Nobody will ask any more: it is freed when the work is done. */
void apart_forget(struct apart *a);

#endif
