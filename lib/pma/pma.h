/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PMA_PMA_H
#define PMA_PMA_H

/**
 * @file
 * The performance management agent (pma.md): class 0x04 on QP1 of every port. It shows the ports'
 * totals minus an offset of its own. Setting or resetting a counter only changes that offset, so
 * telemetry and statistics never go back.
 *
 * One struct pma serves all ports of the channel adapter. It belongs to worker 0, to which lib/mad
 * passes all requests of the class; call these functions only there. No function reads a clock,
 * allocates after creation, logs or calls EAL.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/timer_wheel.h"
#include "mad/mad.h"

#define PMA_PORTS_MAX 64
#define PMA_TICK_NS   4 /* tick of PortSamplesControl and PortXmitWait */

enum pma_counter {
	PMA_SYMBOL_ERROR,
	PMA_LINK_RECOVERY,
	PMA_LINK_DOWNED,
	PMA_RCV_ERRORS,
	PMA_RCV_REMOTE_PHYSICAL,
	PMA_RCV_SWITCH_RELAY,
	PMA_XMIT_DISCARDS,
	PMA_XMIT_CONSTRAINT,
	PMA_RCV_CONSTRAINT,
	PMA_LOCAL_INTEGRITY,
	PMA_EXCESSIVE_OVERRUN,
	PMA_VL15_DROPPED,
	PMA_QP1_DROPPED,
	PMA_XMIT_DATA, /**< units of 4 octets, like PMA_RCV_DATA */
	PMA_RCV_DATA,
	PMA_XMIT_PKTS,
	PMA_RCV_PKTS,
	PMA_XMIT_WAIT, /**< ticks */
	PMA_UNICAST_XMIT,
	PMA_UNICAST_RCV,
	PMA_MULTICAST_XMIT,
	PMA_MULTICAST_RCV,
	PMA_COUNTERS
};

/** A port's totals since the start. */
struct pma_totals {
	uint64_t value[PMA_COUNTERS];
};

struct pma_config {
	struct mad_worker *mad; /**< worker 0's */
	struct timer_wheel *wheel;
	const struct allocator *alloc;
	uint64_t hz;
	unsigned int num_ports; /**< of the channel adapter; port index = port number - 1 */
	uint8_t tick[PMA_PORTS_MAX]; /**< PortSamplesControl.Tick of each port: pma_tick() */
	uint8_t resp_time; /**< RespTimeValue code */
	/** All but PMA_LINK_DOWNED, which pma_link() counts. */
	void (*totals)(void *arg, uint16_t port, struct pma_totals *t);
	void *arg;
};

struct pma;

/** The Tick whose interval is PMA_TICK_NS on a link with lanes of this speed. */
uint8_t pma_tick(uint32_t lane_mbps);
/** Register the agent. NULL: no memory, too many ports, or the class has an agent. */
struct pma *pma_create(const struct pma_config *config);
/** Call after its mad_worker is destroyed. */
void pma_destroy(struct pma *p);
/** Call often with the link state of each port: counts PMA_LINK_DOWNED. */
void pma_link(struct pma *p, uint16_t port, bool up);
/** Any thread: PMA_LINK_DOWNED of a port since the start. */
uint64_t pma_link_downed(const struct pma *p, uint16_t port);

#endif
