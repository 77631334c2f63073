/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Subscriptions and Reports (sa-multipacket B7, B10): which subscribers get a Report, and its
 * repeats.
 */

#include "bench.h"

#include <stdlib.h>

#include "sa/notice_budget.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "sa/write.h"

struct subscription {
	uint64_t from;
	uint8_t version; /* 2 if 0 */
	uint16_t trap; /* 0: all */
	uint16_t type; /* 0: all */
	uint32_t producer; /* 0: all */
	uint64_t gid;
	bool ends;
	bool vendor; /* not generic */
	bool trusted;
};

static uint16_t
subscribe(struct bench *b, const struct subscription *s)
{
	uint8_t info[40] = { 0 };
	struct ask a = {
		.version = s->version == 1 ? 1 : 2,
		.method = s->version == 1 ? SA1_INFORM : MAD_SET,
		.attribute = SA_INFORM_INFO,
		.data = info,
		.data_len = 36,
		.from = s->from,
		.untrusted = !s->trusted,
	};
	uint32_t producer = s->producer != 0 ? s->producer : 0xFFFFFF;

	if (s->gid != 0)
		set_gid(info, s->gid);
	put_be16(info + 16, 0xFFFF);
	info[22] = !s->vendor;
	info[23] = !s->ends;
	put_be16(info + 24, s->type != 0 ? s->type : 0xFFFF);
	put_be16(info + 26, s->trap != 0 ? s->trap : 0xFFFF);
	put_be32(info + 32, producer);
	return ask(b, &a);
}

/* Nobody else would ever remove the subscription of a forged address. */
static void
test_subscription_of_a_stranger_ends_after_an_hour(void **state)
{
	struct bench *b = *state;
	const struct store_record *r;
	struct store_cursor c;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = 0xFFFF }), 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = 0xFFFE }), 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	b->seconds += 3599;
	assert_int_equal(sa_expire(b->sa, b->seconds), 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = 0xFFFF }), 0); /* renews */
	b->seconds += 1;
	assert_int_equal(sa_expire(b->sa, b->seconds), 1);
	b->seconds += 3599;
	assert_int_equal(sa_expire(b->sa, b->seconds), 1);
	b->seconds += 100000;
	assert_int_equal(sa_expire(b->sa, b->seconds), 0);
	store_seek(&c, store_current(b->reader), SA_TABLE_INFORM, 0);
	r = store_next(&c, NULL);
	assert_int_equal(get_be64(r->bytes + 8), GUID_B);
	assert_null(store_next(&c, NULL));
}

static void
sa_notice_run(struct bench *b)
{
	unsigned int i;

	for (i = 0; i < 20; i++)
		sa_run(b->w, b->now, 64);
}

static uint16_t
trap_of(struct bench *b, unsigned int i)
{
	unsigned int at = b->calls[i].mad[MAD_OFF_CLASS_VERSION] == 1 ? SA1_OFF_DATA : SA2_OFF_DATA;

	return get_be16(b->calls[i].mad + at + 4);
}

static void
sa_notice_join(struct bench *b, uint16_t pkey)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_MCMEMBER,
		.mask = 0x130C7,
		.data = rec,
		.data_len = 52,
	};

	put_be32(rec, 0xFF12401B);
	set_gid(rec + 16, GUID_A);
	put_be16(rec + 40, pkey);
	rec[48] = 1;
	assert_int_equal(ask(b, &a), 0);
}

static void
sa_notice_leave(struct bench *b)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a = {
		.version = 2,
		.method = SA2_DELETE,
		.attribute = SA_MCMEMBER,
		.mask = 0x10003,
		.data = rec,
		.data_len = 52,
	};

	put_be32(rec, 0xFF12401B);
	set_gid(rec + 16, GUID_A);
	rec[48] = 1;
	assert_int_equal(ask(b, &a), 0);
}

