/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lan.h"

#define NEVER   UINT64_MAX
#define POLL_NS 100 /* least time between two polls of a worker */
#define TX_ROOM 512 /* frames that a node's transmit queue holds */
#define SEND_WR 256
#define RECV_WR 1024

static void
lan_die(const char *what)
{
	fprintf(stderr, "lan: %s\n", what);
	abort();
}

static uint64_t
min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* --- queues --- */

static uint32_t
lan_count(const struct lan_queue *q)
{
	return q->tail - q->head;
}

static struct lan_frame *
front(const struct lan_queue *q)
{
	return q->head == q->tail ? NULL : &q->frame[q->head & (q->size - 1)];
}

static uint64_t
next_at(const struct lan_queue *q)
{
	const struct lan_frame *f = front(q);

	return f != NULL ? f->at : NEVER;
}

static void
push(struct lan_queue *q, struct lan_frame f)
{
	struct lan_frame *old = q->frame;
	uint32_t i, size = q->size == 0 ? 1024 : 2 * q->size;

	if (lan_count(q) == q->size) {
		q->frame = calloc(size, sizeof(*q->frame));
		if (q->frame == NULL)
			lan_die("no memory");
		for (i = q->head; i != q->tail; i++)
			q->frame[i & (size - 1)] = old[i & (q->size - 1)];
		q->size = size;
		free(old);
	}
	q->frame[q->tail++ & (q->size - 1)] = f;
}

static struct lan_frame
pop(struct lan_queue *q)
{
	return q->frame[q->head++ & (q->size - 1)];
}

static void
clear(struct lan_queue *q)
{
	while (lan_count(q) > 0)
		free(pop(q).bytes);
	free(q->frame);
}

/* --- links and the switch --- */

static uint64_t
wire_time(const struct lan_link *l, uint32_t len)
{
	return ((uint64_t)len * l->ns_per_kb + 1023) / 1024;
}

/* Set CE, only in ECN-capable packets (RFC 3168), and update the IPv4 checksum. */
static bool
mark(uint8_t *frame)
{
	uint8_t *ip = frame + 14;
	uint32_t sum = 0;
	unsigned int i;

	if ((ip[1] & ECN_MASK) == 0)
		return false;
	ip[1] |= ECN_CE;
	ip[10] = ip[11] = 0;
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = ~((sum & 0xFFFF) + (sum >> 16)) & 0xFFFF;
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
	return true;
}

/* A frame has reached the switch: queue it for its node. */
static void
forward(struct lan *f, struct lan_frame frame)
{
	unsigned int to = frame.bytes[5] - 1u; /* last byte of the destination's MAC */
	struct lan_node *n = &f->node[to];
	struct lan_queue *q = &n->down;
	uint64_t at = frame.at, wait, bytes;

	if (to >= f->nodes)
		lan_die("a frame for nobody");
	wait = q->busy > at ? q->busy - at : 0;
	bytes = n->link.ns_per_kb == 0 ? 0 : wait * 1024 / n->link.ns_per_kb;
	if (n->link.drop != 0 && bytes + frame.len > n->link.drop) {
		n->dropped++;
		free(frame.bytes);
		return;
	}
	if (bytes > n->queue_max)
		n->queue_max = (uint32_t)bytes;
	if (n->link.mark != 0 && bytes > n->link.mark && mark(frame.bytes))
		n->marked++;
	q->busy = max(q->busy, at) + wire_time(&n->link, frame.len);
	frame.at = q->busy + f->delay;
	push(q, frame);
}

static void
lan_transmit(struct lan_node *n, const uint8_t *bytes, uint32_t len)
{
	struct lan_frame f = { .len = len, .bytes = malloc(len) };
	uint64_t now = n->lan->now + (n->busy > n->lan->now ? n->busy - n->lan->now : 0);

	if (f.bytes == NULL)
		lan_die("no memory");
	memcpy(f.bytes, bytes, len);
	n->up.busy = max(n->up.busy, now) + wire_time(&n->link, len);
	f.at = n->up.busy + n->lan->delay;
	push(&n->up, f);
}

/* --- a node --- */

static void
lan_work(struct lan_node *n, uint32_t payload)
{
	n->busy += n->packet_ns + (uint64_t)payload * n->kb_ns / 1024;
}

static uint8_t *
lan_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct lan_node *n = (struct lan_node *)sink;

	if (lan_count(&n->up) >= TX_ROOM)
		return NULL;
	n->path = path;
	n->reserved = len;
	return n->frame + PATH_HEADER_MAX;
}

static void
lan_commit(struct tx_sink *sink)
{
	struct lan_node *n = (struct lan_node *)sink;
	uint8_t *bth = n->frame + PATH_HEADER_MAX;
	uint32_t len = path_finish(n->path, bth, n->reserved, 0);

	lan_work(n, n->reserved);
	lan_transmit(n, bth - n->path->header_len, len);
}

