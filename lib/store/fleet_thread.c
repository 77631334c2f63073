/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The fleet's thread. It keeps this appliance's lease, competes for the lead, and reads the watch.
 * Three times per lease it asks etcd who leads and what the last change is: so it learns that etcd
 * is away, that its history is another one, or that a watch is silent although there are changes.
 */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/capability.h"
#include "store/etcd_transport.h"
#include "store/fleet_private.h"

#define AWAY_MS    500 /* between two attempts while etcd is away */
#define NOTE_MS    60000 /* between two positions written without a change */
#define BEHIND_MAX 2 /* looks after which a silent watch is started again */

/* --- who leads --- */

/* Parts of a large change can be undone by a copy that has all that was before them. */
static bool
may_lead(const struct fleet *f)
{
	return !f->gather.open || !f->copy_stopped;
}

/*
 * Changes may come once everything before our election has been handed to the store's writer: the
 * watch has brought the leader's key itself.
 */
static void
take_lead(struct fleet *f)
{
	struct error err = { "" };

	if (f->campaigned == 0 || f->position.revision < f->campaigned || fleet_leads(f) ||
		etcd_now_ms() < f->lead_at)
		return;
	if (fleet_undo_parts(f, &err) != 0 || fleet_prepare_requests(f, &err) != 0 ||
		fleet_prepare_notices(f, &err) != 0) {
		FLEET_LOG(WARNING, "%s cannot lead yet: %s", f->config.name, err.text);
		f->lead_at = etcd_now_ms() + AWAY_MS;
		if (!may_lead(f))
			f->campaigned = 0; /* compete() removes the key */
		return;
	}
	__atomic_store_n(&f->lead, f->campaigned, __ATOMIC_RELEASE);
	f->wake(f->wake_arg);
}

static int
campaign(struct fleet *f, struct error *err)
{
	struct etcd_header h;
	json_t *reply;
	int rc;

	rc = etcd_call(f->session, "/v3/kv/txn",
		json_pack("{s:[o], s:[o,o], s:[]}", "compare",
			etcd_compare(f->key.leader, "CREATE", "create_revision", 0), "success",
			etcd_put(f->key.leader, f->config.name, strlen(f->config.name), f->lease),
			etcd_put(f->key.format, FLEET_FORMAT, strlen(FLEET_FORMAT), 0), "failure"),
		FLEET_REQUEST_MS, &reply, err);
	if (rc != 0)
		return rc;
	if (etcd_json_header(reply, &h) != 0)
		rc = error_set(err, EPROTO, "etcd's answer lacks what its API promises");
	else if (json_is_true(json_object_get(reply, "succeeded")))
		f->campaigned = h.revision;
	json_decref(reply);
	return rc;
}

/*
 * The leader's key has our name and we do not lead: a process that we were before made it, or we
 * stepped down and etcd kept our lease. Without it we compete again.
 */
static int
remove_old_lead(struct fleet *f, struct error *err)
{
	json_t *reply;
	int rc;

	rc = etcd_call(f->session, "/v3/kv/txn",
		json_pack("{s:[o], s:[o]}", "compare",
			etcd_compare(f->key.leader, "CREATE", "create_revision", f->leader_created),
			"success", etcd_delete(f->key.leader)),
		FLEET_REQUEST_MS, &reply, err);
	json_decref(reply);
	return rc;
}

static int
compete(struct fleet *f, struct error *err)
{
	if (f->campaigned != 0)
		return 0;
	if (f->leader_created == 0)
		return may_lead(f) ? campaign(f, err) : 0;
	if (strcmp(f->status.leader, f->config.name) == 0)
		return remove_old_lead(f, err);
	return 0;
}

/* --- is our position part of etcd's history? --- */

