/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What happens to the fleet that operators wait for. */

#include "engine/worker.h"
#include "store/fleet.h"

/* Raise the event of a state that has changed. */
static void
fleet_event(struct engine *e, bool *said, bool now, enum event_type yes, enum event_type no)
{
	struct event ev = { .type = now ? yes : no };

	if (now == *said)
		return;
	*said = now;
	events_put_control(e, &ev);
}

/* Whether etcd serves this appliance. At the start it is away, which is no event. */
static void
fleet_etcd_event(struct engine *e)
{
	struct event ev = { .type = EVENT_FLEET_AWAY };

	if (fleet_connected(e->fleet))
		ev.type = EVENT_FLEET_CONNECTED;
	else if (fleet_etcd_state(e->fleet) == FLEET_ETCD_REFUSES)
		ev.type = EVENT_FLEET_REFUSED;
	if (ev.type == e->fleet_etcd || (ev.type == EVENT_FLEET_AWAY && e->fleet_etcd == 0))
		return;
	e->fleet_etcd = ev.type;
	events_put_control(e, &ev);
}

void
fleet_events_follow(struct engine *e)
{
	if (e->fleet == NULL || !e->running)
		return;
	fleet_etcd_event(e);
	fleet_event(e, &e->fleet_full, fleet_is_full(e->fleet), EVENT_FLEET_FULL, EVENT_FLEET_ROOM);
	fleet_event(e, &e->fleet_leads, fleet_leads(e->fleet), EVENT_FLEET_LEADS,
		EVENT_FLEET_FOLLOWS);
}
