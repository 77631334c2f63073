/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Services by their place or by an object of theirs. */

#include "engine/connections.h"
#include "engine/service_table.h"

struct svc_worker *
service_here(const struct worker *w, unsigned int place)
{
	return place < w->num_svc ? w->svc[place] : NULL;
}

const struct svc *
service_owning(const struct engine *e, bool (*has)(const struct svc *, uint32_t), uint32_t number)
{
	const struct service *s;
	unsigned int i;

	for (i = 0; i < e->num_services; i++) { /* each poll of a CQ runs this loop */
		s = &e->services[i];
		if (s->svc != NULL && has(s->svc, number))
			return s->svc;
	}
	return NULL;
}

uint64_t
services_peer_limit(const struct engine *e)
{
	struct svc_counters sum = { 0 };
	unsigned int i;

	for (i = 0; i < ENGINE_SERVICE_PLACES; i++)
		if (e->services[i].id != 0)
			svc_counters_add(e->services[i].svc, -1, &sum);
	return sum.peer_limit;
}
