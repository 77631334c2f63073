/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Next hops: their choice, resolution, confirmation and expiry. */

#include <stdlib.h>
#include <string.h>

#include <rte_rcu_qsbr.h>

#include "../checked.h"
#include "bench.h"
#include "link/neigh.h"
#include "link/private.h"

#define MS    (BENCH_HZ / 1000)
#define PAD18 "000000000000000000000000000000000000"
#define REQUEST(target)                                                                            \
	"ffffffffffff 020000000002 0806 0001080006040001"                                          \
	"020000000002 0a000002 000000000000" target PAD18
#define REPLY                                                                                      \
	"020000000002 020000000001 0806 0001080006040002"                                          \
	"020000000001 0a000001 020000000002 0a000002"

static uint32_t
neighbour(struct bench *b, const char *sgid, const char *dgid)
{
	struct error err = { 0 };
	union gid s, d;
	uint32_t index;

	assert_true(gid_parse(sgid, &s));
	assert_true(gid_parse(dgid, &d));
	assert_int_equal(link_neighbour(b->link, 0, &s, &d, &index, &err), 0);
	return index;
}

static struct link_neighbour_info
info(struct bench *b, uint32_t index)
{
	struct link_neighbour_info i;

	assert_true(link_neighbour_next(b->link, &index, &i));
	return i;
}

/* Advance the clock in steps of an engine's tick. @return number of requests sent */
static unsigned int
neigh_run(struct bench *b, unsigned int ms, const char *expected)
{
	unsigned int t, n = 0;
	const char *sent;
	char want[256];

	strcpy(want, hex_compact(expected));
	for (t = 0; t < ms; t += 50) {
		b->now += 50 * MS;
		link_tick(b->worker[0], b->now);
		link_tx_flush(b->worker[0], b->now);
		while (*(sent = bench_sent(b)) != '\0')
			n += strcmp(sent, want) == 0;
	}
	return n;
}

static void
test_new_neighbour_is_requested_at_once(void **state)
{
	struct bench *b = *state;
	uint32_t i = neighbour(b, "10.0.0.2", "10.0.0.1");

	assert_false(info(b, i).resolved);
	bench_poll(b, 0);
	bench_expect(b, REQUEST("0a000001"));
	bench_expect_nothing(b);
	bench_verdict(b, REPLY, VERDICT_ARP);
	assert_true(info(b, i).resolved);
	assert_memory_equal(info(b, i).mac, "\x02\0\0\0\0\x01", 6);
	/* the same next hop has the same entry */
	assert_int_equal(neighbour(b, "10.0.0.2", "10.0.0.1"), i);
}

static void
test_ipv6_neighbour_is_requested_at_its_group(void **state)
{
	struct bench *b = *state;
	uint32_t i = neighbour(b, "fe80::2", "fe80::1");

	bench_poll(b, 0);
	bench_expect(b,
		"3333ff000001 020000000002 86dd 6000000000203aff"
		"fe800000000000000000000000000002 ff0200000000000000000001ff000001"
		"87007a9700000000 fe800000000000000000000000000001 0101020000000002");
	bench_verdict(b,
		"020000000002 020000000001 86dd 6000000000203aff"
		"fe800000000000000000000000000001 fe800000000000000000000000000002"
		"8800181c60000000 fe800000000000000000000000000001 0201020000000001",
		VERDICT_ND);
	assert_true(info(b, i).resolved);
	assert_memory_equal(info(b, i).mac, "\x02\0\0\0\0\x01", 6);
}

static void
test_requests_of_neighbours_are_learned_from(void **state)
{
	struct bench *b = *state;
	uint32_t i = neighbour(b, "10.0.0.2", "10.0.0.1");

	bench_verdict(b,
		"ffffffffffff 020000000001 0806 0001080006040001"
		"020000000001 0a000001 000000000000 0a000002",
		VERDICT_ARP);
	assert_true(info(b, i).resolved);
	/* a request from an unknown neighbour creates no entry */
	i++;
	bench_verdict(b,
		"ffffffffffff 020000000009 0806 0001080006040001"
		"020000000009 0a000009 000000000000 0a000002",
		VERDICT_ARP);
	assert_false(link_neighbour_next(b->link, &i, &(struct link_neighbour_info){ 0 }));
}

