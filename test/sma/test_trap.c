/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Traps (smp-sma 5, seed 004): when they are sent, repeated, held and finished. */

#include <errno.h>
#include <string.h>

#include "trap_fixture.h"

static void
expect_at(struct bench *b, uint64_t at)
{
	const struct sent *s = bench_next(b);

	/* not before its time, and at most one tick of the wheel later */
	assert_in_range(s->at, at, at + 1024);
}

static void
trap_expect_state(const struct sma_trap *t, const char *name)
{
	assert_string_equal(sma_trap_state_name(t->info.state), name);
}

/* seed 004: Method Trap, AttributeID Notice, SLID own, DLID MasterSMLID; smp-sma 5: the rest */
static void
test_trap_is_an_smp_to_the_master_sm(void **state)
{
	static const uint8_t header[8] = { 0x01, 0x01, 0x01, 0x05, 0, 0, 0, 0 };
	static const uint8_t after_tid[48] = { 0x00, 0x02 }; /* modifier and M_Key 0 */
	static const uint8_t after_data[128];
	static const uint8_t notice[64] = { 0x81, 0x00, 0x00, 0x01, 0x00, 0x81, 0x00,
		0x05, [13] = 0x05, [14] = 0x01 };
	struct bench *b = *state;
	const struct sent *s;
	struct sma_trap *t = bench_raise(b, 0);

	assert_non_null(t);
	bench_pass(b, 1);
	s = bench_next(b);
	assert_int_equal(s->at, 0);
	assert_int_equal(s->pkt.vl, 15);
	assert_int_equal(s->pkt.sl, 0);
	assert_int_equal(s->pkt.slid, 5);
	assert_int_equal(s->pkt.dlid, 7);
	assert_false(s->pkt.has_grh);
	assert_int_equal(s->pkt.opcode, 0x64);
	assert_int_equal(s->pkt.dest_qpn, 0);
	assert_int_equal(s->pkt.src_qpn, 0);
	assert_int_equal(s->pkt.qkey, 0);
	assert_int_equal(s->pkt.pkey, 0xFFFF);
	assert_memory_equal(s->mad, header, 8);
	assert_true(get_be64(s->mad + 8) == t->info.tid);
	assert_memory_equal(s->mad + 16, after_tid, 48);
	assert_memory_equal(s->mad + 64, notice, 64);
	assert_memory_equal(s->mad + 128, after_data, 128);
	trap_expect_state(t, "SENT");
	assert_int_equal(b->p->counters.traps_raised, 1);
	assert_int_equal(b->p->counters.traps_sent, 1);
}

static void
test_repeated_at_the_interval_then_given_up(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0);

	bench_pass(b, 3500 * MS);
	expect_at(b, 0);
	expect_at(b, 1000 * MS);
	expect_at(b, 2000 * MS);
	expect_at(b, 3000 * MS);
	trap_expect_state(t, "SENT");
	assert_int_equal(t->info.sent, 4);
	bench_pass(b, 100000 * MS);
	bench_expect_silence(b);
	trap_expect_state(t, "GIVEN_UP");
	assert_int_equal(b->p->counters.traps_given_up, 1);
	assert_int_equal(b->p->counters.traps_sent, 4);
}

static void
test_repeats_keep_their_tid(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0), *other = bench_raise(b, 1);
	unsigned int i, ours = 0;

	assert_true(t->info.tid != other->info.tid);
	bench_pass(b, 3500 * MS);
	assert_int_equal(b->num_sent, 8);
	for (i = 0; i < 8; i++)
		ours += get_be64(b->sent[i].mad + 8) == t->info.tid;
	assert_int_equal(ours, 4);
}

/* intervals >= 4.096 us * 2^SubnetTimeOut */
static void
test_interval_is_subnet_timeout_when_longer(void **state)
{
	struct bench *b = *state;

	b->p->info[SUBNET_TIMEOUT] = 18;
	bench_raise(b, 0);
	bench_pass(b, 2500 * MS);
	expect_at(b, 0);
	expect_at(b, 1073741824);
	expect_at(b, 2147483648);
	bench_expect_silence(b);
}

