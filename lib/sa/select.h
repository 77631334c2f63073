/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_SELECT_H
#define SA_SELECT_H

/**
 * @file
 * Codes of MTU, rate and PacketLifeTime, and the selectors that compare them (sa-multipacket B10).
 */

#include <stdbool.h>
#include <stdint.h>

enum selector {
	SELECT_GREATER,
	SELECT_LESS,
	SELECT_EXACTLY,
	SELECT_LARGEST, /**< for PacketLifeTime: the smallest */
};

/** True if the rate code is known. Rates are compared by Gb/s; unknown codes are lowest. */
bool rate_known(uint8_t code);
uint8_t rate_min(uint8_t a, uint8_t b); /**< 0: no limit */
uint8_t mtu_min(uint8_t a, uint8_t b);
/** Rate code of a link: LinkWidthActive, LinkSpeedActive, LinkSpeedExtActive; 0: unknown. */
uint8_t rate_of_link(uint8_t width, uint8_t speed, uint8_t ext);

/**
 * Fit what a path supports to what was asked: a path may be used with a smaller MTU and a lower
 * rate.
 *
 * @param have  in: the most that the path supports; out: value to answer. @return false: impossible
 */
bool select_mtu(enum selector s, uint8_t want, uint8_t *have);
bool select_rate(enum selector s, uint8_t want, uint8_t *have);
/** A path may be used with a longer life time: "exactly" accepts any path that is not slower. */
bool select_life(enum selector s, uint8_t want, uint8_t *have);

/** True if a fixed value (of an existing group) satisfies the selector. */
bool satisfies_mtu(enum selector s, uint8_t want, uint8_t have);
bool satisfies_rate(enum selector s, uint8_t want, uint8_t have);
bool satisfies_life(enum selector s, uint8_t want, uint8_t have);

#endif
