/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/listener.h"

#define BACKLOG SOMAXCONN /* a burst of connections waits; nobody is refused */

/* The directory may be missing below one that is there (/run is emptied at boot). */
static int
make_directory(const char *key, const char *path, struct error *err)
{
	char copy[108];
	const char *dir;

	snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	if (mkdir(dir, 0755) == 0 || errno == EEXIST)
		return 0;
	return error_set(err, errno,
		"%s: cannot make the directory %s: %s; make it, or name another socket", key, dir,
		strerror(errno));
}

/* Remove what a server that has died left behind; anything else in its place stays. */
static int
remove_stale(const char *key, const struct sockaddr_un *addr, int type, struct error *err)
{
	struct ucred owner = { 0 };
	socklen_t len = sizeof(owner);
	struct stat st;
	int fd, rc;

	if (lstat(addr->sun_path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, EEXIST, "%s: %s exists and is no socket; name another", key,
			addr->sun_path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, errno, "%s: %s", key, strerror(errno));
	rc = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 0 : errno;
	/* who called listen() there; 0: a process of another PID namespace, or not connected */
	if (rc == 0)
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &len);
	close(fd);
	if (rc != ECONNREFUSED && owner.pid == getpid())
		return error_set(err, EADDRINUSE,
			"%s: polca listens on %s already, for another purpose; name another socket",
			key, addr->sun_path);
	if (rc != ECONNREFUSED && owner.pid > 0)
		return error_set(err, EADDRINUSE,
			"%s: process %d listens on %s; stop it, or name another socket", key,
			(int)owner.pid, addr->sun_path);
	if (rc != ECONNREFUSED)
		return error_set(err, EADDRINUSE,
			"%s: another process listens on %s; stop it, or name another socket", key,
			addr->sun_path);
	unlink(addr->sun_path);
	return 0;
}

int
listener_open(struct listener *l, const char *key, const char *path, int type, struct error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int rc;

	l->fd = l->spare_fd = -1;
	if (strlen(path) >= sizeof(addr.sun_path) || path[0] == '\0')
		return error_set(err, ENAMETOOLONG, "%s: path of %zu bytes, allowed: 1..%zu", key,
			strlen(path), sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	rc = make_directory(key, path, err);
	if (rc == 0)
		rc = remove_stale(key, &addr, type, err);
	if (rc != 0)
		return rc;
	l->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return error_set(err, errno, "%s: %s", key, strerror(errno));
	/* the descriptor's mode becomes the file's: there is no moment when others may connect */
	if (fchmod(l->fd, 0600) != 0 || bind(l->fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		rc = error_set(err, errno, "%s: cannot bind %s: %s", key, addr.sun_path,
			strerror(errno));
		close(l->fd);
		l->fd = -1;
		return rc;
	}
	strcpy(l->path, addr.sun_path);
	l->mode = 0600;
	if (listen(l->fd, BACKLOG) != 0) {
		rc = error_set(err, errno, "%s: cannot listen on %s: %s", key, l->path,
			strerror(errno));
		listener_close(l);
		return rc;
	}
	l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

void
listener_close(struct listener *l)
{
	if (l->fd < 0)
		return;
	unlink(l->path);
	close(l->fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	l->fd = l->spare_fd = -1;
}

/* Without a descriptor the connection would stay at the head of the queue and keep us awake. */
static void
turn_peer_away(struct listener *l)
{
	int fd;

	close(l->spare_fd);
	fd = accept(l->fd, NULL, NULL);
	if (fd >= 0)
		close(fd);
	l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int
listener_accept(struct listener *l)
{
	int fd, tries;

	for (tries = 0; tries < 64; tries++) {
		fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			return fd;
		if (errno == EMFILE || errno == ENFILE)
			turn_peer_away(l);
		else if (errno != ECONNABORTED && errno != EINTR)
			break;
	}
	return -EAGAIN;
}

/* Only members, and root with CAP_CHOWN, may give a file to a group. */
static int
explain_group(const char *path, gid_t gid, int eno, struct error *err)
{
	const struct group *g = getgrgid(gid);
	const struct passwd *pw = getpwuid(geteuid());

	if (g == NULL || pw == NULL)
		return error_set(err, eno, "cannot give %s to group %u: %s", path,
			(unsigned int)gid, strerror(eno));
	/* uio.conf: systemd gives root no groups but those that the unit names */
	if (geteuid() == 0)
		return error_set(err, eno,
			"cannot give %s to group %s: %s; root without CAP_CHOWN must be a member: SupplementaryGroups=%s in a drop-in of the service",
			path, g->gr_name, strerror(eno), g->gr_name);
	return error_set(err, eno,
		"cannot give %s to group %s: %s; polca's user must be a member: usermod -a -G %s %s",
		path, g->gr_name, strerror(eno), g->gr_name, pw->pw_name);
}

int
listener_admit(struct listener *l, gid_t group, mode_t mode, struct error *err)
{
	if (group != (gid_t)-1 && chown(l->path, (uid_t)-1, group) != 0)
		return explain_group(l->path, group, errno, err);
	if (chmod(l->path, mode) != 0)
		return error_set(err, errno, "cannot set the mode of %s: %s", l->path,
			strerror(errno));
	l->mode = mode;
	return 0;
}

bool
peer_allowed(const struct listener *l, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return false;
	return cred.uid == 0 || cred.uid == geteuid() || (l->mode & 0077) != 0;
}