static void
test_subscriber_is_told_of_groups(void **state)
{
	struct bench *b = *state;
	const uint8_t *mad;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	assert_int_equal(b->reply[SA2_OFF_DATA + 23], 1);
	assert_int_equal(get_be32(b->reply + SA2_OFF_DATA + 28) >> 8, 1); /* its QP */
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
	mad = b->calls[0].mad;
	assert_int_equal(mad[MAD_OFF_METHOD], 0x06);
	assert_int_equal(mad[MAD_OFF_CLASS_VERSION], 2);
	assert_int_equal(get_be16(mad + MAD_OFF_ATTRIBUTE), 0x0002);
	assert_int_equal(mad[SA2_OFF_DATA], 0x83); /* generic, subnet management */
	assert_int_equal(get_be32(mad + SA2_OFF_DATA) & 0xFFFFFF, 4); /* class manager */
	assert_int_equal(trap_of(b, 0), 66);
	assert_int_equal(get_be32(mad + SA2_OFF_DATA + 16), 0xFF12401B);
	assert_int_equal(get_be64(mad + SA2_OFF_DATA + 72), 0x5A); /* IssuerGID */
	assert_int_equal(get_be64(b->calls[0].call.to.av.dgid.raw + 8), GUID_B);
	assert_int_equal(b->calls[0].call.retries, 3);
	assert_int_equal(b->calls[0].call.resp_time, 17); /* 0.54 s, not less than 0.5 */
	sa_notice_leave(b);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 2);
	assert_int_equal(trap_of(b, 1), 67);
	bench_answer_call(b, 0, MAD_END_OK);
	bench_answer_call(b, 1, MAD_END_TIMEOUT);
	assert_int_equal(sa_worker_counters(b->w)->reports_sent, 2);
	assert_int_equal(sa_worker_counters(b->w)->reports_answered, 1);
	assert_int_equal(sa_worker_counters(b->w)->reports_given_up, 1);
}

static void
test_subscriber_is_told_of_ports(void **state)
{
	struct sa_change c = change_of(SA_NODE);
	struct bench *b = *state;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B, .version = 1 }), 0);
	put_port(b, 30, 0x30, NODE_TYPE_CA, 0);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
	assert_int_equal(b->calls[0].mad[MAD_OFF_CLASS_VERSION], 1);
	assert_int_equal(trap_of(b, 0), 64);
	assert_int_equal(get_be64(b->calls[0].mad + SA1_OFF_DATA + 24), 0x30);
	put_port(b, 30, 0x30, NODE_TYPE_CA, 0); /* no event: the port is known */
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
	c.remove = true;
	c.rid = 0x001E0000;
	bench_put(b, &c);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 2);
	assert_int_equal(trap_of(b, 1), 65);
	/* another GUID at the same LID: one port out of service, one in service */
	put_port(b, 5, 0xBB, NODE_TYPE_CA, 0);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 4);
	assert_int_equal(trap_of(b, 2), 65);
	assert_int_equal(trap_of(b, 3), 64);
}

/* An operator's record says who subscribes, but not where Reports to it go. */
static void
test_imported_subscription_gets_no_reports(void **state)
{
	struct sa_change c = change_of(SA_INFORM_INFO_RECORD);
	struct bench *b = *state;
	const struct store_record *r;
	struct store_cursor at;
	struct subscriber s;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	store_seek(&at, store_current(b->reader), SA_TABLE_INFORM, 0);
	r = store_next(&at, NULL);
	memcpy(c.rec, r->bytes, c.type->len);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B, .ends = true }), 0);
	bench_put(b, &c);
	store_seek(&at, store_current(b->reader), SA_TABLE_INFORM, 0);
	r = store_next(&at, NULL);
	assert_non_null(r);
	assert_false(subscriber_of(r, &s));
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 0);
}

/* A record of a subscription with these bytes behind it. */
static struct store_record *
subscription_with(const void *tail, size_t len)
{
	const struct sa_record_type *t = sa_table_type(SA_TABLE_INFORM);
	struct store_record *r = calloc(1, sizeof(*r) + t->len + len);

	r->len = (uint16_t)(t->len + len);
	memcpy(r->bytes + t->len, tail, len);
	return r;
}