static void
lan_take(struct lan_node *n, const struct lan_frame *f)
{
	struct packet pkt = { 0 };
	enum verdict v;

	if (!wire_parse(ENCAP_ROCEV2_IPV4, f->bytes + 14, f->len - 14, &pkt, &v))
		lan_die(verdict_infos[v].name);
	lan_work(n, pkt.payload_len);
	pkt.rx_time = n->lan->now;
	v = rc_receive(n->w, &pkt, n->lan->now);
	n->verdicts[v]++;
}

/* Move frames that have arrived since the last turn into the receive queue, as far as they fit. */
static void
lan_arrive(struct lan_node *n, uint64_t now)
{
	while (next_at(&n->down) <= now) {
		struct lan_frame f = pop(&n->down);

		if (n->rx_room != 0 && lan_count(&n->rx) >= n->rx_room) {
			free(f.bytes);
			n->dropped++;
		} else {
			push(&n->rx, f);
			n->arrived++;
		}
	}
}

static void
lan_poll(struct lan_node *n)
{
	uint64_t now = n->lan->now;
	unsigned int i;

	n->busy = now;
	lan_arrive(n, now);
	for (i = 0; i < LAN_BURST && lan_count(&n->rx) > 0; i++) {
		struct lan_frame f = pop(&n->rx);

		if (!n->mute)
			lan_take(n, &f);
		free(f.bytes);
	}
	timer_wheel_run(n->wheel, now);
	n->wake = NEVER;
	if (n->turn != NULL)
		n->turn(n, now);
	rc_run(n->w, now, LAN_BUDGET);
	timer_wheel_sent(n->wheel, now);
	n->busy = max(n->busy, now + POLL_NS);
}

static uint64_t
next_poll(const struct lan_node *n)
{
	uint64_t next = min(next_at(&n->down), n->wake);

	if (rc_pending(n->w) || lan_count(&n->rx) > 0)
		return n->busy;
	return max(n->busy, min(next, timer_wheel_next(n->wheel)));
}

void
lan_run(struct lan *f, uint64_t until)
{
	while (f->now < until) {
		struct lan_node *first = NULL;
		uint64_t at = until, t;
		bool frame = false;
		unsigned int i;

		for (i = 0; i < f->nodes; i++) {
			struct lan_node *n = &f->node[i];

			t = next_at(&n->up);
			if (t < at) {
				at = t;
				first = n;
				frame = true;
			}
			t = next_poll(n);
			if (t < at) {
				at = t;
				first = n;
				frame = false;
			}
		}
		f->now = max(f->now, at);
		if (first == NULL)
			return;
		if (frame)
			forward(f, pop(&first->up));
		else
			lan_poll(first);
	}
}

/* --- set-up --- */

