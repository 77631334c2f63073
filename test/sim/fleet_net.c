/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * etcd's three members and the network around them, and below a fleet (store/etcd_transport.h) what
 * is libcurl otherwise. A request travels to a member, is executed if the member reaches a leader
 * that has a quorum, and its answer travels back; each step may fail. A client that has stopped
 * waiting, or was killed, does not keep etcd from executing its request.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet_sim.h"
#include "store/etcd_transport.h"

#define ELECTION_MS   1000 /* at least, and up to three times of it */
#define EXPIRE_MS     50 /* between two looks at leases */
#define TCP_AGAIN_MS  300 /* between two attempts to deliver to a client that is cut off */
#define LATE_MS       2000
#define WATCH_BATCHES 1000 /* transactions in one message */

struct fleet_node *fleet_opening;
struct fleet_script *fleet_script_now;

struct etcd_http {
	struct fleet_node *node;
	struct fiber *waits; /* in etcd_watch_poll() */
	bool woken;
};

struct net_request {
	struct net_request *next;
	struct fleet_script *script;
	struct fleet_node *node; /* NULL: nobody waits for the answer */
	unsigned int app;
	unsigned int member;
	struct fiber *fiber;
	char *path;
	json_t *body;
	json_t *reply;
	struct error err;
	int rc;
	bool answered;
	bool ended; /* no event names it any more */
};

struct etcd_watch {
	struct etcd_watch *next;
	struct etcd_client *client;
	struct fleet_node *node;
	unsigned int member;
	char first[FLEET_KEY_MAX];
	char end[FLEET_KEY_MAX];
	uint64_t from; /* the next revision to hand over */
	uint64_t arrived; /* all up to this revision have arrived */
	uint64_t received;
	bool created;
	bool early; /* PLANT_EARLY_ANSWER: the message has answers alone */
	bool sending; /* a delivery is scheduled */
	bool stopped; /* freed when that has come */
	int result;
	etcd_watch_fn fn;
	etcd_watch_full_fn full;
	void *arg;
};

/* --- time and chance --- */

uint64_t
etcd_now_ms(void)
{
	return fleet_script_now->sim->now / SIM_MS;
}

void
etcd_sleep_ms(unsigned int ms)
{
	fiber_wait(fleet_script_now->sim->now + ms * SIM_MS);
}

int
etcd_random(uint64_t *value)
{
	*value = sim_rand(fleet_script_now->sim);
	return 0;
}

static uint64_t
net_one_way(struct fleet_script *fs)
{
	return sim_wait(fs->sim, fs->net.weather.delay);
}

/* --- etcd's members --- */

static bool
member_counts(const struct fleet_net *net, unsigned int member)
{
	return !net->member[member].down && !net->member[member].cut;
}

static bool
has_quorum(const struct fleet_net *net)
{
	unsigned int i, n = 0;

	for (i = 0; i < FLEET_ETCD; i++)
		n += member_counts(net, i);
	return n > FLEET_ETCD / 2;
}

static bool
has_leader(const struct fleet_net *net)
{
	return net->leader >= 0;
}

static void
elect(struct sim *s, void *arg)
{
	struct fleet_script *fs = arg;
	struct fleet_net *net = &fs->net;
	unsigned int i, first = sim_below(s, FLEET_ETCD);

	if (has_leader(net))
		return;
	for (i = 0; i < FLEET_ETCD && has_quorum(net) && !has_leader(net); i++)
		if (member_counts(net, (first + i) % FLEET_ETCD))
			net->leader = (int)((first + i) % FLEET_ETCD);
	if (!has_leader(net)) {
		sim_at(s, s->now + ELECTION_MS * SIM_MS, elect, fs);
		return;
	}
	net->model->now = s->now;
	etcd_model_promote(net->model);
	sim_trace(s, "etcd: member %d leads", net->leader);
}

