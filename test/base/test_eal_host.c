/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Check what the EAL needs from the host, and remove the runtime directories it leaves. In these
 * tests they are below a directory of the test.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "base/eal_host.h"

#define NAME "polca-test"

static char root[] = "/tmp/polca-test-run-XXXXXX";

/* @return "ROOT/dpdk/FILE"; the text lives until the next call */
static const char *
eal_host_path_of(const char *file)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/dpdk/%s", root, file);
	return path;
}

static void
eal_host_make_dir(const char *name)
{
	assert_int_equal(mkdir(eal_host_path_of(name), 0700), 0);
}

static bool
is_there(const char *name)
{
	return access(eal_host_path_of(name), F_OK) == 0;
}

static int
start_eal(const char *prefix)
{
	char arg[64];
	const char *args[] = { "test", "--no-shconf", "--no-huge", "--no-pci", "-m", "16", "-l",
		"0", "--no-telemetry", "--log-level=lib.eal:error", arg };

	snprintf(arg, sizeof(arg), "--file-prefix=%s", prefix);
	return rte_eal_init(RTE_DIM(args), (char **)args);
}

/* @return the id of a process that no longer exists */
static pid_t
dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

/*
 * Run the EAL in a process of its own.
 * @param leave  name of a file that somebody else puts into its runtime directory; NULL: none
 */
static void
run_eal(const char *prefix, const char *leave)
{
	char file[128];
	pid_t pid;
	int status;

	pid = fork();
	if (pid == 0) {
		runtime_dir_remove_at_exit();
		runtime_dir_remove_at_exit(); /* the second call changes nothing */
		if (start_eal(prefix) < 0 || !is_there(prefix))
			exit(1);
		snprintf(file, sizeof(file), "%s/%s", prefix, leave != NULL ? leave : "");
		if (leave != NULL && mkdir(eal_host_path_of(file), 0700) != 0)
			exit(2);
		exit(rte_eal_cleanup() == 0 ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
test_runtime_directory_goes_with_its_process(void **state)
{
	(void)state;
	run_eal("one", NULL);
	assert_false(is_there("one"));
}

static void
test_runtime_directory_with_a_file_stays(void **state)
{
	(void)state;
	run_eal("two", "file");
	assert_true(is_there("two/file"));
	rmdir(eal_host_path_of("two/file"));
	rmdir(eal_host_path_of("two"));
}

static void
test_host_with_sys_lacks_nothing(void **state)
{
	struct error err = { .text = "unchanged" };

	(void)state;
	assert_int_equal(eal_explain_host(&err), 0);
	assert_string_equal(err.text, "unchanged");
}

static void
test_host_without_sys_module_is_named(void **state)
{
	struct error err = { .text = "" };
	int host, rc;

	(void)state;
	if (geteuid() != 0)
		skip(); /* only root may call chroot() */
	host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(host >= 0);
	if (chroot(root) != 0) {
		close(host);
		skip();
	}
	rc = eal_explain_host(&err);
	assert_int_equal(fchdir(host), 0);
	assert_int_equal(chroot("."), 0);
	close(host);
	assert_int_equal(rc, -ENOENT);
	assert_string_equal(err.text,
		"DPDK does not start: there is no /sys/module here. Give this "
		"container or sandbox the host's /sys, read-only is enough");
}

/* The following tests start an EAL in this process, so they come last. */

static void
test_without_an_eal_there_is_nothing_to_remove(void **state)
{
	(void)state;
	runtime_dir_remove_stale(NAME);
	assert_true(start_eal("test-eal") >= 0);
}

static void
test_directories_of_dead_processes_are_removed(void **state)
{
	pid_t dead = dead_pid();
	char stale[64], mine[64], other[64], longer[64], full[64], inside[80];

	(void)state;
	snprintf(stale, sizeof(stale), NAME "-%d", dead);
	snprintf(mine, sizeof(mine), NAME "-%d", getpid());
	snprintf(other, sizeof(other), "other-%d", dead);
	snprintf(longer, sizeof(longer), NAME "-%dx", dead);
	snprintf(full, sizeof(full), NAME "-%d", dead_pid());
	snprintf(inside, sizeof(inside), "%s/file", full);
	eal_host_make_dir(stale);
	eal_host_make_dir(mine);
	eal_host_make_dir(other);
	eal_host_make_dir(longer);
	eal_host_make_dir(full);
	eal_host_make_dir(inside);
	runtime_dir_remove_stale(NAME);
	assert_false(is_there(stale));
	assert_true(is_there(mine)); /* its process lives */
	assert_true(is_there(other)); /* another program's */
	assert_true(is_there(longer));
	assert_true(is_there(inside)); /* not empty */
	rmdir(eal_host_path_of(mine));
	rmdir(eal_host_path_of(other));
	rmdir(eal_host_path_of(longer));
	rmdir(eal_host_path_of(inside));
	rmdir(eal_host_path_of(full));
}

static void
test_names_without_a_process_id_stay(void **state)
{
	static const char *const names[] = { NAME, NAME "-", NAME "-0", NAME "--7", NAME "-a",
		NAME "-99999999999", "polca" };
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(names); i++)
		eal_host_make_dir(names[i]);
	runtime_dir_remove_stale(NAME);
	for (i = 0; i < RTE_DIM(names); i++) {
		assert_true(is_there(names[i]));
		rmdir(eal_host_path_of(names[i]));
	}
}

static void
test_directory_that_is_gone_is_no_failure(void **state)
{
	(void)state;
	rmdir(eal_host_path_of("test-eal"));
	assert_int_equal(rmdir(eal_host_path_of("")), 0); /* the directory is empty */
	runtime_dir_remove_stale(NAME);
	assert_false(is_there(""));
}

static int
make_root(void **state)
{
	(void)state;
	return mkdtemp(root) == NULL || setenv("RUNTIME_DIRECTORY", root, 1) != 0;
}

static int
remove_root(void **state)
{
	(void)state;
	rte_eal_cleanup();
	rmdir(eal_host_path_of("test-eal"));
	rmdir(eal_host_path_of(""));
	return rmdir(root);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtime_directory_goes_with_its_process),
		cmocka_unit_test(test_runtime_directory_with_a_file_stays),
		cmocka_unit_test(test_host_with_sys_lacks_nothing),
		cmocka_unit_test(test_host_without_sys_module_is_named),
		cmocka_unit_test(test_without_an_eal_there_is_nothing_to_remove),
		cmocka_unit_test(test_directories_of_dead_processes_are_removed),
		cmocka_unit_test(test_names_without_a_process_id_stay),
		cmocka_unit_test(test_directory_that_is_gone_is_no_failure),
	};

	return cmocka_run_group_tests_name("base: EAL and its host", tests, make_root, remove_root);
}
