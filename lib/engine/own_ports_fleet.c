/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Own ports in a fleet: the control thread says what their records are, and own_wish.c has them
 * stored.
 */

#include <stdlib.h>

#include "engine/own_ports_fleet.h"
#include "engine/own_wish.h"
#include "engine/worker.h"
#include "sa/owned.h"

/* If it fails, the records that were wished last stay, and the next look tries again. */
static void
own_ports_renew(struct engine *e)
{
	struct own_fleet_ports *p = &e->own_fleet_ports;
	uint8_t bytes[OWNED_LEN_MAX];
	size_t len = own_ports_request(e, p->native, p->num_native, bytes);

	if (len > 0)
		own_wish_set(e->own_wish, bytes, len);
	if (len == 0 && !p->old)
		ENGINE_LOG(WARNING,
			"records of own ports are not renewed yet: no memory, or too many records");
	if (len > 0 && p->old)
		ENGINE_LOG(NOTICE, "records of own ports are renewed again");
	p->old = len == 0;
}

void
own_ports_fleet_native(struct engine *e, struct sa_change *records, size_t n)
{
	free(e->own_fleet_ports.native);
	e->own_fleet_ports.native = records;
	e->own_fleet_ports.num_native = n;
	own_ports_renew(e);
}

void
own_ports_fleet_follow(struct engine *e)
{
	bool changed = e->own_fleet_ports.old;
	unsigned int i;

	if (e->own_wish == NULL)
		return;
	for (i = 0; i < link_num_ports(e->link); i++) {
		const struct port_attr *attr = link_port_attr(e->link, i);

		changed |= attr != e->own_fleet_ports.seen[i];
		e->own_fleet_ports.seen[i] = attr;
	}
	if (changed)
		own_ports_renew(e);
}

void
own_ports_fleet_destroy(struct engine *e)
{
	free(e->own_fleet_ports.native);
	e->own_fleet_ports.native = NULL;
	own_wish_destroy(e->own_wish);
	e->own_wish = NULL;
}
