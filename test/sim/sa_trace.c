/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Counts of each transaction's packets in the network: what has arrived, and how often each side
 * has tried since. The check of answers accepts a timeout only if these counts show that all
 * retries were used.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "sa_sim.h"
#include "wire/bytes.h"

static struct sa_session *
sa_trace_session_of(struct sa_script *sc, uint64_t tid)
{
	struct sa_session **head = &sc->trace.bucket[(tid ^ tid >> 32 ^ tid >> 16) & 255], *t;

	for (t = *head; t != NULL; t = t->chain)
		if (t->tid == tid)
			return t;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		abort();
	t->tid = tid;
	t->expected[0] = t->expected[1] = 1;
	t->progress = sc->sim->now;
	t->chain = *head;
	*head = t;
	return t;
}

const struct sa_session *
sa_trace_find(const struct sa_trace *trace, uint64_t tid)
{
	const struct sa_session *t = trace->bucket[(tid ^ tid >> 32 ^ tid >> 16) & 255];

	while (t != NULL && t->tid != tid)
		t = t->chain;
	return t;
}

void
sa_trace_free(struct sa_trace *trace)
{
	for (unsigned int i = 0; i < 256; i++)
		while (trace->bucket[i] != NULL) {
			struct sa_session *t = trace->bucket[i];

			trace->bucket[i] = t->chain;
			free(t);
		}
}

/* FragmentFlag in the other bit order (sa-multipacket A3). */
static uint8_t
mirror(uint8_t flags)
{
	uint8_t out = 0;

	for (unsigned int i = 0; i < 8; i++)
		if (flags & 1u << i)
			out |= 0x80 >> i;
	return out;
}

uint8_t
sa_v1_flags(const struct sa_script *sc, const uint8_t *mad)
{
	uint8_t flags = mad[SA1_OFF_FRAGMENT];

	return sc->side[SA_SERVER].limits.v1_flags_lsb ? mirror(flags) : flags;
}

/* Kinds of MADs in both protocols. */
enum kind {
	KIND_SINGLE,
	KIND_DATA,
	KIND_ACK,
	KIND_RESEND,
	KIND_KEEPALIVE,
	KIND_END, /* ABORT, STOP */
};

static enum kind
kind_of(const struct sa_script *sc, const uint8_t *mad, uint32_t *segment)
{
	uint8_t flags;

	*segment = 0;
	if (mad[MAD_OFF_CLASS] != MAD_CLASS_SUBN_ADM)
		return KIND_SINGLE;
	if (mad[MAD_OFF_CLASS_VERSION] == 1) {
		flags = sa_v1_flags(sc, mad);
		*segment = get_be32(mad + SA1_OFF_SEGMENT);
		return flags & SA1_KEEPALIVE ? KIND_KEEPALIVE
			: flags & SA1_RESEND ? KIND_RESEND
			: flags & SA1_ACK    ? KIND_ACK
			: *segment != 0      ? KIND_DATA
					     : KIND_SINGLE;
	}
	if (!(mad[RMPP_OFF_FLAGS] & RMPP_ACTIVE))
		return KIND_SINGLE;
	*segment = get_be32(mad + RMPP_OFF_SEGMENT);
	return mad[RMPP_OFF_TYPE] == RMPP_DATA   ? KIND_DATA
		: mad[RMPP_OFF_TYPE] == RMPP_ACK ? KIND_ACK
						 : KIND_END;
}

static void
came_through(struct sa_script *sc, struct sa_session *t)
{
	t->requests = t->resends = t->lost = 0;
	t->data[0] = t->data[1] = 0;
	t->last_data[0] = t->last_data[1] = 0;
	t->progress = sc->sim->now;
}

