/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What a mapping has besides bytes stays when its pages move into the mirror and back; and mappings
 * whose pages cannot move are refused with a line that says why. All of it runs twice: with the
 * kernel's answers for an address, and with its list as text, as on kernels before 6.11.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "mappings.h"
#include "mirror.h"
#include "mirror_file.h"

#define MANY       200 /* pages, each with a mapping of its own */
#define HUGE_BYTES ((size_t)2 << 20)
#define NODES      1024

static int
text_setup(void **state)
{
	mappings_read_text(true);
	return mirror_setup(state);
}

static int
text_teardown(void **state)
{
	mappings_read_text(false);
	return mirror_teardown(state);
}

/* True if the mapping at p has a flag in the kernel's description. */
static bool
has_flag(const uint8_t *p, const char *flag)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long from = 0, to = 0, a, b;
	bool found = false;
	char line[1024];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps) != NULL) {
		if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
			from = a;
			to = b;
		} else if (strncmp(line, "VmFlags:", 8) == 0 && from <= (uintptr_t)p &&
			(uintptr_t)p < to) {
			found = strstr(line, flag) != NULL;
			break;
		}
	}
	fclose(smaps);
	return found;
}

/* --- what stays --- */

static void
expect_locked(const uint8_t *p, bool first, bool second)
{
	assert_int_equal(has_flag(p, " lo"), first);
	assert_int_equal(has_flag(p + PAGE, " lo"), second);
}

static void
test_locked_pages_stay_locked(void **state)
{
	uint8_t *p = make_anonymous(4 * PAGE);

	(void)state;
	memset(p, 1, 4 * PAGE);
	assert_int_equal(mlock(p, PAGE), 0);
	expect_locked(p, true, false);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, 2 * PAGE), 0);
	assert_true(has_page(p));
	expect_locked(p, true, false);
	mirror_release(file, (uintptr_t)p, 2 * PAGE);
	assert_false(has_page(p));
	expect_locked(p, true, false);
	/* a lock that was taken, or given up, while the pages were in the mirror */
	assert_int_equal(mirror_hold(file, (uintptr_t)p, 2 * PAGE), 0);
	assert_int_equal(munlock(p, PAGE), 0);
	assert_int_equal(mlock(p + PAGE, PAGE), 0);
	mirror_release(file, (uintptr_t)p, 2 * PAGE);
	expect_locked(p, false, true);
	munmap(p, 4 * PAGE);
}

static int
policy_at(const uint8_t *p)
{
	unsigned long nodes[NODES / (8 * sizeof(unsigned long))];
	int policy = -1;

	assert_int_equal(syscall(SYS_get_mempolicy, &policy, nodes, NODES, p, MPOL_F_ADDR), 0);
	return policy;
}

static void
set_policy(uint8_t *p, size_t bytes, int policy)
{
	unsigned long node = 1; /* the first */

	assert_int_equal(syscall(SYS_mbind, p, bytes, policy, &node, 8 * sizeof(node), 0), 0);
}

static void
expect_policies(const uint8_t *p)
{
	assert_int_equal(policy_at(p), MPOL_BIND);
	assert_int_equal(policy_at(p + 2 * PAGE - 1), MPOL_BIND);
	assert_int_equal(policy_at(p + 2 * PAGE), MPOL_INTERLEAVE);
	assert_int_equal(policy_at(p + 3 * PAGE), MPOL_DEFAULT);
}

static void
test_pages_keep_their_policy(void **state)
{
	uint8_t *p = make_anonymous(4 * PAGE);

	(void)state;
	set_policy(p, 2 * PAGE, MPOL_BIND);
	set_policy(p + 2 * PAGE, PAGE, MPOL_INTERLEAVE);
	memset(p, 1, 4 * PAGE);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, 4 * PAGE), 0);
	expect_policies(p);
	mirror_release(file, (uintptr_t)p, 4 * PAGE);
	expect_policies(p);
	/* and it is theirs: not that of other memory which gets their addresses */
	assert_ptr_equal(mmap(p, 4 * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		p);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, 4 * PAGE), 0);
	assert_int_equal(policy_at(p), MPOL_DEFAULT);
	mirror_release(file, (uintptr_t)p, 4 * PAGE);
	assert_int_equal(policy_at(p), MPOL_DEFAULT);
	munmap(p, 4 * PAGE);
}

