/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_EAL_WORDS_H
#define POLCA_EAL_WORDS_H

/**
 * @file
 * What DPDK prints while it starts.
 */

#include <stdbool.h>
#include <stddef.h>

/* From here on stdout and stderr are held back. */
void eal_words_hold(void);

/*
 * Hand them on to stderr. @return true if the start failed for an argument of the EAL: then nothing is
 * shown, and reason is the line that names the argument.
 */
bool eal_words_release(bool failed, char *reason, size_t size);

#endif