/* Other appliances, of any byte order, and later releases read it. */
static const uint8_t subscriber_bytes[] = { 1, /* the version of the form */
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, /* origin */
	ENCAP_ROCEV2_IPV6, 0, 3, /* encapsulation, port */
	0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x21, /* our GID */
	0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23, /* the subscriber's */
	0x30, 0, 0, 0, 0, 0x31, 0x32, 0, 0, 0, 0, 0x33, /* MACs */
	0x04, 0x05, 6, 7, 8, 0, 0x09, 0x0A, 0x0B, /* VLAN, SL, class, hops, flow label */
	0, 0x21, 0, 0x22, 1, 0, 0x88, 0xB5, /* LIDs, VL, GRH, EtherType */
	0, 0x12, 0x34, 0x56, 0x80, 0x01, 0, 0, 0xFF, 0xFF, /* QP, Q_Key, P_Key */
	2, 1, 0, 9, /* class version, trusted, sees keys, asked */
	0, 0, 0, 0, 0x40, 0x41, 0x42, 0x43 }; /* end of the lease */

static void
test_bytes_of_a_subscriber(void **state)
{
	struct store_record *r = subscription_with(subscriber_bytes, sizeof(subscriber_bytes));
	uint8_t tail[SUBSCRIBER_TAIL_MAX];
	struct subscriber s;
	size_t len;

	(void)state;
	assert_true(subscriber_of(r, &s));
	assert_true(s.origin == UINT64_C(0x1011121314151617));
	assert_int_equal(s.peer.av.port, 3);
	assert_int_equal(s.peer.av.vlan, 0x0405);
	assert_int_equal(s.peer.qpn, 0x123456);
	assert_int_equal(s.peer.neighbour, PATH_NO_NEIGHBOUR);
	assert_true(s.trusted && !s.sees_keys);
	assert_int_equal(s.expiry, 0x40414243);
	assert_int_equal(subscriber_put(&s, tail), sizeof(subscriber_bytes));
	assert_memory_equal(tail, subscriber_bytes, sizeof(subscriber_bytes));
	free(r);
	/* shorter, of another version, and a flag of 2 */
	for (len = 0; len < sizeof(subscriber_bytes); len++) {
		r = subscription_with(subscriber_bytes, len);
		assert_false(subscriber_of(r, &s));
		free(r);
	}
	memcpy(tail, subscriber_bytes, sizeof(subscriber_bytes));
	tail[0] = 2;
	r = subscription_with(tail, sizeof(subscriber_bytes));
	assert_false(subscriber_of(r, &s));
	free(r);
	tail[0] = 1;
	tail[sizeof(subscriber_bytes) - 11] = 2;
	r = subscription_with(tail, sizeof(subscriber_bytes));
	assert_false(subscriber_of(r, &s));
	free(r);
}

/* What is stored has this form; a database of an earlier release has the structure itself. */
static void
test_form_of_stored_subscriptions(void **state)
{
	struct bench *b = *state;
	const struct store_record *r;
	struct subscriber s, old;
	struct store_record *raw;
	struct store_cursor at;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	store_seek(&at, store_current(b->reader), SA_TABLE_INFORM, 0);
	r = store_next(&at, NULL);
	assert_int_equal(r->len, sa_table_type(SA_TABLE_INFORM)->len + sizeof(subscriber_bytes));
	assert_int_equal(r->bytes[sa_table_type(SA_TABLE_INFORM)->len], 1);
	assert_true(subscriber_of(r, &s));
	raw = subscription_with(&s, sizeof(s));
	assert_true(subscriber_of(raw, &old));
	assert_int_equal(old.peer.qpn, s.peer.qpn);
	free(raw);
}

/* A trap of a port: generic, number, issuer's LID. */
static const uint8_t *
trap_from(uint8_t type, uint16_t number, uint16_t lid)
{
	static uint8_t notice[64];

	memset(notice, 0, sizeof(notice));
	notice[0] = 0x80 | type;
	notice[3] = 1; /* a channel adapter */
	put_be16(notice + 4, number);
	put_be16(notice + 6, lid);
	memset(notice + 10, 0xEE, sizeof(notice) - 10);
	return notice;
}

