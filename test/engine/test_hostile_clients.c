/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Programs on the verbs socket that write anything, at any time, into what they share with their
 * worker: another thread does so while the worker runs. It writes at the worker's own addresses, so
 * that ThreadSanitizer sees both.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../open_descriptors.h"
#include "client_node.h"
#include "engine/clients_private.h"
#include "engine/clients_worker.h"
#include "engine/verbs_pd.h"

#define MESSAGES 100u

static struct engine *e;
static struct program a, b; /* honest, and connected */

static int
hostile_setup(void **state)
{
	(void)state;
	node_config();
	e = node_start();
	programs_start(e, &a, &b);
	return 0;
}

static int
hostile_teardown(void **state)
{
	(void)state;
	programs_stop(&a, &b);
	node_stop(e, 0);
	return 0;
}

/* --- threads that write while the worker reads --- */

struct area {
	uint32_t *words;
	uint32_t num;
};

/* The parts of a client's segment that its worker reads. */
struct scribbler {
	struct area area[8];
	unsigned int areas;
	bool stop;
	pthread_t thread;
};

static void
scribbler_add(struct scribbler *s, void *at, uint64_t bytes)
{
	s->area[s->areas++] = (struct area){ at, (uint32_t)(bytes / sizeof(uint32_t)) };
}

