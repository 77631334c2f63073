/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "dest.h"
#include "methods.h"
#include "sa_several.h"

#define SEVERAL_MAX 16
#define HEDGE_MS    200
#define LOOK_MS     500 /* wait for an answer, if nobody else is asked */
#define LOOK_TWO_MS 10 /* while several may answer */

enum asked_state {
	ASKED_NOT_YET,
	ASKED_RUNNING,
	ASKED_ANSWERED,
	ASKED_FAILED,
};

struct asked {
	const char *to; /* text of an address or a LID; NULL: as the parameters say */
	enum asked_state state;
	json_int_t number;
	char why[200]; /* it failed */
};

struct round {
	const struct sa_several *s;
	json_t *params;
	struct asked asked[SEVERAL_MAX];
	unsigned int num;
	unsigned int begun; /* the first so many have been asked */
	unsigned int running;
	uint64_t next_ms; /* when the next one is asked, whether or not an answer may come */
};

static uint64_t
round_now_ms(void)
{
	return clock_us() / 1000;
}

/* The server's error, or that of the connection. */
static void
asked_call_failed(struct asked *a, int rc, const json_t *error)
{
	snprintf(a->why, sizeof(a->why), "%s",
		rc == 1 ? method_text(error, "message") : strerror(errno));
	a->state = ASKED_FAILED;
}

static void
ask_next(struct round *r, unsigned int hedge_ms)
{
	struct asked *a = &r->asked[r->begun++];
	json_t *params = json_copy(r->params), *result = NULL, *error = NULL;
	int rc;

	if (a->to != NULL) {
		json_object_del(params, "to");
		json_object_del(params, "dlid");
		dest_parse(a->to, params, "to", "dlid");
	}
	rc = connection_call(r->s->c, "sa_query", params, r->s->o->wait_ms, &result, &error);
	if (rc == 0) {
		a->number = member_int(result, "query");
		a->state = ASKED_RUNNING;
		r->running++;
	} else {
		asked_call_failed(a, rc, error);
	}
	r->next_ms = round_now_ms() + hedge_ms;
	json_decref(result);
	json_decref(error);
	json_decref(params);
}

static void
asked_cancel(const struct round *r, const struct asked *a)
{
	json_t *params = json_pack("{s:I}", "query", a->number), *result = NULL, *error = NULL;

	connection_call(r->s->c, "sa_cancel", params, r->s->o->wait_ms, &result, &error);
	json_decref(result);
	json_decref(error);
	json_decref(params);
}

/* Whether another SA may do better: this one is silent, busy, or at a bound of its own. */
static bool
another_may_answer(const json_t *page)
{
	static const char *const others[] = { "TIMEOUT", "BUSY", "NO_RESOURCES" };
	size_t i;

	if (strcmp(method_text(page, "end"), "ABORTED") == 0)
		return true;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(method_text(page, "status"), others[i]) == 0)
			return true;
	return false;
}

/* Wait for the end of a query, or for its first records. */
static void
look_at_asked(struct round *r, struct asked *a, unsigned int wait_ms)
{
	json_t *params = json_pack("{s:I, s:i, s:i}", "query", a->number, "max", 0, "timeout_ms",
		(int)wait_ms);
	json_t *page = NULL, *error = NULL;
	int rc = connection_call(r->s->c, "sa_result", params, r->s->o->wait_ms + wait_ms, &page,
		&error);

	if (rc != 0) {
		asked_call_failed(a, rc, error);
	} else if (strcmp(method_text(page, "state"), "done") == 0 && another_may_answer(page)) {
		snprintf(a->why, sizeof(a->why), "%s: %s", method_text(page, "status"),
			method_text(page, "message"));
		a->state = ASKED_FAILED;
		asked_cancel(r, a);
	} else if (strcmp(method_text(page, "state"), "done") == 0 ||
		member_int(page, "received") > 0) {
		a->state = ASKED_ANSWERED;
	}
	r->running -= a->state != ASKED_RUNNING;
	json_decref(page);
	json_decref(error);
	json_decref(params);
}

