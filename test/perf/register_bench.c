/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What it takes a program to register memory, on the first device that libibverbs finds. It has no
 * DPDK: a driver of DPDK's turns on libibverbs's support of fork(), which then reads all of
 * /proc/self/smaps in each registration, a millisecond or two.
 *
 *   polca-run register_bench [ROUNDS]
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define SMALL  ((size_t)4096)
#define LARGE  ((size_t)1 << 20)
#define ROUNDS 100
#define MOST   10000

enum { FIRST_SMALL, FIRST_LARGE, AGAIN_SMALL, AGAIN_LARGE, END_AGAIN, END_SMALL, END_LARGE, CALLS };

static const char *const call_names[CALLS] = {
	[FIRST_SMALL] = "register 4 KiB",
	[FIRST_LARGE] = "register 1 MiB",
	[AGAIN_SMALL] = "register 4 KiB, again",
	[AGAIN_LARGE] = "register 1 MiB, again",
	[END_AGAIN] = "deregister one of two",
	[END_SMALL] = "deregister 4 KiB",
	[END_LARGE] = "deregister 1 MiB",
};

static double us[CALLS][MOST];

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

/* New memory, which the program has written to. */
static void
register_round(struct ibv_pd *pd, uint32_t i)
{
	uint8_t *memory = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct ibv_mr *small, *large, *small_again, *large_again;

	if (memory == MAP_FAILED)
		exit(1);
	memset(memory, 1, 2 * LARGE);
	small = register_timed(pd, memory, SMALL, &us[FIRST_SMALL][i]);
	large = register_timed(pd, memory + LARGE, LARGE, &us[FIRST_LARGE][i]);
	small_again = register_timed(pd, memory, SMALL, &us[AGAIN_SMALL][i]);
	large_again = register_timed(pd, memory + LARGE, LARGE, &us[AGAIN_LARGE][i]);
	deregister_timed(small_again);
	us[END_AGAIN][i] = deregister_timed(large_again);
	us[END_SMALL][i] = deregister_timed(small);
	us[END_LARGE][i] = deregister_timed(large);
	munmap(memory, 2 * LARGE);
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

int
main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list != NULL && *list != NULL ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;
	uint32_t rounds = argc == 2 ? (uint32_t)atoi(argv[1]) : ROUNDS, i;
	pthread_t thread;

	if (argc > 2 || rounds == 0 || rounds > MOST) {
		fprintf(stderr, "usage: polca-run register_bench [ROUNDS]\n");
		return 2;
	}
	if (pd == NULL || pthread_create(&thread, NULL, register_sleeper, NULL) != 0) {
		fprintf(stderr, "register_bench: no device: start polca, and this by polca-run\n");
		return 1;
	}
	for (i = 0; i < rounds; i++)
		register_round(pd, i);
	printf("%-24s %8s %8s us\n", "", "median", "lowest");
	for (i = 0; i < CALLS; i++) {
		qsort(us[i], rounds, sizeof(us[i][0]), compare_us);
		printf("%-24s %8.1f %8.1f\n", call_names[i], us[i][rounds / 2], us[i][0]);
	}
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
