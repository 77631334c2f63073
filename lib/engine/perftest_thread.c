/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The thread of perftest's exchange. Strangers' bytes are read on it and not on the control thread,
 * which so never waits for a client, and it has no capabilities. Two queues (perftest_queue.c) and
 * an eventfd for each direction connect both threads. The control thread answers a few questions a
 * turn; the exchange's thread never waits for it.
 */

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/capability.h"
#include "engine/perftest.h"

#define ANSWERS_A_TURN 8 /* each makes workers run a command */

/* --- on the control thread --- */

void
perftest_serve(struct perftest_sockets *t, unsigned int most)
{
	struct perftest_session *s;

	while (most-- > 0 && (s = perftest_dequeue(t, &t->questions)) != NULL) {
		perftest_answer_question(s);
		if (!perftest_enqueue(t, &t->answers, s))
			eventfd_write(t->told_fd, 1);
	}
}

static void
perftest_asked(evutil_socket_t fd, short events, void *sockets)
{
	struct perftest_sockets *t = sockets;
	eventfd_t count;
	bool more;

	RTE_SET_USED(events);
	eventfd_read(fd, &count);
	perftest_serve(t, ANSWERS_A_TURN);
	pthread_mutex_lock(&t->lock);
	more = t->questions.num > 0;
	pthread_mutex_unlock(&t->lock);
	if (more) /* in the next turn, after the control socket's clients */
		eventfd_write(fd, 1);
}

void
perftest_watch(struct engine *e, uint64_t now)
{
	struct perftest_sockets *t = e->perftest;

	__atomic_store_n(&t->mtu, perftest_mtu(e), __ATOMIC_RELAXED);
	if (!t->started)
		return;
	pthread_mutex_lock(&t->lock);
	t->watch = now;
	pthread_mutex_unlock(&t->lock);
	eventfd_write(t->told_fd, 1);
}

/* --- on the exchange's thread --- */

static void
perftest_run_job(struct perftest_sockets *t)
{
	struct perftest_job *job;

	pthread_mutex_lock(&t->lock);
	job = t->job;
	pthread_mutex_unlock(&t->lock);
	if (job == NULL)
		return;
	job->result = job->fn(t, job->arg);
	pthread_mutex_lock(&t->lock);
	t->job = NULL;
	job->done = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* What the control thread has told. Answers come before the job, which may end their sessions. */
static void
perftest_told(evutil_socket_t fd, short events, void *sockets)
{
	struct perftest_sockets *t = sockets;
	struct perftest_session *s;
	eventfd_t count;
	uint64_t watch;
	bool stop;

	RTE_SET_USED(events);
	eventfd_read(fd, &count);
	while ((s = perftest_dequeue(t, &t->answers)) != NULL)
		perftest_tcp_answered(s);
	pthread_mutex_lock(&t->lock);
	watch = t->watch;
	t->watch = 0;
	stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	if (watch != 0)
		perftest_tcp_watch(t, watch);
	perftest_run_job(t);
	if (stop)
		event_base_loopbreak(t->base);
}

int
perftest_call(struct perftest_sockets *t, int (*fn)(struct perftest_sockets *t, void *arg),
	void *arg)
{
	struct perftest_job job = { .fn = fn, .arg = arg };

	pthread_mutex_lock(&t->lock);
	t->job = &job;
	pthread_mutex_unlock(&t->lock);
	if (!t->started) {
		perftest_told(t->told_fd, 0, t);
		return job.result;
	}
	eventfd_write(t->told_fd, 1);
	pthread_mutex_lock(&t->lock);
	while (!job.done)
		pthread_cond_wait(&t->changed, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return job.result;
}

static void *
perftest_main(void *sockets)
{
	struct perftest_sockets *t = sockets;
	int ready;

	prctl(PR_SET_NAME, "polca-perftest");
	ready = capabilities_drop(); /* the control thread keeps what the links need */
	if (ready == 0)
		ready = 1;
	pthread_mutex_lock(&t->lock);
	t->ready = ready;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	if (ready > 0)
		event_base_loop(t->base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

/* --- the thread's start and end, on the control thread --- */

static bool
perftest_has_listener(const struct perftest_sockets *t)
{
	unsigned int i;

	for (i = 0; i < ENGINE_SERVICE_PLACES; i++)
		if (t->listener[i].event != NULL)
			return true;
	return false;
}

static int
perftest_wait_ready(struct perftest_sockets *t)
{
	int ready;

	pthread_mutex_lock(&t->lock);
	while (t->ready == 0)
		pthread_cond_wait(&t->changed, &t->lock);
	ready = t->ready;
	pthread_mutex_unlock(&t->lock);
	return ready > 0 ? 0 : ready;
}

int
perftest_thread_start(struct engine *e, struct error *err)
{
	struct perftest_sockets *t = e->perftest;
	sigset_t all, before;
	int ret;

	if (t->started || !perftest_has_listener(t))
		return 0;
	t->stop = false;
	t->ready = 0;
	sigfillset(&all); /* signals are the control thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&t->thread, NULL, perftest_main, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret != 0)
		return error_set(err, ret, "no thread for tcp_port");
	ret = perftest_wait_ready(t);
	if (ret == 0) {
		t->started = true;
		return 0;
	}
	pthread_join(t->thread, NULL);
	return error_set(err, -ret, "tcp_port: its thread cannot give up its capabilities");
}

void
perftest_thread_stop(struct engine *e)
{
	struct perftest_sockets *t = e->perftest;

	if (t == NULL || !t->started)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_mutex_unlock(&t->lock);
	eventfd_write(t->told_fd, 1);
	pthread_join(t->thread, NULL);
	t->started = false;
}

/* An eventfd and the event that waits for it. @return NULL: no memory or descriptor */
static struct event *
perftest_eventfd(struct event_base *base, int *fd, event_callback_fn run,
	struct perftest_sockets *t)
{
	struct event *event;

	*fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (*fd < 0)
		return NULL;
	event = event_new(base, *fd, EV_READ | EV_PERSIST, run, t);
	if (event == NULL || event_add(event, NULL) == 0)
		return event;
	event_free(event);
	return NULL;
}

int
perftest_create(struct engine *e, struct error *err)
{
	struct perftest_sockets *t = mem_zalloc(&allocator_malloc, sizeof(*t), 64);
	unsigned int i;

	if (t == NULL)
		return error_set(err, ENOMEM, "no memory for the sockets of services");
	e->perftest = t;
	t->engine = e;
	t->mtu = perftest_mtu(e);
	t->patience.tv_sec = PERFTEST_ANSWER_S;
	t->told_fd = t->asked_fd = -1;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	for (i = 0; i < ENGINE_SERVICE_PLACES; i++)
		t->listener[i].sockets = t;
	t->base = event_base_new();
	if (t->base != NULL)
		t->told = perftest_eventfd(t->base, &t->told_fd, perftest_told, t);
	if (t->told != NULL)
		t->asked = perftest_eventfd(engine_event_base(e), &t->asked_fd, perftest_asked, t);
	if (t->asked == NULL)
		return error_set(err, ENOMEM, "no event loop: no memory or descriptor");
	return 0;
}
