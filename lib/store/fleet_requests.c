/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requests for changes that reach an appliance which does not lead.
 *
 * The appliance puts q/ID; the leader's watch brings it; the leader executes it and, in the same
 * transaction of etcd's, removes q/ID and writes a/ID; the watch of the appliance brings a/ID
 * behind the records that it speaks of. So each request has one effect at most: the leader's
 * transaction is refused if q/ID is not there any more, and q/ID is not put if a/ID exists.
 *
 * Answers have a lease of their own, so that they outlive the leader and the appliance that asked.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_transport.h"
#include "store/fleet_private.h"

#define REQUESTS_MAX 1024 /* at the leader; others wait in etcd */
#define NEWS_MAX     8192 /* further ones are lost: their requests are put again after a while */

static void
put_request_key(const char *kind, const char *id, char key[FLEET_KEY_MAX])
{
	snprintf(key, FLEET_KEY_MAX, "%.*s%.*s", FLEET_TEXT_MAX + 4, kind, FLEET_ID_MAX, id);
}

/* The ID in a key of this kind, or NULL. */
static const char *
id_of(const char *kind, const char *key)
{
	size_t len = strlen(kind);

	if (strncmp(key, kind, len) != 0 || strlen(key + len) >= FLEET_ID_MAX)
		return NULL;
	return key + len;
}

/* --- an appliance that does not lead: the store's writer --- */

int
fleet_writer_call(struct fleet *f, json_t *body, json_t **reply, struct error *err)
{
	int rc = 0;

	*reply = NULL;
	if (f->config.user[0] != '\0') {
		pthread_mutex_lock(&f->lock);
		rc = etcd_client_borrow(f->writer, f->token);
		pthread_mutex_unlock(&f->lock);
	}
	if (rc != 0) {
		json_decref(body);
		return error_set(err, -rc, "no memory for a change");
	}
	rc = etcd_call(f->writer, "/v3/kv/txn", body, FLEET_REQUEST_MS, reply, err);
	if (etcd_client_token_refused(f->writer)) {
		__atomic_store_n(&f->token_refused, true, __ATOMIC_RELEASE);
		fleet_look_now(f);
	}
	if (rc == -ENOSPC)
		fleet_note_full(f, true);
	return rc;
}

int
fleet_note_silence(struct fleet *f, int rc)
{
	if (etcd_gave_no_answer(rc))
		fleet_is_away(f);
	return rc;
}

void
fleet_expect(struct fleet *f, unsigned int requests)
{
	__atomic_store_n(&f->expected, requests, __ATOMIC_RELEASE);
}

/*
 * If there is no answer and no request yet: put the request. If there is an answer: write it again
 * as it is, so that the watch brings it once more, behind everything that happened before.
 */
static json_t *
ask_one(const struct fleet *f, const struct fleet_message *m, uint64_t lease)
{
	char request[FLEET_KEY_MAX], answer[FLEET_KEY_MAX];
	json_t *touch, *ask;

	put_request_key(f->key.requests, m->id, request);
	put_request_key(f->key.answers, m->id, answer);
	touch = etcd_put(answer, "", 0, 0);
	json_object_del(json_object_get(touch, "request_put"), "value");
	json_object_set_new(json_object_get(touch, "request_put"), "ignore_value", json_true());
	json_object_set_new(json_object_get(touch, "request_put"), "ignore_lease", json_true());
	ask = json_pack("{s:{s:[o], s:[o]}}", "request_txn", "compare",
		etcd_compare(request, "CREATE", "create_revision", 0), "success",
		etcd_put(request, m->bytes, m->len, m->lease != 0 ? m->lease : lease));
	return json_pack("{s:{s:[o], s:[o], s:[o]}}", "request_txn", "compare",
		etcd_compare(answer, "CREATE", "create_revision", 0), "success", ask, "failure",
		touch);
}

uint64_t
fleet_lease(const struct fleet *f)
{
	return __atomic_load_n(&f->request_lease, __ATOMIC_ACQUIRE);
}

