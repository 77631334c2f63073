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

#include <rte_common.h>

#include "engine/store_forward_private.h"

#define WAIT_MS       20000 /* for an answer: the least lifetime of a transaction */
#define IMPORT_MS     300000 /* for an import, which takes etcd long */
#define LAST_WAIT_MS  1000 /* for one that is on its way */
#define ASK_AGAIN_MS  5000
#define ASK_FAILED_MS 500
#define ASK_BYTES_MAX (512u << 10) /* in one transaction */

#define NO_ROOM_TEXT "etcd has no room: its quota (--quota-backend-bytes) is exceeded"

/* --- the table of waiting changes --- */

/* A large Config's parts: how many there will be, and where. */
static void
forwarded_plan_parts(struct store_forward *sf, const struct sa_write *write, struct staged_head *h)
{
	snprintf(h->owner, sizeof(h->owner), "%s", fleet_name(sf->side.fleet));
	h->id = sf->side.random();
	staged_count_config(write, h);
}

static struct forwarded *
forwarded_new(struct store_forward *sf, struct sa_write *write)
{
	bool large = write->kind == WRITE_CONFIG && write->data_len > FORWARD_CONFIG_MAX;
	struct staged_head staged = { .parts = 0 };
	char id[FORWARD_ID_LEN + 1];
	struct forwarded *w;
	size_t len;

	if (large)
		forwarded_plan_parts(sf, write, &staged);
	len = forward_put_request(write, large ? &staged : NULL, sf->request, id);
	w = len != 0 ? malloc(sizeof(*w) + len) : NULL;
	if (w == NULL)
		return NULL;
	memset(w, 0, sizeof(*w));
	memcpy(w->id, id, sizeof(id));
	w->write = write;
	w->staged = staged;
	w->lease = write->stage_lease;
	w->end = forward_after_ms(sf, write->kind == WRITE_IMPORT ? IMPORT_MS : WAIT_MS);
	w->len = len;
	memcpy(w->request, sf->request, len);
	return w;
}

static void
wait_for_answer(struct store_forward *sf, struct forwarded *w)
{
	TAILQ_INSERT_TAIL(&sf->waiting, w, next);
	fleet_expect(sf->side.fleet, ++sf->num_waiting);
}

static void
give_back(struct store_forward *sf, struct sa_write *write, uint16_t status)
{
	write->status = status;
	sf->hand_back(sf->arg, write);
}

/* An import that no leader has executed, and none will: say why. */
static void
import_not_made(struct sa_write *write, const char *why)
{
	if (write->kind != WRITE_IMPORT)
		return;
	write->not_made = true;
	snprintf((char *)write->rec, STAGED_TEXT_MAX, "%s", why);
}

static void
wait_is_refused(struct store_forward *sf, struct forwarded *w)
{
	give_back(sf, w->write, SA_STATUS_NO_RESOURCES);
	free(w);
}

static void
wait_ends(struct store_forward *sf, struct forwarded *w, uint16_t status)
{
	TAILQ_REMOVE(&sf->waiting, w, next);
	fleet_expect(sf->side.fleet, --sf->num_waiting);
	if (w->stages)
		fleet_stage_end(sf->side.fleet, w->staged.id);
	give_back(sf, w->write, status);
	free(w);
}

