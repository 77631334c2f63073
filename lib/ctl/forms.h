/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_FORMS_H
#define CTL_FORMS_H

/**
 * @file
 * Addresses and names of files as text, for the rows of tables.
 */

#include "table/table.h"
#include "wire/packet.h"

extern const struct table_form form_gid; /**< union gid */
extern const struct table_form form_mac; /**< uint8_t[6] */

/**
 * const char *: the file's name, for messages only. The file itself is a descriptor that the client
 * sends with the request: rpc_open() takes it.
 */
extern const struct table_form form_file;

/** ROW(S, dgid, TABLE_GID, .help = "..."): with its name, since .form stands before it */
#define TABLE_GID  TABLE_FORM, .form = &form_gid
#define TABLE_MAC  TABLE_FORM, .form = &form_mac
#define TABLE_FILE TABLE_FORM, .form = &form_file

bool mac_parse(const char *text, uint8_t mac[6]);

#endif