void
fleet_net_lose_leader(struct fleet_script *fs)
{
	struct sim *s = fs->sim;
	struct net_request *r;

	if (!has_leader(&fs->net))
		return;
	sim_trace(s, "etcd: the leader is lost");
	fs->net.leader = -1;
	fs->count.elections++;
	/* of those who wait, some do not get the answer that was on its way */
	for (r = fs->net.requests; r != NULL; r = r->next)
		if (r->reply != NULL && !r->answered && sim_chance(s, 5000)) {
			json_decref(r->reply);
			r->reply = NULL;
			r->rc = -ETIMEDOUT;
			fs->count.lost_answers++;
		}
	sim_at(s, s->now + ELECTION_MS * SIM_MS + sim_wait(s, ELECTION_MS * SIM_MS), elect, fs);
}

static void
watches_break(struct fleet_script *fs, unsigned int member)
{
	struct etcd_watch *w;

	for (w = fs->net.watches; w != NULL; w = w->next)
		if (w->member == member && w->result == 0) {
			w->result = -ECONNREFUSED;
			if (!w->stopped)
				fiber_wake(w->client->http->waits, fs->sim->now);
		}
}

void
fleet_net_member(struct fleet_script *fs, unsigned int member, bool down, bool cut)
{
	struct fleet_member_state *m = &fs->net.member[member];

	sim_trace(fs->sim, "etcd: member %u %s%s", member, down ? "is down" : "is up",
		cut ? ", cut off" : "");
	m->down = down;
	m->cut = cut;
	m->frozen = fs->net.model->revision;
	if (down)
		watches_break(fs, member);
	if (fs->net.leader == (int)member && !member_counts(&fs->net, member))
		fleet_net_lose_leader(fs);
	else if (!has_quorum(&fs->net))
		fleet_net_lose_leader(fs);
}

/* Some appliance has the last complete change on its disk. */
static bool
last_change_is_copied(const struct fleet_script *fs)
{
	const struct etcd_model *m = fs->net.model;
	const struct model_event *change = etcd_model_at(m, "/p/c/change", m->revision);
	unsigned int i;

	for (i = 0; i < fs->apps; i++)
		if (change != NULL && fs->app[i].disk.position.changed == change->revision)
			return true;
	return false;
}

void
fleet_net_compact(struct fleet_script *fs, uint64_t keep)
{
	struct etcd_model *m = fs->net.model;
	const struct model_event *part = etcd_model_at(m, "/p/c/part", m->revision);
	bool in_parts = part != NULL && m->revision - keep >= part->created;

	if (!has_leader(&fs->net) || m->revision < m->compacted + keep + 1)
		return;
	/* nobody could undo a large change that has stopped: docs/fleet.md, Bounds today */
	if (in_parts && !last_change_is_copied(fs))
		return;
	m->compacted = m->revision - keep;
	fs->count.compactions++;
	fs->count.compacted_parts += in_parts;
	sim_trace(fs->sim, "etcd: compacted at %llu%s", (unsigned long long)m->compacted,
		in_parts ? ", in a large change" : "");
}

/* --- watches: the network --- */

static void
net_watch_free(struct fleet_script *fs, struct etcd_watch *w)
{
	struct etcd_watch **at = &fs->net.watches;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	free(w);
}

static void
watch_arrive(struct sim *s, void *arg)
{
	struct fleet_script *fs = fleet_script_now;
	struct etcd_watch *w = arg;
	const struct fleet_member_state *m = &fs->net.member[w->member];
	uint64_t to = m->cut || !has_leader(&fs->net) ? m->frozen : fs->net.model->revision;

	w->sending = false;
	if (w->stopped) {
		net_watch_free(fs, w);
		return;
	}
	if (w->result != 0)
		return;
	if (w->node->app->cut[w->member]) {
		w->sending = true;
		sim_at(s, s->now + TCP_AGAIN_MS * SIM_MS, watch_arrive, w);
		return;
	}
	if (to > w->arrived)
		w->arrived = to;
	if (w->arrived < fs->net.model->revision) { /* its member does not know them yet */
		w->sending = true;
		sim_at(s, s->now + TCP_AGAIN_MS * SIM_MS, watch_arrive, w);
	}
	fiber_wake(w->client->http->waits, s->now);
}