static void
test_subnet_timeout_that_grows_meanwhile_counts(void **state)
{
	struct bench *b = *state;

	bench_raise(b, 0);
	bench_pass(b, 500 * MS);
	b->p->info[SUBNET_TIMEOUT] = 18;
	bench_pass(b, 1000 * MS);
	expect_at(b, 0);
	expect_at(b, 1073741824);
	bench_expect_silence(b);
}

/* 31: 4.096 us * 2^31 is 2.4 hours */
static void
test_largest_subnet_timeout_does_not_overflow(void **state)
{
	struct bench *b = *state;

	b->p->info[SUBNET_TIMEOUT] = 31;
	bench_raise(b, 0);
	bench_pass(b, 8796093 * MS);
	expect_at(b, 0);
	bench_expect_silence(b);
	bench_pass(b, 1 * MS);
	expect_at(b, 8796093022208);
}

/* --- held --- */

static void
test_held_until_active(void **state)
{
	static const uint8_t states[] = { 1, INIT, ARMED };
	struct bench *b = *state;
	struct sma_trap *t;
	unsigned int i;

	for (i = 0; i < sizeof(states); i++) {
		bench_port_state(b->p, states[i]);
		t = bench_raise(b, (uint16_t)i);
		bench_pass(b, 5000 * MS);
		bench_expect_silence(b);
		trap_expect_state(t, "HELD");
	}
	sma_trap_resume(b->p, b->now);
	bench_pass(b, 1);
	bench_expect_silence(b);
	bench_port_state(b->p, ACTIVE);
	sma_trap_resume(b->p, b->now);
	bench_pass(b, 1);
	expect_at(b, 15000 * MS + 1);
	expect_at(b, 15000 * MS + 1);
	expect_at(b, 15000 * MS + 1);
	trap_expect_state(t, "SENT");
}

static void
test_held_until_an_sm_is_known(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t;

	bench_port_info(b->p, MASTER_SM_LID, 0);
	t = bench_raise(b, 0);
	bench_pass(b, 5000 * MS);
	bench_expect_silence(b);
	trap_expect_state(t, "HELD");
	bench_port_info(b->p, MASTER_SM_LID, 9);
	sma_trap_resume(b->p, b->now);
	bench_pass(b, 1);
	assert_int_equal(bench_next(b)->pkt.dlid, 9);
}

/* After a short or long absence: a trap already sent waits for the rest of its interval. */
static void
test_port_that_goes_away_holds_its_traps(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0);

	bench_pass(b, 900 * MS);
	expect_at(b, 0);
	bench_port_state(b->p, ARMED);
	bench_pass(b, 200 * MS);
	trap_expect_state(t, "HELD");
	bench_port_state(b->p, ACTIVE);
	sma_trap_resume(b->p, b->now);
	bench_pass(b, 100 * MS);
	expect_at(b, 1100 * MS);
	trap_expect_state(t, "SENT");
	bench_pass(b, 700 * MS);
	bench_expect_silence(b);
	b->p->info[SUBNET_TIMEOUT] = 18;
	bench_port_state(b->p, ARMED);
	bench_pass(b, 200 * MS); /* 1000 ms after it was sent, and the timeout has grown */
	trap_expect_state(t, "HELD");
	bench_port_state(b->p, ACTIVE);
	sma_trap_resume(b->p, b->now);
	bench_pass(b, 70 * MS);
	bench_expect_silence(b);
	trap_expect_state(t, "SENT");
	bench_pass(b, 10 * MS);
	expect_at(b, 1100 * MS + 1073741824);
}

