/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Users of connections, their actions, and the peer that the test acts as. */

#include <stdio.h>
#include <string.h>

#include "world.h"
#include "../wire/build.h"

#define RECV_WRS 4

/* --- users --- */

static struct life *
life_new(struct node *n)
{
	struct life *l = &n->lives[n->num_lives++ % WORLD_LIVES];

	*l = (struct life){ .node = n };
	return l;
}

struct life *
life_of(struct node *n, unsigned int i)
{
	assert_true(i < n->num_lives && n->num_lives <= WORLD_LIVES);
	return &n->lives[i];
}

struct life *
last_life(struct node *n)
{
	assert_true(n->num_lives > 0);
	return &n->lives[(n->num_lives - 1) % WORLD_LIVES];
}

static void
world_act_note(struct life *l, const char *what)
{
	size_t used = strlen(l->log);

	snprintf(l->log + used, sizeof(l->log) - used, "%s%s", used != 0 ? " " : "", what);
}

static uint16_t
user_request(void *listener, const struct cm_request *req, struct cm_conn_param *param, void **user)
{
	struct node *n = listener;
	struct life *l;

	n->requests++;
	n->request = *req;
	memcpy(n->request_private, req->private_data, req->private_len);
	*param = n->param;
	if (n->answer != 0 && n->answer != CM_LATER)
		return n->answer;
	l = life_new(n);
	l->id = req->id;
	world_act_note(l, "request");
	*user = l;
	return n->answer;
}

static int
user_prepare(void *user, cm_id id, uint32_t qpn)
{
	struct life *l = user;
	struct node *n = l->node;
	struct sge sge = { n->va, 64, n->key };
	struct recv_wr wr = { .num_sge = 1, .sg_list = &sge };
	unsigned int i;

	world_act_note(l, "prepare");
	l->id = id;
	l->qpn = qpn;
	assert_int_equal(qp_state_of(n, qpn), QPS_INIT);
	for (i = 0; i < RECV_WRS; i++)
		assert_int_equal(rc_post_recv(n->rc, qpn, &wr, NULL), 0);
	return n->prepare_error;
}

static void
world_act_take(struct life *l, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	l->info = *info;
	l->private_len = len;
	if (len != 0)
		memcpy(l->private_data, data, len);
}

static void
user_established(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	struct life *l = user;

	world_act_note(l, "established");
	world_act_take(l, info, data, len);
	l->node->established++;
	if (l->node->on_established != NULL)
		l->node->on_established(l);
}

/* Of a user with a QP of its own, which no test here creates. */
static void
user_responded(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	struct life *l = user;

	world_act_note(l, "responded");
	world_act_take(l, info, data, len);
}

static void
user_ended(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	static const char *const ends[CM_END_COUNT] = { "disconnected", "rejected", "refused",
		"timeout", "stale", "qp error", "cancelled" };
	struct life *l = user;

	world_act_note(l, ends[info->end]);
	world_act_take(l, info, data, len);
	l->node->ended++;
	if (info->qpn != 0 && l->qpn == info->qpn)
		assert_int_equal(qp_state_of(l->node, info->qpn), QPS_ERR);
	if (l->node->on_ended != NULL)
		l->node->on_ended(l);
}

static void
user_released(void *user)
{
	struct life *l = user;

	world_act_note(l, "released");
	l->node->released++;
}

static bool
user_admits(void *listener, const struct cm_request *req)
{
	const struct node *n = listener;

	return n->barred_net == 0 || req->path.av.dgid.raw[14] != n->barred_net;
}

const struct cm_user world_user = {
	.name = "test",
	.admits = user_admits,
	.request = user_request,
	.prepare = user_prepare,
	.responded = user_responded,
	.established = user_established,
	.ended = user_ended,
	.released = user_released,
};

/* --- actions of users --- */

