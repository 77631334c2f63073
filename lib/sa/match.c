/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Templates: the components that a mask selects, compared with a record as and-ed words. */

#include <string.h>

#include "record_private.h"

static void
match_select_bits(uint8_t *bytes, unsigned int offset, unsigned int bits)
{
	for (; bits > 0; offset++, bits--)
		bytes[offset / 8] |= 0x80 >> offset % 8;
}

/* Each mask bit of a field with several components selects an equal part of it. */
static void
match_select_field(uint8_t *bytes, const struct sa_field *f, uint64_t mask)
{
	unsigned int n = sa_components(f), width = f->bits / n;

	if (f->mask_bit < 0 || f->kind == SA_RESERVED)
		return;
	for (unsigned int i = 0; i < n; i++)
		if (mask >> (f->mask_bit + i) & 1)
			match_select_bits(bytes, f->offset + i * width, width);
}

void
sa_match_compile(struct sa_match *m, const struct sa_record_type *t, const uint8_t *tmpl,
	uint64_t mask, uint64_t skip)
{
	uint8_t bytes[SA_RECORD_MAX] = { 0 }, value[SA_RECORD_MAX] = { 0 };

	for (unsigned int i = 0; i < t->num_fields; i++)
		match_select_field(bytes, &t->fields[i], mask & ~skip);
	m->first = 0;
	m->end = t->len;
	while (m->end > 0 && bytes[m->end - 1] == 0)
		m->end--;
	while (m->first < m->end && bytes[m->first] == 0)
		m->first++;
	for (unsigned int i = m->first; i < m->end; i++)
		value[i] = tmpl[i] & bytes[i];
	memcpy(m->mask, bytes, sizeof(bytes));
	memcpy(m->value, value, sizeof(value));
}

/* Reads the record only up to .end: no memory behind it may be touched. */
bool
sa_match(const struct sa_match *m, const uint8_t *rec)
{
	unsigned int w = m->first / 8;
	uint64_t word;

	for (; (w + 1) * 8 <= m->end; w++) {
		memcpy(&word, rec + w * 8, sizeof(word));
		if ((word & m->mask[w]) != m->value[w])
			return false;
	}
	if (w * 8 >= m->end)
		return true;
	word = 0;
	memcpy(&word, rec + w * 8, m->end - w * 8);
	return (word & m->mask[w]) == m->value[w];
}
