/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_FILES_H
#define POLCA_CTL_FILES_H

/**
 * @file
 * Files for the server. It opens no file that a client names: polca-ctl opens it and passes the
 * descriptor.
 */

#include <jansson.h>

#include "connection.h"

/** Print why file @p name cannot be used, from errno. @return EXIT_USAGE */
int file_error(const char *name);

/**
 * Open a file to read. A pipe, or "-" for standard input, is copied into a file in memory. Anything
 * else that is no regular file is rejected, as the server would do.
 *
 * @param words    the command, for errors
 * @param content  what the file must hold, for errors
 * @return a descriptor, or -1 after an error was printed
 */
int file_to_pass(const char *name, const char *words, const char *content);

/**
 * Open the files that @p params names, by the types in @p method, and attach them to the next
 * request.
 *
 * @return 0, or the exit status after an error was printed
 */
int files_attach(struct connection *c, const json_t *method, const json_t *params);

#endif
