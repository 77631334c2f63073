/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Fuzz the import of ibnetdiscover's output or JSON. Input: {format, text}. */

#include <stdlib.h>
#include <string.h>

#include "sa/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each imported record has a known table, can be printed, and its text is parsed to the same. */
static int
fuzz_import_take(void *arg, const struct sa_change *c)
{
	uint8_t back[SA_RECORD_MAX];
	char text[SA_PRINT_MAX];
	struct error err;

	if (c->type == NULL || !c->type->stored)
		abort();
	memcpy(back, c->rec, sizeof(back));
	for (unsigned int i = 0; i < c->type->num_fields; i++) {
		const struct sa_field *f = &c->type->fields[i];

		if (f->kind != SA_RESERVED &&
			sa_parse(f, back, sa_print(f, c->rec, text, sizeof(text)), &err) != 0)
			abort();
	}
	if (memcmp(back, c->rec, sizeof(back)) != 0)
		abort();
	++*(unsigned int *)arg;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int records = 0;
	struct sa_import_sink sink = { &records, fuzz_import_take };
	struct error err = { "" };
	char *copy; /* exactly as long, so that ASan finds reads beyond */
	int rc;

	if (size < 2)
		return 0;
	copy = malloc(size - 1);
	if (copy == NULL)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (data[0] % 4 != 3)
		rc = sa_import_ibnetdiscover(copy, size - 1, &sink, &err);
	else
		rc = sa_import_json(copy, size - 1, &sink, &err);
	if ((rc != 0) != (err.text[0] != '\0') || rc > 0)
		abort(); /* an error must have a text */
	free(copy);
	return 0;
}
