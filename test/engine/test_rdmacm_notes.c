/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Workers note what happens to connections of librdmacm's programs, while the control thread takes
 * the notes and frees connections. ThreadSanitizer reports a worker that still uses a connection
 * after its last note.
 */

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/rdmacm_private.h"

#define WORKERS 2
#define CONNS   1000 /* of each worker */
#define WAIT_MS 60000

struct noter {
	pthread_t thread;
	struct rdmacm_conn *conn[CONNS];
};

static void *
note_ends(void *arg)
{
	const struct noter *n = arg;
	unsigned int i;

	for (i = 0; i < CONNS; i++) {
		rdmacm_note(n->conn[i], RDMACM_ENDED);
		rdmacm_released(n->conn[i]);
	}
	return NULL;
}

/* Sleep until a worker wakes this thread, as the event loop does. */
static void
take_notes(struct rdmacm *r)
{
	struct pollfd wakeup = { .fd = r->wakeup_fd, .events = POLLIN };
	eventfd_t count;

	assert_int_equal(poll(&wakeup, 1, WAIT_MS), 1);
	assert_int_equal(eventfd_read(r->wakeup_fd, &count), 0);
	rdmacm_run(r);
}

static void
test_last_note_gives_the_connection_away(void **state)
{
	static struct noter noters[WORKERS];
	static struct rdmacm r;
	unsigned int i, k;

	RTE_SET_USED(state);
	r.wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(r.wakeup_fd >= 0);
	for (i = 0; i < WORKERS; i++)
		for (k = 0; k < CONNS; k++) {
			noters[i].conn[k] = rdmacm_conn_new(&r);
			assert_non_null(noters[i].conn[k]);
		}
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&noters[i].thread, NULL, note_ends, &noters[i]), 0);
	while (r.num_conns > 0)
		take_notes(&r);
	for (i = 0; i < WORKERS; i++)
		pthread_join(noters[i].thread, NULL);
	assert_null(r.noted);
	close(r.wakeup_fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_note_gives_the_connection_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
