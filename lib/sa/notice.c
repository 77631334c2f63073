/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Report(Notice): what happened, told to those who subscribed, until they answer. Events come from
 * the store's thread by a ring to worker 0, which walks the subscriptions, a few at a time, and
 * keeps within its bound of Reports under way and of Reports per interval.
 */

#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define GENERIC      0x80
#define ANY_LID      0xFFFF
#define ANY_TYPE     0xFFFF
#define ANY_TRAP     0xFFFF
#define ANY_PRODUCER 0xFFFFFF

struct sa_report {
	struct sa_worker *w;
	struct sa_report *next_free;
	mad_handle handle;
	bool busy;
};

struct sa_notices {
	struct sa_report *reports;
	struct sa_report *free_reports;
	struct token_bucket rate;
	uint8_t resp_time;
	bool telling; /* .event */
	struct sa_event event;
	uint32_t next_rid; /* of the subscription to look at next */
};

/* --- the ring --- */

void
sa_events_lost(struct sa *sa, unsigned int n)
{
	__atomic_store_n(&sa->events.lost, sa->events.lost + n, __ATOMIC_RELAXED);
}

uint64_t
sa_events_lost_count(const struct sa *sa)
{
	return __atomic_load_n(&sa->events.lost, __ATOMIC_RELAXED);
}

void
sa_event_post(struct sa *sa, const struct sa_event *e)
{
	struct sa_event_ring *r = &sa->events;
	uint32_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);

	if (r->head - tail == SA_EVENTS) {
		sa_events_lost(sa, 1);
		return;
	}
	r->event[r->head % SA_EVENTS] = *e;
	__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
}

static bool
ring_empty(const struct sa_worker *w)
{
	const struct sa_event_ring *r = &w->sa->events;

	return w->id != 0 || __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == r->tail;
}

static bool
next_event(struct sa_worker *w)
{
	struct sa_event_ring *r = &w->sa->events;

	if (ring_empty(w))
		return false;
	w->notices->event = r->event[r->tail % SA_EVENTS];
	__atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
	w->notices->telling = true;
	w->notices->next_rid = 0;
	return true;
}

/* --- set-up --- */

/* The smallest RespTimeValue that is no shorter than the interval (A5). */
static uint8_t
resp_time_of(uint32_t ms)
{
	uint8_t code = 0;

	while (code < 31 && (UINT64_C(4096) << code) < ms * UINT64_C(1000000))
		code++;
	return code;
}

struct sa_notices *
sa_notices_create(struct sa_worker *w)
{
	const struct sa_config *c = w->config;
	struct sa_notices *n = mem_zalloc(c->alloc, sizeof(*n), 64);
	uint32_t i;

	if (n == NULL)
		return NULL;
	n->reports = mem_zalloc(c->alloc, ((size_t)c->notices_max + 1) * sizeof(*n->reports), 64);
	if (n->reports == NULL) {
		mem_free(c->alloc, n);
		return NULL;
	}
	for (i = 0; i < c->notices_max; i++) {
		n->reports[i].w = w;
		n->reports[i].next_free = n->free_reports;
		n->free_reports = &n->reports[i];
	}
	n->resp_time = resp_time_of(c->notice_interval_ms);
	if (c->notices_max > 0)
		token_bucket_init(&n->rate,
			c->hz * c->notice_interval_ms / 1000 / c->notices_max, c->notices_max);
	return n;
}

void
sa_notices_destroy(struct sa_worker *w)
{
	struct sa_notices *n = w->notices;
	uint32_t i;

	if (n == NULL)
		return;
	for (i = 0; i < w->config->notices_max; i++)
		if (n->reports[i].busy)
			mad_cancel(w->mad, n->reports[i].handle, 0);
	mem_free(w->config->alloc, n->reports);
	mem_free(w->config->alloc, n);
	w->notices = NULL;
}

/* --- who is told --- */

/* Does an InformInfo ask for this trap, of this SA? */
static bool
asks_for(const uint8_t *info, const struct sa_event *e, const struct subscriber *s)
{
	static const uint8_t any_gid[16];
	uint16_t type = get_be16(info + INFO_OFF_TYPE), trap = get_be16(info + INFO_OFF_TRAP);
	uint16_t begin = get_be16(info + INFO_OFF_LID_BEGIN);
	uint16_t end = get_be16(info + INFO_OFF_LID_END), issuer = s->peer.av.slid;
	uint32_t producer = get_be24(info + INFO_OFF_PRODUCER - 1);

	if (info[INFO_OFF_GENERIC] != 1
		|| (type != ANY_TYPE && type != NOTICE_SUBNET_MANAGEMENT)
		|| (trap != ANY_TRAP && trap != e->trap)
		|| (producer != ANY_PRODUCER && producer != NOTICE_CLASS_MANAGER))
		return false;
	/* a GID, if there is one, stands instead of the LIDs: of the issuer or of the port told of */
	if (memcmp(info + INFO_OFF_GID, any_gid, 16) != 0)
		return memcmp(info + INFO_OFF_GID, e->gid.raw, 16) == 0
			|| memcmp(info + INFO_OFF_GID, s->peer.av.sgid.raw, 16) == 0;
	return begin == ANY_LID || begin == 0
		|| (issuer >= begin && (issuer <= end || end == 0));
}

