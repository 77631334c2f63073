/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Data of connections. The bytes of each message follow from its connection's nonce and its number,
 * so that the receiver detects messages of other connections and messages out of order.
 */

#include <errno.h>
#include <string.h>

#include "cm_sim.h"
#include "coverage.h"

#define WRITES(k)   ((k) % 3 == 2) /* message k is a Write, announced by a Send */
#define WR_ID(l, k) ((uint64_t)(l)->index << 8 | (k))
#define WR_WRITE    0x80
#define AT_ONCE     3

static uint8_t *
area(const struct cm_life *l, unsigned int which, unsigned int k)
{
	return l->side->bytes + l->place * CM_PLACE_LEN + which * CM_AREA + k * CM_MESSAGE_LEN;
}

static uint64_t
va_of(const struct cm_life *l, const uint8_t *p)
{
	return SIM_VA + (uint64_t)(p - l->side->bytes);
}

static uint64_t
cm_data_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

static uint32_t
message(uint64_t nonce, unsigned int k, uint8_t *buf)
{
	uint64_t x = cm_data_mix(nonce + 0x9E3779B97F4A7C15ull * (k + 1));
	uint32_t len = 1 + (uint32_t)(x % CM_MESSAGE_LEN);

	for (uint32_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			x = cm_data_mix(x + i);
		buf[i] = (uint8_t)(x >> 8 * (i % 8));
	}
	return len;
}

/* --- places --- */

bool
cm_data_take(struct cm_life *l)
{
	for (l->place = 0; l->place < CM_PLACES; l->place++)
		if (!(l->side->places >> l->place & 1)) {
			l->side->places |= 1ull << l->place;
			memset(area(l, 0, 0), 0, CM_PLACE_LEN);
			return true;
		}
	return false;
}

void
cm_data_give_back(struct cm_life *l)
{
	if (l->place < CM_PLACES)
		l->side->places &= ~(1ull << l->place);
	l->place = CM_PLACES;
}

uint64_t
cm_data_va(const struct cm_life *l)
{
	return va_of(l, area(l, 2, 0));
}

int
cm_data_prepare(struct cm_life *l)
{
	for (unsigned int k = 0; k < CM_MESSAGES_MAX; k++) {
		struct sge sge = { va_of(l, area(l, 1, k)), CM_MESSAGE_LEN, l->side->key };
		struct recv_wr wr = { .wr_id = WR_ID(l, k), .num_sge = 1, .sg_list = &sge };

		if (rc_post_recv(l->side->node->worker, l->qpn, &wr, NULL) != 0) {
			sim_fail(l->side->node->sim, "life %u: no receive can be posted in INIT",
				l->index);
			return -EINVAL;
		}
	}
	return 0;
}

/* --- to the peer --- */

static void
sim_cm_data_post(struct cm_life *l, struct send_wr *wr, unsigned int k, uint32_t len)
{
	struct sge sge = { va_of(l, area(l, 0, k)), len, l->side->key };
	struct error err = { "" };

	wr->num_sge = 1;
	wr->sg_list = &sge;
	wr->send_flags = SEND_SIGNALED;
	if (rc_post_send(l->side->node->worker, l->qpn, wr, &err) != 0)
		sim_fail(l->side->node->sim, "life %u: cannot post: %s", l->index, err.text);
}

void
cm_data_post(struct cm_life *l)
{
	struct sim *s = l->side->node->sim;
	unsigned int k = l->posted;
	uint32_t len;

	if (k == l->hello.count || k - l->done >= AT_ONCE || s->now < l->next_at || l->broken)
		return;
	len = message(l->nonce, k, area(l, 0, k));
	if (WRITES(k) || l->hello.plan == CM_PLAN_BAD_KEY) {
		struct send_wr write = {
			.wr_id = WR_ID(l, k) | WR_WRITE,
			.opcode = WR_RDMA_WRITE,
			.rkey = l->peer_key,
			.remote_addr = l->peer_va + k * CM_MESSAGE_LEN,
		};

		if (l->hello.plan == CM_PLAN_BAD_KEY)
			write.rkey ^= 0x55500;
		sim_cm_data_post(l, &write, k, len);
	}
	sim_cm_data_post(l, &(struct send_wr){ .wr_id = WR_ID(l, k), .opcode = WR_SEND }, k, len);
	l->posted++;
	l->next_at = s->now + sim_below(s, (uint32_t)l->pace);
}

