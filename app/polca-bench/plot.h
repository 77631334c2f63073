/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

/**
 * @file
 * Draw values over message sizes as SVG 1.1. Both axes are logarithmic. The picture needs no
 * script, style sheet or font of its own.
 */

#include <stdint.h>
#include <stdio.h>

#define PLOT_POINTS 32 /* 2, 4, 8, ... 2^32 */
#define PLOT_SERIES 3
#define PLOT_PANELS 2
#define PLOT_FACTS  3

/** How the labels of the value axis are written. */
enum plot_unit {
	PLOT_NUMBER, /**< 0.1, 1, 10 */
	PLOT_COUNT, /**< 100, 1 k, 10 k, 1 M */
	PLOT_TIME, /**< values are us: 100 ns, 1 us, 1 ms */
};

struct plot_panel {
	const char *label; /**< of its value axis: "Gb/s", "half a round trip" */
	const char *figure_unit; /**< of .value: "Gb/s", "us" */
	enum plot_unit unit;
	double value[PLOT_SERIES][PLOT_POINTS]; /**< NAN or 0: no value */
};

struct plot {
	const char *title;
	const char *fact[PLOT_FACTS]; /**< lines under the title, or NULL */
	const char *foot; /**< last line of the picture, or NULL */
	const char *series[PLOT_SERIES]; /**< names; NULL: no such series */
	unsigned int panels;
	struct plot_panel panel[PLOT_PANELS]; /**< one below the other */
	unsigned int points;
	uint32_t size[PLOT_POINTS]; /**< bytes, ascending */
};

/** @retval -EIO  the file cannot be written */
int plot_write(const struct plot *p, FILE *f);

#endif
