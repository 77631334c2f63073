/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* rsockets: sending, which needs room in the peer's buffer and its credits. */

#include "svc/rsocket_private.h"

static void
rsocket_post_control(struct svc_conn *c, uint32_t op, uint32_t rest,
	const uint8_t entry[RSOCKET_ENTRY])
{
	struct rsocket *r = svc_conn_priv(c);
	struct send_wr wr = {
		.wr_id = op == RSOCKET_CONTROL ? WR_GOODBYE : WR_CONTROL,
		.opcode = WR_RDMA_WRITE_WITH_IMM,
		.send_flags = SEND_INLINE,
		.imm_data = op << RSOCKET_SHIFT | rest,
		.inline_data = entry,
		.inline_len = entry != NULL ? RSOCKET_ENTRY : 0,
		.remote_addr = r->list_va + (uint64_t)r->list_at * RSOCKET_ENTRY,
		.rkey = r->list_key,
	};

	if (svc_post_send(c, &wr) == 0)
		r->controls++;
}

void
rsocket_grant(struct svc_conn *c)
{
	struct rsocket_service *rs = rsocket_service_of(c);
	struct rsocket *r = svc_conn_priv(c);
	bool room = r->free >= rs->half;
	uint8_t entry[RSOCKET_ENTRY];

	if (r->controls >= CONTROLS || (!room && (int16_t)(r->received - r->grant_at) < 0))
		return;
	r->grant_at = r->received + CREDITS / 2;
	rsocket_put_entry(entry,
		(struct rsocket_entry){ svc_conn_buffer(c).va + AT_BUFFER + r->next_half,
			rs->windows.keys[svc_conn_place(c)], (uint32_t)rs->half },
		r->net);
	rsocket_post_control(c, RSOCKET_CREDITS, (uint16_t)(r->received + CREDITS),
		room ? entry : NULL);
	if (!room)
		return;
	r->free -= rs->half;
	r->open += rs->half;
	r->next_half = rs->half - r->next_half;
	r->list_at = (r->list_at + 1) % r->list_entries;
}

/* Send as much of the data as one message may have now. @return bytes */
static uint32_t
rsocket_post_data(struct svc_conn *c, struct send_wr *wr, struct sge *sge, uint64_t length)
{
	struct rsocket *r = svc_conn_priv(c);
	uint8_t *at = svc_conn_buffer(c).bytes + r->target_at * RSOCKET_ENTRY;
	struct rsocket_entry to = rsocket_get_entry(at, r->own_net);
	uint32_t len = length < RSOCKET_SEND_MAX ? (uint32_t)length : RSOCKET_SEND_MAX;

	if (len > to.length)
		len = to.length;
	if (len == 0 || r->left || r->sent == r->granted || r->sends == SENDS - CONTROLS - 1)
		return 0;
	/* update the entry before the peer can: a used-up entry is the peer's to write */
	rsocket_put_entry(at, (struct rsocket_entry){ to.va + len, to.key, to.length - len },
		r->own_net);
	if (len == to.length)
		r->target_at = (r->target_at + 1) % LIST_ENTRIES;
	if (sge != NULL)
		sge->length = len;
	else
		wr->inline_len = len;
	wr->wr_id = WR_DATA;
	wr->opcode = WR_RDMA_WRITE_WITH_IMM;
	wr->remote_addr = to.va;
	wr->rkey = to.key;
	wr->imm_data = RSOCKET_DATA << RSOCKET_SHIFT | len;
	if (svc_post_send(c, wr) != 0)
		return 0;
	r->sends++;
	r->sent++;
	return len;
}

uint32_t
rsocket_send(struct svc_conn *c, const struct svc_region *r, uint64_t offset, uint64_t length)
{
	struct sge sge = { .addr = r->va + offset, .lkey = r->lkey };
	struct send_wr wr = { .num_sge = 1, .sg_list = &sge };

	return rsocket_post_data(c, &wr, &sge, length);
}

uint32_t
rsocket_say(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	struct send_wr wr = { .send_flags = SEND_INLINE, .inline_data = bytes };

	return rsocket_post_data(c, &wr, NULL, length < SVC_INLINE ? length : SVC_INLINE);
}

void
rsocket_leave(struct svc_conn *c)
{
	struct rsocket *r = svc_conn_priv(c);

	r->leave = true;
}

void
rsocket_goodbye(struct svc_conn *c)
{
	struct rsocket *r = svc_conn_priv(c);

	if (!r->leave || r->left || r->controls >= CONTROLS)
		return;
	r->left = true;
	rsocket_post_control(c, RSOCKET_CONTROL, RSOCKET_DISCONNECT, NULL);
}
