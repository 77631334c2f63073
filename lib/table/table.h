/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TABLE_TABLE_H
#define TABLE_TABLE_H

/**
 * @file
 * Tables that describe structures. One row says a member's name, type, range, default, unit and
 * meaning, and where its field is. Everything else reads the row: decoding from JSON, encoding to
 * JSON, error messages, help, the printed reference and the JSON schema.
 *
 * Users: the configuration, parameters and results of RPCs, and polca-bench's options; for words
 * and numbers also SA records, whose own rows say at which bits a component is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

enum table_type {
	TABLE_UINT, /**< uintN_t (or int, for a default of -1) <-> integer, or "0x..." text */
	TABLE_INT, /**< intN_t <-> integer */
	TABLE_REAL, /**< double <-> number above .min, at most .max unless that is 0 */
	TABLE_BOOL, /**< bool */
	TABLE_STRING, /**< const char * <-> text of 1 to .max bytes */
	TABLE_CHARS, /**< char[] <-> text that fits into it with its NUL */
	/** const char * <-> the same as STRING, or an integer, which becomes its digits */
	TABLE_NAME,
	TABLE_BYTES, /**< struct table_bytes <-> hex text of at most .max bytes */
	TABLE_ENUM, /**< uintN_t <-> one of .words */
	TABLE_FLAGS, /**< uint32_t <-> list of .words */
	TABLE_FORM, /**< any field <-> text, by the functions of .form */
	TABLE_OBJECT, /**< structure with a table of its own, .fields <-> object */
	TABLE_LIST, /**< struct table_list, or with TABLE_INLINE an array <-> list of objects */
	TABLE_MAP, /**< json_t * <-> object whose names the caller knows */
	TABLE_MAPS, /**< json_t * <-> list of .min to .max of them, or one */
	TABLE_COUNTS, /**< json_t * -> object of NAME: NUMBER */
	TABLE_INCLUDE, /**< structure whose .fields are members of the object itself */
	TABLE_MEMBERS, /**< json_t * -> its members NAME: NUMBER are members of the object itself */
};

#define TABLE_REQUIRED  0x1 /**< must be given */
#define TABLE_OPTIONAL  0x4 /**< encode: an empty value is left out */
#define TABLE_NULL      0x8 /**< encode: an empty value is null */
#define TABLE_POWER2    0x10 /**< UINT: a power of two */
#define TABLE_ONE_ALONE 0x20 /**< item of a LIST: its first member's value alone stands for it */
#define TABLE_NOTED     0x40 /**< OBJECT: a bool at .count notes that it is there */
/** LIST: in place, an array; its length is an unsigned int at .count */
#define TABLE_INLINE 0x80
#define TABLE_VALUES 0x100 /**< LIST: of values like .fields[0] rather than of objects */
#define TABLE_RELOAD 0x200 /**< configuration: may change while polca runs */
/** LIST of a port in the configuration: may get more items at its end while polca runs */
#define TABLE_RELOAD_MORE 0x800
/** configuration: never shown in messages; results: not shown on the monitoring socket */
#define TABLE_SECRET 0x400

struct table_word {
	const char *name;
	uint32_t value;
};

struct table_bytes {
	const uint8_t *data;
	size_t len;
};

struct table_list {
	void *items; /**< .item_size bytes each */
	size_t num;
};

#define TABLE_FORM_MAX 64

/** A kind of value that is written as text: an address, for example. */
struct table_form {
	const char *name; /**< as the row's type */
	const char *allowed; /**< in words, for error messages */
	const char *pattern; /**< for the JSON schema */
	bool (*parse)(const char *text, void *field);
	const char *(*print)(const void *field, char buf[TABLE_FORM_MAX]);
};

/** One row. Tables end with a row without name. */
struct table_row {
	const char *name;
	enum table_type type;
	size_t offset; /**< of the field in the structure */
	size_t size; /**< of the field */
	const char *help; /**< follows .size, so that ROW() takes it without its name */
	uint32_t flags;
	uint64_t min; /**< of a number, or of a list's length */
	uint64_t max; /**< 0: as much as the field holds */
	uint64_t def; /**< decode: stands when it is not given */
	const char *def_text; /**< how help words the default, where a number does not */
	const char *unit; /**< of a number: "ms" */
	const struct table_word *words;
	/** CHARS, STRING: append the texts that the owner of the value allows; NULL: any text */
	void (*texts)(char *buf, size_t size);
	const struct table_row *fields;
	const struct table_form *form;
	size_t item_size;
	size_t count; /**< INLINE and NOTED: offset in the structure */
	const void *init; /**< INLINE: what an item is before it is decoded */
	/**
	 * Decode: or-ed into the structure's first member, a uint32_t, when the member is given.
	 * Encode: the member is left out unless all these bits are set there.
	 */
	uint32_t bit;
	/** encode a UINT as "0x..." text of at least so many digits; 0: as a number */
	uint8_t digits;
};