static int
load_database(struct fleet *f, bool restored, const char *why, struct error *err)
{
	int rc;

	FLEET_LOG(NOTICE, "reading the whole database from etcd: %s", why);
	etcd_watch_stop(f->watch);
	f->watch = NULL;
	if (restored) { /* its revisions may be lower than those that we have seen */
		fleet_step_down(f, why);
		f->leader_seen = f->leader_created = 0;
	}
	rc = fleet_load_all(f, restored, fleet_stay_alive, err);
	if (rc != 0)
		return rc;
	f->checked = true;
	f->reload = false;
	f->look_at = 0;
	pthread_mutex_lock(&f->lock);
	f->status.loads++;
	pthread_mutex_unlock(&f->lock);
	return 0;
}

/* The last change of our copy must be, at our revision, the last one in etcd, too. */
static int
check_position(struct fleet *f, struct error *err)
{
	struct etcd_header h;
	struct etcd_kvs kvs;
	bool same;
	int rc;

	rc = etcd_range(f->session, f->key.change, NULL, f->position.revision, 1, FLEET_REQUEST_MS,
		&h, &kvs, NULL, err);
	if (rc == -ESTALE)
		return load_database(f, false, "etcd has compacted the revisions since our copy's",
			err);
	if (rc != 0)
		return rc;
	same = kvs.n == 0 ? f->position.changed == 0
			  : kvs.at[0].mod_revision == f->position.changed &&
			fleet_nonce_of(&kvs.at[0]) == f->position.nonce;
	etcd_kvs_free(&kvs);
	if (!same)
		return load_database(f, true, "etcd's history is not that of our copy", err);
	f->checked = true;
	return 0;
}

static int
check_history(struct fleet *f, const struct etcd_header *h, uint64_t changed, struct error *err)
{
	if (f->reload)
		return load_database(f, false, "the watch has brought more than fits", err);
	if (f->position.cluster == 0)
		return load_database(f, false, "there is no copy here", err);
	if (f->position.cluster != h->cluster_id)
		return load_database(f, true, "our copy is of another cluster", err);
	if (f->position.revision > h->revision)
		return load_database(f, true, "our copy is newer than etcd, which was restored",
			err);
	if (f->position.changed > changed)
		return load_database(f, true, "etcd lacks a change of our copy: it was restored",
			err);
	return f->checked ? 0 : check_position(f, err);
}

/* --- a look at etcd --- */

static void
set_members(struct fleet *f, const struct etcd_kvs *kvs, uint64_t changed)
{
	struct fleet_status *s = &f->status;
	size_t i, len = strlen(f->key.members);

	fleet_note_members(f, kvs, f->key.members);
	s->num_members = 0;
	for (i = 0; i < kvs->n && s->num_members < FLEET_MEMBERS_MAX; i++) {
		struct fleet_member *m = &s->member[s->num_members];

		if (strncmp(kvs->at[i].key, f->key.members, len) != 0)
			continue;
		snprintf(m->name, sizeof(m->name), "%s", kvs->at[i].key + len);
		m->self = strcmp(m->name, f->config.name) == 0;
		m->leader = strcmp(m->name, s->leader) == 0;
		m->revision = m->self ? f->position.changed
				      : strtoull((const char *)kvs->at[i].value, NULL, 10);
		m->lag = changed > m->revision ? changed - m->revision : 0;
		s->num_members++;
	}
}

/* @param part  a part of a large change is in etcd, and the watch may not have brought it */
static void
look_at_watch(struct fleet *f, const struct etcd_header *h, uint64_t changed, bool part)
{
	uint64_t received = etcd_watch_received(f->watch);

	/*
	 * It may bring what came just now a little later, and waits if the writer is busy. Behind
	 * many changes the first message is long, and nothing of it is here before its end is. One
	 * that has not begun is not silent: it would be ended as soon as it begins, for ever.
	 */
	if (f->watch != NULL && f->looked_at_change > f->position.changed &&
		!fleet_queue_is_full(f) && received == f->received)
		f->behind++;
	else
		f->behind = 0;
	f->received = received;
	f->looked_at_change = changed;
	if (h->revision > f->position.revision && f->watch != NULL && !f->gather.open && !part &&
		f->position.changed == changed) {
		f->position.revision = h->revision;
		if (etcd_now_ms() - f->copy_written >= NOTE_MS)
			fleet_note_position(f, h->revision);
	}
}

