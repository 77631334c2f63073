/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_IMPORTS_H
#define PROVIDER_IMPORTS_H

/**
 * @file
 * Redirect a call that one library makes into the C library, in that library's own import table.
 * The program and its other libraries are not touched.
 */

/**
 * @param library  how the file's name begins: "libibverbs.so"
 * @return entries changed; those that lead there already are not
 */
int imports_redirect(const char *library, const char *function, void (*to)(void));

#endif
