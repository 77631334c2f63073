/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_GUARD_H
#define LINK_GUARD_H

/**
 * @file
 * In builds with AddressSanitizer, nobody may touch the bytes of an mbuf before and behind a
 * received frame, from its receipt until it is freed or becomes an answer. A parser that reads
 * behind a packet then ends the test. Other builds have nothing of this.
 */

#include <rte_mbuf.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LINK_GUARDED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define LINK_GUARDED 1
#endif

#ifdef LINK_GUARDED
#include <sanitizer/asan_interface.h>

/** Guard a frame of one segment that nobody else holds. */
static inline void
guard_received(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t *buf = m->buf_addr;

	if (m->nb_segs > 1 || rte_mbuf_refcnt_read(m) > 1 || !RTE_MBUF_DIRECT(m))
		return;
	ASAN_POISON_MEMORY_REGION(buf, m->buf_len);
	ASAN_UNPOISON_MEMORY_REGION(frame, m->data_len);
}

static inline void
guard_release(struct rte_mbuf *m)
{
	if (RTE_MBUF_DIRECT(m))
		ASAN_UNPOISON_MEMORY_REGION(m->buf_addr, m->buf_len);
}
#else
static inline void
guard_received(__rte_unused struct rte_mbuf *m)
{
}

static inline void
guard_release(__rte_unused struct rte_mbuf *m)
{
}
#endif

#endif
