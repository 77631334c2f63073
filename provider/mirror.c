/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which pages are in the mirror. The kernel's list of mappings is the truth: a program may unmap
 * what it has registered. The list of regions says which pages must stay.
 */

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mirror.h"
#include "move.h"

#include <fcntl.h>

struct held_region {
	struct held_region *next;
	int file;
	ino_t inode; /* devices of one program share a mirror, each with a descriptor of its own */
	uintptr_t from, to; /* pages */
};

static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct held_region *regions;

static uintptr_t
page_size(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static ino_t
inode_of(int file)
{
	struct stat st;

	return fstat(file, &st) == 0 ? st.st_ino : 0;
}

/* --- mappings --- */

enum mapping_kind {
	MAPPING_PRIVATE, /* pages of this process alone, writable: anonymous, or static data */
	MAPPING_MIRROR, /* in the mirror already */
	MAPPING_OTHER,
};

struct mapping {
	uintptr_t from, to;
	enum mapping_kind kind;
	char line[256];
};

static enum mapping_kind
mapping_kind_of(const struct mapping *m, const char *perms, unsigned long offset, dev_t dev,
	unsigned long inode, const char *path, const struct stat *mirror)
{
	if (inode == mirror->st_ino && dev == mirror->st_dev && offset == m->from)
		return MAPPING_MIRROR;
	if (perms[0] != 'r' || perms[1] != 'w' || perms[3] != 'p')
		return MAPPING_OTHER;
	/* a program's .data: its pages are copies of the file's, and later changes of the file are none */
	if (inode != 0 || path[0] == '\0' || strcmp(path, "[heap]") == 0 ||
		strncmp(path, "[anon:", 6) == 0)
		return MAPPING_PRIVATE;
	return MAPPING_OTHER;
}

/* @return false: the end of the list */
static bool
mapping_next(FILE *maps, const struct stat *mirror, struct mapping *m)
{
	unsigned long from, to, offset, inode;
	unsigned int major_number, minor_number;
	char perms[5], path[128];

	while (fgets(m->line, sizeof(m->line), maps) != NULL) {
		path[0] = '\0';
		if (sscanf(m->line, "%lx-%lx %4s %lx %x:%x %lu %127[^\n]", &from, &to, perms,
			    &offset, &major_number, &minor_number, &inode, path) < 7)
			continue;
		m->from = from;
		m->to = to;
		m->kind = mapping_kind_of(m, perms, offset, makedev(major_number, minor_number),
			inode, path, mirror);
		return true;
	}
	return false;
}

typedef int (*mapping_fn)(int file, uintptr_t from, uintptr_t to);

/*
 * Call fn for the parts of [from, to) that are mapped in one way.
 *
 * @param all  the range must be mapped, in this way or in the mirror: else EFAULT
 */
static int
for_mappings(int file, uintptr_t from, uintptr_t to, enum mapping_kind kind, bool all,
	mapping_fn fn)
{
	struct mapping m = { 0 }, part[64];
	unsigned int n = 0, i;
	uintptr_t at = from;
	struct stat mirror;
	FILE *maps;
	int rc = 0;

	if (fstat(file, &mirror) != 0)
		return errno;
	maps = fopen("/proc/self/maps", "re");
	if (maps == NULL)
		return errno;
	while (at < to && n < 64 && mapping_next(maps, &mirror, &m)) {
		if (m.to <= at)
			continue;
		if (all && (m.from > at || (m.kind != kind && m.kind != MAPPING_MIRROR)))
			break;
		if (m.from >= to)
			break;
		part[n] = m;
		part[n].from = m.from > at ? m.from : at;
		part[n].to = m.to < to ? m.to : to;
		at = part[n].to;
		n += m.kind == kind;
	}
	fclose(maps);
	if (all && at < to) {
		fprintf(stderr,
			"polca: memory from %#lx to %#lx cannot be registered: only private writable "
			"memory can, and here is %s",
			(unsigned long)from, (unsigned long)to,
			m.from > at || m.to <= at ? "none\n" : m.line);
		return EFAULT;
	}
	for (i = 0; i < n && rc == 0; i++)
		rc = fn(file, part[i].from, part[i].to);
	return rc;
}

/* --- regions --- */

static int
move_in(int file, uintptr_t from, uintptr_t to)
{
	return move_pages_to(file, from, to - from);
}

/* The pages leave the file, too: allocators rely on zeros where they have freed. */
static int
move_out(int file, uintptr_t from, uintptr_t to)
{
	int rc = move_pages_to(-1, from, to - from);

	if (rc == 0)
		fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
			(off_t)(to - from));
	return rc;
}

