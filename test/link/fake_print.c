/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A library that prints by a callback of the program, as libbpf and libxdp do. SET_PRINT is the
 * name of the library's function that sets the callback.
 */

#include <stdarg.h>
#include <stddef.h>

typedef int print_fn(int level, const char *fmt, va_list args);

static print_fn *print;

print_fn *SET_PRINT(print_fn *fn);
void fake_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

print_fn *
SET_PRINT(print_fn *fn)
{
	print_fn *before = print;

	print = fn;
	return before;
}

void
fake_print(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (print != NULL)
		print(1, fmt, args);
	va_end(args);
}
