/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <string.h>
#include <sys/mman.h>

#include "client_node.h"
#include "engine/verbs_pd.h"
#include "port/port.h"

const struct verbs_client_limits program_limits = {
	.max_qp = 8,
	.max_cq = 4,
	.max_srq = 24,
	.max_pd = 4,
	.max_mr = 4,
	.max_mw = 5,
	.max_channels = 2,
	.max_mr_bytes = 1 << 20,
	.ring_bytes = 1 << 20,
	.max_wr = 1 << 20,
	.user = {
		.max_qp = 1024,
		.max_cq = 1024,
		.max_srq = 1024,
		.max_pd = 1024,
		.max_mr = 1024,
		.max_mw = 1024,
		.max_wr = 1 << 20,
		.max_mr_bytes = 1 << 30,
	},
};

void
program_open(struct engine *e, struct program *p, unsigned int port)
{
	program_open_within(e, p, port, &program_limits);
}

void
program_open_within(struct engine *e, struct program *p, unsigned int port,
	const struct verbs_client_limits *limits)
{
	const struct ring_geometry *g = &p->hello.geometry;
	int fds[RING_HELLO_FDS];
	struct error err;

	memset(p, 0, sizeof(*p));
	assert_ok(engine_client_create(e, port, limits, -1, &p->client, &err));
	engine_client_hello(p->client, &p->hello, fds);
	p->segment = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	assert_ptr_not_equal(p->segment, MAP_FAILED);
	p->doorbells = (uint32_t *)(void *)(p->segment + g->doorbells);
	p->queues = (struct ring_queue *)(void *)(p->segment + g->queues);
	p->cqs = (struct ring_cq *)(void *)(p->segment + g->cqs);
	/* any address: only the offset in the mirror counts */
	p->address = (UINT64_C(0x7000) + port) << 24;
	p->memory = mmap(NULL, PROGRAM_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		fds[1], (off_t)p->address);
	assert_ptr_not_equal(p->memory, MAP_FAILED);
}

void
program_make_objects(struct program *p)
{
	struct ring_cq_create cq = { .cqe = PROGRAM_DEPTH * 2, .channel = RING_NONE };
	struct ring_qp_create qp = {
		.cookie = PROGRAM_QP_COOKIE,
		.caps = { PROGRAM_DEPTH, PROGRAM_DEPTH, 2, 2, 64 },
		.srq = RING_NONE,
		.sq_sig_all = 1,
	};
	struct ring_mr mr = {
		.addr = p->address,
		.iova = p->address,
		.length = PROGRAM_MEMORY,
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE,
	};
	struct ring_queue *q;
	struct error err;

	assert_ok(engine_client_pd_alloc(p->client, &p->pd, &err));
	assert_ok(engine_client_cq_create(p->client, &cq, &p->cq, &err));
	qp.pd = mr.pd = p->pd;
	qp.send_cq = qp.recv_cq = p->cq.slot;
	assert_ok(engine_client_qp_create(p->client, &qp, &p->qp, &err));
	assert_ok(engine_client_mr_register(p->client, &mr, &p->mr, &err));
	q = &p->queues[p->qp.slot];
	ring_end_init(&p->send, p->segment + p->qp.send_entries, p->qp.send_num, p->qp.send_stride,
		&q->send_head, &q->send_tail);
	ring_end_init(&p->receive, p->segment + p->qp.receive_entries, p->qp.receive_num,
		p->qp.receive_stride, &q->receive_head, &q->receive_tail);
	ring_end_init(&p->completions, p->segment + p->cq.entries, p->cq.num,
		sizeof(struct ring_completion), &p->cqs[p->cq.slot].tail, &p->cqs[p->cq.slot].head);
}