/* --- from the peer --- */

static void
cm_data_compare(struct cm_life *l, unsigned int k, const uint8_t *want, uint32_t len,
	const uint8_t *got, const char *how)
{
	if (memcmp(want, got, len) != 0)
		sim_fail(l->side->node->sim, "node %u, life %u: message %u, %s, is not its peer's",
			l->side->node->id, l->index, k, how);
}

static void
cm_data_received(struct cm_life *l, const struct wc *wc)
{
	struct sim *s = l->side->node->sim;
	unsigned int k = wc->wr_id & 0x7F;
	uint8_t want[CM_MESSAGE_LEN];
	uint32_t len;

	if (l->peer == NULL || wc->qp_num != l->qpn || k != l->got || k >= l->hello.count) {
		sim_fail(s,
			"node %u, life %u: message %u when %u were received, on QP 0x%x of 0x%x",
			l->side->node->id, l->index, k, l->got, wc->qp_num, l->qpn);
		return;
	}
	len = message(l->peer->nonce, k, want);
	if (wc->byte_len != len)
		sim_fail(s, "node %u, life %u: message %u of %u bytes has %u", l->side->node->id,
			l->index, k, len, wc->byte_len);
	cm_data_compare(l, k, want, len, area(l, 1, k), "sent");
	if (WRITES(k))
		cm_data_compare(l, k, want, len, area(l, 2, k), "written");
	l->got++;
	l->progress_at = s->now;
}

/* Fail unless the transfer may fail: the peer is gone, or faults are planned. */
static void
cm_data_failed(struct cm_life *l, const struct wc *wc)
{
	struct sim *s = l->side->node->sim;
	const struct cm_life *p = l->peer;

	coverage_status(s->coverage, wc->status);
	if (wc->status == WC_WR_FLUSH_ERR)
		return;
	l->broken = true;
	if (l->clean && l->hello.plan <= CM_PLAN_LATE_ACCEPT && !l->ended && p != NULL &&
		p->established && !p->ended && !p->disconnecting)
		sim_fail(s, "node %u, life %u: message %u fails with %s though both are there",
			l->side->node->id, l->index, (unsigned int)(wc->wr_id & 0x7F),
			wc_status_name(wc->status));
}

static void
completed(struct cm_side *side, const struct wc *wc, bool recv)
{
	struct sim *s = side->node->sim;
	struct cm_life *l = side->script->lives[wc->wr_id >> 8];

	if (l->side != side || l->birth != side->birth || !l->prepared) {
		sim_fail(s, "node %u: a completion of another life's", side->node->id);
		return;
	}
	if (l->released)
		return; /* another connection may use its memory already */
	if (wc->status != WC_SUCCESS)
		cm_data_failed(l, wc);
	else if (recv)
		cm_data_received(l, wc);
	else if (!(wc->wr_id & WR_WRITE)) {
		l->done++;
		l->progress_at = s->now;
	}
}

void
cm_data_poll(struct cm_side *side)
{
	struct wc wc;

	while (rc_cq_poll(side->node->dev, side->recv_cq, &wc, 1) == 1)
		completed(side, &wc, true);
	while (rc_cq_poll(side->node->dev, side->send_cq, &wc, 1) == 1)
		completed(side, &wc, false);
}

bool
cm_data_complete(const struct cm_life *l)
{
	return l->got == l->hello.count;
}
