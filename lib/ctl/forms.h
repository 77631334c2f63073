/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_FORMS_H
#define CTL_FORMS_H

/**
 * @file
 * Addresses as text, for the rows of tables.
 */

#include "table/table.h"
#include "wire/packet.h"

extern const struct table_form form_gid; /**< union gid */
extern const struct table_form form_mac; /**< uint8_t[6] */

/** ROW(S, dgid, TABLE_GID, .help = "...") */
#define TABLE_GID TABLE_FORM, .form = &form_gid
#define TABLE_MAC TABLE_FORM, .form = &form_mac

bool mac_parse(const char *text, uint8_t mac[6]);
json_t *json_gid(const union gid *gid);

#endif