static void
test_requests_to_a_silent_neighbour_become_rare(void **state)
{
	struct bench *b = *state;

	neighbour(b, "10.0.0.2", "10.0.0.1");
	bench_poll(b, 0);
	bench_discard(b);
	/* requests after 0.1, 0.3, 0.7, 1.5, 3.1, 6.3 and 9.5 s */
	assert_int_equal(neigh_run(b, 1000, REQUEST("0a000001")), 3);
	assert_int_equal(neigh_run(b, 9000, REQUEST("0a000001")), 4);
}

static void
test_resolved_neighbour_is_confirmed_and_given_up(void **state)
{
	static const char unicast[] = "020000000001 020000000002 0806 0001080006040001"
				      "020000000002 0a000002 000000000000 0a000001" PAD18;
	struct bench *b = *state;
	uint32_t i = neighbour(b, "10.0.0.2", "10.0.0.1");

	bench_poll(b, 0);
	bench_verdict(b, REPLY, VERDICT_ARP);
	assert_int_equal(neigh_run(b, 29900, unicast), 0);
	assert_int_equal(neigh_run(b, 500, unicast), 1);
	bench_verdict(b, REPLY, VERDICT_ARP);
	assert_int_equal(info(b, i).age_ms, 0);
	assert_int_equal(neigh_run(b, 29950, unicast), 0);
	/* it is silent: three unicast requests, three broadcast, then its MAC is forgotten */
	assert_int_equal(neigh_run(b, 3000, unicast), 3);
	assert_true(info(b, i).resolved);
	assert_int_equal(neigh_run(b, 3000, REQUEST("0a000001")), 3);
	neigh_run(b, 100, "");
	assert_false(info(b, i).resolved);
}

/* No host has a group address, and the MAC of a group is computed, not learned. */
static void
test_group_addresses_are_not_learnt(void **state)
{
	struct bench *b = *state;
	uint32_t i = neighbour(b, "10.0.0.2", "10.0.0.1");
	uint32_t group = neighbour(b, "10.0.0.2", "239.129.2.3");

	bench_verdict(b,
		"020000000002 020000000001 0806 0001080006040002"
		"01005e000001 0a000001 020000000002 0a000002",
		VERDICT_SOURCE);
	assert_false(info(b, i).resolved);
	bench_verdict(b,
		"020000000002 020000000001 0806 0001080006040002"
		"020000000001 ef810203 020000000002 0a000002",
		VERDICT_SOURCE);
	assert_memory_equal(info(b, group).mac, "\x01\x00\x5E\x01\x02\x03", 6);
}

#define GRATUITOUS                                                                                 \
	"ffffffffffff 020000000011 0806 0001080006040001"                                          \
	"020000000011 0a000001 000000000000 0a000001"
#define QUESTION_TO_OLD                                                                            \
	"020000000001 020000000002 0806 0001080006040001"                                          \
	"020000000002 0a000002 000000000000 0a000001" PAD18

static struct link_news heard;

static void
neigh_hear(void *arg, const struct link_news *news)
{
	(void)arg;
	heard = *news;
}

/* Another MAC that claims the address is accepted if the old one answers none of three requests. */
static void
test_moved_neighbour_is_followed(void **state)
{
	struct bench *b = *state;
	uint32_t i = neighbour(b, "10.0.0.2", "10.0.0.1");

	link_worker_tell(b->worker[0], neigh_hear, NULL);
	bench_poll(b, 0);
	bench_verdict(b, REPLY, VERDICT_ARP);
	assert_int_equal(heard.what, LINK_NEIGHBOUR_KNOWN);
	assert_memory_equal(heard.mac, "\x02\0\0\0\0\x01", sizeof(heard.mac));
	bench_discard(b);
	bench_verdict(b, GRATUITOUS, VERDICT_ARP);
	assert_memory_equal(info(b, i).mac, "\x02\0\0\0\0\x01", 6);
	assert_int_equal(neigh_run(b, 300, QUESTION_TO_OLD), 3);
	assert_memory_equal(info(b, i).mac, "\x02\0\0\0\0\x01", 6);
	neigh_run(b, 100, "");
	assert_memory_equal(info(b, i).mac, "\x02\0\0\0\0\x11", 6);
	assert_int_equal(link_worker_counters(b->worker[0], 0)->neighbour_moved, 1);
	assert_int_equal(heard.what, LINK_NEIGHBOUR_MOVED);
	assert_int_equal(heard.port, 0);
	assert_memory_equal(heard.mac, "\x02\0\0\0\0\x11", sizeof(heard.mac));
}

