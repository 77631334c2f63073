/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/capability.h"

static struct __user_cap_header_struct this_thread = { .version = _LINUX_CAPABILITY_VERSION_3 };

static bool
capabilities_read(struct capabilities *c)
{
	return syscall(SYS_capget, &this_thread, c->data) == 0;
}

bool
capabilities_effective(uint64_t set)
{
	struct capabilities c;

	return !capabilities_read(&c) ||
		(set & ~(c.data[0].effective | (uint64_t)c.data[1].effective << 32)) == 0;
}

static bool
permits(const struct capabilities *c, uint64_t set)
{
	return (set & ~(c->data[0].permitted | (uint64_t)c->data[1].permitted << 32)) == 0;
}

bool
capabilities_permitted(uint64_t set)
{
	struct capabilities c;

	return capabilities_read(&c) && permits(&c, set);
}

bool
capabilities_raise(uint64_t set, struct capabilities *before)
{
	struct capabilities raised;

	if (!capabilities_read(before) || !permits(before, set))
		return false;
	raised = *before;
	raised.data[0].effective |= (uint32_t)set;
	raised.data[1].effective |= (uint32_t)(set >> 32);
	return syscall(SYS_capset, &this_thread, raised.data) == 0;
}

void
capabilities_restore(const struct capabilities *before)
{
	syscall(SYS_capset, &this_thread, before->data);
}

int
capabilities_drop(void)
{
	const struct capabilities none = { .data = { { 0, 0, 0 } } };

	/* what is not inheritable leaves the ambient set, too */
	return syscall(SYS_capset, &this_thread, none.data) == 0 ? 0 : -errno;
}
