/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Programs whose provider is older or newer than polca: the features of HELLO decide what can be
 * asked for, whatever minor version the provider has. The other way round, a provider at an older
 * polca, is in test/provider/test_device.c.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client_node.h"
#include "client_socket.h"
#include "mem/process_range.h"

#define PAGE 4096u

static struct engine *e;
static struct ring_reply reply;
static int file;

/* In the place of mem/process_range.h: all that is named by its addresses is that file. */

bool
process_range_permitted(struct error *err)
{
	(void)err;
	return true;
}

int
process_directory_open(pid_t pid)
{
	(void)pid;
	return dup(file);
}

int
process_range_file(int process, uid_t uid, uint64_t addr, uint64_t length, uint64_t *offset,
	struct error *err)
{
	(void)uid;
	(void)addr;
	(void)length;
	(void)err;
	*offset = 0;
	return dup(process);
}

static int
versions_setup(void **state)
{
	static const uint8_t page[PAGE];

	(void)state;
	node_config();
	e = node_create();
	program_server_start(e);
	file = memfd_create("shared", MFD_CLOEXEC);
	assert_int_equal(pwrite(file, page, PAGE, 0), PAGE);
	return 0;
}

static int
versions_teardown(void **state)
{
	(void)state;
	close(file);
	program_server_stop();
	engine_destroy(e);
	return 0;
}

/* What can be asked for beyond the first version. */
static const struct newer {
	const char *what;
	uint64_t feature;
	struct ring_request request;
	bool passes; /* the file */
} newer[] = {
	{ "windows", RING_FEATURE_WINDOWS,
		{ .code = RING_MW_ALLOC, .mw = { .type = MEM_MW_TYPE_1 } }, false },
	{ "shared memory", RING_FEATURE_SHARED,
		{ .code = RING_MR_REGISTER, .mr = { .length = PAGE } }, true },
	{ "ranges", RING_FEATURE_RANGES,
		{ .code = RING_MR_REGISTER_RANGE, .mr = { .length = PAGE } }, false },
};

#define NEWER (sizeof(newer) / sizeof(newer[0]))

/* A connection after HELLO, and a protection domain in slot 0. */
static int
versions_dial(uint32_t minor, uint64_t features, uint64_t served)
{
	const struct ring_request pd = { .code = RING_PD_ALLOC };
	struct ring_request hello = program_hello;
	int fd = program_dial();

	hello.hello.minor = minor;
	hello.hello.features = features;
	assert_int_equal(program_ask(fd, &hello, REQUEST_WITH(hello), &reply), 0);
	assert_int_equal(reply.hello.major, RING_MAJOR);
	assert_int_equal(reply.hello.features, served);
	assert_int_equal(program_ask(fd, &pd, REQUEST_EMPTY, &reply), 0);
	assert_int_equal(reply.slot.slot, 0);
	return fd;
}

/* @return as program_hear(), once there is an answer or the end */
static int
versions_ask(int fd, const struct newer *n)
{
	size_t size = n->request.code == RING_MW_ALLOC ? REQUEST_WITH(mw) : REQUEST_WITH(mr);
	int fds[PASSING_MAX], rc;
	unsigned int num_fds;

	program_say(fd, &n->request, size, &file, n->passes);
	rc = program_hear(fd, &reply, fds, &num_fds);
	if (rc == -1)
		eventually((rc = program_hear(fd, &reply, fds, &num_fds)) != -1);
	return rc;
}

static void
expect_features(uint32_t minor, uint64_t features)
{
	const uint64_t served = features & RING_FEATURES;
	char feature[32];

	for (unsigned int i = 0; i < NEWER; i++) {
		const struct newer *n = &newer[i];
		int fd = versions_dial(minor, features, served), rc = versions_ask(fd, n);

		if (rc != ((served & n->feature) != 0 ? 0 : EPROTO))
			fail_msg("%s: %d, with features 0x%llx", n->what, rc,
				(unsigned long long)features);
		snprintf(feature, sizeof(feature), "feature 0x%llx",
			(unsigned long long)n->feature);
		if (rc != 0) {
			assert_non_null(strstr(reply.text, feature));
			assert_true(program_server_is_free());
		}
		close(fd);
		assert_true(program_server_is_free());
	}
}

/* Each feature stands for itself, and the number of the version for nothing. */
static void
test_features_decide_what_can_be_asked_for(void **state)
{
	static const uint32_t minors[] = { 0, RING_MINOR, RING_MINOR + 1, UINT32_MAX };

	(void)state;
	for (unsigned int i = 0; i < sizeof(minors) / sizeof(minors[0]); i++) {
		for (uint64_t features = 0; features <= RING_FEATURES; features++)
			expect_features(minors[i], features);
		expect_features(minors[i], UINT64_MAX); /* those of a newer provider */
		expect_features(minors[i], ~RING_FEATURES);
	}
}

/* A provider of the first version has all that this had. */
static void
test_program_of_the_first_version(void **state)
{
	struct ring_request hello = program_hello, mr = { .code = RING_MR_REGISTER };
	struct ring_request cq = { .code = RING_CQ_CREATE };
	struct ring_request qp = { .code = RING_QP_CREATE };
	struct ring_request pd = { .code = RING_PD_ALLOC };
	static const uint8_t page[PAGE];
	int fd = program_dial(), mirror;

	(void)state;
	hello.hello.features = 0;
	hello.hello.minor = 0;
	mirror = program_greet_with(fd, &hello, -1);
	assert_int_equal(program_ask(fd, &pd, REQUEST_EMPTY, &reply), 0);
	mr.mr = (struct ring_mr){ .addr = 1 << 20, .iova = 1 << 20, .length = PAGE };
	assert_int_equal(pwrite(mirror, page, PAGE, 1 << 20), PAGE);
	assert_int_equal(program_ask(fd, &mr, REQUEST_WITH(mr), &reply), 0);
	cq.cq = (struct ring_cq_create){ .cqe = 16, .channel = RING_NONE };
	assert_int_equal(program_ask(fd, &cq, REQUEST_WITH(cq), &reply), 0);
	qp.qp.caps = (struct ring_caps){ 16, 16, 1, 1, 64 };
	qp.qp.srq = RING_NONE;
	assert_int_equal(program_ask(fd, &qp, REQUEST_WITH(qp), &reply), 0);
	close(mirror);
	close(fd);
	assert_true(program_server_is_free());
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, versions_setup, versions_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_features_decide_what_can_be_asked_for),
		CASE(test_program_of_the_first_version),
	};

	node_workers = 1;
	return cmocka_run_group_tests_name("engine: versions of clients", tests, eal_setup,
		eal_teardown);
}