/* Pages of a compiler that runs in the program. */
static void
test_pages_stay_executable(void **state)
{
	static const uint8_t answer[] = { 0xb8, 42, 0, 0, 0, 0xc3 }; /* mov eax, 42; ret */
	uint8_t *p = make_anonymous(PAGE);
	int (*code)(void);

	(void)state;
	assert_int_equal(mprotect(p, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy(p, answer, sizeof(answer));
	memcpy(&code, &p, sizeof(code));
	assert_int_equal(mirror_hold(file, (uintptr_t)p, PAGE), 0);
	assert_int_equal(code(), 42);
	mirror_release(file, (uintptr_t)p, PAGE);
	assert_int_equal(code(), 42);
	munmap(p, PAGE);
}

/* --- more mappings than any table of fixed size has --- */

static void
split_mappings(uint8_t *p)
{
	for (size_t i = 0; i < MANY; i += 2)
		assert_int_equal(madvise(p + i * PAGE, PAGE, MADV_DONTDUMP), 0);
}

static void
test_many_mappings(void **state)
{
	uint8_t *p = make_anonymous(MANY * PAGE);
	size_t i;

	(void)state;
	split_mappings(p);
	memset(p, 7, MANY * PAGE);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, MANY * PAGE), 0);
	for (i = 0; i < MANY; i++)
		assert_true(has_page(p + i * PAGE));
	split_mappings(p);
	mirror_release(file, (uintptr_t)p, MANY * PAGE);
	for (i = 0; i < MANY; i++)
		assert_false(has_page(p + i * PAGE));
	for (i = 0; i < MANY * PAGE; i++)
		assert_int_equal(p[i], 7);
	munmap(p, MANY * PAGE);
}

/* --- what cannot be moved is refused, with a line that says why --- */

/* Register the memory, which must fail; find a text in what that writes to standard error. */
static void
expect_refused_for(const uint8_t *p, size_t bytes, const char *text)
{
	char line[512] = "";
	FILE *written = tmpfile();
	int before = dup(2), rc;

	assert_non_null(written);
	fflush(stderr);
	dup2(fileno(written), 2);
	rc = mirror_hold(file, (uintptr_t)p, bytes);
	fflush(stderr);
	dup2(before, 2);
	close(before);
	assert_true(pread(fileno(written), line, sizeof(line) - 1, 0) > 0);
	fclose(written);
	assert_int_equal(rc, EFAULT);
	if (strstr(line, text) == NULL)
		fail_msg("\"%s\" is not in: %s", text, line);
	assert_non_null(strstr(line, "cannot be registered: "));
	assert_null(strstr(line, "\n\n"));
}

/* Nothing touches the pages, so the system need not have any. */
static void
test_private_huge_pages_are_refused(void **state)
{
	uint8_t *p = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	expect_refused_for(p, HUGE_BYTES, "of huge pages, which cannot be moved");
	expect_refused_for(p + PAGE, PAGE, "of huge pages, which cannot be moved");
	munmap(p, HUGE_BYTES);
}

static void
test_holes_and_read_only_pages_say_so(void **state)
{
	uint8_t *p = make_anonymous(3 * PAGE);

	(void)state;
	munmap(p + PAGE, PAGE);
	expect_refused_for(p, 3 * PAGE, "nothing is mapped at ");
	mprotect(p, PAGE, PROT_READ);
	expect_refused_for(p, PAGE, "not for reading and writing");
	munmap(p, 3 * PAGE);
}

static void
test_shared_memory_in_parts_says_so(void **state)
{
	uint8_t *p = make_anonymous(3 * PAGE);

	(void)state;
	assert_ptr_equal(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		p + PAGE);
	expect_refused_for(p, 3 * PAGE, "/dev/zero (deleted)) is shared");
	assert_false(has_page(p));
	munmap(p, 3 * PAGE);
}

struct stack_owner {
	pthread_barrier_t barrier;
	uint8_t *on_stack;
	size_t bytes;
};

/* What another thread has registered of its stack, it deregisters: that moves while it sleeps. */
static void *
release_own_stack(void *arg)
{
	volatile uint8_t on_stack[16 * PAGE];
	struct stack_owner *o = arg;

	memset((uint8_t *)(uintptr_t)on_stack, 1, sizeof(on_stack));
	o->on_stack = (uint8_t *)(uintptr_t)on_stack;
	o->bytes = sizeof(on_stack);
	expect_refused_for(o->on_stack, o->bytes, "the stack of the thread that registers it");
	pthread_barrier_wait(&o->barrier);
	pthread_barrier_wait(&o->barrier);
	on_stack[PAGE] = 3;
	mirror_release(file, (uintptr_t)on_stack, sizeof(on_stack));
	assert_false(has_page(o->on_stack));
	assert_false(has_page(o->on_stack + o->bytes - 1));
	assert_int_equal(on_stack[0], 1);
	assert_int_equal(on_stack[PAGE], 3);
	return NULL;
}

