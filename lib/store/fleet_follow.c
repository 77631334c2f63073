/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Records come from etcd: by the watch, transaction by transaction, or all at once. They are
 * written to the copy on disk first, together with the position, and then handed to the store's
 * writer.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_transport.h"
#include "store/fleet_private.h"

#define PAGE_MS 60000 /* a slow network takes long, an endpoint that is silent does not */

/* --- batches --- */

/* A batch with room for so many changes and bytes. */
static struct fleet_batch *
batch_new(size_t ops, size_t bytes)
{
	struct fleet_batch *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->ops = calloc(ops > 0 ? ops : 1, sizeof(b->ops[0]));
	b->bytes = malloc(bytes > 0 ? bytes : 1);
	b->batch.ops = b->ops;
	b->size = sizeof(*b) + ops * sizeof(b->ops[0]) + bytes;
	if (b->ops != NULL && b->bytes != NULL)
		return b;
	fleet_batch_free(b);
	return NULL;
}

/* Add the record of a key. @param used  bytes in use. @return false: the key is no record's */
static bool
batch_add(const struct fleet *f, struct fleet_batch *b, const struct etcd_kv *kv, size_t *used)
{
	struct store_op *op = &b->ops[b->batch.n];

	if (!fleet_record_key(f, kv->key, &op->table, &op->rid) || kv->value_len > UINT16_MAX)
		return false;
	b->batch.n++;
	if (kv->gone)
		return true;
	op->bytes = b->bytes + *used;
	op->len = (uint16_t)kv->value_len;
	memcpy(b->bytes + *used, kv->value, kv->value_len);
	*used += kv->value_len;
	return true;
}

static void
write_copy(struct fleet *f, const struct fleet_batch *b)
{
	struct copy_position position = f->position;
	struct error err = { "" };

	if (f->copy_stopped)
		return;
	/* the next process must get the parts that are here again */
	if (f->gather.open)
		position.revision = f->gather.complete_revision;
	if (lmdb_copy_write(&f->copy, b->batch.replace, b->ops, b->batch.n, &position, &err) == 0) {
		f->copy_written = etcd_now_ms();
		return;
	}
	/* a later change without this one would make the copy wrong; it is read on from here */
	FLEET_LOG(ERR, "the copy on disk stays at revision %" PRIu64 ": %s", f->position.revision,
		err.text);
	f->copy_stopped = true;
	pthread_mutex_lock(&f->lock);
	f->status.copy_ok = false;
	pthread_mutex_unlock(&f->lock);
}

bool
fleet_queue_is_full(struct fleet *f)
{
	bool full;

	pthread_mutex_lock(&f->lock);
	full = f->queued - f->unqueued >= FLEET_QUEUE_BATCHES ||
		f->queue_bytes >= FLEET_QUEUE_BYTES;
	f->waits_for_room = full;
	pthread_mutex_unlock(&f->lock);
	return full;
}

void
fleet_unqueue(struct fleet *f)
{
	struct fleet_batch *b = STAILQ_FIRST(&f->queue);

	STAILQ_REMOVE_HEAD(&f->queue, next);
	f->queue_bytes -= b->size;
	f->unqueued += 1 + b->replaced;
	if (f->waits_for_room && f->queued - f->unqueued < FLEET_QUEUE_BATCHES / 2)
		etcd_client_wake(f->session);
}

/*
 * A complete batch replaces all before it, except the first one, which the writer may be taking.
 * What waits for one of these waits for the complete one. With the lock held.
 */
static void
drop_replaced(struct fleet *f, struct fleet_batch *b)
{
	struct fleet_batch *first = STAILQ_FIRST(&f->queue), *old;

	while (first != NULL && (old = STAILQ_NEXT(first, next)) != NULL) {
		STAILQ_REMOVE(&f->queue, old, fleet_batch, next);
		b->restored |= old->restored;
		b->replaced += 1 + old->replaced;
		f->queue_bytes -= old->size;
		fleet_batch_free(old);
	}
}

void
fleet_queue(struct fleet *f, struct fleet_batch *b)
{
	if (b->batch.replace)
		drop_replaced(f, b);
	STAILQ_INSERT_TAIL(&f->queue, b, next);
	f->queued++;
	f->queue_bytes += b->size;
}

