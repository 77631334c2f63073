/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Records of our own ports in a fleet. The control thread says what they are; the store's
 * thread compares that with the database now and then, and asks the leader for what differs, as for
 * a client's change. So they come back if they were removed while we were cut off. The leader also
 * removes the records of appliances whose lease has ended.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/own_wish.h"
#include "engine/store_fleet.h"
#include "engine/store_forward.h"
#include "engine/worker.h"
#include "sa/owned.h"
#include "sa/write.h"
#include "wire/bytes.h"

#define LOOK_MS 500

struct own_wish {
	struct store_fleet side;
	pthread_mutex_t lock; /* protects the next two */
	uint8_t bytes[OWNED_LEN_MAX]; /* the request for our ports */
	size_t len; /* 0: none yet */
	/* the store's thread */
	uint64_t look_at; /* of .side.cycles() */
	bool asking;
	char gone[OWNED_NAME_MAX]; /* whose records are to be removed; "": ours are to be stored */
	uint64_t taken; /* GUID of a port that is another's, which was logged */
	struct sa_write write;
	uint8_t asked[OWNED_LEN_MAX];
};

void
own_wish_set(struct own_wish *o, const uint8_t *bytes, size_t len)
{
	pthread_mutex_lock(&o->lock);
	memcpy(o->bytes, bytes, len);
	o->len = len;
	pthread_mutex_unlock(&o->lock);
}

struct own_wish *
own_wish_create(const struct store_fleet *side)
{
	struct own_wish *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->side = *side;
	pthread_mutex_init(&o->lock, NULL);
	return o;
}

void
own_wish_destroy(struct own_wish *o)
{
	if (o == NULL)
		return;
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* --- the store's thread --- */

static const struct store_version *
wish_view(const struct own_wish *o)
{
	return store_current(store_reader(o->side.store, o->side.reader));
}

/* @return length of the request for our ports, in .asked; 0: they are stored */
static size_t
wish_own(struct own_wish *o)
{
	uint64_t taken = 0;
	size_t len;

	pthread_mutex_lock(&o->lock);
	len = o->len;
	memcpy(o->asked, o->bytes, len);
	pthread_mutex_unlock(&o->lock);
	if (len > 0 && !owned_differs(wish_view(o), o->asked, len, &taken))
		len = 0;
	if (taken != 0 && taken != o->taken)
		ENGINE_LOG(WARNING,
			"the SA's database has the port GUID 0x%016" PRIx64
			" of this appliance for another port, which an operator has imported or another appliance has: the records of ours are not stored",
			taken);
	o->taken = taken;
	return len;
}

/* @return length of the leader's request to remove what an appliance had that has gone; 0: none */
static size_t
wish_of_gone(struct own_wish *o)
{
	const struct store_record *r;
	struct store_cursor c;

	if (!fleet_leads(o->side.fleet))
		return 0;
	store_seek(&c, wish_view(o), SA_TABLE_NODE, 0);
	while ((r = store_next(&c, NULL)) != NULL)
		if (owner_of(r, o->gone) && !fleet_is_member(o->side.fleet, o->gone))
			return owned_put(o->gone, NULL, 0, 0, o->asked);
	return 0;
}

bool
own_wish_run(struct own_wish *o, struct store_forward *forward, uint64_t lease_now)
{
	uint64_t now = o->side.cycles();
	struct sa_write *w = &o->write;
	size_t len;

	if (o->asking || now < o->look_at || !fleet_connected(o->side.fleet))
		return false;
	o->look_at = now + o->side.hz / 1000 * LOOK_MS;
	memset(w, 0, sizeof(*w));
	o->gone[0] = '\0';
	len = wish_own(o);
	if (len == 0) {
		len = wish_of_gone(o);
		w->only_now = true; /* later the appliance may be back */
	}
	if (len == 0)
		return false;
	w->kind = WRITE_OWNED;
	w->version = SA_V2;
	w->type = sa_record_type(SA_NODE);
	w->forwarded = o->asked;
	w->data_len = (uint32_t)len;
	put_be64(w->reply + MAD_OFF_TID, o->side.random()); /* each request is one of its own */
	o->asking = true;
	store_forward_batch(forward, &w, 1, lease_now);
	return true;
}

bool
own_wish_handed_back(struct own_wish *o, const struct sa_write *write)
{
	if (o == NULL || write != &o->write)
		return false;
	if (o->gone[0] == '\0' && write->status != MAD_STATUS_OK)
		ENGINE_LOG(INFO, "records of own ports are not stored yet: status 0x%04x",
			write->status);
	else if (write->status != MAD_STATUS_OK)
		ENGINE_LOG(INFO,
			"%s has gone: its ports' records are not removed yet: status 0x%04x",
			o->gone, write->status);
	else if (o->gone[0] != '\0')
		ENGINE_LOG(NOTICE, "%s has gone: its ports' records are removed", o->gone);
	o->asking = false;
	return true;
}
