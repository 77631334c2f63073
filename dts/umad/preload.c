/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * LD_PRELOAD for programs that use libibumad: replaces their user-MAD device and its entries in
 * /sys by those of the bridge whose directory is in UMAD_BRIDGE.
 *
 *   /sys/class/infiniband...  -> $UMAD_BRIDGE/sys/class/infiniband...
 *   /dev/infiniband/umadN     -> a connection to $UMAD_BRIDGE/socket
 *   /dev/infiniband/issmN     -> the same, "is a subnet manager" while it is open
 *
 * The connection is a real descriptor: poll() and close() work unchanged. clients.py describes the
 * messages.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS_MAX    4096
#define AGENTS_MAX 32
#define UMAD_HDR   64 /* struct ib_user_mad */
#define UMAD_LEN   16 /* offset of its length */
#define BUFFER     (8 << 20)

/* ioctls of <rdma/ib_user_mad.h>: type 0x1b */
enum { REGISTER_AGENT = 1, UNREGISTER_AGENT, ENABLE_PKEY };
enum { MSG_REGISTER = 1, MSG_UNREGISTER, MSG_MAD, MSG_IS_SM };

struct reg_req {
	uint32_t id;
	uint8_t method_mask[16];
	uint8_t qpn, mgmt_class, class_version, oui[3], rmpp_version;
};

static uint8_t is_umad[FDS_MAX];
static uint8_t in_use[FDS_MAX][AGENTS_MAX];

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static bool
starts(const char *path, const char *with)
{
	return strncmp(path, with, strlen(with)) == 0;
}

static const char *
bridge(void)
{
	const char *dir = getenv("UMAD_BRIDGE");

	return dir ? dir : "/run/umad-bridge";
}

/* The path to open instead. */
static const char *
real(const char *path, char *buf, size_t size)
{
	if (!starts(path, "/sys/class/infiniband"))
		return path;
	snprintf(buf, size, "%s%s", bridge(), path);
	return buf;
}

static int
connect_bridge(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int big = BUFFER;
	int fd;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/socket", bridge());
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (fd >= FDS_MAX || connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0) {
		fprintf(stderr, "no bridge at %s: %s\n", un.sun_path, strerror(errno));
		NEXT(close)(fd);
		errno = ENODEV;
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big));
	return fd;
}

static int
open_device(const char *path)
{
	bool issm = starts(path, "/dev/infiniband/issm");
	uint32_t type = MSG_IS_SM;
	int fd;

	if (!issm && !starts(path, "/dev/infiniband/umad")) {
		errno = ENOENT;
		return -1;
	}
	fd = connect_bridge();
	if (fd < 0)
		return -1;
	memset(in_use[fd], 0, sizeof(in_use[fd]));
	is_umad[fd] = !issm;
	if (issm)
		send(fd, &type, sizeof(type), MSG_NOSIGNAL);
	return fd;
}

static int
preload_open(const char *path, int flags, mode_t mode)
{
	char buf[512];

	if (starts(path, "/dev/infiniband/"))
		return open_device(path);
	return NEXT(openat)(AT_FDCWD, real(path, buf, sizeof(buf)), flags, mode);
}

int
open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return preload_open(path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int __open_2(const char *path, int flags);
int
__open_2(const char *path, int flags)
{
	return preload_open(path, flags, 0);
}

int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));

DIR *
opendir(const char *path)
{
	char buf[512];

	return NEXT(opendir)(real(path, buf, sizeof(buf)));
}

int
scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
	int (*compare)(const struct dirent **, const struct dirent **))
{
	char buf[512];

	return NEXT(scandir)(real(path, buf, sizeof(buf)), list, filter, compare);
}

int
close(int fd)
{
	if (fd >= 0 && fd < FDS_MAX)
		is_umad[fd] = 0;
	return NEXT(close)(fd);
}

static bool
ours(int fd)
{
	return fd >= 0 && fd < FDS_MAX && is_umad[fd];
}

ssize_t
write(int fd, const void *buf, size_t n)
{
	uint32_t type = MSG_MAD;
	struct iovec iov[2] = { { &type, sizeof(type) }, { (void *)buf, n } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (!ours(fd))
		return NEXT(write)(fd, buf, n);
	return sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 ? -1 : (ssize_t)n;
}

/* A long MAD is in the file that was passed with its header. */
static ssize_t
take_file(struct msghdr *msg, uint8_t *buf, size_t len)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t have = UMAD_HDR;
	ssize_t got = 1;
	int fd;

	if (c == NULL || c->cmsg_type != SCM_RIGHTS) {
		errno = EIO;
		return -1;
	}
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	for (; have < len && got > 0; have += got > 0 ? got : 0)
		got = pread(fd, buf + have, len - have, have - UMAD_HDR);
	NEXT(close)(fd);
	return have;
}

static ssize_t
read_mad(int fd, uint8_t *buf, size_t size)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	uint8_t header[UMAD_HDR];
	uint32_t len;
	ssize_t n;

	n = recv(fd, header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);
	if (n < (ssize_t)sizeof(header))
		return n < 0 ? -1 : 0;
	memcpy(&len, header + UMAD_LEN, sizeof(len));
	if (len > size) { /* as in the kernel: the MAD stays, and the reader learns its length */
		memcpy(buf, header, size < UMAD_HDR ? size : UMAD_HDR);
		errno = ENOSPC;
		return -1;
	}
	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n == UMAD_HDR && len > UMAD_HDR)
		return take_file(&msg, buf, len);
	return n;
}

ssize_t
read(int fd, void *buf, size_t n)
{
	return ours(fd) ? read_mad(fd, buf, n) : NEXT(read)(fd, buf, n);
}

static int
register_agent(int fd, struct reg_req *req)
{
	struct {
		uint32_t type;
		struct reg_req req;
	} msg = { .type = MSG_REGISTER };
	uint32_t id = 0;

	while (id < AGENTS_MAX && in_use[fd][id])
		id++;
	if (id == AGENTS_MAX) {
		errno = ENOMEM;
		return -1;
	}
	in_use[fd][id] = 1;
	req->id = id;
	msg.req = *req;
	return send(fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int
unregister_agent(int fd, const uint32_t *id)
{
	uint32_t msg[2] = { MSG_UNREGISTER, *id };

	if (*id >= AGENTS_MAX) {
		errno = EINVAL;
		return -1;
	}
	in_use[fd][*id] = 0;
	return send(fd, msg, sizeof(msg), MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int
ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!ours(fd) || (request >> 8 & 0xff) != 0x1b)
		return NEXT(ioctl)(fd, request, arg);
	switch (request & 0xff) {
	case REGISTER_AGENT:
		return register_agent(fd, arg);
	case UNREGISTER_AGENT:
		return unregister_agent(fd, arg);
	case ENABLE_PKEY:
		return 0;
	}
	errno = EINVAL; /* REGISTER_AGENT2: libibumad then uses REGISTER_AGENT */
	return -1;
}
