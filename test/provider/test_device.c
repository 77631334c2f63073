/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Devices of the whole provider, with the libibverbs of this machine, at a polca of which the test
 * knows what it offers and what it does at the end.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../open_descriptors.h"
#include "fake_polca.h"
#include "provider.h"

#define PAGE   ((size_t)4096)
#define OFFSET 100 /* of the region in its page */

/* In the place of libibverbs's: no list of devices is asked for. */
static const struct verbs_device_ops *provider_ops;

void
verbs_register_driver_34(const struct verbs_device_ops *ops)
{
	provider_ops = ops;
}

/* --- a device with a region --- */

struct device_fixture {
	struct fake_polca fake;
	struct polca_device device;
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint8_t *page;
	struct ibv_mr *mr;
};

static uint8_t *
map_page(int flags)
{
	uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void
device_open(struct device_fixture *f, uint64_t features, enum fake_end end)
{
	struct verbs_context *verbs;

	memset(f, 0, sizeof(*f));
	/* the number of the version says the contrary of the features: these alone count */
	f->fake.minor = features == 0 ? UINT32_MAX : 0;
	fake_polca_start(&f->fake, features, end);
	snprintf(f->device.socket, sizeof(f->device.socket), "%s", f->fake.socket);
	snprintf(f->device.verbs.device.name, sizeof(f->device.verbs.device.name), "polca0");
	f->device.verbs.ops = provider_ops;
	f->device.verbs.refcount = 1; /* never freed */
	verbs = provider_ops->alloc_context(&f->device.verbs.device,
		open("/dev/null", O_RDWR | O_CLOEXEC), NULL);
	assert_non_null(verbs);
	f->context = &verbs->context;
	f->pd = ibv_alloc_pd(f->context);
	assert_non_null(f->pd);
	f->page = map_page(MAP_PRIVATE);
	memset(f->page, 7, PAGE);
	f->mr = ibv_reg_mr(f->pd, f->page + OFFSET, 8, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(f->mr);
}

static void
device_end(struct device_fixture *f)
{
	fake_polca_stop(&f->fake);
	munmap(f->page, PAGE);
}

static unsigned int
requests_seen(const struct device_fixture *f, enum ring_request_code code)
{
	return f->fake.seen->requests[code];
}

/* --- features --- */

/* A region of shared memory. @return NULL: refused, with EFAULT */
static struct ibv_mr *
register_shared(struct ibv_pd *pd, void *memory)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);

	if (mr == NULL)
		assert_int_equal(errno, EFAULT);
	return mr;
}

/* What polca does not serve is refused by name, and never asked for; all else works. */
static void
test_polca_without_features(void **state)
{
	const unsigned int windows = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	struct device_fixture f;
	struct ibv_device_attr attr;
	int file = memfd_create("shared", MFD_CLOEXEC);
	uint8_t *shared;

	(void)state;
	assert_int_equal(ftruncate(file, PAGE), 0);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	device_open(&f, 0, FAKE_HANGS_UP);
	assert_int_equal(ibv_query_device(f.context, &attr), 0);
	assert_int_equal(attr.max_mw, 0);
	assert_int_equal(attr.device_cap_flags & windows, 0);
	assert_null(ibv_alloc_mw(f.pd, IBV_MW_TYPE_1));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(requests_seen(&f, RING_MW_ALLOC), 0);
	assert_null(register_shared(f.pd, shared));
	assert_int_equal(requests_seen(&f, RING_MR_REGISTER), 1); /* the region of private memory */
	assert_int_equal(f.fake.seen->descriptors, 0);
	assert_int_equal(ibv_dereg_mr(f.mr), 0);
	assert_int_equal(f.page[0], 7);
	ibv_close_device(f.context);
	device_end(&f);
	munmap(shared, PAGE);
	close(file);
}

/* A region with rights that cannot be kept is not made; hints change nothing. */
static void
test_access_flags_that_are_not_there(void **state)
{
	static const int refused[] = { IBV_ACCESS_ON_DEMAND, IBV_ACCESS_ZERO_BASED, 1 << 15 };
	const int hints = IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;
	struct device_fixture f;
	struct ibv_mr *mr;

	(void)state;
	device_open(&f, 0, FAKE_HANGS_UP);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		errno = 0;
		assert_null(ibv_reg_mr(f.pd, f.page, 8, IBV_ACCESS_LOCAL_WRITE | refused[i]));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	assert_int_equal(requests_seen(&f, RING_MR_REGISTER), 1); /* the fixture's region */
	mr = ibv_reg_mr(f.pd, f.page, 8, IBV_ACCESS_LOCAL_WRITE | hints);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(f.mr), 0);
	ibv_close_device(f.context);
	device_end(&f);
}