static void
fleet_hand_over(struct fleet *f, struct fleet_batch *b)
{
	write_copy(f, b);
	b->changed = f->position.changed;
	FLEET_LOG(DEBUG, "revision %" PRIu64 " is here, changes: %zu", f->position.revision,
		b->batch.n);
	pthread_mutex_lock(&f->lock);
	fleet_queue(f, b);
	pthread_mutex_unlock(&f->lock);
	f->wake(f->wake_arg);
}

void
fleet_note_position(struct fleet *f, uint64_t revision)
{
	struct fleet_batch none = { .changed = 0 };

	f->position.revision = revision;
	write_copy(f, &none);
}

/* --- the watch --- */

/* The records of all changes that are complete, as one batch. */
static int
take_records(struct fleet *f)
{
	const struct fleet_gather *g = &f->gather;
	size_t i, bytes = 0, used = 0;
	struct fleet_batch *b;

	for (i = 0; i < g->complete; i++)
		bytes += g->op[i].len;
	b = batch_new(g->complete, bytes);
	if (b == NULL)
		return -ENOMEM;
	for (i = 0; i < g->complete; i++) {
		const struct gathered_op *from = &g->op[i];
		struct store_op *op = &b->ops[b->batch.n++];

		*op = (struct store_op){ .table = from->table, .rid = from->rid };
		if (from->gone)
			continue;
		op->bytes = b->bytes + used;
		op->len = from->len;
		memcpy(b->bytes + used, g->bytes + from->at, from->len);
		used += from->len;
	}
	fleet_hand_over(f, b);
	fleet_gather_drop(f, g->complete);
	return 0;
}

/* Revision by revision. */
static int
gather_all(struct fleet *f, const struct etcd_kvs *events)
{
	size_t i, end;
	int rc = 0;

	for (i = 0; i < events->n && rc == 0; i = end) {
		for (end = i + 1; end < events->n &&
			events->at[end].mod_revision == events->at[i].mod_revision;
			end++)
			;
		rc = fleet_gather(f, &events->at[i], end - i);
	}
	return rc;
}

int
fleet_take_watched(void *arg, const struct etcd_watched *w)
{
	uint64_t revision = w->events.n == 0 && !w->created ? w->header.revision : 0;
	const struct etcd_kv *change = NULL;
	struct fleet *f = arg;
	const struct copy_position before = f->position;
	const struct fleet_gather gathered = f->gather;
	size_t i;
	int rc;

	for (i = 0; i < w->events.n; i++) {
		const struct etcd_kv *kv = &w->events.at[i];

		if (kv->mod_revision > revision)
			revision = kv->mod_revision;
		if (strcmp(kv->key, f->key.change) == 0)
			change = kv;
		else if (strcmp(kv->key, f->key.leader) == 0)
			fleet_learn_leader(f, kv->gone ? NULL : kv, kv->mod_revision);
		else if (kv->create_revision == kv->mod_revision &&
			strncmp(kv->key, f->key.members, strlen(f->key.members)) == 0)
			fleet_note_joined(f, kv->key + strlen(f->key.members));
	}
	if (revision > f->position.revision)
		f->position.revision = revision;
	if (change != NULL) {
		f->position.changed = change->mod_revision;
		f->position.nonce = fleet_nonce_of(change);
	}
	pthread_mutex_lock(&f->lock);
	f->status.watching = true;
	if (f->status.latest < f->position.changed)
		f->status.latest = f->position.changed;
	pthread_mutex_unlock(&f->lock);
	rc = gather_all(f, &w->events);
	if (rc == 0 && change != NULL)
		rc = take_records(f);
	if (rc != 0) {
		f->position = before; /* the next watch brings it again */
		fleet_gather_back(f, &gathered);
		return rc;
	}
	fleet_take_requests(f, &w->events);
	fleet_watch_notices(f, &w->events);
	return 0;
}

/* --- all records --- */

struct load {
	struct etcd_kvs *page;
	size_t pages;
	size_t records;
	size_t bytes;
	struct copy_position position;
	uint64_t part_created; /* revision of the first part of a change that is there; 0: none */
};

static void
load_free(struct load *l)
{
	size_t i;

	for (i = 0; i < l->pages; i++)
		etcd_kvs_free(&l->page[i]);
	free(l->page);
}

