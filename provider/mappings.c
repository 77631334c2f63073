/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mappings.h"

/* PROCMAP_QUERY of Linux 6.11; Debian 12's headers do not have it. */
struct address_query {
	uint64_t size;
	uint64_t flags;
	uint64_t address;
	uint64_t from, to;
	uint64_t bits;
	uint64_t page_bytes;
	uint64_t offset;
	uint64_t inode;
	uint32_t major_number, minor_number;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};
#define ADDRESS_QUERY    _IOWR('f', 17, struct address_query)
#define BIT_READABLE     0x01
#define BIT_WRITABLE     0x02
#define BIT_EXECUTABLE   0x04
#define BIT_SHARED       0x08
#define COVERING_OR_NEXT 0x10

static bool read_text;

void
mappings_read_text(bool on)
{
	read_text = on;
}

/* @return errno value; ENOENT: no mapping ends after the address */
static int
query_address(int fd, uintptr_t at, struct mapping *m)
{
	struct address_query q = {
		.size = sizeof(q),
		.flags = COVERING_OR_NEXT,
		.address = at,
		.name_size = sizeof(m->name),
		.name = (uintptr_t)m->name,
	};

	m->name[0] = '\0';
	if (ioctl(fd, ADDRESS_QUERY, &q) != 0)
		return errno;
	if (q.name_size == 0)
		m->name[0] = '\0';
	m->from = q.from;
	m->to = q.to;
	m->offset = q.offset;
	m->page_bytes = q.page_bytes;
	m->inode = q.inode;
	m->device = makedev(q.major_number, q.minor_number);
	m->shared = (q.bits & BIT_SHARED) != 0;
	m->protection = ((q.bits & BIT_READABLE) != 0 ? PROT_READ : 0) |
		((q.bits & BIT_WRITABLE) != 0 ? PROT_WRITE : 0) |
		((q.bits & BIT_EXECUTABLE) != 0 ? PROT_EXEC : 0);
	return 0;
}

static bool
parse_line(const char *line, struct mapping *m)
{
	unsigned long from, to, offset, inode;
	unsigned int major_number, minor_number;
	char perms[5];

	m->name[0] = '\0';
	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %4095[^\n]", &from, &to, perms, &offset,
		    &major_number, &minor_number, &inode, m->name) < 7)
		return false;
	m->from = from;
	m->to = to;
	m->offset = offset;
	m->page_bytes = 0;
	m->inode = inode;
	m->device = makedev(major_number, minor_number);
	m->shared = perms[3] == 's';
	m->protection = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
		(perms[2] == 'x' ? PROT_EXEC : 0);
	return true;
}

/* A list that answers for an address stays open. */
struct kept_list {
	int fd;
	ino_t inode;
	dev_t device;
};
static struct kept_list *kept;

/*
 * A page with a byte that is set in the process that keeps the list: the kernel clears it in a
 * child, however that is made, which has another list.
 */
static char *kept_here;

/* Make the page, without a mark. @return NULL: not possible */
static char *
make_mark_page(void)
{
	char *page = __atomic_load_n(&kept_here, __ATOMIC_ACQUIRE), *none = NULL;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	if (page == NULL) {
		page = (char *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return NULL;
		if (syscall(SYS_madvise, page, size, MADV_WIPEONFORK) != 0 ||
			!__atomic_compare_exchange_n(&kept_here, &none, page, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			syscall(SYS_munmap, page, size);
			return NULL;
		}
	}
	return page;
}

static bool
is_marked(void)
{
	const char *page = __atomic_load_n(&kept_here, __ATOMIC_ACQUIRE);

	return page != NULL && __atomic_load_n(page, __ATOMIC_ACQUIRE) != 0;
}

/* False if the program has closed it, also if it has another file in its place. */
static bool
kept_is_open(const struct kept_list *k)
{
	struct stat st;

	return k != NULL && fstat(k->fd, &st) == 0 && st.st_ino == k->inode &&
		st.st_dev == k->device;
}

/*
 * The list that this process keeps, or NULL. The mark is read first: a child of a raw clone(), for
 * which no handler of fork() runs, has the list of its parent until one of its threads puts another
 * in its place and marks the page. So whoever sees the mark sees that list.
 */
static const struct kept_list *
kept_of_this_process(void)
{
	return is_marked() ? __atomic_load_n(&kept, __ATOMIC_ACQUIRE) : NULL;
}

void
mappings_forget_parent(void)
{
	if (kept_is_open(kept))
		close(kept->fd);
	kept = NULL;
}

/*
 * Not freed: another thread may read it. The mark comes last: until then a child of fork() has the
 * list of its parent, which no thread of the child may take for its own.
 */
static bool
keep_list(int fd, struct kept_list *before)
{
	struct kept_list *k = malloc(sizeof(*k));
	char *page = make_mark_page();
	struct stat st;

	if (k == NULL || fstat(fd, &st) != 0 || page == NULL) {
		free(k);
		return false;
	}
	*k = (struct kept_list){ fd, st.st_ino, st.st_dev };
	if (__atomic_compare_exchange_n(&kept, &before, k, false, __ATOMIC_ACQ_REL,
		    __ATOMIC_RELAXED)) {
		__atomic_store_n(page, 1, __ATOMIC_RELEASE);
		return true;
	}
	free(k);
	return false;
}

int
mappings_open(struct mappings *l)
{
	struct kept_list *before = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);
	const struct kept_list *k = kept_of_this_process();
	struct mapping m;

	l->text = NULL;
	l->keep = !read_text && kept_is_open(k);
	if (l->keep) {
		l->fd = k->fd;
		return 0;
	}
	l->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (l->fd < 0)
		return errno;
	if (!read_text && query_address(l->fd, 0, &m) == 0) {
		l->keep = keep_list(l->fd, before);
		return 0;
	}
	l->text = fdopen(l->fd, "r");
	if (l->text != NULL)
		return 0;
	close(l->fd);
	return ENOMEM;
}

void
mappings_close(struct mappings *l)
{
	if (l->text != NULL)
		fclose(l->text);
	else if (!l->keep)
		close(l->fd);
}

bool
mappings_next(struct mappings *l, uintptr_t at, struct mapping *m)
{
	char line[PATH_MAX + 128];

	if (l->text == NULL)
		return query_address(l->fd, at, m) == 0;
	while (fgets(line, sizeof(line), l->text) != NULL)
		if (parse_line(line, m) && m->to > at)
			return true;
	return false;
}

/* The list that has more than addresses, for kernels that do not answer for one. */
static uint64_t
read_page_bytes(const struct mapping *of)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	char line[PATH_MAX + 128];
	unsigned long kib = 0;
	struct mapping m = { 0 };

	while (smaps != NULL && kib == 0 && fgets(line, sizeof(line), smaps) != NULL)
		if (m.from != of->from || m.to != of->to)
			parse_line(line, &m);
		else
			sscanf(line, "KernelPageSize: %lu kB", &kib);
	if (smaps != NULL)
		fclose(smaps);
	return (uint64_t)kib * 1024;
}

bool
mapping_is_huge(const struct mapping *m)
{
	uint64_t bytes = m->page_bytes;

	if (m->inode == 0) /* hugetlbfs's pages are of a file, always */
		return false;
	if (bytes == 0)
		bytes = read_page_bytes(m);
	return bytes > (uint64_t)sysconf(_SC_PAGESIZE);
}
