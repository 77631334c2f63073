/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "cm/cm.h"

const struct cm_counter_info cm_counter_infos[CM_COUNTER_COUNT] = {
#define X(name, help) { #name, help },
	CM_COUNTERS(X)
#undef X
};

const struct cm_limits cm_limits_default = {
	.max_connections = 16384,
	.max_half_open = 8192,
	.max_half_open_per_peer = 512, /* hosts open many connections at a time */
	.max_connections_per_peer = 12288, /* one host must not take them all */
	.max_listeners = 64,
	.response_timeout = 20, /* 4.3 s, as Linux (cm.md 5) */
	.max_retries = 15,
	.ack_delay = 15, /* 134 ms: a software CA answers only when it is scheduled */
	.packet_life = 18, /* for RoCE paths, as Linux */
	.max_rd_atomic = 16,
	.send_mra = true,
};

const char *
cm_message_name(unsigned int message)
{
	static const char *const names[] = {
#define X(NAME, id, name) [CM_##NAME] = name,
		CM_MESSAGE_LIST(X)
#undef X
	};

	return message < CM_MESSAGES ? names[message] : "?";
}

const char *
cm_reason_name(unsigned int reason)
{
	static const char *const names[CM_REASONS] = {
#define X(NAME, number, name) [number] = name,
		CM_REASON_LIST(X)
#undef X
	};

	return reason < CM_REASONS && names[reason] != NULL ? names[reason] : "?";
}

const char *
cm_state_name(unsigned int state)
{
	static const char *const names[] = {
#define X(name) [CM_STATE_##name] = #name,
		CM_STATE_LIST(X)
#undef X
	};

	return state < CM_STATES ? names[state] : "?";
}
