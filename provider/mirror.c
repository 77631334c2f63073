/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which pages are in the mirror. The kernel's list of mappings is the truth: a program may unmap
 * what it has registered. The list of regions says which pages must stay.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fork_order.h"
#include "fork_wait.h"
#include "keep.h"
#include "mappings.h"
#include "mirror.h"
#include "move.h"

/* Parts of a range. The list is read to its end before anything moves, as moves change it. */
struct part {
	uintptr_t from, to;
	uint64_t offset; /* in the mirror */
	int protection;
};

struct parts {
	struct part *part;
	unsigned int num, room;
	bool unless_shared; /* MIRROR_SHARED, if a range begins in MAPPING_SHARED */
};

/*
 * A mirror that regions use. Devices of one program share it, each with a descriptor of its own,
 * which may be closed before the last page is back: so this has another, which the first region
 * opens. Nothing later needs a descriptor, and so cannot fail for want of one.
 */
struct held_mirror {
	struct held_mirror *next;
	int file;
	struct stat stat;
	unsigned int users; /* regions, also those of the list unmoved */
	struct parts at_fork; /* of all of it, from before a fork() until after it */
};

struct held_region {
	struct held_region *next;
	struct held_mirror *mirror;
	uintptr_t from, to; /* pages */
};

static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct held_mirror *mirrors;
static struct held_region *regions;

