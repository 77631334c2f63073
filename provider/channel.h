/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_CHANNEL_H
#define PROVIDER_CHANNEL_H

#include "provider.h"

/**
 * Slot of a completion channel, and the writing end of its pipe.
 *
 * @return RING_NONE: it is none of this device
 */
uint32_t channel_slot(struct polca_context *c, int fd, int *back);
/** The device whose channel, or event pipe, this is; NULL: none. */
struct polca_context *channel_context(int fd, bool *is_async);

#endif
