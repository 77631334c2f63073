/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_PASSING_H
#define TEST_PASSING_H

/* Messages over a Unix socket, with descriptors. */

#include <string.h>
#include <sys/socket.h>

#define PASSING_MAX 16 /* descriptors in one message */

union passing_control {
	char bytes[CMSG_SPACE(sizeof(int) * PASSING_MAX)];
	struct cmsghdr align;
};

/* At most PASSING_MAX descriptors; they stay open here. @return as sendmsg() */
static inline ssize_t
passing_send(int socket, const void *message, size_t size, const int *fds, unsigned int num_fds,
	int flags)
{
	union passing_control control = { { 0 } };
	struct iovec iov = { (void *)(uintptr_t)message, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *h;

	if (num_fds > 0) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * num_fds);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int) * num_fds);
		memcpy(CMSG_DATA(h), fds, sizeof(int) * num_fds);
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL | flags);
}

/* @param fds  PASSING_MAX, of which num_fds have come. @return as recvmsg() */
static inline ssize_t
passing_receive(int socket, void *message, size_t size, int *fds, unsigned int *num_fds, int flags)
{
	union passing_control control;
	struct iovec iov = { message, size };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags);
	const struct cmsghdr *h = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;

	*num_fds = 0;
	if (h != NULL && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
		*num_fds = (unsigned int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(h), sizeof(int) * *num_fds);
	}
	return n;
}

#endif
