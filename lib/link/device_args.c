/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The arguments of a device, and what they say of a memif. */

#include "link/device.h"
#include "link/device_value.h"
#include "link/private.h"

bool
arg_value(const char *args, const char *key, char *value, size_t size)
{
	int len = device_value(args, key, value, size);

	return len > 0 && (size_t)len < size;
}

struct rte_eth_dev_info
device_info(const struct link_port *p)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(p->ethdev, &info) != 0)
		memset(&info, 0, sizeof(info));
	return info;
}

unsigned int
device_number(const char *args, const char *key, unsigned int otherwise)
{
	char text[16];

	return arg_value(args, key, text, sizeof(text)) ? (unsigned int)atoi(text) : otherwise;
}

const char *
device_strerror(int rc)
{
	return rc == -1 ? "the log says why" : rte_strerror(-rc);
}

bool
device_is_memif(const struct link_port *p)
{
	return strncmp(p->cfg.device, "net_memif", 9) == 0;
}

/* True if an argument of such a text has this value. */
static bool
arg_is(const char *args, const char *key, const char *want)
{
	char value[16];

	return arg_value(args, key, value, sizeof(value)) && strcmp(value, want) == 0;
}

static bool
memif_is_server(const char *args)
{
	return arg_is(args, "role", "server") || arg_is(args, "role", "master");
}

bool
device_socket(const char *args, char *path, size_t size, bool *server)
{
	if (strncmp(args, "net_memif", 9) == 0) {
		*server = memif_is_server(args);
		if (device_value(args, "socket", path, size) < 0)
			snprintf(path, size, "/run/memif.sock"); /* the driver's own choice */
		return arg_is(args, "socket-abstract", "no");
	}
	*server = !arg_is(args, "client", "1");
	return (strncmp(args, "net_vhost", 9) == 0 || strncmp(args, "eth_vhost", 9) == 0) &&
		device_value(args, "iface", path, size) >= 0;
}

bool
device_is_client(const struct link_port *p)
{
	return device_is_memif(p) && !memif_is_server(p->args);
}

/* Mbufs that a lost server held with zero-copy would never come back. */
bool
device_reconnects(const struct link_port *p)
{
	return device_is_client(p) && !arg_is(p->args, "zero-copy", "yes");
}
