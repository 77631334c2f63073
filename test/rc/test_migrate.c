/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Alternate paths and Automatic Path Migration (seed 001, IBA 17.2.8). The path in use goes by
 * port 0, 10.0.0.1 to 10.0.0.2, the alternate one by port 1, 10.0.1.1 to 10.0.1.2 (pair.h).
 */

#include <errno.h>
#include <string.h>

#include "pair.h"

#define TTR(timeout) (UINT64_C(4096) << (timeout))
#define ALT_PATH_MIG (QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE)

/* Ask for a migration state. @return the result of rc_qp_modify() */
static int
migrate_ask(struct node *n, enum mig_state state, uint32_t mask, struct error *err)
{
	struct qp_attr attr = qp_attr_of(n);

	attr.path_mig_state = state;
	attr.alt.timeout = 15;
	return modify_attr(n, &attr, mask, err);
}

static void
must_ask(struct node *n, enum mig_state state, uint32_t mask)
{
	struct error err = { "" };

	if (migrate_ask(n, state, mask, &err) != 0)
		fail_msg("%s", err.text);
}

static const char *
mig_state_of(const struct node *n)
{
	return mig_state_name(info_of(n).attr.path_mig_state);
}

#define expect_state(n, s) assert_string_equal(mig_state_of(n), s)

/* BTH byte 1 of the i-th packet of the last expectation, on the wire (IPv4). */
static uint8_t
bth_flags(const struct node *n, unsigned int i)
{
	assert_true(n->looked + i < n->seen);
	return n->sent[n->looked + i].frame[14 + 20 + 8 + 1];
}

/* Everything that n has sent since the last expectation went by this port. Skip it. */
static void
went_by(struct node *n, uint16_t port)
{
	assert_true(n->seen < n->sent_count);
	for (; n->seen < n->sent_count; n->seen++) {
		const uint8_t *ip = n->sent[n->seen].frame + 14;

		assert_int_equal(n->sent[n->seen].port, port);
		assert_int_equal(ip[14], port); /* 10.0.PORT.x, from and to */
		assert_int_equal(ip[18], port);
	}
}

/* One Write in each direction, so that each node receives a packet from the other. */
static void
write_both_ways(struct pair *p)
{
	post(&p->a, WR_RDMA_WRITE, 90, 1);
	exchange(p);
	expect_wc(&p->a, 90, WC_SUCCESS);
	post(&p->b, WR_RDMA_WRITE, 91, 1);
	exchange(p);
	expect_wc(&p->b, 91, WC_SUCCESS);
	p->a.seen = p->a.sent_count;
	p->b.seen = p->b.sent_count;
}

static void
arm(struct pair *p)
{
	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	must_ask(&p->b, MIG_REARM, ALT_PATH_MIG);
	write_both_ways(p);
	expect_state(&p->a, "ARMED");
	expect_state(&p->b, "ARMED");
}

static void
kill_port(struct pair *p, unsigned int port)
{
	p->a.dead |= 1u << port;
	p->b.dead |= 1u << port;
}

static struct pair *
armed(void **state, const struct pair_config *c)
{
	struct pair *p = pair_create(c);

	*state = p;
	arm(p);
	return p;
}

/* The port by which a scripted b answers from now on. */
static void
back_by(struct pair *p, uint16_t port)
{
	struct av av = av_of(&p->b, port);

	path_init(&p->b.back, &av, p->b.qpn, p->a.qpn);
}

static enum verdict
ack_m(struct pair *p, uint32_t psn, bool m)
{
	return answer(p,
		&(struct wire_headers){
			.opcode = RC_ACK,
			.psn = psn,
			.migreq = m,
			.syndrome = AETH_ACK | AETH_NO_CREDITS,
		},
		NULL, 0);
}

