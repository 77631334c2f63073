/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A fleet as the store's backend: opened from the copy on disk, changed by fleet_change.c, and told
 * by fleet_thread.c what the watch has brought.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/etcd_transport.h"
#include "store/fleet_private.h"

#define PAGE_RECORDS 10000

/* --- watch --- */

/*
 * A batch of changes without news is our own. A complete one is older than the store if the store
 * has published a change of ours since; the watch goes on behind it and brings that change again.
 */
static bool
is_news(const struct fleet *f, const struct fleet_batch *b)
{
	if (b->batch.replace)
		return b->restored || b->revision >= f->published;
	return b->changed > f->published;
}

static const struct store_batch *
fleet_watch(void *arg)
{
	struct fleet *f = arg;
	struct fleet_batch *b;

	pthread_mutex_lock(&f->lock);
	while ((b = STAILQ_FIRST(&f->queue)) != NULL && !is_news(f, b)) {
		fleet_unqueue(f);
		fleet_batch_free(b);
	}
	pthread_mutex_unlock(&f->lock);
	f->taking = b;
	return b != NULL ? &b->batch : NULL;
}

static void
fleet_taken(void *arg)
{
	struct fleet *f = arg;

	f->published = f->taking->changed;
	pthread_mutex_lock(&f->lock);
	fleet_unqueue(f);
	f->status.revision = f->published;
	pthread_mutex_unlock(&f->lock);
	fleet_batch_free(f->taking);
	f->taking = NULL;
}

int
fleet_accept_empty(struct fleet *f, struct error *err)
{
	if (!__atomic_load_n(&f->refuses_empty, __ATOMIC_ACQUIRE))
		return error_set(err, ENOENT,
			"there is nothing to accept: this appliance has not refused an etcd without records");
	__atomic_store_n(&f->accept_empty, true, __ATOMIC_RELEASE);
	fleet_look_now(f);
	return 0;
}

/* --- open, start, stop, close --- */

static int
fleet_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to, struct error *err)
{
	struct fleet *f = arg;

	return f->copy.load(f->copy.arg, each, to, err);
}

static void
fleet_close(void *arg)
{
	struct fleet *f = arg;
	struct fleet_batch *b;

	fleet_stop(f);
	while ((b = STAILQ_FIRST(&f->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&f->queue, next);
		fleet_batch_free(b);
	}
	fleet_requests_free(f);
	fleet_notices_free(f);
	fleet_gather_free(f);
	free(f->names[0].at);
	free(f->names[1].at);
	etcd_client_destroy(f->writer);
	etcd_client_destroy(f->session);
	if (f->copy.close != NULL)
		f->copy.close(f->copy.arg);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static void
name_keys(struct fleet *f)
{
	const char *prefix = f->config.prefix;
	struct fleet_keys *k = &f->key;

#define NAME_KEY(field, fmt, ...)                                                                  \
	snprintf(k->field, sizeof(k->field), "%s" fmt, prefix, ##__VA_ARGS__)
	NAME_KEY(all, "/");
	NAME_KEY(all_end, "/s"); /* what is staged, the last of all, is not watched */
	NAME_KEY(control, "/c/");
	NAME_KEY(leader, "/c/leader");
	NAME_KEY(change, "/c/change");
	NAME_KEY(part, "/c/part");
	NAME_KEY(format, "/c/format");
	NAME_KEY(members, "/m/");
	NAME_KEY(control_end, "/m0");
	NAME_KEY(self, "/m/%s", f->config.name);
	NAME_KEY(requests, "/q/");
	NAME_KEY(requests_end, "/q0");
	NAME_KEY(answers, "/a/");
	NAME_KEY(notices, "/e/");
	NAME_KEY(stage, "/s/");
	NAME_KEY(records, "/r/");
	NAME_KEY(records_end, "/r0");
#undef NAME_KEY
}

int
fleet_open(const struct fleet_config *config, const char *path, uint64_t map_bytes,
	struct fleet **fleet, struct store_backend *backend, struct error *err)
{
	struct fleet *f = calloc(1, sizeof(*f));
	int rc = -ENOMEM;

	if (f == NULL)
		return error_set(err, ENOMEM, "no memory for the fleet");
	f->config = *config;
	pthread_mutex_init(&f->lock, NULL);
	STAILQ_INIT(&f->queue);
	STAILQ_INIT(&f->news);
	TAILQ_INIT(&f->requests);
	TAILQ_INIT(&f->notices);
	if (f->config.name[0] == '\0')
		gethostname(f->config.name, sizeof(f->config.name) - 1);
	name_keys(f);
	strcpy(f->status.name, f->config.name);
	f->status.copy_ok = true;
	f->away = true;
	f->writer = etcd_client_create(config, err);
	f->session = etcd_client_create(config, err);
	if (f->writer == NULL || f->session == NULL)
		goto fail;
	rc = lmdb_copy_open(path, map_bytes, f->config.prefix, &f->copy, err);
	if (rc == 0)
		rc = lmdb_copy_position(&f->copy, &f->position, err);
	if (rc != 0 && rc != -ENOENT)
		goto fail;
	f->instance = lmdb_copy_instance(&f->copy);
	f->page_records = PAGE_RECORDS;
	if (lmdb_copy_moved(&f->copy))
		FLEET_LOG(NOTICE,
			"%s was elsewhere before, or this machine has started anew: %s takes part under a new identity",
			path, f->config.name);
	if (!lmdb_copy_settled(&f->copy))
		FLEET_LOG(WARNING,
			"%s/polca.lock cannot be written: at its next start %s takes part under a new identity",
			path, f->config.name);
	f->published = f->position.changed;
	f->status.revision = f->published;
	*backend = (struct store_backend){
		.arg = f,
		.max_ops = config->max_txn_ops - 2,
		.load = fleet_load,
		.apply = fleet_apply,
		.watch = fleet_watch,
		.taken = fleet_taken,
		.close = fleet_close,
	};
	*fleet = f;
	return 0;
fail:
	fleet_close(f);
	return rc;
}

int
fleet_start(struct fleet *f, void (*wake)(void *arg), void *arg, struct error *err)
{
	int rc;

	f->wake = wake;
	f->wake_arg = arg;
	f->stop = false;
	f->status.silent_ms = etcd_now_ms();
	__atomic_store_n(&f->long_work_ends, false, __ATOMIC_RELAXED);
	rc = pthread_create(&f->thread, NULL, fleet_main, f);
	if (rc != 0)
		return error_set(err, rc, "the fleet's thread does not start");
	f->started = true;
	return 0;
}

void
fleet_end_long_work(struct fleet *f)
{
	__atomic_store_n(&f->long_work_ends, true, __ATOMIC_RELAXED);
}

void
fleet_stop(struct fleet *f)
{
	if (!f->started)
		return;
	__atomic_store_n(&f->stop, true, __ATOMIC_RELEASE);
	etcd_client_wake(f->session);
	pthread_join(f->thread, NULL);
	f->started = false;
}

void
fleet_status(struct fleet *f, struct fleet_status *status)
{
	pthread_mutex_lock(&f->lock);
	*status = f->status;
	pthread_mutex_unlock(&f->lock);
	if (status->silent_ms != 0)
		status->silent_ms = etcd_now_ms() - status->silent_ms;
	status->leads = fleet_leads(f);
	status->connected = fleet_connected(f);
	status->full = fleet_is_full(f);
	status->state_name = fleet_state_names[fleet_etcd_state(f)];
}
