/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_TEXT_H
#define SA_TEXT_H

/* Text form of components: print.c writes it, parse.c reads it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sa/record.h"

#define SA_TEXT_BYTES 64 /* longest SA_TEXT or SA_BYTES component */

/** True if the words are numbers: then a decimal number is a word and never a code. */
static inline bool
sa_words_numeric(const struct table_word *words)
{
	return words[0].name[0] >= '0' && words[0].name[0] <= '9';
}

/** Element @p i of a list as a component. */
static inline struct sa_field
sa_element(const struct sa_field *list, unsigned int i)
{
	struct sa_field f = *list;

	f.bits = list->bits / list->count;
	f.offset = list->offset + i * f.bits;
	return f;
}

#endif