/** ROW(struct cq_args, depth, TABLE_UINT, "what it means", .min = 1) */
/* clang-format off */
#define ROW_NAMED(S, text, field, t, ...)                                                          \
	{ .name = text, .type = t, .offset = offsetof(S, field), .size = sizeof(((S *)0)->field),  \
		__VA_ARGS__ }
/* clang-format on */
#define ROW(S, field, t, ...) ROW_NAMED(S, #field, field, t, __VA_ARGS__)
/** A list in the arena, of structures I with a table of their own. */
#define ROW_LIST(S, field, I, rows, ...)                                                           \
	ROW(S, field, TABLE_LIST, .fields = rows, .item_size = sizeof(I), __VA_ARGS__)
/** The members of a structure within S, as members of the object that S is. */
/* clang-format off */
#define ROW_INCLUDE(S, field, rows)                                                                \
	{ .name = "", .type = TABLE_INCLUDE, .offset = offsetof(S, field), .fields = rows }
#define ROW_END                                                                                    \
	{ .name = NULL }
/* clang-format on */

/* --- arena.c --- */

/** Memory that lives as long as one call. */
struct arena {
	struct arena_block *blocks;
};
/** Zeroed; NULL: no memory. */
void *arena_alloc(struct arena *a, size_t size);
/** Release @p v with the arena. @return v */
json_t *arena_json(struct arena *a, json_t *v);
const char *arena_printf(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void arena_free(struct arena *a);
/** Append a zeroed item; earlier items may move. @return the item; NULL: no memory */
void *list_add(struct arena *a, struct table_list *list, size_t item_size);

/* --- decode.c --- */

/** Why decoding failed: which member, what was got, what is allowed. */
struct table_error {
	char member[192]; /**< "wr[0].sg_list[1].length"; empty: no one member */
	char got[64];
	char allowed[768];
	char text[1024];
};

struct table_decoder {
	/** Lists, names and bytes go there; NULL: the table has none of these. */
	struct arena *arena;
	struct table_error err; /**< the last one found */
	/** Called for each error: all are looked for. NULL: decoding ends with the first. */
	void (*on_error)(struct table_decoder *d);
	void *arg;
	const char *root; /**< what errors call the object as a whole: "configuration" */
	char path[192]; /**< of the value looked at: "ports[1].addresses[0]" */
};

/**
 * Decode @p v (NULL: nothing is given) into @p out, which has been zeroed or set to defaults.
 *
 * @retval -EINVAL  d->err says why
 * @retval -ENOMEM
 */
int table_decode(struct table_decoder *d, const struct table_row *rows, const json_t *v, void *out);
/** Decode one value. @param base  the structure of the row */
int table_decode_value(struct table_decoder *d, const struct table_row *row, const json_t *v,
	void *base);
/** The word that @p len characters are, in either case. @return NULL: none of them */
const struct table_word *table_find_word(const struct table_word *words, const char *text,
	size_t len);

/* --- encode.c --- */

/** @return a new object; NULL: no memory */
json_t *table_encode(const struct table_row *rows, const void *base);
/** The same without rows that have one of the flags @p hidden, at any depth. */
json_t *table_encode_without(const struct table_row *rows, const void *base, uint32_t hidden);
/** The value of one row. @return NULL: it is left out, or no memory */
json_t *table_encode_value(const struct table_row *row, const void *base);
/** True if the value is left out, or null, when encoded. */
bool table_empty(const struct table_row *row, const void *base);

/* --- describe.c --- */

/** The largest number that a UINT's row allows. */
uint64_t table_largest(const struct table_row *row);
/** What a row allows, in words: "integer 0..31". @return buf */
const char *table_allowed(const struct table_row *row, char *buf, size_t size);
/** Its default in words; NULL: it has none, or its absence is a case of its own (.bit, .min). */
const char *table_default(const struct table_row *row, char *buf, size_t size);
const char *table_type_name(const struct table_row *row);
/** Members of a result in one text: lines "name: meaning", lists as "name: list of a, b (help)". */
json_t *table_summary(const struct table_row *rows);
/** Append the names of all rows. */
void table_append_names(char *buf, size_t size, const struct table_row *rows);
/** Append the words, with commas between. */
void table_append_words(char *buf, size_t size, const struct table_word *words);
void table_append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** Which way values go: what is required of a reader is not what a writer promises. */
enum table_way {
	TABLE_IN, /**< what may be decoded */
	TABLE_OUT, /**< what is encoded */
};
/** Rows as JSON, for programs that help: list of name, type, required, default, allowed, ... */
json_t *table_describe(const struct table_row *rows, enum table_way way);
/**
 * The JSON schema (draft 7) of an object.
 *
 * @param defaults  a structure whose values are the defaults, or NULL
 */
json_t *table_schema(const struct table_row *rows, enum table_way way, const void *defaults);

#endif
