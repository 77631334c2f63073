/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Preloaded by polca-run on hosts without nodes for polca's devices, or with devices of the
 * kernel:
 *
 * - What a program asks of /dev/infiniband/polca0, ... is answered with /dev/null. libibverbs wants
 *   a character device there, and never uses it.
 * - The kernel's list of devices is refused: libibverbs then reads the directory of SYSFS_PATH,
 *   where polca-run has put the kernel's devices and polca's.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED       __attribute__((visibility("default")))
#define NODES          "/dev/infiniband/polca"
#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

int node_open(const char *path, int flags, ...) __asm__("open") EXPORTED;
int node_stat(const char *restrict path, struct stat *restrict st) __asm__("stat") EXPORTED;
int node_access(const char *path, int mode) __asm__("access") EXPORTED;
int node_socket(int domain, int type, int protocol) __asm__("socket") EXPORTED;

static const char *
node_path(const char *path)
{
	return strncmp(path, NODES, sizeof(NODES) - 1) == 0 ? "/dev/null" : path;
}

int
node_open(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) = REAL(open);
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return real(node_path(path), flags, mode);
}

int
node_stat(const char *restrict path, struct stat *restrict st)
{
	return REAL(stat)(node_path(path), st);
}

int
node_access(const char *path, int mode)
{
	return REAL(access)(node_path(path), mode);
}

int
node_socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return REAL(socket)(domain, type, protocol);
}
