/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The flight recorder of queue pairs: what a step says, the ring that wraps, on and off, the event
 * that carries the steps; and the table of explanations.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

static struct trace
qp_trace_of(const struct peer *p)
{
	struct trace t;

	assert_int_equal(rc_qp_trace(p->w, p->qpn, &t), 0);
	return t;
}

/* Expect a step, counted from the newest: "received SEND Only 201 request". */
static void
expect_step(const struct peer *p, unsigned int back, const char *text)
{
	char got[256], what[RC_STEP_TEXT_MAX], outcome[RC_STEP_TEXT_MAX];
	struct trace t = qp_trace_of(p);
	const struct trace_step *s;

	assert_true(back < trace_length(&t));
	s = trace_at(&t, trace_length(&t) - 1 - back);
	snprintf(got, sizeof(got), "%s %s %u %s", rc_step_name(s->event), rc_step_what(s, what),
		s->number, rc_step_outcome(s, outcome));
	assert_string_equal(got, text);
}

static void
test_nothing_is_recorded_by_default(void **state)
{
	struct peer *p = *state;
	struct trace t;

	post(p, 1, 0, 100);
	in_send(p, RC_SEND_ONLY, 201, 100);
	assert_int_equal(rc_qp_trace(p->w, p->qpn, &t), -ENODATA);
	assert_int_equal(rc_qp_trace(p->w, p->qpn + 1, &t), -ENOENT);
	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn + 1, true), -ENOENT);
}

static void
test_packets_are_recorded_both_ways(void **state)
{
	struct peer *p = *state;
	struct trace t;

	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, true), 0);
	post(p, 1, 0, 100);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 100), VERDICT_REQUEST);
	expect_step(p, 0, "received SEND Only 201 request");
	run(p);
	expect_tx(p, "ACK 201");
	expect_step(p, 0, "sent Acknowledge, ACK 201 0 bytes");
	/* ahead of ePSN: the step has both PSNs */
	in_send(p, RC_SEND_ONLY, 210, 100);
	expect_step(p, 0, "received SEND Only 210 nak_sent");
	t = qp_trace_of(p);
	assert_int_equal(trace_at(&t, trace_length(&t) - 1)->expected, 202);
	run(p);
	expect_tx(p, "NAK-SEQ 202");
	expect_step(p, 0, "sent Acknowledge, NAK PSN sequence 202 0 bytes");
	/* a read has two packets */
	in_read(p, 202, 0, MTU + 1);
	run(p);
	expect_step(p, 2, "received READ Request 202 request");
	expect_step(p, 1, "sent READ Response First, ACK 202 256 bytes");
	expect_step(p, 0, "sent READ Response Last, ACK 203 1 bytes");
}

/* A QP in RTS takes its packets without a look at what is rare: recording changes that at once. */
static void
test_recording_begins_with_the_next_packet(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = {
		.qp_state = QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr,
				 QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
					 QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |
					 QP_ATTR_MAX_QP_RD_ATOMIC,
				 NULL),
		0);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 201, 0, 8, 8), VERDICT_REQUEST);
	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, true), 0);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 202, 0, 8, 8), VERDICT_REQUEST);
	expect_step(p, 0, "received WRITE Only 202 request");
}

static void
test_refused_packets_have_their_verdict(void **state)
{
	struct peer *p = *state;

	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, true), 0);
	request(p, RC_SEND_ONLY, 201)->sgid.raw[15] ^= 1;
	assert_int_equal(feed(p), VERDICT_ADDRESS);
	expect_step(p, 0, "received SEND Only 201 address");
	/* the worker's own transmit sink is back */
	in_send(p, RC_SEND_ONLY, 201, 0);
	run(p);
	expect_step(p, 0, "sent Acknowledge, RNR NAK 640 us 201 0 bytes");
}

static void
test_the_ring_keeps_the_last_64(void **state)
{
	struct peer *p = *state;
	struct trace t;
	unsigned int i;

	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, true), 0);
	for (i = 0; i < 100; i++)
		in_write(p, RC_WRITE_ONLY, 201 + i, 0, 8, 8);
	t = qp_trace_of(p);
	assert_int_equal(t.count, 100);
	assert_int_equal(trace_length(&t), TRACE_STEPS);
	assert_int_equal(trace_at(&t, 0)->number, 201 + 100 - TRACE_STEPS);
	assert_int_equal(trace_at(&t, TRACE_STEPS - 1)->number, 300);
}

static void
test_stop_forgets_and_the_common_case_is_back(void **state)
{
	struct peer *p = *state;
	struct trace t;

	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, true), 0);
	in_write(p, RC_WRITE_ONLY, 201, 0, 8, 8);
	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, false), 0);
	assert_int_equal(rc_qp_trace(p->w, p->qpn, &t), -ENODATA);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 202, 0, 8, 8), VERDICT_REQUEST);
	run(p);
	expect_tx(p, "ACK 202");
	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, false), 0);
}

static void
test_all_includes_queue_pairs_made_later(void **state)
{
	struct peer *p = *state;
	struct qp_init_attr init;
	struct trace t;
	uint32_t qpn;

	assert_int_equal(rc_trace_switch_all(p->w, true), 1);
	peer_init_attr(p, &init);
	qpn = peer_qp(p, &init);
	assert_int_equal(rc_qp_trace(p->w, qpn, &t), 0);
	assert_int_equal(trace_at(&t, 0)->event, RC_STEP_MODIFIED);
	assert_int_equal(trace_at(&t, 0)->what, QPS_RESET);
	assert_int_equal(trace_at(&t, 0)->outcome, QPS_INIT);
	assert_int_equal(rc_trace_switch_all(p->w, false), 2);
	assert_int_equal(rc_qp_trace(p->w, qpn, &t), -ENODATA);
}

