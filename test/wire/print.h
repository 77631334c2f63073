/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_WIRE_PRINT_H
#define TEST_WIRE_PRINT_H

#include "wire/wire.h"

/** One readable line: "SEND First psn 201 qp 0x11 len 1024"; always NUL-terminated. */
void wire_print(const struct packet *pkt, char *buf, size_t size);

#endif
