/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Builds with checks end when an invariant of a connection fails, and print its last steps; other
 * builds contain no checks. Damage is done in a process of its own.
 */

#include <string.h>

#include "../checked.h"
#include "cm/private.h"
#include "world.h"

static void
damage_peer(struct cm_conn *c)
{
	c->peer = NULL;
}

static void
damage_id(struct cm_conn *c)
{
	c->id++;
}

static void
damage_half_open(struct cm_conn *c)
{
	c->half_open = true;
}

static void
damage_end(struct cm_conn *c)
{
	c->state = CM_STATE_TIMEWAIT;
	c->told = false;
}

static void
damage_keys(struct cm_conn *c)
{
	c->remote_id++;
}

static void
damage_lap(struct cm_conn *c)
{
	c->state = CM_STATE_REP_SENT;
	c->lap_waiting = true;
}

static void
damage_probe(struct cm_conn *c)
{
	c->probing = true; /* without a timer */
}

static void
damage_conn_and_check(void *c, void *damage)
{
	(*(void (**)(struct cm_conn *))damage)(c);
	cm_conn_check((struct cm_conn *)c);
}

static void
test_damage_to_a_connection_is_found(void **state)
{
	static void (*damages[])(struct cm_conn *) = { damage_peer, damage_id, damage_half_open,
		damage_end, damage_keys, damage_lap, damage_probe };
	struct world *w = *state;
	struct life *a, *b;
	struct cm_conn *c;
	unsigned int i;

	establish(w, &a, &b);
	c = cm_conn_of(w->a.cm, a->id);
	cm_conn_check(c);
	for (i = 0; i < RTE_DIM(damages); i++)
		assert_int_equal(ends_process(damage_conn_and_check, c, &damages[i]), CHECKED);
}

static struct cm_conn *
damage_users_conn(struct world *w, struct life *l)
{
	struct cm_conn *c = cm_conn_of(w->a.cm, l->id);

	damage_half_open(c);
	return c;
}

static void
disconnect_damaged(void *w, void *l)
{
	damage_users_conn(w, l);
	disconnect(l);
}

static void
migrate_damaged(void *w, void *l)
{
	const struct cm_path path = { .av.port = 0, .mtu = 1024 };
	struct world *world = w;

	damage_users_conn(w, l);
	cm_load_alternate(world->a.cm, ((struct life *)l)->id, &path, world->now, NULL);
}

static void
event_of_damaged(void *w, void *l)
{
	struct cm_conn *c = damage_users_conn(w, l);

	cm_qp_event(c->cm, &(struct event){ .type = EVENT_PATH_MIG_ERR, .element = c->qpn });
}

static void
work_of_damaged(void *w, void *l)
{
	struct cm_conn *c = damage_users_conn(w, l);

	cm_want(c, CM_WORK_RQ_EMPTY);
	cm_run(c->cm, ((struct world *)w)->now, 1);
}

static void
probe_damaged(void *w, void *l)
{
	cm_probe(damage_users_conn(w, l));
}

static void
connect_damaged(void *w, void *l)
{
	struct world *world = w;

	(void)l;
	world->a.cm->slots = 0;
	start(&world->a);
}

static void
accept_damaged(void *w, void *l)
{
	struct world *world = w;

	(void)l;
	world->b.cm->slots = 0;
	start(&world->a);
	exchange(world);
}

/* Not only messages and timers: what users and queue pairs cause, too. */
static void
test_every_event_checks_its_connection(void **state)
{
	static void (*const acts[])(void *w, void *l) = { disconnect_damaged, migrate_damaged,
		event_of_damaged, work_of_damaged, probe_damaged, connect_damaged, accept_damaged };
	struct world *w = *state;
	struct life *a, *b;
	unsigned int i;

	establish(w, &a, &b);
	for (i = 0; i < RTE_DIM(acts); i++)
		assert_int_equal(ends_process(acts[i], w, a), CHECKED);
}

/* With the flight recorder on, the connection's last steps; else a word about it. */
static void
test_a_failed_check_of_a_connection_prints_its_steps(void **state)
{
	void (*damage)(struct cm_conn *) = damage_half_open;
	struct world *w = *state;
	const char *req, *rep, *rtu;
	struct life *a, *b;
	char text[65536];

	assert_int_equal(cm_trace_switch_all(w->a.cm, true), 0);
	establish(w, &a, &b);
	assert_int_equal(ends_process_saying(damage_conn_and_check, cm_conn_of(w->b.cm, b->id),
				 &damage, text, sizeof(text)),
		CHECKED);
	assert_int_equal(strstr(text, "were not recorded (trace_start)") != NULL, CHECKED);
	assert_int_equal(ends_process_saying(damage_conn_and_check, cm_conn_of(w->a.cm, a->id),
				 &damage, text, sizeof(text)),
		CHECKED);
	if (!CHECKED)
		return;
	assert_non_null(strstr(text, " in ESTABLISHED:\n"));
	req = strstr(text, "sent      REQ  REQ_SENT\n");
	rep = strstr(text, "received  REP  ESTABLISHED\n");
	rtu = strstr(text, "sent      RTU  ");
	assert_true(req != NULL && rep > req && rtu > rep);
	assert_true(strstr(text, "assert \"") > rtu);
}

#define T(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_damage_to_a_connection_is_found),
		T(test_every_event_checks_its_connection),
		T(test_a_failed_check_of_a_connection_prints_its_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