/* --- memory to whose file nothing leads --- */

/*
 * The kernel opens a file by the address of a mapping for these two capabilities only. Without
 * them, the provider has to ask polca, as that of an ordinary user has.
 */
static struct __user_cap_data_struct capabilities_before[_LINUX_CAPABILITY_U32S_3];

static void
capabilities_set(const struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static void
become_ordinary(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct ordinary[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, capabilities_before), 0);
	memcpy(ordinary, capabilities_before, sizeof(ordinary));
	ordinary[0].effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
	ordinary[1].effective &= ~CAP_TO_MASK(CAP_CHECKPOINT_RESTORE);
	capabilities_set(ordinary);
}

/* Register MAP_SHARED | MAP_ANONYMOUS, as an ordinary user. @param text  what the program reads */
static struct ibv_mr *
register_nameless(struct ibv_pd *pd, void *memory, char text[1024])
{
	int stderr_before = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
	struct ibv_mr *mr;

	dup2(file, STDERR_FILENO);
	become_ordinary();
	mr = register_shared(pd, memory);
	capabilities_set(capabilities_before);
	dup2(stderr_before, STDERR_FILENO);
	close(stderr_before);
	memset(text, 0, 1024);
	assert_true(pread(file, text, 1023, 0) >= 0);
	close(file);
	return mr;
}

/* A polca of before ranges is never asked for one: the program's line says what to do. */
static void
test_polca_without_ranges(void **state)
{
	static const uint64_t older[] = { 0, RING_FEATURE_WINDOWS, RING_FEATURE_SHARED,
		RING_FEATURES & ~RING_FEATURE_RANGES };
	uint8_t *shared = map_page(MAP_SHARED);
	struct device_fixture f;
	char text[1024];

	(void)state;
	for (unsigned int i = 0; i < sizeof(older) / sizeof(older[0]); i++) {
		device_open(&f, older[i], FAKE_HANGS_UP);
		assert_null(register_nameless(f.pd, shared, text));
		assert_int_equal(requests_seen(&f, RING_MR_REGISTER_RANGE), 0);
		assert_int_equal(requests_seen(&f, RING_MR_REGISTER), 1);
		assert_int_equal(f.fake.seen->descriptors, 0);
		assert_non_null(strstr(text, "cannot be registered"));
		if ((older[i] & RING_FEATURE_SHARED) != 0)
			assert_non_null(strstr(text,
				"this polca (" FAKE_VERSION ") does not: keep a "
				"descriptor of it open"));
		assert_int_equal(ibv_dereg_mr(f.mr), 0); /* all else works */
		ibv_close_device(f.context);
		device_end(&f);
	}
	munmap(shared, PAGE);
}

/* A polca of before RING_SRQ_QUERY is never asked: the limit is the one that was set last. */
static void
test_polca_without_srq_query(void **state)
{
	static const uint64_t knows[] = { RING_FEATURES & ~RING_FEATURE_SRQ_QUERY, RING_FEATURES };
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct device_fixture f;
	struct ibv_srq *srq;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		device_open(&f, knows[i], FAKE_HANGS_UP);
		srq = ibv_create_srq(f.pd, &init);
		assert_non_null(srq);
		attr.srq_limit = 4;
		assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
		assert_int_equal(ibv_query_srq(srq, &attr), 0);
		/* the fake one answers with zeros */
		assert_int_equal(attr.srq_limit, i == 0 ? 4 : 0);
		assert_int_equal(requests_seen(&f, RING_SRQ_QUERY), i);
		assert_int_equal(ibv_destroy_srq(srq), 0);
		ibv_close_device(f.context);
		device_end(&f);
	}
}

