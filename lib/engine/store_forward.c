/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Changes in a fleet. A client may repeat a request to any appliance, so each has an identity, and
 * etcd keeps its answer for a while.
 *
 * At the leader, a change of its own client is executed at once, in a transaction that is refused
 * if the request is known already. A refused one, and each change that reaches an appliance which
 * does not lead, goes the long way: the request is put into etcd, whoever leads executes it, and
 * the answer comes by the watch. Asking again has no effect, so what is not certain is asked again.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/store_forward.h"
#include "engine/worker.h"
#include "sa/forward.h"

#define WAIT_MS       20000 /* for an answer: the least lifetime of a transaction */
#define LAST_WAIT_MS  1000 /* for one that is on its way */
#define ASK_AGAIN_MS  5000
#define ASK_FAILED_MS 500
#define SERVE_WAIT_MS 50 /* after a refused transaction */
#define ASK_BYTES_MAX (512u << 10) /* in one transaction */

_Static_assert(FORWARD_ID_LEN < FLEET_ID_MAX, "room for an ID");

/* A change that waits for its answer. */
struct forwarded {
	TAILQ_ENTRY(forwarded) next;
	char id[FLEET_ID_MAX];
	struct sa_write *write;
	uint64_t ask_at; /* TSC */
	uint64_t end;
	bool executed; /* its time is over, and it could not be taken back */
	size_t len;
	uint8_t request[];
};

struct store_forward {
	struct engine *engine;
	void (*hand_back)(void *arg, struct sa_write *write);
	void *arg;
	TAILQ_HEAD(, forwarded) waiting;
	unsigned int num_waiting;
	/* the leader's work for others */
	uint64_t serve_at;
	unsigned int serve_max; /* requests in the next transaction */
	struct sa_write serving[FLEET_REQUEST_BATCH];
	/* the transaction in progress */
	struct sa_write *write[FLEET_REQUEST_BATCH];
	struct fleet_message message[FLEET_REQUEST_BATCH];
	unsigned int num;
	uint8_t answer[FLEET_REQUEST_BATCH][FORWARD_ANSWER_MAX];
	uint8_t request[FORWARD_REQUEST_MAX];
};

static uint64_t
after_ms(const struct store_forward *sf, uint64_t ms)
{
	return rte_get_tsc_cycles() + sf->engine->hz / 1000 * ms;
}

/* etcd limits the operations of a transaction; each request takes up to three. */
static unsigned int
batch_max(const struct store_forward *sf)
{
	unsigned int most = (unsigned int)store_max_ops(sf->engine->store) / 3;

	return RTE_MIN(RTE_MAX(most, 1u), (unsigned int)FLEET_REQUEST_BATCH);
}

/* --- the table of waiting changes --- */

static struct forwarded *
forwarded_new(struct store_forward *sf, struct sa_write *write)
{
	char id[FORWARD_ID_LEN + 1];
	size_t len = forward_put_request(write, sf->request, id);
	struct forwarded *w = len != 0 ? malloc(sizeof(*w) + len) : NULL;

	if (w == NULL)
		return NULL;
	memset(w, 0, sizeof(*w));
	memcpy(w->id, id, sizeof(id));
	w->write = write;
	w->end = after_ms(sf, WAIT_MS);
	w->len = len;
	memcpy(w->request, sf->request, len);
	return w;
}

static void
wait_for_answer(struct store_forward *sf, struct forwarded *w)
{
	TAILQ_INSERT_TAIL(&sf->waiting, w, next);
	fleet_expect(sf->engine->fleet, ++sf->num_waiting);
}

static void
give_back(struct store_forward *sf, struct sa_write *write, uint16_t status)
{
	write->status = status;
	sf->hand_back(sf->arg, write);
}

static void
wait_ends(struct store_forward *sf, struct forwarded *w, uint16_t status)
{
	TAILQ_REMOVE(&sf->waiting, w, next);
	fleet_expect(sf->engine->fleet, --sf->num_waiting);
	give_back(sf, w->write, status);
	free(w);
}

/* --- transactions --- */

static void
transaction_add(struct store_forward *sf, struct sa_write *write, const char *id, uint64_t created)
{
	sf->write[sf->num] = write;
	sf->message[sf->num] = (struct fleet_message){ .id = id, .created = created };
	sf->num++;
}

static int
transaction_settled(void *arg, bool unchanged)
{
	struct store_forward *sf = arg;
	unsigned int i;

	for (i = 0; i < sf->num; i++) {
		sf->message[i].bytes = sf->answer[i];
		sf->message[i].len = forward_put_answer(sf->write[i], sf->answer[i]);
	}
	fleet_answers(sf->engine->fleet, sf->message, sf->num);
	return unchanged ? fleet_write_answers(sf->engine->fleet, NULL) : 0;
}

