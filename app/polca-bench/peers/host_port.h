/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_HOST_PORT_H
#define BENCH_HOST_PORT_H

/**
 * @file
 * HOST, HOST:PORT and [ADDRESS]:PORT in options.
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

/**
 * @param standard  the default port; 0: the text must name one. @return true if the text is valid
 */
bool host_port_parse(const char *text, uint16_t standard, struct host_port *w);
/** Write HOST:PORT or [ADDRESS]:PORT. @return text, of HOST_PORT_TEXT bytes */
const char *host_port_print(const struct host_port *w, char *text);
/**
 * Resolve the TCP addresses to listen on or connect to.
 *
 * @param option  the option that had the text, for errors
 * @param w       set to the parsed text
 * @return to be freed by freeaddrinfo(); NULL: the text is invalid or the host unknown
 */
struct addrinfo *host_port_resolve(const char *option, const char *text, uint16_t standard,
	bool passive, struct host_port *w, struct error *err);

#endif
