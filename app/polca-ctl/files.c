/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

int
file_to_pass(const char *name)
{
	struct stat st;
	int fd, copy;

	if (strcmp(name, "-") == 0)
		return copy_to_memory(STDIN_FILENO);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
		return fd;
	copy = copy_to_memory(fd);
	close(fd);
	return copy;
}

int
files_attach(struct connection *c, const json_t *method, const json_t *params)
{
	const char *name;
	json_t *p;
	size_t i;
	int fd;

	json_array_foreach(json_object_get(method, "params"), i, p) {
		name = method_text(params, method_text(p, "name"));
		if (strcmp(method_text(p, "type"), "file") != 0 || name[0] == '\0')
			continue;
		fd = open(name, O_RDWR | O_CLOEXEC);
		if (fd < 0 && (errno == EACCES || errno == EROFS))
			fd = open(name, O_RDONLY | O_CLOEXEC); /* enough where nobody may write */
		if (fd < 0)
			return file_error(name);
		connection_attach(c, fd);
	}
	return 0;
}
