/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients of the verbs socket, as the engine serves them: data by rings, and what hostile programs
 * can do to themselves and not to others.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client_node.h"
#include "engine/verbs_pd.h"

static struct engine *e;
static struct program a, b;

static int
clients_setup(void **state)
{
	(void)state;
	node_config()->limits.max_qp_wr = 100;
	e = node_start();
	programs_start(e, &a, &b);
	return 0;
}

static int
clients_teardown(void **state)
{
	(void)state;
	programs_stop(&a, &b);
	node_stop(e, 0);
	return 0;
}

static void
test_messages_go_by_rings(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < 5 * PROGRAM_DEPTH; i++)
		programs_message(&a, &b, i * 2);
}

/* The send queue is full of requests before the worker sees the first. */
static void
test_a_full_ring_is_posted(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < PROGRAM_DEPTH; i++)
		program_receive(&b, i, 0, 64);
	for (i = 0; i < PROGRAM_DEPTH; i++)
		program_send(&a, i, 0, 64);
	for (i = 0; i < PROGRAM_DEPTH; i++) {
		assert_int_equal(program_completion(&a).wr_id, i);
		assert_int_equal(program_completion(&b).wr_id, i);
	}
}

/* Send this many messages; b reads its completions, a does not. */
static void
send_unread(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		program_receive(&b, i, 0, 64);
	for (i = 0; i < n; i++)
		program_send(&a, i, 0, 64);
	for (i = 0; i < n; i++)
		program_completion(&b);
}

/* More completions come than the program's ring has room for: the rest follows when it has read. */
static void
test_completions_wait_for_room(void **state)
{
	uint32_t room, unread, i;

	(void)state;
	for (room = 1; room < PROGRAM_DEPTH; room++) {
		for (unread = 0; unread < a.cq.num - room; unread++) {
			send_unread(1);
			eventually(ring_ready(&a.completions) == unread + 1);
		}
		send_unread(PROGRAM_DEPTH);
		eventually(ring_ready(&a.completions) == a.cq.num);
		for (i = 0; i < unread + PROGRAM_DEPTH; i++)
			assert_int_equal(program_completion(&a).status, WC_SUCCESS);
	}
}

static void
test_inline_data(void **state)
{
	struct ring_send *wqe = ring_next_free(&a.send);

	(void)state;
	program_receive(&b, 2, 0, 64);
	*wqe = (struct ring_send){
		.wr_id = 1,
		.opcode = WR_SEND_WITH_IMM,
		.flags = SEND_INLINE,
		.imm = 77,
		.inline_len = 5,
	};
	memcpy(wqe + 1, "hello", 5);
	a.send.index++;
	ring_publish(&a.send);
	program_ring(&a, a.qp.slot);
	assert_int_equal(program_completion(&a).status, WC_SUCCESS);
	assert_int_equal(program_completion(&b).imm, 77);
	assert_memory_equal(b.memory, "hello", 5);
}

/* --- hostile programs --- */

/* A request that no provider posts: its QP goes to ERR, and the request is flushed. */
static void
expect_malformed(const struct ring_send *wqe)
{
	struct ring_qp_attr attr;
	struct ring_completion c;
	struct error err;

	*(struct ring_send *)ring_next_free(&a.send) = *wqe;
	a.send.index++;
	ring_publish(&a.send);
	program_ring(&a, a.qp.slot);
	c = program_completion(&a);
	assert_int_equal(c.status, WC_WR_FLUSH_ERR);
	assert_int_equal(c.wr_id, wqe->wr_id);
	assert_ok(engine_client_qp_query(a.client, a.qp.slot, &attr, &err));
	assert_int_equal(attr.qp_state, QPS_ERR);
}

static void
test_too_many_sges(void **state)
{
	(void)state;
	expect_malformed(
		&(struct ring_send){ .wr_id = 9, .opcode = WR_SEND, .num_sge = UINT8_MAX });
}

