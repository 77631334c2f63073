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

/* What a process in which act(subject, arg) fails a check says, in text. @return as above */
static inline bool
ends_process_saying(void (*act)(void *subject, void *arg), void *subject, void *arg, char *text,
	size_t size)
{
	size_t used = 0;
	int out[2], status;
	pid_t child;
	ssize_t n;

	assert_int_equal(pipe(out), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(out[1], STDERR_FILENO);
		act(subject, arg);
		_exit(0);
	}
	close(out[1]);
	while ((n = read(out[0], text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
