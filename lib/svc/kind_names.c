/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The names of the kinds of services, as errors and help list them. */

#include <stdio.h>
#include <string.h>

#include "svc/svc.h"

static void
append_kinds(bool active, char *buf, size_t size)
{
	const char *between = "";
	size_t len;
	unsigned int i;

	for (i = 0; svc_kinds[i] != NULL; i++) {
		if (active ? !svc_kinds[i]->client : !svc_kinds[i]->server)
			continue;
		len = strlen(buf);
		snprintf(buf + len, size - len, "%s%s", between, svc_kinds[i]->name);
		between = ", ";
	}
}

void
svc_kinds_that_listen(char *buf, size_t size)
{
	append_kinds(false, buf, size);
}

void
svc_kinds_that_connect(char *buf, size_t size)
{
	append_kinds(true, buf, size);
}
