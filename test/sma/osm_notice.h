/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SMA_OSM_NOTICE_H
#define TEST_SMA_OSM_NOTICE_H

/*
 * A notice as opensm reads it. Apart from the tests, for its header and ours name different things
 * alike.
 */

#include <stdint.h>

/* A field by opensm's name, in host order; fails for a name there is none of. */
uint64_t osm_notice(const uint8_t *notice, const char *name);

#endif
