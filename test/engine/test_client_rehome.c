/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Programs move to another worker with all they have (clients_move.h). Frames sent by worker w
 * arrive at worker w: while two connected programs are on different workers, all their packets are
 * handed over, and some of them are under way during each move.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "client_node.h"
#include "engine/clients_info.h"
#include "engine/clients_private.h"
#include "engine/clients_worker.h"
#include "rc/qp_directory.h"

#define MESSAGE 1000u

static struct engine *engine;
static struct program a, b;

static int
client_rehome_setup(void **state)
{
	(void)state;
	node_config()->rehome = false;
	engine = node_start();
	programs_start(engine, &a, &b);
	return 0;
}

static int
client_rehome_teardown(void **state)
{
	(void)state;
	assert_int_equal(verdict_total(engine, VERDICT_QPN_UNKNOWN), 0);
	programs_stop(&a, &b);
	assert_int_equal(programs_objects(engine), 0);
	node_stop(engine, 0);
	engine = NULL;
	return 0;
}

static struct engine_client_info
client_info_of(const struct program *p)
{
	struct engine_client_info info;
	uint64_t cursor = p->client->id - 1;

	assert_true(engine_client_next(engine, &cursor, &info));
	assert_int_equal(info.id, p->client->id);
	return info;
}

static int
rehome(const struct program *p, unsigned int worker, struct error *err)
{
	return engine_client_rehome(engine, p->client->id, worker, err);
}

static void
move_away(const struct program *p)
{
	unsigned int to = !client_info_of(p).worker;
	struct error err;

	assert_ok(rehome(p, to, &err));
	assert_int_equal(client_info_of(p).worker, to);
	assert_int_equal(rc_owner(engine->dev, p->qp.number), to);
}

/* n messages from a to b, which are under way when it returns. */
static void
start_messages(unsigned int n, uint64_t first)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		program_receive(&b, first + i, 4096 + i * MESSAGE, MESSAGE);
	for (i = 0; i < n; i++)
		program_send(&a, first + i, i * MESSAGE, MESSAGE);
}

static void
expect_completions(struct program *p, unsigned int n, uint64_t first)
{
	struct ring_completion c;
	unsigned int i;

	for (i = 0; i < n; i++) {
		c = program_completion(p);
		assert_int_equal(c.status, WC_SUCCESS);
		assert_int_equal(c.wr_id, first + i);
	}
}

static void
test_an_idle_client_moves(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++) {
		move_away(i % 2 == 0 ? &a : &b);
		programs_message(&a, &b, 10 * i);
		programs_message(&b, &a, 10 * i);
	}
}

static void
test_clients_move_under_traffic(void **state)
{
	struct engine_client_info was = client_info_of(&a);
	unsigned int i;

	(void)state;
	for (i = 0; i < 400; i++) {
		fill(a.memory, PROGRAM_DEPTH * MESSAGE, i);
		memset(b.memory + 4096, 0, PROGRAM_DEPTH * MESSAGE);
		start_messages(PROGRAM_DEPTH, i * PROGRAM_DEPTH);
		move_away(i % 3 == 0 ? &a : &b);
		expect_completions(&a, PROGRAM_DEPTH, i * PROGRAM_DEPTH);
		expect_completions(&b, PROGRAM_DEPTH, i * PROGRAM_DEPTH);
		assert_memory_equal(a.memory, b.memory + 4096, PROGRAM_DEPTH * MESSAGE);
	}
	assert_int_equal(client_info_of(&a).posted - was.posted, 400 * PROGRAM_DEPTH);
	assert_int_equal(client_info_of(&a).completed - was.completed, 400 * PROGRAM_DEPTH);
}

/*
 * Completions for which the program's ring has no room stay behind, in the old worker's part of the
 * CQ: they come before those that the new worker adds.
 */
