/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz the communication manager with calls and MADs. The input is a list of records {flags, what,
 * pause, length, bytes}. With RECORD_ANSWER the MAD begins as an answer to one that the manager
 * sent, and the bytes change it. At the end every connection has ended, every user had ended() and
 * released() once, and no QP is left.
 */

#include <string.h>

#include "cm_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_ANSWER    0x01 /* the bytes change an answer; else they change a zero MAD */
#define RECORD_STRANGER  0x02 /* from a third address */
#define RECORD_CONNECT   0x04 /* this bit and the next three: a call before the MAD */
#define RECORD_DECIDE    0x08
#define RECORD_ALTERNATE 0x10
#define RECORD_EVENT     0x20
#define RECORD_STALL     0x40 /* the sink is full during this record */
#define RECORD_HEADER    0x80 /* set valid base version, class, class version and method */

/* --- MADs that fit a connection --- */

static void
fit_path(struct cm_msg_path *p, const struct av *av)
{
	p->local_gid = av->sgid;
	p->remote_gid = av->dgid;
	p->local_lid = p->remote_lid = 0xFFFF;
	p->hop_limit = 64;
	p->ack_timeout = 14;
}

static void
fit_req(struct cm_msg *m, uint8_t what)
{
	struct av av = av_from(2, 1);

	m->local_id = 0x1000u + what;
	m->remote_id = 0;
	m->tid = 0x2000u + what;
	m->req.service_id = b.mood & 8 ? PLAIN : SERVICE;
	m->req.ca_guid = 0x0200000000000002;
	m->req.qpn = 0x100u + what;
	m->req.mtu = 3;
	m->req.pkey = 0xFFFF;
	m->req.retry_count = 7;
	m->req.max_cm_retries = 3;
	m->req.remote_response_timeout = m->req.local_response_timeout = 10;
	m->req.responder_resources = m->req.initiator_depth = 4;
	fit_path(&m->req.primary, &av);
	if (b.mood & 4) {
		av = av_from(3, 1);
		fit_path(&m->req.alternate, &av);
	}
}

/* QPN of the connection that a message of ours belongs to */
static uint32_t
qpn_of(uint32_t id)
{
	struct cm_info info;

	return cm_get(b.cm, id, b.now, &info) ? info.qpn : 0;
}

/* Make a message of a peer that answers one of our last messages, or a REQ. */
static void
fit(uint8_t *mad, uint8_t what)
{
	uint8_t header[CM_RDMA_LEN];
	struct cm_msg ours = { 0 }, m = { .type = (enum cm_message)(what % CM_MESSAGES) };
	struct av av = av_from(2, 1);
	struct cm_rdma rdma = { .src_port = 0x8001, .src = av.sgid, .dst = av.dgid };

	if (b.num_sent > 0)
		cm_msg_decode(b.sent[(b.num_sent - 1 - what / CM_MESSAGES % SENT) % SENT], &ours);
	m.tid = ours.tid;
	m.local_id = ours.remote_id != 0 ? ours.remote_id : 0x3000u + what;
	m.remote_id = ours.local_id;
	switch (m.type) {
	case CM_REQ:
		fit_req(&m, what);
		/* fall through */
	case CM_SIDR_REQ:
		cm_rdma_encode(&rdma, header);
		m.private_data = header;
		m.private_len = sizeof(header);
		break;
	case CM_REP:
		m.rep.qpn = 0x200u + what;
		m.rep.ca_guid = 0x0200000000000002;
		m.rep.responder_resources = m.rep.initiator_depth = 4;
		break;
	case CM_DREQ:
		m.dreq.qpn = qpn_of(m.remote_id);
		break;
	case CM_LAP:
		m.lap.qpn = qpn_of(m.remote_id);
		fit_path(&m.lap.alternate, &av);
		break;
	case CM_MRA:
		m.mra.answers = ours.type == CM_REP ? CM_ANSWERS_REP : CM_ANSWERS_REQ;
		m.mra.service_timeout = 12;
		break;
	case CM_REJ:
		m.rej.answers = ours.type == CM_REP ? CM_ANSWERS_REP : CM_ANSWERS_REQ;
		m.rej.reason = CM_REJ_CONSUMER;
		break;
	default:
		break;
	}
	if (m.type == CM_SIDR_REQ)
		m.sidr_req = (struct cm_sidr_req){ what, 0xFFFF, b.mood & 8 ? PLAIN : SERVICE };
	cm_msg_encode(&m, mad);
}

