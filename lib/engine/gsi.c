/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * QP0 and QP1 of a worker: management datagrams, the agents that answer them, and the SA client.
 */

#include <errno.h>

#include "engine/live_agent.h"
#include "engine/pma_agent.h"
#include "engine/subnet.h"
#include "engine/verbs_sa.h"
#include "engine/vl15.h"

#define WRITTEN_BURST 32

static int
gsi_create_mad(struct worker *w, struct error *err)
{
	struct engine *e = w->engine;
	struct mad_worker_config config = {
		.id = w->id,
		.workers = w->workers,
		.hash_key = e->mad_hash_key,
		.hz = e->hz,
		.alloc = e->alloc,
		.rng = &rng_kernel,
		.wheel = w->wheel,
		.tx = link_tx_sink(w->link),
		.smp_tx = link_smp_sink(w->link),
		.port = worker_port,
		.port_arg = w,
		.limits = e->config.mad,
		.icrc_unchecked = w->icrc_unchecked,
		.violation = bad_key_mad,
		.violation_arg = w,
	};

	w->mad_hash_key = e->mad_hash_key;
	w->mad = mad_worker_create(&config);
	if (w->mad == NULL)
		return error_set(err, ENOMEM,
			"no memory for %u sessions of management datagrams on worker %u: "
			"lower mad.max_sessions or mad.max_bytes, or raise eal.memory_mb",
			config.limits.max_sessions, w->id);
	w->client = sa_client_create(w->mad, e->alloc, ENGINE_SA_QUERIES);
	if (w->client == NULL)
		return error_set(err, ENOMEM, "no memory for worker %u's SA queries", w->id);
	sa_client_share(w->client, &e->sa_known);
	sa_client_edit_codes(w->client, e->config.sa.server.edit_codes);
	return 0;
}

static int
gsi_create_sa(struct worker *w, struct error *err)
{
	struct engine *e = w->engine;
	struct sa_worker_config config = {
		.id = w->id,
		.mad = w->mad,
		.reader = store_reader(e->store, w->id),
		.submit = store_thread_submit,
		.submit_arg = w,
	};

	/* in the worst case all outstanding changes complete at once */
	w->written = engine_ring("written", sizeof(void *),
		rte_align32pow2(e->config.sa.server.max_writes + 1),
		(int)rte_lcore_to_socket_id(w->lcore), RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (w->written != NULL)
		w->sa = sa_worker_create(e->sa, &config);
	return w->sa != NULL
		? 0
		: error_set(err, ENOMEM,
			  "no memory for the SA on worker %u: lower "
			  "sa.max_result_mb, sa.max_writes or sa.path_routes, or raise eal.memory_mb",
			  w->id);
}

int
gsi_create(struct worker *w, struct error *err)
{
	int ret = gsi_create_mad(w, err);

	if (ret == 0 && w->engine->sa != NULL)
		ret = gsi_create_sa(w, err);
	if (ret == 0)
		ret = live_agent_create(w, err);
	if (ret == 0)
		ret = bad_keys_create(w, err);
	if (ret == 0 && w->id == 0)
		ret = vl15_create(w, err);
	if (ret == 0 && w->id == 0)
		ret = pma_agent_create(w, err);
	if (ret == 0 && w->id == 0)
		ret = subnet_create(w, err);
	return ret;
}

void
gsi_destroy(struct worker *w)
{
	/* ending sessions call back into the SA, the client and the agents, so this goes first */
	if (w->mad != NULL)
		mad_worker_destroy(w->mad);
	if (w->client != NULL)
		sa_client_destroy(w->client);
	if (w->sa != NULL)
		sa_worker_destroy(w->sa);
	subnet_destroy(w);
	pma_agent_destroy(w);
	live_agent_destroy(w);
	vl15_destroy(w);
	bad_keys_destroy(w);
	engine_ring_free(w->written);
	w->sa = NULL;
	w->client = NULL;
	w->mad = NULL;
	w->written = NULL;
}

static unsigned int
gsi_take_written(struct worker *w, uint64_t now)
{
	void *done[WRITTEN_BURST];
	unsigned int i, n;

	n = rte_ring_sc_dequeue_burst(w->written, done, WRITTEN_BURST, NULL);
	for (i = 0; i < n; i++)
		sa_write_done(w->sa, done[i], now);
	return n;
}

unsigned int
gsi_run(struct worker *w, uint64_t now)
{
	unsigned int work = 0;

	if (w->sa != NULL) {
		work += gsi_take_written(w, now);
		work += sa_run(w->sa, now, WORKER_SA_BUDGET);
	}
	if (w->vl15 != NULL)
		work += vl15_run(w, now);
	return work + mad_run(w->mad, now, WORKER_BUDGET);
}

bool
gsi_pending(const struct worker *w)
{
	return mad_pending(w->mad) || (w->sa != NULL && sa_pending(w->sa)) ||
		(w->vl15 != NULL && vl15_pending(w));
}
