/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* All threads give up their capabilities. capabilities_drop() is this file's. Needs root. */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/capability.h"
#include "privileges.h"

#define ASKED (SIGRTMIN + 1)

static atomic_bool blocking, dropped_all, ended;
static atomic_uint handlers;

static void
pause_a_moment(void)
{
	const struct timespec ms = { 0, 1000000 };

	nanosleep(&ms, NULL);
}

static void
give_up_all(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	syscall(SYS_capset, &header, none);
}

/* In the handler: it ends after the main thread has seen it, while the next signal waits. */
int
capabilities_drop(void)
{
	sigset_t waiting;

	atomic_fetch_add(&handlers, 1);
	do {
		pause_a_moment();
		sigpending(&waiting);
	} while (!sigismember(&waiting, ASKED));
	give_up_all();
	while (!atomic_load(&dropped_all))
		pause_a_moment();
	return 0;
}

static void *
wait_for_the_end(void *blocks)
{
	sigset_t all;

	sigfillset(&all);
	if (blocks != NULL)
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	atomic_store(&blocking, true);
	while (!atomic_load(&ended))
		pause_a_moment();
	return NULL;
}

static int
drop_beside_a_thread(bool blocks, struct error *err)
{
	pthread_t thread;
	int rc;

	atomic_store(&blocking, false);
	atomic_store(&dropped_all, false);
	atomic_store(&ended, false);
	atomic_store(&handlers, 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, blocks ? &ended : NULL),
		0);
	while (!atomic_load(&blocking))
		pause_a_moment();
	rc = privileges_drop_others(err);
	atomic_store(&dropped_all, true);
	atomic_store(&ended, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return rc;
}

/* The default action of one that is left would end this process. */
static void
test_no_signal_is_left(void **state)
{
	struct error err = { "" };

	(void)state;
	assert_int_equal(drop_beside_a_thread(false, &err), 0);
	assert_int_equal(atomic_load(&handlers), 1);
}

/* The threads that the kernel makes of a process, vhost's, do so. */
static void
test_thread_that_blocks_all_signals_keeps_them(void **state)
{
	struct error err = { "" };

	(void)state;
	assert_int_equal(drop_beside_a_thread(true, &err), 0);
	assert_int_equal(atomic_load(&handlers), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_signal_is_left),
		cmocka_unit_test(test_thread_that_blocks_all_signals_keeps_them),
	};

	return geteuid() != 0 ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
