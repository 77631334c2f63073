/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Events of a worker: the engine passes them to the consumer. */

#include "rc/qp.h"

void
rc_event(struct rc_worker *w, enum event_type type, uint32_t element)
{
	struct event ev = { .type = type, .element = element };

	if (w->config.event != NULL)
		w->config.event(w->config.event_arg, &ev);
}
