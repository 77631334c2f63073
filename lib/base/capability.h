/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_CAPABILITY_H
#define BASE_CAPABILITY_H

/**
 * @file
 * Capabilities of the calling thread. A set of them has the bit CAPABILITY(CAP_...) for each.
 */

#include <stdbool.h>
#include <stdint.h>

#include <linux/capability.h>

#define CAPABILITY(number) (UINT64_C(1) << (number))

struct capabilities {
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

/** True if all of the set are effective, or it is not known. */
bool capabilities_effective(uint64_t set);
/** True if this thread may raise all of the set. */
bool capabilities_permitted(uint64_t set);
/** Make the set effective. @param before  for capabilities_restore() */
bool capabilities_raise(uint64_t set, struct capabilities *before);
void capabilities_restore(const struct capabilities *before);
/**
 * Capabilities belong to threads: one that needs none gives up those of the thread that made it,
 * and those that it passes on as well. A signal handler may call it.
 *
 * @return 0 or a negative errno
 */
int capabilities_drop(void);

#endif