static void
watch_send_later(struct etcd_watch *w)
{
	struct fleet_script *fs = fleet_script_now;
	struct sim *s = fs->sim;
	uint64_t at = s->now + net_one_way(fs);

	if (w->sending || w->result != 0 || w->stopped)
		return;
	if (sim_chance(s, fs->net.weather.late_watch))
		at += sim_wait(s, LATE_MS * SIM_MS / 2);
	w->sending = true;
	sim_at(s, at, watch_arrive, w);
}

/* Something was written. */
static void
net_notify(struct fleet_script *fs)
{
	struct etcd_watch *w;
	unsigned int i;

	for (i = 0; i < FLEET_ETCD; i++)
		if (member_counts(&fs->net, i))
			fs->net.member[i].frozen = fs->net.model->revision;
	for (w = fs->net.watches; w != NULL; w = w->next)
		watch_send_later(w);
}

static void
expire_leases(struct sim *s, void *arg)
{
	struct fleet_script *fs = arg;
	uint64_t before = fs->net.model->revision;

	fs->net.model->now = s->now;
	fs->net.sender = NULL;
	if (has_leader(&fs->net))
		etcd_model_expire(fs->net.model);
	if (fs->net.model->revision != before)
		net_notify(fs);
	sim_at(s, s->now + EXPIRE_MS * SIM_MS, expire_leases, fs);
}

/* --- watches: the fleet's thread --- */

struct etcd_watch *
etcd_watch_start(struct etcd_client *c, const char *first, const char *end, uint64_t revision,
	etcd_watch_fn fn, etcd_watch_full_fn full, void *arg, struct error *err)
{
	struct etcd_watch *w = calloc(1, sizeof(*w));
	struct fleet_script *fs = fleet_script_now;

	(void)err;
	if (w == NULL)
		abort();
	w->client = c;
	w->node = c->http->node;
	w->member = (unsigned int)(c->config.endpoint[c->endpoint].url[0] - '0');
	snprintf(w->first, sizeof(w->first), "%s", first);
	snprintf(w->end, sizeof(w->end), "%s", end);
	w->from = revision;
	w->fn = fn;
	w->full = full;
	w->arg = arg;
	w->next = fs->net.watches;
	fs->net.watches = w;
	fs->count.watch_starts++;
	if (fs->net.member[w->member].down)
		w->result = -ECONNREFUSED;
	else
		watch_send_later(w);
	return w;
}

void
etcd_watch_stop(struct etcd_watch *w)
{
	if (w == NULL)
		return;
	if (w->sending)
		w->stopped = true;
	else
		net_watch_free(fleet_script_now, w);
}

uint64_t
etcd_watch_received(const struct etcd_watch *w)
{
	return w != NULL ? w->received : 0;
}

static bool
watch_lacks(const struct etcd_watch *w, const struct model_event *e)
{
	struct fleet_script *fs = fleet_script_now;

	if (strcmp(e->key, w->first) < 0 || strcmp(e->key, w->end) >= 0)
		return true;
	if (fs->net.model->plant == PLANT_EARLY_ANSWER)
		return w->early != etcd_model_is_kind(e->key, 'a');
	return fs->net.model->plant == PLANT_WATCH_GAP && etcd_model_is_kind(e->key, 'r') &&
		sim_chance(fs->sim, 50);
}

