/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The tree that libibverbs reads in the place of /sys, which SYSFS_PATH names: one device for each
 * port. The provider finds here the socket and the port's number.
 */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/port.h"
#include "verbs/private.h"

#define TREE_PATH_MAX 512
/* The device that every node stands for, /dev/null: the provider never uses it. */
#define TREE_NODE "1:3"

/* Everybody who is admitted to the socket reads the tree, whatever polca's umask is. */
static int
tree_mkdir(const char *path)
{
	return mkdir(path, 0755) == 0 && chmod(path, 0755) == 0 ? 0 : -errno;
}

/* Write a file of one line, and make its directories. @return 0 or a negative errno */
static int __attribute__((format(printf, 3, 4)))
tree_write(const char *socket, const char *name, const char *fmt, ...)
{
	char path[TREE_PATH_MAX], *slash;
	va_list ap;
	int fd, n;

	snprintf(path, sizeof(path), "%s" VERBS_TREE "/%s", socket, name);
	for (slash = strstr(path, VERBS_TREE "/"); slash != NULL; slash = strchr(slash + 1, '/')) {
		if (*slash != '/')
			continue;
		*slash = '\0';
		tree_mkdir(path);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	va_start(ap, fmt);
	n = vdprintf(fd, fmt, ap);
	va_end(ap);
	if (fchmod(fd, 0644) != 0)
		n = -1;
	close(fd);
	return n < 0 ? -EIO : 0;
}

static const char *
guid_text(uint64_t guid, char buf[24])
{
	snprintf(buf, 24, "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		(unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		(unsigned int)(guid & 0xffff));
	return buf;
}

static const char *
gid_text(const union gid *gid, char buf[48])
{
	const uint8_t *b = (const uint8_t *)gid;
	unsigned int i, n = 0;

	for (i = 0; i < 16; i += 2)
		n += (unsigned int)snprintf(buf + n, 48 - n, "%s%02x%02x", i > 0 ? ":" : "", b[i],
			b[i + 1]);
	return buf;
}

uint64_t
verbs_node_guid(const struct engine *e, unsigned int port)
{
	return port_eui64(link_port_attr(engine_link((struct engine *)(uintptr_t)e), port)->mac);
}

static int
tree_write_gids(const char *socket, const char *device, const struct port_attr *port)
{
	static const char *const types[] = {
		[GID_ROCEV1] = "IB/RoCE v1",
		[GID_ROCEV2] = "RoCE v2",
		[GID_IB] = "IB/RoCE v1",
	};
	static const union gid none;
	char name[TREE_PATH_MAX], gid[48];
	unsigned int i;
	int rc = 0;

	for (i = 0; i < PORT_GIDS_MAX && rc == 0; i++) {
		bool used = i < port->num_gids;

		snprintf(name, sizeof(name), "%s/ports/1/gids/%u", device, i);
		rc = tree_write(socket, name, "%s\n",
			gid_text(used ? &port->gid[i].gid : &none, gid));
		snprintf(name, sizeof(name), "%s/ports/1/gid_attrs/types/%u", device, i);
		if (rc == 0 && used)
			rc = tree_write(socket, name, "%s\n", types[port->gid[i].type]);
	}
	for (i = 0; i < port->num_pkeys && rc == 0; i++) {
		snprintf(name, sizeof(name), "%s/ports/1/pkeys/%u", device, i);
		rc = tree_write(socket, name, "0x%04x\n", port->pkey[i]);
	}
	return rc;
}

static int
tree_write_device(const struct verbs_server *s, unsigned int number)
{
	const struct port_attr *port = link_port_attr(engine_link(s->engine), number);
	const char *socket = s->config.socket;
	const struct {
		const char *dir, *file, *text;
	} * f,
		files[] = {
			{ "infiniband_verbs", "dev", TREE_NODE },
			{ "infiniband_verbs", "abi_version", "1" },
			{ "infiniband", "node_type", "1: CA" },
			{ "infiniband", "fw_ver", POLCA_VERSION },
			{ "infiniband", "polca_socket", socket },
		};
	char name[TREE_PATH_MAX], guid[24];
	int rc = 0;

	for (f = files; f < files + sizeof(files) / sizeof(files[0]) && rc == 0; f++) {
		snprintf(name, sizeof(name), "class/%s/polca%u/%s", f->dir, number, f->file);
		rc = tree_write(socket, name, "%s\n", f->text);
	}
	snprintf(name, sizeof(name), "class/infiniband_verbs/polca%u/ibdev", number);
	if (rc == 0)
		rc = tree_write(socket, name, "polca%u\n", number);
	snprintf(name, sizeof(name), "class/infiniband/polca%u/polca_port", number);
	if (rc == 0)
		rc = tree_write(socket, name, "%u\n", number);
	guid_text(verbs_node_guid(s->engine, number), guid);
	snprintf(name, sizeof(name), "class/infiniband/polca%u/node_guid", number);
	if (rc == 0)
		rc = tree_write(socket, name, "%s\n", guid);
	snprintf(name, sizeof(name), "class/infiniband/polca%u/sys_image_guid", number);
	if (rc == 0)
		rc = tree_write(socket, name, "%s\n", guid);
	snprintf(name, sizeof(name), "class/infiniband/polca%u", number);
	return rc != 0 ? rc : tree_write_gids(socket, name, port);
}

/* A new directory: one that another user made, as in /tmp, may lead anywhere. */
static int
tree_make_top(const char *socket)
{
	char path[TREE_PATH_MAX];

	verbs_tree_remove(socket);
	snprintf(path, sizeof(path), "%s" VERBS_TREE, socket);
	return tree_mkdir(path);
}

int
verbs_tree_create(struct verbs_server *s, struct error *err)
{
	unsigned int i;
	int rc = tree_make_top(s->config.socket);

	if (rc == 0)
		rc = tree_write(s->config.socket, "class/infiniband_verbs/abi_version", "6\n");
	if (rc == 0) /* librdmacm's device, which the provider stands for */
		rc = tree_write(s->config.socket, "class/misc/rdma_cm/abi_version", "4\n");
	for (i = 0; i < link_num_ports(engine_link(s->engine)) && rc == 0; i++) {
		s->written[i] = link_port_attr(engine_link(s->engine), i);
		rc = tree_write_device(s, i);
	}
	if (rc != 0)
		return error_set(err, -rc, "verbs.socket: cannot write %s" VERBS_TREE ": %s",
			s->config.socket, strerror(-rc));
	return 0;
}

void
verbs_tree_follow(struct verbs_server *s)
{
	const struct port_attr *port;
	char name[64];
	unsigned int i;

	for (i = 0; i < link_num_ports(engine_link(s->engine)); i++) {
		port = link_port_attr(engine_link(s->engine), i);
		if (port == s->written[i])
			continue;
		s->written[i] = port;
		snprintf(name, sizeof(name), "class/infiniband/polca%u", i);
		tree_write_gids(s->config.socket, name, port);
	}
}

static int
tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) != 0 && errno != ENOENT ? -1 : 0;
}

void
verbs_tree_remove(const char *socket)
{
	char path[TREE_PATH_MAX];

	snprintf(path, sizeof(path), "%s" VERBS_TREE, socket);
	nftw(path, tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* nftw() passes no argument */
static uid_t tree_new_owner;

static int
tree_give_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return lchown(path, tree_new_owner, (gid_t)-1) != 0 ? -1 : 0;
}

void
verbs_tree_give(const struct verbs_server *s, uid_t uid)
{
	char path[TREE_PATH_MAX];

	snprintf(path, sizeof(path), "%s" VERBS_TREE, s->config.socket);
	tree_new_owner = uid;
	nftw(path, tree_give_one, 8, FTW_PHYS);
}