/* a is ARMED, b is scripted, and PSN 201 is used. */
static struct pair *
scripted_armed(void **state, const struct pair_config *c)
{
	struct pair_config config = *c;
	struct pair *p;

	config.scripted = true;
	*state = p = pair_create(&config);
	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	post(&p->a, WR_RDMA_WRITE, 90, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	assert_int_equal(ack_m(p, 201, false), VERDICT_RESPONSE);
	expect_wc(&p->a, 90, WC_SUCCESS);
	expect_state(&p->a, "ARMED");
	return p;
}

/* --- states and the M bit --- */

/* A QP is MIGRATED, REARM when asked to, and ARMED after the peer's first packet with M 0. */
static void
test_rearm_until_a_packet_with_m_0(void **state)
{
	struct pair *p = *state;

	expect_state(&p->a, "MIGRATED");
	assert_false(info_of(&p->a).alt_loaded);
	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	must_ask(&p->b, MIG_REARM, ALT_PATH_MIG);
	expect_state(&p->a, "REARM");
	assert_true(info_of(&p->a).alt_loaded);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	expect_state(&p->b, "REARM");
	deliver(&p->a); /* a request arms */
	expect_state(&p->b, "ARMED");
	expect_state(&p->a, "REARM");
	transmit(&p->b);
	deliver(&p->b); /* so does a response */
	expect_state(&p->a, "ARMED");
	expect_no_event(&p->a);
	expect_no_event(&p->b);
}

/* A packet with M 1 is from a peer that is not rearmed: it is accepted, but does not arm. */
static void
test_m_1_does_not_arm(void **state)
{
	struct pair *p = *state;

	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	assert_int_equal(ack_m(p, 201, true), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_state(&p->a, "REARM");
	expect_no_event(&p->a);
}

/* A packet that fails the checks of rc-transport 5 does not arm. */
static void
test_a_refused_packet_does_not_arm(void **state)
{
	struct pair *p = *state;

	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	back_by(p, 1);
	assert_int_equal(ack_m(p, 201, false), VERDICT_ADDRESS);
	expect_state(&p->a, "REARM");
	back_by(p, 0);
	ack_m(p, 201, false);
	expect_state(&p->a, "ARMED");
}

/* BTH M on the wire: 0 in REARM and ARMED, 1 after migration, requests and responses alike */
static void
test_m_bit_by_state(void **state)
{
	struct pair *p = *state;

	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	must_ask(&p->b, MIG_REARM, ALT_PATH_MIG);
	post(&p->a, WR_RDMA_WRITE, 1, 4);
	exchange(p);
	expect_tx(&p->a, "WRITE Only 201");
	assert_int_equal(bth_flags(&p->a, 0), 0x00);
	expect_tx(&p->b, "ACK 201");
	assert_int_equal(bth_flags(&p->b, 0), 0x00);
	post(&p->a, WR_RDMA_WRITE, 2, 4);
	exchange(p);
	expect_tx(&p->a, "WRITE Only 202");
	assert_int_equal(bth_flags(&p->a, 0), 0x00); /* ARMED */
	expect_tx(&p->b, "ACK 202");
	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	post(&p->a, WR_RDMA_WRITE, 3, 4);
	exchange(p);
	post(&p->a, WR_RDMA_READ, 4, 4);
	exchange(p);
	expect_tx(&p->a, "WRITE Only 203", "READ Request 204");
	assert_int_equal(bth_flags(&p->a, 0), 0x40);
	assert_int_equal(bth_flags(&p->a, 1), 0x40);
	expect_tx(&p->b, "ACK 203", "READ Response Only 204");
	assert_int_equal(bth_flags(&p->b, 0), 0x40);
	assert_int_equal(bth_flags(&p->b, 1), 0x40);
}

/*
 * rc-transport 1: M is as configured until REARM is asked for; an alternate path alone changes
 * nothing
 */
static void
test_m_bit_as_configured_before_rearm(void **state)
{
	static const struct {
		enum migreq migreq;
		uint8_t flags;
	} rows[] = { { MIGREQ_OF_LINK, 0 }, { MIGREQ_1, 0x40 } };
	struct pair *p;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		*state = p = pair_create(&(struct pair_config){ .migreq = rows[i].migreq });
		must_ask(&p->a, MIG_MIGRATED, ALT_PATH_MIG);
		expect_state(&p->a, "MIGRATED");
		assert_true(info_of(&p->a).alt_loaded);
		post(&p->a, WR_RDMA_WRITE, 1, 4);
		exchange(p);
		expect_tx(&p->a, "WRITE Only 201");
		assert_int_equal(bth_flags(&p->a, 0), rows[i].flags);
		expect_tx(&p->b, "ACK 201");
		assert_int_equal(bth_flags(&p->b, 0), rows[i].flags);
		expect_wc(&p->a, 1, WC_SUCCESS);
		expect_state(&p->b, "MIGRATED");
		must_ask(&p->a, MIG_REARM, QP_ATTR_PATH_MIG_STATE);
		post(&p->a, WR_RDMA_WRITE, 2, 4);
		transmit(&p->a);
		expect_tx(&p->a, "WRITE Only 202");
		assert_int_equal(bth_flags(&p->a, 0), 0x00);
		/* RESET forgets that REARM was asked for */
		must_modify(&p->a, QPS_RESET, QP_ATTR_STATE);
		assert_false(info_of(&p->a).alt_loaded);
		must_modify(&p->a, QPS_INIT, MASK_INIT);
		must_modify(&p->a, QPS_RTR, MASK_RTR);
		must_modify(&p->a, QPS_RTS, MASK_RTS);
		expect_state(&p->a, "MIGRATED");
		post(&p->a, WR_RDMA_WRITE, 3, 4);
		transmit(&p->a);
		expect_tx(&p->a, "WRITE Only 201");
		assert_int_equal(bth_flags(&p->a, 0), rows[i].flags);
		pair_destroy(p);
	}
	*state = NULL;
}

/* As a connection manager loads it: ALT_PATH in the step to RTR, REARM in the step to RTS. */
static void
test_armed_on_the_way_up(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .init_only = true, .retry_cnt = 7 });
	struct qp_attr attr;
	struct error err = { "" };
	struct node *n;

	*state = p;
	for (n = &p->a; n <= &p->b; n++) {
		must_modify(n, QPS_INIT, MASK_INIT);
		must_modify(n, QPS_RTR, MASK_RTR | QP_ATTR_ALT_PATH);
		attr = qp_attr_of(n);
		attr.qp_state = QPS_RTS;
		attr.path_mig_state = MIG_REARM;
		assert_int_equal(modify_attr(n, &attr, MASK_RTS | QP_ATTR_PATH_MIG_STATE, &err), 0);
	}
	write_both_ways(p);
	expect_state(&p->a, "ARMED");
	expect_state(&p->b, "ARMED");
}

