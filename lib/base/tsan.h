/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_TSAN_H
#define BASE_TSAN_H

/*
 * What ThreadSanitizer cannot see. DPDK's shared libraries are built without it, so an order that
 * one of their functions guarantees between two threads is told with this pair: tsan_release(p) in
 * the first thread, then tsan_acquire(p) in the second. Other builds contain nothing of it.
 */

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define POLCA_TSAN
#endif
#endif

#ifdef POLCA_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#endif

static inline void
tsan_acquire(void *p)
{
#ifdef POLCA_TSAN
	__tsan_acquire(p);
#else
	(void)p;
#endif
}

static inline void
tsan_release(void *p)
{
#ifdef POLCA_TSAN
	__tsan_release(p);
#else
	(void)p;
#endif
}

#endif
