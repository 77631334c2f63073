/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_FORM_H
#define SA_FORM_H

/**
 * @file
 * Private to lib/sa: structures as bytes, for other appliances and for later releases. Numbers are
 * big endian. One list of fields serves both directions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mad/mad.h"

/** Bytes that are written or read. */
struct form {
	uint8_t *out; /**< NULL: reading */
	const uint8_t *in;
	size_t len;
	size_t at;
	bool bad; /**< too short, or a number that its field cannot have */
};

void form_bytes(struct form *f, void *bytes, size_t n);
/** A number of 1 to 8 bytes that is at most @p most. */
uint64_t form_number(struct form *f, uint64_t value, size_t n, uint64_t most);
/** A text of 1 to @p size - 1 bytes, without its NUL, with the length before it. */
void form_text(struct form *f, char *text, size_t size);

#define NUMBER(f, field) ((field) = form_number(f, field, sizeof(field), UINT64_MAX))
/* Reading never looks at the field, whose byte may be neither 0 nor 1 before. */
#define FLAG(f, field)       ((field) = form_number(f, (f)->out != NULL && (field), 1, 1) != 0)
#define CHOICE(f, field, to) ((field) = (__typeof__(field))form_number(f, field, 1, to))

/** Without what has a meaning in one appliance only: the neighbour in its table. */
void form_peer(struct form *f, struct mad_peer *peer);

#endif