/* --- calls --- */

/* Choose one of the connections. */
static bool
fuzz_cm_pick(uint8_t what, struct cm_info *info)
{
	unsigned int n = what % CONNS;
	uint32_t cursor = 0;
	bool any = false;

	while (cm_next(b.cm, &cursor, b.now, info)) {
		any = true;
		if (n-- == 0)
			break;
	}
	return any;
}

/* The user disconnects, or decides about a pending request. */
static void
fuzz_cm_decide(const struct cm_info *info)
{
	struct cm_conn_param param;

	fill_param(&param);
	if (info->state != CM_STATE_REQ_RCVD && info->state != CM_STATE_MRA_REQ_SENT)
		cm_disconnect(b.cm, info->id, NULL, 0, b.now);
	else if (b.mood & 8)
		cm_accept(b.cm, info->id, &param, b.now);
	else
		cm_refuse(b.cm, info->id, CM_REJ_CONSUMER, NULL, 0, b.now);
}

static struct cm_path
path_to(uint8_t to)
{
	return (struct cm_path){
		.av = av_from(1, to),
		.neighbour = PATH_NO_NEIGHBOUR,
		.pkey = 0xFFFF,
		.mtu = 1024,
		.packet_life = 8,
		.present = true,
	};
}

static void
fuzz_cm_make_call(uint8_t flags, uint8_t what)
{
	static const uint8_t events[] = { EVENT_COMM_EST, EVENT_PATH_MIG, EVENT_PATH_MIG_ERR,
		EVENT_QP_FATAL };
	struct cm_path alternate = path_to(3);
	struct cm_info info;
	cm_id id;

	if (flags & RECORD_CONNECT) {
		struct cm_connect c = {
			.service_id = SERVICE,
			.path = path_to(2),
			.ops = &user_ops,
			.rdma = { .present = what & 1 },
		};

		fill_param(&c.param);
		c.user = user_new();
		if (c.user != NULL && cm_connect(b.cm, &c, b.now, &id, NULL) != 0)
			((struct user *)c.user)->taken = false;
	}
	if (flags & RECORD_DECIDE && fuzz_cm_pick(what, &info))
		fuzz_cm_decide(&info);
	if (flags & RECORD_ALTERNATE && fuzz_cm_pick(what, &info))
		cm_load_alternate(b.cm, info.id, &alternate, b.now, NULL);
	if (flags & RECORD_EVENT && fuzz_cm_pick(what, &info))
		cm_qp_event(b.cm,
			&(struct event){
				.type = events[b.mood % 4],
				.element = info.qpn,
			});
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start();
	while (size >= 4) {
		uint8_t flags = data[0], what = data[1], mad[MAD_LEN] = { 0 };
		uint64_t pause = (uint64_t)data[2] * data[2] * MS / 4;
		size_t len = data[3] < size - 4 ? data[3] : size - 4;

		b.stall = flags & RECORD_STALL;
		b.mood = len > 0 ? data[4] : 0;
		fuzz_cm_make_call(flags, what);
		if (flags & RECORD_ANSWER)
			fit(mad, what);
		/* the first byte is the mood, the second says where the others go */
		for (size_t i = 2; i < len && data[5] + i - 2 < MAD_LEN; i++)
			mad[data[5] + i - 2] ^= data[4 + i];
		if (flags & RECORD_HEADER)
			memcpy(mad, "\x01\x07\x02\x03", 4);
		deliver(flags & RECORD_STRANGER ? 3 : 2, mad);
		run();
		pass(b.now + pause);
		data += 4 + len;
		size -= 4 + len;
	}
	finish();
	return 0;
}