static int
transaction_execute(struct store_forward *sf, uint64_t lease_now)
{
	struct sa_settle settle = { transaction_settled, sf };
	int rc = sa_write_settle(sf->engine->sa, sf->write, sf->num, lease_now, &settle);

	fleet_answers(sf->engine->fleet, NULL, 0);
	sf->num = 0;
	return rc;
}

/* --- changes of this appliance's clients --- */

/* True if trying again does not help. */
static bool
is_final(int rc)
{
	return rc == -E2BIG || rc == -ENOSPC || rc == -ENOMEM;
}

/* The change as its client asked for it: an attempt leaves in it what it found. */
static void
forwarded_reset(struct store_forward *sf, const struct forwarded *w)
{
	struct sa_write *asked = &sf->serving[0];

	if (forward_get_request(asked, w->request, w->len) != 0)
		return; /* forwarded_new() wrote it */
	memcpy(w->write->rec, asked->rec, sizeof(asked->rec));
	w->write->rid = asked->rid;
	w->write->mask = asked->mask;
	w->write->share_full = false;
}

/* The leader: execute them, in parts if they are too many. */
static void
execute_own(struct store_forward *sf, struct forwarded **list, unsigned int n, uint64_t lease_now)
{
	unsigned int i;
	int rc;

	for (i = 0; i < n; i++)
		transaction_add(sf, list[i]->write, list[i]->id, 0);
	rc = transaction_execute(sf, lease_now);
	if (rc == -E2BIG && n > 1) {
		for (i = 0; i < n; i++)
			forwarded_reset(sf, list[i]);
		execute_own(sf, list, n / 2, lease_now);
		execute_own(sf, list + n / 2, n - n / 2, lease_now);
		return;
	}
	for (i = 0; i < n; i++) {
		if (rc != 0 && !is_final(rc)) {
			wait_for_answer(sf, list[i]);
			continue;
		}
		give_back(sf, list[i]->write,
			rc == 0 ? list[i]->write->status : SA_STATUS_NO_RESOURCES);
		free(list[i]);
	}
}

static bool
is_among(struct forwarded **list, unsigned int n, const char *id)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (strcmp(list[i]->id, id) == 0)
			return true;
	return false;
}

/* Without etcd a client is refused at once; a trap, whose issuer cannot ask again, waits. */
static bool
may_wait(const struct store_forward *sf, const struct sa_write *write)
{
	return fleet_connected(sf->engine->fleet) || write->kind == WRITE_NOTICE;
}

static void
batch_part(struct store_forward *sf, struct sa_write **writes, unsigned int n, uint64_t lease_now)
{
	struct forwarded *own[FLEET_REQUEST_BATCH], *w;
	bool leads = fleet_leads(sf->engine->fleet);
	unsigned int i, num = 0;

	for (i = 0; i < n; i++) {
		w = may_wait(sf, writes[i]) ? forwarded_new(sf, writes[i]) : NULL;
		if (w == NULL)
			give_back(sf, writes[i], SA_STATUS_NO_RESOURCES);
		else if (leads && !is_among(own, num, w->id))
			own[num++] = w;
		else
			wait_for_answer(sf, w);
	}
	if (num > 0)
		execute_own(sf, own, num, lease_now);
}

void
store_forward_batch(struct store_forward *sf, struct sa_write **writes, unsigned int n,
	uint64_t lease_now)
{
	unsigned int i, part;

	for (i = 0; i < n; i += part) {
		part = RTE_MIN(n - i, batch_max(sf));
		batch_part(sf, writes + i, part, lease_now);
	}
}

/* Put requests into etcd whose time has come. */
static bool
ask_due(struct store_forward *sf)
{
	struct forwarded *list[FLEET_REQUEST_BATCH], *w;
	uint64_t now = rte_get_tsc_cycles();
	unsigned int i, n = 0;
	size_t bytes = 0;
	int rc;

	TAILQ_FOREACH(w, &sf->waiting, next) {
		if (w->ask_at > now || w->executed || is_among(list, n, w->id))
			continue;
		if (n == batch_max(sf) || bytes + w->len > ASK_BYTES_MAX)
			break;
		sf->message[n] = (struct fleet_message){ w->id, 0, w->request, w->len };
		list[n++] = w;
		bytes += w->len;
	}
	if (n == 0)
		return false;
	rc = fleet_ask(sf->engine->fleet, sf->message, n, NULL);
	for (i = 0; i < n; i++)
		list[i]->ask_at = after_ms(sf, rc == 0 ? ASK_AGAIN_MS : ASK_FAILED_MS);
	return true;
}