/* Which migration states may be asked for in which state, and the texts of the errors. */
static void
test_migration_requests_are_checked(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };

#define REFUSED(state_, mask, says)                                                                \
	do {                                                                                       \
		assert_int_equal(migrate_ask(&p->a, state_, mask, &err), -EINVAL);                 \
		assert_string_equal(err.text, says);                                               \
	} while (0)

	REFUSED(MIG_REARM, QP_ATTR_PATH_MIG_STATE,
		"path_mig_state: REARM needs an alternate path, and none is loaded");
	REFUSED(MIG_ARMED, ALT_PATH_MIG, "path_mig_state: got ARMED, allowed: MIGRATED, REARM");
	REFUSED(3, ALT_PATH_MIG, "path_mig_state: got unknown, allowed: MIGRATED, REARM");
	assert_false(info_of(&p->a).alt_loaded); /* a refused call does nothing */
	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE); /* its state already */
	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	REFUSED(MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE,
		"path_mig_state: got MIGRATED, but the queue pair is in REARM: its peer is not armed yet");
	must_ask(&p->a, MIG_REARM, QP_ATTR_PATH_MIG_STATE);
	must_ask(&p->b, MIG_REARM, ALT_PATH_MIG);
	write_both_ways(p);
	REFUSED(MIG_REARM, QP_ATTR_PATH_MIG_STATE,
		"path_mig_state: got REARM, but the alternate path is ARMED already");
	expect_state(&p->a, "ARMED");
	/* a new alternate path must be armed again */
	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	expect_state(&p->a, "REARM");
	expect_no_event(&p->a);
}

/* --- migration --- */

static void
migrate_expect_migrated(struct node *n)
{
	struct rc_qp_info info = info_of(n);

	expect_event(n, EVENT_PATH_MIG);
	expect_no_event(n);
	assert_string_equal(mig_state_name(info.attr.path_mig_state), "MIGRATED");
	assert_int_equal(info.attr.port, 1);
	assert_int_equal(info.attr.av.port, 1);
	assert_int_equal(info.attr.av.dgid.raw[14], 1);
	assert_int_equal(info.attr.timeout, 15);
	assert_false(info.alt_loaded);
	assert_int_equal(info.attr.alt.port, 0);
	assert_int_equal(info.counters.path_migrations, 1);
}

/*
 * seed 001: retries are exhausted and an alternate path is armed: the QP migrates, reloads the
 * retry counter and sends outstanding requests again by the alternate path. The peer migrates, too.
 * Every request is executed once.
 */
static void
test_exhausted_retries_migrate(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 2, .rnr_retry = 7 });
	struct rc_counters sum = { 0 };
	unsigned int i;

	post_recv(&p->b, 10, 600);
	kill_port(p, 0);
	post(&p->a, WR_SEND, 1, 600);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	for (i = 0; i < 3; i++) { /* sent once, then retried twice */
		exchange(p);
		expect_tx(&p->a, "SEND First 202", "SEND Middle 203", "SEND Last 204",
			"WRITE Only 205");
		assert_int_equal(sent_packet(&p->a, 0).port, 0);
		assert_int_equal(bth_flags(&p->a, 0), 0x00);
		expect_no_event(&p->a);
		pass(p, TTR(14));
	}
	migrate_expect_migrated(&p->a);
	assert_int_equal(info_of(&p->a).retry_left, 2);
	assert_int_equal(counters_of(&p->a).retry_exceeded_err, 0);
	exchange(p);
	went_by(&p->a, 1);
	went_by(&p->b, 1);
	migrate_expect_migrated(&p->b);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_SUCCESS);
	assert_int_equal(expect_recv(&p->b, 10, WC_SUCCESS).byte_len, 600);
	assert_memory_equal(p->a.bytes, p->b.bytes, 600);
	expect_no_wc(&p->a);
	expect_no_wc(&p->b);
	assert_int_equal(counters_of(&p->b).rx_send_requests, 1);
	rc_worker_counters(p->a.w, -1, &sum);
	assert_int_equal(sum.path_migrations, 1);
}

/* The answers are lost, not the requests: after migration an Atomic is not executed again. */
static void
test_lost_answers_execute_once(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 1 });
	struct send_wr wr;
	struct sge sge;
	struct error err = { "" };
	uint64_t before, now;

	memcpy(&before, p->b.bytes, 8);
	p->b.dead = 1;
	make_wr(&p->a, &wr, &sge, WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	wr.compare_add = 5;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	exchange(p);
	pass(p, TTR(14));
	exchange(p);
	pass(p, TTR(14));
	exchange(p);
	migrate_expect_migrated(&p->a);
	migrate_expect_migrated(&p->b);
	expect_wc(&p->a, 1, WC_SUCCESS);
	memcpy(&now, p->a.bytes, 8);
	assert_int_equal(now, before);
	memcpy(&now, p->b.bytes, 8);
	assert_int_equal(now, before + 5);
	assert_int_equal(counters_of(&p->b).rx_atomic_requests, 1);
}

