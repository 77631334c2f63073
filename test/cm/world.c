/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define RECV_WRS 4

/* --- the wire --- */

static struct frame *
frame_at(const struct node *n, uint64_t i)
{
	return &n->frames[i % WORLD_FRAMES];
}

static void
parse(const struct node *from, const struct frame *f, struct packet *pkt)
{
	enum encap encap = from->world->ib ? ENCAP_IB : ENCAP_ROCEV2_IPV4;
	enum verdict why;

	if (!wire_parse(encap, f->bytes + 14, f->len - 14, pkt, &why))
		fail_msg("%s", verdict_infos[why].name);
	pkt->port = 0;
	pkt->rx_time = from->world->now;
	pkt->mbuf = NULL;
	pkt->smac = f->bytes + 6;
}

static uint8_t *
sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct node *n = (struct node *)sink;
	struct frame *f = frame_at(n, n->sent);

	if (n->room == 0)
		return NULL;
	assert_true(path->header_len + len + path->trailer_len <= sizeof(f->bytes));
	n->path = path;
	n->reserved = len;
	return f->bytes + path->header_len;
}

/* The CM message of a packet. */
static bool
is_cm(const struct packet *pkt)
{
	return pkt->dest_qpn == 1 && pkt->payload_len == MAD_LEN &&
		pkt->payload[MAD_OFF_CLASS] == CM_CLASS &&
		pkt->payload[MAD_OFF_METHOD] == MAD_SEND;
}

static bool
is_lost(struct node *n, const struct packet *pkt)
{
	unsigned int i;

	if (!is_cm(pkt))
		return n->lose_data && pkt->dest_qpn != 1;
	for (i = 0; i < n->num_lose; i++) {
		if (n->lose[i] == get_be16(pkt->payload + MAD_OFF_ATTRIBUTE)) {
			n->lose[i] = n->lose[--n->num_lose];
			return true;
		}
	}
	return false;
}

static void
sink_commit(struct tx_sink *sink)
{
	struct node *n = (struct node *)sink;
	struct frame *f = frame_at(n, n->sent);
	struct packet pkt;

	n->room--;
	f->len = path_finish(n->path, f->bytes + n->path->header_len, n->reserved, 0);
	n->sent++;
	parse(n, f, &pkt);
	f->lost = is_lost(n, &pkt);
}

static void
arrive(struct node *to, const struct packet *pkt)
{
	if (to->cm == NULL || to->deaf)
		return;
	if (pkt->dest_qpn == 1)
		mad_receive(to->mad, pkt, to->world->now);
	else
		rc_receive(to->rc, pkt, to->world->now);
}

void
deliver(struct node *n)
{
	struct packet pkt;
	struct frame *f;

	assert_true(n->sent - n->delivered < WORLD_FRAMES);
	while (n->delivered < n->sent) {
		f = frame_at(n, n->delivered++);
		if (f->lost)
			continue;
		parse(n, f, &pkt);
		arrive(n->peer, &pkt);
		if (n->twice && is_cm(&pkt))
			arrive(n->peer, &pkt);
	}
}

void
run(struct node *n)
{
	uint64_t now = n->world->now;
	unsigned int done;

	if (n->cm == NULL)
		return;
	do {
		/* a NAK is on its way before the DREQ that follows from it */
		done = rc_run(n->rc, now, 64);
		done += mad_run(n->mad, now, 64);
		done += cm_run(n->cm, now, 64);
		if (n->work != NULL)
			done += n->work(n);
	} while (done != 0);
}

void
exchange(struct world *w)
{
	do {
		run(&w->a);
		run(&w->b);
		deliver(&w->a);
		deliver(&w->b);
		run(&w->a);
		run(&w->b);
	} while (w->a.delivered < w->a.sent || w->b.delivered < w->b.sent);
}

void
pass_alone(struct world *w, uint64_t ns)
{
	w->now += ns;
	timer_wheel_run(w->a.wheel, w->now);
	if (w->b.cm != NULL)
		timer_wheel_run(w->b.wheel, w->now);
	run(&w->a);
	run(&w->b);
}

void
pass(struct world *w, uint64_t ns)
{
	pass_alone(w, ns);
	exchange(w);
}

void
lose(struct node *n, enum cm_message type)
{
	assert_true(n->num_lose < 16);
	n->lose[n->num_lose++] = cm_msg_layouts[type].attribute;
}

/* --- expectations --- */