struct av
world_av(const struct node *from)
{
	uint8_t self = from == &from->world->a ? 1 : 2, other = 3 - self;
	struct av av = {
		.encap = from->world->ib ? ENCAP_IB : ENCAP_ROCEV2_IPV4,
		.vlan = PATH_NO_VLAN,
		.sgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = self },
		.dgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = other },
		.smac = { 2, 0, 0, 0, 0, self },
		.dmac = { 2, 0, 0, 0, 0, other },
		.slid = self,
		.dlid = other,
	};

	if (from->world->ib) {
		put_be64(av.sgid.raw, UINT64_C(0xFE80000000000000));
		put_be64(av.sgid.raw + 8, self == 1 ? GUID_A : GUID_B);
		put_be64(av.dgid.raw, UINT64_C(0xFE80000000000000));
		put_be64(av.dgid.raw + 8, self == 1 ? GUID_B : GUID_A);
	}
	return av;
}

void
world_param(const struct node *n, struct cm_conn_param *p)
{
	*p = (struct cm_conn_param){
		.qp = {
			.qp_type = QPT_RC,
			.pd = n->pd,
			.send_cq = n->send_cq,
			.recv_cq = n->recv_cq,
			.srq = RC_NO_SRQ,
			.cap = { .max_send_wr = 4, .max_recv_wr = RECV_WRS, .max_send_sge = 1,
				.max_recv_sge = 1, },
		},
		.access = MEM_ACCESS_REMOTE_WRITE,
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.min_rnr_timer = 12,
	};
}

void
connect_init(struct node *n, struct cm_connect *c)
{
	struct av av = world_av(n);

	*c = (struct cm_connect){
		.service_id = WORLD_SERVICE,
		.path = { .av = av, .neighbour = PATH_NO_NEIGHBOUR, .pkey = 0xFFFF, .mtu = 1024,
			.packet_life = 14, .present = true, },
		.rdma = { .present = true, .src_port = 4711, .src = av.sgid, .dst = av.dgid },
		.ops = &world_user,
	};
	world_param(n, &c->param);
}

struct life *
start(struct node *n)
{
	struct error err = { "" };
	struct cm_connect c;
	struct life *l = life_new(n);

	connect_init(n, &c);
	c.user = l;
	if (cm_connect(n->cm, &c, n->world->now, &l->id, &err) != 0)
		fail_msg("%s", err.text);
	run(n);
	return l;
}

void
establish(struct world *w, struct life **a, struct life **b)
{
	*a = start(&w->a);
	exchange(w);
	*b = last_life(&w->b);
	expect_state(&w->a, (*a)->id, CM_STATE_ESTABLISHED);
	expect_state(&w->b, (*b)->id, CM_STATE_ESTABLISHED);
	skip_messages(&w->a);
	skip_messages(&w->b);
}

int
disconnect(struct life *l)
{
	int ret = cm_disconnect(l->node->cm, l->id, NULL, 0, l->node->world->now);

	run(l->node);
	return ret;
}

void
send_data(struct life *l)
{
	struct sge sge = { l->node->va, 64, l->node->key };
	struct send_wr wr = {
		.opcode = WR_SEND,
		.send_flags = SEND_SIGNALED,
		.num_sge = 1,
		.sg_list = &sge,
	};
	struct error err = { "" };

	if (rc_post_send(l->node->rc, l->qpn, &wr, &err) != 0)
		fail_msg("%s", err.text);
	run(l->node);
}

unsigned int
received(struct node *n)
{
	unsigned int count = 0;
	struct wc wc;

	while (rc_cq_poll(n->dev, n->recv_cq, &wc, 1) == 1)
		count += wc.status == WC_SUCCESS;
	return count;
}

/* --- the test acts as b --- */

static void
peer_mad(struct world *w, const struct av *av, const uint8_t *mad)
{
	const struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = MAD_QKEY,
		.src_qpn = 1,
	};
	struct frame f = { .len = 0 };
	struct packet pkt;
	struct path path;
	uint32_t at;

	path_init(&path, av, 1, 1);
	at = path.header_len + wire_build(f.bytes + path.header_len, &h);
	memcpy(f.bytes + at, mad, MAD_LEN);
	f.len = path_finish(&path, f.bytes + path.header_len, at + MAD_LEN - path.header_len, 0);
	world_parse(&w->b, &f, &pkt);
	mad_receive(w->a.mad, &pkt, w->now);
	run(&w->a);
}

