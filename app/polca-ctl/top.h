/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_TOP_H
#define POLCA_CTL_TOP_H

/** @file polca-ctl top: what the appliance does now, on the whole screen. */

#include "report.h"

int top_run(const struct options *o, struct connection *c, const json_t *command, json_t *params);

#endif
