/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_LIMIT_PEER_H
#define BASE_LIMIT_PEER_H

/**
 * @file
 * Whom a limit affected first since the control thread logged it. A worker notes an address when it
 * counts that a limit was reached; while the control thread has not taken it, later ones are not
 * noted. One writer, one reader, no lock.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LIMIT_PEER_LEN 16 /* a GID */

struct limit_peer {
	uint8_t addr[LIMIT_PEER_LEN];
	bool noted; /* the worker sets it, the control thread clears it */
};

/** Worker: the limit affected the peer with this GID. */
static inline void
limit_peer_note(struct limit_peer *p, const uint8_t *addr)
{
	if (__atomic_load_n(&p->noted, __ATOMIC_ACQUIRE))
		return;
	memcpy(p->addr, addr, LIMIT_PEER_LEN);
	__atomic_store_n(&p->noted, true, __ATOMIC_RELEASE);
}

/** Control thread. @return false: no address was noted since the last call */
static inline bool
limit_peer_take(struct limit_peer *p, uint8_t *addr)
{
	if (!__atomic_load_n(&p->noted, __ATOMIC_ACQUIRE))
		return false;
	memcpy(addr, p->addr, LIMIT_PEER_LEN);
	__atomic_store_n(&p->noted, false, __ATOMIC_RELEASE);
	return true;
}

#endif
