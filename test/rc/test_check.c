/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Builds with checks end when an invariant of a queue pair fails, and say which; other builds
 * contain no checks. Damage is done in a process of its own.
 */

#include <string.h>

#include "../checked.h"
#include "peer.h"
#include "rc/check.h"
#include "rc/failure.h"

static void
damage_sq_order(struct rc_qp *qp)
{
	qp->req.ack = qp->req.head + 1;
}

static void
damage_psns(struct rc_qp *qp)
{
	qp->req.una = psn_add(qp->req.next_psn, 1);
}

static void
damage_timer(struct rc_qp *qp)
{
	qp->req.rnr_wait = RC_RNR_WAIT;
}

static void
damage_saved(struct rc_qp *qp)
{
	qp->resp.saved_count = (uint8_t)(qp->resp.saved_size + 1);
}

static void
damage_message(struct rc_qp *qp)
{
	qp->resp.wqe_taken = true;
}

static void
damage_rq(struct rc_qp *qp)
{
	qp->rq->tail = qp->rq->head + 1;
}

static void
damage_work(struct rc_qp *qp)
{
	qp->work = WORK_REQUEST;
	qp->on_run_queue = false;
}

static void
damage_ring(struct rc_qp *qp)
{
	qp->recv_cq->rings[0]->head += qp->recv_cq->depth + 1;
}

static void
damage_ring_tail(struct rc_qp *qp)
{
	qp->recv_cq->rings[0]->tail_seen++;
}

static void
damage_ring_fences(struct rc_qp *qp)
{
	qp->recv_cq->rings[0]->fence_head += CQ_FENCES + 1;
}

static void
damage_ring_notify(struct rc_qp *qp)
{
	qp->recv_cq->rings[0]->notify = 0x80;
}

static void
damage_failure(struct rc_qp *qp)
{
	rc_fail(qp, (struct qp_failure){ .verdict = VERDICT_COUNT });
}

static void
damage_limited(struct rc_qp *qp)
{
	qp->apart |= RC_APART_LIMITED; /* without a limiter */
}

static void
damage_qp_and_check(void *qp, void *damage)
{
	(*(void (**)(struct rc_qp *))damage)(qp);
	rc_qp_check((struct rc_qp *)qp);
}

static void
test_damage_is_found(void **state)
{
	static void (*damages[])(struct rc_qp * qp) = { damage_sq_order, damage_psns, damage_timer,
		damage_saved, damage_message, damage_rq, damage_work, damage_ring, damage_ring_tail,
		damage_ring_fences, damage_ring_notify, damage_failure, damage_limited };
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	struct rc_qp *qp = rc_qp_at(p->w, p->qpn);
	unsigned int i;

	(void)state;
	rc_qp_check(qp);
	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		assert_int_equal(ends_process(damage_qp_and_check, qp, &damages[i]), CHECKED);
	peer_destroy(p);
}

static void
damage_limit(struct rc_srq *srq)
{
	srq->limit = rc_rq_posted(&srq->rq) + 1; /* the event is due and was not raised */
}

static void
damage_srqn(struct rc_srq *srq)
{
	srq->srqn++;
}

static void
damage_srq_ring(struct rc_srq *srq)
{
	srq->rq.tail = srq->rq.head - srq->rq.max_wr - 1;
}

static void
damage_users(struct rc_srq *srq)
{
	srq->users = 0;
}

static void
damage_srq_and_check_its_qp(void *qp, void *damage)
{
	(*(void (**)(struct rc_srq *))damage)(((struct rc_qp *)qp)->srq);
	rc_qp_check((struct rc_qp *)qp);
}

static void
damage_srq_and_post(void *peer, void *unused)
{
	struct peer *p = peer;

	(void)unused;
	damage_limit(p->dev->srqs[p->srqn]);
	p->dev->srqs[p->srqn]->limit++; /* the post alone does not repair it */
	post(p, 1, 0, 8);
}

static void
test_damage_to_a_shared_queue_is_found(void **state)
{
	static void (*damages[])(
		struct rc_srq *) = { damage_limit, damage_srqn, damage_srq_ring, damage_users };
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN, .srq = true });
	struct rc_qp *qp = rc_qp_at(p->w, p->qpn);
	unsigned int i;

	(void)state;
	rc_qp_check(qp);
	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		assert_int_equal(ends_process(damage_srq_and_check_its_qp, qp, &damages[i]),
			CHECKED);
	assert_int_equal(ends_process(damage_srq_and_post, p, NULL), CHECKED);
	peer_destroy(p);
}

/* A packet that is dropped before it reaches requester or responder */
static void
dropped_packet(void *peer, void *damage)
{
	struct peer *p = peer;

	(*(void (**)(struct rc_qp *))damage)(rc_qp_at(p->w, p->qpn));
	request(p, RC_SEND_ONLY, 201)->pkey = 0x8001;
	feed(p);
}

static void
changed_port(void *peer, void *damage)
{
	const struct port_attr attr = { .num_pkeys = 1, .pkey = { 0xFFFF } };
	struct peer *p = peer;

	(*(void (**)(struct rc_qp *))damage)(rc_qp_at(p->w, p->qpn));
	rc_path_changed(p->w, 0, &attr);
}

static void
queried_qp(void *peer, void *damage)
{
	struct peer *p = peer;

	(*(void (**)(struct rc_qp *))damage)(rc_qp_at(p->w, p->qpn));
	state_of(p);
}

