/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "rc/qp.h"

/*
 * The responder executes an IBA Atomic as one CPU atomic instruction, so it is atomic with respect
 * to other workers' Atomics and to atomics of local threads on the same memory. Operand and result
 * are in host byte order in memory (rc-transport 11).
 */

uint64_t
rc_atomic(uint8_t *host, uint8_t opcode, uint64_t compare, uint64_t swap_add)
{
	uint64_t *at = (uint64_t *)(void *)host, original = compare;

	if (opcode == RC_FETCH_ADD)
		return __atomic_fetch_add(at, swap_add, __ATOMIC_SEQ_CST);
	/* if the comparison fails, the builtin stores the value it found in original */
	__atomic_compare_exchange_n(at, &original, swap_add, false, __ATOMIC_SEQ_CST,
		__ATOMIC_SEQ_CST);
	return original;
}
