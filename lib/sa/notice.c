/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Report(Notice): send what happened to its subscribers, and repeat until they answer. Events come
 * from the store's thread by a ring to worker 0, traps from the subnet manager's port, which is
 * worker 0's, too. Worker 0 walks the subscriptions, a few at a time. Anti-flood: Reports in
 * progress and Reports per interval are limited.
 */

#include <errno.h>
#include <string.h>

#include "base/siphash.h"
#include "sa/layout.h"
#include "sa/notice_budget.h"
#include "sa/server.h"
#include "wire/bytes.h"

#define GENERIC      0x80
#define ANY_LID      0xFFFF
#define ANY_TYPE     0xFFFF
#define ANY_TRAP     0xFFFF
#define ANY_PRODUCER 0xFFFFFF

#define TRAPS 32 /* traps that wait, a power of two */

/* What is reported. */
struct matter {
	uint16_t trap;
	uint16_t type;
	uint16_t pkey; /* the group's */
	uint32_t producer;
	uint8_t gid[16]; /* the group or port that the notice is about */
	/*
	 * true: a trap of another issuer; false: issued by this SA, under the address that a
	 * subscriber uses
	 */
	bool is_trap;
	uint16_t issuer_lid;
	uint8_t notice[NOTICE_OFF_ISSUER_GID];
};

/* An event of a fleet: its number goes back when its last Report has ended. */
struct kept_event {
	struct kept_event *next_free;
	uint64_t number;
	uint32_t reports; /* in progress */
};

struct sa_report {
	struct sa_worker *w;
	struct kept_event *kept; /* that it reports, or NULL */
	struct sa_report *next_free;
	struct notice_budget *budget;
	mad_handle handle;
	bool busy;
};

struct sa_notices {
	struct sa_report *reports;
	struct sa_report *free_reports;
	struct token_bucket rate;
	struct notice_budgets *budgets; /* worker 0 only: no other one sends Reports */
	uint8_t resp_time;
	bool telling; /* .matter is being reported */
	struct matter matter;
	struct kept_event *kept; /* the event that .matter is, or NULL */
	uint64_t secret; /* kept: TIDs of its Reports */
	struct kept_event *kept_pool;
	struct kept_event *free_kept;
	uint64_t forgotten; /* kept events with smaller numbers are not reported */
	uint8_t trap[TRAPS][NOTICE_OFF_ISSUER_GID];
	uint32_t trap_head;
	uint32_t trap_tail;
	bool trap_told; /* the last matter was a trap: take an event next, if there is one */
	uint32_t next_rid; /* RID of the subscription to look at next */
};

/* --- events and traps --- */

static bool
ring_empty(const struct sa_worker *w)
{
	const struct sa_event_ring *r = &w->sa->events;

	return w->id != 0 || __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == r->tail;
}

static bool
no_traps(const struct sa_notices *n)
{
	return n->trap_head == n->trap_tail;
}

/* In a fleet, whoever leads reports it. */
static void
pass_trap_on(struct sa_worker *w, const uint8_t *notice)
{
	struct sa_write *write = w->writes_free;
	struct sa_write *more = write != NULL ? write->next_free : NULL;

	if (write == NULL) {
		sa_events_lost(w->sa, 1);
		return;
	}
	*write = (struct sa_write){
		.w = w,
		.next_free = more,
		.kind = WRITE_NOTICE,
		.version = SA_V2,
		.type = sa_record_type(SA_NOTICE),
	};
	memcpy(write->rec, notice, SA_TRAP_LEN);
	write->reply[MAD_OFF_METHOD] = MAD_TRAP;
	put_be16(write->reply + MAD_OFF_ATTRIBUTE, SA_NOTICE);
	put_be64(write->reply + MAD_OFF_TID, rng_u64(w->config->rng));
	if (!w->submit(w->submit_arg, write)) {
		sa_events_lost(w->sa, 1);
		return;
	}
	w->writes_free = more;
	w->counters.writes++;
}

uint16_t
write_notice(struct write_batch *b, struct sa_write *w)
{
	write_trap_event(b, w->rec);
	return MAD_STATUS_OK;
}

void
sa_trap(struct sa_worker *w, const uint8_t *notice)
{
	struct sa_notices *n = w->notices;

	if (!(notice[NOTICE_OFF_TYPE] & GENERIC))
		return; /* a vendor's trap: we do not keep subscriptions to those apart */
	if (w->sa->keeper.keep != NULL) {
		pass_trap_on(w, notice);
		return;
	}
	if (n->trap_head - n->trap_tail == TRAPS) {
		sa_events_lost(w->sa, 1);
		return;
	}
	memcpy(n->trap[n->trap_head++ % TRAPS], notice, NOTICE_OFF_ISSUER_GID);
}

