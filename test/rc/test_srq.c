/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Receive queues, own and shared: posting rules, limit event, flush (rc-transport 11; design.md,
 * who owns what)
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

static int
srq_setup(void **state)
{
	*state = peer_create(&(struct peer_config){ .psn = FIRST_PSN, .srq = true });
	return 0;
}

static void
test_srq_serves_its_qps_in_posting_order(void **state)
{
	struct peer *p = *state;
	uint32_t first = p->qpn, second;
	struct qp_init_attr init;

	peer_init_attr(p, &init);
	second = peer_qp(p, &init);
	post(p, 1, 0x1000, 600);
	post(p, 2, 0x2000, 64);
	/*
	 * the message in progress keeps its receive, although another QP completes a later one
	 * first
	 */
	assert_int_equal(in_send(p, RC_SEND_FIRST, 201, 256), VERDICT_REQUEST);
	p->qpn = second;
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 32), VERDICT_REQUEST);
	expect_wc(p, 2, WC_SUCCESS, NULL);
	post(p, 3, 0x3000, 64);
	p->qpn = first;
	assert_int_equal(in_send(p, RC_SEND_LAST, 202, 100), VERDICT_REQUEST);
	expect_wc(p, 1, WC_SUCCESS, NULL);
	assert_memory_equal(p->bytes + 0x1001, pattern + 1, 255);
	assert_memory_equal(p->bytes + 0x1101, pattern + 1, 99);
	assert_memory_equal(p->bytes + 0x2001, pattern + 1, 31);
	assert_memory_not_equal(p->bytes + 0x3001, pattern + 1, 31);
}

/* "31 when an SRQ is used" */
static void
test_no_credits_with_an_srq(void **state)
{
	struct peer *p = *state;

	p->config.flow_control = true;
	peer_destroy(p);
	p = peer_create(&(struct peer_config){ .psn = 201, .srq = true, .flow_control = true });
	*state = p;
	post(p, 1, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 201, 8);
	run(p);
	expect_tx(p, "ACK 201");
	assert_int_equal(answered(p, 0)->syndrome, 31);
}

static void
test_limit_event_once_when_fewer_are_posted(void **state)
{
	struct peer *p = *state;
	struct error err;

	post(p, 1, 0x1000, 64);
	post(p, 2, 0x1000, 64);
	post(p, 3, 0x1000, 64);
	assert_int_equal(rc_srq_modify(p->w, p->srqn, 2, &err), 0);
	in_send(p, RC_SEND_ONLY, 201, 8);
	expect_no_event(p); /* two are left, the limit is two */
	in_send(p, RC_SEND_ONLY, 202, 8);
	expect_event(p, EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(p->events[p->event_next - 1].element, p->srqn);
	in_send(p, RC_SEND_ONLY, 203, 8);
	expect_no_event(p); /* once, until armed again */
	assert_int_equal(rc_srq_modify(p->w, p->srqn, 1, &err), 0);
	expect_event(p, EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(rc_srq_modify(p->w, p->srqn, 8, &err), 0);
	expect_event(p, EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(rc_srq_modify(p->w, p->srqn, 9, &err), -EINVAL);
	assert_string_equal(err.text, "limit: got 9, allowed 0..8");
}

static uint32_t
waiting_requests(const void *arg)
{
	return *(const uint32_t *)arg;
}

/* A client has posted ten requests: three of them are in the SRQ, the others wait in its ring. */
static void
test_limit_counts_requests_that_wait(void **state)
{
	struct peer *p = *state;
	uint32_t i, waiting = 7;
	struct error err;

	for (i = 0; i < 3; i++)
		post(p, 1 + i, 0x1000, 64);
	rc_srq_count_waiting(p->w, p->srqn, waiting_requests, &waiting);
	assert_int_equal(rc_srq_modify(p->w, p->srqn, 8, &err), 0);
	expect_no_event(p); /* ten are posted */
	in_send(p, RC_SEND_ONLY, 201, 8);
	in_send(p, RC_SEND_ONLY, 202, 8);
	expect_no_event(p); /* eight are left */
	in_send(p, RC_SEND_ONLY, 203, 8);
	expect_event(p, EVENT_SRQ_LIMIT_REACHED); /* seven */
	for (i = 0; i < 7; i++, waiting--)
		post(p, 4 + i, 0x1000, 64);
	for (i = 0; i < 7; i++)
		in_send(p, RC_SEND_ONLY, 204 + i, 8);
	expect_no_event(p); /* once */
	assert_int_equal(rc_srq_modify(p->w, p->srqn, 1, &err), 0);
	expect_event(p, EVENT_SRQ_LIMIT_REACHED); /* none is left */
}

/* seed 001: the event of an empty SRQ names the QP that missed a receive. */
static void
test_empty_srq_asks_for_receives_once(void **state)
{
	struct peer *p = *state;

	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 8), VERDICT_RNR_NAK_SENT);
	expect_event(p, EVENT_RQ_EMPTY);
	assert_int_equal(p->events[p->event_next - 1].element, p->qpn);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 8), VERDICT_RNR_NAK_SENT);
	expect_no_event(p);
	post(p, 1, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 201, 8);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 202, 8), VERDICT_RNR_NAK_SENT);
	expect_event(p, EVENT_RQ_EMPTY);
}