/* only an Active port sends Traps; while it was Active the sink was full */
static void
test_what_waits_for_the_sink_is_held_too(void **state)
{
	struct bench *b = *state;
	const struct sent *s;
	struct sma_trap *t;

	b->room = 0;
	t = bench_raise(b, 0);
	bench_pass(b, 1);
	bench_port_state(b->p, INIT);
	sma_trap_resume(b->p, b->now);
	trap_expect_state(t, "HELD");
	b->room = 10;
	bench_pass(b, 1500 * MS);
	bench_expect_silence(b);
	b->room = 0;
	bench_port_state(b->p, ACTIVE);
	sma_trap_resume(b->p, b->now);
	bench_pass(b, 1);
	bench_port_info(b->p, LID, 50);
	bench_port_info(b->p, MASTER_SM_LID, 70);
	sma_trap_resume(b->p, b->now);
	b->room = 10;
	bench_pass(b, 1);
	s = bench_next(b);
	assert_int_equal(s->pkt.slid, 50);
	assert_int_equal(s->pkt.dlid, 70);
	assert_int_equal(get_be16(s->mad + 64 + 6), 50);
	bench_expect_silence(b);
}

static void
test_next_repeat_uses_new_lids(void **state)
{
	struct bench *b = *state;
	const struct sent *s;

	bench_raise(b, 0);
	bench_pass(b, 500 * MS);
	bench_next(b);
	bench_port_info(b->p, LID, 0x1234);
	bench_port_info(b->p, MASTER_SM_LID, 0x0567);
	bench_pass(b, 1000 * MS);
	s = bench_next(b);
	assert_int_equal(s->pkt.slid, 0x1234);
	assert_int_equal(s->pkt.dlid, 0x0567);
	assert_int_equal(get_be16(s->mad + 64 + 6), 0x1234);
	assert_int_equal(get_be16(s->mad + 64 + 12), 0x1234);
}

/* --- the sink and the sessions --- */

static void
test_interval_counts_from_when_it_has_left(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t;

	b->room = 0;
	t = bench_raise(b, 0);
	bench_pass(b, 1500 * MS);
	bench_expect_silence(b);
	assert_int_equal(t->info.sent, 0);
	assert_int_equal(b->p->counters.traps_sent, 0);
	b->room = 10;
	bench_pass(b, 1200 * MS);
	expect_at(b, 1500 * MS);
	expect_at(b, 2500 * MS);
	bench_expect_silence(b);
}

static void
nothing(void *arg, const struct mad_result *result)
{
	(void)arg;
	(void)result;
}

/* All of the manager's sessions are in use: -ENOSPC. */
static void
test_refused_call_is_tried_again_at_the_next_interval(void **state)
{
	static const uint8_t mad[MAD_LEN] = { 1, 0x03, 2, 0x01 };
	struct mad_call other = { .to = { .av = { .encap = ENCAP_IB, .dlid = 99,
		.vlan = PATH_NO_VLAN, }, .qpn = 1, .qkey = MAD_QKEY, .pkey = 0xFFFF, },
		.protocol = MAD_SINGLE, .data_offset = 64, .mad = mad, .timeout = 900000 * MS,
		.taker = { .done = nothing }, };
	mad_handle h[BENCH_SESSIONS];
	struct bench *b = *state;
	struct sma_trap *t;
	unsigned int i;

	for (i = 0; i < BENCH_SESSIONS; i++)
		assert_int_equal(mad_call(b->mad, &other, 0, &h[i]), 0);
	assert_int_equal(mad_call(b->mad, &other, 0, &h[0]), -ENOSPC);
	bench_pass(b, 1);
	b->seen = b->num_sent;
	t = bench_raise(b, 0);
	trap_expect_state(t, "SENT");
	bench_pass(b, 500 * MS);
	for (i = 0; i < BENCH_SESSIONS; i++)
		assert_int_equal(mad_cancel(b->mad, h[i], b->now), 0);
	bench_pass(b, 400 * MS);
	bench_expect_silence(b);
	assert_int_equal(t->info.sent, 0);
	bench_pass(b, 200 * MS);
	expect_at(b, 1000 * MS + 1);
	assert_int_equal(t->info.sent, 1);
}

static void
test_repressed_while_it_waits_for_the_sink(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0);

	bench_pass(b, 500 * MS);
	expect_at(b, 0);
	b->room = 0;
	bench_pass(b, 1000 * MS); /* the repeat waits */
	bench_repress(b, t->info.notice);
	trap_expect_state(t, "REPRESSED");
	b->room = 10;
	bench_pass(b, 5000 * MS);
	bench_expect_silence(b);
	assert_int_equal(b->p->counters.traps_sent, 1);
}

