/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Limits: sessions and memory per peer and in total, what is reclaimed in which order, how a flood
 * affects others; keys, owners and TransactionIDs. The test plays b.
 */

#include <errno.h>
#include <string.h>

#include "harness.h"
#include "mad/session.h"

/* GetTable of a long table from 10.0.x.y = who. */
static enum verdict
ask_from(struct harness *h, uint16_t who, uint64_t tid)
{
	uint8_t mad[MAD_LEN];

	h->tid = tid;
	h->outcome = MAD_STREAM;
	h->table_bytes = 100 * 192;
	return say_from(h, v1_mad(h, mad, 0x12, 0, 0, 0, 4), who, 1);
}

static enum verdict
ack_from(struct harness *h, uint16_t who, uint64_t tid, uint32_t segment)
{
	uint8_t mad[MAD_LEN];

	h->tid = tid;
	return say_from(h, v1_mad(h, mad, 0x12, SA1_ACK, segment, 0, 4), who, 1);
}

static void
table_forget_sent(struct harness *h)
{
	skip_sent(&h->a);
	h->a.delivered = h->a.sent;
}

/*
 * RFC 6298: the averages follow a round trip by an eighth; a session takes a much shorter one at
 * once.
 */
static void
test_averages_of_round_trips(void **state)
{
	static struct mad_worker w;
	struct mad_session s = { .w = &w };

	(void)state;
	mad_rtt_sample(&s, 800);
	assert_int_equal(w.srtt, 800);
	assert_int_equal(s.srtt, 800);
	mad_rtt_sample(&s, 1600);
	assert_int_equal(w.srtt, 900);
	assert_int_equal(s.srtt, 900);
	mad_rtt_sample(&s, 400);
	assert_int_equal(w.srtt, 838);
	assert_int_equal(s.srtt, 400);
	w.srtt = s.srtt = 0;
	mad_rtt_sample(&s, 0); /* 0 would mean that there is none */
	assert_int_equal(w.srtt, 1);
}

/* One address has at most max_sessions_per_peer (32); other addresses are not affected */
static void
test_sessions_per_peer(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	for (i = 0; i < 32; i++)
		assert_int_equal(ask_from(h, 2, i), VERDICT_DATAGRAM);
	table_forget_sent(h);
	assert_int_equal(ask_from(h, 2, 32), VERDICT_MAD_REFUSED);
	expect_tx(&h->a, "92 single status 0x0100");
	assert_int_equal(counters_of(&h->a).sessions_refused, 1);
	assert_int_equal(ask_from(h, 3, 1), VERDICT_DATAGRAM);
	assert_int_equal(sessions_of(&h->a), 33);
}

/* A list of the sessions has each one, wherever in the pool it is. */
static void
test_list_has_each_session_of_a_large_pool(void **state)
{
	enum { SESSIONS = 200 };
	struct mad_limits limits = harness_limits;
	struct mad_session_info info;
	uint8_t mad[MAD_LEN];
	struct harness *h;
	unsigned int i;

	(void)state;
	limits.max_sessions = SESSIONS;
	h = harness_create(&(struct harness_config){ .limits = limits, .scripted = true });
	for (i = 0; i < SESSIONS; i++) {
		struct mad_call c;

		h->tid = i;
		call_init(&h->a, &c, mad, 0x12, MAD_METHOD_SESSION);
		assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	}
	for (i = 0; i < SESSIONS; i++) { /* the list loses its first one */
		uint32_t cursor = 0;

		assert_int_equal(sessions_of(&h->a), SESSIONS - i);
		assert_true(mad_session_next(h->a.w, &cursor, h->now, &info));
		assert_int_equal(mad_cancel(h->a.w, info.handle, h->now), 0);
	}
	assert_int_equal(sessions_of(&h->a), 0);
	harness_destroy(h);
}