/* Only what the subscriber may see: its partitions' groups, its partitions' ports. */
static bool
may_know(struct sa_worker *w, const uint8_t *gid, const struct sa_event *e,
	const struct subscriber *s)
{
	const struct store_version *v = fabric_version(w->fabric);
	struct requester who = { .stranger = false };
	const struct port_view *p;

	if (s->trusted)
		return true;
	p = fabric_gid(w->fabric, gid);
	if (p != NULL) {
		who.port = *p;
	} else {
		who.stranger = true;
		port_view_stranger(&who.port);
	}
	if (e->pkey != 0)
		return port_member(v, &who.port, e->pkey) != 0;
	p = fabric_gid(w->fabric, e->gid.raw);
	return p == NULL || sa_shares(v, &who, p); /* one that has gone has no partition left */
}

/* --- a Report --- */

static void
reported(void *arg, const struct mad_result *result)
{
	struct sa_report *r = arg;
	struct sa_worker *w = r->w;

	if (result->end == MAD_END_OK || result->end == MAD_END_STATUS)
		w->counters.reports_answered++;
	else
		w->counters.reports_given_up++;
	r->busy = false;
	r->next_free = w->notices->free_reports;
	w->notices->free_reports = r;
}

static void
fill_report(uint8_t *mad, const struct sa_event *e, const struct subscriber *s)
{
	uint8_t *notice = mad + (s->class_version == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA);

	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
	mad[MAD_OFF_CLASS_VERSION] = s->class_version;
	mad[MAD_OFF_METHOD] = MAD_REPORT;
	put_be16(mad + MAD_OFF_ATTRIBUTE, SA_NOTICE);
	notice[NOTICE_OFF_TYPE] = GENERIC | NOTICE_SUBNET_MANAGEMENT;
	notice[NOTICE_OFF_PRODUCER + 2] = NOTICE_CLASS_MANAGER;
	put_be16(notice + NOTICE_OFF_TRAP, e->trap);
	put_be16(notice + NOTICE_OFF_ISSUER_LID, s->peer.av.slid);
	memcpy(notice + NOTICE_OFF_GID, e->gid.raw, 16);
	memcpy(notice + NOTICE_OFF_ISSUER_GID, s->peer.av.sgid.raw, 16);
}

static void
report(struct sa_worker *w, const struct subscriber *s, uint64_t now)
{
	struct sa_notices *n = w->notices;
	struct sa_report *r = n->free_reports;
	uint8_t mad[MAD_LEN];
	struct mad_call call = { .to = s->peer, .protocol = MAD_SINGLE, .mad = mad,
		.resp_time = n->resp_time, .retries = w->config->notice_retries,
		.data_offset = s->class_version == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA,
		.taker = { .arg = r, .done = reported } };

	fill_report(mad, &n->event, s);
	n->free_reports = r->next_free;
	r->busy = true;
	if (mad_call(w->mad, &call, now, &r->handle) == 0) {
		w->counters.reports_sent++;
		return;
	}
	r->busy = false;
	n->free_reports = r;
	w->counters.reports_given_up++;
}

/*
 * The next subscription. @return false: there is none, or it must wait for its turn
 */
static bool
tell_next(struct sa_worker *w, uint64_t now)
{
	const struct store_version *v = fabric_version(w->fabric);
	struct sa_notices *n = w->notices;
	const struct store_record *r;
	struct store_cursor c;
	struct subscriber s;

	store_seek(&c, v, SA_TABLE_INFORM, store_rank(v, SA_TABLE_INFORM, n->next_rid));
	r = store_next(&c, NULL);
	if (r == NULL || r->rid == UINT32_MAX) {
		n->telling = false;
		return true;
	}
	if (subscriber_of(r, &s) && asks_for(r->bytes + INFORM_OFF_INFO, &n->event, &s)
		&& may_know(w, r->bytes + INFORM_OFF_GID, &n->event, &s)) {
		if (!token_bucket_take(&n->rate, now))
			return false;
		report(w, &s, now);
	}
	n->next_rid = r->rid + 1;
	return true;
}

bool
sa_notices_pending(const struct sa_worker *w)
{
	return w->notices->free_reports != NULL && (w->notices->telling || !ring_empty(w));
}

unsigned int
sa_notices_run(struct sa_worker *w, uint64_t now, unsigned int budget)
{
	unsigned int done = 0;

	while (done < budget && sa_notices_pending(w)) {
		if (!w->notices->telling)
			next_event(w);
		if (!tell_next(w, now))
			break;
		done++;
	}
	return done;
}