/* --- repressed --- */

static void
test_repress_ends_it(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0), *other = bench_raise(b, 1);

	bench_pass(b, 500 * MS);
	bench_repress(b, t->info.notice);
	trap_expect_state(t, "REPRESSED");
	trap_expect_state(other, "SENT");
	assert_int_equal(b->p->counters.traps_repressed, 1);
	bench_pass(b, 1000 * MS);
	assert_int_equal(b->num_sent, 3); /* the other one's repeat */
	assert_int_equal(b->p->counters.repress_unmatched, 0);
}

/* no details: number and type are enough */
static void
test_repress_without_details_ends_all_of_that_number_and_type(void **state)
{
	static const uint8_t notice[SMA_DATA_LEN] = { 0x81, 0, 0, 1, 0, 129, 0, 77, 0x80, 9 };
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0), *other = bench_raise(b, 1), *third;
	uint32_t id;

	assert_int_equal(sma_trap_send(b->sma, 0, 130, NULL, b->now, &id, NULL), 0);
	third = &b->p->trap[2];
	bench_pass(b, 1);
	bench_repress(b, notice);
	trap_expect_state(t, "REPRESSED");
	trap_expect_state(other, "REPRESSED");
	trap_expect_state(third, "SENT");
	assert_int_equal(b->p->counters.repress_unmatched, 0);
}

static void
test_repress_of_something_else_is_counted(void **state)
{
	static const struct {
		unsigned int at;
		uint8_t xor ;
	} other[] = { { 0, 0x05 }, { 5, 0x01 }, { 14, 0x02 }, { 63, 0x40 } };
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0);
	uint8_t notice[SMA_DATA_LEN];
	unsigned int i;

	bench_pass(b, 1);
	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		memcpy(notice, t->info.notice, sizeof(notice));
		notice[other[i].at] ^= other[i].xor ;
		bench_repress(b, notice);
		trap_expect_state(t, "SENT");
		assert_int_equal(b->p->counters.repress_unmatched, i + 1);
	}
	assert_int_equal(b->p->counters.traps_repressed, 0);
}

/* IssuerLID, Toggle, Count and the LID at the time of sending do not matter */
static void
test_repress_with_the_lid_of_before(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0);
	uint8_t notice[SMA_DATA_LEN];

	bench_pass(b, 1);
	memcpy(notice, t->info.notice, sizeof(notice));
	bench_port_info(b->p, LID, 50);
	bench_pass(b, 1500 * MS);
	put_be16(notice + 6, 0xBEEF);
	put_be16(notice + 8, 0x8007);
	bench_repress(b, notice);
	trap_expect_state(t, "REPRESSED");
}

static void
test_repress_said_twice_is_not_unmatched(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0);

	bench_pass(b, 1);
	bench_repress(b, t->info.notice);
	bench_repress(b, t->info.notice);
	assert_int_equal(b->p->counters.traps_repressed, 1);
	assert_int_equal(b->p->counters.repress_unmatched, 0);
}

static void
test_what_was_never_sent_is_not_repressed(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t;

	bench_port_state(b->p, INIT);
	t = bench_raise(b, 0);
	bench_repress(b, t->info.notice);
	trap_expect_state(t, "HELD");
	assert_int_equal(b->p->counters.repress_unmatched, 1);
}

static void
test_repress_by_id(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0);

	assert_int_equal(sma_trap_repress(b->sma, t->info.id + 1, b->now), -ENOENT);
	assert_int_equal(sma_trap_repress(b->sma, 0, b->now), -ENOENT);
	trap_expect_state(t, "SENT");
	assert_int_equal(sma_trap_repress(b->sma, t->info.id, b->now), 0);
	trap_expect_state(t, "REPRESSED");
	assert_int_equal(sma_trap_repress(b->sma, t->info.id, b->now), -ENOENT);
	bench_pass(b, 5000 * MS);
	bench_expect_silence(b);
}