/* An address that floods the pool loses its own oldest sessions to newcomers */
static void
test_greediest_gives_way(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	for (i = 0; i < 32; i++)
		ask_from(h, 2, i);
	for (i = 0; i < 32; i++) {
		ask_from(h, 100 + i, 1);
		table_forget_sent(h);
	}
	assert_int_equal(sessions_of(&h->a), 64);
	/* it has acknowledged, so its address is proven and it is not reclaimed */
	assert_int_equal(ack_from(h, 2, 0, 2), VERDICT_DATAGRAM);
	assert_int_equal(ask_from(h, 200, 1), VERDICT_DATAGRAM);
	table_forget_sent(h);
	assert_int_equal(sessions_of(&h->a), 64);
	assert_int_equal(ack_from(h, 2, 0, 6), VERDICT_DATAGRAM);
	assert_int_equal(ack_from(h, 2, 1, 2), VERDICT_MAD_UNMATCHED); /* the oldest half-open */
	assert_int_equal(ack_from(h, 2, 2, 2), VERDICT_DATAGRAM);
	assert_int_equal(ack_from(h, 100, 1, 2), VERDICT_DATAGRAM);
	assert_int_equal(h->released, 1);
}

/* A flood from many addresses: the oldest half-open session is reclaimed; proven ones stay */
static void
test_flood_from_everywhere(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	ask_from(h, 2, 1);
	ack_from(h, 2, 1, 2);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(ask_from(h, 1000 + i, 1), VERDICT_DATAGRAM);
		table_forget_sent(h);
	}
	assert_int_equal(sessions_of(&h->a), 64);
	assert_int_equal(ack_from(h, 2, 1, 6), VERDICT_DATAGRAM);
	expect_tx(&h->a, "92 7", "92 8", "92 9", "92 10");
	assert_int_equal(h->released, 1000 - 63);
}

/* An address's only session does not give way once it is proven: a newcomer is refused */
static void
test_pool_of_proven_sessions(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	for (i = 0; i < 64; i++) {
		ask_from(h, 100 + i, 1);
		assert_int_equal(ack_from(h, 100 + i, 1, 2), VERDICT_DATAGRAM);
		table_forget_sent(h);
	}
	assert_int_equal(ask_from(h, 2, 1), VERDICT_MAD_REFUSED);
	assert_int_equal(h->released, 0);
}

/* Of proven sessions the oldest of an address with more than its fair share gives way, no other */
static void
test_greedy_proven_give_way(void **state)
{
	struct mad_limits limits = harness_limits;
	struct harness *h;
	unsigned int i;

	(void)state;
	limits.max_sessions_per_peer = 4;
	h = harness_create(&(struct harness_config){ .limits = limits, .scripted = true });
	for (i = 0; i < 64; i++) { /* 4 of each of 15 addresses, and one each of 4 */
		ask_from(h, i < 60 ? 100 + i / 4 : 300 + i, i % 4);
		ack_from(h, i < 60 ? 100 + i / 4 : 300 + i, i % 4, 2);
		table_forget_sent(h);
	}
	assert_int_equal(sessions_of(&h->a), 64);
	for (i = 0; i < 26; i++) { /* two from each of 13 newcomers */
		assert_int_equal(ask_from(h, 200 + i / 2, i % 2), VERDICT_DATAGRAM);
		table_forget_sent(h);
		assert_int_equal(ack_from(h, 200 + i / 2, i % 2, 2), VERDICT_DATAGRAM);
		table_forget_sent(h);
		assert_int_equal(sessions_of(&h->a), 64);
	}
	assert_int_equal(h->released, 26);
	assert_int_equal(counters_of(&h->a).sessions_reclaimed, 26);
	for (i = 0; i < 60; i++) /* the oldest of each, and the second of 11, have ended */
		assert_int_equal(ack_from(h, 100 + i / 4, i % 4, 6),
			i % 4 < (i / 4 < 11 ? 2 : 1) ? VERDICT_MAD_UNMATCHED : VERDICT_DATAGRAM);
	for (i = 60; i < 64; i++)
		assert_int_equal(ack_from(h, 300 + i, i % 4, 6), VERDICT_DATAGRAM);
	/* 64 sessions of 32 addresses: who has two has its share, and gets no third one */
	assert_int_equal(ask_from(h, 200, 2), VERDICT_MAD_REFUSED);
	table_forget_sent(h);
	assert_int_equal(h->released, 26);
	harness_destroy(h);
}