/* --- changes of this appliance's clients --- */

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
	bool final;
	int rc;

	for (i = 0; i < n; i++)
		forward_transaction_add(sf, list[i]->write, list[i]->id, 0);
	rc = forward_transaction_execute(sf, lease_now);
	if (rc == -E2BIG && n > 1) {
		for (i = 0; i < n; i++)
			forwarded_reset(sf, list[i]);
		execute_own(sf, list, n / 2, lease_now);
		execute_own(sf, list + n / 2, n - n / 2, lease_now);
		return;
	}
	for (i = 0; i < n; i++) {
		/* a trap waits for room, as is_hopeless() says */
		final = forward_is_final(rc) &&
			(rc != -ENOSPC || list[i]->write->kind != WRITE_NOTICE);
		if (rc != 0 && !final && !list[i]->write->only_now) {
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

/* True if no change can be made: the client is refused at once. */
static bool
is_hopeless(const struct store_forward *sf, const struct sa_write *write)
{
	return (!fleet_connected(sf->side.fleet) || fleet_is_full(sf->side.fleet)) &&
		write->kind != WRITE_NOTICE; /* a trap waits: its issuer cannot ask again */
}

static void
refuse_at_once(struct store_forward *sf, struct sa_write *write)
{
	import_not_made(write,
		!fleet_connected(sf->side.fleet) ? "etcd does not answer: no change is possible"
			: fleet_is_full(sf->side.fleet) ? NO_ROOM_TEXT
							: "no memory for a change");
	give_back(sf, write, SA_STATUS_NO_RESOURCES);
}

static void
batch_part(struct store_forward *sf, struct sa_write **writes, unsigned int n, uint64_t lease_now)
{
	struct forwarded *own[FLEET_REQUEST_BATCH], *w;
	bool leads = fleet_leads(sf->side.fleet);
	unsigned int i, num = 0;

	for (i = 0; i < n; i++) {
		w = is_hopeless(sf, writes[i]) ? NULL : forwarded_new(sf, writes[i]);
		if (w == NULL)
			refuse_at_once(sf, writes[i]);
		else if (leads && writes[i]->kind != WRITE_IMPORT && !is_among(own, num, w->id))
			own[num++] = w;
		else if (writes[i]->only_now)
			wait_is_refused(sf, w);
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
		part = RTE_MIN(n - i, forward_batch_max(sf));
		batch_part(sf, writes + i, part, lease_now);
	}
}

/*
 * Parts go with their lease, and a request has the lease of its parts. If it has ended before the
 * request was put, nobody has seen them: they are staged again, by the import's thread if they are
 * an import's.
 */
static bool
restage_due(struct store_forward *sf)
{
	uint64_t lease = fleet_lease(sf->side.fleet);
	struct forwarded *w;

	TAILQ_FOREACH(w, &sf->waiting, next)
		if (lease != 0 && w->lease != 0 && w->lease != lease && !w->executed)
			break;
	if (w == NULL)
		return false;
	w->lease = 0;
	w->parts_put = 0;
	w->ask_at = 0;
	if (w->write->kind == WRITE_IMPORT && w->asked == 0) {
		w->write->unstaged = true;
		wait_ends(sf, w, MAD_STATUS_BUSY);
	}
	return true;
}

/* A request follows its parts, of which one is put at a time: others are served in between. */
static bool
stage_due(struct store_forward *sf)
{
	struct forwarded *w;
	int rc = 0;

	TAILQ_FOREACH(w, &sf->waiting, next)
		if (w->parts_put < w->staged.parts && w->ask_at <= sf->side.cycles())
			break;
	if (w == NULL)
		return false;
	if (w->parts_put == 0)
		w->lease = fleet_lease(sf->side.fleet);
	if (!w->stages)
		rc = fleet_stage_begin(sf->side.fleet, NULL);
	w->stages |= rc == 0;
	if (rc == 0)
		rc = fleet_stage_put(sf->side.fleet, w->staged.id, w->parts_put, sf->part,
			staged_config_part(w->write, w->parts_put, sf->part), NULL);
	if (rc == 0)
		w->parts_put++;
	else
		w->ask_at = forward_after_ms(sf, ASK_FAILED_MS);
	return true;
}

/* Put requests into etcd whose time has come. */
static bool
ask_due(struct store_forward *sf)
{
	struct forwarded *list[FLEET_REQUEST_BATCH], *w;
	uint64_t now = sf->side.cycles();
	unsigned int i, n = 0;
	size_t bytes = 0;
	int rc;

	TAILQ_FOREACH(w, &sf->waiting, next) {
		if (w->ask_at > now || w->executed || w->parts_put < w->staged.parts ||
			is_among(list, n, w->id) || fleet_is_answered(sf->side.fleet, w->id))
			continue;
		if (n == forward_batch_max(sf) || bytes + w->len > ASK_BYTES_MAX)
			break;
		sf->message[n] = (struct fleet_message){ .id = w->id,
			.bytes = w->request,
			.len = w->len,
			.lease = w->lease };
		list[n++] = w;
		bytes += w->len;
	}
	if (n == 0)
		return false;
	rc = fleet_ask(sf->side.fleet, sf->message, n, NULL);
	for (i = 0; i < n; i++) {
		list[i]->ask_at = forward_after_ms(sf, rc == 0 ? ASK_AGAIN_MS : ASK_FAILED_MS);
		list[i]->asked += rc != -ENOENT && rc != -ENOTCONN && rc != -ENOSPC;
	}
	return true;
}

/* Etcd has no room for the answer: the request is taken back, if it can be. */
static bool
is_over_for_room(const struct store_forward *sf, const struct forwarded *w)
{
	return fleet_is_full(sf->side.fleet) && w->write->kind != WRITE_NOTICE && !w->executed &&
		w->withdraw_at <= sf->side.cycles();
}

/* A request is not in etcd, and was put there once at most: nobody has executed it, or will. */
static void
wait_ends_unmade(struct store_forward *sf, struct forwarded *w, bool full)
{
	if (w->asked <= 1)
		import_not_made(w->write,
			full ? NO_ROOM_TEXT : "no appliance has executed it in time; try again");
	wait_ends(sf, w, full ? SA_STATUS_NO_RESOURCES : MAD_STATUS_BUSY);
}

/* The client does not wait any longer for one of them. */
static bool
end_due(struct store_forward *sf)
{
	struct forwarded *w;
	bool full = false;
	int rc;

	TAILQ_FOREACH(w, &sf->waiting, next) {
		full = is_over_for_room(sf, w);
		if (full || w->end <= sf->side.cycles())
			break;
	}
	if (w == NULL)
		return false;
	if (w->executed) {
		wait_ends(sf, w, MAD_STATUS_BUSY);
		return true;
	}
	rc = full && w->asked == 0 ? 1 : fleet_withdraw(sf->side.fleet, w->id, NULL);
	if (rc > 0) {
		wait_ends_unmade(sf, w, full);
	} else if (rc == 0) {
		w->executed = true;
		w->end = forward_after_ms(sf, LAST_WAIT_MS);
	} else if (w->end <= sf->side.cycles()) {
		wait_ends(sf, w, SA_STATUS_NO_RESOURCES);
	} else { /* it may be in etcd, and executed when there is room */
		w->withdraw_at = forward_after_ms(sf, ASK_FAILED_MS);
	}
	return true;
}

/*
 * An import's parts go with its answer. If the request may have been put twice, that they have gone
 * does not say that it was not made: perhaps its first answer has ended.
 */
static void
import_doubt(const struct forwarded *w)
{
	if (w->write->kind == WRITE_IMPORT && w->write->status == SA_STATUS_NO_RECORDS &&
		w->asked > 1)
		w->write->rec[0] = '\0'; /* without a reason it is not known */
}

/* Ask once more, with all parts again: they may have gone with this appliance's earlier lease. */
static void
forwarded_again(struct forwarded *w)
{
	w->ask_at = 0;
	w->parts_put = 0;
}

static void
take_one_news(struct store_forward *sf, const struct fleet_news *news)
{
	struct forwarded *w, *more;

	for (w = TAILQ_FIRST(&sf->waiting); w != NULL; w = more) {
		more = TAILQ_NEXT(w, next);
		if (news->kind == FLEET_MISSED)
			forwarded_again(w);
		else if (strcmp(w->id, news->id) != 0)
			continue;
		else if (news->kind == FLEET_GONE)
			forwarded_again(w);
		else if (forward_get_answer(w->write, news->bytes, news->len) != 0)
			wait_ends(sf, w, SA_STATUS_NO_RESOURCES);
		else {
			import_doubt(w);
			wait_ends(sf, w, w->write->status);
		}
	}
}

static bool
take_news(struct store_forward *sf)
{
	struct fleet_news *news;
	bool any = false;

	while ((news = fleet_news(sf->side.fleet)) != NULL) {
		take_one_news(sf, news);
		free(news);
		any = true;
	}
	return any;
}

/* --- the store's thread --- */

bool
store_forward_run(struct store_forward *sf, uint64_t lease_now)
{
	bool work = take_news(sf);

	work |= forward_serve_others(sf, lease_now);
	work |= restage_due(sf);
	work |= stage_due(sf);
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
store_forward_create(const struct store_fleet *side,
	void (*hand_back)(void *arg, struct sa_write *write), void *arg)
{
	struct store_forward *sf = calloc(1, sizeof(*sf));

	if (sf == NULL)
		return NULL;
	sf->side = *side;
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
