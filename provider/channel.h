/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_CHANNEL_H
#define PROVIDER_CHANNEL_H

#include "provider.h"

/** Slot of a completion channel. @return RING_NONE: it is none of this device */
uint32_t channel_slot(struct polca_context *c, int fd);

#endif
