/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Who leads, as the fleet's thread learns it. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_transport.h"
#include "store/fleet_private.h"

RTE_LOG_REGISTER(fleet_logtype, polca.fleet, INFO);

const char *
fleet_name(const struct fleet *f)
{
	return f->config.name;
}

bool
fleet_leads(const struct fleet *f)
{
	return __atomic_load_n(&f->lead, __ATOMIC_ACQUIRE) != 0;
}

bool
fleet_leads_alone(const struct fleet *f)
{
	uint64_t end = __atomic_load_n(&f->lease_end, __ATOMIC_ACQUIRE);

	return fleet_leads(f) && etcd_now_ms() + f->config.lease_s * 125 < end;
}

bool
fleet_is_member(struct fleet *f, const char *name)
{
	bool found = false;
	size_t look, i;

	pthread_mutex_lock(&f->lock);
	for (look = 0; look < 2; look++)
		for (i = 0; i < f->names[look].n && !found; i++)
			found = strcmp(f->names[look].at[i], name) == 0;
	pthread_mutex_unlock(&f->lock);
	return found;
}

void
fleet_note_joined(struct fleet *f, const char *name)
{
	struct fleet_names *now = &f->names[0];
	char(*more)[FLEET_NAME_MAX];

	if (fleet_is_member(f, name))
		return;
	pthread_mutex_lock(&f->lock);
	more = reallocarray(now->at, now->n + 1, sizeof(*more));
	if (more != NULL) {
		now->at = more;
		snprintf(more[now->n++], FLEET_NAME_MAX, "%s", name);
	}
	pthread_mutex_unlock(&f->lock);
}

void
fleet_note_members(struct fleet *f, const struct etcd_kvs *kvs, const char *prefix)
{
	struct fleet_names *now = &f->names[0], *before = &f->names[1];
	char(*room)[FLEET_NAME_MAX] = calloc(kvs->n + 1, sizeof(*room));
	size_t i, len = strlen(prefix);

	if (room == NULL)
		return; /* the members stay as they were */
	free(before->at);
	*before = *now;
	*now = (struct fleet_names){ .at = room };
	for (i = 0; i < kvs->n; i++)
		if (strncmp(kvs->at[i].key, prefix, len) == 0)
			snprintf(room[now->n++], FLEET_NAME_MAX, "%s", kvs->at[i].key + len);
}

bool
fleet_connected(const struct fleet *f)
{
	return !__atomic_load_n(&f->away, __ATOMIC_ACQUIRE);
}

void
fleet_look_now(struct fleet *f)
{
	__atomic_store_n(&f->look_now, true, __ATOMIC_RELEASE);
	etcd_client_wake(f->session);
}

void
fleet_is_away(struct fleet *f)
{
	__atomic_store_n(&f->away, true, __ATOMIC_RELEASE);
	fleet_look_now(f);
}

enum fleet_etcd_state
fleet_etcd_state(const struct fleet *f)
{
	if (!fleet_connected(f))
		return __atomic_load_n(&f->trouble, __ATOMIC_ACQUIRE);
	return fleet_is_full(f) ? FLEET_ETCD_FULL : FLEET_ETCD_ANSWERS;
}

const char *const fleet_state_names[] = {
	[FLEET_ETCD_AWAY] = "away",
	[FLEET_ETCD_ANSWERS] = "answers",
	[FLEET_ETCD_FULL] = "full",
	[FLEET_ETCD_REFUSES] = "refuses",
	[FLEET_ETCD_NOT_ASKED] = "not asked",
	[FLEET_ETCD_LEFT_ALONE] = "left alone",
	[FLEET_ETCD_NOT_FOLLOWED] = "not followed",
};

int
fleet_not_served(struct fleet *f, struct error *err)
{
	char reason[FLEET_TEXT_MAX];

	if (fleet_etcd_state(f) != FLEET_ETCD_REFUSES)
		return error_set(err, EAGAIN, "etcd does not answer: no change is possible");
	pthread_mutex_lock(&f->lock);
	strcpy(reason, f->status.reason);
	pthread_mutex_unlock(&f->lock);
	return error_set(err, EAGAIN, "etcd refuses this appliance: no change is possible (%s)",
		reason);
}

bool
fleet_is_full(const struct fleet *f)
{
	return __atomic_load_n(&f->full, __ATOMIC_ACQUIRE);
}

void
fleet_note_full(struct fleet *f, bool full)
{
	if (__atomic_exchange_n(&f->full, full, __ATOMIC_ACQ_REL) == full)
		return;
	if (full)
		FLEET_LOG(WARNING,
			"etcd has no room, queries go on and changes are refused: its quota (--quota-backend-bytes) is exceeded");
	else
		FLEET_LOG(NOTICE, "etcd has room again");
}

void
fleet_step_down(struct fleet *f, const char *why)
{
	f->campaigned = 0;
	if (__atomic_exchange_n(&f->lead, 0, __ATOMIC_ACQ_REL) != 0)
		FLEET_LOG(WARNING, "%s does not lead any more: %s", f->config.name, why);
}

void
fleet_learn_leader(struct fleet *f, const struct etcd_kv *kv, uint64_t revision)
{
	char name[FLEET_NAME_MAX] = "";
	bool changed, ours;

	if (revision < f->leader_seen)
		return;
	f->leader_seen = revision;
	f->leader_created = kv != NULL ? kv->create_revision : 0;
	if (kv != NULL)
		snprintf(name, sizeof(name), "%s", (const char *)kv->value);
	pthread_mutex_lock(&f->lock);
	changed = strcmp(name, f->status.leader) != 0;
	strcpy(f->status.leader, name);
	if (changed && name[0] != '\0')
		f->status.leader_changes++;
	pthread_mutex_unlock(&f->lock);
	ours = kv != NULL && f->campaigned != 0 && kv->create_revision == f->campaigned;
	if (changed && name[0] != '\0')
		FLEET_LOG(NOTICE, "%s leads", name);
	else if (changed)
		FLEET_LOG(NOTICE, "nobody leads");
	if (!ours && f->campaigned != 0 && revision >= f->campaigned)
		fleet_step_down(f, name[0] != '\0' ? "another one does" : "its lease has ended");
	if (kv == NULL)
		f->look_at = 0; /* compete for it */
}