/* How long a look may wait: until the next SA is asked. */
static unsigned int
look_ms(const struct round *r)
{
	uint64_t now = round_now_ms();

	if (r->running > 1)
		return LOOK_TWO_MS;
	if (r->begun == r->num || r->s->change || r->next_ms > now + LOOK_MS)
		return LOOK_MS;
	return r->next_ms > now ? (unsigned int)(r->next_ms - now) : 0;
}

/* @return the one that has answered, or NULL: all have failed, or a signal came */
static struct asked *
first_answer(struct round *r, unsigned int hedge_ms)
{
	unsigned int i;

	while (*r->s->stop == 0) {
		if (r->begun < r->num &&
			(r->running == 0 || (!r->s->change && round_now_ms() >= r->next_ms)))
			ask_next(r, hedge_ms);
		else if (r->running == 0)
			break;
		for (i = 0; i < r->begun && *r->s->stop == 0; i++) {
			if (r->asked[i].state == ASKED_RUNNING)
				look_at_asked(r, &r->asked[i], look_ms(r));
			if (r->asked[i].state == ASKED_ANSWERED)
				return &r->asked[i];
		}
	}
	return NULL;
}

static void
say_who_failed(const struct round *r)
{
	unsigned int i;

	fprintf(stderr, "polca-ctl: %s: none of %u SAs has answered\n", r->s->words, r->num);
	for (i = 0; i < r->begun; i++)
		fprintf(stderr, "  %s: %s\n", r->asked[i].to != NULL ? r->asked[i].to : "the first",
			r->asked[i].why);
}

/* Split "A,B,C" in place. */
static int
add_others(struct round *r, char *list)
{
	json_t *none = json_object();
	char *word, *rest = list;
	int rc = 0;

	while (rc == 0 && (word = strsep(&rest, ",")) != NULL) {
		if (!dest_parse(word, none, "to", "dlid"))
			rc = usage_error(
				"--or: got \"%s\", allowed: addresses, lid:N or N, with commas between them",
				word);
		else if (r->num == SEVERAL_MAX)
			rc = usage_error("--or: \"%s\" is too many, allowed: 15", word);
		else
			r->asked[r->num++].to = word;
	}
	json_decref(none);
	return rc;
}

/*
 * Choose the change's TID. An SA that was passed over may execute the request later; a fleet
 * recognises it as the one that another SA has executed, by the TID.
 */
static int
choose_one_tid(const struct sa_several *s, json_t *params)
{
	char text[2 + 16 + 1];
	uint64_t tid;

	if (!s->change || json_object_get(params, "tid") != NULL)
		return 0;
	if (json_object_get(params, "worker") != NULL)
		return usage_error(
			"%s: --worker: not allowed with --or: all SAs are asked with one TransactionID, which decides the worker",
			s->words);
	if (getrandom(&tid, sizeof(tid), 0) != (ssize_t)sizeof(tid))
		return usage_error("%s: no random TransactionID", s->words);
	snprintf(text, sizeof(text), "0x%016" PRIx64, tid);
	json_object_set_new(params, "tid", json_string(text));
	return 0;
}

int
sa_ask_several(const struct sa_several *s, json_t *params, json_int_t *number)
{
	struct round r = { .s = s, .params = params, .num = 1 };
	json_int_t hedge_ms = member_int_or(params, "hedge_ms", HEDGE_MS);
	char *list = strdup(method_text(params, "or"));
	struct asked *first = NULL;
	unsigned int i;
	int rc;

	json_object_del(params, "or");
	json_object_del(params, "hedge_ms");
	if (list == NULL)
		return usage_error("%s: out of memory", s->words);
	if (hedge_ms < 1 || hedge_ms > 60000)
		rc = usage_error("%s: --hedge-ms: allowed: 1 to 60000", s->words);
	else
		rc = list[0] != '\0' ? add_others(&r, list) : 0;
	if (rc == 0)
		rc = choose_one_tid(s, params);
	if (rc != 0)
		goto out;
	first = first_answer(&r, (unsigned int)hedge_ms);
	for (i = 0; i < r.begun; i++)
		if (r.asked[i].state == ASKED_RUNNING)
			asked_cancel(&r, &r.asked[i]);
	if (first != NULL) {
		*number = first->number;
	} else {
		rc = EXIT_STATUS;
		if (*s->stop == 0)
			say_who_failed(&r);
	}
out:
	free(list);
	return rc;
}
