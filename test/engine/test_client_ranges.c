/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Memory that a program names by its addresses: who may ask, and who waits for the thread that
 * looks at the program. What that thread finds, and when, the test says, in the place of
 * mem/process_range.h, which test/mem/test_process_range.c tries.
 */

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../open_descriptors.h"
#include "client_node.h"
#include "client_socket.h"
#include "mem/process_range.h"

#define PAGE   4096u
#define OFFSET PAGE /* in the file */
#define USER   4711 /* of the programs */

static struct engine *e;
static struct program program; /* its worker's wake pipe stays */
static struct ring_reply reply;
static int file; /* of two pages */

/* --- what stands for the look at a program --- */

static struct {
	bool permitted; /* polca has the capabilities */
	bool seen; /* and sees the program's directory */
	bool waits; /* the thread, for .go */
	sem_t go;
	int fd; /* what it finds; or -errno */
	/* what it was asked */
	uid_t uid;
	uint64_t addr, length;
} look;

bool
process_range_permitted(struct error *err)
{
	if (!look.permitted)
		error_set(err, EPERM, "not permitted");
	return look.permitted;
}

int
process_directory_open(pid_t pid)
{
	assert_int_equal(pid, getpid());
	return look.seen ? open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC) : -EPERM;
}

int
process_range_file(int process, uid_t uid, uint64_t addr, uint64_t length, uint64_t *offset,
	struct error *err)
{
	look.uid = uid;
	look.addr = addr;
	look.length = length;
	if (fcntl(process, F_GETFD) < 0)
		return error_set(err, EBADF, "no directory");
	while (look.waits && sem_wait(&look.go) != 0)
		;
	if (look.fd < 0)
		return error_set(err, -look.fd, "addr: as the test wants");
	*offset = OFFSET;
	return fcntl(look.fd, F_DUPFD_CLOEXEC, 0);
}

/* --- programs --- */

static int
ranges_setup(void **state)
{
	static const uint8_t pages[2 * PAGE];

	(void)state;
	node_config();
	e = node_create();
	program_open(e, &program, 0);
	program_server_start(e);
	file = memfd_create("shared", MFD_CLOEXEC);
	assert_int_equal(pwrite(file, pages, sizeof(pages), 0), sizeof(pages));
	memset(&look, 0, sizeof(look));
	look.permitted = look.seen = true;
	look.fd = file;
	sem_init(&look.go, 0, 0);
	return 0;
}

static int
ranges_teardown(void **state)
{
	(void)state;
	close(file);
	program_server_stop();
	program_close(&program);
	engine_destroy(e);
	return 0;
}

static const struct ring_request alloc_pd = { .code = RING_PD_ALLOC };
static const struct ring_request register_range = {
	.code = RING_MR_REGISTER_RANGE,
	.mr = { .addr = 0x123456789000, .length = PAGE, .iova = 0x123456789000 },
};

/* A program with a protection domain, in slot 0. */
static int
ranges_program(void)
{
	int fd = program_dial_as(USER);

	close(program_greet(fd, -1));
	assert_int_equal(program_ask(fd, &alloc_pd, REQUEST_EMPTY, &reply), 0);
	assert_int_equal(reply.slot.slot, 0);
	return fd;
}

/* @return as program_ask(), -1 if the answer comes later */
static int
ranges_ask(int fd)
{
	return program_ask(fd, &register_range, REQUEST_WITH(mr), &reply);
}

static int
ranges_hear(int fd)
{
	unsigned int num_fds;
	int fds[PASSING_MAX], rc = program_hear(fd, &reply, fds, &num_fds);

	assert_int_equal(num_fds, 0);
	return rc;
}

/* Ask, and wait for the answer. */
static int
ranges_result(int fd)
{
	int rc = ranges_ask(fd);

	if (rc == -1)
		eventually((rc = ranges_hear(fd)) != -1);
	return rc;
}