static void
test_too_much_inline_data(void **state)
{
	(void)state;
	expect_malformed(&(struct ring_send){
		.wr_id = 9,
		.opcode = WR_SEND,
		.flags = SEND_INLINE,
		.inline_len = UINT32_MAX,
	});
}

static void
test_unknown_opcode(void **state)
{
	(void)state;
	expect_malformed(&(struct ring_send){ .wr_id = 9, .opcode = 200 });
}

static void
test_key_of_another_client(void **state)
{
	struct ring_send *wqe = ring_next_free(&a.send);
	struct ring_sge *sge = (struct ring_sge *)(wqe + 1);

	(void)state;
	program_receive(&b, 2, 0, 64);
	*wqe = (struct ring_send){ .wr_id = 1, .opcode = WR_SEND, .num_sge = 1 };
	*sge = (struct ring_sge){ b.address, 64, b.mr.key };
	a.send.index++;
	ring_publish(&a.send);
	program_ring(&a, a.qp.slot);
	assert_int_equal(program_completion(&a).status, WC_LOC_PROT_ERR);
}

/* Indices of all queues and CQs jump, and all doorbells ring: the others notice nothing. */
static void
test_indices_that_jump(void **state)
{
	const struct ring_geometry *g = &a.hello.geometry;
	struct program c;
	uint32_t i, round;

	(void)state;
	program_open(e, &c, 0);
	program_make_objects(&c);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < g->num_queues; i++) {
			c.queues[i].send_head += 0x12345678 * (i + 1);
			c.queues[i].receive_head -= 0x1234567 * (i + 1);
			c.queues[i].send_tail = c.queues[i].receive_tail = round * 77;
		}
		for (i = 0; i < g->num_cqs; i++) {
			c.cqs[i].tail += 0x7654321;
			c.cqs[i].head = UINT32_MAX;
		}
		memset(c.doorbells, round % 2 == 0 ? 0xff : 0, g->num_queues * sizeof(uint32_t));
		programs_message(&a, &b, round * 2);
	}
	program_close(&c);
	programs_message(&a, &b, 1000);
}

/* All of the segment is rubbish. */
static void
test_segment_of_rubbish(void **state)
{
	struct program c;
	uint32_t round;

	(void)state;
	program_open(e, &c, 0);
	program_make_objects(&c);
	for (round = 0; round < 20; round++) {
		fill(c.segment, c.hello.geometry.bytes, round);
		programs_message(&a, &b, round * 2);
	}
	program_close(&c);
}

struct flood {
	struct program *p;
	bool stop;
};

/* All queues of a program ring all the time, with full rings. */
static void *
flood_run(void *arg)
{
	struct flood *f = arg;
	uint32_t slot, index = 0;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		for (slot = 0; slot < f->p->hello.geometry.num_queues; slot++) {
			__atomic_store_n(&f->p->queues[slot].send_head, index, __ATOMIC_RELEASE);
			program_ring(f->p, slot);
		}
		index += PROGRAM_DEPTH;
	}
	return NULL;
}

