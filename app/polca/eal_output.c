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
#include <rte_log.h>

#include "eal_output.h"
#include "log.h"

static const int ends[] = { SIGABRT, SIGSEGV, SIGBUS, SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static int held = -1; /* the memory file; -1: nothing is held back */
static int kept_stdout, kept_stderr;
static struct sigaction before[RTE_DIM(ends)];

static void
restore_output(void)
{
	dup2(kept_stdout, STDOUT_FILENO);
	dup2(kept_stderr, STDERR_FILENO);
}

/* Remove level and component of lines of the log. @param field  of a line, kept between calls */
static size_t
strip_held(char *text, size_t n, unsigned int *field)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++) {
		if (text[i] == LOG_HELD)
			*field = 2;
		else if (*field > 0)
			*field -= text[i] == LOG_HELD_END;
		else
			text[kept++] = text[i];
	}
	return kept;
}

/* Print the held text without levels: the process ends. Async-signal-safe. */
static void
print_held(void)
{
	unsigned int field = 0;
	char text[512];
	ssize_t n;

	if (held < 0)
		return;
	restore_output();
	lseek(held, 0, SEEK_SET);
	while ((n = read(held, text, sizeof(text))) > 0)
		if (write(STDERR_FILENO, text, strip_held(text, (size_t)n, &field)) < 0)
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
	struct log_held line;
	char *buf = NULL;
	size_t len = 0;

	while (getline(&buf, &len, text) >= 0) {
		log_held_line(buf, &line);
		bad |= strstr(line.text, "command line") != NULL;
		if (found || !is_reason(line.text))
			continue;
		snprintf(reason, size, "%.*s", (int)strcspn(line.text, "\n"), line.text);
		memmove(reason, strchr(reason, ' ') + 1, strlen(strchr(reason, ' ')));
		found = true;
	}
	free(buf);
	if (bad && !found)
		snprintf(reason, size, "an argument is invalid");
	return bad;
}

/* DPDK prints its last word twice: as "EAL: FATAL: text" to stderr, and as "EAL: text" to the log. */
static bool
is_second_copy(const char *line)
{
	return strncmp(line, "EAL: FATAL: ", strlen("EAL: FATAL: ")) == 0;
}

/* Log what was held back. What DPDK only prints has no level of its own. */
static void
log_held_text(FILE *text)
{
	struct log_held line;
	char *buf = NULL;
	size_t len = 0;

	while (getline(&buf, &len, text) >= 0) {
		if (!log_held_line(buf, &line)) {
			line.level = RTE_LOG_NOTICE;
			line.component = "lib.eal";
			if (is_second_copy(line.text))
				continue;
		}
		log_say_held(&line);
	}
	free(buf);
}

bool
eal_output_release(bool failed, char *reason, size_t size)
{
	bool bad = false;
	unsigned int i;
	FILE *text;

	if (held < 0)
		return false;
	fflush(stdout);
	for (i = 0; i < RTE_DIM(ends); i++)
		sigaction(ends[i], &before[i], NULL);
	text = fdopen(held, "r");
	if (text == NULL) {
		print_held();
		return false;
	}
	restore_output();
	held = -1;
	rewind(text);
	if (failed)
		bad = find_bad_argument(text, reason, size);
	rewind(text);
	if (!bad)
		log_held_text(text);
	fclose(text);
	close(kept_stdout);
	close(kept_stderr);
	return bad;
}
