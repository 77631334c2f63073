/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Names of counters and statuses (sa-multipacket B2, B3, B8).
 */

#include "mad/mad.h"

const struct mad_counter_info mad_counter_infos[MAD_COUNTER_COUNT] = {
#define X(name, help) { #name, help },
	MAD_COUNTERS(X)
#undef X
};

static const struct {
	uint16_t status;
	const char *name;
} statuses[] = {
	{ MAD_STATUS_OK, "OK" },
	{ MAD_STATUS_BUSY, "BUSY" },
	{ 0x0002, "REDIRECT" },
	{ MAD_STATUS_BAD_VERSION, "BAD_VERSION" },
	{ MAD_STATUS_BAD_METHOD, "BAD_METHOD" },
	{ MAD_STATUS_BAD_METHOD_ATTR, "BAD_METHOD_ATTRIBUTE" },
	{ MAD_STATUS_INVALID_FIELD, "INVALID_FIELD" },
	{ SA_STATUS_NO_RESOURCES, "NO_RESOURCES" },
	{ SA_STATUS_REQ_INVALID, "REQUEST_INVALID" },
	{ SA_STATUS_NO_RECORDS, "NO_RECORDS" },
	{ SA_STATUS_TOO_MANY, "TOO_MANY_RECORDS" },
	{ SA_STATUS_INVALID_GID, "INVALID_GID" },
	{ SA_STATUS_INSUFFICIENT, "INSUFFICIENT_COMPONENTS" },
	{ SA_STATUS_DENIED, "REQUEST_DENIED" },
	{ 0x0800, "PRIORITY_SUGGESTED" },
};

const char *
mad_status_name(uint16_t status)
{
	unsigned int i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].status == status)
			return statuses[i].name;
	return "UNKNOWN";
}

const char *
rmpp_status_name(uint8_t status)
{
	static const char *const names[] = {
		[RMPP_STATUS_T2L - RMPP_STATUS_T2L] = "TOTAL_TIME_TOO_LONG",
		[RMPP_STATUS_BAD_LEN - RMPP_STATUS_T2L] = "BAD_LAST_OR_LENGTH",
		[RMPP_STATUS_BAD_FIRST - RMPP_STATUS_T2L] = "BAD_FIRST_OR_SEGMENT",
		[RMPP_STATUS_BAD_TYPE - RMPP_STATUS_T2L] = "BAD_TYPE",
		[RMPP_STATUS_W2S - RMPP_STATUS_T2L] = "WINDOW_TOO_SMALL",
		[RMPP_STATUS_S2B - RMPP_STATUS_T2L] = "SEGMENT_TOO_BIG",
		[RMPP_STATUS_BAD_STATUS - RMPP_STATUS_T2L] = "BAD_STATUS",
		[RMPP_STATUS_BAD_VERSION - RMPP_STATUS_T2L] = "BAD_RMPP_VERSION",
		[RMPP_STATUS_RETRIES - RMPP_STATUS_T2L] = "TOO_MANY_RETRIES",
		[RMPP_STATUS_UNSPECIFIED - RMPP_STATUS_T2L] = "UNSPECIFIED",
	};

	if (status == 0)
		return "OK";
	if (status == RMPP_STATUS_RESX)
		return "RESOURCES_EXHAUSTED";
	if (status < RMPP_STATUS_T2L || status > RMPP_STATUS_UNSPECIFIED)
		return "UNKNOWN";
	return names[status - RMPP_STATUS_T2L];
}

const char *
mad_end_name(enum mad_end end)
{
	static const char *const names[MAD_END_COUNT] = {
		[MAD_END_OK] = "OK",
		[MAD_END_STATUS] = "STATUS",
		[MAD_END_TIMEOUT] = "TIMEOUT",
		[MAD_END_ABORTED] = "ABORTED",
		[MAD_END_PROTOCOL] = "PROTOCOL",
		[MAD_END_REFUSED] = "REFUSED",
		[MAD_END_CANCELLED] = "CANCELLED",
	};

	return (unsigned int)end < MAD_END_COUNT ? names[end] : "UNKNOWN";
}
