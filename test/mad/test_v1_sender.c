/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class version 1, responder of GetTable and GetBulk: the sender's table of sa-multipacket A5, line
 * by line, and the rules of A3 and A4 for its packets. The test plays b.
 */

#include <errno.h>
#include <string.h>

#include "harness.h"

/* Ask for a table of this many bytes with this Window. */
static void
sender_ask(struct harness *h, uint64_t bytes, uint16_t window)
{
	h->outcome = MAD_STREAM;
	h->table_bytes = bytes;
	assert_int_equal(say_v1(h, 0x12, 0, 0, 0, window), VERDICT_DATAGRAM);
}

static enum verdict
sender_ack(struct harness *h, uint32_t segment, uint16_t window)
{
	return say_v1(h, 0x12, SA1_ACK, segment, 0, window);
}

static enum verdict
resend(struct harness *h, uint32_t segment)
{
	return say_v1(h, 0x12, SA1_RESEND, segment, 0, 0);
}

/* A4: the sum of valid bytes in the first segment, of the last one's own in the last */
static void
test_payload_length_in_first_and_last(void **state)
{
	struct harness *h = *state;
	const uint8_t *mad;
	uint32_t i;

	sender_ask(h, 2 * 192 + 16, 64);
	mad = next_sent(&h->a);
	assert_int_equal(mad[MAD_OFF_METHOD], 0x92);
	assert_int_equal(get_be64(mad + MAD_OFF_TID), 0x77);
	assert_int_equal(get_be32(mad + 40), 1);
	assert_int_equal(get_be32(mad + 44), 400);
	assert_int_equal(mad[48], 0x80);
	assert_int_equal(get_be16(mad + 50), 64);
	for (i = 0; i < 192; i++)
		assert_int_equal(mad[64 + i], pattern(i));
	mad = next_sent(&h->a);
	assert_int_equal(get_be32(mad + 40), 2);
	assert_int_equal(get_be32(mad + 44), 0);
	assert_int_equal(mad[48], 0);
	mad = next_sent(&h->a);
	assert_int_equal(get_be32(mad + 40), 3);
	assert_int_equal(get_be32(mad + 44), 16);
	assert_int_equal(mad[48], 0x20);
	assert_int_equal(mad[64 + 15], pattern(399));
	assert_int_equal(mad[64 + 16], 0); /* no stale bytes behind the data */
	assert_int_equal(mad[255], 0);
	expect_silence(&h->a);
}

static void
test_full_last_segment(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 384, 64);
	expect_tx(&h->a, "92 First 1 of 384", "92 Last 2 of 192");
}

/* A3: a single-packet response has FragmentFlag 0 and SegmentNumber 0; no Ack is due */
static void
test_one_packet_is_no_series(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 192, 64);
	expect_tx(&h->a, "92 single of 192");
	expect_clean(h);
	sender_ask(h, 0, 64);
	expect_tx(&h->a, "92 single of 0");
	expect_clean(h);
	assert_int_equal(counters_of(&h->a).sessions_completed, 2);
}

/* A3, the other reading: bit 0 is the least significant */
static void
test_flag_order_lsb(void **state)
{
	struct harness_config c = { .limits = harness_limits, .scripted = true };
	struct harness *h;

	(void)state;
	c.limits.v1_flags_lsb = true;
	h = harness_create(&c);
	harness_prove(h);
	sender_ask(h, 400, 64);
	assert_int_equal(next_sent(&h->a)[48], 0x01);
	assert_int_equal(next_sent(&h->a)[48], 0x00);
	assert_int_equal(next_sent(&h->a)[48], 0x04);
	assert_int_equal(say_v1(h, 0x12, 0x20, 3, 0, 64), VERDICT_DATAGRAM); /* Ack */
	expect_clean(h);
	harness_destroy(h);
}