/* A flood from one prefix displaces itself; another address keeps all that it had before */
static void
test_half_open_of_one_prefix_give_way(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	ask_from(h, 0x202, 1);
	ask_from(h, 0x202, 2);
	ask_from(h, 0x303, 1);
	for (i = 0; i < 250; i++) {
		assert_int_equal(ask_from(h, 0x101 + i, 1), VERDICT_DATAGRAM);
		table_forget_sent(h);
	}
	assert_int_equal(sessions_of(&h->a), 64);
	/* each of them may ask for more, too */
	assert_int_equal(ask_from(h, 0x303, 2), VERDICT_DATAGRAM);
	table_forget_sent(h);
	assert_int_equal(ack_from(h, 0x202, 1, 2), VERDICT_DATAGRAM);
	assert_int_equal(ack_from(h, 0x202, 2, 2), VERDICT_DATAGRAM);
	assert_int_equal(ack_from(h, 0x303, 1, 2), VERDICT_DATAGRAM);
	assert_int_equal(ack_from(h, 0x303, 2, 2), VERDICT_DATAGRAM);
	assert_int_equal(h->released, 250 - 61 + 1);
}

/* Who guesses Acks for many addresses of a prefix has its fair share of the pool, not all of it */
static void
test_proven_of_one_prefix_give_way(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	for (i = 0; i < 64; i++) {
		ask_from(h, 0x101 + i, 1);
		assert_int_equal(ack_from(h, 0x101 + i, 1, 2), VERDICT_DATAGRAM);
		table_forget_sent(h);
	}
	for (i = 0; i < 32; i++) {
		assert_int_equal(ask_from(h, 0x201 + i, 1), VERDICT_DATAGRAM);
		table_forget_sent(h);
		assert_int_equal(ack_from(h, 0x201 + i, 1, 2), VERDICT_DATAGRAM);
		table_forget_sent(h);
		assert_int_equal(h->released, i + 1);
	}
	assert_int_equal(counters_of(&h->a).sessions_reclaimed, 32);
	assert_int_equal(ask_from(h, 0x221, 1), VERDICT_MAD_REFUSED); /* both have half of all */
	assert_int_equal(ask_from(h, 0x1FF, 1), VERDICT_MAD_REFUSED);
	table_forget_sent(h);
	for (i = 0; i < 64; i++) /* the oldest have ended */
		assert_int_equal(ack_from(h, 0x101 + i, 1, 6),
			i < 32 ? VERDICT_MAD_UNMATCHED : VERDICT_DATAGRAM);
}

/* Lingering sessions are reclaimed before any other, oldest first */
static void
test_lingering_goes_first(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	h->outcome = MAD_ANSWER;
	for (i = 0; i < 2; i++) { /* two Sets that linger */
		h->tid = i;
		say_from(h, v1_mad(h, mad, 0x02, 0, 0, 0, 0), 300 + i, 1);
	}
	for (i = 0; i < 62; i++) {
		ask_from(h, 100 + i, 1);
		table_forget_sent(h);
	}
	assert_int_equal(ask_from(h, 2, 1), VERDICT_DATAGRAM);
	table_forget_sent(h);
	assert_int_equal(h->released, 0);
	h->requests = 0;
	h->outcome = MAD_ANSWER;
	h->tid = 1; /* the younger one still answers its repeat from memory */
	say_from(h, v1_mad(h, mad, 0x02, 0, 0, 0, 0), 301, 1);
	assert_int_equal(h->requests, 0);
}

/* A flood of first segments: sessions and memory are limited, and are freed by timers */
static void
test_first_only_flood(void **state)
{
	struct harness *h = *state;
	uint64_t used, total;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		h->tid = i;
		say_from(h, v1_mad(h, mad, 0x14, SA1_FIRST, 1, 100000, 0), i % 10, 1);
		table_forget_sent(h);
	}
	assert_int_equal(sessions_of(&h->a), 64);
	mad_worker_memory(h->a.w, &used, &total);
	assert_true(used <= 64 * (8192 + 2048));
	for (i = 0; i < 9; i++) {
		pass(h, SEGMENT_TIMEOUT);
		table_forget_sent(h);
	}
	expect_clean(h);
	assert_int_equal(h->requests, 0);
}

