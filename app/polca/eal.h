/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_EAL_H
#define POLCA_EAL_H

/**
 * @file
 * Start DPDK's environment (EAL) according to the configuration, and end it.
 */

#include "config.h"

/* A command line of the EAL. */
struct eal_args {
	char *argv[256];
	int argc;
	/* the user gave the last argument; the next word is its value if it has none */
	bool last_is_users;
};

/*
 * Build the arguments of rte_eal_init(). extra: further arguments from the command line, separated
 * by blanks, or NULL.
 */
int eal_args(const struct config *c, const char *extra, struct eal_args *a, struct error *err);
void eal_args_free(struct eal_args *a);
/* The value of an option, such as "-m", or of an option that replaces it; NULL: not given. */
const char *eal_arg_value(const struct eal_args *a, const char *option);

/*
 * After a failed rte_eal_init(): explain the cause and the remedy. @return a negative errno value
 */
int eal_explain(const struct config *c, const struct eal_args *a, struct error *err);

/*
 * At the end of a primary process: remove its memory files and the files in its runtime directory.
 */
void eal_files_remove(const struct eal_args *a);

/* Call rte_eal_init(); on failure, err has the remedy. */
int eal_start(const struct config *c, const char *extra, struct error *err);

/* Debug: the arguments with which the EAL was started. Call once log levels are set. */
void eal_log_arguments(void);

/* Call rte_eal_cleanup(). The process must exit afterwards. */
void eal_end(void);

#endif
