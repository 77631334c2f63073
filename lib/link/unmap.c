/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* munmap() for the whole process, including its drivers: see link_unmapping(). */

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "link/link.h"

int
munmap(void *addr, size_t len)
{
	link_unmapping();
	return (int)syscall(SYS_munmap, addr, len);
}