/* Sequence NAKs use up retries, as timeouts do. */
static void
test_naks_migrate_too(void **state)
{
	struct pair *p = scripted_armed(state, &(struct pair_config){ .retry_cnt = 1 });

	post(&p->a, WR_RDMA_WRITE, 1, 300);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 202", "WRITE Last 203");
	nak(p, 0x60, 202);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 202", "WRITE Last 203");
	expect_no_event(&p->a);
	nak(p, 0x60, 202);
	expect_event(&p->a, EVENT_PATH_MIG);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 202", "WRITE Last 203");
	assert_int_equal(sent_packet(&p->a, 0).port, 1);
	assert_int_equal(bth_flags(&p->a, 0), 0x40);
}

/* So do answers that skip a Read. */
static void
test_implied_naks_migrate_too(void **state)
{
	struct pair *p = scripted_armed(state, &(struct pair_config){ .retry_cnt = 0 });

	post(&p->a, WR_RDMA_READ, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 202", "WRITE Only 203");
	ack(p, 203);
	expect_event(&p->a, EVENT_PATH_MIG);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 202", "WRITE Only 203");
	assert_int_equal(sent_packet(&p->a, 0).port, 1);
	assert_int_equal(state_of(&p->a), QPS_RTS);
}

/* seed 001, case 2: retries are exhausted again after the migration: the request fails. */
static void
test_exhausted_retries_after_migration_are_an_error(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 2 });
	unsigned int i;

	kill_port(p, 0);
	kill_port(p, 1);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	for (i = 0; i < 3; i++) {
		exchange(p);
		pass(p, TTR(14));
	}
	migrate_expect_migrated(&p->a);
	went_by(&p->a, 0);
	for (i = 0; i < 3; i++) {
		exchange(p);
		expect_tx(&p->a, "WRITE Only 202", "WRITE Only 203");
		assert_int_equal(sent_packet(&p->a, 0).port, 1);
		assert_int_equal(state_of(&p->a), QPS_RTS);
		expect_no_wc(&p->a);
		pass(p, TTR(15)); /* the alternate path's timeout */
	}
	assert_int_equal(state_of(&p->a), QPS_ERR);
	expect_wc(&p->a, 1, WC_RETRY_EXC_ERR);
	expect_wc(&p->a, 2, WC_WR_FLUSH_ERR);
	expect_no_event(&p->a);
	assert_int_equal(counters_of(&p->a).retry_exceeded_err, 1);
	assert_int_equal(counters_of(&p->a).path_migrations, 1);
}

/* seed 001, case 3: an alternate path that is loaded but not armed is not used. */
static void
test_only_armed_migrates(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .retry_cnt = 0, .scripted = true });

	*state = p;
	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	pass(p, TTR(14));
	expect_wc(&p->a, 1, WC_RETRY_EXC_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
	expect_no_event(&p->a);
}

/* Exhausted RNR retries do not migrate: the peer lacks receives, the path works. */
static void
test_rnr_retries_do_not_migrate(void **state)
{
	struct pair *p = scripted_armed(state, &(struct pair_config){ .rnr_retry = 0 });

	post(&p->a, WR_SEND, 1, 1);
	transmit(&p->a);
	nak(p, 0x2C, 202);
	expect_wc(&p->a, 1, WC_RNR_RETRY_EXC_ERR);
	expect_no_event(&p->a);
}

/*
 * ibv_modify_qp to MIGRATED: the next packet uses the alternate path, and the peer migrates, too.
 */
static void
test_modify_to_migrated_migrates(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 7 });
	struct rc_counters first = { 0 }, second = { 0 }, all = { 0 };

	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	migrate_expect_migrated(&p->a);
	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	expect_no_event(&p->a); /* once */
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	exchange(p);
	expect_wc(&p->a, 1, WC_SUCCESS);
	went_by(&p->a, 1);
	went_by(&p->b, 1);
	migrate_expect_migrated(&p->b);
	post(&p->b, WR_RDMA_WRITE, 2, 1);
	exchange(p);
	expect_wc(&p->b, 2, WC_SUCCESS);
	/* the second port counts what it carried */
	rc_worker_counters(p->b.w, 0, &first);
	rc_worker_counters(p->b.w, 1, &second);
	rc_worker_counters(p->b.w, -1, &all);
	assert_int_equal(second.rcvd_pkts, 2);
	assert_int_equal(second.sent_pkts, 2);
	assert_int_equal(first.rcvd_pkts + second.rcvd_pkts, all.rcvd_pkts);
}

