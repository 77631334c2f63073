/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "svc/perftest_send.h"

static bool
is_ahead(const struct perftest_send *p, uint64_t received, bool begun)
{
	return received - p->answered > 1 || begun ||
		received - p->acknowledged > PERFTEST_UNACKNOWLEDGED;
}

/* True if nothing has followed the first message for long enough. */
static bool
stands_alone(struct perftest_send *p, uint64_t now, uint64_t patience)
{
	if (!p->seen)
		p->first = now;
	p->seen = true;
	return now - p->first >= patience;
}

bool
perftest_send_answers(struct perftest_send *p, uint64_t received, bool begun, uint64_t now,
	uint64_t patience)
{
	if (p->mode == PERFTEST_BANDWIDTH || received == p->answered)
		return false;
	if (is_ahead(p, received, begun)) {
		p->mode = PERFTEST_BANDWIDTH;
		return false;
	}
	if (p->mode == PERFTEST_LEARNING && !stands_alone(p, now, patience))
		return false;
	p->mode = PERFTEST_LATENCY;
	p->answered = received;
	return true;
}