static void
test_completions_left_behind_come_first(void **state)
{
	unsigned int i, n;
	struct error err;
	int rc = 0;

	(void)state;
	for (i = 0; i < 3; i++) {
		start_messages(PROGRAM_DEPTH, i * PROGRAM_DEPTH);
		expect_completions(&b, PROGRAM_DEPTH, i * PROGRAM_DEPTH);
	}
	/* a has 48 completions: 32 of them in its ring, which is full */
	move_away(&a);
	start_messages(PROGRAM_DEPTH, i * PROGRAM_DEPTH);
	expect_completions(&b, PROGRAM_DEPTH, i * PROGRAM_DEPTH);
	/* each move adds a fence, and there is room for so many only */
	for (n = 0; n < 100 && rc == 0; n++)
		rc = rehome(&a, !client_info_of(&a).worker, &err);
	assert_int_equal(rc, -EAGAIN);
	assert_non_null(strstr(err.text, "poll it"));
	expect_completions(&a, 4 * PROGRAM_DEPTH, 0);
	programs_message(&a, &b, 1000);
	move_away(&a);
	programs_message(&a, &b, 2000);
}

static struct rc_srq_info
only_srq(void)
{
	struct rc_srq_info info;
	uint64_t cursor = 0;

	assert_true(engine_srq_next(engine, &cursor, &info));
	return info;
}

/* Both queue pairs and their SRQ move; a request posted before the move is there after it. */
static void
test_shared_receive_queue_moves_along(void **state)
{
	struct ring_srq_create create = { .pd = a.pd, .max_wr = 4, .max_sge = 1 };
	struct ring_qp_create qp = {
		.pd = a.pd,
		.send_cq = a.cq.slot,
		.recv_cq = a.cq.slot,
		.caps = { 1, 0, 1, 0, 0 },
	};
	struct ring_queue_reply srq, made;
	struct ring_receive *wqe;
	struct ring_end ring;
	struct error err;

	(void)state;
	assert_ok(engine_client_srq_create(a.client, &create, &srq, &err));
	qp.srq = srq.slot;
	assert_ok(engine_client_qp_create(a.client, &qp, &made, &err));
	ring_end_init(&ring, a.segment + srq.receive_entries, srq.receive_num, srq.receive_stride,
		&a.queues[srq.slot].receive_head, &a.queues[srq.slot].receive_tail);
	wqe = ring_next_free(&ring);
	*wqe = (struct ring_receive){ .wr_id = 1, .num_sge = 1 };
	*(struct ring_sge *)(wqe + 1) = (struct ring_sge){ a.address, 64, a.mr.key };
	ring.index++;
	ring_publish(&ring);
	program_ring(&a, srq.slot);
	move_away(&a);
	assert_int_equal(rc_srq_owner(engine->dev, srq.number), client_info_of(&a).worker);
	assert_int_equal(rc_owner(engine->dev, made.number), client_info_of(&a).worker);
	eventually(only_srq().posted == 1);
	assert_int_equal(only_srq().srqn, srq.number);
	assert_int_equal(only_srq().worker, client_info_of(&a).worker);
	programs_message(&b, &a, 5);
}

static const struct rc_cq *
rc_cq_of(const struct program *p, uint32_t slot)
{
	return rc_cq_at(engine->dev, p->client->cq[slot]->cqn);
}

/* A move that is refused frees what it took: memory for completions of a CQ. */
static void
test_a_refused_move_leaves_nothing(void **state)
{
	struct ring_cq_create cq = { .cqe = 4, .channel = RING_NONE };
	struct ring_qp_create qp = { .pd = a.pd, .caps = { 1, 1, 1, 1, 0 }, .srq = RING_NONE };
	struct ring_queue_reply made;
	struct ring_cq_reply cqr;
	unsigned int i, to;
	struct error err;

	(void)state;
	for (i = 0; i < 3; i++) {
		start_messages(PROGRAM_DEPTH, i * PROGRAM_DEPTH);
		expect_completions(&b, PROGRAM_DEPTH, i * PROGRAM_DEPTH);
	}
	while (rehome(&a, !client_info_of(&a).worker, &err) == 0)
		;
	assert_ok(engine_client_cq_create(a.client, &cq, &cqr, &err));
	qp.send_cq = qp.recv_cq = cqr.slot;
	assert_ok(engine_client_qp_create(a.client, &qp, &made, &err));
	to = !client_info_of(&a).worker;
	assert_int_equal(rehome(&a, to, &err), -EAGAIN);
	assert_null(rc_cq_ring(rc_cq_of(&a, cqr.slot), to));
	expect_completions(&a, 3 * PROGRAM_DEPTH, 0);
	move_away(&a);
	assert_non_null(rc_cq_ring(rc_cq_of(&a, cqr.slot), to));
	assert_ok(engine_client_qp_destroy(a.client, made.slot, &err));
	assert_ok(engine_client_cq_destroy(a.client, cqr.slot, &err));
}

