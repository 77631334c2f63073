/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the fleet's thread shares with the store's writer and with whoever asks for the status.
 * ThreadSanitizer watches (config/test.sh tsan).
 */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/fleet_private.h"

#define REQUESTS 20000
#define AT_ONCE  500 /* fewer than the leader can hold */

static void
nobody_sleeps(void *unused)
{
	(void)unused;
}

/* --- the watch brings requests, the writer executes them --- */

static void
watch_brings(struct fleet *f, const char *kind, unsigned int n, uint64_t revision, bool gone)
{
	char key[64];
	struct etcd_kv kv = {
		.key = key,
		.value = (uint8_t *)key,
		.value_len = 1,
		.create_revision = gone ? 0 : revision,
		.mod_revision = revision,
		.gone = gone,
	};
	struct etcd_kvs kvs = { &kv, 1 };

	kv.key_len = (size_t)snprintf(key, sizeof(key), "/p/%s/%u", kind, n);
	fleet_take_requests(f, &kvs);
}

static unsigned int
	answered; /* news that the writer has read; relaxed, so that it orders nothing */

/* The leader's table could be full: what comes then stays in etcd. */
static bool
writer_is_behind(struct fleet *f)
{
	unsigned int n;

	pthread_mutex_lock(&f->lock);
	n = f->num_requests;
	pthread_mutex_unlock(&f->lock);
	return n >= AT_ONCE;
}

/* Each request comes, half of them are withdrawn, and each gets an answer. */
static void *
watch_main(void *fleet)
{
	struct fleet *f = fleet;
	unsigned int i;

	for (i = 0; i < REQUESTS; i++) {
		while (i >= __atomic_load_n(&answered, __ATOMIC_RELAXED) + AT_ONCE ||
			writer_is_behind(f))
			sched_yield();
		watch_brings(f, "q", i, 10 + 3 * i, false);
		if (i % 2 == 1)
			watch_brings(f, "q", i, 11 + 3 * i, true);
		watch_brings(f, "a", i, 12 + 3 * i, false);
	}
	return NULL;
}

/* @return requests that were executed; their numbers rise from *next on */
static unsigned int
execute_some(struct fleet *f, unsigned int *next)
{
	struct fleet_request *r[8];
	unsigned int i, number, n = fleet_take(f, r, 8);

	for (i = 0; i < n; i++) {
		number = (unsigned int)atoi(r[i]->id);
		assert_true(number >= *next);
		*next = number + 1;
	}
	fleet_settle(f, r, n, true);
	return n;
}

static void
test_writer_executes_while_the_watch_brings(void **state)
{
	struct fleet *f = calloc(1, sizeof(*f));
	unsigned int next = 0, executed = 0, n;
	struct fleet_news *news;
	pthread_t watch;

	(void)state;
	assert_non_null(f);
	pthread_mutex_init(&f->lock, NULL);
	STAILQ_INIT(&f->queue);
	STAILQ_INIT(&f->news);
	TAILQ_INIT(&f->requests);
	strcpy(f->key.requests, "/p/q/");
	strcpy(f->key.answers, "/p/a/");
	f->wake = nobody_sleeps;
	f->lead = 5;
	fleet_expect(f, 1);
	assert_int_equal(pthread_create(&watch, NULL, watch_main, f), 0);
	while (answered < REQUESTS) {
		executed += execute_some(f, &next);
		while ((news = fleet_news(f)) != NULL) {
			if (news->kind == FLEET_ANSWERED)
				__atomic_store_n(&answered, answered + 1, __ATOMIC_RELAXED);
			free(news);
		}
	}
	assert_int_equal(pthread_join(watch, NULL), 0);
	while ((n = execute_some(f, &next)) > 0)
		executed += n;
	/* none is lost: those that stayed were executed, of the others those that came in time */
	assert_true(executed >= REQUESTS / 2 && executed <= REQUESTS);
	assert_int_equal(f->num_requests, 0);
	fleet_requests_free(f);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* --- an etcd that answers nothing of use --- */

static int
listen_here(struct fleet_config *config)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	snprintf(config->endpoint[0].url, sizeof(config->endpoint[0].url), "http://127.0.0.1:%u",
		ntohs(at.sin_port));
	config->num_endpoints = 1;
	return fd;
}

/* @return connections that were refused by an answer */
static unsigned int
refuse_one(int listener)
{
	static const char answer[] =
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	struct pollfd p = { .fd = listener, .events = POLLIN };
	ssize_t sent;
	int fd;

	if (poll(&p, 1, 10) != 1)
		return 0;
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	sent = send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
	close(fd);
	return sent > 0;
}

static bool enough;

/* The control thread. */
static void *
status_main(void *fleet)
{
	struct fleet_status status;

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		fleet_status(fleet, &status);
		assert_false(status.leads || status.connected);
		sched_yield();
	}
	return NULL;
}

/* The control thread asks, and the writer tries, while the thread finds no etcd again and again. */
static void
test_others_ask_while_etcd_is_away(void **state)
{
	struct fleet_config config = { .prefix = "/p",
		.name = "one",
		.lease_s = 1,
		.max_txn_ops = 64 };
	struct fleet_message m = { .id = "1", .bytes = "x", .len = 1 };
	char dir[] = "/tmp/polca_fleet_XXXXXX", path[64];
	struct store_backend backend;
	pthread_t control;
	unsigned int refused = 0;
	struct fleet *f;
	struct error err;
	int listener;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/copy", dir);
	listener = listen_here(&config);
	assert_int_equal(fleet_open(&config, path, 1 << 20, &f, &backend, &err), 0);
	assert_int_equal(fleet_start(f, nobody_sleeps, NULL, &err), 0);
	assert_int_equal(pthread_create(&control, NULL, status_main, f), 0);
	while (refused < 20) {
		refused += refuse_one(listener);
		assert_int_equal(backend.apply(backend.arg, NULL, 0, &err), -EAGAIN);
		assert_int_equal(fleet_ask(f, &m, 1, &err), -ENOTCONN);
		assert_int_equal(fleet_withdraw(f, m.id, &err), -EAGAIN);
		assert_null(backend.watch(backend.arg));
		fleet_expect(f, refused);
		fleet_is_away(f); /* it looks again at once */
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(control, NULL), 0);
	close(listener);
	backend.close(backend.arg);
	snprintf(path, sizeof(path), "rm -r %s", dir);
	assert_int_equal(system(path), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writer_executes_while_the_watch_brings),
		cmocka_unit_test(test_others_ask_while_etcd_is_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
