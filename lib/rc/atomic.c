/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "rc/responder.h"

/*
 * An IBA Atomic is one CPU atomic: it excludes Atomics that other workers execute for other QPs,
 * and the atomics of local threads on the same memory. Operand and result are host-endian there
 * (rc-transport 11).
 */

uint64_t
rc_atomic_cmp_swap(uint8_t *host, uint64_t compare, uint64_t swap)
{
	uint64_t original = compare;

	/* on failure the value that was found is stored in original */
	__atomic_compare_exchange_n((uint64_t *)(void *)host, &original, swap, false,
		__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return original;
}

uint64_t
rc_atomic_fetch_add(uint8_t *host, uint64_t add)
{
	return __atomic_fetch_add((uint64_t *)(void *)host, add, __ATOMIC_SEQ_CST);
}