/* The issuer's GID stays zero if the store does not know its LID. */
static void
matter_of_trap(struct sa_worker *w, struct matter *m, const uint8_t *notice)
{
	const struct port_view *p;

	*m = (struct matter){
		.is_trap = true,
		.trap = get_be16(notice + NOTICE_OFF_TRAP),
		.type = notice[NOTICE_OFF_TYPE] & (GENERIC - 1),
		.producer = get_be24(notice + NOTICE_OFF_PRODUCER - 1),
		.issuer_lid = get_be16(notice + NOTICE_OFF_ISSUER_LID),
	};
	memcpy(m->notice, notice, sizeof(m->notice));
	fabric_sync(w->fabric);
	p = fabric_lid(w->fabric, m->issuer_lid);
	if (p == NULL)
		return;
	put_be64(m->gid, w->config->gid_prefix);
	put_be64(m->gid + 8, p->guid);
}

static void
matter_of_event(struct sa_worker *w, struct matter *m, const struct sa_event *e)
{
	if (e->is_trap) {
		matter_of_trap(w, m, e->notice);
		return;
	}
	*m = (struct matter){
		.trap = e->trap,
		.type = NOTICE_SUBNET_MANAGEMENT,
		.pkey = e->pkey,
		.producer = NOTICE_CLASS_MANAGER,
	};
	memcpy(m->gid, e->gid.raw, sizeof(m->gid));
}

static void
notice_take_event(struct sa_worker *w)
{
	struct sa_notices *n = w->notices;
	struct sa_event e;

	if (!sa_event_take(w->sa, &e))
		return;
	if (e.number != 0 && e.number < n->forgotten) {
		sa_event_was_told(w->sa, e.number);
		return;
	}
	matter_of_event(w, &n->matter, &e);
	n->secret = e.secret;
	n->kept = NULL;
	n->telling = true;
	if (e.number == 0)
		return;
	/* there is one more than Reports, and each one in use has a Report or is being told */
	RTE_ASSERT(n->free_kept != NULL);
	n->kept = n->free_kept;
	n->free_kept = n->kept->next_free;
	*n->kept = (struct kept_event){ .number = e.number };
}

static void
notice_take_trap(struct sa_worker *w)
{
	struct sa_notices *n = w->notices;

	matter_of_trap(w, &n->matter, n->trap[n->trap_tail++ % TRAPS]);
	n->kept = NULL;
	n->telling = true;
}

/* Take events and traps in turns. */
static void
notice_next_matter(struct sa_worker *w)
{
	struct sa_notices *n = w->notices;
	bool event = no_traps(n) || (n->trap_told && !ring_empty(w));

	n->trap_told = !event;
	n->next_rid = 0;
	if (event)
		notice_take_event(w);
	else
		notice_take_trap(w);
}

/* --- kept events --- */

/* A Report about it has ended, or there are no more subscriptions to look at. */
static void
kept_settle(struct sa_worker *w, struct kept_event *k)
{
	struct sa_notices *n = w->notices;

	if (k->reports > 0 || k == n->kept)
		return;
	sa_event_was_told(w->sa, k->number);
	k->next_free = n->free_kept;
	n->free_kept = k;
}

static void
notice_telling_ends(struct sa_worker *w)
{
	struct kept_event *k = w->notices->kept;

	w->notices->telling = false;
	w->notices->kept = NULL;
	if (k != NULL)
		kept_settle(w, k);
}

/* This appliance does not lead any more: another one reports what it has not finished. */
static void
notices_forget(struct sa_worker *w, uint64_t now)
{
	struct sa_notices *n = w->notices;
	uint32_t i;

	n->forgotten = __atomic_load_n(&w->sa->events.forget, __ATOMIC_ACQUIRE);
	if (n->telling && n->kept != NULL && n->kept->number < n->forgotten)
		notice_telling_ends(w);
	for (i = 0; i < w->config->notices_max; i++) {
		struct sa_report *r = &n->reports[i];

		if (r->busy && r->kept != NULL && r->kept->number < n->forgotten)
			mad_cancel(w->mad, r->handle, now);
	}
}

