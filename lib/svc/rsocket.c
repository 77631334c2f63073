/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * rsockets (librdmacm, version 1; test/data/captures/rstream.pcap). Each side has a receive buffer
 * of two halves, and a list of two entries {address 64, R_Key 32, length 32} that tells where it
 * may write in the other's buffer. All messages are RDMA Writes with immediate data; its upper 3
 * bits are the operation: 0 data; 4 credits, whose optional payload is the entry of a free half,
 * written into the other's list; 7 control. The private data of REQ and REP have the addresses of
 * the list and of the first half (rsocket_wire.c).
 */

#include "svc/rsocket_private.h"

int
rsocket_open(struct svc *s, uint64_t half, struct error *err)
{
	struct rsocket_service *rs = svc_state(s);
	int ret;

	rs->half = half;
	svc_place_early(s);
	svc_queues(s, SENDS, CREDITS + CONTROLS);
	ret = svc_buffers(s, AT_BUFFER + 2 * half, MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_MW_BIND,
		err);
	return ret != 0 ? ret : svc_windows_make(s, &rs->windows, MEM_MW_TYPE_2, err);
}

int
rsocket_pattern(struct svc *s, struct svc_region *r, struct error *err)
{
	uint32_t i, length = RSOCKET_SEND_MAX + 256;
	int ret = svc_region(s, length, 0, r, err);

	for (i = 0; ret == 0 && i < length; i++)
		r->bytes[i] = (uint8_t)i;
	return ret;
}

int
rsocket_close(struct svc *s)
{
	struct rsocket_service *rs = svc_state(s);

	return rs != NULL ? svc_windows_free(s, &rs->windows) : 0;
}

/* --- connecting --- */

/* Write our private data. */
static void
rsocket_put_private(struct svc_conn *c, bool net, struct cm_conn_param *param)
{
	struct rsocket_service *rs = rsocket_service_of(c);
	struct rsocket *r = svc_conn_priv(c);
	struct svc_region b = svc_conn_buffer(c);
	uint32_t key = svc_window_key(&rs->windows, c);

	r->own_net = net;
	rsocket_put_conn_data(param->private_data,
		&(struct rsocket_conn_data){
			.net = net,
			.credits = CREDITS,
			.list = { b.va, key, LIST_ENTRIES },
			.buffer = { b.va + AT_BUFFER, key, (uint32_t)rs->half },
		});
	param->private_len = RSOCKET_CONN_DATA;
	param->access = MEM_ACCESS_REMOTE_WRITE;
}

static void
rsocket_learn_peer(struct svc_conn *c, const struct rsocket_conn_data *d)
{
	struct rsocket *r = svc_conn_priv(c);
	uint8_t *list = svc_conn_buffer(c).bytes;

	r->known = true;
	r->net = d->net;
	r->granted = d->credits;
	r->list_va = d->list.va;
	r->list_key = d->list.key;
	r->list_entries = d->list.length;
	r->list_at = 1 % d->list.length; /* the first was in our private data */
	rsocket_put_entry(list, d->buffer, r->own_net);
}

void
rsocket_shape(struct svc_conn *c, struct cm_conn_param *param)
{
	if (svc_conn_active(c))
		rsocket_put_private(c, false, param);
}

/* Use the peer's byte order for our list. */
uint16_t
rsocket_request(struct svc_conn *c, const struct cm_request *req, struct cm_conn_param *param)
{
	struct rsocket_conn_data d;

	if (!rsocket_get_conn_data(req->private_data, req->private_len, &d))
		return CM_REJ_CONSUMER;
	rsocket_put_private(c, d.net, param);
	rsocket_learn_peer(c, &d);
	return 0;
}

int
rsocket_prepare(struct svc_conn *c)
{
	struct rsocket_service *rs = rsocket_service_of(c);
	struct rsocket *r = svc_conn_priv(c);
	uint8_t *list = svc_conn_buffer(c).bytes;
	uint32_t i;
	int ret;

	r->open = rs->half;
	r->free = rs->half;
	r->next_half = rs->half;
	r->grant_at = CREDITS / 2;
	if (!r->known)
		rsocket_put_entry(list, (struct rsocket_entry){ 0 }, false);
	rsocket_put_entry(list + RSOCKET_ENTRY, (struct rsocket_entry){ 0 }, false);
	ret = svc_window_bind(&rs->windows, c, 0, AT_BUFFER + 2 * rs->half,
		MEM_ACCESS_REMOTE_WRITE);
	for (i = 0; i < CREDITS + CONTROLS && ret == 0; i++)
		ret = svc_post_recv(c, &(struct recv_wr){ .num_sge = 0 });
	return ret;
}

/* Grant, send and disconnect as far as possible now. */
static void
rsocket_progress(struct svc_conn *c)
{
	struct rsocket *r = svc_conn_priv(c);

	if (!r->known)
		return;
	rsocket_grant(c);
	rsocket_service_of(c)->pump(c);
	rsocket_goodbye(c);
}

/* --- received messages --- */

/* The data follow those of the last message: the peer fills the buffer in order, half by half. */
static void
rsocket_take_data(struct svc_conn *c, uint32_t len)
{
	struct rsocket_service *rs = rsocket_service_of(c);
	struct rsocket *r = svc_conn_priv(c);
	const uint8_t *buffer = svc_conn_buffer(c).bytes + AT_BUFFER;
	uint64_t now;

	if (len > r->open) {
		svc_violation(c);
		return;
	}
	r->received++;
	r->open -= len;
	r->free += len;
	for (; len != 0; len -= (uint32_t)now) {
		now = 2 * rs->half - r->at;
		if (now > len)
			now = len;
		rs->data(c, buffer + r->at, (uint32_t)now);
		r->at = (r->at + now) % (2 * rs->half);
	}
}

static void
rsocket_take(struct svc_conn *c, const struct wc *wc)
{
	struct rsocket *r = svc_conn_priv(c);
	uint32_t op = wc->imm_data >> RSOCKET_SHIFT, rest = wc->imm_data & RSOCKET_REST;

	if (wc->opcode != WC_RECV_RDMA_WITH_IMM) { /* only iWARP has messages */
		svc_violation(c);
		return;
	}
	svc_post_recv(c, &(struct recv_wr){ .num_sge = 0 });
	if (op == RSOCKET_DATA)
		rsocket_take_data(c, rest);
	else if (op == RSOCKET_CREDITS)
		r->granted = (uint16_t)rest;
	else if (op == RSOCKET_CONTROL && rest == RSOCKET_DISCONNECT)
		rsocket_leave(c);
}

void
rsocket_completion(struct svc_conn *c, const struct wc *wc)
{
	struct rsocket *r = svc_conn_priv(c);

	if (wc->opcode == WC_RECV || wc->opcode == WC_RECV_RDMA_WITH_IMM)
		rsocket_take(c, wc);
	else if (wc->wr_id == WR_DATA)
		r->sends--;
	else
		r->controls--;
	if (wc->opcode == WC_RDMA_WRITE && wc->wr_id == WR_GOODBYE)
		svc_disconnect(c);
	rsocket_progress(c);
}

void
rsocket_established(struct svc_conn *c, const uint8_t *private_data, uint8_t len)
{
	struct rsocket_conn_data d;

	if (svc_conn_active(c)) {
		if (!rsocket_get_conn_data(private_data, len, &d)) {
			svc_violation(c);
			return;
		}
		rsocket_learn_peer(c, &d);
		rsocket_service_of(c)->begin(c);
	}
	rsocket_progress(c); /* the second half */
}
