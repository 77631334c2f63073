/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Memory that a program shares with others already: messages leave it and reach it in place, so
 * the other mapping of the file sees them. If the file becomes shorter, its region is closed.
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe.h"

#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 << 20)

static struct side a, b;

struct shared_file {
	int fd; /* -1: none is left */
	size_t page; /* bytes of its pages */
	uint8_t *mapped; /* what is registered: from the second page on */
	uint8_t *other; /* the whole file, mapped again */
};

/* @param where  NULL: a memfd; "huge": one of huge pages; or a path on hugetlbfs */
static void
shared_file_open(struct shared_file *f, const char *where)
{
	size_t bytes;

	f->page = where == NULL ? PAGE : HUGE;
	if (where == NULL)
		f->fd = memfd_create("probe", MFD_CLOEXEC);
	else if (strcmp(where, "huge") == 0)
		f->fd = memfd_create("probe", MFD_CLOEXEC | MFD_HUGETLB);
	else
		f->fd = open(where, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bytes = (SIDE_BYTES + f->page - 1) / f->page * f->page;
	expect(f->fd >= 0 && ftruncate(f->fd, (off_t)(bytes + f->page)) == 0);
	f->mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, (off_t)f->page);
	f->other = mmap(NULL, bytes + f->page, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	expect(f->mapped != MAP_FAILED && f->other != MAP_FAILED);
}

static uint8_t *
map_and_close(int fd, size_t bytes)
{
	uint8_t *p;

	expect(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p;
}

static uint8_t *
map_system_v(size_t bytes, int flags)
{
	int id = shmget(IPC_PRIVATE, bytes, 0600 | flags);
	uint8_t *p;

	expect(id >= 0);
	p = shmat(id, NULL, 0);
	expect(shmctl(id, IPC_RMID, NULL) == 0);
	return p;
}

/* A file in /dev/shm that everybody may write, or only its owner, and that is no longer there. */
static uint8_t *
map_deleted(size_t bytes, mode_t mode)
{
	char path[] = "/dev/shm/polca-probe-XXXXXX";
	int fd = mkstemp(path);

	expect(fd >= 0 && fchmod(fd, mode) == 0 && unlink(path) == 0);
	return map_and_close(fd, bytes);
}

/* Shared memory to whose file no path and no descriptor leads. @return MAP_FAILED: no such kind */
static uint8_t *
map_nameless(const char *kind, size_t bytes)
{
	if (strcmp(kind, "anonymous") == 0)
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (strcmp(kind, "anonymous-huge") == 0)
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (strcmp(kind, "system-v") == 0)
		return map_system_v(bytes, 0);
	if (strcmp(kind, "system-v-huge") == 0)
		return map_system_v(bytes, SHM_HUGETLB);
	if (strcmp(kind, "memfd") == 0)
		return map_and_close(memfd_create("probe", MFD_CLOEXEC), bytes);
	if (strcmp(kind, "deleted") == 0)
		return map_deleted(bytes, 0666);
	if (strcmp(kind, "deleted-own") == 0)
		return map_deleted(bytes, 0600);
	return MAP_FAILED;
}

/* @param where  a kind of nameless memory, or as shared_file_open() */
static void
shared_file_make(struct shared_file *f, const char *where)
{
	size_t page = where != NULL && strstr(where, "-huge") != NULL ? HUGE : PAGE;
	size_t bytes = (SIDE_BYTES + page - 1) / page * page;
	uint8_t *whole = where != NULL ? map_nameless(where, bytes + page) : MAP_FAILED;

	if (whole == MAP_FAILED) {
		shared_file_open(f, where);
		return;
	}
	f->fd = -1;
	f->page = page;
	f->mapped = whole + page;
	/* of shared memory no bytes are moved: it is mapped again */
	f->other = page == PAGE ? mremap(whole, 0, bytes + page, MREMAP_MAYMOVE) : whole;
	expect(f->other != MAP_FAILED);
}

static void
send_message(const char *text, struct shared_file *from, const struct shared_file *to)
{
	strcpy((char *)from->other + from->page + SIDE_BYTES / 2, text);
	side_post_receive(&b, 1);
	side_post_send(&a, 2, true);
	expect(next_completion(a.cq).status == IBV_WC_SUCCESS);
	expect(next_completion(b.cq).status == IBV_WC_SUCCESS);
	expect(strcmp((const char *)to->other + to->page, text) == 0);
}

/* Polca reads the pages that are gone: its worker survives, and the request does not succeed. */
static void
cut_file_short(struct shared_file *from)
{
	struct ibv_wc wc;

	expect(ftruncate(from->fd, (off_t)from->page) == 0);
	do {
		side_post_receive(&b, 3);
		side_post_send(&a, 4, true);
		wc = next_completion(a.cq);
		if (wc.status == IBV_WC_SUCCESS)
			next_completion(b.cq);
	} while (wc.status == IBV_WC_SUCCESS);
}

int
probe_shared(int argc, char **argv)
{
	struct shared_file from, to;
	struct ibv_mr *second;

	shared_file_make(&from, argc > 2 ? argv[2] : NULL);
	shared_file_make(&to, argc > 3 ? argv[3] : argc > 2 ? argv[2] : NULL);
	side_make(&a, ibv_open_device(find_device("polca0")), from.mapped);
	side_make(&b, ibv_open_device(find_device("polca1")), to.mapped);
	qp_advance(a.qp, b.qp, IBV_QPS_RTS);
	qp_advance(b.qp, a.qp, IBV_QPS_RTS);
	send_message("first", &from, &to);
	send_message("second", &from, &to);
	second = ibv_reg_mr(a.pd, from.mapped + 100, 1000, IBV_ACCESS_LOCAL_WRITE);
	expect(second != NULL && second->lkey != a.mr->lkey);
	expect(ibv_dereg_mr(second) == 0);
	send_message("third", &from, &to);
	if (argc > 1 && strcmp(argv[1], "cut") == 0)
		cut_file_short(&from);
	probe_side_destroy(&a);
	probe_side_destroy(&b);
	return 0;
}

/* A device that is closed with regions left: their memory is private again, with its bytes. */
int
probe_left(int argc, char **argv)
{
	struct ibv_context *context = ibv_open_device(find_device("polca0"));
	struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;
	uint8_t *p =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line[256];
	FILE *maps;

	(void)argc;
	(void)argv;
	expect(pd != NULL && p != MAP_FAILED);
	memset(p, 7, 4 * PAGE);
	expect(ibv_reg_mr(pd, p, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE) != NULL);
	expect(ibv_reg_mr(pd, p + PAGE, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE) != NULL);
	expect(ibv_close_device(context) == 0);
	maps = fopen("/proc/self/maps", "r");
	expect(maps != NULL);
	while (fgets(line, sizeof(line), maps) != NULL)
		expect(strstr(line, "polca-mirror") == NULL);
	fclose(maps);
	for (size_t i = 0; i < 4 * PAGE; i++)
		expect(p[i] == 7);
	return 0;
}

/* Shared memory that polca must not have, of a nameless kind or by a path: it is refused. */
int
probe_refused(int argc, char **argv)
{
	struct ibv_context *context = ibv_open_device(find_device("polca0"));
	struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;
	uint8_t *p = argc > 1 ? map_nameless(argv[1], PAGE) : MAP_FAILED;

	if (p == MAP_FAILED && argc > 1)
		p = map_and_close(open(argv[1], O_RDWR | O_CREAT, 0600), PAGE);
	expect(pd != NULL && p != MAP_FAILED);
	if (argc > 2)
		expect(mprotect(p, PAGE, PROT_READ) == 0);
	errno = 0;
	expect(ibv_reg_mr(pd, p, PAGE, IBV_ACCESS_LOCAL_WRITE) == NULL && errno != 0);
	munmap(p, PAGE);
	expect(ibv_dealloc_pd(pd) == 0);
	expect(ibv_close_device(context) == 0);
	return 0;
}