/* True if etcd says that it has none of these requests, and no answer to one. */
static bool
none_is_there(struct fleet *f, const struct fleet_message *m, unsigned int n)
{
	json_t *list = json_array(), *reply, *response;
	char key[FLEET_KEY_MAX];
	bool none = true;
	size_t i;

	for (i = 0; i < n; i++) {
		put_request_key(f->key.requests, m[i].id, key);
		json_array_append_new(list, etcd_get(key, NULL));
		put_request_key(f->key.answers, m[i].id, key);
		json_array_append_new(list, etcd_get(key, NULL));
	}
	if (fleet_writer_call(f, json_pack("{s:o}", "success", list), &reply, NULL) != 0)
		return false;
	json_array_foreach(json_object_get(reply, "responses"), i, response)
		none &= json_array_size(json_object_get(json_object_get(response, "response_range"),
				"kvs")) == 0;
	json_decref(reply);
	return none && i == 2u * n;
}

/*
 * What etcd refuses as a whole was not put, unless an attempt before has put it. That it has no
 * room, it may say of what it has put (fleet_change.c: change_call()).
 */
static bool
none_was_put(struct fleet *f, int refused, const struct fleet_message *m, unsigned int n)
{
	return f->writer->attempts == 1 && (refused == -ENOENT || none_is_there(f, m, n));
}

int
fleet_ask(struct fleet *f, const struct fleet_message *m, unsigned int n, struct error *err)
{
	uint64_t lease = fleet_lease(f);
	json_t *list, *reply;
	unsigned int i;
	int rc;

	if (lease == 0 || !fleet_connected(f)) {
		fleet_not_served(f, err);
		return -ENOTCONN;
	}
	list = json_array();
	for (i = 0; i < n; i++)
		json_array_append_new(list, ask_one(f, &m[i], lease));
	rc = fleet_writer_call(f, json_pack("{s:o}", "success", list), &reply, err);
	if (rc == -ENOENT)
		fleet_look_now(f); /* the thread takes another lease */
	if ((rc == -ENOSPC || rc == -ENOENT) && !none_was_put(f, rc, m, n))
		return -EAGAIN;
	if (rc != 0)
		return fleet_note_silence(f, rc);
	json_decref(reply);
	return 0;
}

int
fleet_withdraw(struct fleet *f, const char *id, struct error *err)
{
	char key[FLEET_KEY_MAX];
	json_t *reply, *result;
	uint64_t deleted = 0;
	int rc;

	if (!fleet_connected(f))
		return fleet_not_served(f, err);
	put_request_key(f->key.requests, id, key);
	rc = fleet_writer_call(f, json_pack("{s:[o]}", "success", etcd_delete(key)), &reply, err);
	if (rc != 0)
		return fleet_note_silence(f, rc);
	result = json_object_get(json_array_get(json_object_get(reply, "responses"), 0),
		"response_delete_range");
	if (etcd_json_u64(result, "deleted", &deleted) != 0)
		rc = error_set(err, EPROTO, "etcd's answer lacks what its API promises");
	json_decref(reply);
	return rc == 0 ? deleted != 0 : rc;
}

struct fleet_news *
fleet_news(struct fleet *f)
{
	struct fleet_news *news;

	pthread_mutex_lock(&f->lock);
	news = STAILQ_FIRST(&f->news);
	if (news != NULL && news->after <= f->unqueued) {
		STAILQ_REMOVE_HEAD(&f->news, next);
		f->num_news--;
	} else {
		news = NULL;
	}
	pthread_mutex_unlock(&f->lock);
	return news;
}

bool
fleet_is_answered(struct fleet *f, const char *id)
{
	const struct fleet_news *news;
	bool found = false;

	pthread_mutex_lock(&f->lock);
	STAILQ_FOREACH(news, &f->news, next)
		found |= news->kind == FLEET_ANSWERED && strcmp(news->id, id) == 0;
	pthread_mutex_unlock(&f->lock);
	return found;
}

/* --- the fleet's thread tells it --- */

static void
tell_writer(struct fleet *f, enum fleet_news_kind kind, const char *id, const struct etcd_kv *kv)
{
	size_t len = kv != NULL ? kv->value_len : 0;
	struct fleet_news *news;

	if (__atomic_load_n(&f->expected, __ATOMIC_ACQUIRE) == 0)
		return;
	news = calloc(1, sizeof(*news) + len);
	if (news == NULL)
		return; /* the request is put again after a while */
	news->kind = kind;
	snprintf(news->id, sizeof(news->id), "%s", id);
	news->len = len;
	if (len > 0)
		memcpy(news->bytes, kv->value, len);
	pthread_mutex_lock(&f->lock);
	news->after = f->queued;
	if (f->num_news < NEWS_MAX) {
		STAILQ_INSERT_TAIL(&f->news, news, next);
		f->num_news++;
		news = NULL;
	}
	pthread_mutex_unlock(&f->lock);
	free(news);
}