/* smp-sma 5: a trap that reaches the subnet manager is reported to its subscribers unchanged */
static void
test_subscriber_is_told_of_traps(void **state)
{
	struct bench *b = *state;
	const uint8_t *mad;

	assert_int_equal(subscribe(b,
				 &(struct subscription){
					 .from = GUID_B,
					 .trap = 144,
					 .type = 4,
					 .producer = 1,
				 }),
		0);
	sa_trap(b->w, trap_from(1, 129, 4)); /* another one */
	sa_trap(b->w, trap_from(4, 144, 4));
	assert_true(sa_pending(b->w));
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
	mad = b->calls[0].mad + SA2_OFF_DATA;
	assert_memory_equal(mad, trap_from(4, 144, 4), 64);
	assert_int_equal(get_be64(mad + 64), UINT64_C(0xFE80000000000000)); /* IssuerGID */
	assert_int_equal(get_be64(mad + 72), GUID_A);
	/* an unknown issuer has no GID */
	sa_trap(b->w, trap_from(4, 144, 0x999));
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 2);
	assert_int_equal(get_be64(b->calls[1].mad + SA2_OFF_DATA + 72), 0);
	/* a vendor's trap is not reported */
	mad = trap_from(4, 144, 4);
	((uint8_t *)mad)[0] &= 0x7F;
	sa_trap(b->w, mad);
	assert_false(sa_pending(b->w));
}

/* Security traps contain keys: only trusted subscribers get them. */
static void
test_security_traps_are_for_the_trusted(void **state)
{
	struct bench *b = *state;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	sa_trap(b->w, trap_from(2, 257, 4));
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B, .ends = true }), 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B, .trusted = true }),
		0);
	sa_trap(b->w, trap_from(2, 257, 4));
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
}

/* Events and traps take turns; those that do not fit are counted. */
static void
test_events_and_traps_by_turns(void **state)
{
	struct bench *b = *state;
	unsigned int i;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	sa_notice_join(b, 0xFFFF);
	for (i = 0; i < 40; i++)
		sa_trap(b->w, trap_from(4, 144, 4));
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 33);
	assert_true(trap_of(b, 0) == 66 || trap_of(b, 1) == 66);
	assert_int_equal(sa_worker_counters(b->w)->events_lost, 8);
}

static void
test_what_was_not_asked_for_is_not_told(void **state)
{
	static const struct subscription others[] = { { .trap = 67 }, { .type = 4 },
		{ .producer = 1 }, { .gid = 0x77 }, { .vendor = true } };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct subscription s = others[i];

		s.from = GUID_B;
		assert_int_equal(subscribe(b, &s), 0);
	}
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 5);
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 0);
	assert_int_equal(subscribe(b,
				 &(struct subscription){
					 .from = GUID_B,
					 .trap = 67,
					 .type = 3,
					 .producer = 4,
				 }),
		0);
	sa_notice_leave(b);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 2); /* this and the first one */
}

static void
test_other_partitions_groups_are_not_told(void **state)
{
	struct bench *b = *state;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_D }), 0);
	sa_notice_join(b, 0x8001); /* of A and D */
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
	assert_int_equal(get_be64(b->calls[0].call.to.av.dgid.raw + 8), GUID_D);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B, .trusted = true }),
		0);
	sa_notice_leave(b);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 3);
}

static void
test_of_a_change_that_failed_nothing_is_told(void **state)
{
	struct mad_body body = { .len = 2 * 108 };
	struct bench *b = *state;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	put_be32(body.bytes, 0x00300000);
	put_be64(body.bytes + 24, 0x300);
	put_be32(body.bytes + 108, 0x00040000); /* exists */
	b->hold_writes = true;
	ask_only(b,
		&(struct ask){
			.version = 1,
			.method = SA1_CONFIG,
			.attribute = SA_NODE,
			.edit = 1,
			.body = &body,
		});
	ask_only(b,
		&(struct ask){
			.version = 2,
			.method = MAD_SET,
			.attribute = SA_SERVICE,
			.mask = 1,
		});
	sa_write_execute(b->sa, b->writes, 2, 1000);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 0);
}

