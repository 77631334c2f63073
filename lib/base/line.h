/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_LINE_H
#define BASE_LINE_H

/**
 * @file
 * A line of text, appended piece by piece to a buffer and cut at the buffer's end.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

struct line {
	char *buf;
	size_t size;
	size_t used; /**< equals .size when the buffer is full */
};

static inline void __attribute__((format(printf, 2, 3)))
line_put(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	if (l->used >= l->size)
		return;
	va_start(args, format);
	n = vsnprintf(l->buf + l->used, l->size - l->used, format, args);
	va_end(args);
	l->used = n < 0 || (size_t)n >= l->size - l->used ? l->size : l->used + (size_t)n;
}

#endif
