/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The end of an object waits until the program has acknowledged the events that it got of it, and
 * takes those that it has not got with it.
 */

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "probe.h"

static struct side a, b;

struct ending {
	int (*destroy)(void *object);
	void *object;
	atomic_bool done;
	pthread_t thread;
};

static int
destroy_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static int
destroy_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static int
destroy_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *
end_object(void *arg)
{
	struct ending *e = arg;

	expect(e->destroy(e->object) == 0);
	atomic_store(&e->done, true);
	return NULL;
}

/* The test looks at polca: the object is gone there, and only the program's answer is missing. */
static void
expect_end_waits(struct ending *e)
{
	expect(pthread_create(&e->thread, NULL, end_object, e) == 0);
	probe_say("destroying");
	probe_hear("polca has destroyed it");
	expect(!atomic_load(&e->done));
}

static void
finish_ending(struct ending *e)
{
	expect(pthread_join(e->thread, NULL) == 0);
	expect(atomic_load(&e->done));
	probe_say("destroyed");
	probe_hear("go on");
}

static bool
readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void
wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	expect(poll(&p, 1, -1) == 1);
}

/* A message from a to b, whose CQ is armed. */
static void
message_with_event(void)
{
	expect(ibv_req_notify_cq(b.cq, 0) == 0);
	side_post_receive(&b, 1);
	side_post_send(&a, 1, true);
	expect(next_completion(a.cq).status == IBV_WC_SUCCESS);
}

static void
probe_take_event(const struct side *s)
{
	struct ibv_cq *cq;
	void *context;

	expect(ibv_get_cq_event(s->channel, &cq, &context) == 0);
	expect(cq == s->cq && context == s);
}

/* b's receiver is in RTR: the first packet raises COMM_EST. */
static void
connect_sides(void)
{
	qp_advance(b.qp, a.qp, IBV_QPS_RTR);
	qp_advance(a.qp, b.qp, IBV_QPS_RTS);
}

static void
probe_cq(void)
{
	struct ibv_cq *second, *got;
	struct ending e = { .destroy = destroy_cq, .object = b.cq };
	void *context;

	/* two events at a time, of one CQ that goes, and of one that stays */
	message_with_event();
	probe_take_event(&b);
	expect(next_completion(b.cq).status == IBV_WC_SUCCESS);
	message_with_event();
	probe_take_event(&b);
	ibv_ack_cq_events(b.cq, 1);
	expect(ibv_destroy_qp(b.qp) == 0);
	expect_end_waits(&e);
	ibv_ack_cq_events(b.cq, 1);
	finish_ending(&e);

	/* an event that nobody has got */
	b.cq = ibv_create_cq(b.context, SIDE_DEPTH * 4, &b, b.channel, 0);
	expect(b.cq != NULL);
	b.qp = side_make_qp(&b, true);
	expect(ibv_destroy_qp(a.qp) == 0);
	a.qp = side_make_qp(&a, true);
	connect_sides();
	message_with_event();
	wait_readable(b.channel->fd);
	second = b.cq;
	expect(ibv_destroy_qp(b.qp) == 0);
	expect(ibv_destroy_cq(second) == 0);
	expect(!readable(b.channel->fd));

	/* the channel goes on */
	b.cq = ibv_create_cq(b.context, SIDE_DEPTH * 4, &b, b.channel, 0);
	b.qp = side_make_qp(&b, true);
	expect(ibv_destroy_qp(a.qp) == 0);
	a.qp = side_make_qp(&a, true);
	connect_sides();
	message_with_event();
	expect(ibv_get_cq_event(b.channel, &got, &context) == 0);
	expect(got == b.cq && context == &b);
	ibv_ack_cq_events(got, 1);
}

/* The event that the device tells next is of this kind. */
static struct ibv_async_event
next_event(enum ibv_event_type type)
{
	struct ibv_async_event event;

	expect(ibv_get_async_event(b.context, &event) == 0);
	expect(event.event_type == type);
	return event;
}

static void
probe_qp(void)
{
	struct ending e = { .destroy = destroy_qp, .object = b.qp };
	struct ibv_async_event event = next_event(IBV_EVENT_COMM_EST);

	expect(event.element.qp == b.qp);
	expect_end_waits(&e);
	ibv_ack_async_event(&event);
	finish_ending(&e);
}

/* One of four receives is taken, and the limit is four. Its creation has armed none. */
static void
probe_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1, .srq_limit = 8 } };
	struct ibv_srq *srq = ibv_create_srq(b.pd, &init);
	struct ibv_srq_attr limit = { .srq_limit = 4 };
	struct ending e = { .destroy = destroy_srq, .object = srq };
	struct ibv_qp_init_attr qp_init = {
		.send_cq = b.cq,
		.recv_cq = b.cq,
		.srq = srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_sge sge = { (uintptr_t)b.memory, 64, b.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_async_event event;
	struct ibv_srq_attr made;

	expect(srq != NULL);
	expect(ibv_query_srq(srq, &made) == 0 && made.srq_limit == 0);
	for (int i = 0; i < 4; i++)
		expect(ibv_post_srq_recv(srq, &wr, &bad) == 0);
	expect(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
	expect(ibv_query_srq(srq, &made) == 0 && made.srq_limit == 4 && made.max_wr >= 8);
	b.qp = ibv_create_qp(b.pd, &qp_init);
	expect(b.qp != NULL);
	expect(ibv_destroy_qp(a.qp) == 0);
	a.qp = side_make_qp(&a, true);
	qp_advance(b.qp, a.qp, IBV_QPS_RTS);
	qp_advance(a.qp, b.qp, IBV_QPS_RTS);
	side_post_send(&a, 1, true);
	expect(next_completion(a.cq).status == IBV_WC_SUCCESS);
	do {
		expect(ibv_get_async_event(b.context, &event) == 0);
		if (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED)
			ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED);
	expect(event.element.srq == srq);
	expect(ibv_query_srq(srq, &made) == 0 && made.srq_limit == 0); /* the event disarmed it */
	expect(ibv_destroy_qp(b.qp) == 0);
	expect_end_waits(&e);
	ibv_ack_async_event(&event);
	finish_ending(&e);
}

int
probe_acknowledge(int argc, char **argv)
{
	bool cq = argc > 1 && strcmp(argv[1], "cq") == 0;
	bool qp = argc > 1 && strcmp(argv[1], "qp") == 0;

	side_make(&a, ibv_open_device(find_device("polca0")), NULL);
	side_make(&b, ibv_open_device(find_device("polca1")), NULL);
	connect_sides();
	if (cq) {
		probe_cq();
	} else {
		message_with_event();
		probe_take_event(&b);
		ibv_ack_cq_events(b.cq, 1);
		if (qp) {
			probe_qp();
		} else {
			expect(ibv_destroy_qp(b.qp) == 0);
			probe_srq();
		}
		b.qp = side_make_qp(&b, true);
	}
	probe_side_destroy(&a);
	probe_side_destroy(&b);
	return 0;
}