static void
count_send(struct sa_session *t, unsigned int from, enum kind kind, uint32_t segment)
{
	switch (kind) {
	case KIND_SINGLE:
		if (from == SA_CLIENT)
			t->requests++;
		break;
	case KIND_DATA:
		/* the next segment in order, or the last one before an Ack */
		if (segment == t->expected[from] || segment == t->last_data[from])
			t->data[from]++;
		if (segment > t->last_data[from])
			t->last_data[from] = segment;
		break;
	case KIND_RESEND:
		t->resends++;
		break;
	default:
		break;
	}
}

void
sa_trace_frame(struct sa_script *sc, unsigned int from, const struct packet *pkt, enum sa_fate fate)
{
	const uint8_t *mad = pkt->payload;
	struct sa_session *t;
	uint32_t segment;
	enum kind kind;

	if (pkt->payload_len != MAD_LEN)
		return;
	t = sa_trace_session_of(sc, get_be64(mad + MAD_OFF_TID));
	kind = kind_of(sc, mad, &segment);
	if (kind == KIND_DATA && mad[MAD_OFF_CLASS_VERSION] == 1 && sa_v1_flags(sc, mad) & SA1_LAST)
		t->final[from] = segment;
	t->frames[from]++;
	count_send(t, from, kind, segment);
	if (kind == KIND_END && mad[RMPP_OFF_STATUS] >= 64 && mad[RMPP_OFF_STATUS] < 128)
		t->abort_status |= UINT64_C(1) << (mad[RMPP_OFF_STATUS] - 64);
	if (fate == SA_LOST) {
		t->lost++;
		t->lost_in_all++;
		return;
	}
	if (kind == KIND_DATA && segment == t->expected[from]) {
		t->expected[from]++;
		came_through(sc, t);
	} else if (kind == KIND_RESEND && segment < t->expected[!from]) {
		/* overtaken, or behind a gap: the receiver has dropped it */
		t->expected[!from] = segment;
	} else if (kind == KIND_ACK && segment > t->acked[!from]) {
		t->acked[!from] = segment;
		t->expected[!from] = RTE_MAX(t->expected[!from], segment + 1);
		/* the last segment of a request has seven retries, acknowledged or not */
		if (segment != t->final[!from])
			came_through(sc, t);
	}
}

void
sa_print_mad(const struct sa_script *sc, const uint8_t *mad, char *buf, size_t size)
{
	static const char *const types[] = { "single", "DATA", "ACK", "STOP", "ABORT" };
	uint32_t segment, len;
	enum kind kind = kind_of(sc, mad, &segment);
	int n;

	n = snprintf(buf, size, "class 0x%02x v%u method 0x%02x attr 0x%04x tid %016llx",
		mad[MAD_OFF_CLASS], mad[MAD_OFF_CLASS_VERSION], mad[MAD_OFF_METHOD],
		get_be16(mad + MAD_OFF_ATTRIBUTE), (unsigned long long)get_be64(mad + MAD_OFF_TID));
	if (n < 0 || (size_t)n >= size)
		return;
	buf += n;
	size -= (size_t)n;
	if (mad[MAD_OFF_CLASS_VERSION] == 1) {
		len = get_be32(mad + SA1_OFF_PAYLOAD_LEN);
		n = snprintf(buf, size, " flags 0x%02x seg %u len %u win %u", sa_v1_flags(sc, mad),
			segment, len, get_be16(mad + SA1_OFF_WINDOW));
	} else if (kind != KIND_SINGLE) {
		n = snprintf(buf, size, " %s flags %u seg %u len/nwl %u rmpp status %u",
			types[mad[RMPP_OFF_TYPE] % 5], mad[RMPP_OFF_FLAGS] & 7, segment,
			get_be32(mad + RMPP_OFF_LENGTH), mad[RMPP_OFF_STATUS]);
	} else {
		n = 0;
	}
	if (n >= 0 && (size_t)n < size && get_be16(mad + MAD_OFF_STATUS) != 0)
		snprintf(buf + n, size - (size_t)n, " status 0x%04x",
			get_be16(mad + MAD_OFF_STATUS));
}
