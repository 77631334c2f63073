/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "peers/host_port.h"

static bool
parse_port(const char *text, uint16_t *port)
{
	uint64_t v;

	if (!number_parse(text, &v) || v == 0 || v > UINT16_MAX)
		return false;
	*port = (uint16_t)v;
	return true;
}

/*
 * The colon before the port. An IPv6 address without brackets has no port, if there is a default.
 */
static const char *
colon_of(const char *text, uint16_t standard)
{
	const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
	struct in6_addr a;

	if (standard != 0 && inet_pton(AF_INET6, text, &a) == 1)
		return NULL;
	return strrchr(bracket != NULL ? bracket : text, ':');
}

bool
host_port_parse(const char *text, uint16_t standard, struct host_port *w)
{
	const char *colon = colon_of(text, standard);
	size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);

	w->port = standard;
	if (colon != NULL ? !parse_port(colon + 1, &w->port) : standard == 0)
		return false;
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len >= sizeof(w->host))
		return false;
	memcpy(w->host, text, len);
	w->host[len] = '\0';
	return true;
}

const char *
host_port_print(const struct host_port *w, char *text)
{
	snprintf(text, HOST_PORT_TEXT, strchr(w->host, ':') != NULL ? "[%s]:%u" : "%s:%u", w->host,
		w->port);
	return text;
}

struct addrinfo *
host_port_resolve(const char *option, const char *text, uint16_t standard, bool passive,
	struct host_port *w, struct error *err)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = passive ? AI_PASSIVE : 0,
	};
	struct addrinfo *list = NULL;
	char port[8];
	int ret;

	if (!host_port_parse(text, standard, w) || (standard != 0 && w->host[0] == '\0')) {
		error_set(err, EINVAL, "%s: got \"%.64s\", allowed: %s, ports 1 to 65535", option,
			text,
			standard != 0 ? "HOST, HOST:PORT, [ADDRESS]:PORT"
				      : "HOST:PORT, [ADDRESS]:PORT");
		return NULL;
	}
	snprintf(port, sizeof(port), "%u", w->port);
	ret = getaddrinfo(w->host[0] != '\0' ? w->host : NULL, port, &hints, &list);
	if (ret != 0)
		error_set(err, EINVAL, "%s: \"%.64s\": %s", option, w->host, gai_strerror(ret));
	return ret == 0 ? list : NULL;
}