static int
read_has_moved(struct worker *w, void *cq)
{
	(void)w;
	return ((const struct client_cq *)cq)->has_moved;
}

static bool
cq_has_moved(const struct program *p)
{
	return engine_call(engine, p->client->worker, read_has_moved, p->client->cq[p->cq.slot]);
}

/* A CQ of which all earlier completions are taken is as before the move. */
static void
test_a_cq_has_moved_until_it_is_empty(void **state)
{
	unsigned int i;

	(void)state;
	assert_false(cq_has_moved(&a));
	for (i = 0; i < 3; i++) {
		start_messages(PROGRAM_DEPTH, i * PROGRAM_DEPTH);
		expect_completions(&b, PROGRAM_DEPTH, i * PROGRAM_DEPTH);
	}
	move_away(&a); /* its ring is full, and the CQ has more */
	assert_true(cq_has_moved(&a));
	expect_completions(&a, 3 * PROGRAM_DEPTH, 0);
	programs_message(&a, &b, 1000);
	eventually(!cq_has_moved(&a));
}

/* What is made after a move is on the new worker; what is destroyed is found there. */
static void
test_objects_come_and_go_after_a_move(void **state)
{
	struct ring_cq_create cq = { .cqe = 4, .channel = RING_NONE };
	struct ring_qp_create qp = { .pd = a.pd, .caps = { 1, 1, 1, 1, 0 }, .srq = RING_NONE };
	struct ring_queue_reply made;
	struct ring_cq_reply cqr;
	struct error err;

	(void)state;
	assert_ok(engine_client_cq_create(a.client, &cq, &cqr, &err));
	qp.send_cq = qp.recv_cq = cqr.slot;
	move_away(&a);
	assert_ok(engine_client_qp_create(a.client, &qp, &made, &err));
	assert_int_equal(rc_owner(engine->dev, made.number), client_info_of(&a).worker);
	move_away(&a);
	assert_int_equal(rc_owner(engine->dev, made.number), client_info_of(&a).worker);
	assert_ok(engine_client_qp_destroy(a.client, made.slot, &err));
	assert_ok(engine_client_cq_destroy(a.client, cqr.slot, &err));
	programs_message(&a, &b, 7);
}

static void
test_refusals_name_the_reason(void **state)
{
	unsigned int worker = client_info_of(&a).worker;
	struct error err;

	(void)state;
	assert_int_equal(engine_client_rehome(engine, 99, 0, &err), -ENOENT);
	assert_string_equal(err.text, "client: there is none with the number 99");
	assert_int_equal(rehome(&a, 2, &err), -EINVAL);
	assert_string_equal(err.text, "worker: got 2, there are 0..1");
	assert_int_equal(rehome(&a, worker, &err), 0); /* it is there */
	assert_int_equal(client_info_of(&a).worker, worker);
}

/* --- the wake pipe --- */

static int
unread_wakes(const struct program *p)
{
	int n;

	assert_int_equal(ioctl(p->client->wake[0], FIONREAD, &n), 0);
	return n;
}