/* --- raised --- */

static void
test_same_cause_only_counts(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0);
	uint8_t notice[SMA_DATA_LEN];

	memcpy(notice, t->info.notice, sizeof(notice));
	put_be16(notice + 6, 99);
	put_be16(notice + 8, 0xFFFF);
	bench_pass(b, 1500 * MS);
	assert_ptr_equal(sma_trap_raise(b->p, notice, b->now), t);
	assert_ptr_equal(bench_raise(b, 0), t);
	bench_pass(b, 1);
	assert_int_equal(t->info.raised, 3);
	assert_int_equal(t->info.sent, 2);
	assert_int_equal(b->p->counters.traps_raised, 3);
	assert_ptr_not_equal(bench_raise(b, 1), t);
	notice[0] ^= 1; /* another type */
	assert_ptr_not_equal(sma_trap_raise(b->p, notice, b->now), t);
}

static void
test_cause_that_is_over_makes_a_new_trap(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 0), *again;
	uint64_t tid = t->info.tid;
	uint32_t id = t->info.id;

	bench_pass(b, 1);
	bench_repress(b, t->info.notice);
	again = bench_raise(b, 0);
	bench_pass(b, 1);
	assert_int_equal(again->info.id, id + 1);
	assert_true(again->info.tid != tid);
	assert_int_equal(again->info.raised, 1);
	assert_int_equal(again->info.sent, 1);
	assert_int_equal(b->num_sent, 2);
}

static void
test_rate_is_limited_per_port(void **state)
{
	static const struct sma_limits two_a_second = {
		.trap_interval_ms = 60000,
		.trap_retries = 1,
		.trap_rate = 2,
		.trap_burst = 3,
	};
	struct bench *b = *state;
	uint32_t id;

	bench_limits(b, &two_a_second);
	assert_non_null(bench_raise(b, 0));
	assert_non_null(bench_raise(b, 1));
	assert_non_null(bench_raise(b, 2));
	assert_null(bench_raise(b, 3));
	assert_non_null(bench_raise(b, 0)); /* pending already: takes no token */
	assert_int_equal(b->p->counters.traps_limited, 1);
	bench_pass(b, 499 * MS);
	assert_null(bench_raise(b, 3));
	bench_pass(b, 1 * MS);
	assert_non_null(bench_raise(b, 3));
	assert_null(bench_raise(b, 4));
	assert_int_equal(b->p->counters.traps_limited, 3);
	assert_int_equal(b->p->counters.traps_raised, 8);
	assert_int_equal(b->num_sent, 3);
	assert_int_equal(sma_trap_send(b->sma, 1, 130, NULL, b->now, &id, NULL), 0);
}

static void
test_places_of_traps_that_are_over_are_reused_oldest_first(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t[SMA_TRAPS_MAX];
	unsigned int i;

	for (i = 0; i < SMA_TRAPS_MAX; i++)
		t[i] = bench_raise(b, (uint16_t)i);
	bench_pass(b, 1);
	assert_null(bench_raise(b, 100));
	assert_int_equal(b->p->counters.traps_limited, 1);
	bench_repress(b, t[9]->info.notice);
	bench_repress(b, t[4]->info.notice);
	assert_ptr_equal(bench_raise(b, 101), t[4]);
	bench_pass(b, 100 * MS);
	bench_repress(b, t[4]->info.notice); /* that of a new trap now */
	assert_ptr_equal(bench_raise(b, 102), t[9]);
	bench_pass(b, 100 * MS);
	assert_ptr_equal(bench_raise(b, 103), t[4]);
	bench_pass(b, 100 * MS);
	assert_null(bench_raise(b, 104));
}

static struct sma_trap *
raise_bad_key(struct bench *b, uint32_t key)
{
	const struct sma_bad_key k = { .key = key };
	uint8_t notice[SMA_DATA_LEN];

	sma_notice_key(b->p, &k, notice);
	return sma_trap_raise(b->p, notice, b->now);
}