/* The next CM message of n, or false. */
static bool
next_cm(struct node *n, struct cm_msg *m)
{
	struct packet pkt;

	while (n->seen < n->sent) {
		parse(n, frame_at(n, n->seen++), &pkt);
		if (!is_cm(&pkt))
			continue;
		assert_int_equal(cm_msg_decode(pkt.payload, m), 0);
		return true;
	}
	return false;
}

void
expect_sent(struct node *n, const char *first, ...)
{
	struct cm_msg m;
	const char *want;
	va_list ap;

	va_start(ap, first);
	for (want = first; want != NULL; want = va_arg(ap, const char *)) {
		if (!next_cm(n, &m))
			fail_msg("expected \"%s\", nothing was sent", want);
		assert_string_equal(cm_message_name(m.type), want);
	}
	va_end(ap);
	if (next_cm(n, &m))
		fail_msg("\"%s\" was sent, nothing expected", cm_message_name(m.type));
}

struct cm_msg
next_message(struct node *n, enum cm_message type)
{
	struct cm_msg m;

	if (!next_cm(n, &m))
		fail_msg("expected \"%s\", nothing was sent", cm_message_name(type));
	assert_string_equal(cm_message_name(m.type), cm_message_name(type));
	return m;
}

void
skip_messages(struct node *n)
{
	n->seen = n->sent;
}

void
expect_state(const struct node *n, cm_id id, enum cm_state state)
{
	struct cm_info info;

	assert_true(cm_get(n->cm, id, n->world->now, &info));
	assert_string_equal(cm_state_name(info.state), cm_state_name(state));
}

void
expect_gone(const struct node *n, cm_id id)
{
	struct cm_info info;

	assert_false(cm_get(n->cm, id, n->world->now, &info));
}

void
expect_log(const struct life *l, const char *log)
{
	assert_string_equal(l->log, log);
}

unsigned int
count_qps(const struct node *n)
{
	uint32_t cursor = 0, qpn;
	unsigned int count = 0;

	while (rc_qp_next(n->rc, &cursor, &qpn))
		count++;
	return count;
}

unsigned int
count_conns(const struct node *n)
{
	struct cm_info info;
	uint32_t cursor = 0;
	unsigned int count = 0;

	while (cm_next(n->cm, &cursor, n->world->now, &info))
		count++;
	return count;
}

void
expect_nothing_left(struct node *n)
{
	assert_int_equal(count_conns(n), 0);
	assert_int_equal(count_qps(n), 0);
	assert_false(cm_pending(n->cm));
}

enum qp_state
qp_state_of(const struct node *n, uint32_t qpn)
{
	struct rc_qp_info info;

	assert_int_equal(rc_qp_query(n->rc, qpn, &info), 0);
	return info.attr.qp_state;
}

struct cm_counters
counters_of(const struct node *n)
{
	return *cm_counters(n->cm);
}

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
note(struct life *l, const char *what)
{
	size_t used = strlen(l->log);

	snprintf(l->log + used, sizeof(l->log) - used, "%s%s", used != 0 ? " " : "", what);
}

static uint16_t
user_request(void *listener, const struct cm_request *req, struct cm_conn_param *param,
	void **user)
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
	note(l, "request");
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

	note(l, "prepare");
	l->id = id;
	l->qpn = qpn;
	assert_int_equal(qp_state_of(n, qpn), QPS_INIT);
	for (i = 0; i < RECV_WRS; i++)
		assert_int_equal(rc_post_recv(n->rc, qpn, &wr, NULL), 0);
	return n->prepare_error;
}

static void
take(struct life *l, const struct cm_info *info, const uint8_t *data, uint8_t len)
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

	note(l, "established");
	take(l, info, data, len);
	l->node->established++;
	if (l->node->on_established != NULL)
		l->node->on_established(l);
}

static void
user_ended(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	static const char *const ends[CM_END_COUNT] = { "disconnected", "rejected", "refused",
		"timeout", "stale", "qp error", "cancelled" };
	struct life *l = user;

	note(l, ends[info->end]);
	take(l, info, data, len);
	l->node->ended++;
	if (info->qpn != 0)
		assert_int_equal(qp_state_of(l->node, info->qpn), QPS_ERR);
	if (l->node->on_ended != NULL)
		l->node->on_ended(l);
}

static void
user_released(void *user)
{
	struct life *l = user;

	note(l, "released");
	l->node->released++;
}

const struct cm_user world_user = {
	.name = "test",
	.request = user_request,
	.prepare = user_prepare,
	.established = user_established,
	.ended = user_ended,
	.released = user_released,
};

/* --- acts --- */

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