static void
test_subscription_is_made_once_and_ended_once(void **state)
{
	struct subscription s = { .from = GUID_A };
	struct bench *b = *state;

	assert_int_equal(subscribe(b, &s), 0);
	assert_int_equal(subscribe(b, &s), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 1);
	s.trap = 64;
	assert_int_equal(subscribe(b, &s), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 2);
	s.ends = true;
	s.from = GUID_B; /* not its own */
	assert_int_equal(subscribe(b, &s), 0x0200);
	s.from = GUID_A;
	assert_int_equal(subscribe(b, &s), 0);
	assert_int_equal(b->reply[SA2_OFF_DATA + 23], 0);
	assert_int_equal(subscribe(b, &s), 0x0200);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 1);
}

static void
test_subscriptions_of_a_port_are_bounded(void **state)
{
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < 64; i++)
		assert_int_equal(subscribe(b,
					 &(struct subscription){ .from = GUID_A, .trap = 1 + i }),
			0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_A, .trap = 999 }),
		0x0100);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B, .trap = 999 }), 0);
}

static void
test_subscribe_field_out_of_range(void **state)
{
	uint8_t info[36] = { 0 };
	struct ask a = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_INFORM_INFO,
		.data = info,
		.data_len = 36,
	};
	struct bench *b = *state;

	info[23] = 2;
	assert_int_equal(ask(b, &a), 0x001C);
	info[23] = 1;
	info[22] = 2;
	assert_int_equal(ask(b, &a), 0x001C);
}

/* What mad_commit() does with a Report. */
static bool
may_be_sent(struct bench *b, unsigned int i)
{
	return unproven_spend(b->calls[i].call.budget, MAD_LEN);
}

/*
 * Anti-amplification: the source of a subscription may be forged. Each Set pays for three packets:
 * its answer and two Reports, repeats included, until a ReportResp proves the address.
 */
static void
test_unproven_subscriber_gets_three_for_one(void **state)
{
	const struct subscription s = { .from = GUID_B };
	struct bench *b = *state;

	assert_int_equal(subscribe(b, &s), 0);
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
	assert_true(may_be_sent(b, 0));
	assert_true(may_be_sent(b, 0)); /* a repeat */
	assert_false(may_be_sent(b, 0));
	bench_answer_call(b, 0, MAD_END_TIMEOUT);
	sa_notice_leave(b);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 2);
	assert_false(may_be_sent(b, 1));
	bench_answer_call(b, 1, MAD_END_TIMEOUT);
	/* it subscribes to the same again, which pays for two more */
	assert_int_equal(subscribe(b, &s), 0);
	assert_int_equal(count_of(b, SA_TABLE_INFORM), 1);
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_true(may_be_sent(b, 2));
	assert_true(may_be_sent(b, 2));
	assert_false(may_be_sent(b, 2));
	bench_answer_call(b, 2, MAD_END_OK);
	sa_notice_leave(b);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 4);
	for (unsigned int i = 0; i < 10; i++)
		assert_true(may_be_sent(b, 3));
}

/* A subscriber with all its 64 subscriptions has paid for each of them. */
static void
test_subscriptions_have_a_budget_each(void **state)
{
	static const uint32_t producers[] = { 0, 4 };
	static const uint16_t types[] = { 0, 3 };
	struct bench *b = *state;
	unsigned int i, sent = 0;

	for (i = 0; i < 4; i++)
		assert_int_equal(subscribe(b,
					 &(struct subscription){
						 .from = GUID_A,
						 .type = types[i & 1],
						 .producer = producers[i >> 1],
					 }),
			0);
	for (i = 0; i < 3; i++) {
		sa_notice_join(b, 0xFFFF);
		sa_notice_leave(b);
		sa_notice_run(b);
	}
	assert_int_equal(b->num_calls, 4 * 6);
	for (i = 0; i < b->num_calls; i++)
		while (may_be_sent(b, i))
			sent++;
	assert_int_equal(sent, 4 * 2);
}

