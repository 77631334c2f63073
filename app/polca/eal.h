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
	bool last_is_users; /* and takes the next word as its value, if it has none */
};

/*
 * What rte_eal_init() is given. extra: more arguments from the command line, separated by blanks,
 * or NULL.
 */
int eal_args(const struct config *c, const char *extra, struct eal_args *a, struct error *err);
void eal_args_free(struct eal_args *a);
/* What is given for an option, "-m" or one that replaces it; NULL: nothing. */
const char *eal_arg_value(const struct eal_args *a, const char *option);

/* After a failed rte_eal_init(): why, and what to do. @return a negative errno value */
int eal_explain(const struct config *c, const struct eal_args *a, struct error *err);

/* At the end of a primary process: remove its files of memory, and those in its runtime directory. */
void eal_files_remove(const struct eal_args *a);

/* rte_eal_init(); err says what to do about a failure. */
int eal_start(const struct config *c, const char *extra, struct error *err);

/* rte_eal_cleanup(), once; the process only ends after it. */
void eal_end(void);

#endif
