/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_SMP_H
#define POLCA_CTL_SMP_H

/**
 * @file
 * "smp get" and "smp set": one component per line, in smpquery's format.
 */

#include "connection.h"
#include "report.h"

/** @return the exit status */
int smp_run(const struct options *o, struct connection *c, const json_t *command, json_t *params);

#endif
