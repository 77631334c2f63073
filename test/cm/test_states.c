/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * All of cm.md 6: for each state and each message that the peer can send, the next state and the
 * answer. Written from the sheet, not from lib/cm/states.c.
 */

#include <string.h>

#include "world.h"

#define SAME CM_STATES
#define GONE CM_STATE_IDLE

struct row {
	enum cm_message message;
	enum cm_state next;
	const char *answer; /* NULL: none */
};

/* --- reaching a state --- */

struct subject {
	struct world *w;
	struct life *l;
	struct cm_msg req; /* our REQ or the peer's */
};

static void
states_say(struct subject *s, struct cm_msg m)
{
	m.tid = PEER_TID;
	m.local_id = PEER_ID;
	m.remote_id = s->l->id;
	peer_say(s->w, &m);
}

static struct cm_msg
mra(uint8_t answers)
{
	return (struct cm_msg){
		.type = CM_MRA,
		.mra = { .answers = answers, .service_timeout = 20 },
	};
}

static void
to_req_sent(struct subject *s)
{
	s->l = start(&s->w->a);
	s->req = next_message(&s->w->a, CM_REQ);
}

static void
to_mra_req_rcvd(struct subject *s)
{
	to_req_sent(s);
	states_say(s, mra(CM_ANSWERS_REQ));
}

static void
to_req_rcvd(struct subject *s)
{
	s->w->a.answer = CM_LATER;
	peer_req(s->w, &s->req);
	peer_say(s->w, &s->req);
	s->l = last_life(&s->w->a);
}

static void
to_mra_req_sent(struct subject *s)
{
	to_req_rcvd(s);
	peer_say(s->w, &s->req);
}

static void
to_rep_sent(struct subject *s)
{
	peer_req(s->w, &s->req);
	peer_say(s->w, &s->req);
	s->l = last_life(&s->w->a);
}

static void
to_mra_rep_rcvd(struct subject *s)
{
	to_rep_sent(s);
	states_say(s, mra(CM_ANSWERS_REP));
}

static void
to_established_passive(struct subject *s)
{
	to_rep_sent(s);
	states_say(s, (struct cm_msg){ .type = CM_RTU });
}

static void
to_established_active(struct subject *s)
{
	struct cm_msg rep;

	to_req_sent(s);
	peer_rep(s->w, &rep, &s->req);
	peer_say(s->w, &rep);
}

static void
to_dreq_sent(struct subject *s)
{
	to_established_passive(s);
	disconnect(s->l);
}

static void
to_timewait(struct subject *s)
{
	to_established_passive(s);
	peer_dreq(s->w, s->l->id, PEER_ID, s->l->qpn);
}

/* --- messages in a state --- */

static void
say_message(struct subject *s, enum cm_message type)
{
	struct cm_msg m = { .type = type };

	switch (type) {
	case CM_REQ:
		peer_say(s->w, &s->req);
		return;
	case CM_MRA: /* with the MessageMRAed of the state */
		m = mra(s->l->info.active || s->req.local_id == s->l->id ? CM_ANSWERS_REQ
									 : CM_ANSWERS_REP);
		break;
	case CM_REJ:
		m.rej.reason = CM_REJ_CONSUMER;
		break;
	case CM_REP:
		peer_rep(s->w, &m, &s->req);
		break;
	case CM_DREQ:
		m.dreq.qpn = s->l->qpn;
		break;
	case CM_LAP: /* with an invalid QPN: refused, but only in states that allow a LAP */
		m.lap.qpn = 1;
		break;
	default:
		break;
	}
	states_say(s, m);
}

static void
check_row(struct subject *s, enum cm_state state, const struct row *row)
{
	enum cm_state next = row->next == SAME ? state : row->next;
	cm_id id = s->l->id;

	expect_state(&s->w->a, id, state);
	skip_messages(&s->w->a);
	say_message(s, row->message);
	if (next == GONE)
		expect_gone(&s->w->a, id);
	else
		expect_state(&s->w->a, id, next);
	expect_sent(&s->w->a, row->answer, NULL);
}

static void
check_state(enum cm_state state, void (*into)(struct subject *), const struct row *rows)
{
	static const struct world scripted = { .scripted = true };
	struct subject s;

	for (; rows->message != CM_MESSAGES; rows++) {
		s = (struct subject){ .w = world_create(&scripted) };
		into(&s);
		print_message("%s %s\n", cm_state_name(state), cm_message_name(rows->message));
		check_row(&s, state, rows);
		world_destroy(s.w);
	}
}

/* SIDR messages belong to no connection, so they change no state. */
#define SIDR                                                                                       \
	{ CM_SIDR_REQ, SAME, "SIDR_REP" },                                                         \
	{                                                                                          \
		CM_SIDR_REP, SAME, NULL                                                            \
	}
#define END                                                                                        \
	{                                                                                          \
		CM_MESSAGES, SAME, NULL                                                            \
	}

/* --- active --- */

