/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include <rte_log.h>

#include "ctl/limit_lines.h"

/* So many lines at once, and one each time this passes. */
#define LIMIT_LINES   20
#define LIMIT_LINE_MS 1000

uint64_t
monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

const char *
caller_text(int fd, char *buf, size_t size)
{
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);
	const struct passwd *pw;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	pw = getpwuid(peer.uid);
	if (pw != NULL)
		snprintf(buf, size, "user %s (%u), process %d", pw->pw_name, (unsigned int)peer.uid,
			(int)peer.pid);
	else
		snprintf(buf, size, "user %u, process %d", (unsigned int)peer.uid, (int)peer.pid);
	return buf;
}

void
limit_lines_log(struct limit_lines *lines, int logtype, const char *module, int fd,
	const char *what, const char *text, uint64_t now)
{
	char others[64] = "", caller[CALLER_TEXT_MAX] = "";

	if (lines->bucket.interval == 0)
		token_bucket_init(&lines->bucket, LIMIT_LINE_MS, LIMIT_LINES);
	if (!token_bucket_take(&lines->bucket, now)) {
		lines->suppressed++;
		return;
	}
	if (lines->suppressed > 0)
		snprintf(others, sizeof(others), "; %" PRIu64 " such lines were not logged",
			lines->suppressed);
	lines->suppressed = 0;
	if (fd >= 0)
		caller_text(fd, caller, sizeof(caller));
	rte_log(RTE_LOG_WARNING, (uint32_t)logtype, "%s: limit reached: %s%s%s: %s%s\n", module,
		what, fd >= 0 ? " by " : "", caller, text, others);
}