/* A peer takes all receives: another one's Send gets an RNR NAK, and succeeds after a post. */
static void
test_peer_that_empties_the_srq_ends_no_other(void **state)
{
	struct peer *p = *state;
	uint32_t greedy = p->qpn, other, i;
	struct qp_init_attr init;

	peer_init_attr(p, &init);
	other = peer_qp(p, &init);
	for (i = 0; i < 8; i++)
		post(p, 1 + i, 0x1000, 64);
	for (i = 0; i < 8; i++) {
		assert_int_equal(in_send(p, RC_SEND_ONLY, 201 + i, 8), VERDICT_REQUEST);
		expect_wc(p, 1 + i, WC_SUCCESS, NULL);
	}
	run(p);
	expect_tx(p, "ACK 208");
	for (i = 0; i < 3; i++) {
		p->qpn = greedy;
		assert_int_equal(in_send(p, RC_SEND_ONLY, 209, 8), VERDICT_RNR_NAK_SENT);
		p->qpn = other;
		assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 8), VERDICT_RNR_NAK_SENT);
		run(p);
		expect_tx(p, "RNR 209", "RNR 201");
	}
	post(p, 9, 0x2000, 64);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 32), VERDICT_REQUEST);
	run(p);
	expect_tx(p, "ACK 201");
	expect_wc(p, 9, WC_SUCCESS, NULL);
	assert_memory_equal(p->bytes + 0x2001, pattern + 1, 31);
	assert_int_equal(epsn_of(p), 202);
}

static void
test_qp_in_error_keeps_the_srq_and_reports_its_last_wqe(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = { .qp_state = QPS_ERR };
	struct rc_srq_info info;
	struct error err;

	post(p, 1, 0x1000, 600);
	post(p, 2, 0x2000, 64);
	in_send(p, RC_SEND_FIRST, 201, 256); /* holds 1 */
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, &err), 0);
	expect_wc(p, 1, WC_WR_FLUSH_ERR, NULL);
	expect_no_wc(p);
	expect_event(p, EVENT_QP_LAST_WQE_REACHED);
	expect_no_event(p);
	assert_int_equal(rc_srq_query(p->w, p->srqn, &info), 0);
	assert_int_equal(info.posted, 1);
	assert_int_equal(info.users, 1);
	assert_int_equal(info.limit, 0);
}