static uintptr_t
page_size(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* --- mirrors --- */

static bool
same_mirror(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static bool
is_mirror(int fd, const struct stat *mirror)
{
	struct stat st;

	return fstat(fd, &st) == 0 && same_mirror(&st, mirror);
}

/* Its descriptor; -1 if the program has closed it, also if another file has the number now. */
static int
mirror_file(const struct held_mirror *m)
{
	return is_mirror(m->file, &m->stat) ? m->file : -1;
}

static void
mirror_close(const struct held_mirror *m)
{
	int fd = mirror_file(m);

	if (fd >= 0)
		close(fd);
}

/* @return NULL: no region uses this mirror */
static struct held_mirror *
mirror_find(const struct stat *st)
{
	struct held_mirror *m = mirrors;

	while (m != NULL && !same_mirror(st, &m->stat))
		m = m->next;
	return m;
}

/* Have a descriptor, from one of a device. @return errno value */
static int
mirror_open(struct held_mirror *m, int fd)
{
	if (mirror_file(m) < 0)
		m->file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return m->file >= 0 ? 0 : errno;
}

/* @return errno value */
static int
mirror_use(int fd, struct held_mirror **used)
{
	struct held_mirror *m;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return errno;
	m = mirror_find(&st);
	if (m == NULL) {
		m = malloc(sizeof(*m));
		if (m == NULL)
			return ENOMEM;
		*m = (struct held_mirror){ .next = mirrors, .file = -1, .stat = st };
		mirrors = m;
	}
	m->users++;
	*used = m;
	return 0;
}

static void
mirror_leave(struct held_mirror *m)
{
	struct held_mirror **p = &mirrors;

	if (--m->users > 0)
		return;
	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	mirror_close(m);
	free(m);
}

/* --- mappings --- */

enum mapping_kind {
	MAPPING_PRIVATE, /* pages of this process alone, writable: anonymous, or static data */
	MAPPING_MIRROR, /* in the mirror already */
	MAPPING_SHARED, /* in another file, which polca may map, too (share.c) */
	MAPPING_OTHER,
};

/* @param why  of the last two */
static enum mapping_kind
mapping_kind_of(const struct mapping *m, const struct stat *mirror, const char **why)
{
	if (m->inode == mirror->st_ino && m->device == mirror->st_dev && m->offset == m->from)
		return MAPPING_MIRROR;
	if (m->shared && (m->protection & PROT_READ) != 0 && (m->protection & PROT_WRITE) != 0) {
		*why = "shared, and shared memory is registered only as a whole, without other memory";
		return MAPPING_SHARED;
	}
	if ((m->protection & PROT_READ) == 0 || (m->protection & PROT_WRITE) == 0)
		*why = "not for reading and writing";
	else if (mapping_is_huge(m))
		*why = "private, of huge pages, which cannot be moved: map them MAP_SHARED";
	else if (m->inode != 0 || m->name[0] == '\0' || strcmp(m->name, "[heap]") == 0 ||
		strncmp(m->name, "[anon:", 6) == 0)
		/*
		 * A program's .data has an inode: its pages are copies of the file's, and later
		 * changes of the file are none.
		 */
		return MAPPING_PRIVATE;
	else
		*why = "the stack of the first thread, or the kernel's";
	return MAPPING_OTHER;
}

static void
say_refused(uintptr_t from, uintptr_t to, const char *why)
{
	fprintf(stderr, "polca: memory from %#lx to %#lx cannot be registered: %s\n",
		(unsigned long)from, (unsigned long)to, why);
}

/* @param m  NULL: nothing is mapped at an address of the range */
static void
say_mapping_refused(uintptr_t from, uintptr_t to, const struct mapping *m, const char *why)
{
	char text[PATH_MAX + 256];

	if (m == NULL)
		snprintf(text, sizeof(text), "nothing is mapped at %#lx", (unsigned long)from);
	else
		snprintf(text, sizeof(text), "%#lx to %#lx (%s) is %s", (unsigned long)m->from,
			(unsigned long)m->to, m->name[0] != '\0' ? m->name : "anonymous", why);
	say_refused(from, to, text);
}

static bool
parts_add(struct parts *parts, uintptr_t from, uintptr_t to, const struct mapping *m)
{
	unsigned int room = parts->room > 0 ? 2 * parts->room : 16;
	struct part *more = parts->part;

	if (parts->num == parts->room) {
		more = realloc(parts->part, room * sizeof(*more));
		if (more == NULL)
			return false;
		parts->part = more;
		parts->room = room;
	}
	parts->part[parts->num++] =
		(struct part){ from, to, m->offset + (from - m->from), m->protection };
	return true;
}

/*
 * Find the parts of [from, to) that are private yet. All of the range must be mapped, so or in the
 * mirror: else EFAULT.
 */
static int
parts_find_private(struct mappings *list, const struct stat *mirror, uintptr_t from, uintptr_t to,
	struct parts *parts)
{
	uintptr_t at = from, end;
	struct mapping m;
	const char *why = "";
	enum mapping_kind kind;

	while (at < to && mappings_next(list, at, &m) && m.from <= at) {
		kind = mapping_kind_of(&m, mirror, &why);
		if (kind == MAPPING_SHARED && at == from && parts->unless_shared)
			return MIRROR_SHARED;
		if (kind == MAPPING_OTHER || kind == MAPPING_SHARED) {
			say_mapping_refused(from, to, &m, why);
			return EFAULT;
		}
		end = m.to < to ? m.to : to;
		if (kind == MAPPING_PRIVATE && !parts_add(parts, at, end, &m))
			return ENOMEM;
		at = end;
	}
	if (at < to) {
		say_mapping_refused(at, to, NULL, NULL);
		return EFAULT;
	}
	return 0;
}

/*
 * Find what is mapped of [from, to) of the mirror, at whatever address: a program may have moved
 * it (mremap), also in parts.
 */
static int
parts_find_mirror(struct mappings *list, const struct stat *mirror, uint64_t from, uint64_t to,
	struct parts *parts)
{
	uintptr_t at = 0;
	uint64_t begin, end;
	struct mapping m;

	for (; mappings_next(list, at, &m); at = m.to) {
		if (m.inode != mirror->st_ino || m.device != mirror->st_dev)
			continue;
		begin = m.offset > from ? m.offset : from;
		end = m.offset + (m.to - m.from);
		if (end > to)
			end = to;
		if (begin < end &&
			!parts_add(parts, m.from + (begin - m.offset), m.from + (end - m.offset),
				&m))
			return ENOMEM;
	}
	return 0;
}

/* The same, if all of the range is where it was registered, as it is with most programs. */
static int
parts_find_in_place(struct mappings *list, const struct stat *mirror, uintptr_t from, uintptr_t to,
	struct parts *parts)
{
	uintptr_t at = from, end;
	struct mapping m;
	const char *why;

	for (; at < to; at = end) {
		if (!mappings_next(list, at, &m) || m.from > at ||
			mapping_kind_of(&m, mirror, &why) != MAPPING_MIRROR)
			return ENOENT;
		end = m.to < to ? m.to : to;
		if (!parts_add(parts, at, end, &m))
			return ENOMEM;
	}
	return 0;
}

typedef int (*parts_fn)(struct mappings *list, const struct stat *mirror, uintptr_t from,
	uintptr_t to, struct parts *parts);

/* @param parts  to be freed by the caller, whatever is returned */
static int
parts_find(parts_fn fn, const struct held_mirror *mirror, uintptr_t from, uintptr_t to,
	struct parts *parts)
{
	struct mappings list;
	int rc = mappings_open(&list);

	parts->num = 0;
	if (rc != 0)
		return rc;
	rc = fn(&list, &mirror->stat, from, to, parts);
	mappings_close(&list);
	return rc;
}

/* --- pages --- */

/* @param had  written: what the mapping has besides bytes */
static int
part_move(int file, const struct part *p, struct keep *had)
{
	keep_read(had, p->from, p->protection);
	return move_pages_to(file, p->from, p->to - p->from, had);
}

/* @param fd  of a device, should the program have closed the mirror's own */
static int
move_in(struct held_mirror *mirror, int fd, uintptr_t from, uintptr_t to, bool unless_shared)
{
	struct parts parts = { NULL, 0, 0, unless_shared };
	struct keep had;
	int rc = parts_find(parts_find_private, mirror, from, to, &parts);
	size_t i;

	/* the kernel is asked whether it is still the mirror's when pages are written to it */
	if (rc == 0 && (parts.num > 0 || mirror->file < 0))
		rc = mirror_open(mirror, fd);
	for (i = 0; rc == 0 && i < parts.num; i++)
		rc = part_move(mirror->file, &parts.part[i], &had);
	free(parts.part);
	return rc;
}

static void
punch(int file, uint64_t from, uint64_t to)
{
	fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
		(off_t)(to - from));
}

/* The pages leave the file, too: allocators rely on zeros where they have freed. */
static int
part_move_out(int file, const struct part *p)
{
	size_t length = p->to - p->from;
	struct keep had;
	int rc = part_move(-1, p, &had);

	if (rc != 0)
		return rc;
	punch(file, p->offset, p->offset + length);
	if (had.has_policy)
		keep_clear_policy(file, p->offset, length);
	return 0;
}

/* Move back what is mapped of [from, to), and empty it. */
static int
move_out(const struct held_mirror *mirror, uintptr_t from, uintptr_t to)
{
	struct parts parts = { NULL, 0, 0, false };
	int rc = parts_find(parts_find_in_place, mirror, from, to, &parts);
	int file = mirror_file(mirror);
	bool in_place = rc == 0;
	size_t i;

	if (rc == ENOENT)
		rc = parts_find(parts_find_mirror, mirror, from, to, &parts);
	for (i = 0; rc == 0 && i < parts.num; i++)
		rc = part_move_out(file, &parts.part[i]);
	if (rc == 0 && !in_place) /* what the program has unmapped */
		punch(file, from, to);
	free(parts.part);
	return rc;
}

/* --- regions --- */

/*
 * Regions that have ended, some of whose pages could not be moved back: for example, there was no
 * memory. It is tried again whenever the regions change.
 */
static struct held_region *unmoved;

/* Move back the parts of [from, to) on which no region lies. @return false: not all */
static bool
move_out_unheld(const struct held_mirror *mirror, uintptr_t from, uintptr_t to)
{
	const struct held_region *r;
	uintptr_t at = from, end;
	bool moved = true;

	while (at < to) {
		end = to;
		for (r = regions; r != NULL; r = r->next) {
			if (r->mirror != mirror || r->to <= at || r->from >= end)
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
			if (move_out(mirror, at, end) != 0)
				moved = false;
			at = end;
		}
	}
	return moved;
}

/* The region is on no list. */
static void
region_end(struct held_region *r)
{
	if (!move_out_unheld(r->mirror, r->from, r->to)) {
		r->next = unmoved;
		unmoved = r;
		return;
	}
	mirror_leave(r->mirror);
	free(r);
}

static void
unmoved_retry(void)
{
	struct held_region *r = unmoved, *next;

	unmoved = NULL;
	for (; r != NULL; r = next) {
		next = r->next;
		region_end(r);
	}
}

/* --- fork: what is shared with polca must not be shared between parent and child --- */

/* What is found here, the child copies before it allocates memory, which may be on such a page. */
static void
fork_prepare(void)
{
	struct held_mirror *m;

	pthread_mutex_lock(&regions_lock);
	for (m = mirrors; m != NULL; m = m->next)
		parts_find(parts_find_mirror, m, 0, UINTPTR_MAX, &m->at_fork);
	fork_wait_begin(mirrors != NULL);
}

static void
fork_forget_parts(void)
{
	struct held_mirror *m;

	for (m = mirrors; m != NULL; m = m->next) {
		free(m->at_fork.part);
		m->at_fork = (struct parts){ NULL, 0, 0, false };
	}
}

static void
fork_parent(void)
{
	fork_wait_for_child();
	fork_forget_parts();
	pthread_mutex_unlock(&regions_lock);
}

static void
fork_forget(struct held_region **list)
{
	struct held_region *gone;

	while ((gone = *list) != NULL) {
		*list = gone->next;
		mirror_leave(gone->mirror);
		free(gone);
	}
}

/*
 * All pages of a mirror, wherever the program has them: a child that kept some would write to the
 * parent's memory, and polca to its. So there is none.
 */
static void
fork_leave_mirror(const struct held_mirror *mirror)
{
	static const char text[] = "polca: a child of fork() has no memory for pages of its own\n";
	struct parts parts = { NULL, 0, 0, false };
	struct keep had;
	int rc = parts_find(parts_find_mirror, mirror, 0, UINTPTR_MAX, &parts);
	size_t i;

	for (i = 0; rc == 0 && i < parts.num; i++)
		rc = part_move(-1, &parts.part[i], &had);
	free(parts.part);
	if (rc == 0)
		return;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	abort();
}

/* Parts that other threads of the parent have moved meanwhile are left with fork_leave_mirror(). */
static void
fork_leave_parts(void)
{
	const struct held_mirror *m;
	struct keep had;
	unsigned int i;

	for (m = mirrors; m != NULL; m = m->next)
		for (i = 0; i < m->at_fork.num; i++)
			part_move(-1, &m->at_fork.part[i], &had);
}

static void
fork_child(void)
{
	const struct held_mirror *m;

	move_forget_guard();
	fork_leave_parts();
	fork_forget_parts();
	mappings_forget_parent();
	for (m = mirrors; m != NULL; m = m->next)
		fork_leave_mirror(m);
	fork_forget(&regions);
	fork_forget(&unmoved);
	fork_wait_end();
	pthread_mutex_unlock(&regions_lock);
}

static void __attribute__((constructor(FORK_ORDER_PAGES))) mirror_watch_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* The stack of this thread; 0, 0: not asked for yet, or the first thread's. */
static __thread uintptr_t stack_from, stack_to;
static __thread bool stack_known;

static void
learn_own_stack(void)
{
	pthread_attr_t attr;
	size_t size = 0;
	void *at = NULL;

	/* the first thread's has a mapping that says so, and to ask for it here is slow */
	stack_known = gettid() == getpid();
	if (stack_known || pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	pthread_attr_getstack(&attr, &at, &size);
	pthread_attr_destroy(&attr);
	stack_from = (uintptr_t)at;
	stack_to = stack_from + size;
	stack_known = true;
}

/*
 * The pages would move, but a child of fork() begins on the very stack that it shares with its
 * parent.
 */
static bool
is_own_stack(uintptr_t from, uintptr_t to)
{
	if (!stack_known)
		learn_own_stack();
	return from < stack_to && to > stack_from;
}

/* A thread that is to be cancelled goes on until it has let go. @return for regions_leave() */
static int
regions_enter(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&regions_lock);
	return before;
}

static void
regions_leave(int before)
{
	pthread_mutex_unlock(&regions_lock);
	pthread_setcancelstate(before, NULL);
}

static int
hold_range(int mirror_fd, uintptr_t addr, size_t length, bool unless_shared)
{
	struct held_region *r = malloc(sizeof(*r));
	uintptr_t page = page_size(), from = addr & ~(page - 1);
	uintptr_t to = (addr + length + page - 1) & ~(page - 1);
	int rc, cancel;

	if (r == NULL)
		return ENOMEM;
	if (length == 0 || addr + length < addr || to <= from) {
		free(r);
		return EINVAL;
	}
	if (is_own_stack(from, to)) {
		say_refused(from, to, "it is on the stack of the thread that registers it");
		free(r);
		return EFAULT;
	}
	*r = (struct held_region){ .from = from, .to = to };
	cancel = regions_enter();
	unmoved_retry();
	rc = mirror_use(mirror_fd, &r->mirror);
	if (rc != 0) {
		free(r);
	} else if ((rc = move_in(r->mirror, mirror_fd, from, to, unless_shared)) == ENOENT ||
		rc == MIRROR_SHARED) {
		mirror_leave(r->mirror); /* nothing has moved */
		free(r);
	} else if (rc != 0) {
		region_end(r);
	} else {
		r->next = regions;
		regions = r;
	}
	regions_leave(cancel);
	if (rc == EPERM)
		say_refused(from, to,
			"other threads of this program may write to it, and userfaultfd, which holds "
			"them off, is not permitted here, or not possible: for static data");
	else if (rc != 0 && rc != EFAULT && rc != MIRROR_SHARED)
		say_refused(from, to, strerror(rc));
	return rc;
}

int
mirror_hold(int mirror_fd, uintptr_t addr, size_t length)
{
	return hold_range(mirror_fd, addr, length, false);
}

int
mirror_hold_unless_shared(int mirror_fd, uintptr_t addr, size_t length)
{
	return hold_range(mirror_fd, addr, length, true);
}

void
mirror_release(int mirror_fd, uintptr_t addr, size_t length)
{
	uintptr_t page = page_size();
	uintptr_t from = addr & ~(page - 1), to = (addr + length + page - 1) & ~(page - 1);
	struct held_region **p = &regions, *gone;
	struct held_mirror *mirror = NULL;
	struct stat st;
	int cancel;

	cancel = regions_enter();
	if (fstat(mirror_fd, &st) == 0)
		mirror = mirror_find(&st);
	while (*p != NULL && ((*p)->mirror != mirror || (*p)->from != from || (*p)->to != to))
		p = &(*p)->next;
	gone = *p;
	if (gone != NULL) {
		*p = gone->next;
		mirror_open(mirror, mirror_fd);
		unmoved_retry();
		region_end(gone);
	}
	regions_leave(cancel);
}