static void
test_req_sent(void **state)
{
	static const struct row rows[] = { { CM_MRA, CM_STATE_MRA_REQ_RCVD, NULL },
		{ CM_REJ, GONE, NULL }, { CM_REP, CM_STATE_ESTABLISHED, "RTU" },
		{ CM_RTU, SAME, NULL }, { CM_DREQ, SAME, "DREP" }, /* unknown connection */
		{ CM_DREP, SAME, NULL }, { CM_LAP, SAME, NULL }, { CM_APR, SAME, NULL }, SIDR,
		END };

	(void)state;
	check_state(CM_STATE_REQ_SENT, to_req_sent, rows);
	check_state(CM_STATE_MRA_REQ_RCVD, to_mra_req_rcvd, rows);
}

/* --- passive --- */

static void
test_req_rcvd(void **state)
{
	static const struct row rows[] = { { CM_REQ, CM_STATE_MRA_REQ_SENT, "MRA" },
		{ CM_MRA, SAME, NULL }, { CM_REJ, GONE, NULL }, { CM_REP, SAME, NULL },
		{ CM_RTU, SAME, NULL }, { CM_DREQ, SAME, NULL }, { CM_DREP, SAME, NULL },
		{ CM_LAP, SAME, NULL }, { CM_APR, SAME, NULL }, SIDR, END };

	(void)state;
	check_state(CM_STATE_REQ_RCVD, to_req_rcvd, rows);
	check_state(CM_STATE_MRA_REQ_SENT, to_mra_req_sent, rows);
}

static void
test_rep_sent(void **state)
{
	static const struct row rows[] = { { CM_REQ, SAME, "REP" },
		{ CM_MRA, CM_STATE_MRA_REP_RCVD, NULL }, { CM_REJ, GONE, NULL },
		{ CM_REP, SAME, NULL }, { CM_RTU, CM_STATE_ESTABLISHED, NULL },
		{ CM_DREQ, CM_STATE_TIMEWAIT, "DREP" }, { CM_DREP, SAME, NULL },
		{ CM_LAP, SAME, NULL }, { CM_APR, SAME, NULL }, SIDR, END };

	(void)state;
	check_state(CM_STATE_REP_SENT, to_rep_sent, rows);
}

static void
test_mra_rep_rcvd(void **state)
{
	static const struct row rows[] = { { CM_REQ, SAME, NULL }, { CM_MRA, SAME, NULL },
		{ CM_REJ, GONE, NULL }, { CM_REP, SAME, NULL },
		{ CM_RTU, CM_STATE_ESTABLISHED, NULL }, { CM_DREQ, CM_STATE_TIMEWAIT, "DREP" },
		{ CM_DREP, SAME, NULL }, { CM_LAP, SAME, NULL }, { CM_APR, SAME, NULL }, SIDR,
		END };

	(void)state;
	check_state(CM_STATE_MRA_REP_RCVD, to_mra_rep_rcvd, rows);
}

/* --- both sides --- */

static void
test_established(void **state)
{
	static const struct row both[] = { { CM_MRA, SAME, NULL },
		{ CM_REJ, CM_STATE_TIMEWAIT, NULL }, { CM_RTU, SAME, NULL },
		{ CM_DREQ, CM_STATE_TIMEWAIT, "DREP" }, { CM_DREP, SAME, NULL },
		{ CM_LAP, SAME, "APR" }, { CM_APR, SAME, NULL }, SIDR, END };
	static const struct row passive[] = { { CM_REQ, SAME, NULL }, { CM_REP, SAME, NULL }, END };
	static const struct row active[] = { { CM_REP, SAME, "RTU" }, END };

	(void)state;
	check_state(CM_STATE_ESTABLISHED, to_established_passive, both);
	check_state(CM_STATE_ESTABLISHED, to_established_active, both);
	check_state(CM_STATE_ESTABLISHED, to_established_passive, passive);
	check_state(CM_STATE_ESTABLISHED, to_established_active, active);
}

static void
test_dreq_sent(void **state)
{
	static const struct row rows[] = { { CM_REQ, SAME, NULL }, { CM_MRA, SAME, NULL },
		{ CM_REJ, CM_STATE_TIMEWAIT, NULL }, { CM_REP, SAME, NULL }, { CM_RTU, SAME, NULL },
		{ CM_DREQ, CM_STATE_TIMEWAIT, "DREP" }, { CM_DREP, CM_STATE_TIMEWAIT, NULL },
		{ CM_LAP, SAME, NULL }, { CM_APR, SAME, NULL }, SIDR, END };

	(void)state;
	check_state(CM_STATE_DREQ_SENT, to_dreq_sent, rows);
}

static void
test_timewait(void **state)
{
	static const struct row rows[] = { { CM_REQ, SAME, "REJ" }, { CM_MRA, SAME, NULL },
		{ CM_REJ, SAME, NULL }, { CM_REP, SAME, NULL }, { CM_RTU, SAME, NULL },
		{ CM_DREQ, SAME, "DREP" }, { CM_DREP, SAME, NULL }, { CM_LAP, SAME, NULL },
		{ CM_APR, SAME, NULL }, SIDR, END };

	(void)state;
	check_state(CM_STATE_TIMEWAIT, to_timewait, rows);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_req_sent),
		cmocka_unit_test(test_req_rcvd),
		cmocka_unit_test(test_rep_sent),
		cmocka_unit_test(test_mra_rep_rcvd),
		cmocka_unit_test(test_established),
		cmocka_unit_test(test_dreq_sent),
		cmocka_unit_test(test_timewait),
	};

	return cmocka_run_group_tests_name("cm: states", tests, NULL, NULL);
}
