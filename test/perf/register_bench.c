/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What it takes a program to register memory, on the first device that libibverbs finds. It has no
 * DPDK: a driver of DPDK's turns on libibverbs's support of fork(), which then reads all of
 * /proc/self/smaps in each registration, a millisecond or two.
 *
 * Each round also measures a limit for moving a program's pages into a file that another process
 * maps, as plain system calls that no such program can leave out: it asks whether the memory is
 * locked and has a policy, which the new pages must have, too; blocks signals, whose handlers could
 * wait for the thread that they interrupt; holds off other threads that write there, or their
 * writes would be lost (userfaultfd); writes its bytes to the file, which makes the pages there;
 * maps them in the place of its own; and wakes who waits (bare_move()). Another process maps them
 * (bare_map()). Before that, the empty request, right behind the move as in a registration. Of the
 * same memory again the limit is an empty request alone. A second table has the parts.
 *
 *   polca-run register_bench [ROUNDS]
 */

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define SMALL  ((size_t)4096)
#define LARGE  ((size_t)1 << 20)
#define ROUNDS 100
#define MOST   10000

enum {
	EMPTY, /* a request that does nothing: what any takes, for the way there and back */
	FIRST_SMALL,
	NEXT_SMALL, /* right after it, while the caches have what it takes */
	FIRST_LARGE,
	AGAIN_SMALL,
	AGAIN_LARGE,
	END_AGAIN,
	END_SMALL,
	END_LARGE,
	BARE_SMALL, /* the limits of FIRST_SMALL, NEXT_SMALL and FIRST_LARGE */
	BARE_NEXT,
	BARE_LARGE,
	CALLS
};

static const char *const call_names[CALLS] = {
	[EMPTY] = "empty request",
	[FIRST_SMALL] = "register 4 KiB",
	[NEXT_SMALL] = "register 4 KiB, next",
	[FIRST_LARGE] = "register 1 MiB",
	[AGAIN_SMALL] = "register 4 KiB, again",
	[AGAIN_LARGE] = "register 1 MiB, again",
	[END_AGAIN] = "deregister one of two",
	[END_SMALL] = "deregister 4 KiB",
	[END_LARGE] = "deregister 1 MiB",
	[BARE_SMALL] = "bare work for 4 KiB",
	[BARE_NEXT] = "bare work, next",
	[BARE_LARGE] = "bare work for 1 MiB",
};

/* The row that limits a row; -1: none is measured. */
static const int limit_of[CALLS] = {
	[EMPTY] = -1,
	[FIRST_SMALL] = BARE_SMALL,
	[NEXT_SMALL] = BARE_NEXT,
	[FIRST_LARGE] = BARE_LARGE,
	[AGAIN_SMALL] = EMPTY,
	[AGAIN_LARGE] = EMPTY,
	[END_AGAIN] = -1,
	[END_SMALL] = -1,
	[END_LARGE] = -1,
	[BARE_SMALL] = -1,
	[BARE_NEXT] = -1,
	[BARE_LARGE] = -1,
};

static double us[CALLS][MOST];

enum {
	PART_ASK, /* whether the memory is locked, and has a policy */
	PART_GUARD, /* block signals, raise it, and wake who waits */
	PART_WRITE, /* the bytes, which makes the pages */
	PART_REPLACE, /* map them in the place of the program's own */
	PART_MAP, /* in the other process */
	PART_REQUEST, /* the empty one */
	PARTS
};

static const char *const part_names[PARTS] = {
	[PART_ASK] = "ask about the memory",
	[PART_GUARD] = "hold off writers",
	[PART_WRITE] = "write to the file",
	[PART_REPLACE] = "map in place",
	[PART_MAP] = "map in another process",
	[PART_REQUEST] = "request and answer",
};

static double part_us[CALLS][PARTS][MOST]; /* of the bare work */

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct ibv_mr *
register_timed(struct ibv_pd *pd, void *memory, size_t bytes, double *taken)
{
	double begin = now_us();
	struct ibv_mr *mr =
		ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	*taken = now_us() - begin;
	if (mr == NULL) {
		perror("ibv_reg_mr");
		exit(1);
	}
	return mr;
}

static double
deregister_timed(struct ibv_mr *mr)
{
	double begin = now_us();

	if (ibv_dereg_mr(mr) != 0)
		exit(1);
	return now_us() - begin;
}

