/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_CLIENTS_TURNS_H
#define ENGINE_CLIENTS_TURNS_H

/**
 * @file
 * Which of its clients a worker serves in a turn, and how much each gets (clients_turns.c).
 *
 * A client that is quiet costs a look at its next doorbell in every eighth turn. One that has rung
 * joins the list of turns, and stays there while it has work, and for some turns more. Each on the
 * list gets its share of a turn, once at most. Requests are taken, packets sent (struct rc_share)
 * and completions copied by shares.
 *
 * A client that wants little in a turn waits for the turn's end, and for the turns that its packets
 * take. So for LITTLE_TURNS turns after its last requests all others have short shares.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct verbs_client;
struct worker;

/** A client's next doorbell. */
struct client_look {
	const uint32_t *bell; /* the entry, in the client's segment */
	uint32_t silent; /* has another phase than the entry when it is rung */
	struct verbs_client *client; /* NULL: none */
};

/* looks are made by so many at a time */
#define CLIENT_LOOKS_AT_ONCE 8u
/** A turn looks at one in so many quiet clients: so many turns later the last one is heard. */
#define CLIENT_LOOK_TURNS 8u

TAILQ_HEAD(client_turns, verbs_client);

/** A worker's clients. */
struct worker_clients {
	uint32_t num;
	uint32_t next_look;
	uint32_t num_looks; /* with those of no client: a multiple of CLIENT_LOOKS_AT_ONCE */
	struct client_look *looks;
	struct client_turns turns; /* with requests to take, the next one first */
	struct client_turns completing; /* with completions to copy, likewise */
	struct verbs_client *little; /* had little work */
	uint32_t little_turns; /* for so many turns more, the others have short shares */
};

/** What a client gets of a turn. */
struct client_share {
	int32_t requests; /* in receives */
	int32_t send; /* so many receives: a send makes packets */
	uint32_t completions;
};

void client_turns_init(struct worker *w);
void client_turns_free(struct worker *w);
/** Control thread: memory for client_turns_join(), which alone may read the worker's looks. */
int client_turns_reserve(struct worker *w, struct client_look **looks, uint32_t *num);
/** @return the memory of the looks before, to free */
struct client_look *client_turns_join(struct worker *w, struct verbs_client *c,
	struct client_look *looks, uint32_t num);
/** It has its turns now, whether it has rung or not. */
void client_turns_hear(struct worker *w, struct verbs_client *c);
void client_turns_leave(struct worker *w, struct verbs_client *c);
/** Put those that have rung on the list of turns. */
void client_turns_look(struct worker *w);
/**
 * It has had its turn, and is not on the list: put it there again, or look at its doorbell.
 *
 * @param worked  it had work, or has more
 */
void client_turns_again(struct worker *w, struct verbs_client *c, bool worked);
/** It had all it wanted with so many requests. */
void client_turns_had(struct worker *w, struct verbs_client *c, uint32_t requests);
const struct client_share *client_share_of(const struct worker *w, const struct verbs_client *c);

#endif