/* A5 BURST: the request's Window n is sent, then an Ack is awaited; n more after it */
static void
test_window_is_the_requests(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 10 * 192, 4);
	expect_tx(&h->a, "92 First 1 of 1920", "92 2", "92 3", "92 4");
	assert_string_equal(state_of(&h->a), "WAIT");
	assert_int_equal(sender_ack(h, 4, 4), VERDICT_DATAGRAM);
	expect_tx(&h->a, "92 5", "92 6", "92 7", "92 8");
	assert_int_equal(sender_ack(h, 8, 4), VERDICT_DATAGRAM);
	expect_tx(&h->a, "92 9", "92 Last 10 of 192");
	assert_int_equal(sender_ack(h, 10, 4), VERDICT_DATAGRAM);
	expect_silence(&h->a);
	expect_clean(h);
}

/*
 * Anti-amplification: whatever Window is asked for, two segments until the first Ack proves the
 * address. The responses tell so (table 33-10: packets sent before the responder pauses).
 */
static void
test_first_burst_is_bounded(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 1500 * 192, 65535);
	assert_int_equal(get_be16(next_sent(&h->a) + SA1_OFF_WINDOW), 2);
	expect_tx(&h->a, "92 2");
	assert_int_equal(sender_ack(h, 2, 65535), VERDICT_DATAGRAM);
	assert_int_equal(get_be16(next_sent(&h->a) + SA1_OFF_WINDOW), 65535);
	expect_segments(&h->a, 0x92, 4, 1499);
	expect_tx(&h->a, "92 Last 1500 of 192");
	assert_int_equal(counters_of(&h->a).unproven, 0);
}

/* An address that acknowledges nothing gets three packets for each of its own, with repeats. */
static void
test_unproven_address_gets_three_for_one(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	sender_ask(h, 1500 * 192, 65535);
	for (i = 0; i < 10; i++)
		pass(h, RESPONSE_TIMEOUT);
	expect_tx(&h->a, "92 First 1 of 288000", "92 2", "92 2");
	expect_clean(h);
	assert_int_equal(counters_of(&h->a).unproven, 6); /* of seven repeats */
	/* a Resend request can be forged as well */
	sender_ask(h, 1500 * 192, 65535);
	expect_tx(&h->a, "92 First 1 of 288000", "92 2");
	for (i = 0; i < 7; i++) {
		h->now += 10 * MS / 2;
		resend(h, 1);
	}
	assert_in_range(h->a.sent - h->a.seen, 7, 3 * 8 - 2);
	for (i = 0; i < 10; i++)
		pass(h, RESPONSE_TIMEOUT);
	assert_in_range(h->a.sent - h->a.seen, 7, 3 * 8 - 2);
	expect_clean(h);
}

/* KeepAlives while the agent prepares leave two packets of the budget for the answer. */
static void
test_unproven_address_gets_few_keepalives(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct mad_source source;
	unsigned int i;

	h->outcome = MAD_LATER;
	say_v1(h, 0x12, 0, 0, 0, 64);
	for (i = 0; i < 100; i++)
		pass(h, PROCESS / 2);
	expect_tx(&h->a, "92 KeepAlive");
	say_v1(h, 0x12, 0, 0, 0, 64); /* it asks again, which pays for three more */
	for (i = 0; i < 100; i++)
		pass(h, PROCESS / 2);
	expect_tx(&h->a, "92 KeepAlive", "92 KeepAlive", "92 KeepAlive");
	source = pattern_source(h, 3 * 192);
	assert_int_equal(mad_stream(h->a.w, h->handle, v1_mad(h, mad, 0x92, 0, 0, 0, 0), &source,
				 h->now),
		0);
	transmit(&h->a);
	expect_tx(&h->a, "92 First 1 of 576", "92 2");
	sender_ack(h, 2, 64);
	expect_tx(&h->a, "92 Last 3 of 192");
}

