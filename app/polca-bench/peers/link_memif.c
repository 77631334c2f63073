/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Shared memory between two processes. The server's endpoint is the memif server and creates the
 * socket; the client provides the memory. Payloads are copied, or, with hugepages and zero-copy=yes
 * at the client, not copied.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "peers/remote.h"

const char *const link_memif_keys[] = { "socket", "zero-copy", NULL };

static void
socket_path(const struct bench_options *o, char *path, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	if (!link_value(o, "socket", path, size))
		snprintf(path, size, "%s/polca-bench-%u.sock", dir != NULL ? dir : "/tmp",
			getuid());
}

bool
link_memif_zero_copy(const struct bench_options *o)
{
	char value[8] = "";

	return strncmp(o->link, "memif", 5) == 0 &&
		link_value(o, "zero-copy", value, sizeof(value)) && strcmp(value, "yes") == 0;
}

void
link_memif_address(const struct bench_options *o, char *where, size_t size)
{
	char path[200];

	socket_path(o, path, sizeof(path));
	snprintf(where, size, "%s.bench", path);
}

int
link_memif_check(const struct bench_options *o, struct error *err)
{
	char path[200], value[8] = "no";

	if (link_value(o, "zero-copy", value, sizeof(value)) && strcmp(value, "yes") != 0 &&
		strcmp(value, "no") != 0)
		return error_set(err, EINVAL,
			"--link memif: zero-copy: got \"%s\", allowed: yes, no", value);
	socket_path(o, path, sizeof(path));
	if (strlen(path) > 100)
		return error_set(err, EINVAL,
			"--link memif: socket: got %zu bytes, allowed: up to 100", strlen(path));
	return 0;
}

int
link_memif_create(const struct bench_options *o, enum bench_role role, char device[ROLES][256],
	struct error *err)
{
	char path[200];

	RTE_SET_USED(err);
	socket_path(o, path, sizeof(path));
	snprintf(device[role], sizeof(device[role]),
		"net_memif%u,role=%s,id=0,socket-abstract=no,socket=%.100s%s", role,
		role == RESPONDER ? "server" : "client", path,
		role == REQUESTER && link_memif_zero_copy(o) ? ",zero-copy=yes" : "");
	return 0;
}