/* The pool of budgets: the oldest makes room, unless a Report uses it. */
static void
test_pool_of_budgets(void **state)
{
	struct notice_budgets *b = notice_budgets_create(&allocator_malloc);
	struct notice_budget *busy, *first, *u;
	uint32_t rid;

	(void)state;
	assert_non_null(b);
	busy = notice_budget_take(b, 1, 0);
	first = notice_budget_take(b, 2, 0);
	assert_int_equal(first->spend.left, 2 * MAD_LEN);
	first->spend.left = 0;
	notice_budget_return(first, false);
	/* 16,384 of them: the second one, which is spent, stays as long as there is room */
	for (rid = 3; rid <= 16384; rid++)
		notice_budget_return(notice_budget_take(b, rid, 0), false);
	u = notice_budget_take(b, 2, 0);
	assert_ptr_equal(u, first);
	assert_int_equal(u->spend.left, 0);
	notice_budget_return(u, false);
	notice_budget_return(notice_budget_take(b, 16385, 0), false);
	assert_ptr_equal(notice_budget_take(b, 1, 0), busy);
	u = notice_budget_take(b, 2, 0);
	assert_int_equal(u->spend.left, 2 * MAD_LEN);
	notice_budgets_destroy(&allocator_malloc, b);
}

static void
few_reports(struct sa_config *config)
{
	config->notices_max = 2;
	config->notice_interval_ms = 100; /* 1 MHz: a Report each 50,000 units */
}

static void
test_reports_are_bounded_in_number_and_rate(void **state)
{
	struct bench *b = bench_create(few_reports);
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(subscribe(b,
					 &(struct subscription){
						 .from = GUID_A,
						 .gid = 0x5A,
						 .trap = i == 0 ? 0 : 66,
						 .type = i & 2 ? 3 : 0,
						 .producer = i & 1 ? 4 : 0,
					 }),
			0);
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 2);
	assert_false(sa_pending(b->w)); /* nothing can be done now */
	bench_answer_call(b, 0, MAD_END_OK);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 2); /* too early */
	b->now = 50000;
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 3);
	bench_answer_call(b, 1, MAD_END_TIMEOUT);
	b->now = 100000;
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 4);
	bench_destroy(b);
}

static void
test_report_that_cannot_be_sent_is_given_up(void **state)
{
	struct bench *b = *state;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	b->calls_allowed = 0;
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(sa_worker_counters(b->w)->reports_given_up, 1);
	assert_false(sa_pending(b->w));
}

static void
test_events_too_many_for_their_queue_are_counted(void **state)
{
	struct bench *b = *state;
	struct sa_change *c = test_calloc(1100, sizeof(*c));
	unsigned int i;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B, .trusted = true }),
		0);
	for (i = 0; i < 1100; i++) {
		c[i] = change_of(SA_NODE);
		set_field(&c[i], "lid", 0x1000 + i);
		set_field(&c[i], "port_guid", 0x10000 + i);
	}
	/* of a batch with more than 1024 events none is reported */
	assert_int_equal(sa_change(b->sa, c, 1100, NULL), 0);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 0);
	assert_int_equal(sa_worker_counters(b->w)->events_lost, 1025);
	/* nor are events that find the ring full */
	for (i = 0; i < 1100; i++)
		c[i].remove = true;
	assert_int_equal(sa_change(b->sa, c, 1000, NULL), 0);
	assert_int_equal(sa_change(b->sa, c + 1000, 100, NULL), 0);
	sa_notice_run(b);
	assert_int_equal(sa_worker_counters(b->w)->events_lost, 1025 + 76);
	test_free(c);
}

