/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_CLIENTS_MOVE_H
#define ENGINE_CLIENTS_MOVE_H

/**
 * @file
 * Private to lib/engine: a client moves from worker A to worker B with all its queue pairs, CQs and
 * shared receive queues, by the messages of rehome.h (a message with QPN 0 is about the client).
 *
 * The control thread makes a struct client_move, starts the move on A and waits for its end. So at
 * most one client moves at a time, and none gets or loses objects, or ends, while it does. Between
 * A's export and B's import no worker reads the client's rings: what the program posts waits there.
 */

#include "engine/clients_private.h"

struct client_move {
	struct verbs_client *client;
	unsigned int from, to;
	struct rc_group group;
	uint32_t *numbers; /* memory of the group's lists, and of .made */
	uint32_t *made; /* CQs that got memory for worker B */
	uint32_t num_made;
	uint64_t *coming; /* a bit for each QP slot: its queue pair moves */
	uint32_t slot_mask;
	struct client_look *looks; /* memory for worker B; then what is to be freed */
	uint32_t num_looks;
	int result; /* of the export */
	struct error *err;
	/* worker A's last look at the ports */
	const struct port_attr *port_seen[LINK_PORTS_MAX];
	/* worker B */
	struct packet *parked[REHOME_PARK_ALL];
	unsigned int num_parked;
	uint32_t done; /* atomic: the control thread may go on */
};

/** Worker B: from now on packets of the client's queue pairs are parked. */
void client_move_begin(struct worker *w);
/** Worker B: park the packet if it is for a queue pair that comes. @return parked */
bool client_move_park(struct worker *w, struct packet *pkt);
/** Worker A, at the end of a turn: export. @return 0, or a negative errno: the client stays */
int client_move_give(struct worker *w);
/** Worker B: import. */
void client_move_take(struct worker *w);

#endif