static int
check_database_format(const struct fleet *f, const struct etcd_kvs *kvs, struct error *err)
{
	const struct etcd_kv *kv = etcd_kvs_find(kvs, f->key.format);

	if (kv == NULL || strcmp((const char *)kv->value, FLEET_FORMAT) == 0)
		return 0;
	return error_set(err, EPROTONOSUPPORT,
		"the database in etcd has the format \"%.20s\", and this program knows \"%s\": use the release that the other appliances have",
		(const char *)kv->value, FLEET_FORMAT);
}

static int
look(struct fleet *f, struct error *err)
{
	const struct etcd_kv *change;
	struct etcd_header h;
	struct etcd_kvs kvs;
	uint64_t changed;
	bool part;
	int rc;

	rc = etcd_range(f->session, f->key.control, f->key.control_end, 0, 0, FLEET_REQUEST_MS, &h,
		&kvs, NULL, err);
	if (rc != 0)
		return rc;
	rc = check_database_format(f, &kvs, err);
	if (rc != 0) {
		etcd_kvs_free(&kvs);
		return rc;
	}
	change = etcd_kvs_find(&kvs, f->key.change);
	changed = change != NULL ? change->mod_revision : 0;
	part = etcd_kvs_find(&kvs, f->key.part) != NULL;
	fleet_learn_leader(f, etcd_kvs_find(&kvs, f->key.leader), h.revision);
	pthread_mutex_lock(&f->lock);
	f->status.cluster = h.cluster_id;
	f->status.latest = changed;
	set_members(f, &kvs, changed);
	pthread_mutex_unlock(&f->lock);
	etcd_kvs_free(&kvs);
	rc = check_history(f, &h, changed, err);
	if (rc != 0)
		return rc;
	look_at_watch(f, &h, changed, part);
	return 0;
}

/* An etcd without room takes nothing new, and can be read as before. */
static int
bear_no_space(struct fleet *f, int rc)
{
	if (rc != -ENOSPC)
		return rc;
	fleet_note_full(f, true);
	return 0;
}

static int
look_and_campaign(struct fleet *f, struct error *err)
{
	int rc = bear_no_space(f, fleet_keep_lease(f, err));
	bool full;

	if (rc == 0)
		rc = look(f, err);
	if (rc == 0 && f->named)
		rc = bear_no_space(f, compete(f, err));
	if (rc == 0 && fleet_leads(f))
		rc = bear_no_space(f, fleet_prepare_requests(f, err));
	if (rc == 0 && fleet_leads(f))
		rc = fleet_prepare_notices(f, err);
	/* also while etcd is full: if it takes this, it has room again, whatever its members say */
	full = fleet_is_full(f);
	if (rc == 0 && f->named && (full || f->reported != f->position.changed)) {
		rc = fleet_report(f, err);
		if (rc == 0 && full)
			fleet_note_full(f, false);
		rc = bear_no_space(f, rc);
	}
	return rc;
}

/* --- the thread --- */

static void
etcd_answered(struct fleet *f)
{
	pthread_mutex_lock(&f->lock);
	f->status.silent_ms = etcd_now_ms(); /* fleet_status() makes a duration of it */
	strcpy(f->token, etcd_client_token(f->session));
	f->status.reason[0] = '\0';
	pthread_mutex_unlock(&f->lock);
	if (__atomic_exchange_n(&f->away, false, __ATOMIC_ACQ_REL))
		FLEET_LOG(NOTICE, "etcd answers: %s",
			f->config.endpoint[etcd_client_endpoint(f->session)].url);
	/* as which the writer finds the next one */
	__atomic_store_n(&f->trouble, FLEET_ETCD_AWAY, __ATOMIC_RELEASE);
}

