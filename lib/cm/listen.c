/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Listeners by service ID and mask: a short list, masks with more bits first. */

#include <errno.h>

#include "cm/private.h"

static struct cm_listener *
listener_exact(struct cm *cm, uint64_t service_id, uint64_t mask)
{
	uint32_t i;

	for (i = 0; i < cm->num_listeners; i++)
		if (cm->listeners[i].mask == mask &&
			cm->listeners[i].service_id == (service_id & mask))
			return &cm->listeners[i];
	return NULL;
}

struct cm_listener *
cm_listener_find(struct cm *cm, uint64_t service_id)
{
	uint32_t i;

	for (i = 0; i < cm->num_listeners; i++)
		if (cm->listeners[i].service_id == (service_id & cm->listeners[i].mask))
			return &cm->listeners[i];
	return NULL;
}

int
cm_listen(struct cm *cm, uint64_t service_id, uint64_t mask, const struct cm_user *user,
	void *listener)
{
	uint32_t i = cm->num_listeners;

	RTE_ASSERT(user != NULL);
	if (listener_exact(cm, service_id, mask) != NULL)
		return -EEXIST;
	if (i == cm->limits.max_listeners)
		return -ENOSPC;
	for (; i > 0 &&
		__builtin_popcountll(cm->listeners[i - 1].mask) < __builtin_popcountll(mask);
		i--)
		cm->listeners[i] = cm->listeners[i - 1];
	cm->listeners[i] = (struct cm_listener){
		.service_id = service_id & mask,
		.mask = mask,
		.ops = user,
		.listener = listener,
	};
	cm->num_listeners++;
	return 0;
}

/* Half-open connections that have no user yet would need the listener later. */
static void
end_unseated(struct cm *cm, const struct cm_listener *l)
{
	struct share_item *item, *next;
	struct cm_conn *c;

	for (item = TAILQ_FIRST(&cm->everyone.items); item != NULL; item = next) {
		next = TAILQ_NEXT(item, link);
		c = CM_OF_ITEM(item, CM_EVERYONE);
		if (c->seat_ops == l->ops && c->listener == l->listener)
			cm_disconnect(cm, c->id, NULL, 0, c->opened);
	}
}

int
cm_unlisten(struct cm *cm, uint64_t service_id, uint64_t mask)
{
	struct cm_listener *l = listener_exact(cm, service_id, mask);

	if (l == NULL)
		return -ENOENT;
	end_unseated(cm, l);
	cm->num_listeners--;
	for (; l < &cm->listeners[cm->num_listeners]; l++)
		l[0] = l[1];
	return 0;
}

int
cm_listen_ud(struct cm *cm, uint64_t service_id, uint64_t mask, uint32_t qpn, uint32_t qkey)
{
	struct cm_listener *l = listener_exact(cm, service_id, mask);

	if (l == NULL)
		return -ENOENT;
	l->qpn_ud = qpn;
	l->qkey_ud = qkey;
	return 0;
}
