/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Mappings of mirrors. A program that registers the same memory again, with another key, gets a
 * region on the mapping that is there already. Control thread only.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mem/mirror.h"

#define LISTS 1024

struct mirror_map {
	struct mirror_map *next;
	/* of the mirror: a mapping holds its file, so that no other gets this inode meanwhile */
	dev_t device;
	ino_t inode;
	uint64_t from;
	size_t len;
	void *map;
	uint32_t users;
};

static struct mirror_map *lists[LISTS];

static struct mirror_map **
mirror_list(ino_t inode, uint64_t from)
{
	return &lists[(from / 4096 + (uint64_t)inode * 61) % LISTS];
}

bool
mirror_map_share(struct backing *b, const struct stat *mirror, uint64_t from, size_t len)
{
	struct mirror_map *m = *mirror_list(mirror->st_ino, from);

	while (m != NULL &&
		(m->inode != mirror->st_ino || m->device != mirror->st_dev || m->from != from ||
			m->len != len))
		m = m->next;
	if (m == NULL)
		return false;
	m->users++;
	b->map = m->map;
	b->map_len = len;
	b->mirror = m;
	return true;
}

int
mirror_map_add(struct backing *b, const struct stat *mirror, uint64_t from)
{
	struct mirror_map *m = malloc(sizeof(*m)), **list = mirror_list(mirror->st_ino, from);

	if (m == NULL)
		return -ENOMEM;
	*m = (struct mirror_map){ *list, mirror->st_dev, mirror->st_ino, from, b->map_len, b->map,
		1 };
	*list = m;
	b->mirror = m;
	return 0;
}

void
mirror_map_leave(struct mirror_map *m)
{
	struct mirror_map **p = mirror_list(m->inode, m->from);

	if (--m->users > 0)
		return;
	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	munmap(m->map, m->len);
	free(m);
}
