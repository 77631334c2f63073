/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Import: reading and parsing a large file takes seconds, so a thread of its own does it. The
 * store's thread then stores the records as one batch.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/capability.h"
#include "engine/sa_import_fleet.h"
#include "engine/verbs_private.h"

struct sa_import {
	struct engine *engine;
	pthread_t thread;
	bool joinable; /* used by the control thread only */
	int fd; /* -1: none */
	char *text; /* a copy of the caller's text, or the contents of the file */
	size_t len;
	engine_sa_parser parser;
	enum sa_replaced replace;
	uint8_t mtu; /* 0: none */
	uint64_t started;
	uint64_t ended;
	struct sa_change *changes;
	size_t num;
	size_t room;
	int result;
	struct error err;
	uint32_t done; /* published last */
};

/* --- on the import's thread --- */

/* The size is checked first, and a file that grows meanwhile is read no further. */
static int
import_read_file(struct sa_import *i)
{
	const uint64_t most = (uint64_t)i->engine->config.sa.max_import_mb << 20;
	struct stat st;
	ssize_t n = 1;

	if (fstat(i->fd, &st) != 0)
		return error_set(&i->err, errno, "file: %s", strerror(errno));
	if (st.st_size <= 0 || (uint64_t)st.st_size > most)
		return error_set(&i->err, EINVAL,
			"file: got %" PRId64 " bytes, allowed: 1..%" PRIu64 " (sa.max_import_mb)",
			(int64_t)st.st_size, most);
	i->text = malloc((size_t)st.st_size + 1);
	if (i->text == NULL)
		return error_set(&i->err, ENOMEM, "no memory for the file");
	while (n > 0 && i->len < (size_t)st.st_size) {
		n = pread(i->fd, i->text + i->len, (size_t)st.st_size - i->len, (off_t)i->len);
		i->len += n > 0 ? (size_t)n : 0;
	}
	return n >= 0 ? 0 : error_set(&i->err, errno, "file: %s", strerror(errno));
}

static int
import_apply(struct engine *e, void *arg)
{
	struct sa_import *i = arg;

	return sa_replace(e->sa, i->replace, i->changes, i->num, &i->err);
}

/* In a fleet the leader makes it. */
static int
import_store(struct sa_import *i)
{
	struct engine *e = i->engine;

	if (e->fleet != NULL && !fleet_leads(e->fleet))
		return import_at_leader(e, i->replace, i->changes, i->num, &i->err);
	return store_thread_call(e, import_apply, i);
}

/* One record of the file. */
static int
import_take_record(void *arg, const struct sa_change *change)
{
	struct sa_import *i = arg;
	struct sa_change *more;
	size_t room;

	if (i->num == i->room) {
		room = i->room * 2 + 1024;
		more = realloc(i->changes, room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		i->changes = more;
		i->room = room;
	}
	i->changes[i->num] = *change;
	if (i->mtu != 0)
		sa_import_mtu(&i->changes[i->num], i->mtu);
	i->num++;
	return 0;
}

static int
import_parse(struct sa_import *i)
{
	const struct sa_import_sink sink = { i, import_take_record };

	return i->parser(i->text, i->len, &sink, &i->err);
}

static void *
import_main(void *arg)
{
	struct sa_import *i = arg;

	if (geteuid() != 0) /* as the store's thread: a parser needs none of the control thread's */
		capabilities_drop();
	if (i->fd >= 0)
		i->result = import_read_file(i);
	if (i->result == 0)
		i->result = import_parse(i);
	if (i->result == 0)
		i->result = import_store(i);
	i->ended = rte_get_tsc_cycles();
	if (i->result == 0)
		ENGINE_LOG(NOTICE, "SA: %zu record%s imported", i->num,
			i->num == 1 ? " was" : "s were");
	else
		ENGINE_LOG(WARNING, "SA: an import failed%s: %s",
			i->result == -EINPROGRESS ? "" : ", nothing has changed", i->err.text);
	__atomic_store_n(&i->done, 1, __ATOMIC_RELEASE);
	wakeup_send(i->engine);
	return NULL;
}

/* --- on the control thread --- */

static void
import_forget(struct sa_import *i)
{
	if (i->joinable)
		pthread_join(i->thread, NULL);
	if (i->fd >= 0)
		close(i->fd);
	free(i->text);
	free(i->changes);
	memset(i, 0, sizeof(*i));
	i->fd = -1;
}

static int
import_begin(struct sa_import *i, const struct engine_sa_import *what, struct error *err)
{
	sigset_t all, before;
	int ret;

	i->parser = what->parser;
	i->replace = what->replace;
	i->mtu = what->mtu;
	i->started = rte_get_tsc_cycles();
	if (what->text == NULL) {
		i->fd = fcntl(what->fd, F_DUPFD_CLOEXEC, 0);
		if (i->fd < 0)
			return error_set(err, errno, "file: %s", strerror(errno));
	} else {
		i->text = malloc(what->len + 1);
		i->len = what->len;
		if (i->text == NULL)
			return error_set(err, ENOMEM, "no memory for an import");
		memcpy(i->text, what->text, what->len);
	}
	sigfillset(&all); /* signals are the control thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&i->thread, NULL, import_main, i);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret != 0)
		return error_set(err, ret, "no thread for an import");
	i->joinable = true;
	return 0;
}

int
engine_sa_import_start(struct engine *e, const struct engine_sa_import *what, struct error *err)
{
	int ret;

	if (e->sa == NULL)
		return error_set(err, EINVAL, "this appliance serves no SA (sa.enabled)");
	if (e->import == NULL) {
		e->import = calloc(1, sizeof(*e->import));
		if (e->import == NULL)
			return error_set(err, ENOMEM, "no memory for an import");
		e->import->fd = -1;
	}
	if (import_fleet_create(e) != 0)
		return error_set(err, ENOMEM, "no memory for an import");
	if (e->import->joinable && __atomic_load_n(&e->import->done, __ATOMIC_ACQUIRE) == 0)
		return error_set(err, EBUSY, "another import is under way");
	import_forget(e->import);
	e->import->engine = e;
	ret = import_begin(e->import, what, err);
	if (ret != 0)
		import_forget(e->import);
	return ret;
}

void
engine_sa_import_poll(struct engine *e, struct engine_sa_imported *im, struct error *err)
{
	struct sa_import *i = e->import;

	memset(im, 0, sizeof(*im));
	if (i == NULL || !i->joinable) {
		im->done = true;
		im->result = error_set(err, ENOENT, "no import is under way");
		return;
	}
	im->done = __atomic_load_n(&i->done, __ATOMIC_ACQUIRE) != 0;
	if (!im->done)
		return;
	im->result = i->result;
	im->records = i->num;
	im->elapsed_us = (i->ended - i->started) / (e->hz / 1000000);
	if (i->result != 0)
		error_set(err, -i->result, "%s", i->err.text);
	/* the file, the text and the changes are no longer needed */
	if (i->fd >= 0)
		close(i->fd);
	i->fd = -1;
	free(i->text);
	free(i->changes);
	i->text = NULL;
	i->changes = NULL;
	i->room = 0;
}

void
sa_import_finish(struct engine *e)
{
	struct sa_import *i = e->import;

	if (i == NULL || !i->joinable)
		return;
	import_fleet_stop(e);
	pthread_join(i->thread, NULL);
	import_fleet_stopped(e);
	i->joinable = false;
}

void
sa_import_destroy(struct engine *e)
{
	if (e->import != NULL) {
		import_forget(e->import); /* joins its thread, which uses what goes next */
		free(e->import);
		e->import = NULL;
	}
	import_fleet_destroy(e);
}
