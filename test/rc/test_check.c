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
		damage_ring_fences, damage_ring_notify, damage_failure };
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	struct rc_qp *qp = rc_qp_at(p->w, p->qpn);
	unsigned int i;

	(void)state;
	rc_qp_check(qp);
	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		assert_int_equal(ends_process(damage_qp_and_check, qp, &damages[i]), CHECKED);
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
		cmocka_unit_test(test_a_failed_check_prints_the_last_steps),
		cmocka_unit_test(test_failure_says_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
