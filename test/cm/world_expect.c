/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "world.h"

/* --- expectations --- */

/* Decode the next CM message that n has sent. @return false: there is none */
static bool
next_cm(struct node *n, struct cm_msg *m)
{
	struct packet pkt;

	while (n->seen < n->sent) {
		world_parse(n, world_frame(n, n->seen++), &pkt);
		if (!world_is_cm(&pkt))
			continue;
		assert_int_equal(cm_msg_decode(pkt.payload, m), 0);
		return true;
	}
	return false;
}

void
expect_sent(struct node *n, const char *first, ...)
{
	struct cm_msg m;
	const char *want;
	va_list ap;

	va_start(ap, first);
	for (want = first; want != NULL; want = va_arg(ap, const char *)) {
		if (!next_cm(n, &m))
			fail_msg("expected \"%s\", nothing was sent", want);
		assert_string_equal(cm_message_name(m.type), want);
	}
	va_end(ap);
	if (next_cm(n, &m))
		fail_msg("\"%s\" was sent, nothing expected", cm_message_name(m.type));
}

struct cm_msg
next_message(struct node *n, enum cm_message type)
{
	struct cm_msg m;

	if (!next_cm(n, &m))
		fail_msg("expected \"%s\", nothing was sent", cm_message_name(type));
	assert_string_equal(cm_message_name(m.type), cm_message_name(type));
	return m;
}

void
skip_messages(struct node *n)
{
	n->seen = n->sent;
}

void
expect_state(const struct node *n, cm_id id, enum cm_state state)
{
	struct cm_info info;

	assert_true(cm_get(n->cm, id, n->world->now, &info));
	assert_string_equal(cm_state_name(info.state), cm_state_name(state));
}

void
expect_gone(const struct node *n, cm_id id)
{
	struct cm_info info;

	assert_false(cm_get(n->cm, id, n->world->now, &info));
}

void
expect_log(const struct life *l, const char *log)
{
	assert_string_equal(l->log, log);
}

unsigned int
count_qps(const struct node *n)
{
	uint32_t cursor = 0, qpn;
	unsigned int count = 0;

	while (rc_qp_next(n->rc, &cursor, &qpn))
		count++;
	return count;
}

unsigned int
count_conns(const struct node *n)
{
	struct cm_info info;
	uint32_t cursor = 0;
	unsigned int count = 0;

	while (cm_next(n->cm, &cursor, n->world->now, &info))
		count++;
	return count;
}

void
expect_nothing_left(struct node *n)
{
	assert_int_equal(count_conns(n), 0);
	assert_int_equal(count_qps(n), 0);
	assert_false(cm_pending(n->cm));
}

enum qp_state
qp_state_of(const struct node *n, uint32_t qpn)
{
	struct rc_qp_info info;

	assert_int_equal(rc_qp_query(n->rc, qpn, &info), 0);
	return info.attr.qp_state;
}

struct cm_counters
counters_of(const struct node *n)
{
	return *cm_counters(n->cm);
}