static void
param_init(const struct node *n, struct cm_conn_param *p)
{
	*p = (struct cm_conn_param){
		.qp = {
			.qp_type = QPT_RC,
			.pd = n->pd,
			.send_cq = n->send_cq,
			.recv_cq = n->recv_cq,
			.srq = RC_NO_SRQ,
			.cap = { .max_send_wr = 4, .max_recv_wr = RECV_WRS, .max_send_sge = 1,
				.max_recv_sge = 1 },
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
			.packet_life = 14, .present = true },
		.rdma = { .present = true, .src_port = 4711, .src = av.sgid, .dst = av.dgid },
		.ops = &world_user,
	};
	param_init(n, &c->param);
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
	struct send_wr wr = { .opcode = WR_SEND, .send_flags = SEND_SIGNALED, .num_sge = 1,
		.sg_list = &sge };
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

/* --- b, played by the test --- */

static void
peer_mad(struct world *w, const struct av *av, const uint8_t *mad)
{
	const struct wire_headers h = { .opcode = UD_SEND_ONLY, .pkey = 0xFFFF, .dest_qpn = 1,
		.qkey = MAD_QKEY, .src_qpn = 1 };
	struct frame f = { .len = 0 };
	struct packet pkt;
	struct path path;
	uint32_t at;

	path_init(&path, av, 1, 1);
	at = path.header_len + wire_build(f.bytes + path.header_len, &h);
	memcpy(f.bytes + at, mad, MAD_LEN);
	f.len = path_finish(&path, f.bytes + path.header_len, at + MAD_LEN - path.header_len, 0);
	parse(&w->b, &f, &pkt);
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
peer_req(struct world *w, struct cm_msg *m)
{
	static uint8_t private_data[CM_RDMA_LEN];
	struct av av = world_av(&w->b);
	const struct cm_rdma rdma = { .present = true, .src_port = 4711, .src = av.sgid,
		.dst = av.dgid };

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
	const struct cm_msg m = { .type = type, .tid = PEER_TID, .local_id = PEER_ID,
		.remote_id = ours };

	peer_say(w, &m);
}

void
peer_rej(struct world *w, cm_id ours, uint32_t theirs, uint16_t reason)
{
	const struct cm_msg m = { .type = CM_REJ, .tid = PEER_TID, .local_id = theirs,
		.remote_id = ours, .rej = { .answers = CM_ANSWERS_REQ, .reason = reason } };

	peer_say(w, &m);
}

void
peer_dreq(struct world *w, cm_id ours, uint32_t theirs, uint32_t qpn)
{
	const struct cm_msg m = { .type = CM_DREQ, .tid = PEER_TID + 1, .local_id = theirs,
		.remote_id = ours, .dreq = { .qpn = qpn } };

	peer_say(w, &m);
}

/* --- set-up --- */

static const struct port_attr *
get_port(void *arg, uint16_t port)
{
	struct node *n = arg;

	return port == 0 ? &n->port : NULL;
}

static void
take_event(void *arg, const struct event *ev)
{
	struct node *n = arg;

	if (n->cm != NULL)
		cm_qp_event(n->cm, ev);
}

static void
node_port(struct node *n)
{
	struct av av = world_av(n);
	unsigned int i;

	n->port = (struct port_attr){
		.mtu = 1500,
		.active_mtu = 1024,
		.vlan = PATH_NO_VLAN,
		.up = true,
		.ib = n->world->ib,
		.subnet_timeout = 14,
		.num_gids = 1,
		.num_pkeys = 1,
		.pkey = { 0xFFFF },
		.state = PORT_STATE_ACTIVE,
		.lid = av.slid,
		.guid = n->guid,
	};
	n->port.gid[0].gid = av.sgid;
	n->port.gid[0].type = n->world->ib ? GID_IB : GID_ROCEV2;
	memcpy(n->port.mac, av.smac, sizeof(av.smac));
	for (i = 8; i < PORT_SLS; i++)
		n->port.sl_to_vl[i] = 15;
}

static void
node_memory(struct node *n)
{
	struct mem_config mc = { .max_pd = 16, .max_mr = 16, .max_mw = 64,
		.alloc = &allocator_malloc, .rng = &rng_kernel };
	struct mem_mr_attr mr = { .access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE,
		.length = WORLD_MEM, .va = n->va, .backing = MEM_EXTERNAL, .numa_node = -1 };
	struct mem_mr_info info;
	struct error err = { "" };

	n->mem = mem_create(&mc);
	assert_non_null(n->mem);
	assert_int_equal(mem_pd_alloc(n->mem, &n->pd, &err), 0);
	mr.pd = n->pd;
	mr.base = n->bytes;
	if (mem_mr_register(n->mem, &mr, &info, &err) != 0)
		fail_msg("%s", err.text);
	n->key = info.key;
}

static void
node_rc(struct node *n)
{
	struct rc_dev_config dc = { .limits = rc_limits_default, .workers = 1, .hz = 1000000000,
		.alloc = &allocator_malloc, .rng = &rng_kernel, .mem = n->mem };
	struct rc_worker_config wc = { .wheel = n->wheel, .tx = &n->sink, .event = take_event,
		.event_arg = n };
	struct error err = { "" };

	dc.limits.max_qp = n->world->max_qp;
	dc.limits.quarantine = 0;
	dc.limits.window = 16;
	dc.limits.max_rd_atomic = n->world->limits.max_rd_atomic;
	n->dev = rc_dev_create(&dc);
	assert_non_null(n->dev);
	n->rc = rc_worker_create(n->dev, &wc);
	assert_non_null(n->rc);
	assert_int_equal(rc_cq_create(n->dev, 65536, &n->send_cq, &err), 0);
	assert_int_equal(rc_cq_create(n->dev, 65536, &n->recv_cq, &err), 0);
}

static void
node_create(struct node *n)
{
	struct mad_worker_config mc = { .workers = 1, .hash_key = 0x5EC4E7, .hz = 1000000000,
		.alloc = &allocator_malloc, .rng = &rng_kernel, .tx = &n->sink, .port = get_port,
		.port_arg = n, .limits = mad_limits_default };
	struct cm_config cc = { .workers = 1, .hz = 1000000000, .hash_key = 0x5EC4E8,
		.alloc = &allocator_malloc, .rng = &rng_kernel, .ca_guid = n->guid,
		.port = get_port, .port_arg = n, .limits = n->world->limits };

	n->wheel = timer_wheel_create(&allocator_malloc, 1 << 16, 0);
	node_memory(n);
	node_rc(n);
	mc.limits.max_sessions = 64;
	mc.limits.max_sessions_per_peer = 32;
	mc.limits.max_bytes = 1 << 20;
	mc.wheel = n->wheel;
	n->mad = mad_worker_create(&mc);
	assert_non_null(n->mad);
	cc.wheel = n->wheel;
	cc.mad = n->mad;
	cc.rc = n->rc;
	n->cm = cm_create(&cc);
	assert_non_null(n->cm);
	param_init(n, &n->param);
	assert_int_equal(cm_listen(n->cm, WORLD_SERVICE, UINT64_MAX, &world_user, n), 0);
}

static void
node_destroy(struct node *n)
{
	free(n->frames);
	if (n->cm == NULL)
		return;
	cm_destroy(n->cm);
	n->cm = NULL;
	if (n->leave != NULL)
		n->leave(n);
	mad_worker_destroy(n->mad);
	rc_worker_destroy(n->rc);
	rc_dev_destroy(n->dev);
	mem_destroy(n->mem);
	timer_wheel_destroy(n->wheel);
}

struct world *
world_create(const struct world *like)
{
	struct world *w = calloc(1, sizeof(*w));
	struct node *n;

	assert_non_null(w);
	*w = *like;
	if (w->limits.max_connections == 0) {
		w->limits = cm_limits_default;
		w->limits.max_connections = 256;
	}
	if (w->max_qp == 0)
		w->max_qp = 256;
	for (n = &w->a; n <= &w->b; n++) {
		n->sink = (struct tx_sink){ sink_reserve, sink_commit };
		n->world = w;
		n->peer = n == &w->a ? &w->b : &w->a;
		n->guid = n == &w->a ? GUID_A : GUID_B;
		n->room = UINT32_MAX;
		n->va = n == &w->a ? 0x100000000 : 0x200000000;
		n->frames = calloc(WORLD_FRAMES, sizeof(*n->frames));
		assert_non_null(n->frames);
		node_port(n);
		if (n == &w->a || !w->scripted)
			node_create(n);
	}
	return w;
}

void
world_destroy(struct world *w)
{
	node_destroy(&w->a);
	node_destroy(&w->b);
	free(w);
}

int
world_setup(void **state)
{
	static const struct world plain;

	*state = world_create(&plain);
	return 0;
}

int
world_setup_ib(void **state)
{
	static const struct world ib = { .ib = true };

	*state = world_create(&ib);
	return 0;
}

int
scripted_setup(void **state)
{
	static const struct world scripted = { .scripted = true };

	*state = world_create(&scripted);
	return 0;
}

int
world_teardown(void **state)
{
	if (*state != NULL)
		world_destroy(*state);
	return 0;
}
