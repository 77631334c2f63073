/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_PAYLOAD_H
#define WIRE_PAYLOAD_H

/**
 * @file
 * Write a payload and its padding (rc-transport 9).
 */

#include <string.h>

#include "base/copy.h"
#include "wire/packet.h"

/** Write the zeros behind a payload, up to a multiple of four bytes. */
static inline void
put_padding(uint8_t *end, uint32_t payload_len)
{
	if (unlikely(wire_pad(payload_len) != 0))
		memset(end, 0, wire_pad(payload_len));
}

/** Copy a payload and pad it. @param from  may be NULL when there is none */
static __rte_always_inline void
put_payload(uint8_t *to, const void *from, uint32_t len)
{
	copy_payload(to, from, len);
	put_padding(to + len, len);
}

#endif
