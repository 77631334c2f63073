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
#include "../passing.h"
#include "client_node.h"
#include "engine/rdmacm.h"
#include "verbs/private.h"

static struct engine *e;
static struct program program; /* its worker's wake pipe stays */
static struct verbs_server server;
static struct error err;

static int
descriptors_setup(void **state)
{
	(void)state;
	node_config();
	e = node_create();
	program_open(e, &program, 0);
	program_make_objects(&program);
	server.engine = e;
	server.config = verbs_config_default;
	server.config.limits = program_limits;
	LIST_INIT(&server.sessions);
	return 0;
}

static int
descriptors_teardown(void **state)
{
	(void)state;
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

static int
descriptors_connect(void)
{
	const struct ucred peer = { getpid(), getuid(), getgid() };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	verbs_session_create(&server, ends[1], &peer);
	return ends[0];
}

/* Read a reply, and the descriptors that come with it. @return .error; -1: the end */
static int
descriptors_reply(int fd, int *fds, unsigned int *num_fds)
{
	struct ring_reply reply;

	event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	return passing_receive(fd, &reply, sizeof(reply), fds, num_fds, MSG_DONTWAIT) > 0
		? reply.error
		: -1;
}

static void
descriptors_send(int fd, const void *request, size_t size, const int *fds, unsigned int num_fds)
{
	assert_int_equal(passing_send(fd, request, size, fds, num_fds, 0), (ssize_t)size);
}

#define HEADER     offsetof(struct ring_request, hello)
#define WITH(body) (HEADER + sizeof(((struct ring_request *)0)->body))

static const struct ring_request hello = {
	.code = RING_HELLO,
	.hello = { .magic = RING_MAGIC, .major = RING_MAJOR },
};

/* @return the program's mirror, of the reply of HELLO */
static int
descriptors_hello(int fd, int mirror)
{
	int fds[PASSING_MAX];
	unsigned int num_fds, i;

	descriptors_send(fd, &hello, WITH(hello), &mirror, mirror >= 0);
	assert_int_equal(descriptors_reply(fd, fds, &num_fds), 0);
	assert_int_equal(num_fds, RING_HELLO_FDS);
	for (i = 0; i < num_fds; i++)
		if (i != 1)
			close(fds[i]);
	return fds[1];
}

/* A request with descriptors, after HELLO or as the first: its error, and that nothing stays. */
static void
expect_none_stays(bool opened, const struct ring_request *request, size_t size, const int *passed,
	unsigned int num_passed, int error)
{
	unsigned int before = open_descriptors(), num_fds, i;
	int fd = descriptors_connect(), fds[PASSING_MAX];

	if (opened)
		close(descriptors_hello(fd, -1));
	descriptors_send(fd, request, size, passed, num_passed);
	assert_int_equal(descriptors_reply(fd, fds, &num_fds), error);
	for (i = 0; i < num_fds; i++)
		close(fds[i]);
	close(fd);
	event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	assert_true(LIST_EMPTY(&server.sessions));
	eventually(open_descriptors() == before); /* a thread closes some */
}

static void
test_passed_descriptors(void **state)
{
	const struct ring_request pd = { .code = RING_PD_ALLOC },
				  unknown = { .code = RING_REQUESTS };
	const struct ring_request channel = { .code = RING_CHANNEL_CREATE };
	struct ring_request cm_open = hello, wrong = hello;
	int passed[] = { open("/dev/null", O_RDWR), memfd_create("passed", 0) };

	(void)state;
	cm_open.code = RING_CM_OPEN;
	wrong.hello.major++;
	/* not a mirror */
	expect_none_stays(false, &hello, WITH(hello), passed, 1, EINVAL);
	expect_none_stays(false, &hello, WITH(hello), passed, 2, EINVAL);
	expect_none_stays(false, &wrong, WITH(hello), passed, 1, EPROTONOSUPPORT);
	expect_none_stays(false, &hello, WITH(hello) - 1, passed, 1, EPROTO);
	/* with requests that take none */
	expect_none_stays(false, &cm_open, WITH(hello), passed, 2, 0);
	expect_none_stays(false, &pd, HEADER, passed, 1, EPROTO);
	expect_none_stays(true, &pd, HEADER, passed, 2, 0);
	expect_none_stays(true, &channel, HEADER, passed, 2, 0);
	expect_none_stays(true, &hello, WITH(hello), passed, 2, EPROTO);
	/* with what is no request */
	expect_none_stays(true, &unknown, HEADER, passed, 2, EPROTO);
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
	int fd = descriptors_connect(), fds[PASSING_MAX];
	static const uint8_t page[4096];
	unsigned int before, num_fds;

	(void)state;
	assert_int_equal(pwrite(passed[0], page, sizeof(page), 0), sizeof(page));
	close(descriptors_hello(fd, -1));
	descriptors_send(fd, &pd, HEADER, NULL, 0);
	assert_int_equal(descriptors_reply(fd, fds, &num_fds), 0);
	before = open_descriptors();
	descriptors_send(fd, &mr, WITH(mr), passed, 2);
	assert_int_equal(descriptors_reply(fd, fds, &num_fds), 0);
	eventually(open_descriptors() == before);
	descriptors_send(fd, &mr, WITH(mr), passed + 1, 1);
	assert_int_equal(descriptors_reply(fd, fds, &num_fds), EINVAL);
	mr.mr.length = 8192; /* more than there is */
	descriptors_send(fd, &mr, WITH(mr), passed, 2);
	assert_int_equal(descriptors_reply(fd, fds, &num_fds), EINVAL);
	eventually(open_descriptors() == before);
	close(passed[0]);
	close(passed[1]);
	close(fd);
	event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	assert_true(LIST_EMPTY(&server.sessions));
}

/* A program opens two devices with one mirror, and one of them a second time. */
static void
test_shared_mirror(void **state)
{
	unsigned int before = open_descriptors(), num_fds;
	int a = descriptors_connect(), b = descriptors_connect();
	int mirror = descriptors_hello(a, -1), fds[PASSING_MAX];

	(void)state;
	close(descriptors_hello(b, mirror));
	descriptors_send(b, &hello, WITH(hello), &mirror, 1);
	assert_int_equal(descriptors_reply(b, fds, &num_fds), EPROTO);
	assert_int_equal(descriptors_reply(b, fds, &num_fds), -1);
	close(mirror);
	close(a);
	close(b);
	event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	assert_true(LIST_EMPTY(&server.sessions));
	eventually(open_descriptors() == before); /* a thread closes some */
}

/* A program that reads no reply has its connection closed, and what was sent goes with it. */
static void
test_replies_that_are_not_read(void **state)
{
	const struct ring_request channel = { .code = RING_CHANNEL_CREATE };
	const struct ring_request query = { .code = RING_QUERY_PORT };
	unsigned int before = open_descriptors();
	int fd = descriptors_connect();

	(void)state;
	close(descriptors_hello(fd, -1));
	descriptors_send(fd, &channel, HEADER, NULL, 0);
	while (send(fd, &query, HEADER, MSG_NOSIGNAL) == (ssize_t)HEADER)
		event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
	assert_true(LIST_EMPTY(&server.sessions));
	close(fd);
	assert_int_equal(open_descriptors(), before);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, descriptors_setup, descriptors_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_client_without_descriptors),
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