static void
test_srq_in_use_cannot_be_destroyed(void **state)
{
	struct peer *p = *state;
	uint32_t cursor = 0, srqn;
	struct error err;

	assert_int_equal(rc_srq_destroy(p->w, p->srqn, &err), -EBUSY);
	assert_int_equal(rc_qp_destroy(p->w, p->qpn, &err), 0);
	assert_true(rc_srq_next(p->w, &cursor, &srqn));
	assert_int_equal(srqn, p->srqn);
	assert_false(rc_srq_next(p->w, &cursor, &srqn));
	assert_int_equal(rc_srq_destroy(p->w, p->srqn, &err), 0);
	assert_int_equal(rc_srq_owner(p->dev, p->srqn), -1);
	assert_int_equal(rc_srq_owner(p->dev, UINT32_MAX), -1);
	assert_int_equal(rc_srq_destroy(p->w, p->srqn, &err), -ENOENT);
}

static void
test_qp_of_another_worker_is_refused_naming_both(void **state)
{
	struct peer *p = *state;
	struct rc_worker_config wc = { .id = 1, .wheel = p->wheel, .tx = &p->sink };
	struct rc_worker *other = rc_worker_create(p->dev, &wc);
	struct qp_init_attr init;
	struct error err;
	uint32_t qpn;

	assert_non_null(other);
	assert_int_equal(rc_srq_owner(p->dev, p->srqn), 0);
	peer_init_attr(p, &init);
	assert_int_equal(rc_qp_create(other, &init, &qpn, &err), -EINVAL);
	assert_string_equal(err.text,
		"srq: shared receive queue 0 lives on worker 0, not on worker 1");
	init.srq = 7;
	assert_int_equal(rc_qp_create(other, &init, &qpn, &err), -ENOENT);
	assert_int_equal(rc_srq_destroy(other, p->srqn, &err), -EINVAL);
	rc_worker_destroy(other);
}

static void
test_posting_to_the_qp_of_an_srq_is_invalid(void **state)
{
	struct peer *p = *state;
	struct recv_wr wr = { .wr_id = 1 };
	struct error err;

	assert_int_equal(rc_post_recv(p->w, p->qpn, &wr, &err), -EINVAL);
}

static void
test_srq_attributes_are_checked(void **state)
{
	struct peer *p = *state;
	struct error err;
	uint32_t srqn, i;

	assert_int_equal(rc_srq_create(p->w, p->pd, 0, 1, &srqn, &err), -EINVAL);
	assert_int_equal(rc_srq_create(p->w, p->pd, 16385, 1, &srqn, &err), -EINVAL);
	assert_int_equal(rc_srq_create(p->w, p->pd, 1, 17, &srqn, &err), -EINVAL);
	assert_int_equal(rc_srq_create(p->w, 3, 1, 1, &srqn, &err), -ENOENT);
	assert_int_equal(rc_srq_create(p->w, p->pd, 16384, 16, &srqn, &err), 0);
	for (i = 2; i < 64; i++)
		assert_int_equal(rc_srq_create(p->w, p->pd, 1, 1, &srqn, &err), 0);
	assert_int_equal(rc_srq_create(p->w, p->pd, 1, 1, &srqn, &err), -ENOMEM);
	assert_string_equal(err.text, "srq: all 64 SRQs are in use (limits.max_srq)");
}

/* A destroyed SRQ frees its number, and its reference to the protection domain. */
static void
test_destroyed_srq_frees_number_and_domain(void **state)
{
	struct peer *p = *state;
	struct recv_wr wr = { .wr_id = 1 };
	struct rc_srq_info info;
	struct error err;
	uint32_t pd, srqn, i;

	assert_int_equal(mem_pd_alloc(p->mem, &pd, &err), 0);
	for (i = 0; i < 200; i++) {
		assert_int_equal(rc_srq_create(p->w, pd, 4, 1, &srqn, &err), 0);
		assert_int_not_equal(srqn, p->srqn);
		assert_int_equal(rc_srq_query(p->w, srqn, &info), 0);
		assert_int_equal(info.srqn, srqn);
		assert_int_equal(info.pd, pd);
		assert_int_equal(info.max_wr, 4);
		assert_int_equal(info.posted, 0);
		assert_int_equal(mem_pd_free(p->mem, pd, &err), -EBUSY);
		assert_int_equal(rc_srq_destroy(p->w, srqn, &err), 0);
	}
	assert_int_equal(mem_pd_free(p->mem, pd, &err), 0);
	assert_int_equal(rc_srq_query(p->w, srqn, &info), -ENOENT);
	assert_int_equal(rc_srq_post(p->w, srqn, &wr, &err), -ENOENT);
	assert_int_equal(rc_srq_modify(p->w, srqn, 0, &err), -ENOENT);
}

