/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_METRICS_HTTP_H
#define CTL_METRICS_HTTP_H

/**
 * @file
 * GET /metrics for Prometheus, in the control thread's event loop; /metrics?qp=1 adds the counters
 * of queue pairs. There is neither encryption nor a password: loopback or a Unix socket only.
 */

#include <stdbool.h>

#include <event2/util.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"
#include "engine/engine.h"

struct metrics_http;

#define METRICS_LISTEN                                                                             \
	"a loopback address and port (127.0.0.1:9464, [::1]:9464), or a Unix socket's path"

/** True if @p listen is a loopback address with a port. @param len  in: room in *addr */
static inline bool
metrics_http_loopback(const char *listen, struct sockaddr_storage *addr, int *len)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;

	if (evutil_parse_sockaddr_port(listen, (struct sockaddr *)addr, len) != 0)
		return false;
	if (addr->ss_family == AF_INET)
		return v4->sin_port != 0 && ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return v6->sin6_port != 0 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/**
 * @param listen  loopback address and port, or the path of a Unix socket, which everybody may use
 *                whom its directory admits
 */
struct metrics_http *metrics_http_create(struct engine *e, const char *listen, struct error *err);
void metrics_http_destroy(struct metrics_http *m);

#endif