/* A Config changes a subscription; Reports still go to its subscriber. */
static void
test_edited_subscription_is_still_told(void **state)
{
	struct bench *b = *state;
	uint8_t wire[4 + 60];
	struct ask a = {
		.version = 1,
		.method = SA1_CONFIG,
		.attribute = SA_INFORM_INFO_RECORD,
		.edit = 3,
		.data = wire,
		.data_len = 64,
		.payload_len = 64,
	};
	const struct store_record *r;
	struct store_cursor c;

	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_A, .trap = 67 }), 0);
	store_seek(&c, store_current(b->reader), SA_TABLE_INFORM, 0);
	r = store_next(&c, NULL);
	put_be32(wire, r->rid);
	memcpy(wire + 4, r->bytes, 60);
	put_be16(wire + 4 + 24 + 26, 66);
	assert_int_equal(ask(b, &a), 0);
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
	assert_int_equal(trap_of(b, 0), 66);
}

/* --- kept events, in a fleet --- */

static struct sa_event kept_events[8];
static unsigned int num_kept;
static bool keep_nothing;

static bool
keep_for_test(void *arg, const struct sa_event *events, unsigned int n)
{
	(void)arg;
	num_kept = n;
	if (n > 0)
		memcpy(kept_events, events, n * sizeof(*events));
	return !keep_nothing;
}

static void
keep_events_of(struct bench *b)
{
	keep_nothing = false;
	sa_keep_events(b->sa, &(struct sa_keeper){ keep_for_test, NULL });
}

/* The store's thread has an event reported. */
static void
post_kept(struct bench *b, uint64_t number, uint64_t secret)
{
	kept_events[0].number = number;
	kept_events[0].secret = secret;
	sa_event_post(b->sa, &kept_events[0]);
	sa_notice_run(b);
}

static uint64_t
tid_of(const struct bench *b, unsigned int i)
{
	return get_be64(b->calls[i].mad + MAD_OFF_TID);
}

static void
test_kept_event_is_told_when_all_have_answered(void **state)
{
	struct bench *b = *state;

	keep_events_of(b);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_D }), 0);
	assert_int_equal(num_kept, 0);
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 0); /* only what is posted is reported */
	assert_int_equal(num_kept, 1);
	assert_int_equal(kept_events[0].trap, 66);
	post_kept(b, 5, 0x1234);
	assert_int_equal(b->num_calls, 2);
	assert_int_equal(sa_events_room(b->sa), 1023);
	assert_int_equal(sa_event_told(b->sa), 0);
	bench_answer_call(b, 1, MAD_END_OK);
	assert_int_equal(sa_event_told(b->sa), 0);
	bench_answer_call(b, 0, MAD_END_TIMEOUT); /* it was given up: so does the notice end */
	assert_int_equal(sa_event_told(b->sa), 5);
	assert_int_equal(sa_event_told(b->sa), 0);
	assert_int_equal(sa_events_room(b->sa), 1024);
	/* without subscribers: at once */
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B, .ends = true }), 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_D, .ends = true }), 0);
	post_kept(b, 6, 1);
	assert_int_equal(sa_event_told(b->sa), 6);
}

/* A new leader posts the same event: the subscriber gets the same Notice and TID again. */
static void
test_kept_event_has_the_same_tid_again(void **state)
{
	struct bench *b = *state;

	keep_events_of(b);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_D }), 0);
	sa_notice_join(b, 0xFFFF);
	post_kept(b, 5, 0x1234);
	assert_true(b->calls[0].call.keep_tid);
	assert_true(tid_of(b, 0) != tid_of(b, 1)); /* each subscription has one of its own */
	sa_events_forget(b->sa, 6);
	assert_true(sa_pending(b->w));
	sa_notice_run(b);
	assert_false(b->calls[0].open || b->calls[1].open);
	assert_int_equal(sa_event_told(b->sa), 5); /* its place is free */
	post_kept(b, 5, 0x1234); /* forgotten before it was begun */
	assert_int_equal(b->num_calls, 2);
	assert_int_equal(sa_event_told(b->sa), 5);
	post_kept(b, 6, 0x1234);
	assert_int_equal(b->num_calls, 4);
	assert_memory_equal(b->calls[0].mad, b->calls[2].mad, MAD_LEN);
	assert_memory_equal(b->calls[1].mad, b->calls[3].mad, MAD_LEN);
	post_kept(b, 7, 0x1235);
	assert_true(tid_of(b, 4) != tid_of(b, 0));
}

