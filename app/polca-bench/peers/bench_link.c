/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "base/pci_address.h"
#include "link/device_value.h"

#include "peers/bench_link.h"
#include "peers/remote.h"

static const char *const no_keys[] = { NULL };

const struct bench_link bench_links[] = {
	{ "memory", "both ends in this process, their ports joined by rings", no_keys, NULL, false,
		link_memory_create },
	{ "memif", "shared memory with 'polca-bench server' [,socket=PATH][,zero-copy=yes]",
		link_memif_keys, link_memif_check, true, link_memif_create },
	{ "DEVICE",
		"named as in polca's configuration (net_af_packet0,iface=eth1 or a PCI address); with "
		"--connect, --perftest or --peer",
		no_keys, NULL, true, link_device_create },
};
const unsigned int bench_link_count = RTE_DIM(bench_links);

static const char *
keys_of(const struct bench_link *l, char *buf, size_t size)
{
	unsigned int i;

	snprintf(buf, size, "%s", l->keys[0] == NULL ? "none" : "");
	for (i = 0; l->keys[i] != NULL; i++)
		snprintf(buf + strlen(buf), size - strlen(buf), "%s%s", i > 0 ? ", " : "",
			l->keys[i]);
	return buf;
}

static int
check_keys(const struct bench_link *l, const struct bench_options *o, struct error *err)
{
	const char *text = o->link;
	char allowed[128];
	unsigned int i;
	size_t len;

	for (text = strchr(text, ','); text != NULL; text = strchr(text, ',')) {
		text++;
		len = strcspn(text, "=,");
		for (i = 0; l->keys[i] != NULL; i++)
			if (strlen(l->keys[i]) == len && strncmp(l->keys[i], text, len) == 0)
				break;
		if (l->keys[i] == NULL || text[len] != '=' || strchr(",", text[len + 1]) != NULL)
			return error_set(err, EINVAL,
				"--link %s: got \"%.*s\", allowed: KEY=VALUE of: %s", l->name,
				(int)strcspn(text, ","), text,
				keys_of(l, allowed, sizeof(allowed)));
	}
	return l->check != NULL ? l->check(o, err) : 0;
}

static const struct bench_link *
device_link(const struct bench_options *o, struct error *err)
{
	if (o->connect != NULL || o->peer != NULL || o->perftest != NULL)
		return &bench_links[RTE_DIM(bench_links) - 1];
	error_set(err, EINVAL,
		"--link %.64s: the other end is missing: --connect HOST:PORT for a Polca "
		"service, --perftest HOST for perftest's server, --peer WHERE for another polca-bench",
		o->link);
	return NULL;
}

const struct bench_link *
link_find(const struct bench_options *o, struct error *err)
{
	size_t len = strcspn(o->link, ",");
	char allowed[128] = "";
	unsigned int i;

	if (pci_address_complete(o->link, allowed, sizeof(allowed))) {
		error_set(err, EINVAL,
			"--link: got \"%.64s\", allowed: a PCI address with its function, such as %.32s",
			o->link, allowed);
		return NULL;
	}
	if (options_device(o))
		return device_link(o, err);
	if (o->connect != NULL || o->address != NULL || o->perftest != NULL || options_given(o)) {
		error_set(err, EINVAL,
			"--connect, --perftest, --peer gid=... and --address: with "
			"--link DEVICE, as net_af_packet0,iface=eth1");
		return NULL;
	}
	for (i = 0; i < bench_link_count; i++) {
		const struct bench_link *l = &bench_links[i];

		if (strlen(l->name) == len && strncmp(l->name, o->link, len) == 0)
			return check_keys(l, o, err) == 0 ? l : NULL;
		snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s%s",
			i > 0 ? ", " : "", l->name);
	}
	error_set(err, EINVAL,
		"--link: got \"%.*s\", allowed: %s as net_af_packet0,iface=eth1 or 0000:3b:00.0",
		(int)len, o->link, allowed);
	return NULL;
}

bool
link_value(const struct bench_options *o, const char *key, char *value, size_t size)
{
	return device_value(o->link, key, value, size) >= 0;
}
