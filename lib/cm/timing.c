/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Time codes and the intervals computed from them (cm.md 4, 5). */

#include "cm/timing.h"

/* 4.096 us * 2^8 is about a millisecond */
#define MS_CODE 8

uint32_t
cm_ms(uint8_t code)
{
	if (code > CM_TIME_CODE_MAX)
		code = CM_TIME_CODE_MAX;
	return code > MS_CODE ? 1u << (code - MS_CODE) : 1;
}

/*
 * cm.md 4: the greater code, or one more if the two differ by at most one: then the sum is doubled.
 */
uint8_t
cm_ack_timeout(uint8_t packet_life, uint8_t ack_delay)
{
	unsigned int round_trip = packet_life + 1u, delay = ack_delay;
	unsigned int greater = round_trip > delay ? round_trip : delay;
	unsigned int smaller = round_trip > delay ? delay : round_trip;
	unsigned int code = greater + (smaller + 1 >= greater);

	return (uint8_t)(code > CM_TIME_CODE_MAX ? CM_TIME_CODE_MAX : code);
}

uint32_t
cm_req_interval_ms(uint8_t packet_life, uint8_t remote_response_timeout)
{
	return 2 * cm_ms(packet_life) + cm_ms(remote_response_timeout);
}

uint32_t
cm_rep_interval_ms(uint8_t local_response_timeout)
{
	return cm_ms(local_response_timeout);
}

uint32_t
cm_mra_interval_ms(uint8_t service_timeout, uint8_t ack_timeout)
{
	return cm_ms(service_timeout) + cm_ms(ack_timeout);
}

uint32_t
cm_timewait_ms(uint8_t ack_timeout)
{
	return cm_ms(ack_timeout);
}
