/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <sys/queue.h>

#include "mem/mirror.h"

#define LISTS 1024

struct mirror_map {
	LIST_ENTRY(mirror_map) next;
	uint64_t inode; /* of the mirror: a mapping holds its file, so no other gets it meanwhile */
	uint64_t from;
	size_t len;
	void *map;
	uint32_t users;
	int node; /* of its first page */
};

static LIST_HEAD(, mirror_map) lists[LISTS];

int
mem_mirror_create(struct error *err)
{
	int fd = memfd_create("polca-mirror", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;

	if (fd >= 0 && ftruncate(fd, (off_t)MEM_MIRROR_BYTES) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	rc = error_set(err, errno, "no file for the program's memory: %m");
	if (fd >= 0)
		close(fd);
	return rc;
}

static unsigned int
mirror_list(uint64_t inode, uint64_t from)
{
	return (from / 4096 + inode * 61) % LISTS;
}

bool
mirror_map_share(struct backing *b, uint64_t inode)
{
	struct mirror_map *m;

	LIST_FOREACH(m, &lists[mirror_list(inode, b->from)], next)
		if (m->inode == inode && m->from == b->from && m->len == b->map_len) {
			m->users++;
			b->map = m->map;
			b->numa_node = m->node;
			b->mirror = m;
			return true;
		}
	return false;
}

int
mirror_map_add(struct backing *b, uint64_t inode, struct error *err)
{
	struct mirror_map *m = malloc(sizeof(*m));

	if (m == NULL)
		return error_set(err, ENOMEM, "no memory for a region of a program");
	*m = (struct mirror_map){ { 0 }, inode, b->from, b->map_len, b->map, 1, b->numa_node };
	LIST_INSERT_HEAD(&lists[mirror_list(inode, b->from)], m, next);
	b->mirror = m;
	return 0;
}

void
mirror_map_leave(struct mirror_map *m)
{
	if (--m->users > 0)
		return;
	LIST_REMOVE(m, next);
	munmap(m->map, m->len);
	free(m);
}