/* An address that has acknowledged gets the Window it asks for, for ten minutes. */
static void
test_window_of_a_proven_peer(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 2 * 192, 64);
	sender_ack(h, 2, 64);
	expect_clean(h);
	skip_sent(&h->a);
	sender_ask(h, 1500 * 192, 1400);
	assert_int_equal(get_be16(next_sent(&h->a) + SA1_OFF_WINDOW), 1400);
	expect_segments(&h->a, 0x92, 2, 1400);
	expect_silence(&h->a);
	sender_ack(h, 1400, 1400);
	sender_ack(h, 1500, 1400);
	expect_clean(h);
	pass(h, 600000 * MS);
	skip_sent(&h->a);
	h->a.delivered = h->a.sent; /* room in the harness's ring */
	sender_ask(h, 1500 * 192, 1400);
	assert_int_equal(get_be16(next_sent(&h->a) + SA1_OFF_WINDOW), 2);
	expect_tx(&h->a, "92 2");
}

/* A5: Window 0 in a request means 64, and the responses say so */
static void
test_window_zero_is_64(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 100 * 192, 0);
	assert_int_equal(get_be16(next_sent(&h->a) + 50), 64);
	expect_segments(&h->a, 0x92, 2, 64);
	expect_silence(&h->a);
}

/* A5: an Ack never shrinks the window below n, and may widen it */
static void
test_ack_window(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 40 * 192, 4);
	skip_sent(&h->a);
	sender_ack(h, 4, 1);
	expect_segments(&h->a, 0x92, 5, 8);
	expect_silence(&h->a);
	sender_ack(h, 8, 10);
	expect_segments(&h->a, 0x92, 9, 18);
	expect_silence(&h->a);
}

/* A5: an Ack of part of the window opens it from there */
static void
test_ack_inside_window(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 40 * 192, 8);
	skip_sent(&h->a);
	sender_ack(h, 6, 8);
	expect_segments(&h->a, 0x92, 9, 14);
	expect_silence(&h->a);
}

/* A5 WAIT: Ack(s), s <= lastAck or s > lastSent: ignored */
static void
test_acks_of_past_and_future(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 40 * 192, 4);
	skip_sent(&h->a);
	assert_int_equal(sender_ack(h, 5, 64), VERDICT_MAD_DISCARDED);
	assert_int_equal(sender_ack(h, UINT32_MAX, 64), VERDICT_MAD_DISCARDED);
	expect_silence(&h->a);
	sender_ack(h, 4, 4);
	skip_sent(&h->a);
	assert_int_equal(sender_ack(h, 4, 64), VERDICT_MAD_DISCARDED);
	assert_int_equal(sender_ack(h, 0, 64), VERDICT_MAD_DISCARDED);
	expect_silence(&h->a);
	assert_int_equal(counters_of(&h->a).ack_ignored, 4);
	assert_int_equal(counters_of(&h->a).ack_received, 5);
}

/* A5: Resend(s) inside what was sent: again from s, the window's end unchanged */
static void
test_resend_rewinds(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 40 * 192, 8);
	skip_sent(&h->a);
	assert_int_equal(resend(h, 6), VERDICT_DATAGRAM);
	expect_tx(&h->a, "92 6", "92 7", "92 8");
	assert_int_equal(counters_of(&h->a).segments_resent, 3);
	assert_int_equal(counters_of(&h->a).resend_received, 1);
	sender_ack(h, 8, 8);
	expect_segments(&h->a, 0x92, 9, 16);
	expect_silence(&h->a);
}

/* A5: Resend(lastSent + 1) in WAIT: our Ack was lost, go on with the window of the first burst */
static void
test_resend_of_next_is_an_ack(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 10 * 192, 4);
	skip_sent(&h->a);
	assert_int_equal(resend(h, 5), VERDICT_DATAGRAM);
	expect_tx(&h->a, "92 5", "92 6", "92 7", "92 8");
}

/* A5: Resend past that, or past Last: ignored, the timer runs on */
static void
test_resend_of_the_future(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 4 * 192, 4);
	skip_sent(&h->a);
	assert_int_equal(resend(h, 5), VERDICT_MAD_DISCARDED);
	assert_int_equal(resend(h, 6), VERDICT_MAD_DISCARDED);
	assert_int_equal(resend(h, 0), VERDICT_MAD_DISCARDED);
	expect_silence(&h->a);
	assert_string_equal(state_of(&h->a), "WAIT");
}

