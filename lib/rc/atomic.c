/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "rc/responder.h"

/*
 * The responder executes an IBA Atomic as one CPU atomic instruction, so it is atomic with respect
 * to other workers' Atomics and to atomics of local threads on the same memory. Operand and result
 * are in host byte order in memory (rc-transport 11).
 */

uint64_t
rc_atomic_cmp_swap(uint8_t *host, uint64_t compare, uint64_t swap)
{
	uint64_t original = compare;

	/* if the comparison fails, the builtin stores the value it found in original */
	__atomic_compare_exchange_n((uint64_t *)(void *)host, &original, swap, false,
		__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return original;
}

uint64_t
rc_atomic_fetch_add(uint8_t *host, uint64_t add)
{
	return __atomic_fetch_add((uint64_t *)(void *)host, add, __ATOMIC_SEQ_CST);
}