static int
load_page(struct fleet *f, struct load *l, const char *first, bool *more, struct error *err)
{
	struct etcd_kvs *page = reallocarray(l->page, l->pages + 1, sizeof(*page));
	struct etcd_header h;
	size_t i;
	int rc;

	if (page == NULL)
		return error_set(err, ENOMEM, "no memory for %zu records", l->records);
	l->page = page;
	page = &l->page[l->pages];
	rc = etcd_range(f->session, first, f->key.records_end, l->position.revision,
		f->page_records, PAGE_MS, &h, page, more, err);
	if (rc != 0)
		return rc;
	l->pages++;
	l->records += page->n;
	for (i = 0; i < page->n; i++)
		l->bytes += page->at[i].value_len;
	if (l->position.revision == 0)
		l->position.revision = h.revision;
	l->position.cluster = h.cluster_id;
	if (*more && (page->n == 0 || strlen(page->at[page->n - 1].key) >= FLEET_KEY_MAX))
		return error_set(err, EPROTO, "etcd promises more records and does not say which");
	return 0;
}

/*
 * The last change, as of the revision of the load.
 *
 * @retval 1  parts of a change are there: the load does not have what was before them
 */
static int
load_change(struct fleet *f, struct load *l, struct error *err)
{
	const struct etcd_kv *kv;
	struct etcd_header h;
	struct etcd_kvs kvs;
	int rc;

	rc = etcd_range(f->session, f->key.control, f->key.control_end, l->position.revision, 0,
		FLEET_REQUEST_MS, &h, &kvs, NULL, err);
	if (rc != 0)
		return rc;
	kv = etcd_kvs_find(&kvs, f->key.change);
	if (kv != NULL) {
		l->position.changed = kv->mod_revision;
		l->position.nonce = fleet_nonce_of(kv);
	}
	kv = etcd_kvs_find(&kvs, f->key.part);
	if (kv != NULL) {
		l->part_created = kv->create_revision;
		rc = 1;
	}
	etcd_kvs_free(&kvs);
	return rc;
}

/*
 * A prefix that nobody has written to, or an etcd that was emptied, must not replace a database: it
 * is a mistake more often than not, and the copies may be all that is left.
 */
static int
refuse_empty(struct fleet *f, const struct load *l, bool restored, struct error *err)
{
	bool lost = l->records == 0 && f->position.changed != 0 &&
		(restored || l->position.changed == 0);
	bool accepted = __atomic_exchange_n(&f->accept_empty, false, __ATOMIC_ACQ_REL);

	__atomic_store_n(&f->refuses_empty, lost && !accepted, __ATOMIC_RELEASE);
	if (!lost || accepted)
		return 0;
	return error_set(err, ENODATA,
		"etcd has no records below \"%s/\", and the copy here has a database, which is kept. Correct fleet.endpoints and fleet.prefix, or restore etcd; if etcd was emptied on purpose: polca-ctl fleet accept",
		f->config.prefix);
}

static int
load_hand_over(struct fleet *f, struct load *l, bool restored, struct error *err)
{
	struct fleet_batch *b = batch_new(l->records, l->bytes);
	size_t used = 0, foreign = 0, i, k;

	if (b == NULL)
		return error_set(err, ENOMEM, "no memory for %zu records", l->records);
	for (i = 0; i < l->pages; i++)
		for (k = 0; k < l->page[i].n; k++)
			if (!batch_add(f, b, &l->page[i].at[k], &used) && foreign++ == 0)
				FLEET_LOG(WARNING, "the key %.100s is no record's: left out",
					l->page[i].at[k].key);
	if (foreign > 1)
		FLEET_LOG(WARNING, "%zu keys below %s are no records'", foreign, f->key.records);
	b->batch.replace = true;
	b->revision = l->position.revision;
	b->restored = restored;
	f->position = l->position;
	fleet_gather_free(f);
	fleet_hand_over(f, b);
	fleet_missed_answers(f);
	f->requests_left = true;
	f->notices_left = true;
	return 0;
}

/* --- parts whose past etcd has compacted --- */

static int
compare_kv_key(const void *key, const void *kv)
{
	return strcmp(key, ((const struct etcd_kv *)kv)->key);
}

/* The pages, and the keys within them, are in order. */
static bool
load_has(const struct load *l, const char *key)
{
	size_t low = 0, high = l->pages, i;

	/* the first page that does not end before the key; only the last one may be empty */
	while (low < high) {
		i = low + (high - low) / 2;
		if (l->page[i].n == 0 || strcmp(l->page[i].at[l->page[i].n - 1].key, key) < 0)
			low = i + 1;
		else
			high = i;
	}
	return low < l->pages &&
		bsearch(key, l->page[low].at, l->page[low].n, sizeof(l->page[low].at[0]),
			compare_kv_key) != NULL;
}

struct adoption {
	struct fleet *f;
	const struct load *load;
};

