/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Notices that are kept until their subscribers have been told.
 *
 * A notice is e/ID, written in the transaction of the change that causes it. Whoever leads reads
 * all of e/ before it takes the lead, and learns of later ones by its watch: so also of those in a
 * transaction whose answer was lost. It removes e/ID when all subscribers have been told. An entry
 * of the table stays until the watch has brought the removal, so that nothing that is read
 * meanwhile is told twice.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_transport.h"
#include "store/fleet_private.h"

#define NOTICES_PAGE  128
#define NOTICES_TABLE (2 * FLEET_NOTICES_MAX) /* others wait in etcd */
#define ID_DIGITS     16

static void
put_notice_key(const struct fleet *f, uint64_t id, char key[FLEET_KEY_MAX])
{
	snprintf(key, FLEET_KEY_MAX, "%.*s%016" PRIx64, FLEET_TEXT_MAX + 8, f->key.notices, id);
}

/* @return false if the key is no notice's */
static bool
notice_id_of(const struct fleet *f, const char *key, uint64_t *id)
{
	size_t len = strlen(f->key.notices);

	if (strncmp(key, f->key.notices, len) != 0 || strlen(key + len) != ID_DIGITS ||
		strspn(key + len, "0123456789abcdef") != ID_DIGITS)
		return false;
	*id = strtoull(key + len, NULL, 16);
	return true;
}

/* --- the table; call with the lock held --- */

static struct fleet_notice *
find_notice(struct fleet *f, uint64_t id)
{
	struct fleet_notice *n;

	TAILQ_FOREACH(n, &f->notices, next)
		if (n->id == id && !n->gone)
			return n;
	return NULL;
}

static void
free_notice(struct fleet *f, struct fleet_notice *n)
{
	TAILQ_REMOVE(&f->notices, n, next);
	f->num_notices--;
	free(n);
}

/* Its key has gone. The store's writer may have it. */
static void
notice_has_gone(struct fleet *f, struct fleet_notice *n)
{
	if (n->state == FLEET_NOTICE_TAKEN)
		n->gone = true;
	else
		free_notice(f, n);
}

static void
add_notice(struct fleet *f, uint64_t id, const struct etcd_kv *kv)
{
	struct fleet_notice *n = find_notice(f, id);

	if (n != NULL) {
		n->seen = true;
		return;
	}
	if (f->num_notices < NOTICES_TABLE)
		n = calloc(1, sizeof(*n) + kv->value_len);
	if (n == NULL) {
		f->notices_left = true;
		return;
	}
	n->id = id;
	n->created = kv->create_revision;
	n->after = f->queued;
	n->seen = true;
	n->len = kv->value_len;
	memcpy(n->bytes, kv->value, kv->value_len);
	TAILQ_INSERT_TAIL(&f->notices, n, next);
	f->num_notices++;
}

/* --- the fleet's thread --- */

void
fleet_watch_notices(struct fleet *f, const struct etcd_kvs *events)
{
	struct fleet_notice *n;
	bool any = false;
	uint64_t id;
	size_t i;

	pthread_mutex_lock(&f->lock);
	for (i = 0; i < events->n; i++) {
		const struct etcd_kv *kv = &events->at[i];

		if (!notice_id_of(f, kv->key, &id))
			continue;
		any = true;
		n = kv->gone ? find_notice(f, id) : NULL;
		if (n != NULL)
			notice_has_gone(f, n);
		else if (!kv->gone && fleet_leads(f) && kv->mod_revision > f->notices_read)
			add_notice(f, id, kv);
	}
	pthread_mutex_unlock(&f->lock);
	if (any)
		f->wake(f->wake_arg);
}

static void
drop_notices(struct fleet *f)
{
	struct fleet_notice *n, *more;

	pthread_mutex_lock(&f->lock);
	for (n = TAILQ_FIRST(&f->notices); n != NULL; n = more) {
		more = TAILQ_NEXT(n, next);
		notice_has_gone(f, n);
	}
	pthread_mutex_unlock(&f->lock);
}