static void
test_neighbour_that_answers_keeps_its_address(void **state)
{
	struct bench *b = *state;
	uint32_t i = neighbour(b, "10.0.0.2", "10.0.0.1");
	unsigned int k;

	bench_poll(b, 0);
	bench_verdict(b, REPLY, VERDICT_ARP);
	for (k = 1; k <= 5; k++) {
		bench_discard(b);
		bench_verdict(b, GRATUITOUS, VERDICT_ARP);
		assert_int_equal(neigh_run(b, 50, QUESTION_TO_OLD), 1);
		bench_verdict(b, REPLY, VERDICT_ARP);
		neigh_run(b, 1100, "");
		assert_memory_equal(info(b, i).mac, "\x02\0\0\0\0\x01", 6);
		assert_int_equal(link_worker_counters(b->worker[0], 0)->neighbour_kept, k);
	}
	assert_int_equal(link_worker_counters(b->worker[0], 0)->neighbour_moved, 0);
}

/* A flood of claims causes no more requests than one claim. */
static void
test_claims_are_bounded(void **state)
{
	struct bench *b = *state;
	unsigned int k;

	neighbour(b, "10.0.0.2", "10.0.0.1");
	bench_poll(b, 0);
	bench_verdict(b, REPLY, VERDICT_ARP);
	bench_discard(b);
	for (k = 0; k < 1000; k++)
		bench_verdict(b, GRATUITOUS, VERDICT_ARP);
	assert_int_equal(neigh_run(b, 100, QUESTION_TO_OLD), 1);
}

/* 10.0.0.`host` says that its MAC ends with `host`, after this prefix. */
static void
arp_says(struct bench *b, const char *prefix, unsigned int host)
{
	char frame[128];

	snprintf(frame, sizeof(frame),
		"020000000002 %s%02x 0806 0001080006040002 %s%02x 0a0000%02x"
		"020000000002 0a000002",
		prefix, host, prefix, host, host);
	bench_verdict(b, frame, VERDICT_ARP);
}

/* Claims for 200 neighbours leave a new one its request. */
static void
test_claims_leave_room_to_resolve(void **state)
{
	struct bench *b = *state;
	unsigned int host, round;
	char text[16];

	for (host = 20; host < 220; host++) {
		snprintf(text, sizeof(text), "10.0.0.%u", host);
		neighbour(b, "10.0.0.2", text);
		arp_says(b, "0200000000", host);
	}
	for (round = 0; round < 20; round++) {
		for (host = 20; host < 220; host++) {
			arp_says(b, "0600000000", host);
			arp_says(b, "0200000000", host);
		}
		neigh_run(b, 100, "");
	}
	neighbour(b, "10.0.0.2", "10.0.0.1");
	bench_poll(b, 0);
	bench_expect(b, REQUEST("0a000001"));
	assert_int_equal(link_worker_counters(b->worker[0], 0)->neighbour_moved, 0);
}

static void
test_off_link_goes_to_the_gateway(void **state)
{
	struct error err = { 0 };
	union gid s, d;
	struct bench b;
	uint32_t i;

	(void)state;
	bench_config(&b);
	assert_true(gid_parse("10.0.0.254", &b.cfg.port[0].addr[0].gateway));
	assert_true(gid_parse("2001:db8::2", &b.cfg.port[0].addr[1].gid));
	bench_open(&b);
	i = neighbour(&b, "10.0.0.2", "192.168.7.7");
	bench_poll(&b, 0);
	bench_expect(&b, REQUEST("0a0000fe"));
	assert_int_equal(neighbour(&b, "10.0.0.2", "192.168.8.8"), i);
	/* no IPv6 gateway */
	assert_true(gid_parse("2001:db8::2", &s));
	assert_true(gid_parse("2001:db9::1", &d));
	assert_int_equal(link_neighbour(b.link, 0, &s, &d, &i, &err), -ENETUNREACH);
	assert_string_equal(err.text,
		"dgid: 2001:db9::1 is on none of port0's subnets and the port has no gateway");
	/* source and destination must be of one family */
	assert_true(gid_parse("10.0.0.1", &d));
	assert_int_equal(link_neighbour(b.link, 0, &s, &d, &i, &err), -EINVAL);
	bench_close(&b);
}

