/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_SCREEN_H
#define POLCA_CTL_SCREEN_H

/** @file The whole terminal, for a display that is drawn again and again. */

#include <stdbool.h>

/**
 * Take the terminal. It is given back by screen_close(), and by a handler when the program crashes.
 *
 * @return false: standard input or output is no terminal
 */
bool screen_open(void);
void screen_close(void);
/** Its size now. */
void screen_size(unsigned int *columns, unsigned int *rows);
/** Show lines of text, cut to the size; the first is highlighted, the last row shows @p footer. */
void screen_show(const char *text, const char *footer);
/**
 * Wait for a key.
 *
 * @return the key; 0: none until @p ms or the next signal; -1: the terminal is gone
 */
int screen_key(int ms);

#endif