/* All events from the next one on up to a revision. */
static void
watch_add_events(struct etcd_watch *w, uint64_t to, struct etcd_kvs *events)
{
	const struct etcd_model *m = fleet_script_now->net.model;
	size_t i, first = etcd_model_first(m, w->from), end = etcd_model_first(m, to + 1);

	events->at = calloc(end - first + 1, sizeof(events->at[0]));
	if (events->at == NULL)
		abort();
	for (i = first; i < end; i++) {
		const struct model_event *e = &m->event[i];

		if (watch_lacks(w, e))
			continue;
		events->at[events->n++] = (struct etcd_kv){
			.key = e->key,
			.value = e->value != NULL ? e->value : (uint8_t *)e->key + strlen(e->key),
			.key_len = strlen(e->key),
			.value_len = e->value != NULL ? e->len : 0,
			.create_revision = e->value != NULL ? e->created : 0,
			.mod_revision = e->revision,
			.gone = e->value == NULL,
		};
		w->received += 2 * (strlen(e->key) + e->len) + 120;
	}
}

static int
watch_message(struct etcd_watch *w, uint64_t to, bool created)
{
	struct fleet_script *fs = fleet_script_now;
	const struct etcd_model *m = fs->net.model;
	struct etcd_watched message = { .header = { 77, m->revision }, .created = created };
	bool progress = created || to < w->from;
	int rc = 0;

	if (progress)
		message.header.revision = to; /* it has brought all up to here */
	else
		watch_add_events(w, to, &message.events);
	/* etcd sends no message without events but to tell its progress */
	if (progress || message.events.n > 0) {
		w->received += 100;
		fs->count.watch_messages++;
		fs->count.watch_events += message.events.n;
		rc = w->fn(w->arg, &message);
	}
	free(message.events.at);
	return rc;
}

/* PLANT_EARLY_ANSWER: the answers of the next message, in one of their own. */
static int
watch_message_of_answers(struct etcd_watch *w, uint64_t to)
{
	int rc;

	w->early = true;
	rc = watch_message(w, to, false);
	w->early = false;
	return rc;
}

/* Hand over what has arrived, some transactions at a time. */
static void
watch_hand_over(struct etcd_watch *w)
{
	struct fleet_script *fs = fleet_script_now;
	struct sim *s = fs->sim;
	bool any = false;

	if (!w->created && w->arrived != 0) {
		w->created = true;
		if (w->from < fs->net.model->compacted)
			w->result = -ESTALE;
		else
			w->result = watch_message(w, fs->net.model->revision, true);
	}
	while (w->created && w->result == 0 && w->from <= w->arrived && !w->full(w->arg)) {
		uint64_t to = w->from + (sim_chance(s, 3000) ? sim_below(s, 20) : WATCH_BATCHES);
		uint64_t before = w->received;

		if (to > w->arrived)
			to = w->arrived;
		if (fs->net.model->plant == PLANT_EARLY_ANSWER)
			w->result = watch_message_of_answers(w, to);
		if (w->result == 0)
			w->result = watch_message(w, to, false);
		w->from = to + 1;
		fs->count.watch_bytes += w->received - before;
		any = true;
	}
	if (w->result == 0 && w->created && any && w->from == w->arrived + 1 && sim_chance(s, 500))
		w->result = watch_message(w, w->arrived, false);
}

int
etcd_watch_poll(struct etcd_client *c, struct etcd_watch *w, unsigned int wait_ms,
	struct error *err)
{
	struct etcd_http *h = c->http;
	struct sim *s = fleet_script_now->sim;

	if (w != NULL)
		watch_hand_over(w);
	if (!h->woken && (w == NULL || w->result == 0)) {
		h->waits = fiber_now();
		fiber_wait(s->now + (wait_ms != 0 ? wait_ms * SIM_MS : 1000));
		h->waits = NULL;
	}
	h->woken = false;
	if (h->node->dead)
		return error_set(err, ECANCELED, "killed");
	if (w != NULL && w->result == 0)
		watch_hand_over(w);
	if (w == NULL || w->result == 0)
		return 0;
	return error_set(err, -w->result, "etcd's watch: %s", strerror(-w->result));
}

