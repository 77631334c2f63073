/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Messages of libbpf and libxdp are kept for the cause of an error, or logged. Here both libraries
 * are fake_print.c; arguments 1 and 2 are their files.
 */

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "link/device.h"
#include "link/private.h"

typedef void fake_print(const char *fmt, ...);

static const char *libbpf, *libxdp; /* files */

/* Load the library, as the driver does. @return the library's print function */
static fake_print *
xdp_log_load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);
	fake_print *print;

	if (handle == NULL)
		fail_msg("%s", dlerror());
	*(void **)&print = dlsym(handle, "fake_print");
	assert_non_null(print);
	return print;
}

/* The first three tests need this order: no start yet, no library loaded, libraries loaded. */
static void
test_before_a_start_nothing_is_known(void **state)
{
	(void)state;
	assert_null(xdp_log_kernel());
}

static void
test_libraries_need_not_be_loaded(void **state)
{
	(void)state;
	xdp_log_begin();
	assert_string_equal(xdp_log_kernel(), "");
	/* xdp_log does not load them */
	assert_null(dlopen("libbpf.so.1", RTLD_NOW | RTLD_NOLOAD));
	assert_null(dlopen("libxdp.so.1", RTLD_NOW | RTLD_NOLOAD));
}

static void
test_words_of_the_kernel_are_kept(void **state)
{
	fake_print *bpf = xdp_log_load(libbpf), *xdp = xdp_log_load(libxdp);

	(void)state;
	xdp_log_begin();
	assert_string_equal(xdp_log_kernel(), "");
	bpf("libbpf: loading %s\n", "object");
	assert_string_equal(xdp_log_kernel(), "");
	bpf("libbpf: Kernel error message: %s\n", "Peer MTU is too large to set XDP");
	assert_string_equal(xdp_log_kernel(), "Peer MTU is too large to set XDP");
	xdp("libxdp: no dispatcher\n");
	assert_string_equal(xdp_log_kernel(), "Peer MTU is too large to set XDP");
	xdp("Kernel error message: native XDP is not available\nmore\n");
	assert_string_equal(xdp_log_kernel(), "native XDP is not available");
}

static void
test_next_start_forgets_them(void **state)
{
	(void)state;
	xdp_log_begin();
	xdp_log_load(libbpf)("Kernel error message: busy\n");
	assert_string_equal(xdp_log_kernel(), "busy");
	xdp_log_begin();
	assert_string_equal(xdp_log_kernel(), "");
}

static void
test_long_words_are_cut(void **state)
{
	(void)state;
	xdp_log_begin();
	xdp_log_load(libxdp)("Kernel error message: %0300d\n", 7);
	assert_int_equal(strlen(xdp_log_kernel()), 127);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_a_start_nothing_is_known),
		cmocka_unit_test(test_libraries_need_not_be_loaded),
		cmocka_unit_test(test_words_of_the_kernel_are_kept),
		cmocka_unit_test(test_next_start_forgets_them),
		cmocka_unit_test(test_long_words_are_cut),
	};

	if (argc != 3)
		return 2;
	libbpf = argv[1];
	libxdp = argv[2];
	return cmocka_run_group_tests_name("link: log of AF_XDP's libraries", tests, NULL, NULL);
}