static void
moved_qp(void *peer, void *damage)
{
	struct rc_worker_config config = { .id = 1, .tx = &((struct peer *)peer)->sink };
	struct peer *p = peer;
	struct rc_worker *to;

	config.wheel = p->wheel;
	to = rc_worker_create(p->dev, &config);
	if (rc_cq_reserve(p->dev, p->send_cq, 1, NULL) != 0 ||
		rc_cq_reserve(p->dev, p->recv_cq, 1, NULL) != 0)
		_exit(1);
	(*(void (**)(struct rc_qp *))damage)(rc_qp_at(p->w, p->qpn));
	if (rc_qp_export(p->w, p->qpn, 1, NULL) != 0 || rc_qp_import(to, p->qpn, 0) != 0)
		_exit(1);
}

static void
failing_worker_creates(void *peer, void *unused)
{
	struct peer *p = peer;
	struct qp_init_attr init;

	(void)unused;
	p->w->errors |= RC_QP_FAILED; /* a step has not ended */
	peer_init_attr(p, &init);
	peer_qp(p, &init);
}

static uint32_t
other_qp_beside(struct peer *p)
{
	struct qp_init_attr init;

	peer_init_attr(p, &init);
	return peer_qp(p, &init);
}

static void
fail_and_end_the_step_of_another(void *peer, void *unused)
{
	struct peer *p = peer;
	uint32_t other = other_qp_beside(p);

	(void)unused;
	rc_fail(rc_qp_at(p->w, p->qpn), (struct qp_failure){ .verdict = VERDICT_COUNT });
	rc_step_done(rc_qp_at(p->w, other));
}

static void
fail_two_in_a_step(void *peer, void *unused)
{
	struct peer *p = peer;
	uint32_t other = other_qp_beside(p);

	(void)unused;
	rc_fail(rc_qp_at(p->w, p->qpn), (struct qp_failure){ .verdict = VERDICT_COUNT });
	rc_fail(rc_qp_at(p->w, other), (struct qp_failure){ .verdict = VERDICT_COUNT });
}

/* A step is of one queue pair: no other one fails in it, and no other one ends it. */
static void
test_a_step_fails_one_queue_pair(void **state)
{
	static void (*const acts[])(void *peer, void *unused) = { fail_and_end_the_step_of_another,
		fail_two_in_a_step };
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		assert_int_equal(ends_process(acts[i], p, NULL), CHECKED);
	peer_destroy(p);
}

static void
poll_damaged(void *peer, void *damage)
{
	struct peer *p = peer;
	struct wc wc;

	(*(void (**)(struct rc_qp *))damage)(rc_qp_at(p->w, p->qpn));
	rc_cq_poll(p->dev, p->recv_cq, &wc, 0);
}

static void
damage_ring_cq(struct rc_qp *qp)
{
	qp->recv_cq->rings[0]->cq = NULL;
}

/* The poller looks at the ends of all rings, which it shares with the workers. */
static void
test_a_poll_checks_its_rings(void **state)
{
	static void (*damages[])(
		struct rc_qp *) = { damage_ring, damage_ring_fences, damage_ring_cq };
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		assert_int_equal(ends_process(poll_damaged, p, &damages[i]), CHECKED);
	peer_destroy(p);
}

/* Every event of a QP looks for damage, also those that end early. */
static void
test_every_event_checks_its_queue_pair(void **state)
{
	static void (*const acts[])(void *peer, void *damage) = { dropped_packet, changed_port,
		queried_qp, moved_qp, failing_worker_creates };
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	void (*damage)(struct rc_qp *) = damage_message;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		assert_int_equal(ends_process(acts[i], p, &damage), CHECKED);
	peer_destroy(p);
}

/* With the flight recorder on, the QP's last steps; else a word about it. */
static void
test_a_failed_check_prints_the_last_steps(void **state)
{
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	struct rc_qp *qp = rc_qp_at(p->w, p->qpn);
	void (*damage)(struct rc_qp *) = damage_timer;
	char text[65536];

	(void)state;
	assert_int_equal(ends_process_saying(damage_qp_and_check, qp, &damage, text, sizeof(text)),
		CHECKED);
	assert_int_equal(strstr(text, "were not recorded (trace_start)") != NULL, CHECKED);
	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, true), 0);
	in_write(p, RC_WRITE_ONLY, 201, 0, 8, 8);
	ends_process_saying(damage_qp_and_check, qp, &damage, text, sizeof(text));
	assert_int_equal(strstr(text, "WRITE Only  request") != NULL, CHECKED);
	peer_destroy(p);
}

/* A failed QP names its port and its peer. */
static void
test_failure_says_where(void **state)
{
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	struct rc_qp *qp = rc_qp_at(p->w, p->qpn);
	const struct event *ev;

	(void)state;
	qp->path.av.port = 1;
	rc_fail(qp, (struct qp_failure){ .verdict = VERDICT_NAK_SENT });
	rc_qp_failed(qp);
	assert_true(p->event_count > 0);
	ev = &p->events[p->event_count - 1];
	assert_int_equal(ev->type, EVENT_QP_ERROR);
	assert_int_equal(ev->element, p->qpn);
	assert_int_equal(ev->failure.port, 1);
	assert_int_equal(ev->failure.peer_qpn, qp->attr.dest_qp_num);
	assert_memory_equal(&ev->failure.peer, &qp->path.av.dgid, sizeof(ev->failure.peer));
	peer_destroy(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage_is_found),
		cmocka_unit_test(test_damage_to_a_shared_queue_is_found),
		cmocka_unit_test(test_a_poll_checks_its_rings),
		cmocka_unit_test(test_every_event_checks_its_queue_pair),
		cmocka_unit_test(test_a_step_fails_one_queue_pair),
		cmocka_unit_test(test_a_failed_check_prints_the_last_steps),
		cmocka_unit_test(test_failure_says_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
