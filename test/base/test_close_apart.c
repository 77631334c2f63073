/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Descriptors that take their time to close: nobody waits for them. */

#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/close_apart.h"

/*
 * A connected socket that waits a minute for its peer when it is closed.
 *
 * @param peer  reads nothing; once it is closed, the socket waits no more
 */
static int
make_lingering(int *peer)
{
	const struct linger minute = { .l_onoff = 1, .l_linger = 60 };
	struct sockaddr_in at = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static const uint8_t bytes[65536];
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
	*peer = accept(listener, NULL, NULL);
	assert_true(*peer >= 0);
	close(listener);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)), 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return fd;
}

static bool
fd_is_there(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool
ends_within_seconds(struct apart *c, unsigned int seconds)
{
	const struct timespec ms = { 0, 1000000 };
	unsigned int i;

	for (i = 0; i < seconds * 1000; i++) {
		if (apart_ended(c))
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

static void
test_slow_descriptor_is_closed_apart(void **state)
{
	int peer, fds[2] = { make_lingering(&peer), open("/dev/null", O_RDONLY) };
	struct apart *c = close_apart_begin(fds, 2);

	(void)state;
	assert_non_null(c);
	assert_false(apart_ended(c));
	assert_true(fd_is_there(fds[1])); /* closed in this order */
	close(peer);
	assert_true(ends_within_seconds(c, 30));
	assert_false(fd_is_there(fds[1]));
}

/* The peer reads nothing, and stays: only the interruption ends the thread. */
static void
test_hurried_thread_ends(void **state)
{
	int peer, slow = make_lingering(&peer);
	const struct timespec ms = { 0, 1000000 };
	struct apart *c = close_apart_begin(&slow, 1);
	unsigned int i;

	(void)state;
	assert_non_null(c);
	for (i = 0; i < 10; i++) { /* it waits by itself */
		assert_false(apart_ended(c));
		nanosleep(&ms, NULL);
	}
	for (i = 0; i < 20000 && !apart_ended(c); i++) {
		apart_hurry(c);
		nanosleep(&ms, NULL);
	}
	assert_true(i < 20000);
	assert_false(fd_is_there(slow));
	close(peer);
}

static void
test_forgotten_one_frees_itself(void **state)
{
	int peer, slow = make_lingering(&peer), fast = open("/dev/null", O_RDONLY);
	struct apart *c = close_apart_begin(&slow, 1);

	(void)state;
	assert_non_null(c);
	apart_forget(c);
	close(peer);
	c = close_apart_begin(&fast, 1);
	assert_true(c == NULL || ends_within_seconds(c, 30));
	assert_false(fd_is_there(fast));
}

static void
test_memory_is_closed_here(void **state)
{
	int memory = memfd_create("memory", 0), device = open("/dev/null", O_RDONLY);

	(void)state;
	assert_true(fd_in_memory(memory));
	assert_false(fd_in_memory(device));
	close(device);
	assert_false(fd_in_memory(device));
	close_passed(memory);
	assert_false(fd_is_there(memory));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_descriptor_is_closed_apart),
		cmocka_unit_test(test_hurried_thread_ends),
		cmocka_unit_test(test_forgotten_one_frees_itself),
		cmocka_unit_test(test_memory_is_closed_here),
	};

	return cmocka_run_group_tests_name("base close_apart", tests, NULL, NULL);
}
