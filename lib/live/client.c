/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The client: encode the request of each mode, and check that an answer belongs to it.
 */

#include <string.h>

#include <rte_common.h>
#include <rte_debug.h>

#include "live/private.h"

struct mode {
	uint8_t mgmt_class;
	uint8_t type; /* class 0x34 */
	uint16_t attribute;
	const char *(*check)(const struct live_request *req, const uint8_t *data, uint64_t len,
		struct live_reply *reply);
};

/* --- check answers; data begins with Type, or is the text --- */

static bool
area_is_zero(const uint8_t *p, uint64_t len)
{
	while (len > 0 && p[len - 1] == 0)
		len--;
	return len == 0;
}

/*
 * A single-packet echo returns the whole data area, a multi-packet one the bytes sent (liveness 2).
 */
static const char *
check_echo(const struct live_request *req, const uint8_t *data, uint64_t len,
	struct live_reply *reply)
{
	uint64_t area = req->len <= LIVE_AREA ? LIVE_AREA : req->len;

	reply->len = (uint32_t)RTE_MIN(len - LIVE_HEADER, (uint64_t)UINT32_MAX);
	if (len - LIVE_HEADER != area)
		return "not as many bytes as were sent";
	data += LIVE_HEADER;
	if ((req->len != 0 && memcmp(data, req->data, req->len) != 0) ||
		!area_is_zero(data + req->len, area - req->len))
		return "not the bytes that were sent";
	reply->len = req->len;
	return NULL;
}

static const char *
check_timestamp(const struct live_request *req, const uint8_t *data, uint64_t len,
	struct live_reply *reply)
{
	if (len < AT(LIVE_OFF_TRANSMIT + 4))
		return "too short";
	reply->originate = get_be32(data + AT(LIVE_OFF_ORIGINATE));
	reply->receive = get_be32(data + AT(LIVE_OFF_RECEIVE));
	reply->transmit = get_be32(data + AT(LIVE_OFF_TRANSMIT));
	return reply->originate != req->originate ? "not the originate timestamp that was sent"
						  : NULL;
}

static const char *
check_lidguid(const struct live_request *req, const uint8_t *data, uint64_t len,
	struct live_reply *reply)
{
	(void)req;
	if (len < AT(LIVE_OFF_GUID + 8))
		return "too short";
	reply->lid = get_be16(data + AT(LIVE_OFF_LID));
	reply->guid = get_be64(data + AT(LIVE_OFF_GUID));
	return NULL;
}

/* Security: the peer's text is printed and put into JSON, so replace all but ASCII and newlines. */
static const char *
check_text(const struct live_request *req, const uint8_t *data, uint64_t len,
	struct live_reply *reply)
{
	char *out = reply->text, *end = reply->text + sizeof(reply->text) - 1;
	uint64_t i;

	(void)req;
	for (i = 0; i < len && data[i] != '\0' && out < end; i++)
		*out++ =
			data[i] == '\n' || (data[i] >= ' ' && data[i] < 0x7F) ? (char)data[i] : '?';
	*out = '\0';
	return NULL;
}

static const char *
check_nothing(const struct live_request *req, const uint8_t *data, uint64_t len,
	struct live_reply *reply)
{
	(void)req;
	(void)data;
	(void)len;
	(void)reply;
	return NULL;
}

static const struct mode modes[] = {
	[LIVE_MODE_ECHO] = { LIVE_CLASS, LIVE_ECHO_REQUEST, 0, check_echo },
	[LIVE_MODE_TIMESTAMP] = { LIVE_CLASS, LIVE_TIMESTAMP_REQUEST, 0, check_timestamp },
	[LIVE_MODE_LIDGUID] = { LIVE_CLASS, LIVE_LIDGUID_REQUEST, 0, check_lidguid },
	[LIVE_MODE_IBPING] = { LIVE_CLASS_IBPING, 0, 0, check_text },
	[LIVE_MODE_SYSSTAT_PING] = { LIVE_CLASS_SYSSTAT, 0, SYSSTAT_PING, check_nothing },
	[LIVE_MODE_SYSSTAT_HOST] = { LIVE_CLASS_SYSSTAT, 0, SYSSTAT_HOST, check_text },
	[LIVE_MODE_SYSSTAT_CPU] = { LIVE_CLASS_SYSSTAT, 0, SYSSTAT_CPU, check_text },
};

