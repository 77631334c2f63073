/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The leader's work in a fleet: transactions with their answers, and the requests of other
 * appliances' clients.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/staged_fetch.h"
#include "engine/store_forward_private.h"

#define SERVE_WAIT_MS 50 /* after a refused transaction */
#define FULL_WAIT_MS  5000 /* the longest while etcd is full */

/* --- transactions --- */

void
forward_transaction_add(struct store_forward *sf, struct sa_write *write, const char *id,
	uint64_t created)
{
	sf->write[sf->num] = write;
	sf->message[sf->num] = (struct fleet_message){ .id = id, .created = created };
	sf->num++;
}

/* A request is over with its answer: without its parts nobody executes it once more. */
static void
unstage(struct store_forward *sf, unsigned int i)
{
	const struct sa_write *w = sf->write[i];

	if (!staged_is(w) || staged_get_head(&sf->staged, w->forwarded, w->data_len) != 0)
		return;
	sf->message[i].stage_owner = sf->staged.owner;
	sf->message[i].stage_id = sf->staged.id;
}

static int
forward_transaction_settled(void *arg, bool unchanged)
{
	struct store_forward *sf = arg;
	unsigned int i;

	for (i = 0; i < sf->num; i++) {
		sf->message[i].bytes = sf->answer[i];
		sf->message[i].len = forward_put_answer(sf->write[i], sf->answer[i]);
		unstage(sf, i);
	}
	fleet_answers(sf->side.fleet, sf->message, sf->num);
	return unchanged ? fleet_write_answers(sf->side.fleet, NULL) : 0;
}

int
forward_transaction_execute(struct store_forward *sf, uint64_t lease_now)
{
	struct sa_settle settle = { forward_transaction_settled, sf };
	int rc = sa_write_settle(sf->side.sa, sf->write, sf->num, lease_now, &settle);

	fleet_answers(sf->side.fleet, NULL, 0);
	sf->num = 0;
	return rc;
}

/* --- the leader: changes of other appliances' clients --- */

/*
 * The requests wait after a transaction that was refused. While etcd is full, each wait is twice as
 * long as the one before, because an answer finds no room either.
 */
static void
serve_later(struct store_forward *sf)
{
	uint64_t wait_ms = SERVE_WAIT_MS;

	if (fleet_is_full(sf->side.fleet)) {
		if (sf->full_wait_ms != 0)
			wait_ms = RTE_MIN(2 * sf->full_wait_ms, (uint64_t)FULL_WAIT_MS);
		sf->full_wait_ms = wait_ms;
	}
	sf->serve_at = forward_after_ms(sf, wait_ms);
}

/* True if it is time to execute requests: also when etcd has room again. */
static bool
serve_is_due(struct store_forward *sf)
{
	if (sf->full_wait_ms != 0 && !fleet_is_full(sf->side.fleet)) {
		sf->full_wait_ms = 0;
		return true;
	}
	return sf->side.cycles() >= sf->serve_at;
}

/*
 * Answer a request that is not executed.
 *
 * @param w  as it was read; NULL: it could not be read
 * @param why  for an import's answer
 */
static void
refuse(struct store_forward *sf, struct fleet_request *r, const struct sa_write *w, uint16_t status,
	const char *why)
{
	struct sa_write none = { .status = status };
	int rc;

	if (w != NULL && staged_is(w)) {
		none.kind = w->kind;
		none.forwarded = w->forwarded;
		none.data_len = w->data_len;
		snprintf((char *)none.rec, STAGED_TEXT_MAX, "%.*s", STAGED_TEXT_MAX - 1, why);
	}
	sf->write[0] = &none;
	sf->message[0] = (struct fleet_message){ .id = r->id, .created = r->created };
	sf->num = 1;
	fleet_keep_notice(sf->side.fleet, NULL, 0);
	rc = forward_transaction_settled(sf, true);
	fleet_settle(sf->side.fleet, &r, 1, rc == 0);
	if (rc != 0)
		serve_later(sf);
	fleet_answers(sf->side.fleet, NULL, 0);
	sf->num = 0;
}

static void
serve_failed(struct store_forward *sf, struct fleet_request **list, unsigned int n, int rc)
{
	/* the answer would find no room in etcd either */
	if (n == 1 && forward_is_final(rc) && !fleet_is_full(sf->side.fleet)) {
		refuse(sf, list[0], &sf->serving[0], SA_STATUS_NO_RESOURCES,
			"it has no room for the records");
		return;
	}
	/* one may have been withdrawn and keep the others from being executed */
	sf->serve_max = rc == -E2BIG ? n / 2 : 1;
	if (rc != -E2BIG)
		serve_later(sf);
	fleet_settle(sf->side.fleet, list, n, false);
}

/* Read the records of a request that names parts. @return false: it is not to be executed now */
static bool
serve_staged(struct store_forward *sf, struct fleet_request *r)
{
	struct sa_write *w = &sf->serving[0];
	struct error err = { "" };
	int rc = staged_fetch(&sf->side, w, &err);

	if (rc == -ENOENT && w->kind == WRITE_IMPORT)
		refuse(sf, r, w, SA_STATUS_NO_RECORDS, err.text);
	else if (rc == -ENOENT || rc == -EBADMSG || rc == -EFBIG)
		refuse(sf, r, w, SA_STATUS_NO_RESOURCES, err.text);
	else if (rc != 0)
		serve_failed(sf, &r, 1, rc);
	return rc == 0;
}

/*
 * Read requests into .serving. One that names parts is executed alone, because it is large.
 *
 * @param list  the requests to execute are its first ones afterwards; the others are settled
 * @return their number
 */
static unsigned int
serve_read(struct store_forward *sf, struct fleet_request **list, unsigned int n)
{
	struct sa_write *w = &sf->serving[0];
	unsigned int i, good = 0;

	for (i = 0; i < n && (good == 0 || !staged_is(w)); i++) {
		w = &sf->serving[good];
		if (forward_get_request(w, list[i]->bytes, list[i]->len) != 0)
			refuse(sf, list[i], NULL, SA_STATUS_NO_RESOURCES, NULL);
		else if (staged_is(w) && good > 0)
			break;
		else
			list[good++] = list[i];
	}
	fleet_settle(sf->side.fleet, list + i, n - i, false);
	if (good == 1 && staged_is(&sf->serving[0]) && !serve_staged(sf, list[0]))
		return 0;
	return good;
}

bool
forward_serve_others(struct store_forward *sf, uint64_t lease_now)
{
	struct fleet_request *list[FLEET_REQUEST_BATCH];
	unsigned int i, n, good;
	int rc;

	if (!serve_is_due(sf))
		return false;
	n = fleet_take(sf->side.fleet, list, sf->serve_max);
	good = serve_read(sf, list, n);
	if (good == 0)
		return n > 0;
	for (i = 0; i < good; i++)
		forward_transaction_add(sf, &sf->serving[i], list[i]->id, list[i]->created);
	rc = forward_transaction_execute(sf, lease_now);
	free((void *)(uintptr_t)sf->serving[0].staged);
	if (rc != 0) {
		serve_failed(sf, list, good, rc);
		return true;
	}
	fleet_settle(sf->side.fleet, list, good, true);
	sf->serve_max = RTE_MIN(2 * sf->serve_max, forward_batch_max(sf));
	return true;
}
