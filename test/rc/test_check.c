/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Builds with checks end when an invariant of a queue pair fails, and say which; other builds
 * contain no checks. Damage is done in a process of its own.
 */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"
#include "rc/check.h"

#ifdef RTE_ENABLE_ASSERT
#define CHECKED true
#else
#define CHECKED false
#endif

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

/* @return true if the check ended the process */
static bool
check_ends(struct rc_qp *qp, void (*damage)(struct rc_qp *qp))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		damage(qp);
		rc_qp_check(qp);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void
test_damage_is_found(void **state)
{
	static void (*const damages[])(struct rc_qp * qp) = { damage_sq_order, damage_psns,
		damage_timer, damage_saved, damage_message, damage_rq, damage_work, damage_ring };
	struct peer *p = peer_create(&(struct peer_config){ .psn = FIRST_PSN });
	struct rc_qp *qp = rc_qp_find(p->w, p->qpn);
	unsigned int i;

	(void)state;
	rc_qp_check(qp);
	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		assert_int_equal(check_ends(qp, damages[i]), CHECKED);
	peer_destroy(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_damage_is_found) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
