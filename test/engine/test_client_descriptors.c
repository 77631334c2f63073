/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Descriptors of programs on the verbs socket: those that polca makes for them, when there are no
 * more, and those that they pass with requests, be these right or wrong. None stays.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "../open_descriptors.h"
#include "client_node.h"
#include "client_socket.h"
#include "engine/rdmacm.h"

static struct engine *e;
static struct program program; /* its worker's wake pipe stays */
static struct error err;
static struct ring_reply reply;

static int
descriptors_setup(void **state)
{
	(void)state;
	node_config();
	e = node_create();
	program_open(e, &program, 0);
	program_make_objects(&program);
	program_server_start(e);
	return 0;
}

static int
descriptors_teardown(void **state)
{
	(void)state;
	program_server_stop();
	program_close(&program);
	engine_destroy(e);
	return 0;
}

/* --- there are no more --- */

static int
make_client(struct verbs_client **client)
{
	return engine_client_create(e, 0, &program_limits, -1, client, &err);
}

static int
share_client(struct verbs_client **client)
{
	int fds[RING_HELLO_FDS];

	engine_client_hello(program.client, &program.hello, fds);
	return engine_client_create(e, 0, &program_limits, fds[1], client, &err);
}

/* With room for one descriptor more each time, until it succeeds: what fails leaves none. */
static void
client_until_there_is_room(int (*create)(struct verbs_client **client))
{
	unsigned int before = open_descriptors(), failures = 0;
	struct verbs_client *client = NULL;
	struct rlimit limit, few;
	int rc = -1;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	for (few.rlim_cur = 3; rc != 0; few.rlim_cur++) {
		assert_true(few.rlim_cur < limit.rlim_cur);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		rc = create(&client);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (rc == 0)
			break;
		failures++;
		assert_int_equal(rc, -EMFILE);
		assert_int_equal(open_descriptors(), before);
	}
	assert_true(failures >= 6); /* segment, mirror, three of the event pipe, wake pipe */
	engine_client_destroy(client);
	assert_int_equal(open_descriptors(), before);
}

static void
test_client_without_descriptors(void **state)
{
	(void)state;
	client_until_there_is_room(make_client);
	client_until_there_is_room(share_client);
}

/* The limit of the process is raised by so many for each program. */
static void
test_descriptors_of_a_program(void **state)
{
	unsigned int before = open_descriptors();
	int fd = program_dial(), mirror = program_greet(fd, -1);

	(void)state;
	close(mirror);
	assert_int_equal(open_descriptors() - before - 1, VERBS_CLIENT_FDS); /* 1: the program's */
	close(fd);
	assert_true(program_server_is_free());
	assert_int_equal(open_descriptors(), before);
}

static void
test_channels_without_descriptors(void **state)
{
	const struct rdmacm_limits cm_limits = { .max_channels = 1, .max_ids = 1 };
	unsigned int before = open_descriptors(), channels = 0, cm_channels = 0;
	int fds[RING_CHANNEL_FDS], cm_fd;
	struct rdmacm_program *cm;
	struct rlimit limit, few;
	uint32_t slot, cm_slot;

	(void)state;
	assert_ok(engine_rdmacm_open(e, &cm_limits, getuid(), getpid(), &cm, &err));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	for (few.rlim_cur = 3; channels == 0 || cm_channels == 0; few.rlim_cur++) {
		assert_true(few.rlim_cur < limit.rlim_cur);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		if (engine_client_channel_create(program.client, &slot, fds, &err) == 0) {
			channels++;
			close(fds[0]);
			close(fds[1]);
			assert_ok(engine_client_channel_destroy(program.client, slot, &err));
		}
		if (engine_rdmacm_channel_open(cm, &cm_slot, &cm_fd, &err) == 0) {
			cm_channels++;
			assert_ok(engine_rdmacm_channel_close(cm, cm_slot, &err));
		}
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		assert_int_equal(open_descriptors(), before);
	}
	engine_rdmacm_close(cm);
}

/* --- those that are passed --- */

/* A request with descriptors, after HELLO or as the first: its error, and that nothing stays. */
static void
expect_none_stays(bool opened, const struct ring_request *request, size_t size, const int *passed,
	unsigned int num_passed, int error)
{
	unsigned int before = open_descriptors(), num_fds, i;
	int fd = program_dial(), fds[PASSING_MAX];

	if (opened)
		close(program_greet(fd, -1));
	program_say(fd, request, size, passed, num_passed);
	assert_int_equal(program_hear(fd, &reply, fds, &num_fds), error);
	for (i = 0; i < num_fds; i++)
		close(fds[i]);
	close(fd);
	assert_true(program_server_is_free());
	eventually(open_descriptors() == before); /* a thread closes some */
}

