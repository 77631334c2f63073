/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RING_SERVER_H
#define RING_SERVER_H

/**
 * @file
 * Who may listen on a socket of polca that a program connects to: another user could have made a
 * socket in a shared directory such as /tmp.
 */

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/**
 * Check the user who listens, after connect(). It may be root, this user, and the user of a
 * service: its own directory has the socket, and only root could have made that. Root itself may
 * connect to anybody.
 *
 * @param path  as it was connected to
 * @return errno value; EPERM: another user's
 */
static inline int
ring_server_check(int fd, const char *path)
{
	char copy[108], above[112];
	const char *dir;
	struct stat own, parent;
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return errno;
	if (cred.uid == 0 || cred.uid == geteuid() || geteuid() == 0)
		return 0;
	snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	if (stat(dir, &own) != 0 || own.st_uid != cred.uid || (own.st_mode & 022) != 0)
		return EPERM;
	snprintf(above, sizeof(above), "%s/..", dir);
	if (stat(above, &parent) != 0 || parent.st_uid != 0 || (parent.st_mode & 022) != 0)
		return EPERM;
	return 0;
}

#endif
