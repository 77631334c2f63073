/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_WHERE_H
#define BENCH_WHERE_H

/**
 * @file
 * HOST, HOST:PORT and [ADDRESS]:PORT, as options name other programs by them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct addrinfo;

struct where {
	char host[256]; /**< a name or an address, without brackets; may be empty */
	uint16_t port; /**< 1 to 65535 */
};

#define WHERE_TEXT 272

/** @param standard  the port where none is named; 0: one has to be. @return is it one of these? */
bool where_split(const char *text, uint16_t standard, struct where *w);
/** HOST:PORT or [ADDRESS]:PORT. @return text, of WHERE_TEXT */
const char *where_print(const struct where *w, char *text);
/**
 * Its TCP addresses, to listen on or to connect to.
 * @param option  that it was said with
 * @param w       what it says
 * @return the caller's, freeaddrinfo(); NULL: it is none of these, or there is no such host
 */
struct addrinfo *where_resolve(const char *option, const char *text, uint16_t standard,
	bool passive, struct where *w, struct error *err);

#endif
