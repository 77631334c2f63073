/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Devices are closed beside a thread that opens files: each descriptor that a device's end closes
 * belongs to another file at once, and is that file's from then on.
 */

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define ROUNDS 20
#define MOST   1024

static int other = -1; /* the file that takes what is closed; -1: none does */
static bool taken[MOST];
static unsigned int lost;

/* In the place of the C library's, for all libraries of this process. */
int
close(int fd)
{
	int rc = (int)syscall(SYS_close, fd);

	if (other < 0 || fd < 0 || fd >= MOST)
		return rc;
	if (taken[fd] || rc != 0) {
		fprintf(stderr, "descriptor %d is closed twice\n", fd);
		lost++;
	}
	taken[fd] = true;
	expect(dup2(other, fd) == fd);
	return rc;
}

int
probe_close(int argc, char **argv)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct ibv_device *device = find_device("polca0");
	unsigned int closed = 0;

	(void)argc;
	(void)argv;
	expect(null >= 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct ibv_context *context = ibv_open_device(device);

		expect(context != NULL);
		other = null;
		expect(ibv_close_device(context) == 0);
		other = -1;
		for (int fd = 0; fd < MOST; fd++) {
			if (!taken[fd])
				continue;
			taken[fd] = false;
			closed++;
			expect(close(fd) == 0);
		}
	}
	/* the socket, the mirror, the worker's pipe, both ends of the event pipe */
	expect(closed >= 5 * ROUNDS);
	expect(lost == 0);
	return 0;
}
