/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/**
 * @file
 * The order of the provider's handlers of fork(), as priorities of the constructors that make them:
 * in the parent and in the child they run in this order, before the fork in the reverse order.
 */

#ifndef POLCA_PROVIDER_FORK_ORDER_H
#define POLCA_PROVIDER_FORK_ORDER_H

/** First: until the child has copies of the pages, what it allocates may be in its parent's. */
#define FORK_ORDER_PAGES    301
#define FORK_ORDER_CONTEXTS 302
#define FORK_ORDER_DEATH    303
#define FORK_ORDER_CM       304
/** Last: whoever is interrupted or cancelled holds none of the locks. */
#define FORK_ORDER_SIGNALS 305

#endif
