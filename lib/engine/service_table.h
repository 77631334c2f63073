/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_SERVICE_TABLE_H
#define ENGINE_SERVICE_TABLE_H

/**
 * @file
 * A place in the engine's table of services. services.c fills and empties it.
 */

#include "cm/cm.h"
#include "svc/svc.h"

struct service {
	uint32_t id; /* 0: free */
	struct svc *svc;
	bool listening;
	bool client;
	bool ending; /* to be removed with its last connection */
	bool removing; /* removed from all workers, but its objects are still in use */
	bool awaited; /* client: the attempt to connect has not ended */
	cm_id connection; /* client: its connection */
	uint64_t over; /* TSC of the end of the last connection; 0: it has or may get connections */
};

#endif
