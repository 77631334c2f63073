/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Capabilities belong to threads, and a thread can change its own only. EAL has made threads with
 * those that polca was started with: a signal, which none of them blocks, makes each give them up.
 *
 * The kernel makes threads of this process, too (vhost's, since Linux 6.4). They block all signals,
 * run none of our code, and keep what they have.
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_log.h>

#include "base/capability.h"
#include "privileges.h"

#define TRIES         2000
#define BLOCKED_TRIES 200 /* a thread may block signals for a moment, while it makes another */
#define CLEAN_PASSES  2 /* one that still had some may have made another behind the first pass */
#define TRY_NS        1000000
#define LINE          256
#define GIVE_UP       (SIGRTMIN + 1)

/* What the kernel says of a thread. */
struct thread_status {
	char name[LINE];
	bool has_any; /* it has a capability, or keeps one for execve() */
	bool blocks; /* it runs no handler of the signal */
};

/* The threads that still have some. */
struct threads_left {
	unsigned int num; /* of those that can run the handler */
	unsigned int blocked;
	char name[LINE]; /* of one of `num` */
	char blocked_name[LINE];
};

static void
give_up_here(int sig)
{
	int before = errno;

	RTE_SET_USED(sig);
	capabilities_drop();
	errno = before;
}

static void
thread_line_read(const char *line, struct thread_status *t)
{
	uint64_t set;

	if (strncmp(line, "Name:\t", 6) == 0)
		snprintf(t->name, LINE, "%.*s", (int)strcspn(line + 6, "\n"), line + 6);
	if (sscanf(line, "CapInh: %" SCNx64, &set) == 1 ||
		sscanf(line, "CapPrm: %" SCNx64, &set) == 1 ||
		sscanf(line, "CapEff: %" SCNx64, &set) == 1 ||
		sscanf(line, "CapAmb: %" SCNx64, &set) == 1)
		t->has_any |= set != 0;
	if (sscanf(line, "SigBlk: %" SCNx64, &set) == 1)
		t->blocks |= (set >> (GIVE_UP - 1) & 1) != 0;
	if (sscanf(line, "Kthread: %" SCNx64, &set) == 1)
		t->blocks |= set != 0;
}

static void
thread_status_read(const char *thread, struct thread_status *t)
{
	char path[64], line[LINE];
	FILE *status;

	*t = (struct thread_status){ "" };
	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", thread);
	status = fopen(path, "re");
	if (status == NULL) {
		t->has_any = errno != ENOENT && errno != ESRCH; /* else it has ended */
		return;
	}
	while (fgets(line, sizeof(line), status) != NULL)
		thread_line_read(line, t);
	fclose(status);
}

/*
 * Ask all threads but this one.
 *
 * @return 0, or what makes their list unreadable: a negative errno
 */
static int
ask_threads(struct threads_left *left)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *entry;
	struct thread_status t;
	pid_t thread;

	*left = (struct threads_left){ 0 };
	if (threads == NULL)
		return -errno;
	while ((entry = readdir(threads)) != NULL) {
		thread = (pid_t)atoi(entry->d_name);
		if (thread == 0 || thread == gettid())
			continue;
		thread_status_read(entry->d_name, &t);
		if (!t.has_any)
			continue;
		if (t.blocks) {
			left->blocked++;
			memcpy(left->blocked_name, t.name, LINE);
		} else {
			left->num++;
			memcpy(left->name, t.name, LINE);
		}
		syscall(SYS_tgkill, getpid(), thread, GIVE_UP);
	}
	closedir(threads);
	return 0;
}

/* Ask until no thread that can run the handler has any. @return 0 or a negative errno */
static int
ask_until_none_has_any(struct threads_left *left)
{
	const struct timespec pause = { 0, TRY_NS };
	unsigned int i, clean = 0;
	int rc;

	for (i = 0; i < TRIES; i++) {
		rc = ask_threads(left);
		if (rc != 0)
			return rc;
		if (left->num == 0 && (left->blocked == 0 || i >= BLOCKED_TRIES))
			clean++;
		else
			clean = 0;
		if (clean == CLEAN_PASSES)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -EPERM;
}

int
privileges_drop_others(struct error *err)
{
	const struct sigaction give_up = { .sa_handler = give_up_here, .sa_flags = SA_RESTART };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before;
	struct threads_left left;
	int rc;

	if (sigaction(GIVE_UP, &give_up, &before) != 0)
		return error_set(err, errno, "capabilities cannot be given up: %s",
			strerror(errno));
	rc = ask_until_none_has_any(&left);
	if (rc == -EPERM) /* the handler stays: the thread may still get the signal */
		return error_set(err, EPERM, "the thread %.64s does not give up its capabilities",
			left.name);
	if (rc != 0)
		return error_set(err, -rc,
			"capabilities cannot be given up: /proc/self/task does not open: %s",
			strerror(-rc));
	/*
	 * A thread gets the signal once for each time it was asked. The kernel forgets what still
	 * waits when it is ignored; with the default action it would end the process.
	 */
	sigaction(GIVE_UP, &ignore, NULL);
	sigaction(GIVE_UP, &before, NULL);
	if (left.blocked > 0)
		rte_log(RTE_LOG_WARNING, rte_log_register("polca.app"),
			"polca: %u threads keep their capabilities, because they block all signals, as "
			"threads of the kernel's vhost do: %.64s\n",
			left.blocked, left.blocked_name);
	return 0;
}