static void
test_multicast_needs_no_request(void **state)
{
	struct bench *b = *state;

	assert_memory_equal(info(b, neighbour(b, "10.0.0.2", "239.129.2.3")).mac,
		"\x01\x00\x5E\x01\x02\x03", 6);
	assert_memory_equal(info(b, neighbour(b, "fe80::2", "ff0e::12:3456")).mac,
		"\x33\x33\x00\x12\x34\x56", 6);
	bench_poll(b, 0);
	bench_expect_nothing(b);
}

/* 64 requests at once, then 500 per second */
static void
test_requests_are_limited(void **state)
{
	struct bench *b = *state;
	unsigned int i, n = 0;
	char text[32];

	for (i = 1; i <= 200; i++) {
		snprintf(text, sizeof(text), "10.0.0.%u", i == 2 ? 201 : i);
		neighbour(b, "10.0.0.2", text);
	}
	bench_poll(b, 0);
	while (*bench_sent(b) != '\0')
		n++;
	assert_int_equal(n, 64);
	b->now += 10 * MS;
	link_tick(b->worker[0], b->now);
	link_tx_flush(b->worker[0], b->now);
	for (n = 0; *bench_sent(b) != '\0'; n++)
		;
	assert_int_equal(n - 2, 5); /* two are our announcements */
}

/* --- entries that nobody uses --- */

static uint32_t
neigh_present(struct bench *b)
{
	struct link_neighbour_info i;
	uint32_t cursor = 0, n = 0;

	while (link_neighbour_next(b->link, &cursor, &i))
		n++;
	return n;
}

/* Search and forget, as often as it takes until unused entries have gone. */
static void
neigh_forget_idle(struct bench *b, const struct link_neighbours_used *used, uint32_t kept,
	uint32_t idle_s)
{
	unsigned int i;

	for (i = 0; i < NEIGH_SEARCHES; i++) {
		link_neighbours_search(b->link);
		link_neighbours_forget(b->link, used, kept, idle_s);
	}
}

static void
neigh_forget_unused(struct bench *b, const struct link_neighbours_used *used)
{
	neigh_forget_idle(b, used, 0, 0);
}

static void
test_unused_neighbours_are_forgotten(void **state)
{
	struct link_neighbours_used used = { 0 };
	struct bench *b = *state;
	uint32_t kept, fresh;

	neighbour(b, "10.0.0.2", "10.0.0.1");
	kept = neighbour(b, "10.0.0.2", "10.0.0.3");
	bench_poll(b, 0);
	bench_discard(b);
	bench_verdict(b, REPLY, VERDICT_ARP);
	link_neighbour_use(&used, kept);
	link_neighbours_search(b->link);
	/* whoever asked for it before the first search may still use it */
	assert_int_equal(link_neighbours_forget(b->link, &used, 0, 0), 0);
	/* and this one is asked for while the second goes on */
	link_neighbours_search(b->link);
	fresh = neighbour(b, "10.0.0.2", "10.0.0.4");
	assert_int_equal(link_neighbours_forget(b->link, &used, 0, 0), 1);
	assert_int_equal(neigh_present(b), 2);
	assert_false(info(b, fresh).resolved);
	/* the peer's packets create no entry */
	bench_verdict(b, REPLY, VERDICT_ARP);
	assert_int_equal(neigh_present(b), 2);
	neigh_forget_unused(b, &used);
	assert_int_equal(neigh_present(b), 1);
	/* a place is used again, and its new holder is asked for at once */
	bench_poll(b, 0);
	bench_discard(b);
	assert_true(neighbour(b, "10.0.0.2", "10.0.0.1") <= fresh);
	bench_poll(b, 0);
	bench_expect(b, REQUEST("0a000001"));
	bench_expect_nothing(b);
}

