/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* How any of the three classes answers a request that it refuses. */

#include "live/private.h"

enum mad_outcome
live_silent(struct mad_request *req, enum verdict verdict)
{
	req->verdict = verdict;
	return MAD_SILENT;
}

enum mad_outcome
live_status(struct mad_request *req, uint16_t status)
{
	if (req->mad[MAD_OFF_METHOD] == MAD_SEND)
		return live_silent(req, VERDICT_MAD_UNMATCHED);
	put_be16(req->reply + MAD_OFF_STATUS, status);
	return MAD_ANSWER;
}
