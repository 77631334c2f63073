/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../passing.h"
#include "fake_polca.h"

#define PAGE         ((size_t)4096)
#define MIRROR_BYTES ((off_t)1 << 47)
#define FDS_MAX      RING_HELLO_FDS

struct fake_session {
	struct fake_seen *seen;
	uint64_t features;
	uint32_t minor;
	int client;
	int mirror;
	uint64_t last_region; /* address */
};

static void
fake_check(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	_exit(1);
}

/* @return bytes; 0: the end */
static ssize_t
fake_receive(struct fake_session *s, struct ring_request *req)
{
	int fds[PASSING_MAX];
	unsigned int num_fds;
	ssize_t n = passing_receive(s->client, req, sizeof(*req), fds, &num_fds, 0);

	s->seen->descriptors += num_fds;
	while (num_fds > 0)
		close(fds[--num_fds]);
	return n;
}

static void
fake_reply(const struct fake_session *s, const struct ring_reply *reply, const int *fds,
	unsigned int num_fds)
{
	fake_check(passing_send(s->client, reply, sizeof(*reply), fds, num_fds, 0) ==
			sizeof(*reply),
		"sendmsg");
	for (unsigned int i = 0; i < num_fds; i++)
		if (fds[i] != s->mirror)
			close(fds[i]);
}

static int
fake_memfd(const char *name, off_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	fake_check(fd >= 0 && ftruncate(fd, bytes) == 0, name);
	return fd;
}

static unsigned int
fake_hello(struct fake_session *s, const struct ring_request *req, struct ring_reply *reply,
	int *fds)
{
	fds[0] = fake_memfd("fake-rings", 4 * PAGE);
	fds[1] = s->mirror = fake_memfd("fake-mirror", MIRROR_BYTES);
	fake_check(pipe2(&fds[2], O_CLOEXEC) == 0, "pipe");
	close(fds[2]); /* of the wake pipe, the program has the writing end */
	fds[2] = fds[3];
	fake_check(pipe2(&fds[3], O_CLOEXEC) == 0, "pipe");
	reply->hello = (struct ring_hello_reply){
		.major = RING_MAJOR,
		.minor = s->minor,
		.features = s->features & req->hello.features,
		.geometry = { 4 * PAGE, PAGE, 2 * PAGE, 3 * PAGE, 1, 1 },
		.limits = { .max_mr = 8, .max_pd = 8 },
		.version = FAKE_VERSION,
	};
	return RING_HELLO_FDS;
}

/* @return how many descriptors go with the reply */
static unsigned int
fake_answer(struct fake_session *s, const struct ring_request *req, struct ring_reply *reply,
	int *fds)
{
	switch (req->code) {
	case RING_HELLO:
		return fake_hello(s, req, reply, fds);
	case RING_CHANNEL_CREATE:
		fake_check(pipe2(fds, O_CLOEXEC) == 0, "pipe");
		return RING_CHANNEL_FDS;
	case RING_MR_REGISTER:
	case RING_MR_REGISTER_RANGE:
		s->last_region = req->mr.addr;
		reply->mr.key = 0x100;
		return 0;
	case RING_SRQ_CREATE:
		reply->queue = (struct ring_queue_reply){
			.receive_entries = 3 * PAGE + PAGE / 2,
			.receive_num = 8,
			.receive_stride = 64,
			.caps = { .max_recv_wr = 8, .max_recv_sge = 1 },
		};
		return 0;
	default:
		return 0;
	}
}

/* Give the program's threads time to do what they must not do yet. */
static void
fake_write(const struct fake_session *s)
{
	uint64_t page = s->last_region & ~(PAGE - 1);
	uint8_t *map;

	for (int i = 0; i < 1000; i++)
		sched_yield();
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, s->mirror, (off_t)page);
	fake_check(map != MAP_FAILED, "mirror");
	map[s->last_region - page] = FAKE_WRITTEN;
}

static _Noreturn void
fake_serve(int listener, struct fake_session *s, enum fake_end end)
{
	struct ring_request req;
	int fds[FDS_MAX];

	s->client = accept(listener, NULL, NULL);
	fake_check(s->client >= 0, "accept");
	while (fake_receive(s, &req) > 0) {
		struct ring_reply reply = { 0 };
		unsigned int num_fds;

		fake_check(req.code < RING_REQUESTS, "code");
		s->seen->requests[req.code]++;
		num_fds = fake_answer(s, &req, &reply, fds);
		fake_reply(s, &reply, fds, num_fds);
	}
	s->seen->ended = true;
	while (end == FAKE_HANGS)
		pause();
	if (end == FAKE_WRITES)
		fake_write(s);
	_exit(0);
}

void
fake_polca_start(struct fake_polca *f, uint64_t features, enum fake_end end)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/polca-test-XXXXXX";
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_non_null(mkdtemp(dir));
	snprintf(f->socket, sizeof(f->socket), "%s/sock", dir);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f->socket);
	assert_int_equal(bind(listener, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	f->seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f->seen, MAP_FAILED);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		struct fake_session s = {
			.seen = f->seen,
			.features = features,
			.minor = f->minor,
		};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fake_serve(listener, &s, end);
	}
	close(listener);
}

void
fake_polca_stop(struct fake_polca *f)
{
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	unlink(f->socket);
	*strrchr(f->socket, '/') = '\0';
	rmdir(f->socket);
	munmap(f->seen, PAGE);
}