/* Memory limits per peer and in total: a request that exceeds them ends with a status */
static void
test_memory_is_bounded(void **state)
{
	struct harness_config c = { .limits = harness_limits, .scripted = true };
	uint64_t used, total;
	struct harness *h;
	uint8_t mad[MAD_LEN];
	enum verdict v = VERDICT_DATAGRAM;
	uint32_t n;

	(void)state;
	c.limits.max_bytes_per_peer = 10 * 4096;
	h = harness_create(&c);
	for (n = 1; v == VERDICT_DATAGRAM; n++) {
		v = say_v1(h, 0x14, n == 1 ? SA1_FIRST : 0, n, 40960, 0);
		assert_true(n < 1000);
	}
	/* nine chunks of data and one chunk of slots: 36864 bytes are 192 segments */
	assert_int_equal(v, VERDICT_MAD_REFUSED);
	assert_int_equal(n - 1, 193);
	mad_worker_memory(h->a.w, &used, &total);
	assert_true(used < 2048);
	/* another peer has its own share */
	h->tid++;
	v = say_from(h, v1_mad(h, mad, 0x14, SA1_FIRST, 1, 40960, 0), 9, 1);
	assert_int_equal(v, VERDICT_DATAGRAM);
	harness_destroy(h);
}

/* A segment of a Config of 40 kB from 10.0.x.y = who. */
static enum verdict
config_from(struct harness *h, uint16_t who, uint32_t segment, uint64_t sm_key)
{
	uint8_t mad[MAD_LEN];

	v1_mad(h, mad, 0x14, segment == 1 ? SA1_FIRST : 0, segment, 40000, 0);
	put_be64(mad + SA1_OFF_SM_KEY, sm_key);
	return say_from(h, mad, who, 1);
}

static struct harness *
harness_of_few_chunks(void)
{
	struct mad_limits limits = harness_limits;

	limits.max_sessions = 1024;
	limits.max_bytes = 64 * 4096;
	limits.max_bytes_per_peer = 32 * 4096;
	return harness_create(&(struct harness_config){ .limits = limits, .scripted = true });
}

/* Memory for requests runs out long before sessions do: the oldest request gives way to another */
static void
test_bodies_of_strangers_give_way(void **state)
{
	struct harness *h = harness_of_few_chunks();
	unsigned int i, n;

	(void)state;
	for (i = 0; i < 32; i++) { /* two chunks each */
		assert_int_equal(config_from(h, 100 + i, 1, 0), VERDICT_DATAGRAM);
		table_forget_sent(h);
	}
	/* newcomers store as much as the longest GetMulti needs, and the oldest have ended */
	for (n = 1; n <= 43; n++)
		assert_int_equal(config_from(h, 2, n, 0), VERDICT_DATAGRAM);
	table_forget_sent(h);
	assert_int_equal(counters_of(&h->a).sessions_reclaimed, 2);
	assert_int_equal(sessions_of(&h->a), 31);
	for (i = 200; i < 1000; i++) {
		assert_int_equal(config_from(h, i, 1, 0), VERDICT_DATAGRAM);
		table_forget_sent(h);
	}
	assert_int_equal(sessions_of(&h->a), 32);
	assert_int_equal(counters_of(&h->a).sessions_refused, 0);
	harness_destroy(h);
}

/* Who holds most memory gives way first, and to nobody who holds as much */
static void
test_greediest_body_gives_way(void **state)
{
	struct harness *h = harness_of_few_chunks();
	unsigned int i, n;

	(void)state;
	for (n = 1; n <= 100; n++) { /* six chunks */
		assert_int_equal(config_from(h, 2, n, 0), VERDICT_DATAGRAM);
		table_forget_sent(h);
	}
	for (i = 0; i < 29; i++)
		assert_int_equal(config_from(h, 100 + i, 1, 0), VERDICT_DATAGRAM);
	table_forget_sent(h);
	for (n = 1; n <= 106; n++) { /* another takes its place */
		assert_int_equal(config_from(h, 3, n, 0), VERDICT_DATAGRAM);
		table_forget_sent(h);
		assert_int_equal(counters_of(&h->a).sessions_reclaimed, 1);
	}
	assert_int_equal(sessions_of(&h->a), 30);
	assert_int_equal(config_from(h, 3, 107, 0), VERDICT_MAD_REFUSED);
	assert_int_equal(counters_of(&h->a).sessions_refused, 1);
	assert_int_equal(counters_of(&h->a).sessions_reclaimed, 1);
	harness_destroy(h);
}