void
peer_say_raw(struct world *w, const uint8_t *mad)
{
	struct av av = world_av(&w->b);

	peer_mad(w, &av, mad);
}

void
peer_say(struct world *w, const struct cm_msg *m)
{
	uint8_t mad[MAD_LEN];

	cm_msg_encode(m, mad);
	peer_say_raw(w, mad);
}

void
peer_say_from(struct world *w, const struct cm_msg *m, uint8_t host)
{
	struct av av = world_av(&w->b);
	uint8_t mad[MAD_LEN];

	av.sgid.raw[15] = host;
	av.slid = host;
	cm_msg_encode(m, mad);
	peer_mad(w, &av, mad);
}

void
peer_say_as(struct world *w, const struct cm_msg *m, const union gid *sgid)
{
	struct av av = world_av(&w->b);
	uint8_t mad[MAD_LEN];

	av.sgid = *sgid;
	cm_msg_encode(m, mad);
	peer_mad(w, &av, mad);
}

void
peer_req(struct world *w, struct cm_msg *m)
{
	static uint8_t private_data[CM_RDMA_LEN];
	struct av av = world_av(&w->b);
	const struct cm_rdma rdma = {
		.present = true,
		.src_port = 4711,
		.src = av.sgid,
		.dst = av.dgid,
	};

	cm_rdma_encode(&rdma, private_data);
	*m = (struct cm_msg){
		.type = CM_REQ,
		.tid = PEER_TID,
		.local_id = PEER_ID,
		.req = {
			.service_id = WORLD_SERVICE,
			.ca_guid = GUID_B,
			.qpn = PEER_QPN,
			.responder_resources = 3,
			.initiator_depth = 2,
			.remote_response_timeout = 20,
			.psn = PEER_PSN,
			.local_response_timeout = 20,
			.retry_count = 6,
			.pkey = 0xFFFF,
			.mtu = 3,
			.rnr_retry_count = 5,
			.max_cm_retries = 15,
			.primary = {
				.local_lid = w->ib ? 2 : 0xFFFF,
				.remote_lid = w->ib ? 1 : 0xFFFF,
				.local_gid = av.sgid,
				.remote_gid = av.dgid,
				.hop_limit = 64,
				.subnet_local = w->ib,
				.ack_timeout = 19,
			},
		},
		.private_data = private_data,
		.private_len = CM_RDMA_LEN,
	};
}

void
peer_rep(struct world *w, struct cm_msg *m, const struct cm_msg *req)
{
	(void)w;
	*m = (struct cm_msg){
		.type = CM_REP,
		.tid = req->tid,
		.local_id = PEER_ID,
		.remote_id = req->local_id,
		.rep = {
			.qpn = PEER_QPN,
			.psn = PEER_PSN,
			.responder_resources = 3,
			.initiator_depth = 2,
			.target_ack_delay = 15,
			.rnr_retry_count = 5,
			.ca_guid = GUID_B,
		},
	};
}

void
peer_answer(struct world *w, enum cm_message type, cm_id ours)
{
	const struct cm_msg m = {
		.type = type,
		.tid = PEER_TID,
		.local_id = PEER_ID,
		.remote_id = ours,
	};

	peer_say(w, &m);
}

void
peer_rej(struct world *w, cm_id ours, uint32_t theirs, uint16_t reason)
{
	const struct cm_msg m = {
		.type = CM_REJ,
		.tid = PEER_TID,
		.local_id = theirs,
		.remote_id = ours,
		.rej = { .answers = CM_ANSWERS_REQ, .reason = reason },
	};

	peer_say(w, &m);
}

void
peer_dreq(struct world *w, cm_id ours, uint32_t theirs, uint32_t qpn)
{
	const struct cm_msg m = {
		.type = CM_DREQ,
		.tid = PEER_TID + 1,
		.local_id = theirs,
		.remote_id = ours,
		.dreq = { .qpn = qpn },
	};

	peer_say(w, &m);
}
