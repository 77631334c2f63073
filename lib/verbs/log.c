/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <rte_log.h>

#include "verbs/private.h"

RTE_LOG_REGISTER(verbs_logtype, polca.verbs, INFO);

void
verbs_log_limit(struct verbs_server *s, struct verbs_client *client, int fd, const char *what,
	const char *text)
{
	engine_client_refused(s->engine, client);
	limit_lines_log(&s->limit_lines, verbs_logtype, "verbs", fd, what, text, monotonic_ms());
}