/* A flood of short requests from one prefix ends none of another, longer than each of them */
static void
test_bodies_of_one_prefix_give_way(void **state)
{
	struct harness *h = harness_of_few_chunks();
	unsigned int i, n;

	(void)state;
	for (n = 1; n <= 43; n++) /* three chunks */
		assert_int_equal(config_from(h, 0x202, n, 0), VERDICT_DATAGRAM);
	for (i = 0; i < 200; i++) {
		assert_int_equal(config_from(h, 0x101 + i, 1, 0), VERDICT_DATAGRAM);
		table_forget_sent(h);
	}
	assert_true(counters_of(&h->a).sessions_reclaimed > 150);
	assert_int_equal(config_from(h, 0x202, 44, 0), VERDICT_DATAGRAM);
	harness_destroy(h);
}

/* A Config of a peer that the agent trusts gives way to nobody, and finds room */
static void
test_trusted_body_stays(void **state)
{
	struct harness *h = harness_of_few_chunks();
	unsigned int i, n;

	(void)state;
	for (i = 0; i < 32; i++)
		config_from(h, 100 + i, 1, 0);
	for (n = 1; n < 100; n++) {
		assert_int_equal(config_from(h, 2, n, 7), VERDICT_DATAGRAM);
		for (i = 0; i < 20; i++) {
			config_from(h, 1000 + n * 20 + i, 1, 0);
			table_forget_sent(h);
		}
	}
	assert_int_equal(counters_of(&h->a).sessions_refused, 0);
	harness_destroy(h);
}

/* The agent refuses a Config at its First: nothing of it is stored, and one answer tells why */
static void
test_config_is_refused_at_its_first(void **state)
{
	struct harness *h = harness_of_few_chunks();
	uint64_t used, total;

	(void)state;
	h->admits = SA_STATUS_REQ_INVALID;
	assert_int_equal(config_from(h, 2, 1, 0), VERDICT_DATAGRAM);
	expect_tx(&h->a, "94 single status 0x0200");
	assert_int_equal(config_from(h, 2, 2, 0), VERDICT_MAD_UNMATCHED);
	expect_silence(&h->a);
	assert_int_equal(sessions_of(&h->a), 0);
	mad_worker_memory(h->a.w, &used, &total);
	assert_int_equal(used, 0);
	assert_int_equal(h->requests, 0);
	assert_int_equal(config_from(h, 2, 1, 7), VERDICT_DATAGRAM);
	assert_int_equal(sessions_of(&h->a), 1);
	harness_destroy(h);
}

/* An agent's pool is empty: it ends a request by its handle, or the one that would give way */
static void
test_agent_ends_a_request(void **state)
{
	struct harness *h = *state;
	mad_handle later, stream[2];
	uint32_t cursor = 0;
	struct mad_session_info info;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ask_from(h, 2, i);
		assert_true(mad_session_next(h->a.w, &cursor, h->now, &info));
		stream[i] = info.handle;
	}
	ack_from(h, 2, 1, 2);
	assert_int_equal(mad_give_way(h->a.w, stream[0], false), 0);
	assert_int_equal(h->released, 1);
	assert_int_equal(mad_give_way(h->a.w, stream[0], true), -ENOENT);
	assert_int_equal(mad_give_way(h->a.w, stream[1], false), -EBUSY);
	assert_int_equal(mad_give_way(h->a.w, stream[1], true), 0);
	assert_int_equal(counters_of(&h->a).sessions_reclaimed, 2);
	for (i = 0; i < 3; i++)
		ask_from(h, 3, i);
	ask_from(h, 5, 1);
	h->outcome = MAD_LATER;
	say_from(h, v1_mad(h, (uint8_t[MAD_LEN]){ 0 }, 0x12, 0, 0, 0, 4), 4, 1);
	later = h->handle;
	assert_true(mad_make_room(h->a.w, later));
	assert_true(mad_make_room(h->a.w, later));
	table_forget_sent(h);
	assert_int_equal(ack_from(h, 3, 1, 2), VERDICT_MAD_UNMATCHED);
	assert_int_equal(ack_from(h, 3, 2, 2), VERDICT_DATAGRAM);
	assert_false(mad_make_room(h->a.w, 0));
}