static void
lan_node_create(struct lan *f, unsigned int id, const struct rc_limits *limits)
{
	struct lan_node *n = &f->node[id];
	struct mem_config mc = {
		.max_pd = 4,
		.max_mr = 16,
		.max_mw = 16,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_dev_config dc = {
		.limits = *limits,
		.workers = 1,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_worker_config wc = { .tx = &n->sink };
	struct mem_mr_attr mr = {
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE,
		.length = LAN_MEM,
		.va = LAN_VA,
		.backing = MEM_EXTERNAL,
		.numa_node = -1,
	};
	struct mem_mr_info info;

	n->lan = f;
	n->id = id;
	n->sink = (struct tx_sink){ lan_reserve, lan_commit, tx_send_in_parts };
	n->wake = NEVER;
	n->gid = (union gid){
		.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = (uint8_t)(id + 1) }
	};
	n->mem = mem_create(&mc);
	n->bytes = aligned_alloc(4096, LAN_MEM);
	n->wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	dc.mem = n->mem;
	wc.wheel = n->wheel;
	n->dev = rc_dev_create(&dc);
	if (n->mem == NULL || n->bytes == NULL || n->wheel == NULL || n->dev == NULL)
		lan_die("no memory");
	memset(n->bytes, 0, LAN_MEM);
	n->w = rc_worker_create(n->dev, &wc);
	if (n->w == NULL || mem_pd_alloc(n->mem, &n->pd, NULL) != 0 ||
		rc_cq_create(n->dev, 65536, &n->cq, NULL) != 0)
		lan_die("no memory");
	mr.pd = n->pd;
	mr.base = n->bytes;
	if (mem_mr_register(n->mem, &mr, &info, NULL) != 0)
		lan_die("no region");
	n->key = info.key;
}

struct lan *
lan_create(unsigned int nodes, const struct rc_limits *limits)
{
	struct lan *f = calloc(1, sizeof(*f));

	if (f == NULL)
		lan_die("no memory");
	f->now = 1000000;
	f->delay = 1000;
	for (f->nodes = 0; f->nodes < nodes; f->nodes++)
		lan_node_create(f, f->nodes, limits);
	return f;
}

void
lan_destroy(struct lan *f)
{
	unsigned int i;

	for (i = 0; i < f->nodes; i++) {
		struct lan_node *n = &f->node[i];

		rc_worker_destroy(n->w);
		rc_dev_destroy(n->dev);
		timer_wheel_destroy(n->wheel);
		mem_destroy(n->mem);
		free(n->bytes);
		clear(&n->up);
		clear(&n->down);
		clear(&n->rx);
	}
	free(f);
}

struct av
lan_av(const struct lan_node *from, const struct lan_node *to)
{
	return (struct av){
		.encap = ENCAP_ROCEV2_IPV4,
		.sgid = from->gid,
		.dgid = to->gid,
		.vlan = PATH_NO_VLAN,
		.smac = { 2, [5] = (uint8_t)(from->id + 1) },
		.dmac = { 2, [5] = (uint8_t)(to->id + 1) },
	};
}

static uint32_t
lan_create_qp(struct lan_node *n)
{
	struct qp_init_attr init = { .qp_type = QPT_RC, .pd = n->pd, .send_cq = n->cq,
		.recv_cq = n->cq, .srq = RC_NO_SRQ,
		.cap = { .max_send_wr = SEND_WR, .max_recv_wr = RECV_WR, .max_send_sge = 1,
			.max_recv_sge = 1, }, };
	struct error err = { "" };
	uint32_t qpn;

	if (rc_qp_create(n->w, &init, &qpn, &err) != 0)
		lan_die(err.text);
	return qpn;
}

static void
lan_to_rts(struct lan_node *n, uint32_t qpn, const struct lan_node *peer, uint32_t dest,
	const struct lan_qp *opt)
{
	static const uint32_t masks[] = {
		QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
		QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC,
	};
	struct qp_attr attr = {
		.qp_access_flags = MEM_ACCESS_REMOTE,
		.pkey = 0xFFFF,
		.av = lan_av(n, peer),
		.neighbour = PATH_NO_NEIGHBOUR,
		.path_mtu = opt->pmtu,
		.timeout = opt->timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = opt->rnr_timer,
		.max_rd_atomic = opt->rd_atomic,
		.max_dest_rd_atomic = opt->rd_atomic,
		.dest_qp_num = dest,
	};
	struct error err = { "" };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		attr.qp_state = QPS_INIT + i;
		if (rc_qp_modify(n->w, qpn, &attr, masks[i], &err) != 0)
			lan_die(err.text);
	}
}

void
lan_reconnect(struct lan_node *n, uint32_t qpn, const struct lan_node *peer, uint32_t peer_qpn,
	const struct lan_qp *opt)
{
	const struct qp_attr attr = { .qp_state = QPS_RESET };
	struct wc wc[64];

	while (rc_cq_poll(n->dev, n->cq, wc, 64) > 0)
		;
	if (rc_qp_modify(n->w, qpn, &attr, QP_ATTR_STATE, NULL) != 0)
		lan_die("no reset");
	lan_to_rts(n, qpn, peer, peer_qpn, opt);
}

void
lan_connect(struct lan_node *a, struct lan_node *b, const struct lan_qp *opt, uint32_t *qpn_a,
	uint32_t *qpn_b)
{
	*qpn_a = lan_create_qp(a);
	if (!opt->half)
		*qpn_b = lan_create_qp(b);
	lan_to_rts(a, *qpn_a, b, *qpn_b, opt);
	if (!opt->half)
		lan_to_rts(b, *qpn_b, a, *qpn_a, opt);
}

int
lan_post(struct lan_node *n, uint32_t qpn, const struct lan_node *peer, enum wr_opcode opcode,
	uint32_t len)
{
	struct sge sge = { LAN_VA, len, n->key };
	struct send_wr wr = {
		.opcode = opcode,
		.num_sge = 1,
		.sg_list = &sge,
		.remote_addr = LAN_VA,
		.rkey = peer->key,
	};

	return rc_post_send(n->w, qpn, &wr, NULL);
}

int
lan_post_recv(struct lan_node *n, uint32_t qpn, uint32_t len)
{
	struct sge sge = { LAN_VA, len, n->key };
	struct recv_wr wr = { .num_sge = 1, .sg_list = &sge };

	return rc_post_recv(n->w, qpn, &wr, NULL);
}

void
lan_forge(struct lan_node *n, const struct path *path, const struct wire_headers *headers,
	uint32_t payload)
{
	struct wire_headers h = *headers;
	uint8_t *p = tx_reserve(&n->sink, path, opcodes[h.opcode].header_len + payload);

	if (p == NULL)
		return;
	h.pkey = 0xFFFF;
	memset(p + wire_build(p, &h), 0, payload);
	tx_commit(&n->sink);
}

struct rc_qp_info
lan_info(const struct lan_node *n, uint32_t qpn)
{
	struct rc_qp_info info = { 0 };

	if (rc_qp_query(n->w, qpn, &info) != 0)
		lan_die("no such queue pair");
	return info;
}