static void
test_passed_descriptors(void **state)
{
	const struct ring_request pd = { .code = RING_PD_ALLOC },
				  unknown = { .code = RING_REQUESTS };
	const struct ring_request channel = { .code = RING_CHANNEL_CREATE };
	struct ring_request cm_open = program_hello, wrong = program_hello;
	int passed[] = { open("/dev/null", O_RDWR), memfd_create("passed", 0) };

	(void)state;
	cm_open.code = RING_CM_OPEN;
	wrong.hello.major++;
	/* not a mirror */
	expect_none_stays(false, &program_hello, REQUEST_WITH(hello), passed, 1, EINVAL);
	expect_none_stays(false, &program_hello, REQUEST_WITH(hello), passed, 2, EINVAL);
	expect_none_stays(false, &wrong, REQUEST_WITH(hello), passed, 1, EPROTONOSUPPORT);
	expect_none_stays(false, &program_hello, REQUEST_WITH(hello) - 1, passed, 1, EPROTO);
	/* with requests that take none */
	expect_none_stays(false, &cm_open, REQUEST_WITH(hello), passed, 2, 0);
	expect_none_stays(false, &pd, REQUEST_EMPTY, passed, 1, EPROTO);
	expect_none_stays(true, &pd, REQUEST_EMPTY, passed, 2, 0);
	expect_none_stays(true, &channel, REQUEST_EMPTY, passed, 2, 0);
	expect_none_stays(true, &program_hello, REQUEST_WITH(hello), passed, 2, EPROTO);
	/* with what is no request */
	expect_none_stays(true, &unknown, REQUEST_EMPTY, passed, 2, EPROTO);
	expect_none_stays(true, &pd, sizeof(pd), passed, 2, EPROTO);
	expect_none_stays(true, &pd, 1, passed, 1, EPROTO);
	expect_none_stays(true, &pd, 0, passed, 2, -1);
	close(passed[0]);
	close(passed[1]);
}

/* The region stays when its descriptor goes. */
static void
test_passed_memory(void **state)
{
	struct ring_request pd = { .code = RING_PD_ALLOC };
	struct ring_request mr = { .code = RING_MR_REGISTER, .mr = { .length = 4096 } };
	int passed[] = { memfd_create("passed", 0), open("/dev/null", O_RDWR) };
	int fd = program_dial(), fds[PASSING_MAX];
	static const uint8_t page[4096];
	unsigned int before, num_fds;

	(void)state;
	assert_int_equal(pwrite(passed[0], page, sizeof(page), 0), sizeof(page));
	close(program_greet(fd, -1));
	program_say(fd, &pd, REQUEST_EMPTY, NULL, 0);
	assert_int_equal(program_hear(fd, &reply, fds, &num_fds), 0);
	before = open_descriptors();
	program_say(fd, &mr, REQUEST_WITH(mr), passed, 2);
	assert_int_equal(program_hear(fd, &reply, fds, &num_fds), 0);
	eventually(open_descriptors() == before);
	program_say(fd, &mr, REQUEST_WITH(mr), passed + 1, 1);
	assert_int_equal(program_hear(fd, &reply, fds, &num_fds), EINVAL);
	mr.mr.length = 8192; /* more than there is */
	program_say(fd, &mr, REQUEST_WITH(mr), passed, 2);
	assert_int_equal(program_hear(fd, &reply, fds, &num_fds), EINVAL);
	eventually(open_descriptors() == before);
	close(passed[0]);
	close(passed[1]);
	close(fd);
	assert_true(program_server_is_free());
}

/* A program opens two devices with one mirror, and one of them a second time. */
static void
test_shared_mirror(void **state)
{
	unsigned int before = open_descriptors(), num_fds;
	int a = program_dial(), b = program_dial();
	int mirror = program_greet(a, -1), fds[PASSING_MAX];

	(void)state;
	close(program_greet(b, mirror));
	program_say(b, &program_hello, REQUEST_WITH(hello), &mirror, 1);
	assert_int_equal(program_hear(b, &reply, fds, &num_fds), EPROTO);
	assert_int_equal(program_hear(b, &reply, fds, &num_fds), -1);
	close(mirror);
	close(a);
	close(b);
	assert_true(program_server_is_free());
	eventually(open_descriptors() == before); /* a thread closes some */
}

/* A program that reads no reply has its connection closed, and what was sent goes with it. */
static void
test_replies_that_are_not_read(void **state)
{
	const struct ring_request channel = { .code = RING_CHANNEL_CREATE };
	const struct ring_request query = { .code = RING_QUERY_PORT };
	unsigned int before = open_descriptors();
	int fd = program_dial();

	(void)state;
	close(program_greet(fd, -1));
	program_say(fd, &channel, REQUEST_EMPTY, NULL, 0);
	while (send(fd, &query, REQUEST_EMPTY, MSG_NOSIGNAL) == (ssize_t)REQUEST_EMPTY)
		program_server_run();
	assert_true(program_server_is_free());
	close(fd);
	assert_int_equal(open_descriptors(), before);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, descriptors_setup, descriptors_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_client_without_descriptors),
		CASE(test_descriptors_of_a_program),
		CASE(test_channels_without_descriptors),
		CASE(test_passed_descriptors),
		CASE(test_passed_memory),
		CASE(test_shared_mirror),
		CASE(test_replies_that_are_not_read),
	};

	node_workers = 1;
	return cmocka_run_group_tests_name("engine: descriptors of clients", tests, eal_setup,
		eal_teardown);
}