/* Two sessions of one TID: of another QP, another method, another class version */
static void
test_keys(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	h->outcome = MAD_LATER;
	say_v1(h, 0x12, 0, 0, 0, 4);
	say_v1(h, 0x13, 0, 0, 0, 4);
	say_from(h, v1_mad(h, mad, 0x12, 0, 0, 0, 4), 2, 9);
	say_from(h, v1_mad(h, mad, 0x12, 0, 0, 0, 4), 3, 1);
	assert_int_equal(sessions_of(&h->a), 4);
	assert_int_equal(h->requests, 4);
	say_v1(h, 0x12, 0, 0, 0, 4);
	assert_int_equal(sessions_of(&h->a), 4);
}

/* A handle is valid for one session only, although sessions are reused */
static void
test_stale_handle(void **state)
{
	struct harness *h = *state;
	mad_handle old;
	uint8_t mad[MAD_LEN];

	h->outcome = MAD_LATER;
	say_v1(h, 0x12, 0, 0, 0, 4);
	old = h->handle;
	v1_mad(h, mad, 0x92, 0, 0, 0, 0);
	assert_int_equal(mad_answer(h->a.w, old, mad, h->now), 0);
	transmit(&h->a);
	h->tid++;
	say_v1(h, 0x12, 0, 0, 0, 4);
	assert_int_equal(mad_answer(h->a.w, old, mad, h->now), -ENOENT);
	assert_int_equal(mad_answer(h->a.w, 0, mad, h->now), -ENOENT);
	assert_int_equal(mad_answer(h->a.w, UINT64_MAX, mad, h->now), -ENOENT);
	assert_int_equal(mad_answer(h->a.w, h->handle, mad, h->now), 0);
}

/* Find sessions by handle and by walk, anywhere in the pool */
static void
test_sessions_seen(void **state)
{
	struct harness *h = *state;
	struct mad_session_info info, walked;
	mad_handle handles[32];
	uint32_t cursor = 0, n;
	uint8_t mad[MAD_LEN];

	h->outcome = MAD_LATER;
	for (n = 0; n < 32; n++) {
		h->tid = 100 + n;
		say_v1(h, 0x12, 0, 0, 0, 4);
		handles[n] = h->handle;
	}
	h->tid = 100;
	for (n = 0; n < 31; n++) { /* all but the last end, answered with a status */
		v1_mad(h, mad, 0x92, 0, 0, 0, 0);
		assert_int_equal(mad_answer(h->a.w, handles[n], mad, h->now), 0);
	}
	transmit(&h->a);
	assert_false(mad_session_get(h->a.w, handles[0], h->now, &info));
	assert_false(mad_session_get(h->a.w, 0, h->now, &info));
	pass(h, 3);
	assert_true(mad_session_get(h->a.w, handles[31], h->now, &info));
	assert_int_equal(info.tid, 131);
	assert_int_equal(info.age, 3);
	assert_true(mad_session_next(h->a.w, &cursor, h->now, &walked));
	assert_int_equal(walked.handle, handles[31]);
	assert_false(mad_session_next(h->a.w, &cursor, h->now, &walked));
	assert_false(mad_session_next(h->a.w, &cursor, h->now, &walked));
}

