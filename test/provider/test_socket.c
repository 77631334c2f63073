/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Replies on the verbs socket with descriptors: never more than the caller has room for, and none
 * is left open, whatever the server sends.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../open_descriptors.h"
#include "../passing.h"
#include "provider.h"

#define UNTOUCHED (-7)

/* No device is open in this program. */
void
death_notice(struct polca_context *c)
{
	(void)c;
}

int
contexts_mirror(const struct polca_device *device)
{
	(void)device;
	return -1;
}

/* The server's reply, ahead of the request, with so many descriptors of one file. */
static void
reply_with(int server, const struct ring_reply *reply, unsigned int num_fds, int file)
{
	int fds[PASSING_MAX];

	for (unsigned int i = 0; i < num_fds; i++)
		fds[i] = file;
	assert_int_equal(passing_send(server, reply, sizeof(*reply), fds, num_fds, 0),
		sizeof(*reply));
}

static int
open_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Room for one, and as many as a server likes to send. */
static void
test_a_reply_with_more_descriptors_than_asked_for(void **state)
{
	static const unsigned int sent[] = { 0, 1, 2, 3, PASSING_MAX };
	struct ring_reply reply = { 0 };
	int pair[2], null = open_null();

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (unsigned int i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
		unsigned int before = open_descriptors();
		int got[PASSING_MAX];
		struct ring_request req = { 0 };

		for (unsigned int k = 0; k < PASSING_MAX; k++)
			got[k] = UNTOUCHED;
		reply_with(pair[1], &reply, sent[i], null);
		assert_int_equal(polca_socket_ask(pair[0], RING_CM_CHANNEL_OPEN, &req, 0, &reply,
					 got),
			0);
		for (unsigned int k = 1; k < PASSING_MAX; k++)
			assert_int_equal(got[k], UNTOUCHED);
		if (sent[i] > 0)
			assert_int_equal(close(got[0]), 0);
		else
			assert_int_equal(got[0], -1);
		assert_int_equal(open_descriptors(), before);
	}
	close(pair[0]);
	close(pair[1]);
	close(null);
}

/* A server that answers the first HELLO. */
static int
hello_answered_with(const struct ring_reply *reply, unsigned int num_fds, int file,
	struct polca_context *c)
{
	struct polca_device device = { 0 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/polca-test-XXXXXX";
	int listener, pid, status, rc;

	assert_non_null(mkdtemp(dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	snprintf(device.socket, sizeof(device.socket), "%s/sock", dir);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid = fork();
	if (pid == 0) {
		int client = accept(listener, NULL, NULL);
		struct ring_request req;

		if (recv(client, &req, sizeof(req), 0) > 0)
			reply_with(client, reply, num_fds, file);
		_exit(0);
	}
	rc = polca_connect(c, &device);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(listener);
	unlink(addr.sun_path);
	rmdir(dir);
	return rc;
}

static void
test_a_hello_that_fails_leaves_no_descriptor(void **state)
{
	struct ring_reply whole = { 0 }, without_size = { 0 }, refused = { .error = EPERM };
	const struct {
		const struct ring_reply *reply;
		unsigned int num_fds;
		int rc;
	} cases[] = {
		{ &whole, RING_HELLO_FDS - 1, EPROTO },
		{ &whole, 1, EPROTO },
		{ &whole, 0, EPROTO },
		{ &without_size, RING_HELLO_FDS, EINVAL }, /* mmap() of no bytes */
		{ &without_size, RING_HELLO_FDS + 1, EINVAL },
		{ &refused, RING_HELLO_FDS, EPERM },
	};
	int null = open_null();
	unsigned int before = open_descriptors();

	(void)state;
	whole.hello.geometry.bytes = 4096;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct polca_context c = { 0 };

		assert_int_equal(hello_answered_with(cases[i].reply, cases[i].num_fds, null, &c),
			cases[i].rc);
		assert_int_equal(open_descriptors(), before);
	}
	close(null);
}

/* As polca answers; a further descriptor is closed. */
static void
test_a_hello_with_a_descriptor_too_many(void **state)
{
	struct ring_reply reply = { 0 };
	int file = memfd_create("segment", MFD_CLOEXEC);
	unsigned int before = open_descriptors();
	struct polca_context c = { 0 };

	(void)state;
	assert_int_equal(ftruncate(file, 4096), 0);
	reply.hello.geometry.bytes = 4096;
	assert_int_equal(hello_answered_with(&reply, RING_HELLO_FDS + 1, file, &c), 0);
	/* the socket, and all but the segment's, which is mapped */
	assert_int_equal(open_descriptors(), before + RING_HELLO_FDS);
	munmap(c.segment, 4096);
	close(c.socket);
	close(c.mirror_fd);
	close(c.wake_fd);
	close(c.verbs.context.async_fd);
	close(c.event_back);
	close(file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_reply_with_more_descriptors_than_asked_for),
		cmocka_unit_test(test_a_hello_that_fails_leaves_no_descriptor),
		cmocka_unit_test(test_a_hello_with_a_descriptor_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
