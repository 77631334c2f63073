/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The arguments of a device, and what they say of a memif. */

#include <stdlib.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>

#include "link/device.h"
#include "link/device_value.h"
#include "link/memif.h"
#include "link/private.h"

bool
arg_value(const char *args, const char *key, char *value, size_t size)
{
	int len = device_value(args, key, value, size);

	return len > 0 && (size_t)len < size;
}

bool
device_args(const struct link_port *p, char *args, size_t size)
{
	const struct rte_devargs *devargs;
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(p->ethdev, &info) != 0 || info.device == NULL)
		return false;
	devargs = rte_dev_devargs(info.device);
	if (devargs == NULL || devargs->args == NULL)
		return false;
	snprintf(args, size, "%s,%s", rte_dev_name(info.device), devargs->args);
	return true;
}

bool
device_arg(const struct link_port *p, const char *key, char *value, size_t size)
{
	char args[512];

	return device_args(p, args, sizeof(args)) && arg_value(args, key, value, size);
}

unsigned int
device_number(const struct link_port *p, const char *key, unsigned int otherwise)
{
	char text[16];

	return device_arg(p, key, text, sizeof(text)) ? (unsigned int)atoi(text) : otherwise;
}

const char *
device_strerror(int rc)
{
	return rc == -1 ? "the log says why" : rte_strerror(-rc);
}

bool
device_is_memif(const struct link_port *p)
{
	return strcmp(p->driver, "net_memif") == 0;
}

bool
memif_is_server(const char *args)
{
	char role[16];

	return arg_value(args, "role", role, sizeof(role)) &&
		(strcmp(role, "server") == 0 || strcmp(role, "master") == 0);
}

bool
device_is_client(const struct link_port *p)
{
	char args[512];

	return device_is_memif(p) && device_args(p, args, sizeof(args)) && !memif_is_server(args);
}