static bool
notices_to_forget(const struct sa_worker *w)
{
	return w->id == 0 &&
		__atomic_load_n(&w->sa->events.forget, __ATOMIC_ACQUIRE) != w->notices->forgotten;
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
	n->kept_pool =
		mem_zalloc(c->alloc, ((size_t)c->notices_max + 1) * sizeof(*n->kept_pool), 64);
	if (w->id == 0)
		n->budgets = notice_budgets_create(c->alloc);
	if (n->reports == NULL || n->kept_pool == NULL || (w->id == 0 && n->budgets == NULL)) {
		mem_free(c->alloc, n->reports);
		mem_free(c->alloc, n->kept_pool);
		notice_budgets_destroy(c->alloc, n->budgets);
		mem_free(c->alloc, n);
		return NULL;
	}
	for (i = 0; i < c->notices_max; i++) {
		n->reports[i].w = w;
		n->reports[i].next_free = n->free_reports;
		n->free_reports = &n->reports[i];
	}
	for (i = 0; i <= c->notices_max; i++) {
		n->kept_pool[i].next_free = n->free_kept;
		n->free_kept = &n->kept_pool[i];
	}
	n->resp_time = resp_time_of(c->notice_interval_ms);
	if (c->notices_max > 0)
		token_bucket_init(&n->rate, c->hz * c->notice_interval_ms / 1000 / c->notices_max,
			c->notices_max);
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
	mem_free(w->config->alloc, n->kept_pool);
	notice_budgets_destroy(w->config->alloc, n->budgets);
	mem_free(w->config->alloc, n);
	w->notices = NULL;
}

/* --- subscribers --- */

/* True if an InformInfo subscribes to this trap of this issuer. */
static bool
asks_for(const uint8_t *info, const struct matter *m, const struct subscriber *s)
{
	static const uint8_t any_gid[16];
	uint16_t type = get_be16(info + INFO_OFF_TYPE), trap = get_be16(info + INFO_OFF_TRAP);
	uint16_t begin = get_be16(info + INFO_OFF_LID_BEGIN);
	uint16_t end = get_be16(info + INFO_OFF_LID_END);
	uint16_t issuer = m->is_trap ? m->issuer_lid : s->peer.av.slid;
	uint32_t producer = get_be24(info + INFO_OFF_PRODUCER - 1);

	if (info[INFO_OFF_GENERIC] != 1 || (type != ANY_TYPE && type != m->type) ||
		(trap != ANY_TRAP && trap != m->trap) ||
		(producer != ANY_PRODUCER && producer != m->producer))
		return false;
	/* a GID replaces the LIDs: the issuer's, or that of the port which the notice is about */
	if (memcmp(info + INFO_OFF_GID, any_gid, 16) != 0)
		return memcmp(info + INFO_OFF_GID, m->gid, 16) == 0 ||
			(!m->is_trap && memcmp(info + INFO_OFF_GID, s->peer.av.sgid.raw, 16) == 0);
	return begin == ANY_LID || begin == 0 || (issuer >= begin && (issuer <= end || end == 0));
}

/*
 * Security: report only what the subscriber may see: groups and ports of its partitions. Security
 * traps contain keys and go only to subscribers that may see keys.
 */
static bool
may_know(struct sa_worker *w, const uint8_t *gid, const struct matter *m,
	const struct subscriber *s)
{
	const struct store_version *v = fabric_version(w->fabric);
	struct requester who = { .stranger = false };
	const struct port_view *p;

	if (m->type == NOTICE_SECURITY)
		return s->sees_keys;
	if (s->trusted)
		return true;
	p = fabric_gid(w->fabric, gid);
	if (p != NULL) {
		who.port = *p;
	} else {
		who.stranger = true;
		port_view_stranger(&who.port);
	}
	if (m->pkey != 0)
		return port_member(v, &who.port, m->pkey) != 0;
	p = fabric_gid(w->fabric, m->gid);
	/* the partitions of a port that is gone are unknown */
	return p == NULL || sa_shares(v, &who, p);
}

/* --- a Report --- */

static void
notice_report_ended(struct sa_report *r, bool answered)
{
	struct sa_worker *w = r->w;

	if (answered)
		w->counters.reports_answered++;
	else
		w->counters.reports_given_up++;
	notice_budget_return(r->budget, answered);
	r->busy = false;
	r->next_free = w->notices->free_reports;
	w->notices->free_reports = r;
	if (r->kept == NULL)
		return;
	r->kept->reports--;
	kept_settle(w, r->kept);
}

static void
notice_reported(void *arg, const struct mad_result *result)
{
	notice_report_ended(arg, result->end == MAD_END_OK || result->end == MAD_END_STATUS);
}