/* A packet that fails the QP: its last steps end with it, and with the reason. */
static void
test_a_failure_is_the_last_step(void **state)
{
	struct peer *p = *state;
	struct rc_qp_info info;
	char text[QP_EXPLAIN_MAX];

	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, true), 0);
	assert_int_equal(in_send(p, RC_SEND_MIDDLE, 201, MTU), VERDICT_NAK_SENT);
	expect_step(p, 1, "received SEND Middle 201 nak_sent");
	expect_step(p, 0, "error opcode_sequence 201 ");
	assert_int_equal(rc_qp_query(p->w, p->qpn, &info), 0);
	assert_true(info.traced);
	assert_int_equal(info.failure.reason, QP_FAILURE_SEQUENCE);
	assert_string_equal(qp_failure_received(&info.failure, text),
		"SEND Middle with PSN 201, 256 bytes of payload: its opcode does not follow the packet before it");
	assert_memory_equal(qp_failure_expected(&info.failure, text), "PSN 201; an Only or a First",
		27);
}

/* The explanation needs no recording, and goes with the next RESET. */
static void
test_the_reason_is_kept_without_recording(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = { .qp_state = QPS_RESET };
	struct rc_qp_info info;

	in_read(p, 201, 0, PEER_MEM + 1);
	assert_int_equal(rc_qp_query(p->w, p->qpn, &info), 0);
	assert_false(info.traced);
	assert_int_equal(info.failure.reason, QP_FAILURE_RANGE);
	assert_int_equal(info.failure.opcode, RC_READ_REQUEST);
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, NULL), 0);
	assert_int_equal(rc_qp_query(p->w, p->qpn, &info), 0);
	assert_int_equal(info.failure.reason, QP_FAILURE_NONE);
}

static void
test_a_modify_to_err_is_no_failure_of_the_peer(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = { .qp_state = QPS_ERR };
	struct rc_qp_info info;

	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, NULL), 0);
	assert_int_equal(rc_qp_query(p->w, p->qpn, &info), 0);
	assert_int_equal(info.failure.reason, QP_FAILURE_MODIFIED);
}

static void
test_every_reason_is_explained(void **state)
{
	const struct qp_failure_info *info;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < QP_FAILURE_REASONS; i++) {
		info = &qp_failure_infos[i];
		if (info->name == NULL || info->happened == NULL || info->expected == NULL ||
			info->rule == NULL || info->check == NULL)
			fail_msg("reason %u has no explanation", i);
		for (k = 0; k < i; k++)
			assert_string_not_equal(info->name, qp_failure_infos[k].name);
	}
}

static void
test_every_step_prints_on_a_line(void **state)
{
	struct peer *p = *state;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(rc_qp_trace_switch(p->w, p->qpn, true), 0);
	in_send(p, RC_SEND_MIDDLE, 201, MTU);
	rc_trace_print_all(f, p->w);
	fclose(f);
	assert_non_null(strstr(text, "in ERR:\n"));
	assert_non_null(strstr(text,
		"received       PSN 201      expected 201       SEND Middle  nak_sent\n"));
	assert_non_null(strstr(text, "error          PSN 201       opcode_sequence"));
	free(text);
}

/* A step's words: the event, what it was about, and how it ended. */
static void
test_words_of_qp_steps(void **state)
{
	static const struct {
		struct trace_step step;
		const char *name, *what, *outcome;
	} steps[] = {
		{ { .event = RC_STEP_TIMEOUT, .value = 3 }, "timeout", "no answer in time",
			"3 retries left" },
		{ { .event = RC_STEP_RNR_OVER, .value = 6 }, "RNR wait over",
			"the oldest request is sent again", "6 retries left" },
		{ { .event = RC_STEP_MODIFIED, .what = QPS_RTS, .outcome = QPS_ERR }, "modify",
			"RTS to ERR", "" },
		{ { .event = RC_STEP_FAILED,
			  .what = QP_FAILURE_MODIFIED,
			  .outcome = WC_WR_FLUSH_ERR },
			"error", "modified", "WR_FLUSH_ERR" },
		{ { .event = RC_STEP_COUNT }, "unknown", "", "" },
	};
	char text[RC_STEP_TEXT_MAX];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_string_equal(rc_step_name(steps[i].step.event), steps[i].name);
		assert_string_equal(rc_step_what(&steps[i].step, text), steps[i].what);
		assert_string_equal(rc_step_outcome(&steps[i].step, text), steps[i].outcome);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_nothing_is_recorded_by_default),
		T(test_packets_are_recorded_both_ways),
		T(test_recording_begins_with_the_next_packet),
		T(test_refused_packets_have_their_verdict),
		T(test_the_ring_keeps_the_last_64),
		T(test_stop_forgets_and_the_common_case_is_back),
		T(test_all_includes_queue_pairs_made_later),
		T(test_a_failure_is_the_last_step),
		T(test_the_reason_is_kept_without_recording),
		T(test_a_modify_to_err_is_no_failure_of_the_peer),
		T(test_every_reason_is_explained),
		T(test_every_step_prints_on_a_line),
		cmocka_unit_test(test_words_of_qp_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
