/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Polca is killed under a program: it gets all that it posted flushed, and the device's fatal
 * event; its memory is intact and private; and it can open the device again.
 */

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define RECEIVES SIDE_DEPTH
#define DONE     10 /* sends, before polca dies */
#define SENDS    (DONE + SIDE_DEPTH)

static struct side a, b;

static double
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Waits as an ordinary program does. */
static void *
wait_fatal(void *arg)
{
	struct ibv_async_event event;

	expect(ibv_get_async_event(a.context, &event) == 0);
	expect(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	*(double *)arg = now_ms();
	/* nothing follows */
	expect(ibv_get_async_event(a.context, &event) != 0);
	return NULL;
}

/* The next completion of side a. @param sleeps  wait on the channel, never poll in a loop */
static int
completion_of_a(bool sleeps, struct ibv_wc *wc)
{
	struct ibv_cq *cq;
	void *context;
	int n;

	while ((n = ibv_poll_cq(a.cq, 1, wc)) == 0 && sleeps) {
		expect(ibv_req_notify_cq(a.cq, 0) == 0);
		n = ibv_poll_cq(a.cq, 1, wc);
		if (n != 0)
			break;
		expect(ibv_get_cq_event(a.channel, &cq, &context) == 0);
		expect(cq == a.cq && context == &a);
		ibv_ack_cq_events(cq, 1);
	}
	return n;
}

/*
 * The queues of a are full, after the first DONE sends are complete: the peer has no more receives.
 * Only every fifth is signaled.
 */
static void
post_before_death(void)
{
	uint64_t i;

	for (i = 0; i < DONE; i++)
		side_post_receive(&b, i);
	for (i = 0; i < RECEIVES; i++)
		side_post_receive(&a, 1000 + i);
	expect(side_try_receive(&a, 1000 + i) == ENOMEM);
	for (i = 0; i < DONE; i++)
		side_post_send(&a, 2000 + i, i % 5 == 4);
	for (i = 4; i < DONE; i += 5) {
		struct ibv_wc wc = next_completion(a.cq);

		expect(wc.status == IBV_WC_SUCCESS && wc.wr_id == 2000 + i);
	}
	for (i = DONE; i < SENDS; i++)
		side_post_send(&a, 2000 + i, i % 5 == 4);
	expect(side_try_send(&a, 2000 + i, true) == ENOMEM);
}

/* Each outstanding request once, in the order of its queue, also those that are not signaled. */
static void
expect_all_flushed(bool sleeps)
{
	uint64_t send = 2000 + DONE, receive = 1000;
	struct ibv_wc wc;
	int n;

	while (send < 2000 + SENDS || receive < 1000 + RECEIVES) {
		do {
			n = completion_of_a(sleeps, &wc);
		} while (n == 0);
		expect(n == 1);
		expect(wc.status == IBV_WC_WR_FLUSH_ERR && wc.qp_num == a.qp->qp_num);
		if (wc.opcode & IBV_WC_RECV)
			expect(wc.wr_id == receive++);
		else
			expect(wc.opcode == IBV_WC_SEND && wc.wr_id == send++);
	}
	expect(ibv_poll_cq(a.cq, 1, &wc) == -1);
	/* what is posted now is flushed, too */
	side_post_send(&a, 3000, false);
	expect(ibv_poll_cq(a.cq, 1, &wc) == 1);
	expect(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 3000);
}

static bool
mirror_is_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	expect(maps != NULL);
	while (fgets(line, sizeof(line), maps) != NULL)
		found |= strstr(line, "polca-mirror") != NULL;
	fclose(maps);
	return found;
}

/* A child's write stays the child's, and the bytes are as they were. */
static void
expect_memory_private(void)
{
	int status;
	pid_t child;

	expect(!mirror_is_mapped());
	for (size_t i = SIDE_BYTES / 2; i < SIDE_BYTES; i++)
		expect(a.memory[i] == (uint8_t)(i * 7));
	child = fork();
	expect(child >= 0);
	if (child == 0) {
		a.memory[SIDE_BYTES - 1] ^= 1;
		_exit(0);
	}
	expect(waitpid(child, &status, 0) == child && status == 0);
	expect(a.memory[SIDE_BYTES - 1] == (uint8_t)((SIDE_BYTES - 1) * 7));
}

static void
make_sides(struct ibv_context *first, struct ibv_context *second, uint8_t *memory)
{
	side_make(&a, first, memory);
	side_make(&b, second, NULL);
	qp_advance(a.qp, b.qp, IBV_QPS_RTS);
	qp_advance(b.qp, a.qp, IBV_QPS_RTS);
}

static void
probe_exchange(void)
{
	side_post_receive(&b, 1);
	side_post_send(&a, 2, true);
	expect(next_completion(a.cq).status == IBV_WC_SUCCESS);
	expect(next_completion(b.cq).status == IBV_WC_SUCCESS);
	expect(memcmp(b.memory, a.memory + SIDE_BYTES / 2, 64) == 0);
}

int
probe_death(int argc, char **argv)
{
	bool sleeps = argc > 1 && strcmp(argv[1], "sleeps") == 0;
	struct side old_a, old_b;
	double fatal, flushed;
	pthread_t waiter;

	make_sides(ibv_open_device(find_device("polca0")), ibv_open_device(find_device("polca1")),
		NULL);
	for (size_t i = 0; i < SIDE_BYTES; i++)
		a.memory[i] = (uint8_t)(i * 7);
	expect(pthread_create(&waiter, NULL, wait_fatal, &fatal) == 0);
	post_before_death();
	expect(mirror_is_mapped());
	probe_say("ready");
	expect_all_flushed(sleeps);
	flushed = now_ms();
	expect(pthread_join(waiter, NULL) == 0);
	while (mirror_is_mapped())
		usleep(1000);
	expect_memory_private();
	printf("flushed %.0f fatal %.0f\n", flushed, fatal);
	probe_say("flushed");
	probe_hear("polca is back");
	/* the same memory on the same device, while the old objects are still there */
	old_a = a;
	old_b = b;
	make_sides(ibv_open_device(find_device("polca0")), ibv_open_device(find_device("polca1")),
		old_a.memory);
	probe_exchange();
	probe_side_destroy(&old_a);
	probe_side_destroy(&old_b);
	probe_exchange();
	probe_side_destroy(&a);
	probe_side_destroy(&b);
	expect_memory_private();
	return 0;
}
