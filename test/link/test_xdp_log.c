/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What libbpf and libxdp print, kept or passed on. The two libraries are those of this file: dlopen() and what follows. */

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "link/private.h"

typedef int print_fn(int level, const char *fmt, va_list args);

/* A library that is loaded, with the function that it prints by. */
struct library {
	const char *name;
	const char *function; /* NULL: it has none */
	print_fn *print;
	unsigned int open;
};

static struct library libbpf = { .name = "libbpf.so.1" }, libxdp = { .name = "libxdp.so.1" };
static bool loaded;

static print_fn *
set_libbpf(print_fn *fn)
{
	libbpf.print = fn;
	return NULL;
}

static print_fn *
set_libxdp(print_fn *fn)
{
	libxdp.print = fn;
	return NULL;
}

void *
dlopen(const char *name, int flags)
{
	struct library *l = strcmp(name, libbpf.name) == 0 ? &libbpf : &libxdp;

	assert_string_equal(name, l->name);
	assert_true((flags & RTLD_NOLOAD) != 0); /* nothing is loaded for the sake of the log */
	if (!loaded)
		return NULL;
	l->open++;
	return l;
}

void *
dlsym(void *handle, const char *function)
{
	struct library *l = handle;
	print_fn *(*set)(print_fn *fn) = l == &libbpf ? set_libbpf : set_libxdp;

	return l->function != NULL && strcmp(function, l->function) == 0 ? *(void **)&set : NULL;
}

int
dlclose(void *handle)
{
	((struct library *)handle)->open--;
	return 0;
}

static int __attribute__((format(printf, 2, 3)))
print(const struct library *l, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = l->print(1, fmt, args);
	va_end(args);
	return n;
}

static int
setup(void **state)
{
	(void)state;
	loaded = true;
	libbpf.function = "libbpf_set_print";
	libxdp.function = "libxdp_set_print";
	libbpf.print = libxdp.print = NULL;
	return 0;
}

/* First: nobody has begun yet. */
static void
test_before_a_start_nothing_is_known(void **state)
{
	(void)state;
	assert_null(xdp_log_kernel());
}

static void
test_words_of_the_kernel_are_kept(void **state)
{
	(void)state;
	xdp_log_begin();
	assert_string_equal(xdp_log_kernel(), "");
	print(&libbpf, "libbpf: loading %s\n", "object");
	assert_string_equal(xdp_log_kernel(), "");
	print(&libbpf, "libbpf: Kernel error message: %s\n", "Peer MTU is too large to set XDP");
	assert_string_equal(xdp_log_kernel(), "Peer MTU is too large to set XDP");
	print(&libxdp, "libxdp: no dispatcher\n");
	assert_string_equal(xdp_log_kernel(), "Peer MTU is too large to set XDP");
	print(&libxdp, "Kernel error message: native XDP is not available\nmore\n");
	assert_string_equal(xdp_log_kernel(), "native XDP is not available");
	assert_int_equal(libbpf.open + libxdp.open, 0);
}

static void
test_next_start_forgets_them(void **state)
{
	(void)state;
	xdp_log_begin();
	print(&libbpf, "Kernel error message: busy\n");
	xdp_log_begin();
	assert_string_equal(xdp_log_kernel(), "");
}

static void
test_long_words_are_cut(void **state)
{
	(void)state;
	xdp_log_begin();
	print(&libbpf, "Kernel error message: %0300d\n", 7);
	assert_int_equal(strlen(xdp_log_kernel()), 127);
}

static void
test_libraries_that_are_not_loaded_or_different_stay(void **state)
{
	(void)state;
	loaded = false;
	xdp_log_begin();
	assert_string_equal(xdp_log_kernel(), "");
	loaded = true;
	libxdp.function = NULL;
	libbpf.function = "libbpf_set_print_2";
	xdp_log_begin();
	assert_null(libbpf.print);
	assert_null(libxdp.print);
	assert_int_equal(libbpf.open + libxdp.open, 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(test_before_a_start_nothing_is_known),
		T(test_words_of_the_kernel_are_kept),
		T(test_next_start_forgets_them),
		T(test_long_words_are_cut),
		T(test_libraries_that_are_not_loaded_or_different_stay),
	};

	return cmocka_run_group_tests_name("link: log of AF_XDP's libraries", tests, NULL, NULL);
}