/* A byte in the program's pipe ends the sleep of its new worker, and not that of the old one. */
static void
test_the_program_wakes_its_new_worker(void **state)
{
	const struct timespec none = { 0 }, minute = { .tv_sec = 60 };
	unsigned int from;
	struct program p;
	struct error err;

	(void)state;
	node_config()->rehome = false;
	engine = node_create(); /* the workers do not run */
	program_open(engine, &p, 0);
	program_make_objects(&p);
	from = p.client->worker;
	assert_ok(client_wake_open(engine->worker[!from], &err));
	assert_int_equal(write(p.client->wake[1], "", 1), 1);
	clients_sleep(engine->worker[!from], &none);
	assert_int_equal(unread_wakes(&p), 1);
	clients_sleep(engine->worker[from], &minute);
	assert_int_equal(unread_wakes(&p), 0);

	assert_ok(rehome(&p, !from, &err));
	assert_int_equal(write(p.client->wake[1], "", 1), 1);
	clients_sleep(engine->worker[from], &none);
	assert_int_equal(unread_wakes(&p), 1);
	clients_sleep(engine->worker[!from], &minute);
	assert_int_equal(unread_wakes(&p), 0);
	program_close(&p);
	engine_destroy(engine);
	engine = NULL;
}

/* --- by themselves --- */

static void
set_load(unsigned int worker, uint64_t share)
{
	engine->worker[worker]->stats.load = share;
}

/* Another look, a second after the one before. @return clients that have moved */
static unsigned int
balance_look(struct program *p, unsigned int n, unsigned int from)
{
	static uint64_t now = 1;
	unsigned int i, moved = 0;

	now += rte_get_tsc_hz();
	clients_balance(engine, now);
	for (i = 0; i < n; i++)
		moved += p[i].client->worker != from;
	return moved;
}

/* So many clients, all on worker 0. */
static void
balance_start(struct program *p, unsigned int n)
{
	struct error err;
	unsigned int i;

	node_config()->rehome = true;
	engine = node_create(); /* the workers do not run */
	for (i = 0; i < n; i++) {
		program_open(engine, &p[i], 0);
		assert_ok(rehome(&p[i], 0, &err));
	}
}

static void
balance_stop(struct program *p, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		program_close(&p[i]);
	engine_destroy(engine);
	engine = NULL;
}

static void
test_clients_leave_a_busy_worker(void **state)
{
	struct program p[3];
	unsigned int i;

	(void)state;
	balance_start(p, 3);
	p[0].client->posted = 500;
	p[1].client->posted = 400;
	p[2].client->posted = 300;
	set_load(0, 200); /* not busy enough */
	assert_int_equal(balance_look(p, 3, 0), 0);
	set_load(0, 256);
	set_load(1, 130); /* the other one is not idle enough */
	assert_int_equal(balance_look(p, 3, 0), 0);
	assert_int_equal(balance_look(p, 3, 0), 0);
	set_load(1, 100);
	assert_int_equal(balance_look(p, 3, 0), 0); /* none was active */
	p[0].client->posted += 500;
	p[1].client->completed += 400;
	p[2].client->posted += 300;
	assert_int_equal(balance_look(p, 3, 0), 1); /* the most active one, with less than half */
	assert_int_equal(p[0].client->worker, 1);
	p[1].client->posted += 400;
	p[2].client->posted += 300;
	assert_int_equal(balance_look(p + 1, 2, 0), 0); /* is it busy still? */
	p[1].client->posted += 400;
	p[2].client->posted += 300;
	assert_int_equal(balance_look(p + 1, 2, 0), 1); /* that one makes more than half */
	assert_int_equal(p[2].client->worker, 1);
	assert_int_equal(balance_look(p + 1, 1, 0), 0);
	p[1].client->posted += 400;
	assert_int_equal(balance_look(p + 1, 1, 0),
		0); /* it makes all the work, and would take it along */

	/* now the other one is busy: who has just moved stays for a while */
	set_load(0, 0);
	set_load(1, 256);
	p[0].client->posted += 1;
	p[2].client->posted += 1;
	assert_int_equal(balance_look(p, 1, 1) + balance_look(p + 2, 1, 1), 0);
	for (i = 0; i < 10 && balance_look(p, 1, 1) + balance_look(p + 2, 1, 1) == 0; i++) {
		p[0].client->posted += 1;
		p[2].client->posted += 1;
	}
	assert_in_range(i, 1, 9);
	balance_stop(p, 3);
}

