/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * polca-run: run a program so that the distribution's libibverbs finds polca's ports as devices. It
 * sets the environment and becomes the program.
 */

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge.h"

#define NODE "/dev/infiniband/polca0"

static void
polca_run_help(void)
{
	printf("polca-run %s: run a program on the devices of a running polca\n"
	       "\n"
	       "usage: polca-run [-s SOCKET] PROGRAM [ARGUMENT ...]\n"
	       "\n"
	       "The program uses libibverbs, and is not changed: it finds each port of polca as a\n"
	       "device, polca0, polca1, ..., beside the kernel's devices, if there are any.\n"
	       "\n"
	       "  -s, --socket PATH   polca's verbs socket; default: $POLCA_VERBS_SOCKET, else\n"
	       "                      verbs.sock beside polca's control socket\n"
	       "  -v, --version       print the version, and exit\n"
	       "  -h, --help          print this, and exit\n"
	       "\n"
	       "A first session, with polca running in another terminal:\n"
	       "  polca-run ibv_devices\n"
	       "  polca-run ibv_rc_pingpong -d polca0 -g 0 &\n"
	       "  polca-run ibv_rc_pingpong -d polca1 -g 0 localhost\n"
	       "\n"
	       "Exit codes: those of the program; 1 polca does not run, 2 wrong usage, 127 no such\n"
	       "program.\n",
		POLCA_VERSION);
}

/* As polca makes it and wants it below /tmp: another user may have put anything there. */
static bool
is_private_directory(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
		(st.st_mode & 077) == 0;
}

/* Where a polca that this user, or root, has started listens. */
static void
default_verbs_socket(char *path, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR"), *given = getenv("POLCA_VERBS_SOCKET");
	char own[32];

	if (given != NULL) {
		snprintf(path, size, "%s", given);
		return;
	}
	snprintf(path, size, "/run/polca/verbs.sock");
	if (geteuid() == 0)
		return;
	if (dir != NULL && dir[0] == '/')
		snprintf(path, size, "%s/verbs.sock", dir);
	snprintf(own, sizeof(own), "/tmp/polca-%u", (unsigned int)geteuid());
	if ((dir == NULL || dir[0] != '/') && is_private_directory(own))
		snprintf(path, size, "%s/verbs.sock", own);
	if (access(path, F_OK) != 0)
		snprintf(path, size, "/run/polca/verbs.sock");
}

/* The directory of a library: beside this program in a build tree, else where it is installed. */
static bool
find_library(const char *name, char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash != NULL) {
		*slash = '\0';
		snprintf(path, size, "%.3000s/../../provider/%s", self, name);
		if (access(path, R_OK) == 0)
			return true;
	}
	snprintf(path, size, "%s/%s", POLCA_PROVIDER_DIR, name);
	return access(path, R_OK) == 0;
}

/* Put a value in front of what an environment variable has. */
static void
prepend_environment(const char *name, const char *value)
{
	const char *old = getenv(name);
	char *joined;

	if (old == NULL || old[0] == '\0') {
		setenv(name, value, 1);
		return;
	}
	if (asprintf(&joined, "%s:%s", value, old) < 0)
		return;
	setenv(name, joined, 1);
	free(joined);
}

/* @return false: polca does not run, or a library is missing; said on standard error */
static bool
prepare_environment(const char *socket)
{
	static const char suffix[] = "-rdmav34.so";
	char given[PATH_MAX], tree[PATH_MAX], merged[PATH_MAX], library[PATH_MAX];
	bool beside = kernel_has_rdma();
	struct stat st;
	int rc;

	snprintf(given, sizeof(given), "%s.sys", socket);
	/* absolute: the program may look from another directory, and merged trees link to it */
	if (access(given, R_OK | X_OK) != 0 || realpath(given, tree) == NULL) {
		fprintf(stderr, "polca-run: %s: %s; is polca running, with verbs enabled?\n", given,
			strerror(errno));
		return false;
	}
	if (!find_library("libpolca-rdmav34.so", library, sizeof(library))) {
		fprintf(stderr, "polca-run: libpolca-rdmav34.so is not in %s\n",
			POLCA_PROVIDER_DIR);
		return false;
	}
	rc = beside ? merge_trees(tree, merged, sizeof(merged)) : 0;
	if (rc != 0) {
		fprintf(stderr, "polca-run: %s: %s\n", merged, strerror(-rc));
		return false;
	}
	library[strlen(library) - (sizeof(suffix) - 1)] = '\0';
	setenv("SYSFS_PATH", beside ? merged : tree, 1);
	prepend_environment("RDMAV_DRIVERS", library);
	if (!beside && stat(NODE, &st) == 0 && S_ISCHR(st.st_mode))
		return true;
	if (!find_library("libpolca-node.so", library, sizeof(library))) {
		fprintf(stderr, "polca-run: libpolca-node.so is not in %s\n", POLCA_PROVIDER_DIR);
		return false;
	}
	prepend_environment("LD_PRELOAD", library);
	return true;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	char socket[PATH_MAX - 8];
	int opt;

	default_verbs_socket(socket, sizeof(socket));
	/* +: options behind the program are the program's */
	while ((opt = getopt_long(argc, argv, "+s:vh", longs, NULL)) != -1) {
		switch (opt) {
		case 's':
			snprintf(socket, sizeof(socket), "%s", optarg);
			break;
		case 'v':
			printf("polca-run %s\n", POLCA_VERSION);
			return 0;
		case 'h':
			polca_run_help();
			return 0;
		default:
			fprintf(stderr, "Try 'polca-run --help'.\n");
			return 2;
		}
	}
	if (optind == argc) {
		fprintf(stderr, "polca-run: name a program\nTry 'polca-run --help'.\n");
		return 2;
	}
	if (!prepare_environment(socket))
		return 1;
	execvp(argv[optind], &argv[optind]);
	fprintf(stderr, "polca-run: %s: %s\n", argv[optind], strerror(errno));
	return 127;
}
