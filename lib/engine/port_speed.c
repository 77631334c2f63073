/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A device's speed in PortInfo's codes (smp-sma 3): the fastest code that does not exceed it.
 */

#include "engine/subnet.h"

static const struct port_speed speeds[] = {
	{ 400000, 2, 4, 8 },
	{ 200000, 2, 4, 4 },
	{ 100000, 2, 4, 2 },
	{ 50000, 1, 4, 4 },
	{ 40000, 2, 4, 0 },
	{ 25000, 1, 4, 2 },
	{ 10000, 2, 1, 0 },
	{ 0, 1, 1, 0 },
};

const struct port_speed *
port_speed(const struct link *l, unsigned int port)
{
	struct link_state state;
	unsigned int i = 0;

	link_state(l, port, &state);
	while (speeds[i].mbps > state.speed_mbps)
		i++;
	return &speeds[i];
}
