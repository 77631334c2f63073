/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/close_apart.h"

struct to_close {
	unsigned int num;
	int fds[];
};

static void
close_all(const int *fds, unsigned int num)
{
	unsigned int i;

	for (i = 0; i < num; i++)
		close(fds[i]);
}

static void
close_apart_work(void *arg)
{
	struct to_close *c = arg;

	capabilities_drop(); /* it may last */
	close_all(c->fds, c->num);
	free(c);
}

struct apart *
close_apart_begin(const int *fds, unsigned int num)
{
	struct to_close *c = malloc(sizeof(*c) + num * sizeof(c->fds[0]));
	struct apart *apart = NULL;

	if (c != NULL) {
		c->num = num;
		memcpy(c->fds, fds, num * sizeof(c->fds[0]));
		apart = apart_begin(close_apart_work, c);
	}
	if (apart == NULL) {
		free(c);
		close_all(fds, num);
	}
	return apart;
}

bool
fd_in_memory(int fd)
{
	/* other files than these have no seals, which the kernel says without their file system */
	return fcntl(fd, F_GET_SEALS) >= 0;
}

void
close_passed(int fd)
{
	struct apart *apart = NULL;

	if (fd_in_memory(fd))
		close(fd);
	else
		apart = close_apart_begin(&fd, 1);
	if (apart != NULL)
		apart_forget(apart);
}
