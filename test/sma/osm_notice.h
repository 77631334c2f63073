/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SMA_OSM_NOTICE_H
#define TEST_SMA_OSM_NOTICE_H

/*
 * A notice as opensm reads it. In a file of its own, because opensm's header and ours define the
 * same names.
 */

#include <stdint.h>

/* A field by opensm's name, in host order; fails for an unknown name. */
uint64_t osm_notice(const uint8_t *notice, const char *name);

#endif
