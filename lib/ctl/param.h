/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_PARAM_H
#define CTL_PARAM_H

/**
 * @file
 * Parameter tables: one row says a parameter's name, type, range, default and meaning. Decoding,
 * error messages, rpc_list, docs/rpc.md, polca-ctl's help and its completion all read the same
 * row.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum param_type {
	PARAM_UINT, /**< integer or "0x..." text -> uintN_t (or int for a default of -1) */
	PARAM_BOOL, /**< -> bool */
	PARAM_STRING, /**< text of at most .max bytes -> const char * */
	PARAM_NAME, /**< the same, or an integer, which becomes its digits -> const char * */
	PARAM_BYTES, /**< hex text of at most .max bytes -> struct param_bytes */
	PARAM_ENUM, /**< one of .words -> uint32_t */
	PARAM_FLAGS, /**< list of .words -> uint32_t */
	PARAM_GID, /**< IPv4 or IPv6 address -> union gid */
	PARAM_MAC, /**< "02:00:..." -> uint8_t[6] */
	PARAM_OBJECT, /**< object of .fields, in place */
	/** list of at most .max objects of .fields, or one such object -> struct param_list */
	PARAM_LIST,
	PARAM_MAP, /**< object whose names the handler knows -> json_t *, as long as the request */
	PARAM_MAPS, /**< list of .min to .max of them, or one -> json_t * */
};

#define PARAM_REQUIRED 0x1
#define PARAM_DEFAULT  0x2 /**< .def stands when absent */

struct param_word {
	const char *name;
	uint32_t value;
};

struct param_bytes {
	const uint8_t *data;
	size_t len;
};

struct param_list {
	void *items; /**< .item_size bytes each */
	size_t num;
};

/** One row. Tables end with a row without name. */
struct param {
	const char *name;
	enum param_type type;
	uint32_t flags;
	size_t offset; /**< of the field in the structure that takes the value */
	size_t size; /**< of the field */
	uint64_t min;
	uint64_t max; /**< 0: as much as the field holds */
	uint64_t def;
	const char *def_text; /**< how help words the default, where a number does not */
	const struct param_word *words;
	const struct param *fields;
	size_t item_size;
	/** Or-ed into the structure's first member, a uint32_t, when the parameter is given. */
	uint32_t bit;
	const char *help;
};

/** P(struct cq_args, depth, PARAM_UINT, .min = 1, .help = "...") */
#define P(S, field, t, ...)                                                                        \
	{ .name = #field, .type = t, .offset = offsetof(S, field),                                 \
		.size = sizeof(((S *)0)->field), __VA_ARGS__ }
#define P_END                                                                                      \
	{ .name = NULL }

/** Memory that lives as long as one call. */
struct arena {
	struct arena_block *blocks;
};
/** Zeroed; NULL: no memory. */
void *arena_alloc(struct arena *a, size_t size);
void arena_free(struct arena *a);

/** Why decoding failed: which parameter, what was got, what is allowed. */
struct param_error {
	char parameter[128]; /**< "wr[0].sg_list[1].length"; empty: no one parameter */
	char got[64];
	char allowed[768];
	char text[1024];
};

/**
 * Decode @p obj (NULL: no parameters) into @p out, which has been zeroed.
 *
 * @retval -EINVAL  err says why
 * @retval -ENOMEM
 */
int param_decode(const struct param *table, json_t *obj, void *out, struct arena *arena,
	struct param_error *err);

/** What a row allows, in words: "integer 0..31". @return buf */
const char *param_allowed(const struct param *p, char *buf, size_t size);
/** Its default in words, or NULL when it has none. @return buf or a constant */
const char *param_default(const struct param *p, char *buf, size_t size);
const char *param_type_name(enum param_type type);

#endif