/* seed 000: a Resend request for an acknowledged segment is answered by status 0x001C at once */
static void
test_acknowledged_segment_asked_again(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	sender_ask(h, 40 * 192, 4);
	sender_ack(h, 4, 4);
	skip_sent(&h->a);
	assert_int_equal(resend(h, 4), VERDICT_DATAGRAM);
	expect_tx(&h->a, "92 single status 0x001c");
	assert_int_equal(counters_of(&h->a).status_sent, 1);
	/* the status may get lost too */
	assert_int_equal(resend(h, 4), VERDICT_DATAGRAM);
	expect_tx(&h->a, "92 single status 0x001c");
	/* if the receiver has given up, the retries tell */
	for (i = 0; i < 7; i++)
		pass(h, RESPONSE_TIMEOUT);
	assert_string_equal(state_of(&h->a), "WAIT");
	pass(h, RESPONSE_TIMEOUT);
	assert_int_equal(counters_of(&h->a).sessions_failed, 1);
	assert_int_equal(h->released, 1);
	expect_clean(h);
}

/* Also after the last Ack, which ends the session */
static void
test_resend_after_the_final_ack(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 6 * 192, 4);
	sender_ack(h, 4, 4);
	sender_ack(h, 6, 4);
	skip_sent(&h->a);
	expect_clean(h);
	resend(h, 6);
	expect_tx(&h->a, "92 single status 0x001c");
	resend(h, 1);
	expect_tx(&h->a, "92 single status 0x001c");
	assert_int_equal(counters_of(&h->a).status_sent, 2);
	assert_int_equal(counters_of(&h->a).sessions_opened, 1);
	/* nothing can be asked again that has no number; an Ack is no question */
	resend(h, 0);
	sender_ack(h, 6, 4);
	expect_silence(&h->a);
}

/* A Resend request overtaken by its Ack ends nothing: both sides continue */
static void
test_overtaken_resend_ends_nothing(void **state)
{
	struct harness *h = *state;

	sender_ask(h, 12 * 192, 4);
	sender_ack(h, 4, 4);
	skip_sent(&h->a);
	resend(h, 3);
	expect_tx(&h->a, "92 single status 0x001c");
	assert_int_equal(sender_ack(h, 8, 4), VERDICT_DATAGRAM);
	expect_segments(&h->a, 0x92, 9, 11);
	expect_tx(&h->a, "92 Last 12 of 192");
	assert_int_equal(sender_ack(h, 12, 4), VERDICT_DATAGRAM);
	assert_int_equal(counters_of(&h->a).sessions_completed, 1);
	expect_clean(h);
}

/* A5: one segment is resent on request seven times; a receiver that asks in one breath, once */
static void
test_resend_requests_are_bounded(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	sender_ask(h, 40 * 192, 4);
	skip_sent(&h->a);
	for (i = 0; i < 7; i++) {
		assert_int_equal(resend(h, 2), VERDICT_DATAGRAM);
		expect_tx(&h->a, "92 2", "92 3", "92 4");
		assert_int_equal(resend(h, 2), VERDICT_MAD_DISCARDED);
		expect_silence(&h->a);
		pass(h, PROCESS);
	}
	assert_int_equal(resend(h, 2), VERDICT_MAD_DISCARDED);
	/* and a receiver never goes back */
	assert_int_equal(resend(h, 4), VERDICT_DATAGRAM);
	assert_int_equal(resend(h, 3), VERDICT_MAD_DISCARDED);
}

/*
 * A slow receiver by the letter: KeepAlives while it works, then the Ack. No packet of 176 is sent
 * twice (table 33-11: a KeepAlive starts the timer anew, whoever sends it).
 */
static void
test_keepalive_and_slow_acks(void **state)
{
	struct harness *h = *state;
	uint32_t n;
	unsigned int i;

	sender_ask(h, 176 * 192, 64);
	for (n = 64; n < 176 + 64; n += 64) {
		for (i = 0; i < 5; i++) {
			pass(h, SEGMENT_TIMEOUT - 1);
			assert_int_equal(say_v1(h, 0x12, SA1_KEEPALIVE, 0, 0, 0), VERDICT_DATAGRAM);
		}
		assert_int_equal(sender_ack(h, n < 176 ? n : 176, 64), VERDICT_DATAGRAM);
	}
	assert_int_equal(counters_of(&h->a).segments_sent, 176);
	assert_int_equal(counters_of(&h->a).segments_resent, 0);
	expect_clean(h);
}

