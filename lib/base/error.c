/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

/* What the text quotes may come from a file or the wire, and JSON takes nothing but UTF-8. */
static void
replace_bytes_that_are_no_text(uint8_t *p)
{
	unsigned int n;

	for (; *p != '\0'; p += n) {
		n = utf8_length(p, strlen((const char *)p));
		if (n == 0) {
			*p = '?';
			n = 1;
		}
	}
}

static void
error_print(struct error *err, bool limit, const char *fmt, va_list ap)
{
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	replace_bytes_that_are_no_text((uint8_t *)err->text);
	err->limit = limit;
}

int
error_set(struct error *err, int eno, const char *fmt, ...)
{
	va_list ap;

	if (err != NULL) {
		va_start(ap, fmt);
		error_print(err, false, fmt, ap);
		va_end(ap);
	}
	return -eno;
}

int
error_set_limit(struct error *err, int eno, const char *fmt, ...)
{
	va_list ap;

	if (err != NULL) {
		va_start(ap, fmt);
		error_print(err, true, fmt, ap);
		va_end(ap);
	}
	return -eno;
}
