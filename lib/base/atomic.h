/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

/** @file Fields that one thread writes while others read them. */

/** Each for itself: nothing else is ordered by it. */
#define RELAXED_GET(field)        __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define RELAXED_SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)
/** Who reads the new value also sees all that the writer has written before. */
#define ACQUIRE_GET(field)        __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define RELEASE_SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELEASE)

#endif