/* A response with M 1 migrates the requester; its outstanding requests go on. */
static void
test_a_response_migrates(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 7 });

	post(&p->a, WR_RDMA_READ, 1, 3 * 256);
	transmit(&p->a);
	deliver(&p->a);
	p->a.seen = p->a.sent_count;
	rc_run(p->b.w, p->now, 1);
	deliver(&p->b);
	must_ask(&p->b, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	transmit(&p->b);
	expect_tx(&p->b, "READ Response First 202", "READ Response Middle 203",
		"READ Response Last 204");
	assert_int_equal(sent_packet(&p->b, 0).port, 0);
	assert_int_equal(bth_flags(&p->b, 0), 0x00);
	assert_int_equal(sent_packet(&p->b, 1).port, 1);
	assert_int_equal(bth_flags(&p->b, 1), 0x40);
	migrate_expect_migrated(&p->b);
	expect_state(&p->a, "ARMED");
	deliver(&p->b);
	migrate_expect_migrated(&p->a);
	expect_wc(&p->a, 1, WC_SUCCESS);
	assert_memory_equal(p->a.bytes, p->b.bytes, 3 * 256);
	assert_int_equal(counters_of(&p->a).completer_retry_err, 0);
}

/* Both sides migrate at once: each receives on the path that the other now uses. */
static void
test_both_migrate_at_once(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 7 });

	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	must_ask(&p->b, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	write_both_ways(p);
	migrate_expect_migrated(&p->a);
	migrate_expect_migrated(&p->b);
}

/* The retry counter is reloaded, too, when the peer began the migration. */
static void
test_migration_by_the_peer_reloads_the_counter(void **state)
{
	struct pair *p = scripted_armed(state, &(struct pair_config){ .retry_cnt = 3 });

	post(&p->a, WR_RDMA_WRITE, 1, 300);
	transmit(&p->a);
	pass(p, TTR(14));
	transmit(&p->a);
	pass(p, TTR(14));
	transmit(&p->a);
	assert_int_equal(info_of(&p->a).retry_left, 1);
	back_by(p, 1);
	assert_int_equal(ack_m(p, 200, true), VERDICT_DUPLICATE_RESPONSE);
	expect_event(&p->a, EVENT_PATH_MIG);
	assert_int_equal(info_of(&p->a).retry_left, 3);
	/* nothing is sent again before the new timeout is over */
	p->a.seen = p->a.sent_count;
	pass(p, TTR(15) - TTR(14));
	transmit(&p->a);
	expect_silence(&p->a);
	pass(p, TTR(14));
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 202", "WRITE Last 203");
	assert_int_equal(sent_packet(&p->a, 0).port, 1);
}

/* From a path with timeout 0 to one with a timer: outstanding requests are timed from then on. */
static void
test_alternate_path_starts_its_timer(void **state)
{
	struct pair *p = scripted_armed(state,
		&(struct pair_config){
			.retry_cnt = 3,
			.no_timer = true,
		});

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 202");
	pass(p, UINT64_C(1) << 40);
	transmit(&p->a);
	expect_silence(&p->a);
	back_by(p, 1);
	ack_m(p, 201, true);
	pass(p, TTR(15));
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 202");
}

/* a draining send queue migrates too, and drains */
static void
test_migrates_while_draining(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 0 });
	struct qp_attr attr = qp_attr_of(&p->a);
	struct error err = { "" };

	kill_port(p, 0);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	exchange(p);
	attr.qp_state = QPS_SQD;
	attr.en_sqd_async_notify = true;
	assert_int_equal(modify_attr(&p->a, &attr, QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY,
				 &err),
		0);
	pass(p, TTR(14));
	expect_event(&p->a, EVENT_PATH_MIG);
	exchange(p);
	expect_event(&p->a, EVENT_SQ_DRAINED);
	expect_wc(&p->a, 1, WC_SUCCESS);
}

/* After a migration the old path may be loaded as alternate path, armed, and migrated back to. */
static void
test_rearm_and_back(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 0 });
	struct error err = { "" };
	struct qp_attr attr;
	struct node *n;

	kill_port(p, 0);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	exchange(p);
	pass(p, TTR(14));
	exchange(p);
	expect_wc(&p->a, 1, WC_SUCCESS);
	migrate_expect_migrated(&p->a);
	migrate_expect_migrated(&p->b);
	assert_int_equal(migrate_ask(&p->a, MIG_REARM, QP_ATTR_PATH_MIG_STATE, &err), -EINVAL);

	p->a.dead = p->b.dead = 0; /* the port is up again */
	for (n = &p->a; n <= &p->b; n++) {
		attr = qp_attr_of(n);
		attr.alt.av = av_of(n, 0);
		attr.alt.port = 0;
		attr.path_mig_state = MIG_REARM;
		assert_int_equal(modify_attr(n, &attr, ALT_PATH_MIG, &err), 0);
	}
	write_both_ways(p);
	expect_state(&p->a, "ARMED");
	expect_state(&p->b, "ARMED");
	kill_port(p, 1);
	post(&p->b, WR_RDMA_WRITE, 2, 1);
	exchange(p);
	pass(p, TTR(15));
	p->a.seen = p->a.sent_count;
	p->b.seen = p->b.sent_count;
	exchange(p);
	expect_wc(&p->b, 2, WC_SUCCESS);
	went_by(&p->a, 0);
	went_by(&p->b, 0);
	expect_event(&p->a, EVENT_PATH_MIG);
	expect_event(&p->b, EVENT_PATH_MIG);
	assert_int_equal(counters_of(&p->b).path_migrations, 2);
}