/* Where to look for the cause of a failure: at etcd, or here. */
static enum fleet_etcd_state
state_of_failure(int rc)
{
	switch (rc) {
	case -EACCES:
	case -EINVAL:
	case -EKEYREVOKED:
		return FLEET_ETCD_REFUSES;
	case -EADDRNOTAVAIL:
	case -ENOKEY:
	case -EKEYREJECTED:
		return FLEET_ETCD_NOT_ASKED;
	case -EEXIST:
	case -ENODATA:
	case -EPROTONOSUPPORT:
		return FLEET_ETCD_LEFT_ALONE;
	case -EBADMSG:
	case -ENOMEM:
	case -ENOTRECOVERABLE:
		return FLEET_ETCD_NOT_FOLLOWED;
	default:
		return FLEET_ETCD_AWAY;
	}
}

static void
etcd_failed(struct fleet *f, int rc, const struct error *err)
{
	static const char *const says[] = {
		[FLEET_ETCD_AWAY] = "etcd is away",
		[FLEET_ETCD_REFUSES] = "etcd refuses this appliance",
		[FLEET_ETCD_NOT_ASKED] = "this appliance cannot ask etcd",
		[FLEET_ETCD_LEFT_ALONE] = "this appliance takes no part in its fleet",
		[FLEET_ETCD_NOT_FOLLOWED] = "this appliance cannot follow etcd",
	};
	enum fleet_etcd_state state = state_of_failure(rc);
	bool first = !f->failing;

	/* once for each cause: etcd may go away and come back while another cause remains */
	if (first || (state != FLEET_ETCD_AWAY && state != f->failed_state)) {
		FLEET_LOG(WARNING, "%s, queries go on and changes are refused: %s", says[state],
			err->text);
		f->failed_state = state;
	}
	f->failing = true;
	f->checked = false; /* who comes back may have been restored */
	__atomic_store_n(&f->trouble, state, __ATOMIC_RELEASE);
	__atomic_store_n(&f->away, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&f->lock);
	snprintf(f->status.reason, sizeof(f->status.reason), "%.*s", FLEET_TEXT_MAX - 1, err->text);
	f->status.disconnects += first;
	pthread_mutex_unlock(&f->lock);
	if (f->lease != 0 && etcd_now_ms() >= f->lease_end)
		fleet_step_down(f, "etcd is away for longer than its lease");
}

/* True if this lead has left parts of a change. */
static bool
has_stopped(const struct fleet *f)
{
	return fleet_leads(f) && fleet_lead(f) == __atomic_load_n(&f->stopped, __ATOMIC_ACQUIRE);
}

/* Remove them, once the watch has brought all, without an end of the lead. */
static void
undo_in_place(struct fleet *f)
{
	struct error err = { "" };
	uint64_t behind;
	int rc;

	if (!has_stopped(f))
		return;
	behind = __atomic_load_n(&f->undo_behind, __ATOMIC_RELAXED);
	if (behind == 0 || f->position.revision < behind)
		return;
	rc = fleet_undo_parts(f, &err); /* nothing, if an attempt before has done it */
	if (rc == -EAGAIN || etcd_gave_no_answer(rc))
		return; /* again, while it leads */
	__atomic_store_n(&f->undo_behind, 0, __ATOMIC_RELAXED);
	if (rc == 0) {
		__atomic_store_n(&f->stopped, 0, __ATOMIC_RELEASE);
		f->wake(f->wake_arg);
		return;
	}
	FLEET_LOG(WARNING, "%s cannot undo a large change as it leads: %s", f->config.name,
		err.text);
	f->look_at = 0;
}

static void
timed_look(struct fleet *f)
{
	struct error err = { "" };
	uint64_t now = etcd_now_ms();
	int rc;

	if (now < f->look_at && !__atomic_exchange_n(&f->look_now, false, __ATOMIC_ACQ_REL))
		return;
	f->look_at = now + f->config.lease_s * 1000 / 3;
	if (has_stopped(f) && __atomic_load_n(&f->undo_behind, __ATOMIC_RELAXED) == 0)
		fleet_step_down(f, "a large change has stopped in the middle");
	if (__atomic_exchange_n(&f->token_refused, false, __ATOMIC_ACQ_REL))
		etcd_client_forget_token(f->session);
	rc = look_and_campaign(f, &err);
	if (rc == 0) {
		f->failing = false;
		etcd_answered(f);
		fleet_look_at_etcd(f);
		return;
	}
	etcd_failed(f, rc, &err);
	f->look_at = etcd_now_ms() + AWAY_MS;
}