static void
test_polca_with_ranges(void **state)
{
	uint8_t *shared = map_page(MAP_SHARED);
	struct device_fixture f;
	struct ibv_mr *mr;
	char text[1024];

	(void)state;
	device_open(&f, RING_FEATURES, FAKE_HANGS_UP);
	mr = register_nameless(f.pd, shared, text);
	assert_non_null(mr);
	assert_string_equal(text, "");
	assert_int_equal(requests_seen(&f, RING_MR_REGISTER_RANGE), 1);
	assert_int_equal(f.fake.seen->descriptors, 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	ibv_close_device(f.context);
	device_end(&f);
	/* it stands beside another feature: who cannot share memory at all does not ask for this */
	device_open(&f, RING_FEATURE_RANGES, FAKE_HANGS_UP);
	assert_null(register_nameless(f.pd, shared, text));
	assert_int_equal(requests_seen(&f, RING_MR_REGISTER_RANGE), 0);
	ibv_close_device(f.context);
	device_end(&f);
	munmap(shared, PAGE);
}

/* Each of the two stands for itself. */
static void
test_polca_with_one_feature(void **state)
{
	struct device_fixture f;
	struct ibv_device_attr attr;
	int file = memfd_create("shared", MFD_CLOEXEC);
	uint8_t *shared;

	(void)state;
	assert_int_equal(ftruncate(file, PAGE), 0);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	device_open(&f, RING_FEATURE_WINDOWS, FAKE_HANGS_UP);
	assert_int_equal(ibv_query_device(f.context, &attr), 0);
	assert_int_equal(attr.max_mw, 8);
	assert_non_null(ibv_alloc_mw(f.pd, IBV_MW_TYPE_1));
	assert_int_equal(requests_seen(&f, RING_MW_ALLOC), 1);
	assert_null(register_shared(f.pd, shared));
	ibv_close_device(f.context);
	device_end(&f);
	device_open(&f, RING_FEATURE_SHARED, FAKE_HANGS_UP);
	assert_null(ibv_alloc_mw(f.pd, IBV_MW_TYPE_1));
	assert_int_equal(requests_seen(&f, RING_MW_ALLOC), 0);
	assert_non_null(register_shared(f.pd, shared));
	assert_int_equal(f.fake.seen->descriptors, 1);
	ibv_close_device(f.context);
	device_end(&f);
	munmap(shared, PAGE);
	close(file);
}

/* --- the end of a device --- */

/* What a peer writes until polca has let go is in the program's memory. */
static void
test_close_waits_until_polca_has_let_go(void **state)
{
	struct device_fixture f;

	(void)state;
	device_open(&f, RING_FEATURES, FAKE_WRITES);
	assert_int_equal(f.page[OFFSET], 7);
	ibv_close_device(f.context);
	assert_int_equal(f.page[OFFSET], FAKE_WRITTEN);
	assert_int_equal(f.page[OFFSET + 1], 7);
	device_end(&f);
}

/* The program goes on, and its memory is its own, with its bytes. */
static void
test_close_while_polca_hangs(void **state)
{
	const int before = polca_close_wait_ms;
	struct device_fixture f;
	int status, pid;

	(void)state;
	device_open(&f, RING_FEATURES, FAKE_HANGS);
	polca_close_wait_ms = 20;
	ibv_close_device(f.context);
	polca_close_wait_ms = before;
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(f.page[i], 7);
	pid = fork(); /* pages of a mirror would be common to both */
	if (pid == 0) {
		f.page[0] = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(f.page[0], 7);
	device_end(&f);
}

/* --- fork --- */

/* True if it is a socket, a file in memory, or a pipe's writing end: what stands for a device. */
static bool
is_of_a_device(const char *fd)
{
	char path[64], target[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%.20s", fd);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	return strncmp(target, "socket:", 7) == 0 || strncmp(target, "/memfd:", 7) == 0 ||
		(strncmp(target, "pipe:", 5) == 0 &&
			(fcntl(atoi(fd), F_GETFL) & O_ACCMODE) == O_WRONLY);
}

static unsigned int
descriptors_of_devices(void)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned int n = 0;

	assert_non_null(fds);
	while ((entry = readdir(fds)) != NULL)
		n += atoi(entry->d_name) > STDERR_FILENO && is_of_a_device(entry->d_name);
	closedir(fds);
	return n;
}

static unsigned int
threads_of_program(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int n = 0;

	assert_non_null(tasks);
	while (readdir(tasks) != NULL)
		n++;
	closedir(tasks);
	return n;
}

static void
close_epolls(void)
{
	char path[32], text[64];
	ssize_t len;
	int fd;

	for (fd = 3; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, text, sizeof(text) - 1);
		text[len > 0 ? len : 0] = '\0';
		if (strcmp(text, "anon_inode:[eventpoll]") == 0)
			close(fd);
	}
}

static void *
sleep_until_told(void *barrier)
{
	pthread_barrier_wait(barrier);
	return NULL;
}

/* Another thread of the program might write to them, and they cannot be guarded (test_mirror.c). */
static void
expect_static_data_refused(const struct device_fixture *f)
{
	FILE *program = tmpfile();
	pthread_barrier_t barrier;
	pthread_t thread;
	void *data;

	assert_int_equal(ftruncate(fileno(program), (off_t)PAGE), 0);
	data = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(program), 0);
	assert_ptr_not_equal(data, MAP_FAILED);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, sleep_until_told, &barrier), 0);
	assert_null(ibv_reg_mr(f->pd, data, PAGE, IBV_ACCESS_LOCAL_WRITE));
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	munmap(data, PAGE);
	fclose(program);
}

