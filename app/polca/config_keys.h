/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CONFIG_KEYS_H
#define POLCA_CONFIG_KEYS_H

/**
 * @file
 * How the table of the configuration is written, a row a key, and its parts of other files.
 */

#include "config.h"

#define UINT(S, f, key, low, high, text)                                                           \
	ROW_NAMED(S, key, f, TABLE_UINT, .min = low, .max = high, .help = text)
#define HEX(S, f, key, low, high, text)                                                            \
	ROW_NAMED(S, key, f, TABLE_UINT, .digits = 1, .min = low, .max = high, .help = text)
#define POWER2(S, f, key, low, high, text)                                                         \
	ROW_NAMED(S, key, f, TABLE_UINT, .flags = TABLE_POWER2, .min = low, .max = high,           \
		.help = text)
#define BOOL(S, f, key, text) ROW_NAMED(S, key, f, TABLE_BOOL, .help = text)
#define TEXT(S, f, key, text)                                                                      \
	ROW_NAMED(S, key, f, TABLE_CHARS, .flags = TABLE_OPTIONAL, .help = text)
#define ENUM(S, f, key, list, text) ROW_NAMED(S, key, f, TABLE_ENUM, .words = list, .help = text)
#define FORM(S, f, key, kind, text)                                                                \
	ROW_NAMED(S, key, f, TABLE_FORM, .flags = TABLE_OPTIONAL, .form = &kind, .help = text)
/* clang-format off */
#define OBJECT(key, table, text)                                                                   \
	{ .name = key, .type = TABLE_OBJECT, .fields = table, .help = text }
/* clang-format on */
/* An object whose presence the bool says. */
/* clang-format off */
#define NOTED(S, note, key, table, text)                                                           \
	{ .name = key, .type = TABLE_OBJECT, .flags = TABLE_NOTED, .count = offsetof(S, note),     \
		.fields = table, .help = text }
#define LIST(S, f, num, key, least, most, more, rows, first, text)                                 \
	{ .name = key, .type = TABLE_LIST, .flags = TABLE_INLINE | (more),                         \
		.offset = offsetof(S, f), .fields = rows, .min = least, .max = most,               \
		.item_size = sizeof(((S *)0)->f[0]), .count = offsetof(S, num), .init = first,     \
		.help = text }
/* clang-format on */

/* config_forms.c */
extern const struct table_form config_form_mac; /* unicast */
extern const struct table_form config_form_address; /* union gid */
extern const struct table_form config_form_prefix; /* struct link_addr: .gid and .prefix_len */

/* config_agents.c */
extern const struct table_row config_mad_keys[];
extern const struct table_row config_sa_keys[];
extern const struct table_row config_sma_keys[];
extern const struct table_row config_live_keys[];
extern const struct table_row config_cm_keys[];
extern const struct table_row config_service_keys[];
extern const struct config_service config_service_init;

/* config_ports.c */
extern const struct table_row config_port_keys[];
extern const struct config_port config_port_init;

#endif
