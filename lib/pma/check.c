/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of private.h claim about a port, asserted. */

#include <rte_debug.h>

#include "pma/private.h"

#ifdef RTE_ENABLE_ASSERT

void
pma_port_check(const struct pma_port *p)
{
	const struct pma_sample *s = &p->sample;

	RTE_ASSERT(p->index < p->pma->config.num_ports && p == &p->pma->port[p->index]);
	RTE_ASSERT(p->known || (!p->up && p->link_downed == 0));
	/* a sample waits for its start or its end, and for nothing once it is done */
	RTE_ASSERT(s->status <= PMA_SAMPLE_RUNNING);
	RTE_ASSERT((s->status == PMA_SAMPLE_DONE) != timer_armed(&s->timer));
	/* link_downed is read for .seen, and never falls */
	RTE_ASSERT(p->seen.value[PMA_LINK_DOWNED] <= p->link_downed);
}

#endif
