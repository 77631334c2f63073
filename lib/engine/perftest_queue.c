/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The queues between the control thread and the thread of perftest's exchange: each has a place per
 * session, so that there is always room.
 */

#include <sys/eventfd.h>

#include "engine/perftest.h"

bool
perftest_enqueue(struct perftest_sockets *t, struct perftest_queue *q, struct perftest_session *s)
{
	bool waiting;

	pthread_mutex_lock(&t->lock);
	waiting = q->num > 0;
	RTE_ASSERT(q->num < PERFTEST_PLACES);
	q->at[(q->first + q->num++) % PERFTEST_PLACES] = s;
	pthread_mutex_unlock(&t->lock);
	return waiting;
}

struct perftest_session *
perftest_dequeue(struct perftest_sockets *t, struct perftest_queue *q)
{
	struct perftest_session *s = NULL;

	pthread_mutex_lock(&t->lock);
	if (q->num > 0) {
		s = q->at[q->first];
		q->first = (q->first + 1) % PERFTEST_PLACES;
		q->num--;
	}
	pthread_mutex_unlock(&t->lock);
	return s;
}

void
perftest_ask(struct perftest_session *s, enum perftest_question question)
{
	struct perftest_sockets *t = s->engine->perftest;

	s->question = question;
	if (!perftest_enqueue(t, &t->questions, s))
		eventfd_write(t->asked_fd, 1);
}