/* A record of the copy that etcd does not have any more: parts have removed it. */
static int
adopt_removal(void *to, const struct store_op *op)
{
	struct adoption *a = to;
	char key[FLEET_KEY_MAX];
	struct etcd_kv gone = { .key = key, .gone = true };

	fleet_put_record_key(a->f, key, op->table, op->rid);
	return load_has(a->load, key) ? 0 : fleet_gather_record(a->f, &gone);
}

/* No copy of this appliance's tells what was before the parts. */
static int
past_is_lost(struct error *err)
{
	return error_set(err, ENOTRECOVERABLE,
		"etcd has parts of a large change, and has compacted what was before: this appliance waits for one whose copy has that. If there is none: docs/fleet.md, \"Bounds today\"");
}

/*
 * etcd has compacted the revision before the first part. A copy that has the last complete change
 * is what was then; what differs from it is of the parts. So they are gathered as if the watch had
 * brought them, and whoever leads next undoes them.
 */
static int
adopt_parts(struct fleet *f, const struct load *l, struct error *err)
{
	struct adoption a = { f, l };
	size_t i, k;
	int rc = 0;

	if (f->copy_stopped || f->position.changed == 0 ||
		f->position.changed != l->position.changed ||
		f->position.nonce != l->position.nonce)
		return past_is_lost(err);
	fleet_gather_free(f);
	for (i = 0; i < l->pages && rc == 0; i++)
		for (k = 0; k < l->page[i].n && rc == 0; k++)
			if (l->page[i].at[k].mod_revision >= l->part_created)
				rc = fleet_gather_record(f, &l->page[i].at[k]);
	if (rc == 0)
		rc = f->copy.load(f->copy.arg, adopt_removal, &a, err);
	if (rc != 0) {
		fleet_gather_free(f);
		return rc == -ENOMEM
			? error_set(err, ENOMEM, "no memory for the parts of a large change")
			: rc;
	}
	FLEET_LOG(NOTICE,
		"a large change is not complete, and etcd has compacted what was before: its parts are told by the copy, %zu records",
		f->gather.n);
	f->gather.open = true;
	f->gather.part_created = l->part_created;
	f->gather.complete_revision = f->position.revision; /* the next process does the same */
	f->position = l->position;
	fleet_missed_answers(f);
	f->requests_left = true;
	f->notices_left = true;
	return 0;
}

/* --- the whole database --- */

static int
load_pages(struct fleet *f, struct load *l, int (*alive)(struct fleet *f, struct error *err),
	struct error *err)
{
	char first[FLEET_KEY_MAX + 1];
	uint64_t said = etcd_now_ms();
	bool more = true;
	int rc = 0;

	strcpy(first, f->key.records);
	while (rc == 0 && more) {
		rc = load_page(f, l, first, &more, err);
		if (rc == 0 && more) /* the first possible key behind the last one of the page */
			snprintf(first, sizeof(first), "%s0",
				l->page[l->pages - 1].at[l->page[l->pages - 1].n - 1].key);
		if (etcd_now_ms() - said >= 1000) {
			FLEET_LOG(INFO, "reading the database from etcd: %zu records so far",
				l->records);
			said = etcd_now_ms();
		}
		if (rc == 0)
			rc = alive(f, err);
	}
	return rc;
}

int
fleet_load_all(struct fleet *f, bool restored, int (*alive)(struct fleet *f, struct error *err),
	struct error *err)
{
	struct load l = { .pages = 0 }, with_parts = { .pages = 0 };
	int rc = load_pages(f, &l, alive, err);

	if (rc == 0)
		rc = load_change(f, &l, err);
	if (rc > 0) { /* a large change goes on */
		with_parts = l;
		l = (struct load){ .position.revision = l.part_created - 1 };
		rc = load_pages(f, &l, alive, err);
		if (rc == 0)
			rc = load_change(f, &l, err);
		if (rc == -ESTALE) {
			rc = restored ? past_is_lost(err) : adopt_parts(f, &with_parts, err);
			load_free(&l);
			load_free(&with_parts);
			return rc;
		}
	}
	if (rc == 0)
		rc = refuse_empty(f, &l, restored, err);
	if (rc == 0)
		rc = load_hand_over(f, &l, restored, err);
	if (rc == 0)
		FLEET_LOG(INFO, "read the database from etcd: %zu records at revision %" PRIu64,
			l.records, f->position.revision);
	load_free(&l);
	load_free(&with_parts);
	return rc;
}
