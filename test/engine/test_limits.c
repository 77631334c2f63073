/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A limit that was reached is a line of the log: which one and how often, the first address that it
 * affected, the options that change it and their values. The counters are moved by hand here; that
 * each moves when its limit is reached is tested where the limit is.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>

#include "engine/verbs_mad.h"
#include "engine/verbs_sa.h"
#include "engine/worker.h"
#include "node.h"

static const uint8_t peer_gid[16] = { 0xfe, 0x80, [15] = 7 };
static const uint8_t other_gid[16] = { 0xfe, 0x80, [15] = 8 };
static const uint8_t peer_lid[16] = { [14] = 1, [15] = 2 }; /* ::0102, of lib/mad and lib/cm */
static const uint8_t owner_lid[16] = { [8] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2 };

/* Look at the limits now, and return what was logged. The caller frees it. */
static char *
lines_now(struct engine *e)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	e->events_log.limits_next = 0;
	rte_openlog_stream(f);
	engine_watch(e);
	rte_openlog_stream(NULL);
	fclose(f);
	return text;
}

static void
limit_count(const uint64_t *counter, uint64_t n)
{
	*(uint64_t *)(uintptr_t)counter += n;
}

static void
expect_limit_line(struct engine *e, const char *line)
{
	char *text = lines_now(e);

	if (strcmp(text, line) != 0)
		fail_msg("logged:\n%sexpected:\n%s", text, line);
	free(text);
	text = lines_now(e);
	assert_string_equal(text, ""); /* once */
	free(text);
}

static int
limits_start(void **state)
{
	struct engine_config *c = node_config();

	c->cm.max_half_open = 100;
	c->cm.max_half_open_per_peer = 5;
	c->cm.max_connections = 200;
	c->cm.max_connections_per_peer = 20;
	c->limits.max_qp = 256;
	c->mad.max_sessions = 300;
	c->mad.max_sessions_per_peer = 30;
	c->mad.max_bytes = 1 << 20;
	c->mad.max_bytes_per_peer = 1 << 16;
	c->handoff_ring = 128;
	c->sa.map_mb = 64;
	c->sa.server.max_writes = 40;
	c->sa.server.max_queries = 50;
	c->sa.server.max_results = 6000;
	c->sa.max_result_mb = 7;
	c->sa.max_versions = 8;
	c->sa.old_mb = 9;
	c->sa.server.notices_max = 10;
	c->live.rate = 11;
	c->live.burst = 12;
	*state = node_create();
	free(lines_now(*state)); /* what the start had to say */
	return 0;
}

static int
limits_end(void **state)
{
	node_stop(*state, 0);
	return 0;
}

static void
test_limits_of_the_communication_manager(void **state)
{
	struct engine *e = *state;
	struct cm *cm = e->worker[0]->cm;
	const struct cm_counters *c = cm_counters(cm);

	limit_count(&c->half_open_limit, 3);
	limit_peer_note(&cm_limited(cm)->half_open, peer_gid);
	limit_peer_note(&cm_limited(cm)->half_open, other_gid); /* not the first */
	expect_limit_line(e,
		"engine: limit reached: 3 requests to connect were dropped: too many of one peer are half open, the first of fe80::7 (cm.max_half_open_per_peer is 5)\n");
	limit_count(&c->half_open_evicted, 1);
	limit_peer_note(&cm_limited(cm)->evicted, peer_lid);
	expect_limit_line(e,
		"engine: limit reached: 1 half-open connections were ended for newer ones, the first of lid:258 (cm.max_half_open is 100, cm.max_half_open_per_peer is 5)\n");
	limit_count(&c->no_resources, 2);
	limit_peer_note(&cm_limited(cm)->no_resources, peer_gid);
	expect_limit_line(e,
		"engine: limit reached: 2 connections were refused for lack of a QP or connection, the first of fe80::7 (cm.max_connections is 200, cm.max_connections_per_peer is 20, limits.max_qp is 256)\n");
	limit_count(&c->no_place, 2);
	limit_peer_note(&cm_limited(cm)->no_place, peer_gid);
	expect_limit_line(e,
		"engine: limit reached: 2 connections were ended as they were established: cm.max_connections is reached, or their service's max_connections, the first of fe80::7 (cm.max_connections is 200)\n");
}