/* The client does not wait any longer for one of them. */
static bool
end_due(struct store_forward *sf)
{
	struct forwarded *w;
	int rc;

	TAILQ_FOREACH(w, &sf->waiting, next)
		if (w->end <= rte_get_tsc_cycles())
			break;
	if (w == NULL)
		return false;
	rc = w->executed ? 1 : fleet_withdraw(sf->engine->fleet, w->id, NULL);
	if (rc < 0) {
		wait_ends(sf, w, SA_STATUS_NO_RESOURCES);
	} else if (rc > 0) {
		wait_ends(sf, w, MAD_STATUS_BUSY);
	} else {
		w->executed = true;
		w->end = after_ms(sf, LAST_WAIT_MS);
	}
	return true;
}

static void
take_one_news(struct store_forward *sf, const struct fleet_news *news)
{
	struct forwarded *w, *more;

	for (w = TAILQ_FIRST(&sf->waiting); w != NULL; w = more) {
		more = TAILQ_NEXT(w, next);
		if (news->kind == FLEET_MISSED)
			w->ask_at = 0;
		else if (strcmp(w->id, news->id) != 0)
			continue;
		else if (news->kind == FLEET_GONE)
			w->ask_at = 0;
		else if (forward_get_answer(w->write, news->bytes, news->len) == 0)
			wait_ends(sf, w, w->write->status);
		else
			wait_ends(sf, w, SA_STATUS_NO_RESOURCES);
	}
}

static bool
take_news(struct store_forward *sf)
{
	struct fleet_news *news;
	bool any = false;

	while ((news = fleet_news(sf->engine->fleet)) != NULL) {
		take_one_news(sf, news);
		free(news);
		any = true;
	}
	return any;
}

/* --- the leader: changes of other appliances' clients --- */

/* Answer a request that is not executed. */
static void
refuse(struct store_forward *sf, struct fleet_request *r)
{
	struct sa_write none = { .status = SA_STATUS_NO_RESOURCES };
	int rc;

	sf->write[0] = &none;
	sf->message[0] = (struct fleet_message){ .id = r->id, .created = r->created };
	sf->num = 1;
	fleet_keep_notice(sf->engine->fleet, NULL, 0);
	rc = transaction_settled(sf, true);
	fleet_settle(sf->engine->fleet, &r, 1, rc == 0);
	if (rc != 0)
		sf->serve_at = after_ms(sf, SERVE_WAIT_MS);
	fleet_answers(sf->engine->fleet, NULL, 0);
	sf->num = 0;
}

static void
serve_failed(struct store_forward *sf, struct fleet_request **list, unsigned int n, int rc)
{
	if (n == 1 && is_final(rc)) {
		refuse(sf, list[0]);
		return;
	}
	/* one may have been withdrawn and keep the others from being executed */
	sf->serve_max = rc == -E2BIG ? n / 2 : 1;
	if (rc != -E2BIG)
		sf->serve_at = after_ms(sf, SERVE_WAIT_MS);
	fleet_settle(sf->engine->fleet, list, n, false);
}

static bool
serve_others(struct store_forward *sf, uint64_t lease_now)
{
	struct fleet_request *list[FLEET_REQUEST_BATCH];
	unsigned int i, n, good = 0;
	int rc;

	if (rte_get_tsc_cycles() < sf->serve_at)
		return false;
	n = fleet_take(sf->engine->fleet, list, sf->serve_max);
	for (i = 0; i < n; i++) {
		if (forward_get_request(&sf->serving[good], list[i]->bytes, list[i]->len) == 0)
			list[good++] = list[i];
		else
			refuse(sf, list[i]);
	}
	if (good == 0)
		return n > 0;
	for (i = 0; i < good; i++)
		transaction_add(sf, &sf->serving[i], list[i]->id, list[i]->created);
	rc = transaction_execute(sf, lease_now);
	if (rc != 0) {
		serve_failed(sf, list, good, rc);
		return true;
	}
	fleet_settle(sf->engine->fleet, list, good, true);
	sf->serve_max = RTE_MIN(2 * sf->serve_max, batch_max(sf));
	return true;
}

/* --- the store's thread --- */

bool
store_forward_run(struct store_forward *sf, uint64_t lease_now)
{
	bool work = take_news(sf);

	work |= serve_others(sf, lease_now);
	work |= ask_due(sf);
	work |= end_due(sf);
	return work;
}

void
store_forward_stop(struct store_forward *sf)
{
	while (!TAILQ_EMPTY(&sf->waiting))
		wait_ends(sf, TAILQ_FIRST(&sf->waiting), MAD_STATUS_BUSY);
}

struct store_forward *
store_forward_create(struct engine *e, void (*hand_back)(void *arg, struct sa_write *write),
	void *arg)
{
	struct store_forward *sf = calloc(1, sizeof(*sf));

	if (sf == NULL)
		return NULL;
	sf->engine = e;
	sf->hand_back = hand_back;
	sf->arg = arg;
	sf->serve_max = 1;
	TAILQ_INIT(&sf->waiting);
	return sf;
}

void
store_forward_destroy(struct store_forward *sf)
{
	free(sf);
}
