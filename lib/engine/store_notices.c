/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Notices in a fleet. The events of a transaction are one notice in etcd. The leader's store thread
 * gives them to worker 0, numbered, and removes the notice when all of its numbers have come back.
 * If another appliance leads meanwhile, all that is under way is forgotten: it tells them again.
 */

#include <stdlib.h>
#include <sys/queue.h>

#include "base/siphash.h"
#include "engine/store_fleet.h"
#include "engine/store_notices.h"
#include "engine/worker.h"
#include "sa/forward.h"

#define FORGET_WAIT_MS 500 /* after a failed removal */

/* A notice that worker 0 reports. */
struct telling {
	TAILQ_ENTRY(telling) next;
	struct fleet_notice *notice;
	uint64_t first; /* number of its first event */
	unsigned int num;
	unsigned int posted;
	unsigned int told;
};

struct store_notices {
	struct store_fleet side;
	uint64_t lead; /* fleet_lead() at the last look */
	uint64_t number; /* of the next event */
	uint64_t forget_at; /* TSC */
	TAILQ_HEAD(, telling) telling;
	struct telling *posting; /* not all of its events are posted; NULL: none */
	struct sa_event event[WRITE_EVENTS]; /* of .posting */
	uint8_t kept[FORWARD_EVENTS_MAX]; /* for the transaction in progress */
};

static bool
keep_notice(void *arg, const struct sa_event *events, unsigned int n)
{
	struct store_notices *sn = arg;
	size_t len = 0;

	if (n > 0)
		len = forward_put_events(events, n, sn->kept);
	return fleet_keep_notice(sn->side.fleet, sn->kept, len);
}

static void
telling_ends(struct store_notices *sn, struct telling *t)
{
	TAILQ_REMOVE(&sn->telling, t, next);
	if (t == sn->posting)
		sn->posting = NULL;
	free(t);
}

/* --- another lead --- */

static void
look_who_leads(struct store_notices *sn)
{
	uint64_t lead = fleet_lead(sn->side.fleet);
	struct telling *t;

	if (lead == sn->lead)
		return;
	sn->lead = lead;
	sa_events_forget(sn->side.sa, sn->number);
	while ((t = TAILQ_FIRST(&sn->telling)) != NULL) {
		fleet_notice_untold(sn->side.fleet, t->notice);
		telling_ends(sn, t);
	}
}

/* --- from etcd to worker 0 --- */

/* @return false: there is none, or no memory for it */
static bool
begin_telling(struct store_notices *sn)
{
	struct fleet *f = sn->side.fleet;
	struct telling *t = calloc(1, sizeof(*t));
	int num;

	if (t == NULL)
		return false;
	t->notice = fleet_take_notice(f);
	if (t->notice == NULL) {
		free(t);
		return false;
	}
	num = forward_get_events(sn->event, t->notice->bytes, t->notice->len);
	if (num <= 0) {
		ENGINE_LOG(WARNING, "a notice in etcd is not understood and is removed");
		fleet_notice_told(f, t->notice);
		free(t);
		return true;
	}
	t->first = sn->number;
	t->num = (unsigned int)num;
	sn->number += t->num;
	sn->posting = t;
	TAILQ_INSERT_TAIL(&sn->telling, t, next);
	return true;
}

static void
post_next_event(struct store_notices *sn)
{
	struct telling *t = sn->posting;
	struct sa_event *e = &sn->event[t->posted];
	uint64_t word = t->posted;

	e->number = t->first + t->posted;
	e->secret = siphash_words(t->notice->id, &word, 1);
	sa_event_post(sn->side.sa, e);
	if (++t->posted == t->num)
		sn->posting = NULL;
}

static bool
post_events_of_notices(struct store_notices *sn)
{
	bool any = false;

	if (sn->lead == 0)
		return false;
	while (sa_events_room(sn->side.sa) > 0 && (sn->posting != NULL || begin_telling(sn))) {
		any = true;
		if (sn->posting != NULL)
			post_next_event(sn);
	}
	if (any)
		sn->side.wake_reporter(sn->side.arg);
	return any;
}

/* --- from worker 0 to etcd --- */

static bool
take_told(struct store_notices *sn)
{
	struct telling *t;
	uint64_t number;
	bool any = false;

	while ((number = sa_event_told(sn->side.sa)) != 0) {
		any = true;
		TAILQ_FOREACH(t, &sn->telling, next)
			if (number - t->first < t->num)
				break;
		if (t == NULL || ++t->told < t->num)
			continue;
		fleet_notice_told(sn->side.fleet, t->notice);
		telling_ends(sn, t);
	}
	return any;
}

static bool
forget_told(struct store_notices *sn)
{
	uint64_t now = sn->side.cycles();
	int rc;

	if (now < sn->forget_at)
		return false;
	rc = fleet_forget_notices(sn->side.fleet, NULL);
	if (rc < 0)
		sn->forget_at = now + sn->side.hz / 1000 * FORGET_WAIT_MS;
	return rc > 0;
}

bool
store_notices_run(struct store_notices *sn)
{
	bool work;

	look_who_leads(sn);
	work = take_told(sn);
	work |= post_events_of_notices(sn);
	work |= forget_told(sn);
	return work;
}

struct store_notices *
store_notices_create(const struct store_fleet *side)
{
	struct store_notices *sn = calloc(1, sizeof(*sn));

	if (sn == NULL)
		return NULL;
	sn->side = *side;
	sn->number = 1;
	TAILQ_INIT(&sn->telling);
	sa_keep_events(side->sa, &(struct sa_keeper){ keep_notice, sn });
	return sn;
}

void
store_notices_destroy(struct store_notices *sn)
{
	struct telling *t;

	if (sn == NULL)
		return;
	while ((t = TAILQ_FIRST(&sn->telling)) != NULL)
		telling_ends(sn, t);
	free(sn);
}