static uint64_t
hostile_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Small numbers are more often right: of a slot, of entries, of a list. */
static void *
hostile_scribbler_run(void *arg)
{
	struct scribbler *s = arg;
	uint64_t x = UINT64_C(88172645463325252);

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		const struct area *area = &s->area[hostile_random(&x) % s->areas];
		uint32_t value = (uint32_t)hostile_random(&x);
		uint32_t at = (uint32_t)(hostile_random(&x) >> 16) % area->num;

		if (value & 1)
			value >>= 27;
		__atomic_store_n(&area->words[at], value, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void
scribbler_start(struct scribbler *s)
{
	assert_int_equal(pthread_create(&s->thread, NULL, hostile_scribbler_run, s), 0);
}

static void
scribbler_end(struct scribbler *s)
{
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_join(s->thread, NULL);
}

static void
scribble_queues(struct scribbler *s, const struct program *p)
{
	const struct ring_geometry *g = &p->hello.geometry;
	uint8_t *base = p->client->segment.base;

	scribbler_add(s, base + g->doorbells, g->num_queues * sizeof(uint32_t));
	scribbler_add(s, base + g->queues, g->num_queues * sizeof(struct ring_queue));
	scribbler_add(s, base + g->cqs, g->num_cqs * sizeof(struct ring_cq));
}

static void
scribble_entries(struct scribbler *s, const struct program *p, const struct ring_queue_reply *q)
{
	uint8_t *base = p->client->segment.base;

	if (q->send_num > 0)
		scribbler_add(s, base + q->send_entries, (uint64_t)q->send_num * q->send_stride);
	scribbler_add(s, base + q->receive_entries, (uint64_t)q->receive_num * q->receive_stride);
}

/* A queue pair, and the ends of its rings. */
static void
hostile_qp(struct program *p)
{
	struct ring_qp_create qp = {
		.caps = { PROGRAM_DEPTH, PROGRAM_DEPTH, 2, 2, 0 },
		.pd = p->pd,
		.send_cq = p->cq.slot,
		.recv_cq = p->cq.slot,
		.srq = RING_NONE,
		.sq_sig_all = 1,
	};
	struct ring_queue *q;
	struct error err;

	assert_ok(engine_client_qp_create(p->client, &qp, &p->qp, &err));
	q = &p->queues[p->qp.slot];
	ring_end_init(&p->send, p->segment + p->qp.send_entries, p->qp.send_num, p->qp.send_stride,
		&q->send_head, &q->send_tail);
	ring_end_init(&p->receive, p->segment + p->qp.receive_entries, p->qp.receive_num,
		p->qp.receive_stride, &q->receive_head, &q->receive_tail);
}

/* The queue pair gets no inline data, whose bytes lib/rc copies from the entry with memcpy(). */
static void
make_plain_qp(struct program *p)
{
	struct error err;

	assert_ok(engine_client_qp_destroy(p->client, p->qp.slot, &err));
	hostile_qp(p);
}

static void
hostile_srq(struct program *p, struct ring_queue_reply *srq)
{
	struct ring_srq_create create = { .pd = p->pd, .max_wr = PROGRAM_DEPTH, .max_sge = 2 };
	struct error err;

	assert_ok(engine_client_srq_create(p->client, &create, srq, &err));
}

/* Two hostile programs that are connected: doorbells, indices and entries of all kinds of rings. */
static void
test_a_hostile_partner_harms_itself_only(void **state)
{
	struct scribbler scribbler[2] = { 0 };
	struct ring_queue_reply srq;
	struct program c, d;
	uint64_t i;

	(void)state;
	program_open(e, &c, 0);
	program_open(e, &d, 1);
	program_make_objects(&c);
	program_make_objects(&d);
	make_plain_qp(&c);
	make_plain_qp(&d);
	hostile_srq(&c, &srq);
	program_connect(&c, &d);
	scribble_queues(&scribbler[0], &c);
	scribble_entries(&scribbler[0], &c, &c.qp);
	scribble_entries(&scribbler[0], &c, &srq);
	scribble_queues(&scribbler[1], &d);
	scribble_entries(&scribbler[1], &d, &d.qp);
	scribbler_start(&scribbler[0]);
	scribbler_start(&scribbler[1]);
	for (i = 0; i < MESSAGES; i++)
		programs_message(&a, &b, i * 2);
	scribbler_end(&scribbler[0]);
	scribbler_end(&scribbler[1]);
	program_close(&c);
	program_close(&d);
	programs_message(&a, &b, 2 * MESSAGES);
}

struct tearer {
	struct ring_send *wqe; /* and its list */
	struct ring_sge right, wrong;
	bool stop;
};

static void
put_torn_word(uint8_t *to, const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELAXED);
}

/* The list of one entry is right, is half right, has a stranger's key, is longer than allowed. */
static void *
tearer_run(void *arg)
{
	struct tearer *t = arg;
	uint8_t *sge = (uint8_t *)(t->wqe + 1);
	struct ring_send wqe = *t->wqe;
	uint32_t i;

	for (i = 0; !__atomic_load_n(&t->stop, __ATOMIC_RELAXED); i++) {
		put_torn_word(sge, (uint8_t *)(i % 2 == 0 ? &t->right : &t->wrong));
		put_torn_word(sge + 8, (uint8_t *)((i / 2) % 2 == 0 ? &t->right : &t->wrong) + 8);
		wqe.num_sge = i % 64 == 63 ? UINT8_MAX : 1;
		put_torn_word((uint8_t *)t->wqe + 8,
			(uint8_t *)&wqe + 8); /* with the length of the list */
	}
	return NULL;
}

/* The next entry of a program's send queue, where its worker reads it. */
static void *
worker_entry(const struct program *p)
{
	uint8_t *entry = ring_next_free(&p->send);

	return p->client->segment.base + (entry - p->segment);
}

/* A RESET queue pair has taken all entries, and there is no old completion. */
static void
reset(struct program *p)
{
	struct ring_qp_attr attr = {
		.slot = p->qp.slot,
		.mask = QP_ATTR_STATE,
		.qp_state = QPS_RESET,
	};
	struct error err;

	assert_ok(engine_client_qp_modify(p->client, &attr, &err));
	p->send.index = p->send.seen = __atomic_load_n(p->send.others, __ATOMIC_ACQUIRE);
	p->receive.index = p->receive.seen = __atomic_load_n(p->receive.others, __ATOMIC_ACQUIRE);
	while (ring_ready(&p->completions) > 0)
		program_completion(p);
}

static void
meet_again(struct program *p, struct program *q)
{
	reset(p);
	reset(q);
	program_connect(p, q);
}

/*
 * A request changes while the worker copies it. What the copy says is checked: it sends c's bytes,
 * or fails. A stranger's bytes, which the wrong key names, never arrive.
 */
static void
test_torn_requests(void **state)
{
	struct ring_completion done;
	struct ring_send *wqe;
	struct tearer tearer;
	struct program c, d;
	pthread_t thread;
	uint64_t i;

	(void)state;
	program_open(e, &c, 0);
	program_open(e, &d, 1);
	program_make_objects(&c);
	program_make_objects(&d);
	program_connect(&c, &d);
	memset(a.memory, 0x5a, PROGRAM_MEMORY);
	memset(c.memory, 0xc3, PROGRAM_MEMORY);
	for (i = 0; i < MESSAGES; i++) {
		tearer = (struct tearer){
			.wqe = worker_entry(&c),
			.right = { c.address, 64, c.mr.key },
			.wrong = { a.address + PROGRAM_MEMORY, 64, a.mr.key },
		};
		wqe = ring_next_free(&c.send);
		*wqe = (struct ring_send){ .wr_id = i, .opcode = WR_SEND, .num_sge = 1 };
		*(struct ring_sge *)(wqe + 1) = tearer.right;
		memset(d.memory, 0, 64);
		program_receive(&d, i, 0, 64);
		assert_int_equal(pthread_create(&thread, NULL, tearer_run, &tearer), 0);
		c.send.index++;
		ring_publish(&c.send);
		program_ring(&c, c.qp.slot);
		done = program_completion(&c);
		__atomic_store_n(&tearer.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		assert_int_equal(done.wr_id, i);
		if (done.status == WC_SUCCESS) {
			assert_int_equal(program_completion(&d).wr_id, i);
			assert_int_equal(d.memory[0], 0xc3);
			assert_memory_equal(d.memory, c.memory, 64);
			continue;
		}
		assert_true(done.status == WC_LOC_PROT_ERR || done.status == WC_WR_FLUSH_ERR);
		assert_int_equal(d.memory[0], 0);
		meet_again(&c, &d);
	}
	program_close(&c);
	program_close(&d);
	programs_message(&a, &b, 2 * MESSAGES);
}

/* --- pipes --- */

/* The program fills the pipe to the brim, and tries to make polca's own writes wait. */
static void
fill_pipe(int fd)
{
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	while (write(fd, "x", 1) == 1)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
}

static void
test_a_full_wake_pipe_stops_nobody(void **state)
{
	struct worker *w = e->worker[a.client->worker];
	int fds[RING_HELLO_FDS], others[RING_HELLO_FDS];
	unsigned int i;

	(void)state;
	engine_client_hello(a.client, &a.hello, fds);
	engine_client_hello(b.client, &b.hello, others);
	/* the worker may read between: what counts is that the flags are nobody else's */
	assert_int_equal(fcntl(fds[2], F_SETFL, 0), 0);
	assert_true(fcntl(w->wake_pipe[1], F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(others[2], F_GETFL) & O_NONBLOCK);
	/* twice what a pipe holds: on an idle machine the worker empties it as fast */
	for (i = 0; i < 1 << 17 && write(others[2], "x", 1) == 1; i++)
		; /* it is polca's only until it is passed */
	clients_wake(e->worker[b.client->worker]);
	programs_message(&a, &b, 0);
}

/* A completion queue with a channel, in the place of p's; its queue pair is made anew. */
static void
give_channel(struct program *p, int fds[RING_CHANNEL_FDS])
{
	struct ring_cq_create cq = { .cqe = PROGRAM_DEPTH * 2, .cookie = 0xc00c1e };
	struct error err;

	assert_ok(engine_client_channel_create(p->client, &cq.channel, fds, &err));
	assert_ok(engine_client_qp_destroy(p->client, p->qp.slot, &err));
	assert_ok(engine_client_cq_destroy(p->client, p->cq.slot, &err));
	assert_ok(engine_client_cq_create(p->client, &cq, &p->cq, &err));
	ring_end_init(&p->completions, p->segment + p->cq.entries, p->cq.num,
		sizeof(struct ring_completion), &p->cqs[p->cq.slot].tail, &p->cqs[p->cq.slot].head);
	hostile_qp(p);
}

/* Messages of which each causes an event. */
static void
expect_messages_with_events(unsigned int n)
{
	uint32_t *armed = &b.cqs[b.cq.slot].armed;
	unsigned int i;

	for (i = 0; i < n; i++) {
		__atomic_store_n(armed, RING_ARMED_ANY, __ATOMIC_SEQ_CST);
		programs_message(&a, &b, 2 * i);
		eventually(__atomic_load_n(armed, __ATOMIC_RELAXED) == 0);
	}
}

static void
test_a_completion_pipe_that_is_never_read(void **state)
{
	int fds[RING_CHANNEL_FDS];

	(void)state;
	give_channel(&b, fds);
	fill_pipe(fds[1]);
	meet_again(&a, &b);
	expect_messages_with_events(20);
	close(fds[0]);
	close(fds[1]);
}

static void
test_a_completion_pipe_without_a_reader(void **state)
{
	int fds[RING_CHANNEL_FDS];

	(void)state;
	signal(SIGPIPE, SIG_IGN); /* as polca does */
	give_channel(&b, fds);
	close(fds[0]);
	close(fds[1]);
	meet_again(&a, &b);
	expect_messages_with_events(20);
}

/* --- what is another client's --- */

/* A peer's Write with the key of a region that is another client's: the responder refuses it. */
static void
test_remote_key_of_another_client(void **state)
{
	struct program c;
	struct ring_send *wqe = ring_next_free(&a.send);
	struct ring_sge *sge = (struct ring_sge *)(wqe + 1);

	(void)state;
	program_open(e, &c, 1);
	program_make_objects(&c);
	memset(c.memory, 0x11, PROGRAM_MEMORY);
	memset(a.memory, 0xaa, PROGRAM_MEMORY);
	*wqe = (struct ring_send){
		.opcode = WR_RDMA_WRITE,
		.num_sge = 1,
		.remote_addr = c.address,
		.rkey = c.mr.key,
	};
	*sge = (struct ring_sge){ a.address, 64, a.mr.key };
	a.send.index++;
	ring_publish(&a.send);
	program_ring(&a, a.qp.slot);
	assert_int_equal(program_completion(&a).status, WC_REM_ACCESS_ERR);
	assert_int_equal(c.memory[0], 0x11);
	program_close(&c);
}

/* A doorbell names a slot of the client's own table, never another client's queue. */
static void
test_doorbells_ring_the_clients_own_queues(void **state)
{
	struct program c;
	uint32_t slot;

	(void)state;
	program_open(e, &c, 0); /* it has no queue, a has one in slot 0 */
	for (slot = 0; slot < c.hello.geometry.num_queues; slot++) {
		c.queues[slot].send_head = c.queues[slot].receive_head = PROGRAM_DEPTH;
		program_ring(&c, slot);
	}
	eventually(c.queues[c.hello.geometry.num_queues - 1].rung == 0);
	programs_message(&a, &b, 0);
	assert_int_equal(c.queues[a.qp.slot].send_tail, 0);
	program_close(&c);
}

/* --- the end --- */

/* A hundred times, the writing program or its peer ends in the middle of a full queue of Writes. */
static void
test_programs_that_end_under_traffic_leave_nothing(void **state)
{
	unsigned int before = 0, round, i;
	struct program c, d;

	(void)state;
	for (round = 0; round <= 100; round++) {
		program_open(e, &c, 0);
		program_open(e, &d, 1);
		program_make_objects(&c);
		program_make_objects(&d);
		program_connect(&c, &d);
		for (i = 0; i < PROGRAM_DEPTH; i++)
			program_post_write(&c, &d, PROGRAM_MEMORY);
		program_ring(&c, c.qp.slot);
		program_close(round % 2 == 0 ? &c : &d);
		program_close(round % 2 == 0 ? &d : &c);
		if (round == 0) /* their worker's wake pipe stays */
			before = programs_objects(e) + open_descriptors();
		assert_int_equal(programs_objects(e) + open_descriptors(), before);
	}
	programs_message(&a, &b, 0);
}

/* What may be posted is bounded by the rings: a client has so many bytes of them. */
static void
test_posted_requests_are_limited(void **state)
{
	struct ring_qp_create qp = {
		.caps = { 4096, 4096, 1, 1, 0 },
		.pd = a.pd,
		.send_cq = a.cq.slot,
		.recv_cq = a.cq.slot,
		.srq = RING_NONE,
	};
	struct ring_queue_reply made;
	struct error err;
	uint64_t bytes = 0;
	int rc;

	(void)state;
	while ((rc = engine_client_qp_create(a.client, &qp, &made, &err)) == 0)
		bytes += (uint64_t)made.send_num * made.send_stride +
			(uint64_t)made.receive_num * made.receive_stride;
	assert_int_equal(rc, -ENOMEM);
	assert_non_null(strstr(err.text, "verbs.ring_mb"));
	assert_true(bytes > 0 && bytes < program_limits.ring_bytes);
	programs_message(&a, &b, 0);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, hostile_setup, hostile_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_hostile_partner_harms_itself_only),
		CASE(test_torn_requests),
		CASE(test_a_full_wake_pipe_stops_nobody),
		CASE(test_a_completion_pipe_that_is_never_read),
		CASE(test_a_completion_pipe_without_a_reader),
		CASE(test_remote_key_of_another_client),
		CASE(test_doorbells_ring_the_clients_own_queues),
		CASE(test_programs_that_end_under_traffic_leave_nothing),
		CASE(test_posted_requests_are_limited),
	};

	return cmocka_run_group_tests_name("engine: hostile clients", tests, eal_setup,
		eal_teardown);
}