static void
test_place_waits_for_the_workers(void **state)
{
	const struct link_neighbours_used none = { 0 };
	struct rte_rcu_qsbr *rcu = aligned_alloc(128, 4096);
	struct bench *b = *state;
	uint32_t place;

	assert_int_equal(rte_rcu_qsbr_init(rcu, 1), 0);
	rte_rcu_qsbr_thread_register(rcu, 0);
	rte_rcu_qsbr_thread_online(rcu, 0);
	b->link->neigh->rcu = rcu;
	place = neighbour(b, "10.0.0.2", "10.0.0.1");
	neigh_forget_unused(b, &none);
	assert_int_equal(neigh_present(b), 0);
	/* the worker may have found the entry before it was removed */
	assert_int_not_equal(neighbour(b, "10.0.0.2", "10.0.0.3"), place);
	rte_rcu_qsbr_quiescent(rcu, 0);
	assert_int_equal(neighbour(b, "10.0.0.2", "10.0.0.4"), place);
	b->link->neigh->rcu = NULL;
	free(rcu);
}

/* @return false: the table is full */
static bool
neigh_add(struct bench *b, unsigned int n, uint32_t *index)
{
	struct error err = { "" };
	union gid s, d;
	char text[32];

	snprintf(text, sizeof(text), "fe80::%x", n + 0x100);
	assert_true(gid_parse("fe80::2", &s));
	assert_true(gid_parse(text, &d));
	return link_neighbour(b->link, 0, &s, &d, index, &err) == 0;
}

/* Say that the neighbour has a MAC. */
static void
neigh_resolve_it(struct bench *b, uint32_t index)
{
	uint8_t mac[6] = { 2, 0, 0, 1 };

	memcpy(mac + 4, &index, 2);
	neigh_heard(b->worker[0], &b->link->port[0], &b->link->neigh->entry[index].gid, mac);
	assert_true(info(b, index).resolved);
}

static void
neigh_later(struct bench *b, unsigned int s)
{
	b->now += s * BENCH_HZ;
	link_tick(b->worker[0], b->now);
}

/* Whatever strangers name, and nobody has, pushes out no peer that answers. */
static void
test_resolved_neighbours_stay(void **state)
{
	const struct link_neighbours_used none = { 0 };
	struct link_neighbour_counts counts;
	struct bench *b = *state;
	uint32_t index;
	unsigned int n;

	for (n = 0; n < 8; n++) {
		assert_true(neigh_add(b, n, &index));
		neigh_resolve_it(b, index);
	}
	for (; n < 100; n++)
		assert_true(neigh_add(b, n, &index));
	neigh_forget_idle(b, &none, 8, 600);
	assert_int_equal(neigh_present(b), 8);
	for (n = 0; n < 8; n++)
		assert_true(info(b, n).resolved);
	link_neighbour_counts(b->link, &counts);
	assert_int_equal(counts.present, 8);
	assert_int_equal(counts.forgotten, 92);
	assert_int_equal(counts.refused, 0);
}

/* With too many of them, those go that nobody has used for longest. */
static void
test_oldest_idle_neighbours_go_first(void **state)
{
	struct link_neighbours_used used = { 0 };
	struct bench *b = *state;
	uint32_t index[6];
	unsigned int n;

	for (n = 0; n < 6; n++) {
		assert_true(neigh_add(b, n, &index[n]));
		neigh_resolve_it(b, index[n]);
		neigh_later(b, 1);
	}
	/* the first is used again, the third without end */
	assert_true(neigh_add(b, 0, &index[0]));
	link_neighbour_use(&used, index[2]);
	neigh_forget_idle(b, &used, 4, 600);
	assert_int_equal(neigh_present(b), 4);
	assert_true(neigh_is_present(&b->link->neigh->entry[index[0]]));
	assert_false(neigh_is_present(&b->link->neigh->entry[index[1]]));
	assert_true(neigh_is_present(&b->link->neigh->entry[index[2]]));
	assert_false(neigh_is_present(&b->link->neigh->entry[index[3]]));
	/* the end of a use counts, not its beginning */
	neigh_later(b, 10);
	neigh_forget_idle(b, &used, 4, 600);
	neigh_forget_idle(b, &(struct link_neighbours_used){ 0 }, 1, 600);
	assert_int_equal(neigh_present(b), 1);
	assert_true(neigh_is_present(&b->link->neigh->entry[index[2]]));
}