static int
compare_created(const void *a, const void *b)
{
	const struct etcd_kv *x = a, *y = b;

	return x->create_revision < y->create_revision ? -1
						       : x->create_revision > y->create_revision;
}

/* Add a list of all notices, as of a revision. Those that are not in it have gone. */
static void
merge_notices(struct fleet *f, struct etcd_kvs *all, uint64_t revision)
{
	struct fleet_notice *n, *more;
	uint64_t id;
	size_t i;

	if (all->n > 0)
		qsort(all->at, all->n, sizeof(all->at[0]), compare_created);
	pthread_mutex_lock(&f->lock);
	TAILQ_FOREACH(n, &f->notices, next)
		n->seen = n->created > revision;
	for (i = 0; i < all->n; i++)
		if (notice_id_of(f, all->at[i].key, &id))
			add_notice(f, id, &all->at[i]);
	for (n = TAILQ_FIRST(&f->notices); n != NULL; n = more) {
		more = TAILQ_NEXT(n, next);
		if (!n->seen && !n->gone)
			notice_has_gone(f, n);
	}
	pthread_mutex_unlock(&f->lock);
}

/* Move a page's keys to the end of a list. */
static int
append_page(struct etcd_kvs *all, struct etcd_kvs *page)
{
	struct etcd_kv *at = reallocarray(all->at, all->n + page->n + 1, sizeof(*at));

	if (at == NULL)
		return -ENOMEM;
	if (page->n > 0)
		memcpy(at + all->n, page->at, page->n * sizeof(*at));
	all->at = at;
	all->n += page->n;
	free(page->at);
	*page = (struct etcd_kvs){ NULL, 0 };
	return 0;
}

static int
read_all_notices(struct fleet *f, struct etcd_kvs *all, uint64_t *revision, struct error *err)
{
	char first[FLEET_KEY_MAX], end[FLEET_KEY_MAX];
	struct etcd_kvs page;
	struct etcd_header h;
	bool more = true;
	int rc = 0;

	strcpy(first, f->key.notices);
	strcpy(end, f->key.notices);
	end[strlen(end) - 1]++;
	while (more) {
		rc = etcd_range(f->session, first, end, *revision, NOTICES_PAGE, FLEET_REQUEST_MS,
			&h, &page, &more, err);
		if (rc != 0)
			return rc;
		if (*revision == 0)
			*revision = h.revision;
		rc = append_page(all, &page);
		etcd_kvs_free(&page);
		if (rc != 0 || !more)
			break;
		if (all->n == 0 || all->at[all->n - 1].key_len >= FLEET_KEY_MAX)
			return error_set(err, EPROTO, "etcd promises more notices than it gives");
		/* the first possible key behind the last one */
		snprintf(first, sizeof(first), "%.*s ", FLEET_KEY_MAX - 2, all->at[all->n - 1].key);
	}
	return rc;
}

int
fleet_prepare_notices(struct fleet *f, struct error *err)
{
	struct etcd_kvs all = { NULL, 0 };
	uint64_t revision = 0;
	int rc;

	if (fleet_leads(f) && !f->notices_left)
		return 0;
	rc = read_all_notices(f, &all, &revision, err);
	if (rc == 0) {
		if (!fleet_leads(f))
			drop_notices(f); /* what is left from an earlier lead */
		f->notices_left = false;
		f->notices_read = revision;
		merge_notices(f, &all, revision);
		f->wake(f->wake_arg);
	}
	etcd_kvs_free(&all);
	return rc;
}

void
fleet_notices_free(struct fleet *f)
{
	struct fleet_notice *n;

	while ((n = TAILQ_FIRST(&f->notices)) != NULL)
		free_notice(f, n);
}

/* --- the store's writer --- */

uint64_t
fleet_lead(const struct fleet *f)
{
	return __atomic_load_n(&f->lead, __ATOMIC_ACQUIRE);
}

bool
fleet_keep_notice(struct fleet *f, const void *bytes, size_t len)
{
	unsigned int kept;

	f->keep_len = 0;
	if (len == 0)
		return true;
	pthread_mutex_lock(&f->lock);
	kept = f->num_notices;
	pthread_mutex_unlock(&f->lock);
	if (kept >= FLEET_NOTICES_MAX || etcd_random(&f->keep_id) != 0)
		return false;
	f->keep_bytes = bytes;
	f->keep_len = len;
	return true;
}