/* Move back the parts of [from, to) on which no region lies. */
static void
move_out_unheld(int file, uintptr_t from, uintptr_t to)
{
	const struct held_region *r;
	uintptr_t at = from, end;
	ino_t inode = inode_of(file);

	while (at < to) {
		end = to;
		for (r = regions; r != NULL; r = r->next) {
			if (r->inode != inode || r->to <= at || r->from >= end)
				continue;
			if (r->from > at) {
				end = r->from;
				continue;
			}
			at = r->to; /* held: look again from its end */
			end = 0;
			break;
		}
		if (end > at) {
			for_mappings(file, at, end, MAPPING_MIRROR, false, move_out);
			at = end;
		}
	}
}

/* --- fork: what is shared with polca must not be shared between parent and child --- */

static void
fork_prepare(void)
{
	pthread_mutex_lock(&regions_lock);
}

static void
fork_parent(void)
{
	pthread_mutex_unlock(&regions_lock);
}

static int
move_private(int file, uintptr_t from, uintptr_t to)
{
	(void)file;
	return move_pages_to(-1, from, to - from);
}

static void
fork_child(void)
{
	struct held_region *r, *next;

	move_forget_guard();
	for (r = regions; r != NULL; r = next) {
		next = r->next;
		for_mappings(r->file, r->from, r->to, MAPPING_MIRROR, false, move_private);
		free(r);
	}
	regions = NULL;
	pthread_mutex_unlock(&regions_lock);
}

static void __attribute__((constructor)) mirror_watch_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

int
mirror_hold(int mirror_fd, uintptr_t addr, size_t length)
{
	struct held_region *r = malloc(sizeof(*r));
	uintptr_t page = page_size();
	int rc;

	if (r == NULL)
		return ENOMEM;
	if (length == 0 || addr + length < addr) {
		free(r);
		return EINVAL;
	}
	r->file = mirror_fd;
	r->inode = inode_of(mirror_fd);
	r->from = addr & ~(page - 1);
	r->to = (addr + length + page - 1) & ~(page - 1);
	pthread_mutex_lock(&regions_lock);
	rc = for_mappings(mirror_fd, r->from, r->to, MAPPING_PRIVATE, true, move_in);
	if (rc == 0) {
		r->next = regions;
		regions = r;
	} else {
		move_out_unheld(mirror_fd, r->from, r->to);
		free(r);
	}
	pthread_mutex_unlock(&regions_lock);
	if (rc == EPERM)
		fprintf(stderr,
			"polca: memory cannot be registered: other threads of this program may write to it, "
			"and userfaultfd, which holds them off, is not permitted here, or not possible: "
			"for static data\n");
	return rc;
}

void
mirror_release(int mirror_fd, uintptr_t addr, size_t length)
{
	uintptr_t page = page_size();
	uintptr_t from = addr & ~(page - 1), to = (addr + length + page - 1) & ~(page - 1);
	struct held_region **p = &regions, *gone;

	pthread_mutex_lock(&regions_lock);
	while (*p != NULL && ((*p)->file != mirror_fd || (*p)->from != from || (*p)->to != to))
		p = &(*p)->next;
	gone = *p;
	if (gone != NULL) {
		*p = gone->next;
		move_out_unheld(mirror_fd, from, to);
	}
	pthread_mutex_unlock(&regions_lock);
	free(gone);
}