static void
test_idle_neighbours_age_out(void **state)
{
	struct link_neighbours_used used = { 0 };
	struct bench *b = *state;
	uint32_t index, held;

	neigh_later(b, 1);
	assert_true(neigh_add(b, 0, &index));
	neigh_resolve_it(b, index);
	assert_true(neigh_add(b, 1, &held));
	neigh_resolve_it(b, held);
	link_neighbour_use(&used, held);
	neigh_later(b, 599);
	neigh_resolve_it(b, index);
	neigh_forget_idle(b, &used, 1024, 600);
	assert_int_equal(neigh_present(b), 2);
	neigh_later(b, 1);
	neigh_forget_idle(b, &used, 1024, 600);
	assert_int_equal(neigh_present(b), 1);
	assert_true(neigh_is_present(&b->link->neigh->entry[held]));
}

static void
test_full_table_empties(void **state)
{
	const struct link_neighbours_used none = { 0 };
	struct link_neighbour_counts counts;
	struct bench *b = *state;
	unsigned int n = 0, again;
	uint32_t index;

	while (neigh_add(b, n, &index))
		n++;
	link_neighbour_counts(b->link, &counts);
	assert_int_equal(counts.refused, 1);
	assert_true(n > NEIGH_MAX * 9 / 10);
	assert_true(link_neighbours_due(b->link, NEIGH_MAX));
	for (again = 0; again < 3; again++) {
		neigh_forget_unused(b, &none);
		assert_int_equal(neigh_present(b), 0);
		assert_false(link_neighbours_due(b->link, NEIGH_MAX));
		for (n = 0; n < NEIGH_MAX / 2; n++)
			assert_true(neigh_add(b, n, &index));
	}
}

/* Make a stranger cause a neighbour. @return false: it may not */
static bool
neigh_cause(struct bench *b, unsigned int stranger, unsigned int n)
{
	union gid who = {
		.raw = { [12] = 10, [14] = (uint8_t)(stranger >> 8), [15] = (uint8_t)stranger }
	};
	uint32_t index;

	if (!link_neighbour_allowed(b->link, &who, LINK_PER_STRANGER))
		return false;
	assert_true(neigh_add(b, n, &index));
	link_neighbour_caused(b->link, index, &who);
	return true;
}

static void
test_strangers_cause_few_unresolved_neighbours(void **state)
{
	const struct link_neighbours_used none = { 0 };
	struct link_neighbour_counts counts;
	struct bench *b = *state;
	uint32_t index;
	unsigned int n;

	for (n = 0; n < LINK_PER_STRANGER; n++)
		assert_true(neigh_cause(b, 0, n));
	assert_false(neigh_cause(b, 0, n));
	/* another who names the same takes nothing off the first one's account */
	assert_true(neigh_cause(b, 1, 0));
	assert_false(neigh_cause(b, 0, n));
	for (; n < NEIGH_UNRESOLVED; n++)
		assert_true(neigh_cause(b, n / LINK_PER_STRANGER, n));
	assert_false(neigh_cause(b, NEIGH_UNRESOLVED, n));
	link_neighbour_counts(b->link, &counts);
	assert_int_equal(counts.refused, 3);
	/* our own requests are not refused */
	assert_true(neigh_add(b, NEIGH_UNRESOLVED, &index));
	assert_true(link_neighbours_due(b->link, NEIGH_MAX));
	neigh_forget_unused(b, &none);
	assert_true(neigh_cause(b, 0, 0));
}

/* A stranger with many addresses that answers for all of them. */
static void
test_strangers_leave_half_of_the_table(void **state)
{
	struct bench *b = *state;
	uint32_t index;
	unsigned int n;

	for (n = 0; n < NEIGH_STRANGERS; n++) {
		assert_true(neigh_cause(b, n, n));
		assert_true(neigh_add(b, n, &index));
		neigh_resolve_it(b, index);
	}
	assert_false(neigh_cause(b, n, n));
	for (; n < NEIGH_MAX * 9 / 10; n++)
		assert_true(neigh_add(b, n, &index));
}