json_t *
fleet_notice_ops(const struct fleet *f, json_t *ops)
{
	char key[FLEET_KEY_MAX];

	if (f->keep_len == 0)
		return ops;
	put_notice_key(f, f->keep_id, key);
	json_array_append_new(ops, etcd_put(key, f->keep_bytes, f->keep_len, 0));
	return ops;
}

struct fleet_notice *
fleet_take_notice(struct fleet *f)
{
	struct fleet_notice *n;

	pthread_mutex_lock(&f->lock);
	TAILQ_FOREACH(n, &f->notices, next)
		if (n->state == FLEET_NOTICE_NEW)
			break;
	if (n != NULL && (!fleet_leads(f) || n->after > f->unqueued))
		n = NULL;
	if (n != NULL)
		n->state = FLEET_NOTICE_TAKEN;
	pthread_mutex_unlock(&f->lock);
	return n;
}

static void
hand_back(struct fleet *f, struct fleet_notice *n, enum fleet_notice_state state)
{
	pthread_mutex_lock(&f->lock);
	n->state = state;
	if (n->gone)
		free_notice(f, n);
	pthread_mutex_unlock(&f->lock);
}

void
fleet_notice_told(struct fleet *f, struct fleet_notice *n)
{
	hand_back(f, n, FLEET_NOTICE_TOLD);
}

void
fleet_notice_untold(struct fleet *f, struct fleet_notice *n)
{
	hand_back(f, n, FLEET_NOTICE_NEW);
}

/* @return number of notices that were told and are in etcd; their IDs */
static unsigned int
list_told(struct fleet *f, uint64_t *id, unsigned int max)
{
	struct fleet_notice *n;
	unsigned int num = 0;

	pthread_mutex_lock(&f->lock);
	TAILQ_FOREACH(n, &f->notices, next)
		if (n->state == FLEET_NOTICE_TOLD && num < max)
			id[num++] = n->id;
	pthread_mutex_unlock(&f->lock);
	return num;
}

static void
note_forgotten(struct fleet *f, const uint64_t *id, unsigned int num)
{
	struct fleet_notice *n;
	unsigned int i;

	pthread_mutex_lock(&f->lock);
	for (i = 0; i < num; i++) {
		n = find_notice(f, id[i]);
		if (n != NULL)
			n->state = FLEET_NOTICE_FORGOTTEN;
	}
	pthread_mutex_unlock(&f->lock);
}

/* A leader that was replaced removes nothing: the next one tells it again, and then removes it. */
int
fleet_forget_notices(struct fleet *f, struct error *err)
{
	uint64_t id[FLEET_REQUEST_BATCH], lead = fleet_lead(f);
	unsigned int i, num, max = RTE_MIN(f->config.max_txn_ops, (uint32_t)FLEET_REQUEST_BATCH);
	char key[FLEET_KEY_MAX];
	json_t *list, *reply;
	int rc;

	if (lead == 0 || !fleet_connected(f))
		return 0;
	num = list_told(f, id, max);
	if (num == 0)
		return 0;
	list = json_array();
	for (i = 0; i < num; i++) {
		put_notice_key(f, id[i], key);
		json_array_append_new(list, etcd_delete(key));
	}
	rc = fleet_writer_call(f,
		json_pack("{s:[o], s:o}", "compare",
			etcd_compare(f->key.leader, "CREATE", "create_revision", lead), "success",
			list),
		&reply, err);
	if (etcd_gave_no_answer(rc))
		fleet_is_away(f);
	if (rc != 0)
		return rc;
	if (!json_is_true(json_object_get(reply, "succeeded"))) {
		fleet_look_now(f);
		rc = error_set(err, EAGAIN, "another appliance leads");
	}
	json_decref(reply);
	if (rc == 0)
		note_forgotten(f, id, num);
	return rc == 0 ? 1 : rc;
}
