/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The SA and its store: opened at start, closed after the workers were destroyed.
 */

#include <errno.h>
#include <stdlib.h>

#include "engine/worker.h"

#define MIB (UINT64_C(1) << 20)

/* The systemd unit lets the service write to its StateDirectory only. */
static int
explain_path(int ret, const struct error *why, struct error *err)
{
	bool closed = ret == -EROFS || ret == -EACCES || ret == -EPERM;

	return error_set(err, -ret, "sa.path: %.800s%s", why->text,
		closed && getenv("INVOCATION_ID") != NULL
			? ". The service may write below /var/lib/polca only: name a directory "
			  "there, or give its unit ReadWritePaths= in a drop-in"
			: "");
}

/*
 * Records are many and small: they come from the C library, so no memory must be reserved for them.
 */
static int
open_store(struct engine *e, struct error *err)
{
	const struct engine_sa_config *c = &e->config.sa;
	struct store_config config = {
		.tables = sa_num_tables,
		.indexes = sa_indexes,
		.num_indexes = sa_num_indexes,
		.readers = e->num_workers + 1,
		.alloc = &allocator_malloc,
		.max_bytes = c->map_mb * MIB,
		.max_old_bytes = c->old_mb * MIB,
		.max_versions = c->max_versions,
		.grace = { engine_grace_start, engine_grace_done, e->rcu },
	};
	struct error why = { "" };
	int ret;

	if (c->fleet.num_endpoints > 0) {
		ret = fleet_open(&c->fleet, c->path, c->map_mb * MIB, &e->fleet, &config.backend,
			&why);
		if (ret != 0)
			return explain_path(ret, &why, err);
	} else if (c->path[0] != '\0') {
		ret = store_lmdb_open(c->path, c->map_mb * MIB, &config.backend, &why);
		if (ret != 0)
			return explain_path(ret, &why, err);
	}
	e->store = store_create(&config, err);
	if (e->store == NULL)
		e->fleet = NULL; /* closed */
	return e->store != NULL ? 0 : -EIO;
}

int
sa_store_create(struct engine *e, struct error *err)
{
	const struct engine_sa_config *c = &e->config.sa;
	struct sa_config config = c->server;
	int ret;

	if (!c->enabled)
		return 0;
	sa_index_secret(rng_u64(&rng_kernel));
	ret = open_store(e, err);
	if (ret != 0)
		return ret;
	config.store = e->store;
	config.hz = e->hz;
	config.alloc = e->alloc;
	config.rng = &rng_kernel;
	config.workers = e->num_workers;
	e->sa_own_key = rng_u64(&rng_kernel);
	config.own_key = e->sa_own_key;
	config.resp_time = e->config.mad.resp_time;
	config.max_result_bytes = (uint32_t)(c->max_result_mb * MIB);
	config.path_ports = rte_align32pow2(config.path_ports);
	e->sa = sa_create(&config, err);
	if (e->sa == NULL)
		return -ENOMEM;
	/* a follower may not store its own; who may is not known before etcd has answered */
	return e->fleet == NULL ? own_ports_store(e, err) : 0;
}

void
sa_store_destroy(struct engine *e)
{
	if (e->sa != NULL)
		sa_destroy(e->sa);
	if (e->store != NULL)
		store_destroy(e->store);
	e->fleet = NULL; /* the store has closed it */
	e->sa = NULL;
	e->store = NULL;
}