/*
 * It asks again for each copy of a last segment: answered by one window, not one for each request
 */
static void
test_resends_in_one_breath_are_no_storm(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	sender_ask(h, 176 * 192, 64);
	pass(h, 5 * MS);
	for (i = 0; i < 7; i++)
		resend(h, 65); /* stands for the Ack */
	assert_int_equal(counters_of(&h->a).segments_sent, 128);
	sender_ack(h, 128, 64);
	assert_int_equal(counters_of(&h->a).segments_sent, 176);
}

/*
 * A5 WAIT: the ResponseTimer expires: the last segment again, seven times, then the end. Each time
 * the whole 2 x flight + process has passed.
 */
static void
test_retries(void **state)
{
	struct harness *h = *state;
	struct mad_counters c;
	unsigned int i;

	sender_ask(h, 10 * 192, 4);
	skip_sent(&h->a);
	for (i = 0; i < 7; i++) {
		pass(h, RESPONSE_TIMEOUT - 1);
		expect_silence(&h->a);
		assert_int_equal(counters_of(&h->a).timeouts, i);
		pass(h, 1);
		expect_tx(&h->a, "92 4");
		assert_int_equal(counters_of(&h->a).timeouts, i + 1);
	}
	pass(h, RESPONSE_TIMEOUT);
	c = counters_of(&h->a);
	assert_int_equal(c.timeouts, 8);
	assert_int_equal(c.sessions_failed, 1);
	assert_int_equal(c.segments_resent, 7);
	assert_int_equal(c.probes, 0);
	expect_silence(&h->a);
	expect_clean(h);
}

static struct harness *
sender_early_harness(uint8_t subnet_timeout)
{
	struct harness_config c = {
		.limits = harness_limits,
		.scripted = true,
		.subnet_timeout = subnet_timeout,
	};
	struct harness *h;

	c.limits.v1_early_resend = true;
	h = harness_create(&c);
	harness_prove(h);
	return h;
}

/* v1_early_resend: if an Ack is late by round trips, a few probes are sent long before the timer */
static void
test_probes(void **state)
{
	struct harness *h = sender_early_harness(0);
	uint64_t at[8], start;
	unsigned int n = 0;

	(void)state;
	sender_ask(h, 100 * 192, 4);
	pass(h, 100 * US);
	sender_ack(h, 4, 4); /* round trip: 100 us */
	skip_sent(&h->a);
	start = h->now;
	while (h->now < start + RESPONSE_TIMEOUT - 20 * US) {
		pass(h, 10 * US);
		if (h->a.seen < h->a.sent) {
			assert_true(n < 8);
			at[n++] = h->now - start;
			expect_tx(&h->a, "92 8");
		}
	}
	/* 400 us, then twice the time each: 400, 1200, 2800 */
	assert_int_equal(n, 3);
	assert_in_range(at[0], 400 * US, 415 * US);
	assert_in_range(at[1], 1200 * US, 1225 * US);
	assert_in_range(at[2], 2800 * US, 2835 * US);
	assert_int_equal(counters_of(&h->a).probes, 3);
	assert_int_equal(counters_of(&h->a).timeouts, 0);
	/* they are among the seven: the last segment goes out eight times in all */
	for (n = 0; n < 20; n++)
		pass(h, RESPONSE_TIMEOUT);
	assert_int_equal(counters_of(&h->a).segments_resent, 7);
	expect_clean(h);
	harness_destroy(h);
}

