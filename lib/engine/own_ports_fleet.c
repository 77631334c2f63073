/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Records of our own RoCE ports in a fleet. The control thread says what they are; the store's
 * thread compares that with the database now and then, and asks the leader for what differs, as for
 * a client's change. So they come back if they were removed while we were cut off. The leader also
 * removes the records of appliances whose lease has ended.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_random.h>

#include "engine/own_ports_fleet.h"
#include "engine/store_forward.h"
#include "engine/worker.h"
#include "sa/owned.h"
#include "sa/write.h"
#include "wire/bytes.h"

#define LOOK_MS 500

struct own_wish {
	pthread_mutex_t lock; /* protects the next two */
	uint8_t bytes[OWNED_LEN_MAX]; /* the request for our ports */
	size_t len; /* 0: none yet */
	const struct port_attr *seen[LINK_PORTS_MAX]; /* control thread: as of .bytes */
	/* the store's thread */
	uint64_t look_at; /* TSC */
	bool asking;
	uint64_t taken; /* GUID of a port that is another's, which was logged */
	struct sa_write write;
	uint8_t asked[OWNED_LEN_MAX];
};

/* --- control thread --- */

void
own_wish_follow(struct engine *e)
{
	struct own_wish *o = e->own_wish;
	uint8_t bytes[OWNED_LEN_MAX];
	bool changed = false;
	unsigned int i;
	size_t len;

	if (o == NULL)
		return;
	for (i = 0; i < link_num_ports(e->link); i++) {
		const struct port_attr *attr = link_port_attr(e->link, i);

		changed |= attr != o->seen[i];
		o->seen[i] = attr;
	}
	if (!changed)
		return;
	len = own_ports_request(e, bytes);
	pthread_mutex_lock(&o->lock);
	memcpy(o->bytes, bytes, len);
	o->len = len;
	pthread_mutex_unlock(&o->lock);
}

int
own_wish_create(struct engine *e)
{
	struct own_wish *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return -ENOMEM;
	pthread_mutex_init(&o->lock, NULL);
	e->own_wish = o;
	return 0;
}

void
own_wish_destroy(struct engine *e)
{
	if (e->own_wish == NULL)
		return;
	pthread_mutex_destroy(&e->own_wish->lock);
	free(e->own_wish);
	e->own_wish = NULL;
}

/* --- the store's thread --- */

static const struct store_version *
wish_view(const struct engine *e)
{
	return store_current(store_reader(e->store, e->num_workers));
}

/* @return length of the request for our ports, in .asked; 0: they are stored */
static size_t
wish_own(struct engine *e)
{
	struct own_wish *o = e->own_wish;
	uint64_t taken = 0;
	size_t len;

	pthread_mutex_lock(&o->lock);
	len = o->len;
	memcpy(o->asked, o->bytes, len);
	pthread_mutex_unlock(&o->lock);
	if (len > 0 && !owned_differs(wish_view(e), o->asked, len, &taken))
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
wish_of_gone(struct engine *e)
{
	const struct store_record *r;
	char name[OWNED_NAME_MAX];
	struct store_cursor c;

	if (!fleet_leads(e->fleet))
		return 0;
	store_seek(&c, wish_view(e), SA_TABLE_NODE, 0);
	while ((r = store_next(&c, NULL)) != NULL)
		if (owner_of(r, name) && !fleet_is_member(e->fleet, name)) {
			ENGINE_LOG(NOTICE, "%s has gone: its ports' records are removed", name);
			return owned_put(name, NULL, 0, e->own_wish->asked);
		}
	return 0;
}

bool
own_wish_run(struct engine *e, struct store_forward *forward, uint64_t lease_now)
{
	uint64_t now = rte_get_tsc_cycles();
	struct own_wish *o = e->own_wish;
	struct sa_write *w = &o->write;
	size_t len;

	if (o->asking || now < o->look_at || !fleet_connected(e->fleet))
		return false;
	o->look_at = now + e->hz / 1000 * LOOK_MS;
	len = wish_own(e);
	if (len == 0)
		len = wish_of_gone(e);
	if (len == 0)
		return false;
	memset(w, 0, sizeof(*w));
	w->kind = WRITE_OWNED;
	w->version = SA_V2;
	w->type = sa_record_type(SA_NODE);
	w->forwarded = o->asked;
	w->data_len = (uint32_t)len;
	put_be64(w->reply + MAD_OFF_TID, rte_rand()); /* each request is one of its own */
	o->asking = true;
	store_forward_batch(forward, &w, 1, lease_now);
	return true;
}

bool
own_wish_handed_back(struct engine *e, const struct sa_write *write)
{
	struct own_wish *o = e->own_wish;

	if (o == NULL || write != &o->write)
		return false;
	if (write->status != MAD_STATUS_OK)
		ENGINE_LOG(INFO, "records of own ports are not stored yet: status 0x%04x",
			write->status);
	o->asking = false;
	return true;
}