void
fleet_missed_answers(struct fleet *f)
{
	tell_writer(f, FLEET_MISSED, "", NULL);
	f->wake(f->wake_arg);
}

/* --- the leader: requests to execute --- */

/* Call with the lock held. */
static struct fleet_request *
find_request(struct fleet *f, const char *id)
{
	struct fleet_request *r;

	TAILQ_FOREACH(r, &f->requests, next)
		if (strcmp(r->id, id) == 0 && !r->gone)
			return r;
	return NULL;
}

static void
forget_request(struct fleet *f, struct fleet_request *r)
{
	TAILQ_REMOVE(&f->requests, r, next);
	f->num_requests--;
	free(r);
}

static void
add_request(struct fleet *f, const char *id, const struct etcd_kv *kv)
{
	struct fleet_request *r = NULL;

	pthread_mutex_lock(&f->lock);
	if (find_request(f, id) != NULL)
		goto out;
	if (f->num_requests < REQUESTS_MAX)
		r = calloc(1, sizeof(*r) + kv->value_len);
	if (r == NULL) {
		f->requests_left = true;
		goto out;
	}
	snprintf(r->id, sizeof(r->id), "%s", id);
	r->created = kv->create_revision;
	r->len = kv->value_len;
	memcpy(r->bytes, kv->value, kv->value_len);
	TAILQ_INSERT_TAIL(&f->requests, r, next);
	f->num_requests++;
out:
	pthread_mutex_unlock(&f->lock);
}

static void
remove_request(struct fleet *f, const char *id, uint64_t revision)
{
	struct fleet_request *r;

	pthread_mutex_lock(&f->lock);
	r = find_request(f, id);
	if (r != NULL && r->created < revision) {
		if (r->taken)
			r->gone = true; /* the writer has it: fleet_settle() */
		else
			forget_request(f, r);
	}
	pthread_mutex_unlock(&f->lock);
}

void
fleet_drop_requests(struct fleet *f)
{
	struct fleet_request *r, *more;

	pthread_mutex_lock(&f->lock);
	for (r = TAILQ_FIRST(&f->requests); r != NULL; r = more) {
		more = TAILQ_NEXT(r, next);
		if (r->taken)
			r->gone = true;
		else
			forget_request(f, r);
	}
	pthread_mutex_unlock(&f->lock);
}

/* First the answers: an appliance whose request has gone without one puts it again. */
void
fleet_take_requests(struct fleet *f, const struct etcd_kvs *events)
{
	bool any = false;
	const char *id;
	size_t i;

	for (i = 0; i < events->n; i++) {
		id = id_of(f->key.answers, events->at[i].key);
		if (id == NULL || events->at[i].gone)
			continue;
		any = true;
		tell_writer(f, FLEET_ANSWERED, id, &events->at[i]);
	}
	for (i = 0; i < events->n; i++) {
		const struct etcd_kv *kv = &events->at[i];

		id = id_of(f->key.requests, kv->key);
		if (id == NULL)
			continue;
		any = true;
		if (kv->gone) {
			remove_request(f, id, kv->mod_revision);
			tell_writer(f, FLEET_GONE, id, NULL);
		} else if (fleet_leads(f) && kv->mod_revision > f->requests_read) {
			add_request(f, id, kv);
		}
	}
	if (any)
		f->wake(f->wake_arg);
}

static int
read_requests(struct fleet *f, struct error *err)
{
	struct etcd_header h;
	struct etcd_kvs kvs;
	const char *id;
	size_t i;
	int rc;

	rc = etcd_range(f->session, f->key.requests, f->key.requests_end, 0, REQUESTS_MAX,
		FLEET_REQUEST_MS, &h, &kvs, &f->requests_left, err);
	if (rc != 0)
		return rc;
	f->requests_read = h.revision;
	for (i = 0; i < kvs.n; i++) {
		id = id_of(f->key.requests, kvs.at[i].key);
		if (id != NULL)
			add_request(f, id, &kvs.at[i]);
	}
	etcd_kvs_free(&kvs);
	f->wake(f->wake_arg);
	return 0;
}

