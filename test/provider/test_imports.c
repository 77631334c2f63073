/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A call of another library, cmocka's own, is redirected, and back: its table is read-only, and is
 * left alone where it leads there already.
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "imports.h"

#define LIBRARY  "libcmocka.so"
#define FUNCTION "getenv"
#define THREADS  4
#define ROUNDS   500

static unsigned int protections;

/* In the place of the C library's. */
int
mprotect(void *addr, size_t len, int prot)
{
	__atomic_add_fetch(&protections, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_mprotect, addr, len, prot);
}

static char *
one_getenv(const char *name)
{
	return getenv(name);
}

static char *
another_getenv(const char *name)
{
	return one_getenv(name);
}

static void
put_back(void)
{
	imports_redirect(LIBRARY, FUNCTION, (void (*)(void))getenv);
}

static void
test_only_what_leads_elsewhere_is_changed(void **state)
{
	unsigned int before;

	(void)state;
	assert_int_equal(imports_redirect(LIBRARY, FUNCTION, (void (*)(void))one_getenv), 1);
	before = protections;
	assert_int_equal(imports_redirect(LIBRARY, FUNCTION, (void (*)(void))one_getenv), 0);
	assert_int_equal(protections, before);
	assert_int_equal(imports_redirect(LIBRARY, FUNCTION, (void (*)(void))another_getenv), 1);
	assert_int_equal(imports_redirect(LIBRARY, "no such function", NULL), 0);
	assert_int_equal(imports_redirect("no such library", FUNCTION, NULL), 0);
	put_back();
}

static void *
redirect_to_and_fro(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		imports_redirect(LIBRARY, FUNCTION, (void (*)(void))one_getenv);
		imports_redirect(LIBRARY, FUNCTION, (void (*)(void))another_getenv);
	}
	return NULL;
}

/* No thread makes the page read-only under another one's write. */
static void
test_threads_redirect_at_once(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, redirect_to_and_fro, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	put_back();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_leads_elsewhere_is_changed),
		cmocka_unit_test(test_threads_redirect_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