/* --- requests to migrate that are refused --- */

static void
expect_armed(struct node *n)
{
	expect_state(n, "ARMED");
	assert_int_equal(info_of(n).attr.port, 0);
	assert_true(info_of(n).alt_loaded);
}

/* M 1 by any path but the alternate one: dropped, PATH_MIG_ERR, once for each arming */
static void
test_wrong_path_is_path_mig_err(void **state)
{
	struct pair *p = scripted_armed(state, &(struct pair_config){ .retry_cnt = 7 });
	struct av av;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	/* the path in use */
	assert_int_equal(ack_m(p, 202, true), VERDICT_ADDRESS);
	expect_event(&p->a, EVENT_PATH_MIG_ERR);
	expect_armed(&p->a);
	expect_no_wc(&p->a);
	assert_int_equal(ack_m(p, 202, true), VERDICT_ADDRESS);
	expect_no_event(&p->a);

	/* armed again, a new event: the alternate path's port with another peer's address */
	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	transmit(&p->a);
	assert_int_equal(ack_m(p, 201, false), VERDICT_DUPLICATE_RESPONSE);
	expect_armed(&p->a);
	av = av_of(&p->b, 1);
	av.sgid.raw[15] = 3;
	path_init(&p->b.back, &av, p->b.qpn, p->a.qpn);
	assert_int_equal(ack_m(p, 202, true), VERDICT_ADDRESS);
	expect_event(&p->a, EVENT_PATH_MIG_ERR);
	expect_armed(&p->a);

	/* the alternate path's addresses by another port */
	av = av_of(&p->b, 1);
	av.port = 0;
	path_init(&p->b.back, &av, p->b.qpn, p->a.qpn);
	assert_int_equal(ack_m(p, 202, true), VERDICT_ADDRESS);
	expect_armed(&p->a);

	/* the right path still migrates */
	back_by(p, 1);
	assert_int_equal(ack_m(p, 202, true), VERDICT_RESPONSE);
	expect_event(&p->a, EVENT_PATH_MIG);
	expect_wc(&p->a, 1, WC_SUCCESS);
}

/* A packet with M 0 by the alternate path does not ask to migrate; it is dropped. */
static void
test_alternate_path_with_m_0(void **state)
{
	struct pair *p = scripted_armed(state, &(struct pair_config){ .retry_cnt = 7 });

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	back_by(p, 1);
	assert_int_equal(ack_m(p, 202, false), VERDICT_ADDRESS);
	expect_no_event(&p->a);
	expect_armed(&p->a);
}

/* A QP that is not armed ignores M and accepts packets by the path in use only. */
static void
test_unarmed_ignores_m(void **state)
{
	struct pair *p = *state;

	must_ask(&p->a, MIG_MIGRATED, ALT_PATH_MIG);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	back_by(p, 1);
	assert_int_equal(ack_m(p, 201, true), VERDICT_ADDRESS);
	expect_no_event(&p->a);
	back_by(p, 0);
	assert_int_equal(ack_m(p, 201, true), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_no_event(&p->a);
}

/* After the migration packets by the old path are dropped. */
static void
test_old_path_is_refused(void **state)
{
	struct pair *p = scripted_armed(state, &(struct pair_config){ .retry_cnt = 7 });

	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	assert_int_equal(ack_m(p, 202, false), VERDICT_ADDRESS);
	assert_int_equal(ack_m(p, 202, true), VERDICT_ADDRESS);
	back_by(p, 1);
	assert_int_equal(ack_m(p, 202, true), VERDICT_RESPONSE);
	expect_event(&p->a, EVENT_PATH_MIG);
	expect_no_event(&p->a);
}

/* A damaged packet does not migrate and raises no event. */
static void
test_damaged_packet_does_not_migrate(void **state)
{
	struct pair *p = armed(state, &(struct pair_config){ .retry_cnt = 7 });
	struct sent *s;

	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	post(&p->a, WR_RDMA_WRITE, 1, 4);
	transmit(&p->a);
	s = &p->a.sent[p->a.sent_count - 1];
	s->frame[s->len - 1] ^= 1;
	deliver(&p->a);
	assert_int_equal(p->b.verdict, VERDICT_ICRC);
	expect_state(&p->b, "ARMED");
	s->frame[s->len - 1] ^= 1;
	/* the same with M 1 by a wrong path */
	s->port = 0;
	s->frame[s->len - 1] ^= 1;
	p->a.delivered--;
	deliver(&p->a);
	assert_int_equal(p->b.verdict, VERDICT_ICRC);
	expect_no_event(&p->b);
	s->frame[s->len - 1] ^= 1;
	s->port = 1;
	p->a.delivered--;
	deliver(&p->a);
	assert_int_equal(p->b.verdict, VERDICT_REQUEST);
	migrate_expect_migrated(&p->b);
}

/* A packet that migrates needs the alternate path's P_Key, which the QP has afterwards. */
static void
test_alternate_pkey(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .retry_cnt = 7 });
	struct error err = { "" };
	struct qp_attr attr;

	*state = p;
	attr = qp_attr_of(&p->b);
	attr.path_mig_state = MIG_REARM;
	attr.alt.pkey_index = 3;
	attr.alt.pkey = 0x8001;
	assert_int_equal(modify_attr(&p->b, &attr, ALT_PATH_MIG, &err), 0);
	must_ask(&p->a, MIG_REARM, ALT_PATH_MIG);
	write_both_ways(p);
	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	deliver(&p->a);
	assert_int_equal(p->b.verdict, VERDICT_PKEY);
	assert_int_equal(p->b.violations, 1);
	expect_state(&p->b, "ARMED");
	expect_no_event(&p->b);
	must_ask(&p->b, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	assert_int_equal(info_of(&p->b).attr.pkey_index, 3);
	post(&p->b, WR_RDMA_WRITE, 2, 1);
	transmit(&p->b);
	expect_tx(&p->b, "WRITE Only 202");
	assert_int_equal(sent_packet(&p->b, 0).pkey, 0x8001);
}