void
etcd_client_wake(struct etcd_client *c)
{
	c->http->woken = true;
	fiber_wake(c->http->waits, fleet_script_now->sim->now);
}

/* --- requests --- */

static void
request_free(struct net_request *r)
{
	struct net_request **at = &r->script->net.requests;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	json_decref(r->body);
	json_decref(r->reply);
	free(r->path);
	free(r);
}

/* No event names it; if nobody waits either, it goes. */
static void
request_ends(struct net_request *r)
{
	r->ended = true;
	if (r->node == NULL)
		request_free(r);
}

static void
answer_arrives(struct sim *s, void *arg)
{
	struct net_request *r = arg;
	struct fleet_script *fs = r->script;

	if (r->rc == -ETIMEDOUT || fs->app[r->app].cut[r->member] ||
		fs->net.member[r->member].down || sim_chance(s, fs->net.weather.lose_answer)) {
		fs->count.lost_answers++;
		request_ends(r);
		return;
	}
	r->answered = true;
	if (r->node != NULL)
		fiber_wake(r->fiber, s->now);
	request_ends(r);
}

static void
count_request(struct fleet_script *fs, const char *path)
{
	if (strcmp(path, "/v3/kv/txn") == 0)
		fs->count.txns++;
	else if (strcmp(path, "/v3/kv/range") == 0)
		fs->count.ranges++;
	else if (strncmp(path, "/v3/lease/", 10) == 0)
		fs->count.leases++;
}

static void
request_execute(struct net_request *r)
{
	struct fleet_script *fs = r->script;
	struct etcd_model *m = fs->net.model;
	uint64_t before = m->revision;
	const char *error;

	m->now = fs->sim->now;
	fs->net.sender = fs->app[r->app].node;
	count_request(fs, r->path);
	m->forget = m->plant != PLANT_NONE && sim_chance(fs->sim, 200);
	r->reply = etcd_model_run(m, r->path, r->body, &error);
	if (r->reply == NULL)
		r->rc = etcd_json_error(400, error, strlen(error), &r->err);
	if (m->revision != before)
		net_notify(fs);
}

static void
request_arrives(struct sim *s, void *arg)
{
	struct net_request *r = arg;
	struct fleet_script *fs = r->script;
	const struct fleet_member_state *m = &fs->net.member[r->member];

	if (fs->app[r->app].cut[r->member] || sim_chance(s, fs->net.weather.lose_request)) {
		request_ends(r);
		return;
	}
	if (m->down) {
		r->rc = error_set(&r->err, ECONNREFUSED, "etcd's member %u is down", r->member);
		r->answered = true;
		if (r->node != NULL)
			fiber_wake(r->fiber, s->now);
		request_ends(r);
		return;
	}
	if (!has_leader(&fs->net) || m->cut) {
		/* it waits for a leader, is refused, or is forgotten with an old leader's log */
		if (sim_chance(s, 6000)) {
			sim_at(s, s->now + sim_wait(s, 200 * SIM_MS), request_arrives, r);
		} else if (sim_chance(s, 5000)) {
			r->rc = error_set(&r->err, EAGAIN, "etcd has no leader");
			sim_at(s, s->now + net_one_way(fs), answer_arrives, r);
		} else {
			request_ends(r);
		}
		return;
	}
	request_execute(r);
	sim_at(s, s->now + net_one_way(fs), answer_arrives, r);
}

static struct net_request *
request_send(struct etcd_client *c, unsigned int endpoint, const char *path, const json_t *body)
{
	struct net_request *r = calloc(1, sizeof(*r));
	struct fleet_script *fs = fleet_script_now;
	struct fleet_node *n = c->http->node;
	uint64_t at;

	if (r == NULL)
		abort();
	r->script = fs;
	r->node = n;
	r->app = (unsigned int)(n->app - fs->app);
	r->member = (unsigned int)(c->config.endpoint[endpoint].url[0] - '0');
	r->fiber = fiber_now();
	r->path = strdup(path);
	r->body = json_incref((json_t *)(uintptr_t)body);
	r->next = fs->net.requests;
	fs->net.requests = r;
	at = fs->sim->now + net_one_way(fs);
	if (sim_chance(fs->sim, fs->net.weather.late_request))
		at += sim_wait(fs->sim, LATE_MS * SIM_MS);
	sim_at(fs->sim, at, request_arrives, r);
	return r;
}

