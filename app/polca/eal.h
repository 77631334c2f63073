/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_EAL_H
#define POLCA_EAL_H

/**
 * @file
 * Starting DPDK's environment as the configuration says, and ending it.
 */

#include "config.h"

/* Room for a command line of the EAL. */
struct eal_args {
	char *argv[256];
	int argc;
};

/*
 * What rte_eal_init() is given. extra: more arguments from the command line, separated by blanks,
 * or NULL.
 */
int eal_args(const struct config *c, const char *extra, struct eal_args *a, struct error *err);
void eal_args_free(struct eal_args *a);

/* rte_eal_init(); err says what to do about a failure. */
int eal_start(const struct config *c, const char *extra, struct error *err);

/* rte_eal_cleanup(), once; the process only ends after it. */
void eal_end(void);

#endif