static void
notice_fill_report(uint8_t *mad, const struct matter *m, const struct subscriber *s)
{
	uint8_t *notice = mad + (s->class_version == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA);

	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
	mad[MAD_OFF_CLASS_VERSION] = s->class_version;
	mad[MAD_OFF_METHOD] = MAD_REPORT;
	put_be16(mad + MAD_OFF_ATTRIBUTE, SA_NOTICE);
	if (m->is_trap) {
		memcpy(notice, m->notice, sizeof(m->notice));
		memcpy(notice + NOTICE_OFF_ISSUER_GID, m->gid, 16);
		return;
	}
	notice[NOTICE_OFF_TYPE] = GENERIC | (uint8_t)m->type;
	notice[NOTICE_OFF_PRODUCER + 2] = (uint8_t)m->producer;
	put_be16(notice + NOTICE_OFF_TRAP, m->trap);
	put_be16(notice + NOTICE_OFF_ISSUER_LID, s->peer.av.slid);
	memcpy(notice + NOTICE_OFF_GID, m->gid, 16);
	memcpy(notice + NOTICE_OFF_ISSUER_GID, s->peer.av.sgid.raw, 16);
}

/* The TID of a kept event's Report: whoever leads gives it the same one. */
static void
notice_put_tid(const struct sa_notices *n, uint32_t rid, struct mad_call *call, uint8_t *mad)
{
	uint64_t word = rid;

	if (n->kept == NULL)
		return;
	put_be64(mad + MAD_OFF_TID, siphash_words(n->secret, &word, 1));
	call->keep_tid = true;
}

/* @return false: there is no room at the moment, and the event may wait, because it is kept */
static bool
notice_report(struct sa_worker *w, uint32_t rid, const struct subscriber *s, uint64_t now)
{
	struct sa_notices *n = w->notices;
	struct sa_report *r = n->free_reports;
	uint8_t mad[MAD_LEN];
	struct mad_call call = {
		.to = s->peer,
		.protocol = MAD_SINGLE,
		.mad = mad,
		.resp_time = n->resp_time,
		.retries = w->config->notice_retries,
		.data_offset = s->class_version == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA,
		.taker = { .arg = r, .done = notice_reported },
	};
	int rc;

	r->budget = notice_budget_take(n->budgets, rid, s->asked);
	if (r->budget == NULL) {
		w->counters.reports_given_up++;
		return true;
	}
	call.budget = &r->budget->spend;
	notice_fill_report(mad, &n->matter, s);
	notice_put_tid(n, rid, &call, mad);
	rc = mad_call(w->mad, &call, now, &r->handle);
	if (rc != 0) {
		notice_budget_return(r->budget, false);
		if (rc == -ENOSPC && n->kept != NULL)
			return false;
		w->counters.reports_given_up++;
		return true;
	}
	n->free_reports = r->next_free;
	r->busy = true;
	r->kept = n->kept;
	if (r->kept != NULL)
		r->kept->reports++;
	w->counters.reports_sent++;
	return true;
}

/* Look at the next subscription. @return false: the rate limit stops here */
static bool
notice_tell_next(struct sa_worker *w, uint64_t now)
{
	const struct store_version *v = fabric_version(w->fabric);
	struct sa_notices *n = w->notices;
	const struct store_record *r;
	struct store_cursor c;
	struct subscriber s;

	store_seek(&c, v, SA_TABLE_INFORM, store_rank(v, SA_TABLE_INFORM, n->next_rid));
	r = store_next(&c, NULL);
	if (r == NULL || r->rid == UINT32_MAX) {
		notice_telling_ends(w);
		return true;
	}
	if (subscriber_of(r, &s) && asks_for(r->bytes + INFORM_OFF_INFO, &n->matter, &s) &&
		may_know(w, r->bytes + INFORM_OFF_GID, &n->matter, &s)) {
		if (!token_bucket_take(&n->rate, now))
			return false;
		if (!notice_report(w, r->rid, &s, now))
			return false;
	}
	n->next_rid = r->rid + 1;
	return true;
}

bool
sa_notices_pending(const struct sa_worker *w)
{
	return notices_to_forget(w) ||
		(w->notices->free_reports != NULL &&
			(w->notices->telling || !ring_empty(w) || !no_traps(w->notices)));
}

unsigned int
sa_notices_run(struct sa_worker *w, uint64_t now, unsigned int budget)
{
	unsigned int done = 0;

	if (notices_to_forget(w))
		notices_forget(w, now);
	while (done < budget && sa_notices_pending(w)) {
		if (!w->notices->telling)
			notice_next_matter(w);
		if (w->notices->telling && !notice_tell_next(w, now))
			break;
		done++;
	}
	return done;
}