/*
 * Daemons close all descriptors, also the provider's: its thread ends instead of taking a whole
 * CPU, and the next device has another one.
 */
static void
test_program_closes_the_watchers_descriptor(void **state)
{
	struct device_fixture f;
	unsigned int threads;

	(void)state;
	device_open(&f, RING_FEATURES, FAKE_HANGS_UP);
	threads = threads_of_program();
	close_epolls();
	fake_polca_stop(&f.fake); /* the last event that it gets */
	while (threads_of_program() == threads)
		usleep(1000);
	assert_int_equal(ibv_dereg_mr(f.mr), 0);
	ibv_close_device(f.context);
	munmap(f.page, PAGE);
	device_open(&f, RING_FEATURES, FAKE_HANGS_UP);
	assert_int_equal(threads_of_program(), threads);
	expect_static_data_refused(&f);
	assert_int_equal(ibv_dereg_mr(f.mr), 0);
	ibv_close_device(f.context);
	device_end(&f);
}

/* A channel of another device, or of one that was open before polca's restart. */
static void
test_channel_of_another_device_is_refused(void **state)
{
	struct ibv_comp_channel *channel, other;
	struct device_fixture f;

	(void)state;
	device_open(&f, RING_FEATURES, FAKE_HANGS_UP);
	channel = ibv_create_comp_channel(f.context);
	assert_non_null(channel);
	other = *channel;
	other.fd = -1;
	errno = 0;
	assert_null(ibv_create_cq(f.context, 1, NULL, &other, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_dereg_mr(f.mr), 0);
	ibv_close_device(f.context);
	device_end(&f);
}

/*
 * Of its parent's devices a child has nothing: neither the connection nor the mirror nor an end of
 * a pipe to which polca writes. It may close the device; that ends nothing else.
 */
static void
test_forked_child_keeps_no_descriptor(void **state)
{
	unsigned int before = descriptors_of_devices();
	struct device_fixture f;
	int status, pid;

	(void)state;
	device_open(&f, RING_FEATURES, FAKE_HANGS_UP);
	assert_non_null(ibv_create_comp_channel(f.context));
	/* connection, the mirror twice, the writing ends of three pipes */
	assert_int_equal(descriptors_of_devices(), before + 6);
	pid = fork();
	if (pid == 0) {
		unsigned int left = descriptors_of_devices() - before;

		if (left == 0)
			ibv_close_device(f.context);
		_exit((int)(left + (f.page[OFFSET] != 7)));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_false(f.fake.seen->ended);
	assert_int_equal(ibv_dereg_mr(f.mr), 0);
	ibv_close_device(f.context);
	assert_int_equal(descriptors_of_devices(), before);
	device_end(&f);
}

static void *
close_device(void *context)
{
	ibv_close_device(context);
	return NULL;
}

/* Also while the device is being closed, and polca has not let go yet. */
static void
test_child_forked_during_close_keeps_no_descriptor(void **state)
{
	unsigned int before = descriptors_of_devices();
	struct device_fixture f;
	pthread_t thread;
	int status, pid;

	(void)state;
	device_open(&f, RING_FEATURES, FAKE_HANGS);
	assert_int_equal(pthread_create(&thread, NULL, close_device, f.context), 0);
	while (!f.fake.seen->ended)
		sched_yield();
	pid = fork();
	if (pid == 0) {
		f.page[0] = 1;
		_exit((int)(descriptors_of_devices() - before));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	fake_polca_stop(&f.fake); /* the end that the thread waits for */
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(f.page[0], 7);
	assert_int_equal(descriptors_of_devices(), before);
	munmap(f.page, PAGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_polca_without_features),
		cmocka_unit_test(test_polca_with_one_feature),
		cmocka_unit_test(test_access_flags_that_are_not_there),
		cmocka_unit_test(test_polca_without_ranges),
		cmocka_unit_test(test_polca_without_srq_query),
		cmocka_unit_test(test_polca_with_ranges),
		cmocka_unit_test(test_close_waits_until_polca_has_let_go),
		cmocka_unit_test(test_close_while_polca_hangs),
		cmocka_unit_test(test_program_closes_the_watchers_descriptor),
		cmocka_unit_test(test_channel_of_another_device_is_refused),
		cmocka_unit_test(test_forked_child_keeps_no_descriptor),
		cmocka_unit_test(test_child_forked_during_close_keeps_no_descriptor),
	};

	return cmocka_run_group_tests_name("provider device", tests, NULL, NULL);
}