/* All packets of a transaction have one owner, in either role; other peers are spread */
static void
test_owner(void **state)
{
	struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = MAD_QKEY,
		.src_qpn = 1,
	};
	unsigned int count[4] = { 0 }, moved = 0, i;
	uint8_t mad[MAD_LEN] = { 1, 3, 1, 0x12 };
	struct packet pkt = {
		.opcode = UD_SEND_ONLY,
		.payload = mad,
		.payload_len = MAD_LEN,
		.dest_qpn = 1,
		.src_qpn = h.src_qpn,
	};

	(void)state;
	for (i = 0; i < 4000; i++) {
		unsigned int owner;

		put_be64(mad + MAD_OFF_TID, i);
		mad[MAD_OFF_METHOD] = 0x12;
		owner = mad_owner(42, 4, &pkt);
		assert_true(owner < 4);
		count[owner]++;
		mad[MAD_OFF_METHOD] = 0x13;
		put_be32(mad + 40, i);
		assert_int_equal(mad_owner(42, 4, &pkt), owner);
		moved += mad_owner(43, 4, &pkt) != owner;
	}
	assert_in_range(moved, 2850, 3150); /* unpredictable without the secret */
	for (i = 0; i < 4; i++)
		assert_in_range(count[i], 850, 1150);
	pkt.dest_qpn = 0; /* QP0 is worker 0's */
	for (i = 0; i < 100; i++) {
		put_be64(mad + MAD_OFF_TID, i);
		assert_int_equal(mad_owner(42, 4, &pkt), 0);
	}
	pkt.dest_qpn = 1;
	mad[MAD_OFF_CLASS] = MAD_CLASS_PERFORMANCE; /* worker 0 owns the PMA */
	for (i = moved = 0; i < 100; i++) {
		put_be64(mad + MAD_OFF_TID, i);
		mad[MAD_OFF_METHOD] = MAD_GET;
		assert_int_equal(mad_owner(42, 4, &pkt), 0);
		mad[MAD_OFF_METHOD] = MAD_GET_RESP; /* but an answer goes to its requester */
		moved += mad_owner(42, 4, &pkt) != 0;
	}
	assert_true(moved > 0);
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM; /* so are the answers to Reports */
	mad[MAD_OFF_METHOD] = MAD_REPORT | MAD_RESPONSE;
	for (i = 0; i < 100; i++) {
		put_be64(mad + MAD_OFF_TID, i);
		assert_int_equal(mad_owner(42, 4, &pkt), 0);
	}
	pkt.payload_len = 20; /* and nothing beyond the packet is read */
	assert_true(mad_owner(42, 4, &pkt) < 4);
}

/* Our TIDs bring the answer to the asking worker and cannot be guessed */
static void
test_call_tids(void **state)
{
	struct harness_config c = {
		.limits = harness_limits,
		.scripted = true,
		.workers = 8,
		.id = 5,
	};
	struct harness *h = harness_create(&c);
	uint64_t last = 0, tid;
	struct packet pkt = {
		.opcode = UD_SEND_ONLY,
		.payload_len = MAD_LEN,
		.dest_qpn = 1,
		.src_qpn = 1,
		.sgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 2 },
	};
	uint8_t mad[MAD_LEN], answer[MAD_LEN];
	struct mad_call call;
	unsigned int i;

	(void)state;
	for (i = 0; i < 64; i++) {
		call_init(&h->a, &call, mad, 0x12, MAD_METHOD_MULTI_RESPONSE);
		assert_int_equal(mad_call(h->a.w, &call, h->now, NULL), 0);
		transmit(&h->a);
		memcpy(answer, next_sent(&h->a), MAD_LEN);
		tid = get_be64(answer + MAD_OFF_TID);
		assert_true(tid >> 32 != last >> 32);
		last = tid;
		answer[MAD_OFF_METHOD] = 0x92;
		pkt.payload = answer;
		assert_int_equal(mad_owner(0x0123456789ABCDEF, 8, &pkt), 5);
	}
	/* the pool is empty, all of it our own: no more calls, and the source is given back */
	call_init(&h->a, &call, mad, 0x14, MAD_METHOD_MULTI_REQUEST);
	call.source = pattern_source(h, 1000);
	assert_int_equal(mad_call(h->a.w, &call, h->now, NULL), -ENOSPC);
	assert_int_equal(h->released, 1);
	assert_int_equal(h->done, 0);
	harness_destroy(h);
}

/* A request of transaction 0x77, from LID 2, whose router stands for all GIDs behind it */
static enum verdict
ask_by_router(struct harness *h, uint8_t who, bool grh)
{
	const struct wire_headers headers = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = MAD_QKEY,
		.src_qpn = 1,
	};
	struct av av = harness_av(&h->b);
	uint8_t mad[MAD_LEN];

	av.grh = grh;
	av.sgid.raw[15] = who;
	return say_by(h, &av, &headers, v1_mad(h, mad, 0x12, 0, 0, 0, 0));
}

