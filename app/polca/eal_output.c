/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Hold back what DPDK prints while it starts, in a memory file. After a wrong argument DPDK prints
 * its whole usage, a hundred lines, of which one names the argument: only that line is reported. In
 * all other cases the text is printed afterwards, also when the process ends during the start.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "eal_output.h"

static const int ends[] = { SIGABRT, SIGSEGV, SIGBUS, SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static int held = -1; /* the memory file; -1: nothing is held back */
static int kept_stdout, kept_stderr;
static struct sigaction before[RTE_DIM(ends)];

/* Print the held text. Async-signal-safe. */
static void
print_held(void)
{
	char text[512];
	ssize_t n;

	if (held < 0)
		return;
	dup2(kept_stdout, STDOUT_FILENO);
	dup2(kept_stderr, STDERR_FILENO);
	lseek(held, 0, SEEK_SET);
	while ((n = read(held, text, sizeof(text))) > 0)
		if (write(STDERR_FILENO, text, (size_t)n) < 0)
			break;
	held = -1;
}

static void
print_held_and_raise(int sig)
{
	print_held();
	raise(sig); /* SA_RESETHAND: now the signal ends the process */
}

static void
print_held_at_exit(void)
{
	if (held >= 0)
		fflush(stdout);
	print_held();
}

void
eal_output_hold(void)
{
	struct sigaction sa = { .sa_handler = print_held_and_raise, .sa_flags = (int)SA_RESETHAND };
	int file = memfd_create("eal-output", MFD_CLOEXEC);
	unsigned int i;

	fflush(stdout);
	kept_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	if (file < 0 || kept_stdout < 0 || kept_stderr < 0 || fcntl(file, F_SETFL, O_APPEND) != 0 ||
		dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0)
		return; /* nothing is held back */
	held = file;
	atexit(print_held_at_exit);
	for (i = 0; i < RTE_DIM(ends); i++)
		/* a signal that is ignored, such as SIGHUP after nohup, does not end the process */
		if (sigaction(ends[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
			sigaction(ends[i], &sa, NULL);
}

/*
 * True for "EAL: text", "ARGPARSE: text" and getopt's "polca: text", except the line that only says
 * that arguments are invalid.
 */
static bool
is_reason(const char *line)
{
	static const char *const speakers[] = { "EAL: ", "ARGPARSE: ", "polca: " };
	unsigned int i;

	if (strstr(line, "command line") != NULL || strncmp(line, "EAL: Detected", 13) == 0)
		return false;
	for (i = 0; i < RTE_DIM(speakers); i++)
		if (strncmp(line, speakers[i], strlen(speakers[i])) == 0)
			return true;
	return false;
}

static bool
find_bad_argument(FILE *text, char *reason, size_t size)
{
	bool bad = false, found = false;
	char line[256];

	while (fgets(line, sizeof(line), text) != NULL) {
		bad |= strstr(line, "command line") != NULL;
		if (found || !is_reason(line))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(reason, size, "%s", strchr(line, ' ') + 1);
		found = true;
	}
	if (bad && !found)
		snprintf(reason, size, "an argument is invalid");
	return bad;
}

bool
eal_output_release(bool failed, char *reason, size_t size)
{
	bool bad = false;
	unsigned int i;
	FILE *text;
	int file;

	if (held < 0)
		return false;
	fflush(stdout);
	for (i = 0; i < RTE_DIM(ends); i++)
		sigaction(ends[i], &before[i], NULL);
	if (failed) {
		file = fcntl(held, F_DUPFD_CLOEXEC, 0);
		text = file >= 0 ? fdopen(file, "r") : NULL;
		if (text != NULL) {
			rewind(text);
			bad = find_bad_argument(text, reason, size);
			fclose(text);
		}
	}
	file = held;
	if (bad && ftruncate(file, 0) != 0)
		bad = false;
	print_held();
	close(file);
	close(kept_stdout);
	close(kept_stderr);
	return bad;
}
