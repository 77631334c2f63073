/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The system calls of a running polca: what the list lacks fails with EPERM, in each thread. */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_common.h>

#include "privileges.h"

static const struct link_needs af_packet = { "net_af_packet", 0, AF_PACKET, false };
static const struct link_needs af_xdp = { "net_af_xdp", 0, AF_XDP, true };

/* Run a check in a child, since a filter stays for ever. @return what the check returns */
static int
in_child(int (*check)(uint32_t mode, const struct link_needs *need), uint32_t mode,
	const struct link_needs *need)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(check(mode, need));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool
restricted(uint32_t mode, const struct link_needs *need)
{
	const struct link_needs *needs[] = { NULL, need };
	struct error err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		system_calls_restrict(mode, needs, RTE_DIM(needs), &err) == 0)
		return true;
	fprintf(stderr, "%s\n", err.text);
	return false;
}

static bool
is_refused(long result)
{
	return result == -1 && errno == EPERM;
}

static int
forbidden(uint32_t mode, const struct link_needs *need)
{
	char program[] = "/bin/true", *const argv[] = { program, NULL };

	if (!restricted(mode, need))
		return 1;
	if (!is_refused(execv(argv[0], argv)))
		return 2;
	if (!is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)))
		return 3;
	if (!is_refused(syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, NULL)))
		return 4;
	if (!is_refused(syscall(SYS_init_module, NULL, 0, "")))
		return 5;
	if (!is_refused(setuid(0)))
		return 6;
	if (!is_refused(socket(AF_VSOCK, SOCK_STREAM, 0)))
		return 7;
	if (!is_refused(syscall(SYS_keyctl, 0, 0, 0, 0, 0)))
		return 8;
	return 0;
}

static int
packet_socket_and_bpf(uint32_t mode, const struct link_needs *need)
{
	if (!restricted(mode, need))
		return 1;
	/* a protocol that no socket has: it fails with another error, if it is allowed */
	return (is_refused(socket(AF_PACKET, SOCK_STREAM, 0)) ? 0 : 0x10) |
		(is_refused(socket(AF_XDP, SOCK_STREAM, 0)) ? 0 : 0x20) |
		(is_refused(syscall(SYS_bpf, -1, NULL, 0)) ? 0 : 0x40);
}

static void *
try_forbidden(void *gate)
{
	char byte;

	if (read(*(int *)gate, &byte, 1) != 1)
		return (void *)2;
	return is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)) ? NULL : (void *)3;
}

static int
thread_made_before(uint32_t mode, const struct link_needs *need)
{
	void *result;
	pthread_t t;
	int gate[2];

	if (pipe(gate) != 0 || pthread_create(&t, NULL, try_forbidden, &gate[0]) != 0 ||
		!restricted(mode, need) || write(gate[1], "x", 1) != 1 ||
		pthread_join(t, &result) != 0)
		return 1;
	return (int)(uintptr_t)result;
}

static void
test_others_fail_with_eperm(void **state)
{
	(void)state;
	assert_int_equal(in_child(forbidden, CONFIG_SECCOMP_ENFORCE, NULL), 0);
}

static void
test_all_threads_are_restricted(void **state)
{
	(void)state;
	assert_int_equal(in_child(thread_made_before, CONFIG_SECCOMP_ENFORCE, NULL), 0);
}

/* An ordinary user may make neither of these sockets, nor call bpf(). */
static void
test_each_link_has_its_own_calls(void **state)
{
	int (*const check)(uint32_t, const struct link_needs *) = packet_socket_and_bpf;
	int able = in_child(check, CONFIG_SECCOMP_OFF, NULL);

	(void)state;
	assert_int_equal(able & 0x70, geteuid() == 0 ? 0x70 : able);
	assert_int_equal(in_child(check, CONFIG_SECCOMP_LOG, NULL), able);
	assert_int_equal(in_child(check, CONFIG_SECCOMP_ENFORCE, NULL), 0);
	assert_int_equal(in_child(check, CONFIG_SECCOMP_ENFORCE, &af_packet), able & 0x10);
	assert_int_equal(in_child(check, CONFIG_SECCOMP_ENFORCE, &af_xdp), able & 0x60);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others_fail_with_eperm),
		cmocka_unit_test(test_all_threads_are_restricted),
		cmocka_unit_test(test_each_link_has_its_own_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