/* --- requests --- */

static void
put_data(const struct live_request *req, const struct mode *m, uint8_t *data)
{
	memset(data, 0, LIVE_HEADER);
	if (m->type == 0)
		return;
	data[AT(LIVE_OFF_TYPE)] = m->type;
	put_be16(data + AT(LIVE_OFF_IDENTIFIER), req->identifier);
	put_be16(data + AT(LIVE_OFF_SEQUENCE), req->sequence);
	if (m->type == LIVE_TIMESTAMP_REQUEST)
		put_be32(data + AT(LIVE_OFF_ORIGINATE), req->originate);
	else if (m->type == LIVE_ECHO_REQUEST && req->len != 0)
		memcpy(data + LIVE_HEADER, req->data, req->len);
}

bool
live_build(const struct live_request *req, uint8_t mad[MAD_LEN], uint8_t *body)
{
	const struct mode *m = &modes[req->mode];
	bool many = req->mode == LIVE_MODE_ECHO && req->len > LIVE_AREA;

	RTE_ASSERT(req->mode < RTE_DIM(modes));
	RTE_ASSERT(req->mode != LIVE_MODE_ECHO || req->len == 0 || req->data != NULL);
	RTE_ASSERT(!many || body != NULL);
	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = m->mgmt_class;
	mad[MAD_OFF_CLASS_VERSION] = LIVE_CLASS_VERSION;
	mad[MAD_OFF_METHOD] = MAD_GET;
	put_be16(mad + MAD_OFF_ATTRIBUTE, m->attribute);
	put_be32(mad + VENDOR_OFF_OUI - 1, LIVE_OUI); /* the byte before the OUI is reserved */
	put_data(req, m, many ? body : mad + VENDOR_OFF_DATA);
	return many;
}

/* --- does the answer belong to the request? --- */

static const char *
check_header(const struct mode *m, const uint8_t *mad)
{
	if (mad[MAD_OFF_BASE_VERSION] != MAD_BASE_VERSION || mad[MAD_OFF_CLASS] != m->mgmt_class ||
		mad[MAD_OFF_CLASS_VERSION] != LIVE_CLASS_VERSION)
		return "of another class or version";
	if (mad[MAD_OFF_METHOD] != MAD_GET_RESP)
		return "not a GetResp";
	if (get_be16(mad + MAD_OFF_STATUS) != MAD_STATUS_OK)
		return mad_status_name(get_be16(mad + MAD_OFF_STATUS));
	if (get_be16(mad + MAD_OFF_ATTRIBUTE) != m->attribute ||
		get_be32(mad + MAD_OFF_MODIFIER) != 0)
		return "of another attribute";
	if (get_be24(mad + VENDOR_OFF_OUI - 1) != LIVE_OUI)
		return "of another vendor";
	return NULL;
}

static const char *
check_type(const struct live_request *req, const struct mode *m, const uint8_t *data, uint64_t len)
{
	if (m->type == 0)
		return NULL;
	if (len < LIVE_HEADER)
		return "too short";
	if (data[AT(LIVE_OFF_TYPE)] != m->type + 1)
		return "of another type";
	if (get_be16(data + AT(LIVE_OFF_IDENTIFIER)) != req->identifier)
		return "of another identifier";
	if (get_be16(data + AT(LIVE_OFF_SEQUENCE)) != req->sequence)
		return "of another sequence number";
	return NULL;
}

void
live_check(const struct live_request *req, const uint8_t *mad, const uint8_t *data, uint64_t len,
	struct live_reply *reply)
{
	const struct mode *m = &modes[req->mode];

	RTE_ASSERT(req->mode < RTE_DIM(modes));
	memset(reply, 0, sizeof(*reply));
	reply->error = check_header(m, mad);
	if (reply->error == NULL)
		reply->error = check_type(req, m, data, len);
	if (reply->error == NULL)
		reply->error = m->check(req, data, len, reply);
}
