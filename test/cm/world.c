/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The wire, and the nodes at its ends. */

#include <stdlib.h>

#include "world.h"

/* --- the wire --- */

struct frame *
world_frame(const struct node *n, uint64_t i)
{
	return &n->frames[i % WORLD_FRAMES];
}

void
world_parse(const struct node *from, const struct frame *f, struct packet *pkt)
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
world_sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct node *n = (struct node *)sink;
	struct frame *f = world_frame(n, n->sent);

	if (n->room == 0)
		return NULL;
	assert_true(path->header_len + len + path->trailer_len <= sizeof(f->bytes));
	n->path = path;
	n->reserved = len;
	return f->bytes + path->header_len;
}

bool
world_is_cm(const struct packet *pkt)
{
	return pkt->dest_qpn == 1 && pkt->payload_len == MAD_LEN &&
		pkt->payload[MAD_OFF_CLASS] == CM_CLASS && pkt->payload[MAD_OFF_METHOD] == MAD_SEND;
}

static bool
happens(struct node *n)
{
	uint32_t *x = &n->world->chance;

	*x = *x * 1664525u + 1013904223u;
	return (*x >> 8) % 1000 < n->loss;
}

static bool
world_is_lost(struct node *n, const struct packet *pkt)
{
	unsigned int i;

	if (!world_is_cm(pkt)) {
		if (pkt->opcode != RC_ACK || n->lose_acks == 0)
			return n->lose_data && pkt->dest_qpn != 1;
		n->lose_acks--;
		return true;
	}
	if (happens(n))
		return true;
	for (i = 0; i < n->num_lose; i++) {
		if (n->lose[i] == get_be16(pkt->payload + MAD_OFF_ATTRIBUTE)) {
			n->lose[i] = n->lose[--n->num_lose];
			return true;
		}
	}
	return false;
}

static void
world_sink_commit(struct tx_sink *sink)
{
	struct node *n = (struct node *)sink;
	struct frame *f = world_frame(n, n->sent);
	struct packet pkt;

	n->room--;
	f->len = path_finish(n->path, f->bytes + n->path->header_len, n->reserved, 0);
	n->sent++;
	world_parse(n, f, &pkt);
	f->lost = world_is_lost(n, &pkt);
}

static void
world_arrive(struct node *to, const struct packet *pkt)
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
		f = world_frame(n, n->delivered++);
		if (f->lost)
			continue;
		world_parse(n, f, &pkt);
		world_arrive(n->peer, &pkt);
		if (world_is_cm(&pkt) && (n->twice || happens(n)))
			world_arrive(n->peer, &pkt);
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
		/* send a NAK before the DREQ that it causes */
		done = rc_run(n->rc, now, 64);
		done += mad_run(n->mad, now, 64);
		done += cm_run(n->cm, now, 64);
		if (n->work != NULL)
			done += n->work(n);
	} while (done != 0);
	timer_wheel_sent(n->wheel, now);
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

/* --- set-up --- */

static const struct port_attr *
world_get_port(void *arg, uint16_t port)
{
	struct node *n = arg;

	return port == 0 ? &n->port : NULL;
}

static void
world_take_event(void *arg, const struct event *ev)
{
	struct node *n = arg;

	if (n->cm != NULL)
		cm_qp_event(n->cm, ev);
}

static void
world_take_connection_event(void *arg, const struct event *ev)
{
	struct node *n = arg;

	n->refused_events += ev->type == EVENT_CONNECTION_REFUSED;
	n->ended_events += ev->type == EVENT_CONNECTION_ENDED;
	if (ev->type == EVENT_CONNECTION_ENDED)
		n->ended_qpn = ev->element;
	n->unreported += ev->connection.unreported;
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
world_node_memory(struct node *n)
{
	struct mem_config mc = {
		.max_pd = 16,
		.max_mr = 16,
		.max_mw = 64,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct mem_mr_attr mr = {
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE,
		.length = WORLD_MEM,
		.va = n->va,
		.backing = MEM_EXTERNAL,
		.numa_node = -1,
	};
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
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = 1,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.mem = n->mem,
	};
	struct rc_worker_config wc = {
		.wheel = n->wheel,
		.tx = &n->sink,
		.event = world_take_event,
		.event_arg = n,
	};
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
world_node_create(struct node *n)
{
	struct mad_worker_config mc = {
		.workers = 1,
		.hash_key = 0x5EC4E7,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &n->sink,
		.port = world_get_port,
		.port_arg = n,
		.limits = mad_limits_default,
	};
	struct cm_config cc = {
		.workers = 1,
		.hz = 1000000000,
		.hash_key = 0x5EC4E8,
		.alloc = &n->memory.alloc,
		.rng = &rng_kernel,
		.ca_guid = n->guid,
		.port = world_get_port,
		.port_arg = n,
		.event = world_take_connection_event,
		.event_arg = n,
		.limits = n->world->limits,
	};

	counted_init(&n->memory);
	n->wheel = timer_wheel_create(&allocator_malloc, 1 << 16, 0);
	world_node_memory(n);
	node_rc(n);
	mc.limits.max_sessions = 64;
	mc.limits.max_sessions_per_peer = 32;
	mc.limits.max_bytes = 1 << 20;
	mc.limits.resp_time = 11;
	mc.wheel = n->wheel;
	n->mad = mad_worker_create(&mc);
	assert_non_null(n->mad);
	cc.wheel = n->wheel;
	cc.mad = n->mad;
	cc.rc = n->rc;
	n->cm = cm_create(&cc);
	assert_non_null(n->cm);
	world_param(n, &n->param);
	assert_int_equal(cm_listen(n->cm, WORLD_SERVICE, UINT64_MAX, &world_user, n), 0);
}

static void
world_node_destroy(struct node *n)
{
	free(n->frames);
	if (n->cm == NULL)
		return;
	cm_destroy(n->cm);
	assert_int_equal(n->memory.held, 0);
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
		n->sink =
			(struct tx_sink){ world_sink_reserve, world_sink_commit, tx_send_in_parts };
		n->world = w;
		n->peer = n == &w->a ? &w->b : &w->a;
		n->guid = n == &w->a ? GUID_A : GUID_B;
		n->room = UINT32_MAX;
		n->va = n == &w->a ? 0x100000000 : 0x200000000;
		n->frames = calloc(WORLD_FRAMES, sizeof(*n->frames));
		assert_non_null(n->frames);
		node_port(n);
		if (n == &w->a || !w->scripted)
			world_node_create(n);
	}
	return w;
}

void
world_destroy(struct world *w)
{
	world_node_destroy(&w->a);
	world_node_destroy(&w->b);
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
