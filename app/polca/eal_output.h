/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_EAL_OUTPUT_H
#define POLCA_EAL_OUTPUT_H

/**
 * @file
 * Hold back what DPDK prints while it starts.
 */

#include <stdbool.h>
#include <stddef.h>

/* Hold back stdout and stderr from now on. */
void eal_output_hold(void);

/*
 * Print the held text to stderr. @return true if the start failed because of an argument of the
 * EAL: then nothing is printed, and reason is the line that names the argument.
 */
bool eal_output_release(bool failed, char *reason, size_t size);

#endif
