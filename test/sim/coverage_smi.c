/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the scripts of subnet management must reach: states of ports and traps. */

#include <stdio.h>

#include "coverage.h"
#include "port/port.h"
#include "sma/sma.h"

void
coverage_port_state(struct coverage *c, uint8_t from, uint8_t to)
{
	c->port_state[from][to]++;
}

void
coverage_trap(struct coverage *c, uint8_t from, uint8_t to)
{
	c->trap[from][to]++;
}

/* smp-sma 3 */
static const uint8_t port_changes[][2] = {
	{ PORT_STATE_DOWN, PORT_STATE_INIT },
	{ PORT_STATE_INIT, PORT_STATE_ARMED },
	{ PORT_STATE_ARMED, PORT_STATE_ACTIVE },
	{ PORT_STATE_INIT, PORT_STATE_DOWN },
	{ PORT_STATE_ARMED, PORT_STATE_DOWN },
	{ PORT_STATE_ACTIVE, PORT_STATE_DOWN },
};

/* smp-sma 5; a trap that is over counts as a free place */
static const uint8_t trap_changes[][2] = {
	{ SMA_TRAP_FREE, SMA_TRAP_HELD },
	{ SMA_TRAP_FREE, SMA_TRAP_SENT },
	{ SMA_TRAP_HELD, SMA_TRAP_SENT },
	{ SMA_TRAP_SENT, SMA_TRAP_HELD },
	{ SMA_TRAP_SENT, SMA_TRAP_REPRESSED },
	{ SMA_TRAP_SENT, SMA_TRAP_GIVEN_UP },
	{ SMA_TRAP_HELD, SMA_TRAP_REPRESSED },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

unsigned int
coverage_report_smi(const struct coverage *c, bool verbose)
{
	static const char *const ports[] = { "", "Down", "Initialize", "Armed", "Active" };
	unsigned int n = 0;
	char text[64];

	for (unsigned int i = 0; i < COUNT(port_changes); i++) {
		const uint8_t *p = port_changes[i];

		snprintf(text, sizeof(text), "%s -> %s", ports[p[0]], ports[p[1]]);
		n += coverage_missing(c->port_state[p[0]][p[1]], verbose, "PortState", text);
	}
	for (unsigned int i = 0; i < COUNT(trap_changes); i++) {
		const uint8_t *t = trap_changes[i];

		snprintf(text, sizeof(text), "%s -> %s", sma_trap_state_name(t[0]),
			sma_trap_state_name(t[1]));
		n += coverage_missing(c->trap[t[0]][t[1]], verbose, "trap", text);
	}
	return n;
}