static void
heard_again(void *bench, void *unused)
{
	struct neigh_table *t = ((struct bench *)bench)->link->neigh;

	(void)unused;
	t->entry[0].moving = NEIGH_VALID | NEIGH_SELF;
	neigh_resolve_it(bench, 0);
}

static void
claimed_again(void *bench, void *unused)
{
	struct neigh_table *t = ((struct bench *)bench)->link->neigh;

	(void)unused;
	t->mac[0] = NEIGH_VALID | 2;
	t->entry[0].moving = 1;
	neigh_resolve_it(bench, 0);
}

static void
named_by_a_stranger(void *bench, void *unused)
{
	struct bench *b = bench;

	(void)unused;
	b->link->neigh->mac[0] = 1;
	link_neighbour_caused(b->link, 0, &b->link->neigh->entry[0].gid);
}

static void
got_by_the_port(void *bench, void *unused)
{
	struct bench *b = bench;

	(void)unused;
	b->link->neigh->entry[0].moving = 1;
	neigh_is_own(b->link->neigh, &b->link->port[0], &b->link->neigh->entry[0].gid);
}

static void
made(void *bench, void *unused)
{
	struct bench *b = bench;

	(void)unused;
	b->link->neigh->mac[0] = 1;
	neigh_new(b->worker[0], b->now);
}

static void
ticked(void *bench, void *unused)
{
	struct bench *b = bench;

	(void)unused;
	b->link->neigh->entry[0].move_probes = 1;
	neigh_later(b, 1);
}

/* Builds with checks end if what changes an entry finds it damaged. */
static void
test_changed_entries_are_checked(void **state)
{
	static void (*const acts[])(void *bench, void *unused) = { heard_again, claimed_again,
		named_by_a_stranger, got_by_the_port, made, ticked };
	struct bench *b = *state;
	struct neigh_table *t = b->link->neigh;
	struct neigh good;
	uint32_t index;
	unsigned int i;

	assert_true(neigh_add(b, 0, &index));
	assert_int_equal(index, 0);
	good = t->entry[0];
	for (i = 0; i < RTE_DIM(acts); i++) {
		if (ends_process(acts[i], b, NULL) != CHECKED)
			fail_msg("act %u", i);
		/* processes share EAL's memory */
		t->entry[0] = good;
		t->mac[0] = 0;
	}
}

int
main(void)
{
#define WITH_BENCH(t) cmocka_unit_test_setup_teardown(t, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		WITH_BENCH(test_new_neighbour_is_requested_at_once),
		WITH_BENCH(test_ipv6_neighbour_is_requested_at_its_group),
		WITH_BENCH(test_requests_of_neighbours_are_learned_from),
		WITH_BENCH(test_requests_to_a_silent_neighbour_become_rare),
		WITH_BENCH(test_resolved_neighbour_is_confirmed_and_given_up),
		WITH_BENCH(test_moved_neighbour_is_followed),
		WITH_BENCH(test_neighbour_that_answers_keeps_its_address),
		WITH_BENCH(test_claims_are_bounded),
		WITH_BENCH(test_claims_leave_room_to_resolve),
		WITH_BENCH(test_group_addresses_are_not_learnt),
		cmocka_unit_test(test_off_link_goes_to_the_gateway),
		WITH_BENCH(test_multicast_needs_no_request),
		WITH_BENCH(test_requests_are_limited),
		WITH_BENCH(test_unused_neighbours_are_forgotten),
		WITH_BENCH(test_place_waits_for_the_workers),
		WITH_BENCH(test_resolved_neighbours_stay),
		WITH_BENCH(test_oldest_idle_neighbours_go_first),
		WITH_BENCH(test_idle_neighbours_age_out),
		WITH_BENCH(test_full_table_empties),
		WITH_BENCH(test_strangers_cause_few_unresolved_neighbours),
		WITH_BENCH(test_strangers_leave_half_of_the_table),
		WITH_BENCH(test_changed_entries_are_checked),
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