static void
program_modify(struct program *p, uint32_t qpn, unsigned int peer_port)
{
	struct ring_qp_attr a = {
		.slot = p->qp.slot,
		.path_mtu = 3,
		.rq_psn = 100,
		.sq_psn = 100,
		.dest_qp_num = qpn,
		.qp_access_flags = MEM_ACCESS_REMOTE,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	static const uint8_t address[2][4] = { { 192, 0, 2, 1 }, { 192, 0, 2, 2 } };
	const union gid gid = gid_from_ipv4(address[peer_port]);
	struct error err;

	memcpy(a.path.dgid, &gid, sizeof(a.path.dgid));
	a.mask = QP_ATTR_STATE | QP_ATTRS_INIT;
	a.qp_state = QPS_INIT;
	assert_ok(engine_client_qp_modify(p->client, &a, &err));
	a.mask = QP_ATTR_STATE | QP_ATTRS_RTR;
	a.qp_state = QPS_RTR;
	assert_ok(engine_client_qp_modify(p->client, &a, &err));
	a.mask = QP_ATTR_STATE | QP_ATTRS_RTS;
	a.qp_state = QPS_RTS;
	assert_ok(engine_client_qp_modify(p->client, &a, &err));
}

void
program_connect(struct program *p, struct program *q)
{
	program_modify(p, q->qp.number, 1);
	program_modify(q, p->qp.number, 0);
}

void
program_close(struct program *p)
{
	munmap(p->memory, PROGRAM_MEMORY);
	munmap(p->segment, p->hello.geometry.bytes);
	engine_client_destroy(p->client);
}

void
programs_start(struct engine *e, struct program *p, struct program *q)
{
	program_open(e, p, 0);
	program_open(e, q, 1);
	program_make_objects(p);
	program_make_objects(q);
	program_connect(p, q);
}

void
programs_stop(struct program *p, struct program *q)
{
	program_close(p);
	program_close(q);
}

unsigned int
programs_objects(struct engine *e)
{
	struct rc_cq_info cq;
	struct mem_pd_info pd;
	struct mem_mr_info mr;
	struct rc_qp_info qp;
	unsigned int n = 0;
	uint64_t cursor;

	for (cursor = 0; engine_qp_next(e, &cursor, &qp);)
		n++;
	for (cursor = 0; engine_cq_next(e, &cursor, &cq);)
		n++;
	for (cursor = 0; engine_pd_next(e, &cursor, &pd);)
		n++;
	for (cursor = 0; engine_mr_next(e, &cursor, &mr);)
		n++;
	return n;
}

void
program_ring(struct program *p, uint32_t slot)
{
	ring_doorbell_ring(p->doorbells, p->hello.geometry.num_queues - 1, &p->next_doorbell,
		&p->queues[slot], slot);
}

void
program_post_write(struct program *p, const struct program *to, uint32_t length)
{
	struct ring_send *wqe = ring_next_free(&p->send);
	struct ring_sge *sge = (struct ring_sge *)(wqe + 1);

	*wqe = (struct ring_send){
		.opcode = WR_RDMA_WRITE,
		.num_sge = 1,
		.remote_addr = to->address,
		.rkey = to->mr.key,
	};
	*sge = (struct ring_sge){ p->address, length, p->mr.key };
	p->send.index++;
	ring_publish(&p->send);
}

void
program_send(struct program *p, uint64_t wr_id, uint64_t offset, uint32_t length)
{
	struct ring_send *wqe = ring_next_free(&p->send);
	struct ring_sge *sge = (struct ring_sge *)(wqe + 1);

	*wqe = (struct ring_send){ .wr_id = wr_id, .opcode = WR_SEND, .num_sge = 1 };
	*sge = (struct ring_sge){ p->address + offset, length, p->mr.key };
	p->send.index++;
	ring_publish(&p->send);
	program_ring(p, p->qp.slot);
}

void
program_receive(struct program *p, uint64_t wr_id, uint64_t offset, uint32_t length)
{
	struct ring_receive *wqe = ring_next_free(&p->receive);
	struct ring_sge *sge = (struct ring_sge *)(wqe + 1);

	*wqe = (struct ring_receive){ .wr_id = wr_id, .num_sge = 1 };
	*sge = (struct ring_sge){ p->address + offset, length, p->mr.key };
	p->receive.index++;
	ring_publish(&p->receive);
	program_ring(p, p->qp.slot);
}

struct ring_completion
program_completion(struct program *p)
{
	struct ring_completion c;

	eventually(ring_ready(&p->completions) > 0);
	memcpy(&c, ring_oldest(&p->completions), sizeof(c));
	p->completions.index++;
	ring_publish(&p->completions);
	return c;
}

void
programs_message(struct program *p, struct program *q, uint64_t wr_id)
{
	struct ring_completion c;

	fill(p->memory, 1000, (uint32_t)wr_id);
	program_receive(q, wr_id + 1, 4096, 4096);
	program_send(p, wr_id, 0, 1000);
	c = program_completion(p);
	assert_int_equal(c.status, WC_SUCCESS);
	assert_int_equal(c.wr_id, wr_id);
	c = program_completion(q);
	assert_int_equal(c.status, WC_SUCCESS);
	assert_int_equal(c.opcode, WC_RECV);
	assert_int_equal(c.wr_id, wr_id + 1);
	assert_int_equal(c.byte_len, 1000);
	assert_memory_equal(p->memory, q->memory + 4096, 1000);
}

void
program_make_qp_of_srq(struct program *p, const struct program_srq *srq,
	struct ring_queue_reply *qp)
{
	struct ring_qp_create create = {
		.pd = p->pd,
		.send_cq = p->cq.slot,
		.recv_cq = p->cq.slot,
		.srq = srq->made.slot,
		.caps = { 1, 0, 1, 0, 0 },
	};
	struct error err;

	assert_ok(engine_client_qp_create(p->client, &create, qp, &err));
}

void
program_make_srq(struct program *p, struct program_srq *srq, uint32_t max_wr, uint64_t cookie)
{
	struct ring_srq_create create = {
		.cookie = cookie,
		.pd = p->pd,
		.max_wr = max_wr,
		.max_sge = 1,
	};
	const struct ring_queue_reply *made = &srq->made;
	struct ring_queue *queue;
	struct error err;

	assert_ok(engine_client_srq_create(p->client, &create, &srq->made, &err));
	queue = &p->queues[made->slot];
	ring_end_init(&srq->ring, p->segment + made->receive_entries, made->receive_num,
		made->receive_stride, &queue->receive_head, &queue->receive_tail);
	assert_ok(engine_client_qp_destroy(p->client, p->qp.slot, &err));
	program_make_qp_of_srq(p, srq, &p->qp);
}

void
program_post_srq(struct program *p, struct program_srq *srq, uint64_t wr_id)
{
	struct ring_receive *wqe;

	assert_true(ring_has_room(&srq->ring));
	wqe = ring_next_free(&srq->ring);
	*wqe = (struct ring_receive){ .wr_id = wr_id, .num_sge = 1 };
	*(struct ring_sge *)(wqe + 1) = (struct ring_sge){ p->address, 4096, p->mr.key };
	srq->ring.index++;
	ring_publish(&srq->ring);
	program_ring(p, srq->made.slot);
}

void
program_arm_srq(struct program *p, const struct program_srq *srq, uint32_t limit)
{
	struct ring_srq_modify modify = { srq->made.slot, limit };
	struct error err;

	assert_ok(engine_client_srq_modify(p->client, &modify, &err));
}

uint32_t
program_srq_limit(struct program *p, const struct program_srq *srq)
{
	struct ring_srq_reply reply;
	struct error err;

	assert_ok(engine_client_srq_query(p->client, srq->made.slot, &reply, &err));
	return reply.limit;
}
