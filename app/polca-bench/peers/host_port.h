/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_HOST_PORT_H
#define BENCH_HOST_PORT_H

/**
 * @file
 * HOST, HOST:PORT and [ADDRESS]:PORT, as options name other programs by them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct addrinfo;

struct host_port {
	char host[256]; /**< a name or an address, without brackets; may be empty */
	uint16_t port; /**< 1 to 65535 */
};

#define HOST_PORT_TEXT 272

/** @param standard  the port where none is named; 0: one has to be. @return is it one of these? */
bool host_port_parse(const char *text, uint16_t standard, struct host_port *w);
/** HOST:PORT or [ADDRESS]:PORT. @return text, of HOST_PORT_TEXT */
const char *host_port_print(const struct host_port *w, char *text);
/**
 * Its TCP addresses, to listen on or to connect to.
 * @param option  that it was said with
 * @param w       what it says
 * @return the caller's, freeaddrinfo(); NULL: it is none of these, or there is no such host
 */
struct addrinfo *host_port_resolve(const char *option, const char *text, uint16_t standard,
	bool passive, struct host_port *w, struct error *err);

#endif