static void
test_a_flood_holds_nobody_up(void **state)
{
	struct program c, d;
	struct flood flood = { .p = &c };
	pthread_t thread;
	uint64_t i;

	(void)state;
	program_open(e, &c, 0);
	program_make_objects(&c);
	program_open(e, &d, 0); /* on the other worker, or c's */
	assert_int_equal(pthread_create(&thread, NULL, flood_run, &flood), 0);
	for (i = 0; i < 200; i++)
		programs_message(&a, &b, i * 2);
	__atomic_store_n(&flood.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	program_close(&c);
	program_close(&d);
	programs_message(&a, &b, 1000);
}

/* A program that posts now and then, so that its worker lists it and forgets it again. */
static void *
posts_now_and_then(void *arg)
{
	const bool *end = (const bool *)arg;
	unsigned int tries;

	while (!__atomic_load_n(end, __ATOMIC_RELAXED)) {
		program_receive(&b, 1, 0, 64);
		program_send(&a, 1, 0, 64);
		for (tries = 0; tries < 100000; tries++) {
			if (ring_ready(&a.completions) > 0 && ring_ready(&b.completions) > 0)
				break;
			usleep(100);
		}
		a.completions.index += ring_ready(&a.completions);
		b.completions.index += ring_ready(&b.completions);
		ring_publish(&a.completions);
		ring_publish(&b.completions);
	}
	return NULL;
}

/* The worker changes its list of programs while the control thread makes it longer. */
static void
test_programs_join_while_others_post(void **state)
{
	bool end = false;
	struct program c;
	pthread_t thread;
	unsigned int i;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, posts_now_and_then, &end), 0);
	for (i = 0; i < 100; i++) {
		program_open(e, &c, i % 2);
		program_close(&c);
	}
	__atomic_store_n(&end, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	programs_message(&a, &b, 2);
}

static void
test_slots_are_the_clients_own(void **state)
{
	struct ring_queue_reply made;
	struct ring_qp_attr attr;
	struct program c;
	struct error err;
	uint32_t i;

	(void)state;
	program_open(e, &c, 0); /* it has no object */
	for (i = 0; i < 16; i++) {
		struct ring_qp_create qp = { .pd = i, .send_cq = i, .recv_cq = i, .srq = i };

		assert_int_equal(engine_client_pd_free(c.client, i, &err), -EINVAL);
		assert_int_equal(engine_client_cq_destroy(c.client, i, &err), -EINVAL);
		assert_int_equal(engine_client_qp_destroy(c.client, i, &err), -EINVAL);
		assert_int_equal(engine_client_srq_destroy(c.client, i, &err), -EINVAL);
		assert_int_equal(engine_client_qp_query(c.client, i, &attr, &err), -EINVAL);
		assert_int_equal(engine_client_mr_deregister(c.client, i, &err), -EINVAL);
		assert_int_equal(engine_client_channel_destroy(c.client, i, &err), -EINVAL);
		assert_int_equal(engine_client_qp_create(c.client, &qp, &made, &err), -EINVAL);
	}
	program_close(&c);
	programs_message(&a, &b, 0);
}

/* Numbers that are no state: they would be indexes of tables. */
static void
test_states_that_do_not_exist(void **state)
{
	static const uint32_t wrong[] = { QPS_COUNT, 100, INT32_MAX, UINT32_MAX };
	struct ring_qp_attr attr = { .slot = a.qp.slot, .mask = QP_ATTR_STATE };
	struct error err;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		attr.qp_state = wrong[i];
		assert_int_equal(engine_client_qp_modify(a.client, &attr, &err), -EINVAL);
		attr.qp_state = QPS_RTS;
		attr.cur_qp_state = wrong[i];
		assert_int_equal(engine_client_qp_modify(a.client, &attr, &err), -EINVAL);
		attr.cur_qp_state = 0;
		attr.path_mig_state = wrong[i];
		assert_int_equal(engine_client_qp_modify(a.client, &attr, &err), -EINVAL);
		attr.path_mig_state = 0;
	}
	programs_message(&a, &b, 0);
}

static void
test_control_socket_cannot_use_them(void **state)
{
	struct rc_qp_info qp;
	struct mem_pd_info pd;
	uint64_t cursor = 0;
	struct error err;
	struct wc wc;

	(void)state;
	while (engine_qp_next(e, &cursor, &qp)) {
		assert_int_equal(engine_qp_destroy(e, qp.qpn, &err), -EPERM);
		assert_int_equal(engine_cq_poll(e, qp.init.send_cq, &wc, 1, &err), -EPERM);
		assert_int_equal(engine_cq_destroy(e, qp.init.send_cq, &err), -EPERM);
	}
	for (cursor = 0; engine_pd_next(e, &cursor, &pd);)
		assert_int_equal(engine_pd_free(e, pd.pd, &err), -EPERM);
	assert_int_equal(engine_mr_deregister(e, a.mr.key, &err), -EPERM);
	programs_message(&a, &b, 0);
}

