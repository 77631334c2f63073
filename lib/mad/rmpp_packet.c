/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP: the packet format (sa-multipacket B1, B3, B4), and checks that need no session.
 */

#include "mad/rmpp.h"

void
rmpp_put_header(uint8_t *mad, const struct rmpp_header *h)
{
	mad[RMPP_OFF_VERSION] = RMPP_VERSION;
	mad[RMPP_OFF_TYPE] = h->type;
	mad[RMPP_OFF_FLAGS] = RMPP_RRESPTIME_NONE << 3 | RMPP_ACTIVE | h->flags;
	mad[RMPP_OFF_STATUS] = h->status;
	put_be32(mad + RMPP_OFF_SEGMENT, h->segment);
	put_be32(mad + RMPP_OFF_LENGTH, h->length);
}

void
rmpp_put_control(const struct mad_session *s, uint8_t *mad, const struct rmpp_header *h)
{
	memcpy(mad, s->mad, s->data_offset);
	memset(mad + s->data_offset, 0, MAD_LEN - s->data_offset);
	/* a responder sets the R bit, a requester does not; s->mad may be from either */
	if (s->key.requester)
		mad[MAD_OFF_METHOD] &= (uint8_t)~MAD_RESPONSE;
	else
		mad[MAD_OFF_METHOD] |= MAD_RESPONSE;
	put_be16(mad + MAD_OFF_STATUS, MAD_STATUS_OK);
	rmpp_put_header(mad, h);
}

uint32_t
rmpp_payload_length(const struct mad_session *s, uint32_t n)
{
	uint32_t class_header = rmpp_class_header(s);
	uint64_t total = (uint64_t)class_header * s->tx.total + s->source.length;

	if (n == s->tx.total)
		return class_header +
			(uint32_t)(s->source.length - (uint64_t)(n - 1) * rmpp_area(s));
	if (n > 1)
		return 0;
	return total > UINT32_MAX ? 0 : (uint32_t)total; /* 0: unknown */
}

static uint8_t
data_fault(const uint8_t *mad)
{
	bool first = mad[RMPP_OFF_FLAGS] & RMPP_FIRST;

	if (mad[RMPP_OFF_STATUS] != 0)
		return RMPP_STATUS_BAD_STATUS;
	if (first != (get_be32(mad + RMPP_OFF_SEGMENT) == 1))
		return RMPP_STATUS_BAD_FIRST;
	return 0;
}

static uint8_t
ack_fault(const uint8_t *mad)
{
	if (mad[RMPP_OFF_STATUS] != 0)
		return RMPP_STATUS_BAD_STATUS;
	if (get_be32(mad + RMPP_OFF_LENGTH) < get_be32(mad + RMPP_OFF_SEGMENT))
		return RMPP_STATUS_W2S;
	return 0;
}

static uint8_t
stop_fault(const uint8_t *mad)
{
	return mad[RMPP_OFF_STATUS] == RMPP_STATUS_RESX ? 0 : RMPP_STATUS_BAD_STATUS;
}

static uint8_t
abort_fault(const uint8_t *mad)
{
	uint8_t status = mad[RMPP_OFF_STATUS];

	return status >= RMPP_STATUS_T2L && status <= RMPP_STATUS_UNSPECIFIED
		? 0
		: RMPP_STATUS_BAD_STATUS;
}

uint8_t
rmpp_fault(const uint8_t *mad)
{
	static uint8_t (*const faults[])(const uint8_t *) = {
		[RMPP_DATA] = data_fault,
		[RMPP_ACK] = ack_fault,
		[RMPP_STOP] = stop_fault,
		[RMPP_ABORT] = abort_fault,
	};
	uint8_t type = mad[RMPP_OFF_TYPE];

	if (mad[RMPP_OFF_VERSION] != RMPP_VERSION)
		return RMPP_STATUS_BAD_VERSION;
	if (type >= sizeof(faults) / sizeof(faults[0]) || faults[type] == NULL)
		return RMPP_STATUS_BAD_TYPE;
	return faults[type](mad);
}

/* Where data begins in classes that we know may use RMPP (B1). */
static uint32_t
class_data_offset(uint8_t mgmt_class)
{
	if (mgmt_class == MAD_CLASS_SUBN_ADM)
		return SA2_OFF_DATA;
	if (mgmt_class >= VENDOR_CLASS_FIRST && mgmt_class <= VENDOR_CLASS_LAST)
		return VENDOR_OFF_DATA;
	return RMPP_HEADER_LEN;
}

enum verdict
rmpp_answer(const struct mad_rx *rx, uint8_t type, uint8_t status)
{
	const struct rmpp_header h = { .type = type, .status = status };
	uint32_t header = class_data_offset(rx->key.mgmt_class);
	uint8_t mad[MAD_LEN] = { 0 };

	memcpy(mad, rx->mad, header);
	mad[MAD_OFF_METHOD] ^= MAD_RESPONSE;
	put_be16(mad + MAD_OFF_STATUS, MAD_STATUS_OK);
	rmpp_put_header(mad, &h);
	if (!mad_reply(rx, mad))
		return VERDICT_MAD_REFUSED;
	mad_count_abort(rx->w, 0, status);
	return VERDICT_DATAGRAM;
}
