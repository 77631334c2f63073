/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Threads of DPDK and others log at the same time, each with a level of its own: every line is
 * whole, there once, and has the level of its message.
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <jansson.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "log.h"

#define LINES   4000
#define THREADS 5 /* the main one, an lcore, three of our own */

RTE_LOG_REGISTER(test_logtype, polca.test, DEBUG);

static const uint32_t levels[THREADS] = { RTE_LOG_ERR, RTE_LOG_WARNING, RTE_LOG_NOTICE,
	RTE_LOG_INFO, RTE_LOG_DEBUG };
static const char *const level_names[THREADS] = { "error", "warning", "notice", "info", "debug" };
static pthread_barrier_t together;

static int
log_lines(void *thread)
{
	unsigned int t = (unsigned int)(uintptr_t)thread, i;

	pthread_barrier_wait(&together);
	for (i = 0; i < LINES; i++)
		rte_log(levels[t], (uint32_t)test_logtype, "test: thread %u line %u %s\n", t, i,
			level_names[t]);
	return 0;
}

static void *
log_lines_thread(void *thread)
{
	log_lines(thread);
	return NULL;
}

/* What all threads log, as a file, with stderr as it was before. */
static FILE *
log_of_all(const char *format)
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);
	unsigned int t, lcore = rte_get_next_lcore(-1, 1, 0);
	pthread_t thread[THREADS];

	assert_non_null(file);
	assert_int_equal(log_choose(format, NULL), 0);
	pthread_barrier_init(&together, NULL, THREADS);
	dup2(fileno(file), STDERR_FILENO);
	log_take_over();
	for (t = 2; t < THREADS; t++)
		pthread_create(&thread[t], NULL, log_lines_thread, (void *)(uintptr_t)t);
	rte_eal_remote_launch(log_lines, (void *)(uintptr_t)1, lcore);
	log_lines((void *)(uintptr_t)0);
	rte_eal_wait_lcore(lcore);
	for (t = 2; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	pthread_barrier_destroy(&together);
	rewind(file);
	return file;
}

/* Each thread's lines are there in their order. */
static void
count_line(unsigned int next[THREADS], unsigned int t, unsigned int i)
{
	assert_true(t < THREADS);
	assert_int_equal(i, next[t]);
	next[t]++;
}

static void
all_were_counted(const unsigned int next[THREADS])
{
	unsigned int t;

	for (t = 0; t < THREADS; t++)
		assert_int_equal(next[t], LINES);
}

/* sd-daemon(3): the numbers are syslog's */
static void
test_priorities_for_the_journal(void **state)
{
	unsigned int next[THREADS] = { 0 }, priority, t, i;
	FILE *file = log_of_all("journal");
	char line[256], name[32];

	(void)state;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "<%u>test: thread %u line %u %31s", &priority, &t, &i, name) != 4)
			fail_msg("%s", line);
		count_line(next, t, i);
		if (priority != levels[t] - 1)
			fail_msg("thread of priority %u: %s", levels[t] - 1, line);
	}
	all_were_counted(next);
	fclose(file);
}

static void
test_levels_in_json(void **state)
{
	unsigned int next[THREADS] = { 0 }, t, i;
	FILE *file = log_of_all("json");
	const char *level, *component, *text;
	char line[256], name[32];
	json_t *v;

	(void)state;
	while (fgets(line, sizeof(line), file) != NULL) {
		v = json_loads(line, 0, NULL);
		if (json_unpack(v, "{s:s, s:s, s:s}", "level", &level, "component", &component,
			    "text", &text) != 0 ||
			sscanf(text, "test: thread %u line %u %31s", &t, &i, name) != 3)
			fail_msg("%s", line);
		count_line(next, t, i);
		assert_string_equal(level, level_names[t]);
		assert_string_equal(component, "polca.test");
		json_decref(v);
	}
	all_were_counted(next);
	fclose(file);
}

/* What was held back keeps its level; what does not come from the log is told from it. */
static void
test_lines_held_back(void **state)
{
	char line[] = "\x1e"
		      "4\x1f"
		      "lib.eal\x1f"
		      "EAL: no hugepages\n";
	char printed[] = "EAL: FATAL: Cannot init memory\n";
	struct log_held held;

	(void)state;
	assert_true(log_held_line(line, &held));
	assert_int_equal(held.level, RTE_LOG_ERR);
	assert_string_equal(held.component, "lib.eal");
	assert_string_equal(held.text, "EAL: no hugepages\n");
	assert_false(log_held_line(printed, &held));
	assert_string_equal(held.text, printed);
}

int
main(void)
{
	static char words[][32] = { "test_log", "--no-huge", "--no-pci", "--no-shconf", "-m", "64",
		"--lcores=0@0,1@0", "--log-level=lib.eal:error" };
	char *argv[RTE_DIM(words) + 1] = { NULL };
	unsigned int i;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_priorities_for_the_journal),
		cmocka_unit_test(test_levels_in_json),
		cmocka_unit_test(test_lines_held_back),
	};

	for (i = 0; i < RTE_DIM(words); i++)
		argv[i] = words[i];
	if (rte_eal_init(RTE_DIM(words), argv) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
