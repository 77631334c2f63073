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
	ROW_NAMED(S, key, f, TABLE_UINT, text, .min = low, .max = high)
#define HEX(S, f, key, low, high, text)                                                            \
	ROW_NAMED(S, key, f, TABLE_UINT, text, .digits = 1, .min = low, .max = high)
#define POWER2(S, f, key, low, high, text)                                                         \
	ROW_NAMED(S, key, f, TABLE_UINT, text, .flags = TABLE_POWER2, .min = low, .max = high)
#define BOOL(S, f, key, text)       ROW_NAMED(S, key, f, TABLE_BOOL, text)
#define TEXT(S, f, key, text)       ROW_NAMED(S, key, f, TABLE_CHARS, text, .flags = TABLE_OPTIONAL)
#define ENUM(S, f, key, list, text) ROW_NAMED(S, key, f, TABLE_ENUM, text, .words = list)
#define FORM(S, f, key, kind, text)                                                                \
	ROW_NAMED(S, key, f, TABLE_FORM, text, .flags = TABLE_OPTIONAL, .form = &kind)
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

extern const struct table_form config_form_peers; /* struct allow_prefix */

/* An allow list, a member @p f of @p S. */
extern const struct table_row config_peer_value[], config_pkey_value[];
/* clang-format off */
#define ALLOW_KEYS(S, f)                                                                           \
	LIST(S, f.peer, f.num_peers, "peers", 0, ALLOW_PEERS_MAX, TABLE_VALUES, config_peer_value, \
		NULL, "Addresses and prefixes: GIDs, IPv4, IPv6. Default: all."),                  \
	LIST(S, f.pkey, f.num_pkeys, "pkeys", 0, ALLOW_PKEYS_MAX, TABLE_VALUES, config_pkey_value, \
		NULL, "P_Keys, full and limited members alike. Default: all.")
/* clang-format on */

/* config_agents.c */
extern const struct table_row config_mad_keys[];
extern const struct table_row config_sa_keys[];
extern const struct table_row config_sma_keys[];
extern const struct table_row config_live_keys[];
extern const struct table_row config_cm_keys[];
extern const struct table_row config_service_keys[];
extern const struct config_service config_service_init;

/* config_fleet.c */
extern const struct table_row config_fleet_keys[];

/* config_ports.c */
extern const struct table_row config_port_keys[];
extern const struct config_port config_port_init;

#endif