static void
test_kept_event_waits_for_a_session(void **state)
{
	struct bench *b = *state;

	keep_events_of(b);
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	sa_notice_join(b, 0xFFFF);
	b->calls_allowed = 0;
	post_kept(b, 5, 0x1234);
	assert_int_equal(b->num_calls, 0);
	assert_int_equal(sa_worker_counters(b->w)->reports_given_up, 0);
	assert_int_equal(sa_event_told(b->sa), 0);
	b->calls_allowed = CALLS_MAX;
	b->now += b->config.hz;
	sa_notice_run(b);
	assert_int_equal(b->num_calls, 1);
}

static void
test_event_that_is_not_kept_is_counted(void **state)
{
	struct bench *b = *state;

	keep_events_of(b);
	keep_nothing = true;
	sa_notice_join(b, 0xFFFF);
	sa_notice_run(b);
	assert_int_equal(sa_worker_counters(b->w)->events_lost, 1);
}

/* In a fleet, a trap goes to the leader as a change that has an event and no record. */
static void
test_trap_is_passed_on(void **state)
{
	struct bench *b = *state;

	keep_events_of(b);
	assert_int_equal(sa_notices_run(b->w, b->now, 64), 0); /* there is nothing to do */
	assert_int_equal(subscribe(b, &(struct subscription){ .from = GUID_B }), 0);
	sa_trap(b->w, trap_from(4, 144, 4));
	assert_int_equal(b->num_writes, 1);
	assert_int_equal(sa_worker_counters(b->w)->writes, 2); /* the subscription, and the trap */
	bench_run(b);
	assert_int_equal(num_kept, 1);
	assert_true(kept_events[0].is_trap);
	assert_memory_equal(kept_events[0].notice, trap_from(4, 144, 4), 64);
	post_kept(b, 5, 0x1234);
	assert_int_equal(b->num_calls, 1);
	assert_memory_equal(b->calls[0].mad + SA2_OFF_DATA, trap_from(4, 144, 4), 64);
	assert_int_equal(get_be64(b->calls[0].mad + SA2_OFF_DATA + 72), GUID_A);
	/* one that the store's thread has no room for */
	b->refuse_writes = true;
	sa_trap(b->w, trap_from(4, 144, 4));
	sa_notice_run(b);
	assert_int_equal(sa_worker_counters(b->w)->events_lost, 1);
	b->refuse_writes = false;
	sa_trap(b->w, trap_from(4, 144, 4));
	bench_run(b);
	assert_int_equal(sa_worker_counters(b->w)->events_lost, 1);
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_subscription_of_a_stranger_ends_after_an_hour),
		T(test_subscriber_is_told_of_groups),
		T(test_subscriber_is_told_of_ports),
		T(test_imported_subscription_gets_no_reports),
		T(test_bytes_of_a_subscriber),
		T(test_form_of_stored_subscriptions),
		T(test_subscriber_is_told_of_traps),
		T(test_security_traps_are_for_the_trusted),
		T(test_events_and_traps_by_turns),
		T(test_what_was_not_asked_for_is_not_told),
		T(test_other_partitions_groups_are_not_told),
		T(test_of_a_change_that_failed_nothing_is_told),
		T(test_subscription_is_made_once_and_ended_once),
		T(test_subscriptions_of_a_port_are_bounded),
		T(test_subscribe_field_out_of_range),
		T(test_unproven_subscriber_gets_three_for_one),
		T(test_subscriptions_have_a_budget_each),
		cmocka_unit_test(test_pool_of_budgets),
		cmocka_unit_test(test_reports_are_bounded_in_number_and_rate),
		T(test_report_that_cannot_be_sent_is_given_up),
		T(test_events_too_many_for_their_queue_are_counted),
		T(test_edited_subscription_is_still_told),
		T(test_kept_event_is_told_when_all_have_answered),
		T(test_kept_event_has_the_same_tid_again),
		T(test_kept_event_waits_for_a_session),
		T(test_event_that_is_not_kept_is_counted),
		T(test_trap_is_passed_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