static void
fleet_watch_ended(struct fleet *f, const struct error *err)
{
	etcd_watch_stop(f->watch);
	f->watch = NULL;
	f->behind = 0;
	pthread_mutex_lock(&f->lock);
	/* one that never began is refused for a reason that does not go away soon */
	f->watch_at = etcd_now_ms() + (f->status.watching ? 100 : 1000);
	f->status.watching = false;
	pthread_mutex_unlock(&f->lock);
	if (__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
		return;
	FLEET_LOG(INFO, "the watch starts again: %s", err->text);
	f->checked = false;
	/* the position may be behind requests and answers that it did not bring */
	f->requests_left = true;
	f->notices_left = true;
	fleet_missed_answers(f);
	f->look_at = 0;
}

static bool
watch_is_full(void *arg)
{
	return fleet_queue_is_full(arg);
}

static void
start_watch(struct fleet *f)
{
	struct error err = { "" };

	if (f->watch != NULL || !f->checked || f->failing || etcd_now_ms() < f->watch_at)
		return;
	f->watch = etcd_watch_start(f->session, f->key.all, f->key.all_end,
		f->position.revision + 1, fleet_take_watched, watch_is_full, f, &err);
	f->watch_endpoint = etcd_client_endpoint(f->session);
	if (f->watch == NULL) {
		fleet_watch_ended(f, &err);
		return;
	}
	pthread_mutex_lock(&f->lock);
	f->status.watch_starts++;
	pthread_mutex_unlock(&f->lock);
}

/* How long to wait for the watch: until something else is due. */
static unsigned int
watch_wait_ms(const struct fleet *f)
{
	uint64_t now = etcd_now_ms(), due = f->look_at;

	if (f->watch == NULL && f->checked && !f->failing)
		due = RTE_MIN(due, now + 100);
	if (f->campaigned != 0 && !fleet_leads(f) && f->lead_at > now)
		due = RTE_MIN(due, f->lead_at); /* the lead is to be taken again */
	return due > now ? (unsigned int)(due - now) : 0;
}

static void
read_watch(struct fleet *f)
{
	struct error err = { "" };
	int rc;

	rc = etcd_watch_poll(f->session, f->watch, watch_wait_ms(f), &err);
	if (f->watch == NULL)
		return;
	if (rc == 0 && f->watch_endpoint != etcd_client_endpoint(f->session))
		rc = error_set(&err, ECONNREFUSED, "another endpoint answers");
	if (rc == 0 && f->behind >= BEHIND_MAX)
		rc = error_set(&err, ETIMEDOUT, "it is silent although there are changes");
	f->reload |= rc == -EMSGSIZE; /* and would again */
	if (rc != 0)
		fleet_watch_ended(f, &err);
}

/* Let another appliance lead at once. */
static void
leave(struct fleet *f)
{
	struct error err = { "" };

	fleet_step_down(f, "the appliance stops");
	etcd_watch_stop(f->watch);
	f->watch = NULL;
	if (f->lease != 0 && !f->failing &&
		etcd_lease_revoke(f->session, f->lease, FLEET_REQUEST_MS, &err) != 0)
		FLEET_LOG(INFO, "the lease is not given back: %s", err.text);
	f->lease = 0;
}

void
fleet_run(struct fleet *f)
{
	FLEET_LOG(INFO, "%s joins the fleet, with a copy of revision %" PRIu64, f->config.name,
		f->position.revision);
	while (!__atomic_load_n(&f->stop, __ATOMIC_ACQUIRE)) {
		timed_look(f);
		start_watch(f);
		read_watch(f);
		undo_in_place(f);
		take_lead(f);
	}
	leave(f);
}

void *
fleet_main(void *arg)
{
	sigset_t all;

	prctl(PR_SET_NAME, "polca-etcd");
	if (geteuid() != 0) /* root may need one to read the files of a certificate */
		capabilities_drop();
	sigfillset(&all); /* signals are the control thread's */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	fleet_run(arg);
	return NULL;
}