/* A query shows an alternate path only while one is loaded: then all its fields are zero again. */
static void
test_no_alternate_path_is_all_zero(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct qp_attr attr;

	attr = qp_attr_of(&p->a);
	attr.path_mig_state = MIG_REARM;
	attr.alt.pkey_index = 3;
	attr.alt.sgid_index = 1;
	attr.alt.src_path_bits = 3;
	assert_int_equal(modify_attr(&p->a, &attr, ALT_PATH_MIG, &err), 0);
	must_ask(&p->b, MIG_REARM, ALT_PATH_MIG);
	write_both_ways(p);
	assert_int_equal(info_of(&p->a).attr.alt.src_path_bits, 3);
	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	attr = info_of(&p->a).attr;
	assert_int_equal(attr.src_path_bits, 3);
	assert_memory_equal(&attr.alt.av, &(struct av){ .encap = 0 }, sizeof(attr.alt.av));
	assert_int_equal(attr.alt.neighbour, 0);
	assert_int_equal(attr.alt.pkey_index, 0);
	assert_int_equal(attr.alt.pkey, 0);
	assert_int_equal(attr.alt.port, 0);
	assert_int_equal(attr.alt.sgid_index, 0);
	assert_int_equal(attr.alt.src_path_bits, 0);
	assert_int_equal(attr.alt.timeout, 0);
}

/* --- native IB, and the port's tables --- */

static const struct port_attr ib_port = {
	.ib = true,
	.num_pkeys = 2,
	.pkey = { 0xFFFF, 0x8123 },
	.lid = 0x50,
	.lmc = 2,
	.num_gids = 2,
	.gid = { { .gid.raw = { [0] = 0xFE, [15] = 8 }, .type = GID_IB },
		{ .gid.raw = { [0] = 0xFE, [15] = 9 }, .type = GID_IB } },
	.sl_to_vl = { 0, 4 },
};

/* LIDs distinguish the paths. The alternate path is updated when its port's attributes change. */
static void
test_alternate_path_follows_its_port(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.encap = ENCAP_IB,
		.retry_cnt = 7,
		.scripted = true,
	});
	struct port_attr port = ib_port;
	struct error err = { "" };
	struct qp_attr attr;
	struct packet pkt;

	*state = p;
	attr = qp_attr_of(&p->a);
	attr.alt.pkey_index = 1;
	attr.alt.src_path_bits = 3;
	attr.alt.sgid_index = 1;
	attr.alt.av.sl = 1;
	attr.alt.av.port = 9; /* ignored: alt.port decides */
	attr.path_mig_state = MIG_REARM;
	assert_int_equal(modify_attr(&p->a, &attr, ALT_PATH_MIG, &err), 0);
	rc_path_changed(p->a.w, 1, &port);
	attr = info_of(&p->a).attr;
	assert_int_equal(attr.alt.av.slid, 0x53);
	assert_int_equal(attr.alt.av.vl, 4);
	assert_int_equal(attr.alt.av.sgid.raw[15], 9);
	assert_int_equal(attr.alt.pkey, 0x8123);
	/* the path in use is of port 0 */
	assert_int_equal(attr.av.slid, 1);
	assert_int_equal(attr.pkey, 0xFFFF);
	port.lid = 0x60;
	rc_path_changed(p->a.w, 0, &port);
	attr = info_of(&p->a).attr;
	assert_int_equal(attr.av.slid, 0x60);
	assert_int_equal(attr.alt.av.slid, 0x53);

	/* back to the LID that the scripted b uses, which arms */
	port = ib_port;
	port.lid = 1;
	port.lmc = 0;
	rc_path_changed(p->a.w, 0, &port);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	ack_m(p, 201, false);
	expect_state(&p->a, "ARMED");
	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 202");
	pkt = sent_packet(&p->a, 0);
	assert_int_equal(pkt.port, 1);
	assert_int_equal(pkt.slid, 0x53);
	assert_int_equal(pkt.dlid, 18);
	assert_int_equal(pkt.vl, 4);
	assert_int_equal(pkt.pkey, 0x8123);
	/* from now on the attributes of port 1 count */
	port = ib_port;
	port.lid = 0x70;
	port.pkey[1] = 0x8124;
	port.gid[0].gid.raw[15] = 4;
	port.gid[1].gid.raw[15] = 5;
	rc_path_changed(p->a.w, 0, &port);
	assert_int_equal(info_of(&p->a).attr.av.slid, 0x53);
	rc_path_changed(p->a.w, 1, &port);
	attr = info_of(&p->a).attr;
	assert_int_equal(attr.av.slid, 0x73);
	assert_int_equal(attr.av.sgid.raw[15], 5);
	assert_int_equal(attr.pkey, 0x8124);
}