static void
expect_range_refused(int fd, int error, const char *why)
{
	assert_int_equal(ranges_result(fd), error);
	if (strstr(reply.text, why) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", reply.text, why);
	assert_int_equal(program_ask(fd, &alloc_pd, REQUEST_EMPTY, &reply), 0); /* it goes on */
}

static bool
ranges_closed(void)
{
	verbs_closing_reap(&program_server);
	return program_server.num_closing == 0;
}

/* --- the tests --- */

static void
test_region_at_the_offset_of_the_address(void **state)
{
	unsigned int before = open_descriptors();
	struct mem_mr_info mr;
	uint64_t cursor = 0;
	int fd = ranges_program();

	(void)state;
	assert_int_equal(ranges_result(fd), 0);
	assert_int_equal(look.uid, USER);
	assert_int_equal(look.addr, register_range.mr.addr);
	assert_int_equal(look.length, PAGE);
	assert_true(engine_mr_next(e, &cursor, &mr));
	assert_int_equal(mr.key, reply.mr.key);
	assert_int_equal(mr.va, register_range.mr.iova);
	assert_int_equal(mr.length, PAGE);
	assert_int_equal(pwrite(file, "x", 1, OFFSET), 1);
	assert_int_equal(mr.base[0], 'x');
	close(fd);
	assert_true(program_server_is_free());
	eventually(open_descriptors() == before);
}

static void
test_what_is_found_is_refused(void **state)
{
	int fd = ranges_program(), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned int before = open_descriptors();

	(void)state;
	look.fd = -EACCES;
	expect_range_refused(fd, EACCES, "addr: as the test wants");
	look.fd = null;
	expect_range_refused(fd, EINVAL, "file: ");
	look.fd = file;
	assert_int_equal(ftruncate(file, OFFSET), 0);
	expect_range_refused(fd, EINVAL, "are not in the file");
	eventually(open_descriptors() == before);
	close(null);
	close(fd);
	assert_true(program_server_is_free());
}

static void
test_without_the_capabilities(void **state)
{
	int fd = ranges_program();

	(void)state;
	look.permitted = false;
	expect_range_refused(fd, EPERM, "not permitted");
	close(fd);
	fd = ranges_program();
	look.permitted = true; /* too late: its directory was not opened */
	expect_range_refused(fd, EPERM, "was not to be seen at HELLO");
	close(fd);
	look.seen = false;
	fd = ranges_program();
	expect_range_refused(fd, EPERM, "was not to be seen at HELLO");
	close(fd);
	assert_true(program_server_is_free());
}

/* What was in the socket before the directory was opened may be of another process. */
static void
test_request_that_does_not_wait_for_hello(void **state)
{
	int fds[PASSING_MAX], fd = program_dial();
	unsigned int num_fds;

	(void)state;
	program_say(fd, &program_hello, REQUEST_WITH(hello), NULL, 0);
	program_say(fd, &alloc_pd, REQUEST_EMPTY, NULL, 0);
	assert_int_equal(program_hear(fd, &reply, fds, &num_fds), 0);
	while (num_fds > 0)
		close(fds[--num_fds]);
	assert_int_equal(ranges_hear(fd), 0);
	expect_range_refused(fd, EPERM, "did not wait for its answer");
	close(fd);
	assert_true(program_server_is_free());
}

/* A child has its parent's connection, but other memory at the same addresses. */
static void
test_another_process_asks(void **state)
{
	int fd = ranges_program(), status;
	char why[64];
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(passing_send(fd, &register_range, REQUEST_WITH(mr), NULL, 0, 0) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ranges_hear(fd), EPERM);
	snprintf(why, sizeof(why), "process %d has opened the device, and process %d asks",
		(int)getpid(), (int)pid);
	assert_non_null(strstr(reply.text, why));
	assert_int_equal(look.length, 0); /* nobody has looked */
	assert_int_equal(ranges_result(fd), 0);
	close(fd);
	assert_true(program_server_is_free());
}

/* Others are served; its own next request waits, and is answered after it. */
static void
test_only_the_program_waits(void **state)
{
	int fd = ranges_program(), other = ranges_program();

	(void)state;
	look.waits = true;
	assert_int_equal(ranges_ask(fd), -1);
	program_say(fd, &alloc_pd, REQUEST_EMPTY, NULL, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(program_ask(other, &alloc_pd, REQUEST_EMPTY, &reply), 0);
		assert_int_equal(ranges_hear(fd), -1);
	}
	sem_post(&look.go);
	eventually(ranges_hear(fd) == 0);
	assert_true(reply.mr.key != 0);
	assert_int_equal(ranges_hear(fd), 0);
	assert_int_equal(reply.slot.slot, 1);
	close(fd);
	close(other);
	assert_true(program_server_is_free());
}

/* At the deadline the connection ends; the thread counts as a client until it has ended, too. */
static void
test_program_that_lets_the_thread_wait(void **state)
{
	const struct timeval deadline = verbs_range_deadline;
	unsigned int before = open_descriptors();
	int fd = ranges_program();
	struct error err;

	(void)state;
	look.waits = true;
	verbs_range_deadline = (struct timeval){ 0, 1000 };
	assert_int_equal(ranges_result(fd), ETIMEDOUT);
	verbs_range_deadline = deadline;
	assert_true(program_server_is_free());
	assert_int_equal(ranges_hear(fd), -1);
	assert_false(ranges_closed());
	program_server.config.max_user_clients = 1;
	assert_false(verbs_has_room(&program_server, fd, USER, false, &err));
	sem_post(&look.go);
	eventually(ranges_closed());
	assert_true(verbs_has_room(&program_server, fd, USER, false, &err));
	close(fd);
	eventually(open_descriptors() == before);
}

/* The program goes, or polca ends, before the thread has found anything: nothing is left. */
static void
test_nobody_waits_any_more(void **state)
{
	unsigned int before = open_descriptors();
	int fd = ranges_program();

	(void)state;
	look.waits = true;
	assert_int_equal(ranges_ask(fd), -1);
	close(fd);
	sem_post(&look.go);
	eventually(program_server_is_free());
	eventually(open_descriptors() == before);

	fd = ranges_program();
	assert_int_equal(ranges_ask(fd), -1);
	verbs_session_destroy(LIST_FIRST(&program_server.sessions));
	assert_false(ranges_closed());
	sem_post(&look.go);
	eventually(ranges_closed());
	close(fd);
	eventually(open_descriptors() == before);
}

/* With room for one descriptor more each time, until the thread begins. */
static void
test_without_descriptors(void **state)
{
	int fd = ranges_program(), rc = 0;
	unsigned int before = open_descriptors(), refused = 0;
	struct rlimit limit, few;

	(void)state;
	look.fd = -EFAULT; /* needs none */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	for (few.rlim_cur = 3; rc != EFAULT; few.rlim_cur++) {
		assert_true(few.rlim_cur < limit.rlim_cur);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		rc = ranges_result(fd);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		refused += rc == ENOMEM;
		eventually(open_descriptors() == before);
	}
	assert_true(refused >= 2); /* what wakes the server, and the directory */
	close(fd);
	assert_true(program_server_is_free());
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, ranges_setup, ranges_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_region_at_the_offset_of_the_address),
		CASE(test_what_is_found_is_refused),
		CASE(test_without_the_capabilities),
		CASE(test_request_that_does_not_wait_for_hello),
		CASE(test_another_process_asks),
		CASE(test_only_the_program_waits),
		CASE(test_program_that_lets_the_thread_wait),
		CASE(test_nobody_waits_any_more),
		CASE(test_without_descriptors),
	};

	node_workers = 1;
	return cmocka_run_group_tests_name("engine: ranges of clients", tests, eal_setup,
		eal_teardown);
}
