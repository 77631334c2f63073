/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_CHECKED_H
#define TEST_CHECKED_H

/*
 * For tests of checks: builds with checks end when an invariant fails, other builds contain no
 * checks. Damage is done in a process of its own.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef RTE_ENABLE_ASSERT
#define CHECKED true
#else
#define CHECKED false
#endif

/* @return true if act(subject, arg) ended the process as an assertion does */
static inline bool
ends_process(void (*act)(void *subject, void *arg), void *subject, void *arg)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		act(subject, arg);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