/* native IB: a peer behind a router is identified by its GID, one of the own subnet by its LID */
static void
test_peers_behind_a_router(void **state)
{
	struct mad_limits limits = harness_limits;
	struct harness *h;
	unsigned int i;

	(void)state;
	limits.max_sessions_per_peer = 1;
	h = harness_create(&(struct harness_config){
		.limits = limits,
		.scripted = true,
		.ib = true,
	});
	h->outcome = MAD_LATER;
	for (i = 1; i <= 8; i++) {
		ask_by_router(h, 9 + i % 4, true);
		assert_int_equal(sessions_of(&h->a), i <= 4 ? i : 4);
	}
	assert_int_equal(counters_of(&h->a).repeated_requests, 4);
	ask_by_router(h, 9, false);
	ask_by_router(h, 10, false); /* no GRH, no GID: the same once more */
	assert_int_equal(sessions_of(&h->a), 5);
	assert_int_equal(counters_of(&h->a).repeated_requests, 5);
	assert_int_equal(counters_of(&h->a).sessions_refused, 0);
	/* and one address has no more than its share */
	h->tid++;
	assert_int_equal(ask_by_router(h, 9, true), VERDICT_MAD_REFUSED);
	assert_int_equal(ask_by_router(h, 9, false), VERDICT_MAD_REFUSED);
	harness_destroy(h);
}

/* The answer to a call over a router must come from that GID, not from another behind the router */
static void
test_call_over_a_router(void **state)
{
	struct harness *h = harness_create(&(struct harness_config){
		.scripted = true,
		.ib = true,
	});
	const struct wire_headers headers = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = MAD_QKEY,
		.src_qpn = 1,
	};
	struct av av = harness_av(&h->b);
	struct mad_call call;
	uint8_t mad[MAD_LEN];
	struct packet pkt;

	(void)state;
	call_init(&h->a, &call, mad, MAD_GET, 0);
	call.to.av.grh = true;
	call.to.av.sl = 5;
	assert_int_equal(mad_call(h->a.w, &call, h->now, NULL), 0);
	transmit(&h->a);
	next_packet(&h->a, &pkt);
	assert_true(pkt.has_grh);
	assert_int_equal(pkt.vl, 6); /* as the port's table maps SL 5 */
	memcpy(mad, pkt.payload, MAD_LEN);
	mad[MAD_OFF_METHOD] = MAD_GET_RESP;
	assert_int_equal(say_by(h, &av, &headers, mad), VERDICT_MAD_UNMATCHED);
	av.grh = true;
	av.sgid.raw[15] = 77;
	assert_int_equal(say_by(h, &av, &headers, mad), VERDICT_MAD_UNMATCHED);
	av.sgid.raw[15] = 2;
	assert_int_equal(say_by(h, &av, &headers, mad), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	harness_destroy(h);
}

/* Calls and sessions end properly when the worker is destroyed */
static void
test_destroy(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct mad_call call;

	ask_from(h, 2, 1);
	call_init(&h->a, &call, mad, 0x12, MAD_METHOD_MULTI_RESPONSE);
	assert_int_equal(mad_call(h->a.w, &call, h->now, NULL), 0);
	mad_worker_destroy(h->a.w);
	h->a.w = NULL;
	assert_int_equal(h->released, 1);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_CANCELLED);
}

#define T(test) cmocka_unit_test_setup_teardown(test, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_sessions_per_peer),
		cmocka_unit_test(test_list_has_each_session_of_a_large_pool),
		T(test_greediest_gives_way),
		T(test_flood_from_everywhere),
		T(test_pool_of_proven_sessions),
		cmocka_unit_test(test_greedy_proven_give_way),
		T(test_half_open_of_one_prefix_give_way),
		T(test_proven_of_one_prefix_give_way),
		T(test_lingering_goes_first),
		T(test_first_only_flood),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_bodies_of_strangers_give_way),
		cmocka_unit_test(test_greediest_body_gives_way),
		cmocka_unit_test(test_bodies_of_one_prefix_give_way),
		cmocka_unit_test(test_trusted_body_stays),
		cmocka_unit_test(test_config_is_refused_at_its_first),
		T(test_agent_ends_a_request),
		T(test_keys),
		T(test_stale_handle),
		T(test_sessions_seen),
		cmocka_unit_test(test_averages_of_round_trips),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_call_tids),
		cmocka_unit_test(test_peers_behind_a_router),
		cmocka_unit_test(test_call_over_a_router),
		T(test_destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