static int
renew_answer_lease(struct fleet *f, struct error *err)
{
	uint64_t lease, now = etcd_now_ms();
	int rc;

	if (__atomic_load_n(&f->answer_lease, __ATOMIC_ACQUIRE) != 0 &&
		now < f->answer_lease_made + FLEET_ANSWER_S * 500)
		return 0;
	rc = etcd_lease_grant(f->session, FLEET_ANSWER_S, FLEET_REQUEST_MS, &lease, err);
	if (rc != 0)
		return rc;
	__atomic_store_n(&f->answer_lease, lease, __ATOMIC_RELEASE);
	f->answer_lease_made = now;
	return 0;
}

int
fleet_prepare_requests(struct fleet *f, struct error *err)
{
	int rc = renew_answer_lease(f, err);

	if (rc != 0 || (fleet_leads(f) && !f->requests_left))
		return rc;
	if (!fleet_leads(f))
		fleet_drop_requests(f); /* what is left from an earlier lead */
	return read_requests(f, err);
}

void
fleet_requests_free(struct fleet *f)
{
	struct fleet_request *r;
	struct fleet_news *news;

	while ((news = STAILQ_FIRST(&f->news)) != NULL) {
		STAILQ_REMOVE_HEAD(&f->news, next);
		free(news);
	}
	while ((r = TAILQ_FIRST(&f->requests)) != NULL)
		forget_request(f, r);
}

/* --- the leader: the store's writer executes them --- */

unsigned int
fleet_take(struct fleet *f, struct fleet_request **list, unsigned int max)
{
	struct fleet_request *r;
	unsigned int n = 0;

	if (!fleet_leads(f))
		return 0;
	pthread_mutex_lock(&f->lock);
	TAILQ_FOREACH(r, &f->requests, next) {
		if (n == max)
			break;
		r->taken = true;
		list[n++] = r;
	}
	pthread_mutex_unlock(&f->lock);
	return n;
}

void
fleet_settle(struct fleet *f, struct fleet_request **list, unsigned int n, bool done)
{
	unsigned int i;

	pthread_mutex_lock(&f->lock);
	for (i = 0; i < n; i++) {
		list[i]->taken = false;
		if (done || list[i]->gone)
			forget_request(f, list[i]);
	}
	pthread_mutex_unlock(&f->lock);
}

void
fleet_answers(struct fleet *f, const struct fleet_message *m, unsigned int n)
{
	f->answers = m;
	f->num_answers = n;
}

json_t *
fleet_answer_compares(const struct fleet *f, json_t *compares)
{
	char key[FLEET_KEY_MAX];
	unsigned int i;

	for (i = 0; i < f->num_answers; i++) {
		const struct fleet_message *m = &f->answers[i];

		put_request_key(f->key.requests, m->id, key);
		json_array_append_new(compares,
			etcd_compare(key, "CREATE", "create_revision", m->created));
		put_request_key(f->key.answers, m->id, key);
		json_array_append_new(compares, etcd_compare(key, "CREATE", "create_revision", 0));
	}
	return compares;
}

json_t *
fleet_stage_remove_op(const struct fleet *f, const char *owner, uint64_t id)
{
	char first[FLEET_KEY_MAX], end[FLEET_KEY_MAX];

	snprintf(first, sizeof(first), "%.*s%.*s/%016" PRIx64 "/", FLEET_TEXT_MAX + 4, f->key.stage,
		FLEET_NAME_MAX, owner, id);
	snprintf(end, sizeof(end), "%s", first);
	end[strlen(end) - 1] = '0'; /* the character behind '/' */
	return etcd_delete_range(first, end);
}

json_t *
fleet_answer_ops(const struct fleet *f, json_t *ops)
{
	uint64_t lease = __atomic_load_n(&f->answer_lease, __ATOMIC_ACQUIRE);
	char key[FLEET_KEY_MAX];
	unsigned int i;

	for (i = 0; i < f->num_answers; i++) {
		const struct fleet_message *m = &f->answers[i];

		put_request_key(f->key.answers, m->id, key);
		json_array_append_new(ops, etcd_put(key, m->bytes, m->len, lease));
		if (m->stage_owner != NULL)
			json_array_append_new(ops,
				fleet_stage_remove_op(f, m->stage_owner, m->stage_id));
		if (m->created == 0)
			continue;
		put_request_key(f->key.requests, m->id, key);
		json_array_append_new(ops, etcd_delete(key));
	}
	return ops;
}

unsigned int
fleet_num_answer_ops(const struct fleet *f)
{
	unsigned int i, n = f->num_answers;

	for (i = 0; i < f->num_answers; i++)
		n += (f->answers[i].created != 0) + (f->answers[i].stage_owner != NULL);
	return n;
}
