/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class 0x32, ibping's server (liveness 3): answer with this host's name, NUL-terminated.
 */

#include "live/private.h"

enum mad_outcome
live_ibping_request(struct live *l, struct mad_request *req)
{
	memcpy(req->reply + VENDOR_OFF_DATA, l->config.host, LIVE_HOST_MAX);
	live_count(l, ibping, 1);
	return MAD_ANSWER;
}