/* anti-flood: anybody can send bad keys, so 8 of the 32 places are not for them */
static void
test_bad_keys_leave_places_to_the_port(void **state)
{
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < 24; i++)
		assert_non_null(raise_bad_key(b, i));
	assert_null(raise_bad_key(b, 24));
	for (i = 0; i < 8; i++)
		assert_non_null(bench_raise(b, (uint16_t)i));
	assert_null(bench_raise(b, 8));
	assert_int_equal(b->p->counters.traps_limited, 2);
}

/* nor is the last token */
static void
test_bad_keys_leave_a_token_to_the_port(void **state)
{
	static const struct sma_limits limits = {
		.trap_interval_ms = 60000,
		.trap_retries = 1,
		.trap_rate = 2,
		.trap_burst = 3,
	};
	struct bench *b = *state;

	bench_limits(b, &limits);
	assert_non_null(raise_bad_key(b, 0));
	assert_non_null(raise_bad_key(b, 1));
	assert_null(raise_bad_key(b, 2));
	assert_non_null(bench_raise(b, 0));
	assert_null(bench_raise(b, 1));
	bench_pass(b, 500 * MS);
	assert_null(raise_bad_key(b, 3));
	assert_non_null(bench_raise(b, 2));
}

/* --- the operator --- */

static void
test_walk_newest_first_within_a_port(void **state)
{
	struct sma_trap_info info;
	struct bench *b = *state;
	uint32_t cursor = 0, id[4];

	assert_false(sma_trap_next(b->sma, &cursor, b->now, &info));
	assert_int_equal(sma_trap_send(b->sma, 0, 129, NULL, b->now, &id[0], NULL), 0);
	bench_pass(b, 5 * MS);
	assert_int_equal(sma_trap_send(b->sma, 1, 144, NULL, b->now, &id[1], NULL), 0);
	assert_int_equal(sma_trap_send(b->sma, 0, 131, NULL, b->now, &id[2], NULL), 0);
	assert_int_equal(sma_trap_repress(b->sma, id[0], b->now), 0);
	bench_pass(b, 2 * MS);
	assert_true(sma_trap_next(b->sma, &cursor, b->now, &info));
	assert_int_equal(info.id, id[2]);
	assert_int_equal(info.number, 131);
	assert_int_equal(info.type, 1);
	assert_int_equal(info.age, 2 * MS);
	assert_true(sma_trap_next(b->sma, &cursor, b->now, &info));
	assert_int_equal(info.id, id[0]);
	assert_int_equal(info.age, 7 * MS);
	assert_int_equal(info.state, SMA_TRAP_REPRESSED);
	assert_true(sma_trap_next(b->sma, &cursor, b->now, &info));
	assert_int_equal(info.id, id[1]);
	assert_int_equal(info.port, 1);
	assert_int_equal(info.number, 144);
	assert_int_equal(info.type, 4);
	assert_false(sma_trap_next(b->sma, &cursor, b->now, &info));
}

static void
test_send_refuses_what_a_ca_does_not_send(void **state)
{
	static const uint16_t numbers[] = { 0, 64, 128, 132, 256, 257, 258, 259 };
	struct error err;
	struct bench *b = *state;
	uint32_t id;
	unsigned int i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_int_equal(sma_trap_send(b->sma, 0, numbers[i], NULL, b->now, &id, &err),
			-EINVAL);
	assert_int_equal(sma_trap_send(b->sma, 2, 129, NULL, b->now, &id, &err), -EINVAL);
	assert_int_equal(sma_trap_send(b->sma, 0xFFFF, 129, NULL, b->now, &id, &err), -EINVAL);
	assert_int_equal(b->p->counters.traps_raised, 0);
}

static void
test_send_beyond_the_places_is_busy(void **state)
{
	struct error err = { 0 };
	struct bench *b = *state;
	uint32_t id;
	unsigned int i;

	for (i = 0; i < SMA_TRAPS_MAX; i++)
		bench_raise(b, (uint16_t)(1 + i));
	assert_int_equal(sma_trap_send(b->sma, 0, 129, NULL, b->now, &id, &err), -EBUSY);
	assert_string_not_equal(err.text, "");
}