/* The alternate path has a next hop of its own. */
static void
test_alternate_next_hop(void **state)
{
	struct pair *p = *state;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct error err = { "" };

	attr.alt.neighbour = 7;
	attr.path_mig_state = MIG_REARM;
	assert_int_equal(modify_attr(&p->a, &attr, ALT_PATH_MIG, &err), 0);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	ack_m(p, 201, false);
	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	assert_int_equal(info_of(&p->a).attr.neighbour, 7);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	assert_int_equal(p->a.path->neighbour, 7);
}

/* CNPs have the M bit of the migration state, as all packets. */
static void
test_m_bit_of_notifications(void **state)
{
	struct pair *p = *state;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct error err = { "" };

	attr.alt.av.traffic_class = 3; /* ECN CE */
	attr.path_mig_state = MIG_REARM;
	assert_int_equal(modify_attr(&p->a, &attr, ALT_PATH_MIG, &err), 0);
	must_ask(&p->b, MIG_REARM, ALT_PATH_MIG);
	write_both_ways(p);
	must_ask(&p->a, MIG_MIGRATED, QP_ATTR_PATH_MIG_STATE);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	deliver(&p->a);
	migrate_expect_migrated(&p->b);
	assert_int_equal(counters_of(&p->b).np_cnp_sent, 1);
	assert_int_equal(p->b.sent[p->b.seen].frame[14 + 20 + 8], 0x81);
	assert_int_equal(p->b.sent[p->b.seen].frame[14 + 20 + 8 + 1], 0x40);
	assert_int_equal(p->b.sent[p->b.seen].port, 1);
}

static int
migrate_ib_setup(void **state)
{
	*state = pair_create(&(struct pair_config){ .encap = ENCAP_IB, .retry_cnt = 0 });
	return 0;
}

static void
test_native_ib_migrates(void **state)
{
	struct pair *p = *state;

	arm(p);
	kill_port(p, 0);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	exchange(p);
	expect_tx(&p->a, "WRITE Only 202");
	pass(p, TTR(14));
	exchange(p);
	expect_tx(&p->a, "WRITE Only 202");
	assert_int_equal(sent_packet(&p->a, 0).slid, 17);
	assert_int_equal(sent_packet(&p->a, 0).dlid, 18);
	assert_true(sent_packet(&p->a, 0).migreq);
	expect_wc(&p->a, 1, WC_SUCCESS);
	migrate_expect_migrated(&p->a);
	migrate_expect_migrated(&p->b);
}

#define PAIR(t)     cmocka_unit_test_setup_teardown(t, pair_setup, pair_teardown)
#define SCRIPTED(t) cmocka_unit_test_setup_teardown(t, scripted_setup, pair_teardown)
#define OWN(t)      cmocka_unit_test_teardown(t, pair_teardown)
#define IB(t)       cmocka_unit_test_setup_teardown(t, migrate_ib_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR(test_rearm_until_a_packet_with_m_0),
		SCRIPTED(test_m_1_does_not_arm),
		SCRIPTED(test_a_refused_packet_does_not_arm),
		PAIR(test_m_bit_by_state),
		OWN(test_m_bit_as_configured_before_rearm),
		OWN(test_armed_on_the_way_up),
		PAIR(test_migration_requests_are_checked),
		OWN(test_exhausted_retries_migrate),
		OWN(test_lost_answers_execute_once),
		OWN(test_naks_migrate_too),
		OWN(test_implied_naks_migrate_too),
		OWN(test_exhausted_retries_after_migration_are_an_error),
		OWN(test_only_armed_migrates),
		OWN(test_rnr_retries_do_not_migrate),
		OWN(test_modify_to_migrated_migrates),
		OWN(test_a_response_migrates),
		OWN(test_both_migrate_at_once),
		OWN(test_migration_by_the_peer_reloads_the_counter),
		OWN(test_alternate_path_starts_its_timer),
		OWN(test_migrates_while_draining),
		OWN(test_rearm_and_back),
		OWN(test_wrong_path_is_path_mig_err),
		OWN(test_alternate_path_with_m_0),
		SCRIPTED(test_unarmed_ignores_m),
		OWN(test_old_path_is_refused),
		OWN(test_damaged_packet_does_not_migrate),
		OWN(test_alternate_pkey),
		PAIR(test_no_alternate_path_is_all_zero),
		OWN(test_alternate_path_follows_its_port),
		SCRIPTED(test_alternate_next_hop),
		PAIR(test_m_bit_of_notifications),
		IB(test_native_ib_migrates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