static double
request_timed(struct ibv_context *context)
{
	struct ibv_port_attr attr;
	double begin = now_us();

	if (ibv_query_port(context, 1, &attr) != 0)
		exit(1);
	return now_us() - begin;
}

/* --- limits --- */

static int bare_file, bare_socket, bare_guard;

/* In the other process: map pages of the file that are there. */
static double
bare_map(size_t bytes)
{
	double begin = now_us(), taken;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bare_file, 0);

	if (map == MAP_FAILED || madvise(map, bytes, MADV_POPULATE_WRITE) != 0)
		exit(1);
	taken = now_us() - begin;
	munmap(map, bytes);
	return taken;
}

/* Map what is asked for, and answer with the time that it took, until the socket closes. */
static void
bare_serve(int fd)
{
	double taken;
	size_t bytes;

	while (read(fd, &bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
		taken = bare_map(bytes);
		if (write(fd, &taken, sizeof(taken)) != (ssize_t)sizeof(taken))
			break;
	}
	_exit(0);
}

/* Before the device is open, which the other process does not need. */
static pid_t
bare_start(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	int pair[2];
	pid_t child;

	bare_guard = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (bare_guard < 0 || ioctl(bare_guard, UFFDIO_API, &api) != 0)
		return -1;
	bare_file = memfd_create("register_bench", MFD_CLOEXEC);
	if (bare_file < 0 || ftruncate(bare_file, (off_t)LARGE) != 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -1;
	child = fork();
	if (child == 0) {
		close(pair[0]);
		bare_serve(pair[1]);
	}
	close(pair[1]);
	bare_socket = pair[0];
	return child;
}

static void
bare_ask(uint8_t *memory)
{
	unsigned long nodes[16];
	int policy;

	if (msync(memory, SMALL, MS_INVALIDATE) != 0 ||
		syscall(SYS_get_mempolicy, &policy, nodes, sizeof(nodes) * 8, memory,
			MPOL_F_ADDR) != 0)
		exit(1);
}

static void
bare_raise(uint8_t *memory, size_t bytes)
{
	struct uffdio_register guard = {
		.range = { (uintptr_t)memory, bytes },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = guard.range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	if (ioctl(bare_guard, UFFDIO_REGISTER, &guard) != 0 ||
		ioctl(bare_guard, UFFDIO_WRITEPROTECT, &protect) != 0)
		exit(1);
}

static void
bare_wake(uint8_t *memory, size_t bytes)
{
	struct uffdio_range range = { (uintptr_t)memory, bytes };

	if (ioctl(bare_guard, UFFDIO_WAKE, &range) != 0)
		exit(1);
}

/* In the program: the pages of the file are new, and have the bytes of those that they replace. */
static void
bare_move(uint8_t *memory, size_t bytes, double taken[PARTS])
{
	double begin = now_us(), asked, raised, written, replaced;
	sigset_t all, before;

	bare_ask(memory);
	asked = now_us();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bare_raise(memory, bytes);
	raised = now_us();
	if (pwrite(bare_file, memory, bytes, 0) != (ssize_t)bytes)
		exit(1);
	written = now_us();
	if (mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
		    bare_file, 0) != memory)
		exit(1);
	replaced = now_us();
	bare_wake(memory, bytes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	taken[PART_ASK] = asked - begin;
	taken[PART_GUARD] = raised - asked + now_us() - replaced;
	taken[PART_WRITE] = written - raised;
	taken[PART_REPLACE] = replaced - written;
}

/* @param call  BARE_SMALL, BARE_NEXT or BARE_LARGE */
static void
bare_timed(struct ibv_context *context, unsigned int call, uint8_t *memory, size_t bytes,
	uint32_t i)
{
	double taken[PARTS];
	unsigned int part;

	bare_move(memory, bytes, taken);
	taken[PART_REQUEST] = request_timed(context);
	if (write(bare_socket, &bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) ||
		read(bare_socket, &taken[PART_MAP], sizeof(double)) != (ssize_t)sizeof(double))
		exit(1);
	munmap(memory, bytes);
	if (ftruncate(bare_file, 0) != 0 || ftruncate(bare_file, (off_t)LARGE) != 0)
		exit(1);
	us[call][i] = 0;
	for (part = 0; part < PARTS; part++) {
		part_us[call][part][i] = taken[part];
		us[call][i] += taken[part];
	}
}

/* --- rounds --- */

/* New memory, which the program has written to. */
static uint8_t *
register_memory(void)
{
	uint8_t *memory = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	memset(memory, 1, 2 * LARGE);
	return memory;
}

static void
register_limits(struct ibv_context *context, uint32_t i)
{
	uint8_t *memory = register_memory();

	bare_timed(context, BARE_SMALL, memory, SMALL, i);
	bare_timed(context, BARE_NEXT, memory + SMALL, SMALL, i);
	bare_timed(context, BARE_LARGE, memory + LARGE, LARGE, i);
	munmap(memory, 2 * LARGE);
}

static void
register_round(struct ibv_pd *pd, uint32_t i)
{
	uint8_t *memory = register_memory();
	struct ibv_mr *small, *next, *large, *small_again = NULL, *large_again = NULL;
	uint32_t turn;

	small = register_timed(pd, memory, SMALL, &us[FIRST_SMALL][i]);
	next = register_timed(pd, memory + SMALL, SMALL, &us[NEXT_SMALL][i]);
	large = register_timed(pd, memory + LARGE, LARGE, &us[FIRST_LARGE][i]);
	/* the first of the three finds the caches full of the large region: each is, by turns */
	for (turn = i; turn < i + 3; turn++)
		if (turn % 3 == 0)
			small_again = register_timed(pd, memory, SMALL, &us[AGAIN_SMALL][i]);
		else if (turn % 3 == 1)
			large_again =
				register_timed(pd, memory + LARGE, LARGE, &us[AGAIN_LARGE][i]);
		else
			us[EMPTY][i] = request_timed(pd->context);
	deregister_timed(small_again);
	deregister_timed(next);
	us[END_AGAIN][i] = deregister_timed(large_again);
	us[END_SMALL][i] = deregister_timed(small);
	us[END_LARGE][i] = deregister_timed(large);
	munmap(memory, 2 * LARGE);
	register_limits(pd->context, i);
}

static int
compare_us(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A program with one thread holds no writers off. */
static void *
register_sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static double
median_us(double *values, uint32_t n)
{
	qsort(values, n, sizeof(*values), compare_us);
	return values[n / 2];
}

static void
register_print_parts(uint32_t rounds)
{
	unsigned int part;

	printf("\n%-24s %8s %8s %8s us\n", "parts, medians", "4 KiB", "next", "1 MiB");
	for (part = 0; part < PARTS; part++)
		printf("%-24s %8.1f %8.1f %8.1f\n", part_names[part],
			median_us(part_us[BARE_SMALL][part], rounds),
			median_us(part_us[BARE_NEXT][part], rounds),
			median_us(part_us[BARE_LARGE][part], rounds));
}

static void
register_print(uint32_t rounds)
{
	const double *limit;
	uint32_t i, middle = rounds / 2;

	for (i = 0; i < CALLS; i++)
		qsort(us[i], rounds, sizeof(us[i][0]), compare_us);
	printf("%-24s %8s %8s us   limit / value\n", "", "median", "lowest");
	for (i = 0; i < CALLS; i++) {
		printf("%-24s %8.1f %8.1f", call_names[i], us[i][middle], us[i][0]);
		limit = limit_of[i] >= 0 ? us[limit_of[i]] : NULL;
		if (limit != NULL)
			printf("      %.2f, %.2f", limit[middle] / us[i][middle],
				limit[0] / us[i][0]);
		printf("\n");
	}
	register_print_parts(rounds);
}

int
main(int argc, char **argv)
{
	pid_t other = bare_start();
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list != NULL && *list != NULL ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;
	uint32_t rounds = argc == 2 ? (uint32_t)atoi(argv[1]) : ROUNDS, i;
	pthread_t thread;

	if (argc > 2 || rounds == 0 || rounds > MOST) {
		fprintf(stderr, "usage: polca-run register_bench [ROUNDS]\n");
		return 2;
	}
	if (other < 0) {
		perror("register_bench: the bare work, which another process shares");
		return 1;
	}
	if (pd == NULL || pthread_create(&thread, NULL, register_sleeper, NULL) != 0) {
		fprintf(stderr, "register_bench: no device: start polca, and this by polca-run\n");
		return 1;
	}
	for (i = 0; i < rounds; i++)
		register_round(pd, i);
	register_print(rounds);
	close(bare_socket);
	waitpid(other, NULL, 0);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