/* --- asynchronous events --- */

/* The event that the program can read, which must be there. */
static struct ring_async_event
expect_async_event(const struct program *p)
{
	struct ring_async_event event;
	int fds[RING_HELLO_FDS];
	struct event ev[16];
	struct pollfd fd;

	engine_client_hello(p->client, &(struct ring_hello_reply){ 0 }, fds);
	fd = (struct pollfd){ .fd = fds[3], .events = POLLIN };
	eventually((engine_events(e, ev, 16, NULL), poll(&fd, 1, 0) == 1));
	assert_int_equal(read(fds[3], &event, sizeof(event)), sizeof(event));
	return event;
}

/* A Write with a key that b has not: both queue pairs fail, and b gets an event. */
static void
write_with_wrong_key(void)
{
	struct ring_send *wqe = ring_next_free(&a.send);
	struct ring_sge *sge = (struct ring_sge *)(wqe + 1);

	*wqe = (struct ring_send){
		.opcode = WR_RDMA_WRITE,
		.num_sge = 1,
		.remote_addr = b.address,
		.rkey = b.mr.key ^ 0x100,
	};
	*sge = (struct ring_sge){ a.address, 64, a.mr.key };
	a.send.index++;
	ring_publish(&a.send);
	program_ring(&a, a.qp.slot);
	assert_int_equal(program_completion(&a).status, WC_REM_ACCESS_ERR);
}

/* The program fills the pipe, and lets its own writing end wait: polca goes on. */
static void
test_a_full_event_pipe_stops_nobody(void **state)
{
	int fds[RING_HELLO_FDS];
	struct event ev[16];

	(void)state;
	engine_client_hello(b.client, &b.hello, fds);
	while (write(fds[4], "x", 1) == 1)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(fds[4], F_SETFL, 0), 0);
	write_with_wrong_key();
	eventually(engine_events(e, ev, 16, NULL) > 0);
}

static void
test_events_have_the_programs_cookie(void **state)
{
	struct ring_async_event event;

	(void)state;
	write_with_wrong_key();
	/* the first message tells the responder that the connection stands */
	do {
		event = expect_async_event(&b);
		assert_int_equal(event.cookie, PROGRAM_QP_COOKIE);
	} while (event.type == EVENT_COMM_EST);
	assert_int_equal(event.type, EVENT_QP_ACCESS_ERR);
}

/* --- memory --- */

static void
test_region_must_be_in_the_mirror(void **state)
{
	struct ring_mr mr = {
		.addr = a.address + PROGRAM_MEMORY - 4096,
		.length = 4097, /* its last byte is in a hole */
		.iova = a.address,
		.pd = a.pd,
		.access = MEM_ACCESS_LOCAL_WRITE,
	};
	struct ring_mr_reply made;
	struct error err;

	(void)state;
	assert_int_equal(engine_client_mr_register(a.client, &mr, &made, &err), -EFAULT);
	mr.addr = UINT64_MAX - 100;
	assert_int_equal(engine_client_mr_register(a.client, &mr, &made, &err), -EINVAL);
	mr.addr = a.address;
	mr.length = 4096;
	assert_ok(engine_client_mr_register(a.client, &mr, &made, &err));
}

/* A program that takes its pages out of the file reads and writes zeros, and nobody dies. */
static void
test_mirror_with_holes(void **state)
{
	int fds[RING_HELLO_FDS];

	(void)state;
	engine_client_hello(b.client, &b.hello, fds);
	assert_int_equal(fallocate(fds[1], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 (off_t)b.address, PROGRAM_MEMORY),
		0);
	assert_int_equal(ftruncate(fds[1], 4096), -1);
	assert_int_equal(ftruncate(fds[0], 4096), -1);
	programs_message(&a, &b, 0);
}

