/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Verbs on any connection, whichever side opened it: its ID tells which worker owns it.
 */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/connections.h"
#include "engine/verbs_private.h"

struct conn_args {
	cm_id id;
	struct cm_info *info;
	const struct cm_path *path;
	struct error *err;
};

static int
conn_call_owner(struct engine *e, worker_fn fn, struct conn_args *a)
{
	int ret = engine_call(e, cm_worker_of(e->cm_hash_key, e->num_workers, a->id), fn, a);

	if (ret == -ENOENT)
		return error_set(a->err, ENOENT, "there is no connection 0x%08x (any more)", a->id);
	return ret;
}

static void
in_microseconds(const struct worker *w, struct cm_info *info)
{
	info->age /= w->engine->hz / 1000000;
}

static int
conn_get_here(struct worker *w, void *arg)
{
	const struct conn_args *a = arg;

	if (!cm_get(w->cm, a->id, rte_get_tsc_cycles(), a->info))
		return -ENOENT;
	in_microseconds(w, a->info);
	return 0;
}

int
engine_cm_get(struct engine *e, cm_id id, struct cm_info *info, struct error *err)
{
	struct conn_args a = { .id = id, .info = info, .err = err };

	return conn_call_owner(e, conn_get_here, &a);
}

static int
conn_next_here(struct worker *w, void *arg)
{
	struct walk *walk = arg;

	if (!cm_next(w->cm, &walk->cursor, rte_get_tsc_cycles(), walk->out))
		return 0;
	in_microseconds(w, walk->out);
	return 1;
}

bool
engine_cm_next(struct engine *e, uint64_t *cursor, struct cm_info *info)
{
	return walk_workers(e, cursor, conn_next_here, info);
}

static int
conn_disconnect_here(struct worker *w, void *arg)
{
	const struct conn_args *a = arg;

	return cm_disconnect(w->cm, a->id, NULL, 0, rte_get_tsc_cycles());
}

int
engine_cm_disconnect(struct engine *e, cm_id id, struct error *err)
{
	struct conn_args a = { .id = id, .err = err };
	int ret = conn_call_owner(e, conn_disconnect_here, &a);

	if (ret == -EALREADY)
		return error_set(err, EALREADY, "connection 0x%08x is ending already", id);
	return ret;
}

static int
load_alternate_here(struct worker *w, void *arg)
{
	const struct conn_args *a = arg;

	return cm_load_alternate(w->cm, a->id, a->path, rte_get_tsc_cycles(), a->err);
}

int
engine_cm_load_alternate(struct engine *e, cm_id id, const struct engine_ah *ah, struct error *err)
{
	struct conn_path_args path = { .ah = *ah };
	struct conn_args a = { .id = id, .err = err };
	struct cm_info info;
	struct cm_path alternate;
	int ret = engine_cm_get(e, id, &info, err);

	if (ret != 0)
		return ret;
	path.pkey_index = info.path.pkey_index;
	path.path_mtu = info.path.mtu;
	path.packet_life = info.path.packet_life;
	ret = conn_path_plain(e, &path, &alternate, err);
	if (ret != 0)
		return ret;
	a.path = &alternate;
	return conn_call_owner(e, load_alternate_here, &a);
}

void
engine_cm_counters(const struct engine *e, int worker, struct cm_counters *sum)
{
	unsigned int i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < e->num_workers; i++)
		if (worker < 0 || (unsigned int)worker == i)
			add_counters(sum, cm_counters(e->worker[i]->cm), sizeof(*sum));
}