/* Three for a packet, however long the ResponseTimeout */
static void
test_probes_are_few(void **state)
{
	struct harness *h = sender_early_harness(18);
	uint64_t end;

	(void)state;
	sender_ask(h, 100 * 192, 4);
	for (end = h->now + 2000 * MS; h->now < end;)
		pass(h, 100 * US);
	assert_int_equal(counters_of(&h->a).probes, 3);
	/* trips seem to take this long: no early probe until a shorter one is measured */
	sender_ack(h, 4, 4);
	pass(h, 100 * MS);
	assert_int_equal(counters_of(&h->a).probes, 3);
	h->now += 1;
	sender_ack(h, 8, 4);
	pass(h, 401 * MS);
	assert_int_equal(counters_of(&h->a).probes, 4);
	assert_int_equal(counters_of(&h->a).timeouts, 0);
	harness_destroy(h);
}

/* Seven retries per packet: an Ack grants seven new ones to the next */
static void
test_retries_are_per_packet(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	sender_ask(h, 10 * 192, 4);
	for (i = 0; i < 7; i++)
		pass(h, RESPONSE_TIMEOUT);
	sender_ack(h, 4, 4);
	for (i = 0; i < 7; i++)
		pass(h, RESPONSE_TIMEOUT);
	assert_string_equal(state_of(&h->a), "WAIT");
	assert_int_equal(counters_of(&h->a).timeouts, 14);
	pass(h, RESPONSE_TIMEOUT);
	expect_clean(h);
}

/* A5 PREP: a KeepAlive within `process`, and again within `process` */
static void
test_keepalive_while_preparing(void **state)
{
	struct harness *h = *state;
	const uint8_t *mad;
	uint64_t last;
	unsigned int n = 0;

	h->outcome = MAD_LATER;
	say_v1(h, 0x12, 0, 0, 0, 64);
	assert_string_equal(state_of(&h->a), "PREP");
	expect_silence(&h->a);
	last = h->now;
	while (n < 20) {
		pass(h, 10 * US);
		if (h->a.seen == h->a.sent) {
			assert_true(h->now - last <= PROCESS);
			continue;
		}
		mad = next_sent(&h->a);
		assert_int_equal(mad[MAD_OFF_METHOD], 0x92);
		assert_int_equal(mad[48], 0x01);
		assert_int_equal(get_be32(mad + 40), 0);
		assert_int_equal(get_be64(mad + MAD_OFF_TID), 0x77);
		assert_true(h->now - last <= PROCESS);
		last = h->now;
		n++;
	}
	assert_int_equal(counters_of(&h->a).keepalive_sent, 20);
}

/* Then the answer comes, as a stream */
static void
test_stream_after_preparation(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct mad_source source;

	h->outcome = MAD_LATER;
	say_v1(h, 0x12, 0, 0, 0, 2);
	source = pattern_source(h, 3 * 192);
	v1_mad(h, mad, 0x92, 0, 0, 0, 0);
	assert_int_equal(mad_stream(h->a.w, h->handle, mad, &source, h->now), 0);
	transmit(&h->a);
	expect_tx(&h->a, "92 First 1 of 576", "92 2");
	/* the session streams already: the handle gives no second answer */
	assert_int_equal(mad_answer(h->a.w, h->handle, mad, h->now), -ENOENT);
	sender_ack(h, 2, 2);
	expect_tx(&h->a, "92 Last 3 of 192");
	sender_ack(h, 3, 2);
	expect_clean(h);
	source = pattern_source(h, 192);
	assert_int_equal(mad_stream(h->a.w, h->handle, mad, &source, h->now), -ENOENT);
	assert_int_equal(h->released, 2);
}

/* A5: a repeated request starts no second stream; in PREP it draws a KeepAlive */
static void
test_repeated_request(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	h->outcome = MAD_LATER;
	say_v1(h, 0x12, 0, 0, 0, 64);
	say_v1(h, 0x12, 0, 0, 0, 64);
	expect_tx(&h->a, "92 KeepAlive");
	assert_int_equal(h->requests, 1);
	v1_mad(h, mad, 0x92, 0, 0, 0, 0);
	mad_answer(h->a.w, h->handle, mad, h->now);
	transmit(&h->a);
	expect_tx(&h->a, "92 single of 0");

	sender_ask(h, 400, 64);
	skip_sent(&h->a);
	assert_int_equal(say_v1(h, 0x12, 0, 0, 0, 64), VERDICT_MAD_DISCARDED);
	expect_silence(&h->a);
	assert_int_equal(h->requests, 2);
	assert_int_equal(counters_of(&h->a).repeated_requests, 2);
}

