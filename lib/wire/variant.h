/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_VARIANT_H
#define WIRE_VARIANT_H

/*
 * Private to lib/wire: the variant fields, whose bits the ICRC takes as ones (rc-transport 9). Each
 * macro initialises the mask bytes of a header that begins at offset `at`. An IPv6 header and a GRH
 * have the same layout.
 */

#include "wire/layout.h"

/* clang-format off */
#define IPV4_ONES(at) [(at) + IPV4_TOS] = 0xFF, [(at) + IPV4_TTL] = 0xFF, \
	[(at) + IPV4_CHECKSUM] = 0xFF, 0xFF
/* clang-format on */
#define IPV6_ONES(at) [at] = 0x0F, 0xFF, 0xFF, 0xFF, [(at) + IPV6_HOP_LIMIT] = 0xFF
#define UDP_ONES(at)  [(at) + UDP_CHECKSUM] = 0xFF, 0xFF
#define BTH_ONES(at)  [(at) + BTH_RESV8A] = 0xFF

#endif