static void
test_stacks(void **state)
{
	uint8_t on_stack[2 * PAGE];
	struct stack_owner o;
	pthread_t thread;

	(void)state;
	memset(on_stack, 1, sizeof(on_stack));
	expect_refused_for(on_stack, sizeof(on_stack), "the stack of the first thread");
	assert_int_equal(pthread_barrier_init(&o.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, release_own_stack, &o), 0);
	pthread_barrier_wait(&o.barrier);
	assert_int_equal(mirror_hold(file, (uintptr_t)o.on_stack, o.bytes), 0);
	assert_true(has_page(o.on_stack));
	pthread_barrier_wait(&o.barrier);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&o.barrier);
}

struct neighbours {
	uint8_t *at[2];
	size_t bytes;
};

static void *
hold_neighbours(void *arg)
{
	const struct neighbours *n = arg;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(mirror_hold(file, (uintptr_t)n->at[i], n->bytes), 0);
		assert_true(has_page(n->at[i]));
		mirror_release(file, (uintptr_t)n->at[i], n->bytes);
		assert_false(has_page(n->at[i]));
	}
	return NULL;
}

/* What lies right below and above a thread's stack is no part of it. */
static void
test_neighbours_of_a_stack(void **state)
{
	size_t stack = 128 * 1024;
	uint8_t *p = make_anonymous(3 * stack);
	pthread_attr_t attr;
	struct neighbours n = { { p, p + 2 * stack }, stack };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstack(&attr, p + stack, stack), 0);
	assert_int_equal(pthread_create(&thread, &attr, hold_neighbours, &n), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
	munmap(p, 3 * stack);
}

/* --- another thread's stack moves under it --- */

struct stack_user {
	pthread_barrier_t barrier;
	uint64_t *volatile count; /* on the thread's stack */
	bool stop;
};

static void *
count_on_stack(void *arg)
{
	struct stack_user *u = arg;
	uint64_t room[2 * PAGE / sizeof(uint64_t)] = { 0 };
	volatile uint64_t *count = &room[PAGE / sizeof(uint64_t)];
	uint64_t expected = 0;

	u->count = &room[PAGE / sizeof(uint64_t)];
	pthread_barrier_wait(&u->barrier);
	while (!__atomic_load_n(&u->stop, __ATOMIC_RELAXED)) {
		++*count;
		expected++;
	}
	return *count == expected && expected > 0 ? NULL : u;
}

static void
test_stack_of_another_thread(void **state)
{
	struct stack_user u = { .count = NULL };
	pthread_t thread;
	void *wrong;

	(void)state;
	pthread_barrier_init(&u.barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, count_on_stack, &u), 0);
	pthread_barrier_wait(&u.barrier);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(mirror_hold(file, (uintptr_t)u.count, sizeof(*u.count)), 0);
		mirror_release(file, (uintptr_t)u.count, sizeof(*u.count));
	}
	while (__atomic_load_n(u.count, __ATOMIC_RELAXED) == 0)
		usleep(100);
	__atomic_store_n(&u.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, &wrong), 0);
	assert_null(wrong);
	pthread_barrier_destroy(&u.barrier);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locked_pages_stay_locked),
		cmocka_unit_test(test_pages_keep_their_policy),
#if defined(__x86_64__)
		cmocka_unit_test(test_pages_stay_executable),
#endif
		cmocka_unit_test(test_many_mappings),
		cmocka_unit_test(test_private_huge_pages_are_refused),
		cmocka_unit_test(test_holes_and_read_only_pages_say_so),
		cmocka_unit_test(test_shared_memory_in_parts_says_so),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_neighbours_of_a_stack),
		cmocka_unit_test(test_stack_of_another_thread),
	};

	return cmocka_run_group_tests_name("mirror, kinds of mappings", tests, mirror_setup,
		       mirror_teardown) +
		cmocka_run_group_tests_name("mirror, kinds of mappings, list as text", tests,
			text_setup, text_teardown);
}
