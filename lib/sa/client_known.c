/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RespTimeValues that SAs have announced (seed 000: a request's timeouts come from the SA's value).
 * A slot is one word that workers read and write without a lock: a hash of the SA's identity, and
 * its value. The identity includes the port's SM, so that after a change of SM the SA is asked
 * anew.
 */

#include <string.h>

#include "base/siphash.h"
#include "sa/client_private.h"

#define RESP_TIME_BITS 5
#define RESP_TIME_MASK 0x1F

struct identity {
	union gid gid;
	uint16_t port;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t sm_sl;
	uint8_t class_version;
};
_Static_assert(sizeof(struct identity) % sizeof(uint64_t) == 0, "it is hashed in words");
#define IDENTITY_WORDS (sizeof(struct identity) / sizeof(uint64_t))

/* The hash leaves its low bits for the value; it is never 0, the empty slot. */
static uint64_t
client_identity(const struct client_query *s)
{
	const struct av *av = &s->call.to.av;
	const struct port_attr *port = mad_port(s->client->mad, av->port);
	bool ib = av->encap == ENCAP_IB;
	uint64_t words[IDENTITY_WORDS];
	struct identity id;

	memset(&id, 0, sizeof(id));
	if (!ib || av->grh)
		id.gid = av->dgid;
	id.port = av->port;
	id.lid = ib ? av->dlid : 0;
	id.sm_lid = port != NULL ? port->sm_lid : 0;
	id.sm_sl = port != NULL ? port->sm_sl : 0;
	id.class_version = (uint8_t)s->version;
	memcpy(words, &id, sizeof(words));
	return (siphash_words(0, words, IDENTITY_WORDS) | UINT64_C(1) << 63) &
		~(uint64_t)RESP_TIME_MASK;
}

static uint64_t *
client_known_slot(const struct client_query *s, uint64_t id)
{
	return &s->client->known->slot[(id >> RESP_TIME_BITS) % SA_KNOWN_SLOTS];
}

int
client_known(const struct client_query *s)
{
	uint64_t id = client_identity(s),
		 v = __atomic_load_n(client_known_slot(s, id), __ATOMIC_RELAXED);

	return (v & ~(uint64_t)RESP_TIME_MASK) == id ? (int)(v & RESP_TIME_MASK) : -1;
}

void
client_learn(const struct client_query *s, uint8_t resp_time)
{
	uint64_t id = client_identity(s);

	__atomic_store_n(client_known_slot(s, id), id | (resp_time & RESP_TIME_MASK),
		__ATOMIC_RELAXED);
}

void
client_forget(const struct client_query *s)
{
	if (client_known(s) >= 0)
		__atomic_store_n(client_known_slot(s, client_identity(s)), 0, __ATOMIC_RELAXED);
}
