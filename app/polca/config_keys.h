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

#define FIELD(S, f) .offset = offsetof(S, f), .size = sizeof(((S *)0)->f)
#define UINT(S, f, key, low, high, text)                                                           \
	{                                                                                          \
		.name = key, .type = KEY_UINT, FIELD(S, f), .min = low, .max = high, .help = text  \
	}
#define HEX(S, f, key, low, high, text)                                                            \
	{                                                                                          \
		.name = key, .type = KEY_HEX, FIELD(S, f), .min = low, .max = high, .help = text   \
	}
#define BOOL(S, f, key, text)                                                                      \
	{                                                                                          \
		.name = key, .type = KEY_BOOL, FIELD(S, f), .help = text                           \
	}
#define TEXT(S, f, key, text)                                                                      \
	{                                                                                          \
		.name = key, .type = KEY_TEXT, FIELD(S, f), .help = text                           \
	}
#define OBJECT(key, table, text)                                                                   \
	{                                                                                          \
		.name = key, .type = KEY_OBJECT, .fields = table, .help = text                     \
	}
#define LIST(S, f, num, key, most, item, first, text)                                              \
	{                                                                                          \
		.name = key, .type = KEY_LIST, .offset = offsetof(S, f), .fields = item,           \
		.max = most, .stride = sizeof(((S *)0)->f[0]), .num_offset = offsetof(S, num),     \
		.init = first, .help = text                                                        \
	}
#define END                                                                                        \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/* config_agents.c */
extern const struct key config_mad_keys[];
extern const struct key config_sa_keys[];
extern const struct key config_sma_keys[];
extern const struct key config_live_keys[];
extern const struct key config_cm_keys[];
extern const struct key config_service_item[];
extern const struct config_service config_service_init;

/* config_ports.c */
extern const struct key config_port_item[];
extern const struct config_port config_port_init;

#endif
