/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Print records of every type with random bytes in every component, for test_record_tshark.py:
 *
 *   record NAME ATTRIBUTE WIRE   the version 2 form in hexadecimal
 *   NAME VALUE                   a component: number, or all its bytes
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sa/record.h"

static void
print_bytes(const uint8_t *p, unsigned int len)
{
	for (unsigned int i = 0; i < len; i++)
		printf("%02x", p[i]);
	printf("\n");
}

/* Reserved space stays 0, as on the wire. */
static void
print_record(const struct sa_record_type *t)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 }, wire[SA_RECORD_MAX];

	for (unsigned int i = 0; i < t->num_fields; i++) {
		const struct sa_field *f = &t->fields[i];

		for (unsigned int b = f->offset; b < f->offset + f->bits; b++)
			if (f->kind != SA_RESERVED && (rand() >> 9 & 1) != 0)
				rec[b / 8] |= 0x80 >> b % 8;
	}
	sa_encode(t, SA_V2, rec, 0, wire);
	printf("record %s 0x%04x ", t->name, t->attribute);
	print_bytes(wire, t->stride);
	for (unsigned int i = 0; i < t->num_fields; i++) {
		const struct sa_field *f = &t->fields[i];

		if (f->kind == SA_RESERVED)
			continue;
		printf("%s ", f->name);
		if (f->bits > 64)
			print_bytes(rec + f->offset / 8, f->bits / 8);
		else
			printf("0x%" PRIx64 "\n", sa_get(f, rec));
	}
}

int
main(void)
{
	srand(7);
	for (unsigned int round = 0; round < 8; round++)
		for (unsigned int i = 0; i < sa_num_record_types; i++)
			print_record(&sa_record_types[i]);
	return 0;
}