/* The version was given up: the transfer ends with a status */
static void
test_stale_source(void **state)
{
	struct harness *h = *state;

	h->stale_at = 5 * 192;
	sender_ask(h, 10 * 192, 4);
	skip_sent(&h->a);
	sender_ack(h, 4, 4);
	expect_tx(&h->a, "92 5", "92 single status 0x0100");
	assert_int_equal(h->released, 1);
	assert_int_equal(counters_of(&h->a).status_sent, 1);
}

/* A full sink only delays */
static void
test_full_sink(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	h->a.room = 0;
	sender_ask(h, 10 * 192, 64);
	expect_silence(&h->a);
	assert_true(mad_pending(h->a.w));
	for (i = 1; i <= 10; i++) {
		h->a.room = 1;
		transmit(&h->a);
		assert_int_equal(get_be32(next_sent(&h->a) + 40), i);
	}
	h->a.room = 100;
	transmit(&h->a);
	expect_silence(&h->a);
	assert_false(mad_pending(h->a.w));
	assert_true(counters_of(&h->a).tx_stall > 0);
}

/* A6: GetBulk is answered by the same machine, and control packets carry the requester's method */
static void
test_get_bulk(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_STREAM;
	h->table_bytes = 3 * 192;
	say_v1(h, 0x13, 0, 0, 0, 2);
	expect_tx(&h->a, "93 First 1 of 576", "93 2");
	assert_int_equal(say_v1(h, 0x12, SA1_ACK, 2, 0, 2), VERDICT_MAD_UNMATCHED);
	assert_int_equal(say_v1(h, 0x13, SA1_ACK, 2, 0, 2), VERDICT_DATAGRAM);
	expect_tx(&h->a, "93 Last 3 of 192");
}

/* Reading any segment costs one read of the source at its offset */
static void
test_long_stream(void **state)
{
	struct harness *h = *state;
	uint32_t n;

	sender_ask(h, 1000ull * 192, 100);
	for (n = 100; n <= 1000; n += 100) {
		skip_sent(&h->a);
		assert_int_equal(sender_ack(h, n, 100), VERDICT_DATAGRAM);
		h->a.delivered = h->a.sent;
	}
	assert_int_equal(counters_of(&h->a).segments_sent, 1000);
	assert_int_equal(counters_of(&h->a).segments_resent, 0);
	expect_clean(h);
}

#define T(test) cmocka_unit_test_setup_teardown(test, proven_setup, harness_teardown)
#define U(test) cmocka_unit_test_setup_teardown(test, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_payload_length_in_first_and_last),
		T(test_full_last_segment),
		T(test_one_packet_is_no_series),
		cmocka_unit_test(test_flag_order_lsb),
		T(test_window_is_the_requests),
		U(test_first_burst_is_bounded),
		U(test_unproven_address_gets_three_for_one),
		U(test_unproven_address_gets_few_keepalives),
		U(test_window_of_a_proven_peer),
		T(test_window_zero_is_64),
		T(test_ack_window),
		T(test_ack_inside_window),
		T(test_acks_of_past_and_future),
		T(test_resend_rewinds),
		T(test_resend_of_next_is_an_ack),
		T(test_resend_of_the_future),
		T(test_acknowledged_segment_asked_again),
		T(test_resend_after_the_final_ack),
		T(test_overtaken_resend_ends_nothing),
		T(test_keepalive_and_slow_acks),
		T(test_resends_in_one_breath_are_no_storm),
		T(test_resend_requests_are_bounded),
		T(test_retries),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_probes_are_few),
		T(test_retries_are_per_packet),
		T(test_keepalive_while_preparing),
		T(test_stream_after_preparation),
		T(test_repeated_request),
		T(test_stale_source),
		T(test_full_sink),
		T(test_get_bulk),
		T(test_long_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