static void
test_limits_of_management(void **state)
{
	struct engine *e = *state;
	struct mad_worker *mad = e->worker[1]->mad;
	const struct mad_counters *c = mad_worker_counters(mad);

	limit_count(&c->sessions_refused, 4);
	limit_peer_note(&mad_worker_limited(mad)->refused, peer_gid);
	expect_limit_line(e,
		"engine: limit reached: 4 management requests were refused: no session or memory is free, the first of fe80::7 (mad.max_sessions is 300, mad.max_sessions_per_peer is 30, mad.max_bytes is 1048576, mad.max_bytes_per_peer is 65536)\n");
	limit_count(&c->sessions_reclaimed, 5);
	limit_peer_note(&mad_worker_limited(mad)->reclaimed, peer_gid);
	expect_limit_line(e,
		"engine: limit reached: 5 management sessions were ended to make room for other addresses, the first of fe80::7 (mad.max_sessions is 300, mad.max_bytes is 1048576)\n");
	limit_count(&live_counters(e->worker[0]->live)->rate_limited, 6);
	expect_limit_line(e,
		"engine: limit reached: 6 requests of ping were dropped: their source sent too many (live.rate is 11, live.burst is 12)\n");
}

static void
test_limits_of_the_sa(void **state)
{
	struct engine *e = *state;
	struct sa_worker *sa = e->worker[0]->sa;
	const struct sa_counters *c = sa_worker_counters(sa);
	struct sa_limited *who = sa_worker_limited(sa);

	limit_count(&c->strangers_busy, 1);
	limit_count(&c->no_resources, 1); /* counted, too, and not logged a second time */
	limit_peer_note(&who->strangers_busy, peer_gid);
	expect_limit_line(e,
		"engine: limit reached: 1 SA changes and queries were refused: strangers have their share of those under way, the first of fe80::7 (sa.max_writes is 40, sa.max_queries is 50)\n");
	limit_count(&c->share_full, 2);
	limit_count(&c->no_resources, 2);
	limit_peer_note(&who->share_full, owner_lid);
	expect_limit_line(e,
		"engine: limit reached: 2 changes of SA records were refused: strangers have their share; import their ports, or find who sends them, the first of lid:258 (sa.map_mb is 64)\n");
	limit_count(&c->gave_way, 3);
	limit_count(&mad_worker_counters(e->worker[0]->mad)->sessions_reclaimed,
		3); /* their sessions */
	limit_peer_note(&who->gave_way, peer_gid);
	expect_limit_line(e,
		"engine: limit reached: 3 SA queries and results were ended to make room for other addresses, the first of fe80::7 (sa.max_queries is 50, sa.max_result_mb is 7)\n");
	limit_count(&c->no_resources, 4);
	expect_limit_line(e,
		"engine: limit reached: 4 SA requests were answered \"no resources\" or \"busy\" (sa.max_writes is 40, sa.max_queries is 50, sa.max_results is 6000, sa.map_mb is 64)\n");
	limit_count(&c->stale, 5);
	expect_limit_line(e,
		"engine: limit reached: 5 SA transfers were ended: their version of the database was given up (sa.max_versions is 8, sa.old_mb is 9)\n");
	limit_count(&c->events_lost, 6);
	expect_limit_line(e,
		"engine: limit reached: 6 notices of the SA were sent to nobody: too many at one time (sa.notices_max is 10)\n");
}

static void
test_limits_of_workers(void **state)
{
	struct engine *e = *state;

	limit_count(&e->worker[1]->stats.handoff_full, 7);
	expect_limit_line(e,
		"engine: limit reached: 7 packets found the ring to another worker full; more workers help, too (workers.handoff_ring is 128)\n");
	limit_count(&e->worker[1]->stats.events_lost, 8);
	expect_limit_line(e,
		"engine: limit reached: 8 events were lost, and not logged: they came faster than they are read\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_limits_of_the_communication_manager,
			limits_start, limits_end),
		cmocka_unit_test_setup_teardown(test_limits_of_management, limits_start,
			limits_end),
		cmocka_unit_test_setup_teardown(test_limits_of_the_sa, limits_start, limits_end),
		cmocka_unit_test_setup_teardown(test_limits_of_workers, limits_start, limits_end),
	};

	return cmocka_run_group_tests_name("limits in the log", tests, eal_setup, eal_teardown);
}