/* Then the next most active one leaves in its place. */
static void
test_a_client_that_cannot_leave(void **state)
{
	struct program p[4];
	unsigned int i;

	(void)state;
	balance_start(p, 4);
	p[0].client->use.qps = 257; /* too many: it moves by hand only */
	set_load(0, 256);
	balance_look(p, 4, 0);
	for (i = 0; i < 4; i++)
		p[i].client->posted += 400 - i;
	assert_int_equal(balance_look(p, 4, 0), 1);
	assert_int_equal(p[1].client->worker, 1);
	p[0].client->use.qps = 0;

	/* refused: the next one leaves in the same look */
	close(p[0].client->wake[0]);
	balance_look(p, 1, 0);
	p[0].client->posted += 300;
	p[2].client->posted += 200;
	p[3].client->posted += 200;
	assert_int_equal(balance_look(p + 2, 2, 0), 1);
	assert_int_equal(p[0].client->worker, 0);
	assert_true(p[0].client->rests_until > 0);
	assert_int_equal(pipe2(p[0].client->wake, O_CLOEXEC | O_NONBLOCK), 0);
	balance_stop(p, 4);
}

/* @return looks until the first client is on another worker; the load goes along */
static unsigned int
looks_until_it_moves(struct program *p)
{
	unsigned int from = p->client->worker, n = 0;

	set_load(from, 256);
	set_load(!from, 0);
	do {
		p[0].client->posted += 10;
		p[1].client->posted += 10;
		p[2].client->posted += 10;
		assert_true(++n < 1000);
	} while (balance_look(p, 1, from) == 0);
	return n;
}

/* A client that takes the load along rests 10, 20, 40 s, and so on; else 10 s again. */
static void
test_moves_that_do_not_help_become_rare(void **state)
{
	unsigned int i, rest = 10;
	struct program p[3];
	struct error err;

	(void)state;
	balance_start(p, 3);
	for (i = 1; i < 3; i++)
		p[i].client->rests_until = UINT64_MAX;
	assert_int_equal(looks_until_it_moves(p), 2);
	for (i = 0; i < 7; i++) {
		assert_ok(rehome(&p[1], p[0].client->worker, &err));
		assert_ok(rehome(&p[2], p[0].client->worker, &err));
		rest = RTE_MIN(2 * rest, 320u);
		assert_in_range(looks_until_it_moves(p), rest - 1, rest + 1);
	}
	set_load(0, 100);
	set_load(1, 100);
	for (i = 0; i < 321; i++)
		balance_look(p, 1, 0);
	assert_int_equal(p[0].client->rest, 10);
	balance_stop(p, 3);
}

/* A worker that a client has left has the fewest queue pairs, and yet gets no others. */
static void
test_busy_workers_get_no_new_clients(void **state)
{
	struct program p[3];

	(void)state;
	balance_start(p, 0);
	set_load(0, 256);
	program_open(engine, &p[0], 0);
	program_make_objects(&p[0]);
	program_open(engine, &p[1], 1);
	assert_int_equal(p[0].client->worker, 1);
	assert_int_equal(p[1].client->worker, 1);
	set_load(1, 256);
	program_open(engine, &p[2], 0);
	assert_int_equal(p[2].client->worker, 0); /* both are: fewer queue pairs */
	balance_stop(p, 3);
}

#define CASE(test)                                                                                 \
	cmocka_unit_test_setup_teardown(test, client_rehome_setup, client_rehome_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_an_idle_client_moves),
		CASE(test_clients_move_under_traffic),
		CASE(test_completions_left_behind_come_first),
		CASE(test_shared_receive_queue_moves_along),
		CASE(test_a_refused_move_leaves_nothing),
		CASE(test_a_cq_has_moved_until_it_is_empty),
		CASE(test_objects_come_and_go_after_a_move),
		CASE(test_refusals_name_the_reason),
		cmocka_unit_test(test_the_program_wakes_its_new_worker),
		cmocka_unit_test(test_clients_leave_a_busy_worker),
		cmocka_unit_test(test_a_client_that_cannot_leave),
		cmocka_unit_test(test_moves_that_do_not_help_become_rare),
		cmocka_unit_test(test_busy_workers_get_no_new_clients),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