int
etcd_send(struct etcd_client *c, unsigned int endpoint, const char *path, const json_t *body,
	struct etcd_patience patience, json_t **reply, struct error *err)
{
	struct fleet_script *fs = fleet_script_now;
	unsigned int ms = patience.silence < patience.total ? patience.silence : patience.total;
	uint64_t end = fs->sim->now + ms * SIM_MS;
	struct fleet_node *n = c->http->node;
	struct net_request *r;
	int rc;

	*reply = NULL;
	if (n->dead)
		return error_set(err, ECANCELED, "killed");
	r = request_send(c, endpoint, path, body);
	while (!r->answered && fs->sim->now < end && !n->dead)
		fiber_wait(end);
	if (n->dead) {
		rc = error_set(err, ECANCELED, "killed");
	} else if (!r->answered) {
		rc = error_set(err, ETIMEDOUT, "etcd's member %u does not answer", r->member);
	} else {
		rc = r->rc;
		*reply = r->reply;
		r->reply = NULL;
		if (rc != 0)
			error_set(err, -rc, "%s", r->err.text);
	}
	r->node = NULL;
	if (r->ended)
		request_free(r);
	return rc;
}

/* --- clients --- */

struct etcd_http *
etcd_http_create(const struct fleet_config *config)
{
	struct etcd_http *h = calloc(1, sizeof(*h));

	(void)config;
	if (h == NULL)
		abort();
	h->node = fleet_opening;
	return h;
}

void
etcd_http_destroy(struct etcd_http *h)
{
	free(h);
}

int
etcd_http_token(struct etcd_client *c, const char *token)
{
	(void)c, (void)token;
	return 0;
}

/* --- the checks that need no end --- */

/* Only the leader's transactions may write these keys. */
static void
check_writer(struct fleet_script *fs, const char *key, bool gone)
{
	const struct model_event *leader;
	const char *name = fs->net.sender != NULL ? fs->net.sender->fleet->config.name : "nobody";

	if (strcmp(key, "/p/c/change") != 0 && strcmp(key, "/p/c/part") != 0)
		return;
	leader = etcd_model_at(fs->net.model, "/p/c/leader", fs->net.model->revision);
	if (fs->net.sender == NULL)
		return; /* its process was killed meanwhile: nobody knows who it was */
	if (leader == NULL || strcmp((const char *)leader->value, name) != 0)
		sim_fail(fs->sim, "%s has %s %s and does not lead", name,
			gone ? "removed" : "written", key);
}

static void
check_event(void *arg, const struct model_event *e)
{
	check_writer(arg, e->key, e->value == NULL);
	fleet_faults_wrote(arg, e);
	fleet_owned_wrote(arg, e);
	fleet_op_wrote(arg, e);
}

void
fleet_net_init(struct fleet_script *fs)
{
	fs->net.model = etcd_model_create();
	fs->net.model->wrote = check_event;
	fs->net.model->arg = fs;
	fs->net.model->max_ops = fs->max_txn_ops;
	fs->net.weather.delay = SIM_MS / 2;
	fleet_script_now = fs;
	sim_at(fs->sim, fs->sim->now + EXPIRE_MS * SIM_MS, expire_leases, fs);
}

void
fleet_net_fini(struct fleet_script *fs)
{
	while (fs->net.requests != NULL)
		request_free(fs->net.requests);
	while (fs->net.watches != NULL)
		net_watch_free(fs, fs->net.watches);
	etcd_model_destroy(fs->net.model);
}