static void
test_notice_by_hand_is_sent_as_it_is(void **state)
{
	struct bench *b = *state;
	uint8_t notice[SMA_DATA_LEN];
	const struct sent *s;
	uint32_t id;

	memset(notice, 0xA5, sizeof(notice));
	put_be16(notice + 4, 129); /* the agent does not change an operator's details */
	assert_int_equal(sma_trap_send(b->sma, 0, 0, notice, b->now, &id, NULL), 0);
	bench_pass(b, 1);
	s = bench_next(b);
	put_be16(notice + 6, 5);
	put_be16(notice + 8, 0);
	assert_memory_equal(s->mad + 64, notice, SMA_DATA_LEN);
}

static void
test_newest_notice_that_is_not_repressed(void **state)
{
	struct bench *b = *state;
	struct sma_trap *t = bench_raise(b, 3), *newer = bench_raise(b, 4);
	uint8_t notice[SMA_DATA_LEN];

	bench_pass(b, 1);
	assert_true(sma_trap_newest(b->p, notice));
	assert_int_equal(get_be16(notice + 62), 4);
	bench_repress(b, newer->info.notice);
	assert_true(sma_trap_newest(b->p, notice));
	assert_int_equal(get_be16(notice + 62), 3);
	bench_repress(b, t->info.notice);
	assert_false(sma_trap_newest(b->p, notice));
}

/* MasterSMLID is our own: lib/link sees to it that it comes back */
static void
test_sm_on_the_same_port(void **state)
{
	struct bench *b = *state;
	const struct sent *s;

	bench_port_info(b->p, MASTER_SM_LID, 5);
	bench_raise(b, 0);
	bench_pass(b, 1);
	s = bench_next(b);
	assert_int_equal(s->pkt.slid, 5);
	assert_int_equal(s->pkt.dlid, 5);
}

/* Traps that wait for the sink or for their repeat: teardown checks for timers and sessions. */
static void
test_end_of_the_agent_stops_everything(void **state)
{
	struct bench *b = *state;

	bench_raise(b, 0);
	bench_pass(b, 1);
	b->room = 0;
	bench_raise(b, 1);
	bench_pass(b, 1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_trap_is_an_smp_to_the_master_sm),
		T(test_repeated_at_the_interval_then_given_up),
		T(test_repeats_keep_their_tid),
		T(test_interval_is_subnet_timeout_when_longer),
		T(test_subnet_timeout_that_grows_meanwhile_counts),
		T(test_largest_subnet_timeout_does_not_overflow),
		T(test_held_until_active),
		T(test_held_until_an_sm_is_known),
		T(test_port_that_goes_away_holds_its_traps),
		T(test_what_waits_for_the_sink_is_held_too),
		T(test_next_repeat_uses_new_lids),
		T(test_interval_counts_from_when_it_has_left),
		T(test_refused_call_is_tried_again_at_the_next_interval),
		T(test_repressed_while_it_waits_for_the_sink),
		T(test_repress_ends_it),
		T(test_repress_without_details_ends_all_of_that_number_and_type),
		T(test_repress_of_something_else_is_counted),
		T(test_repress_with_the_lid_of_before),
		T(test_repress_said_twice_is_not_unmatched),
		T(test_what_was_never_sent_is_not_repressed),
		T(test_repress_by_id),
		T(test_same_cause_only_counts),
		T(test_cause_that_is_over_makes_a_new_trap),
		T(test_rate_is_limited_per_port),
		T(test_places_of_traps_that_are_over_are_reused_oldest_first),
		T(test_bad_keys_leave_places_to_the_port),
		T(test_bad_keys_leave_a_token_to_the_port),
		T(test_walk_newest_first_within_a_port),
		T(test_send_refuses_what_a_ca_does_not_send),
		T(test_send_beyond_the_places_is_busy),
		T(test_notice_by_hand_is_sent_as_it_is),
		T(test_newest_notice_that_is_not_repressed),
		T(test_sm_on_the_same_port),
		T(test_end_of_the_agent_stops_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
