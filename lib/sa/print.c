/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Print components as text that parse.c can parse again. */

#include <arpa/inet.h>
#include <inttypes.h>

#include "base/line.h"
#include "base/utf8.h"
#include "sa/layout.h"
#include "sa/text.h"

static void
print_word(struct line *l, const struct sa_field *f, uint64_t value)
{
	for (const struct table_word *w = f->words; w->name != NULL; w++)
		if (w->value == value) {
			line_put(l, "%s", w->name);
			return;
		}
	line_put(l, sa_words_numeric(f->words) ? "0x%" PRIx64 : "%" PRIu64, value);
}

static void
print_flags(struct line *l, const struct sa_field *f, uint64_t value)
{
	const char *plus = "";

	for (const struct table_word *w = f->words; w->name != NULL; w++)
		if ((value & w->value) != 0) {
			line_put(l, "%s%s", plus, w->name);
			value &= ~w->value;
			plus = "+";
		}
	if (value != 0 || plus[0] == '\0')
		line_put(l, "%s0x%" PRIx64, plus, value);
}

static void
sa_print_gid(struct line *l, const uint8_t *gid)
{
	char text[INET6_ADDRSTRLEN];

	line_put(l, "%s", inet_ntop(AF_INET6, gid, text, sizeof(text)));
}

/* A terminal may act upon these: C0, DEL, and C1 (U+0080 to U+009F). */
static bool
is_control(const uint8_t *p, unsigned int n)
{
	return n == 1 ? p[0] < 0x20 || p[0] == 0x7F : n == 2 && p[0] == 0xC2 && p[1] < 0xA0;
}

/* Security: write bytes that are not text as \xNN, so that the result is always printable UTF-8. */
static void
sa_print_text(struct line *l, const uint8_t *p, size_t len)
{
	while (len > 0 && p[len - 1] == 0)
		len--;
	while (len > 0) {
		unsigned int n = utf8_length(p, len);

		if (is_control(p, n))
			n = 0;
		if (n == 1 && p[0] == '\\')
			line_put(l, "\\\\");
		else if (n == 0)
			line_put(l, "\\x%02x", p[0]);
		else
			line_put(l, "%.*s", (int)n, (const char *)p);
		n = n > 0 ? n : 1;
		p += n;
		len -= n;
	}
}

static void
sa_print_list(struct line *l, const struct sa_field *list, const uint8_t *rec)
{
	for (unsigned int i = 0; i < list->count; i++) {
		struct sa_field f = sa_element(list, i);
		uint64_t value = sa_get(&f, rec);

		line_put(l, "%s", i > 0 ? "," : "");
		if (list->kind == SA_HEX_LIST)
			line_put(l, "0x%0*" PRIx64, (f.bits + 3) / 4, value);
		else
			line_put(l, "%" PRIu64, value);
	}
}

const char *
sa_print(const struct sa_field *f, const uint8_t *rec, char *buf, size_t size)
{
	const uint8_t *bytes = rec + f->offset / 8;
	struct line line = { buf, size, 0 }, *l = &line;

	if (size > 0)
		buf[0] = '\0';
	switch (f->kind) {
	/* multicast and special LIDs are better known in hex: 0xc000, 0xffff */
	case SA_LID:
		line_put(l, sa_get(f, rec) < LID_UNICAST_END ? "%" PRIu64 : "0x%" PRIx64,
			sa_get(f, rec));
		break;
	case SA_DEC:
		line_put(l, "%" PRIu64, sa_get(f, rec));
		break;
	case SA_GUID:
		line_put(l, "0x%016" PRIx64, sa_get(f, rec));
		break;
	case SA_WORD:
		print_word(l, f, sa_get(f, rec));
		break;
	case SA_FLAGS_WORD:
		print_flags(l, f, sa_get(f, rec));
		break;
	case SA_GID:
		sa_print_gid(l, bytes);
		break;
	case SA_TEXT:
		sa_print_text(l, bytes, f->bits / 8);
		break;
	case SA_BYTES:
		for (unsigned int i = 0; i < f->bits / 8u; i++)
			line_put(l, "%02x", bytes[i]);
		break;
	case SA_DEC_LIST:
	case SA_HEX_LIST:
		sa_print_list(l, f, rec);
		break;
	default:
		line_put(l, "0x%" PRIx64, sa_get(f, rec));
		break;
	}
	return buf;
}
