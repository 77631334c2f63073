/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_FIELD_H
#define BASE_FIELD_H

/**
 * @file
 * Read and write a structure's unsigned field of 1, 2, 4 or 8 bytes, of which a table knows the
 * address and the size. A bool is a field of 1 byte with the value 0 or 1.
 */

#include <stddef.h>
#include <stdint.h>

static inline uint64_t
field_load(const void *field, size_t size)
{
	switch (size) {
	case 1:
		return *(const uint8_t *)field;
	case 2:
		return *(const uint16_t *)field;
	case 4:
		return *(const uint32_t *)field;
	default:
		return *(const uint64_t *)field;
	}
}

/** Higher bits of @p value than the field has are lost. */
static inline void
field_store(void *field, size_t size, uint64_t value)
{
	switch (size) {
	case 1:
		*(uint8_t *)field = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)field = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)field = (uint32_t)value;
		break;
	default:
		*(uint64_t *)field = value;
	}
}

#endif