/* The limit event names its SRQ. */
static void
test_limit_event_names_its_srq(void **state)
{
	struct peer *p = *state;
	struct error err;
	uint32_t srqn;

	assert_int_equal(rc_srq_create(p->w, p->pd, 4, 1, &srqn, &err), 0);
	assert_int_equal(rc_srq_modify(p->w, srqn, 1, &err), 0);
	expect_event(p, EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(p->events[p->event_next - 1].element, srqn);
}

/* --- a QP's own receive queue --- */

static int
try_post(struct peer *p, uint32_t num_sge, uint32_t length, struct error *err)
{
	struct sge sge[5];
	struct recv_wr wr = { .wr_id = 99, .num_sge = num_sge, .sg_list = sge };
	int i;

	for (i = 0; i < 5; i++)
		sge[i] = (struct sge){ PEER_VA, length, p->key };
	return rc_post_recv(p->w, p->qpn, &wr, err);
}

static void
test_receives_are_checked_when_posted(void **state)
{
	struct peer *p = *state;
	struct recv_wr wr = { .num_sge = 1 };
	struct error err;
	int i;

	assert_int_equal(try_post(p, 5, 1, &err), -EINVAL);
	assert_string_equal(err.text, "num_sge: got 5, this queue takes at most 4");
	assert_int_equal(try_post(p, 3, 1u << 30, &err), -EINVAL); /* above 2^31 in all */
	assert_int_equal(try_post(p, 1, (1u << 31) + 1, &err), -EINVAL);
	assert_string_equal(err.text,
		"sg_list: 2147483649 bytes in all, a message has at most 2147483648");
	assert_int_equal(try_post(p, 2, 1u << 30, &err), 0); /* 2^31 */
	assert_int_equal(rc_post_recv(p->w, p->qpn, &wr, &err), -EINVAL);
	assert_string_equal(err.text, "sg_list: missing, num_sge is 1");
	for (i = 1; i < 16; i++)
		assert_int_equal(try_post(p, 1, 1, &err), 0);
	assert_int_equal(try_post(p, 1, 1, &err), -ENOMEM);
	assert_string_equal(err.text, "receive queue full: 16 work requests posted");
	assert_int_equal(rc_post_recv(p->w, p->qpn ^ 1, &wr, &err), -ENOENT);
}

/* A queue whose size is no power of two holds exactly as many receives as requested. */
static void
test_queue_holds_what_was_asked_for(void **state)
{
	struct peer *p;
	struct error err;
	int i;

	peer_destroy(*state);
	*state = p = peer_create(&(struct peer_config){ .psn = 201, .recv_wr = 5 });
	for (i = 0; i < 5; i++)
		assert_int_equal(try_post(p, 1, 64, &err), 0);
	assert_int_equal(try_post(p, 1, 64, &err), -ENOMEM);
	in_send(p, RC_SEND_ONLY, 201, 8);
	assert_int_equal(try_post(p, 1, 64, &err), 0);
}

/* An SRQ with 0 SGEs holds receives for messages without bytes. */
static void
test_srq_without_sges(void **state)
{
	struct peer *p = *state;
	struct sge sge = { PEER_VA, 0, p->key };
	struct recv_wr wr = { .wr_id = 1, .num_sge = 1, .sg_list = &sge };
	struct error err;
	uint32_t srqn;

	assert_int_equal(rc_srq_create(p->w, p->pd, 1, 0, &srqn, &err), 0);
	assert_int_equal(rc_srq_post(p->w, srqn, &wr, &err), -EINVAL);
	assert_string_equal(err.text, "num_sge: got 1, this queue takes at most 0");
	wr.num_sge = 0;
	assert_int_equal(rc_srq_post(p->w, srqn, &wr, &err), 0);
	assert_int_equal(rc_srq_destroy(p->w, srqn, &err), 0);
}

static void
test_posting_in_each_state(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = { .qp_state = QPS_ERR };
	struct error err;

	post(p, 1, 0, 64); /* RTR */
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, &err), 0);
	expect_wc(p, 1, WC_WR_FLUSH_ERR, NULL);
	post(p, 2, 0, 64); /* ERR: completes flushed */
	expect_wc(p, 2, WC_WR_FLUSH_ERR, NULL);
	attr.qp_state = QPS_RESET;
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, &err), 0);
	assert_int_equal(try_post(p, 1, 1, &err), -EINVAL);
	attr.qp_state = QPS_INIT;
	attr.pkey = 0xFFFF;
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr,
				 QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
					 QP_ATTR_ACCESS_FLAGS,
				 &err),
		0);
	assert_int_equal(try_post(p, 1, 1, &err), 0); /* INIT */
	attr.qp_state = QPS_ERR;
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, &err), 0);
	expect_wc(p, 99, WC_WR_FLUSH_ERR, NULL);
	expect_no_wc(p);
}