/* The second device of a program shares the first one's mirror; no other file is one. */
static void
test_a_mirror_is_shared_by_its_holder(void **state)
{
	int fds[RING_HELLO_FDS], others[RING_HELLO_FDS];
	int stranger = memfd_create("polca-mirror", MFD_CLOEXEC);
	struct ring_mr mr = {
		.addr = a.address,
		.length = 4096,
		.iova = a.address,
		.access = MEM_ACCESS_LOCAL_WRITE,
	};
	struct ring_hello_reply hello;
	struct ring_mr_reply made;
	struct verbs_client *c;
	struct error err;

	(void)state;
	assert_int_equal(engine_client_create(e, 0, &program_limits, stranger, &c, &err), -EINVAL);
	close(stranger);
	engine_client_hello(a.client, &hello, fds);
	assert_ok(engine_client_create(e, 1, &program_limits, fds[1], &c, &err));
	engine_client_hello(c, &hello, others);
	assert_int_not_equal(fds[1], others[1]);
	assert_ok(engine_client_pd_alloc(c, &mr.pd, &err));
	assert_ok(engine_client_mr_register(c, &mr, &made, &err)); /* a's page */
	engine_client_destroy(c);
	programs_message(&a, &b, 0);
}

/* --- limits --- */

#define expect_limit(call, number, key)                                                            \
	do {                                                                                       \
		assert_int_equal(call, number);                                                    \
		assert_non_null(strstr(err.text, key));                                            \
	} while (0)

static void
test_limits_of_a_client(void **state)
{
	struct ring_cq_create cq = { .cqe = 1, .channel = RING_NONE };
	struct ring_qp_create qp = { .caps = { 1, 1, 1, 1, 0 }, .srq = RING_NONE };
	struct ring_mr mr = { .addr = a.address, .length = 1 << 20, .pd = a.pd };
	struct ring_queue_reply queue;
	struct ring_mr_reply region;
	struct ring_cq_reply made;
	uint32_t i, slot;
	int fds[RING_CHANNEL_FDS];
	struct error err;

	(void)state;
	for (i = 1; i < program_limits.max_pd; i++)
		assert_ok(engine_client_pd_alloc(a.client, &slot, &err));
	expect_limit(engine_client_pd_alloc(a.client, &slot, &err), -ENOMEM, "max_pd");
	for (i = 1; i < program_limits.max_cq; i++)
		assert_ok(engine_client_cq_create(a.client, &cq, &made, &err));
	expect_limit(engine_client_cq_create(a.client, &cq, &made, &err), -ENOMEM, "max_cq");
	for (i = 1; i < program_limits.max_qp; i++)
		assert_ok(engine_client_qp_create(a.client, &qp, &queue, &err));
	expect_limit(engine_client_qp_create(a.client, &qp, &queue, &err), -ENOMEM, "max_qp");
	expect_limit(engine_client_mr_register(a.client, &mr, &region, &err), -ENOMEM, "mr_mb");
	for (i = 0; i < program_limits.max_channels; i++) {
		assert_ok(engine_client_channel_create(a.client, &slot, fds, &err));
		close(fds[0]);
		close(fds[1]);
	}
	/* those whose reader is gone make room */
	assert_ok(engine_client_channel_create(a.client, &slot, fds, &err));
	programs_message(&a, &b, 0);
	close(fds[0]);
	close(fds[1]);
}

/* Both queues take as many requests as their rings have room for, as far as the limit allows. */
static void
test_caps_are_rounded_up(void **state)
{
	struct ring_qp_create qp = {
		.caps = { 5, 0, 1, 1, 0 },
		.pd = a.pd,
		.send_cq = a.cq.slot,
		.recv_cq = a.cq.slot,
		.srq = RING_NONE,
	};
	struct ring_queue_reply made;
	struct error err;

	(void)state;
	assert_ok(engine_client_qp_create(a.client, &qp, &made, &err));
	assert_int_equal(made.caps.max_send_wr, 8);
	assert_int_equal(made.send_num, 8);
	assert_int_equal(made.caps.max_recv_wr, 1);
	assert_int_equal(made.receive_num, 1);
	qp.caps.max_send_wr = 90;
	assert_ok(engine_client_qp_create(a.client, &qp, &made, &err));
	assert_int_equal(made.caps.max_send_wr, 100);
	assert_int_equal(made.send_num, 128);
}

