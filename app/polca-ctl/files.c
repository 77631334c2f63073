/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_kind.h"
#include "files.h"
#include "methods.h"
#include "report.h"

#define COPY_MAX (1 << 30) /* bytes of standard input or a pipe */

int
file_error(const char *name)
{
	fprintf(stderr, "polca-ctl: %s: %s\n", name, strerror(errno));
	return EXIT_USAGE;
}

static int
copy_to_memory(int from)
{
	static char buf[65536];
	int fd = memfd_create("polca-ctl", MFD_CLOEXEC), eno;
	size_t len = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && len <= COPY_MAX) {
		n = read(from, buf, sizeof(buf));
		len += n > 0 ? (size_t)n : 0;
		if (n > 0 && write(fd, buf, (size_t)n) != n)
			n = -1;
	}
	if (fd >= 0 && (n < 0 || len > COPY_MAX)) {
		eno = n < 0 ? errno : EFBIG;
		close(fd);
		errno = eno;
		return -1;
	}
	return fd;
}

/* Print that @p name is no file that the server would take, and what to name instead. */
static int
wrong_kind(const char *name, mode_t mode, const char *words, const char *allowed)
{
	fprintf(stderr, "polca-ctl: %s: %s is %s, allowed: %s%s\n", words, name, file_kind(mode),
		allowed, S_ISDIR(mode) ? "; name one in it" : "");
	return EXIT_USAGE;
}

/* Copy what a pipe or standard input gives. @param from  is closed unless it is standard input */
static int
copy_to_pass(const char *name, int from)
{
	int fd = copy_to_memory(from);

	if (fd < 0)
		file_error(name);
	if (from != STDIN_FILENO)
		close(from);
	return fd;
}

int
file_to_pass(const char *name, const char *words, const char *content)
{
	char allowed[256];
	struct stat st = { 0 };
	int fd;

	if (strcmp(name, "-") == 0)
		return copy_to_pass(name, STDIN_FILENO);
	/* before the open: that of a device may wait, or do something */
	if (stat(name, &st) == 0 && !S_ISFIFO(st.st_mode) && !S_ISREG(st.st_mode)) {
		snprintf(allowed, sizeof(allowed),
			"a regular file, a pipe, or - for standard input, with %s", content);
		wrong_kind(name, st.st_mode, words, allowed);
		return -1;
	}
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		file_error(name);
	return fd >= 0 && S_ISFIFO(st.st_mode) ? copy_to_pass(name, fd) : fd;
}

/* Open a file that the server is to map. @return a descriptor; -1 after an error was printed */
static int
file_to_map(const char *name, const char *words)
{
	struct stat st;
	int fd;

	if (stat(name, &st) == 0 && !S_ISREG(st.st_mode)) {
		wrong_kind(name, st.st_mode, words, "a regular file");
		return -1;
	}
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EROFS))
		fd = open(name, O_RDONLY | O_CLOEXEC); /* enough where nobody may write */
	if (fd < 0)
		file_error(name);
	return fd;
}

int
files_attach(struct connection *c, const json_t *method, const json_t *params)
{
	char words[128];
	const char *name;
	json_t *p;
	size_t i;
	int fd;

	method_words(method_text(method, "name"), words, sizeof(words));
	json_array_foreach(json_object_get(method, "params"), i, p) {
		name = method_text(params, method_text(p, "name"));
		if (strcmp(method_text(p, "type"), "file") != 0 || name[0] == '\0')
			continue;
		fd = file_to_map(name, words);
		if (fd < 0)
			return EXIT_USAGE;
		connection_attach(c, fd);
	}
	return 0;
}
