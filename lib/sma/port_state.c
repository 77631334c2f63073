/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * PortState and PortPhysState (smp-sma 3). Subnet management moves a port from Initialize to Armed
 * and Active; an Armed port also becomes Active when data arrives. Subnet management and the link
 * can take it Down. A port set Down on a live link trains again and comes up; a Disabled port stays
 * Down until it is set to Polling or Sleep and the live link brings it up.
 *
 * Training takes no time here, so the answer to the Set that took the port down already shows the
 * state after training. Users of the port are still told of Down. LID, keys and tables survive it.
 */

#include "sma/port_info.h"
#include "sma/private.h"

#define NO_CHANGE 0

static void
state_put(struct sma_port *p, uint8_t state, uint8_t phys)
{
	sma_pi_put(p->info, PI_PORT_STATE, state);
	sma_pi_put(p->info, PI_PHYS_STATE, phys);
}

/* The highest bit that is enabled. */
static uint64_t
best_of(const struct sma_port *p, enum sma_port_info_id enabled)
{
	uint64_t bits = sma_pi_get(p->info, enabled);

	while ((bits & (bits - 1)) != 0)
		bits &= bits - 1;
	return bits;
}

static void
port_come_up(struct sma_port *p)
{
	sma_pi_put(p->info, PI_WIDTH_ACTIVE, best_of(p, PI_WIDTH_ENABLED));
	sma_pi_put(p->info, PI_SPEED_ACTIVE, best_of(p, PI_SPEED_ENABLED));
	sma_pi_put(p->info, PI_EXT_ACTIVE, best_of(p, PI_EXT_ENABLED));
	state_put(p, p->config.active ? PORT_STATE_ACTIVE : PORT_STATE_INIT, SMA_PHYS_LINK_UP);
}

static void
port_go_down(struct sma_port *p, uint8_t phys, uint64_t now)
{
	if (phys == NO_CHANGE) {
		phys = sma_pi_get(p->info, PI_PHYS_STATE);
		if (phys != SMA_PHYS_DISABLED)
			phys = sma_pi_get(p->info, PI_DOWN_DEFAULT);
	}
	if (sma_port_state(p) != PORT_STATE_DOWN)
		sma_count(p, state_changes);
	state_put(p, PORT_STATE_DOWN, phys);
	if (!p->link_up || phys == SMA_PHYS_DISABLED)
		return;
	sma_apply(p, now);
	port_come_up(p);
}

/*
 * One step up. Setting the current state again is allowed: the SM may have lost the answer (qib).
 */
static bool
port_state_climb(struct sma_port *p, uint8_t from, uint8_t to)
{
	if (sma_port_state(p) == to)
		return true;
	if (sma_port_state(p) != from)
		return false;
	sma_pi_put(p->info, PI_PORT_STATE, to);
	sma_count(p, state_changes);
	return true;
}

static bool
settable(uint8_t phys)
{
	return phys == SMA_PHYS_SLEEP || phys == SMA_PHYS_POLLING || phys == SMA_PHYS_DISABLED;
}

static bool
port_state_change(struct sma_port *p, uint8_t state, uint8_t phys, uint64_t now)
{
	switch (state) {
	case NO_CHANGE:
		if (phys != NO_CHANGE)
			port_go_down(p, phys, now);
		return true;
	case PORT_STATE_DOWN:
		port_go_down(p, phys, now);
		return true;
	case PORT_STATE_ARMED:
		return port_state_climb(p, PORT_STATE_INIT, state);
	case PORT_STATE_ACTIVE:
		return port_state_climb(p, PORT_STATE_ARMED, state);
	default:
		return false;
	}
}

bool
sma_port_state_set(struct sma_port *p, uint8_t state, uint8_t phys, uint64_t now)
{
	bool valid = true;

	/* an invalid PhysState does not keep PortState from being applied */
	if (phys != NO_CHANGE && (!settable(phys) || state > PORT_STATE_DOWN)) {
		valid = false;
		phys = NO_CHANGE;
	}
	return port_state_change(p, state, phys, now) && valid;
}

void
sma_port_state_link(struct sma_port *p, bool up)
{
	uint8_t phys = sma_pi_get(p->info, PI_PHYS_STATE);

	if (p->link_up == up)
		return;
	p->link_up = up;
	if (phys == SMA_PHYS_DISABLED)
		return;
	if (up)
		port_come_up(p);
	else
		state_put(p, PORT_STATE_DOWN, sma_pi_get(p->info, PI_DOWN_DEFAULT));
}

/*
 * We assume that ActiveEnable is true (choice): it becomes true by the peer's flow-control packets,
 * which our links do not have.
 */
bool
sma_port_state_data(struct sma_port *p)
{
	if (sma_port_state(p) != PORT_STATE_ARMED)
		return false;
	sma_pi_put(p->info, PI_PORT_STATE, PORT_STATE_ACTIVE);
	return true;
}

void
sma_port_state_init(struct sma_port *p)
{
	state_put(p, PORT_STATE_DOWN, SMA_PHYS_POLLING);
}