/* --- the end --- */

static void
test_a_client_that_ends_leaves_nothing(void **state)
{
	unsigned int before = programs_objects(e), round;
	struct program c;

	(void)state;
	for (round = 0; round < 50; round++) {
		program_open(e, &c, 0);
		program_make_objects(&c);
		program_receive(&c, 1, 0, 64);
		program_close(&c);
		assert_int_equal(programs_objects(e), before);
	}
	programs_message(&a, &b, 0);
}

/* Milliseconds that the end of a client with a thousand queue pairs takes. */
static int64_t
end_of_a_thousand_queue_pairs(void)
{
	struct ring_qp_create qp = { .caps = { 1, 1, 1, 1, 0 }, .srq = RING_NONE };
	struct ring_cq_create cq = { .cqe = 16, .channel = RING_NONE };
	struct verbs_client_limits limits = program_limits;
	struct timespec begin, end;
	struct ring_queue_reply made;
	struct ring_cq_reply queue;
	struct verbs_client *c;
	struct error err;
	unsigned int i;

	limits.max_qp = 1000;
	limits.ring_bytes = 64 << 20;
	assert_ok(engine_client_create(e, 0, &limits, -1, &c, &err));
	assert_ok(engine_client_pd_alloc(c, &qp.pd, &err));
	assert_ok(engine_client_cq_create(c, &cq, &queue, &err));
	for (i = 0; i < limits.max_qp; i++)
		assert_ok(engine_client_qp_create(c, &qp, &made, &err));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	engine_client_destroy(c);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
}

/* A thousand queue pairs are gone within 100 ms; a machine that stalls spoils a round, not five. */
static void
test_a_thousand_queue_pairs_end_at_once(void **state)
{
	int64_t took, best = INT64_MAX;
	int round;

	(void)state;
	for (round = 0; round < 5 && best > 100; round++) {
		took = end_of_a_thousand_queue_pairs();
		print_message("1000 queue pairs ended within %" PRId64 " ms (at most 100)\n", took);
		best = RTE_MIN(best, took);
		programs_message(&a, &b, 0);
	}
	assert_true(best <= 100);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, clients_setup, clients_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_messages_go_by_rings),
		CASE(test_a_full_ring_is_posted),
		CASE(test_completions_wait_for_room),
		CASE(test_inline_data),
		CASE(test_too_many_sges),
		CASE(test_too_much_inline_data),
		CASE(test_unknown_opcode),
		CASE(test_key_of_another_client),
		CASE(test_indices_that_jump),
		CASE(test_segment_of_rubbish),
		CASE(test_a_flood_holds_nobody_up),
		CASE(test_programs_join_while_others_post),
		CASE(test_slots_are_the_clients_own),
		CASE(test_states_that_do_not_exist),
		CASE(test_control_socket_cannot_use_them),
		CASE(test_a_full_event_pipe_stops_nobody),
		CASE(test_events_have_the_programs_cookie),
		CASE(test_region_must_be_in_the_mirror),
		CASE(test_mirror_with_holes),
		CASE(test_a_mirror_is_shared_by_its_holder),
		CASE(test_limits_of_a_client),
		CASE(test_caps_are_rounded_up),
		CASE(test_a_client_that_ends_leaves_nothing),
		CASE(test_a_thousand_queue_pairs_end_at_once),
	};

	return cmocka_run_group_tests_name("engine: clients", tests, eal_setup, eal_teardown);
}