static void
test_reset_forgets_receives_without_completions(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = { .qp_state = QPS_RESET };
	struct rc_qp_info info;
	struct error err;

	post(p, 1, 0, 600);
	post(p, 2, 0, 64);
	in_read(p, 201, 0, 4 * MTU);
	in_send(p, RC_SEND_FIRST, 205, 256);
	run_slice(p, 1);
	expect_tx(p, "FIRST 201");
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, &err), 0);
	expect_no_wc(p);
	assert_int_equal(rc_qp_query(p->w, p->qpn, &info), 0);
	assert_int_equal(info.rq_posted, 0);
	run(p);
	expect_silence(p);
}

static void
test_reset_leaves_the_srq_alone(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = { .qp_state = QPS_RESET };
	struct rc_srq_info info;
	struct error err;

	post(p, 1, 0, 600);
	post(p, 2, 0, 64);
	in_send(p, RC_SEND_FIRST, 201, 256);
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, &err), 0);
	assert_int_equal(rc_srq_query(p->w, p->srqn, &info), 0);
	assert_int_equal(info.posted, 1);
	expect_no_wc(p);
}

int
main(void)
{
#define S(name) cmocka_unit_test_setup_teardown(name, srq_setup, peer_teardown)
#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
	const struct CMUnitTest tests[] = {
		S(test_srq_serves_its_qps_in_posting_order),
		S(test_no_credits_with_an_srq),
		S(test_limit_event_once_when_fewer_are_posted),
		S(test_limit_counts_requests_that_wait),
		S(test_empty_srq_asks_for_receives_once),
		S(test_peer_that_empties_the_srq_ends_no_other),
		S(test_qp_in_error_keeps_the_srq_and_reports_its_last_wqe),
		S(test_srq_in_use_cannot_be_destroyed),
		S(test_qp_of_another_worker_is_refused_naming_both),
		S(test_posting_to_the_qp_of_an_srq_is_invalid),
		S(test_srq_attributes_are_checked),
		S(test_destroyed_srq_frees_number_and_domain),
		S(test_limit_event_names_its_srq),
		T(test_receives_are_checked_when_posted),
		T(test_queue_holds_what_was_asked_for),
		T(test_srq_without_sges),
		T(test_posting_in_each_state),
		T(test_reset_forgets_receives_without_completions),
		S(test_reset_leaves_the_srq_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
