/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz a worker with what programs write into the memory that they share with it. Input: records
 * {action and program, argument, length, bytes}; two hostile programs are connected to each other.
 * At the end two honest programs exchange a message, and nothing of the hostile ones is left.
 */

#include <string.h>

#include "clients.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_LEN    3
#define MESSAGE_BYTES 1000u
#define PATIENCE      20000u /* turns */

static struct engine *e;
static struct program honest[2], hostile[2];
static unsigned int objects; /* of the honest ones */

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	e = clients_engine();
	programs_start(e, &honest[0], &honest[1]);
	objects = programs_objects(e);
	return 0;
}

/* --- actions: the bytes of a record change what a provider would write --- */

static void
act_send(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	struct program *peer = p == &hostile[0] ? &hostile[1] : &hostile[0];
	uint8_t *entry = ring_next_free(&p->send);
	struct ring_send wqe = {
		.wr_id = arg,
		.opcode = arg & 15,
		.flags = (arg & 0x20) ? SEND_INLINE : 0,
		.num_sge = (arg & 0x20) ? 0 : 1,
		.inline_len = (arg & 0x20) ? 64 : 0,
		.remote_addr = peer->address,
		.rkey = peer->mr.key,
	};
	const struct ring_sge sge = { p->address, 64, p->mr.key };

	memcpy(entry, &wqe, sizeof(wqe));
	memcpy(entry + sizeof(wqe), &sge, sizeof(sge));
	fuzz_change(in, entry, p->qp.send_stride);
	p->send.index++;
	ring_publish(&p->send);
	if (!(arg & 0x80))
		program_ring(p, p->qp.slot);
}

static void
act_receive(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	uint8_t *entry = ring_next_free(&p->receive);
	const struct ring_receive wqe = { .wr_id = arg, .num_sge = 1 };
	const struct ring_sge sge = { p->address + 4096, 4096, p->mr.key };

	memcpy(entry, &wqe, sizeof(wqe));
	memcpy(entry + sizeof(wqe), &sge, sizeof(sge));
	fuzz_change(in, entry, p->qp.receive_stride);
	p->receive.index++;
	ring_publish(&p->receive);
	if (!(arg & 0x80))
		program_ring(p, p->qp.slot);
}

/* A word of the indices, of any queue or CQ, also of those that are not there. */
static void
act_index(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	const struct ring_geometry *g = &p->hello.geometry;
	struct ring_queue *q = &p->queues[(arg >> 4) % g->num_queues];
	struct ring_cq *cq = &p->cqs[(arg >> 4) % g->num_cqs];
	uint32_t *words[] = { &q->send_head, &q->receive_head, &q->rung, &q->send_tail,
		&q->receive_tail, &cq->head, &cq->tail, &cq->armed };

	*words[arg & 7] = fuzz_word(in);
	if (arg & 8)
		program_ring(p, (arg >> 4) % g->num_queues);
}

static void
act_doorbell(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	uint32_t mask = p->hello.geometry.num_queues - 1;

	if (in->left > 0)
		p->doorbells[arg & mask] = fuzz_word(in);
	else
		program_ring(p, arg & mask);
}

static void
act_bytes(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	uint64_t at = (uint64_t)fuzz_word(in) % p->hello.geometry.bytes, i;

	(void)arg;
	for (i = at; i < p->hello.geometry.bytes && in->left > 0; i++)
		p->segment[i] = fuzz_next_byte(in);
}

static void
act_poll(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	(void)in;
	p->completions.index += arg & 0x1f;
	ring_publish(&p->completions);
	p->cqs[p->cq.slot].armed = arg >> 6;
}

static void
act_modify(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	struct ring_qp_attr attr = {
		.slot = p->qp.slot,
		.mask = QP_ATTR_STATE,
		.qp_state = arg & 7,
	};
	struct error err;

	fuzz_change(in, &attr, sizeof(attr));
	engine_client_qp_modify(p->client, &attr, &err);
}

/* More queues, with rings of other sizes, and their end. */
static void
act_object(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	struct ring_qp_create qp = {
		.caps = { 4, 4, 1, 1, 0 },
		.pd = p->pd,
		.send_cq = p->cq.slot,
		.recv_cq = p->cq.slot,
		.srq = (arg & 0x80) ? (arg >> 4) & 7 : RING_NONE,
	};
	struct ring_srq_create srq = { .pd = p->pd, .max_wr = 8, .max_sge = 1 };
	struct ring_cq_create cq = { .cqe = 4, .channel = RING_NONE };
	struct ring_queue_reply queue;
	struct ring_cq_reply made;
	struct error err;

	clients_rest(e);
	switch (arg & 7) {
	case 0:
		fuzz_change(in, &qp.caps, sizeof(qp.caps));
		engine_client_qp_create(p->client, &qp, &queue, &err);
		break;
	case 1:
		fuzz_change(in, &srq.max_wr, 12);
		engine_client_srq_create(p->client, &srq, &queue, &err);
		break;
	case 2:
		fuzz_change(in, &cq.cqe, sizeof(cq.cqe));
		engine_client_cq_create(p->client, &cq, &made, &err);
		break;
	case 3:
		engine_client_qp_destroy(p->client, arg >> 4, &err);
		break;
	case 4:
		engine_client_srq_destroy(p->client, arg >> 4, &err);
		break;
	case 5:
		engine_client_cq_destroy(p->client, arg >> 4, &err);
		break;
	default:
		engine_client_srq_modify(p->client,
			&(struct ring_srq_modify){ (uint32_t)arg >> 4, fuzz_next_byte(in) }, &err);
		break;
	}
}

static void
act_turns(struct program *p, uint8_t arg, struct fuzz_bytes *in)
{
	(void)p;
	(void)in;
	clients_turns(e, arg);
}

static void (*const acts[])(struct program *p, uint8_t arg, struct fuzz_bytes *in) = {
	act_turns,
	act_send,
	act_receive,
	act_index,
	act_doorbell,
	act_bytes,
	act_poll,
	act_modify,
	act_object,
};

/* --- the honest ones --- */

static void
honest_completion(struct program *p, uint64_t wr_id)
{
	struct ring_completion c;
	unsigned int i;

	for (i = 0; i < PATIENCE && ring_ready(&p->completions) == 0; i++)
		clients_turns(e, 1);
	fuzz_expect(ring_ready(&p->completions) > 0);
	memcpy(&c, ring_oldest(&p->completions), sizeof(c));
	p->completions.index++;
	ring_publish(&p->completions);
	fuzz_expect(c.status == WC_SUCCESS && c.wr_id == wr_id);
}

static void
honest_message(uint64_t wr_id)
{
	fill(honest[0].memory, MESSAGE_BYTES, (uint32_t)wr_id);
	program_receive(&honest[1], wr_id, 4096, 4096);
	program_send(&honest[0], wr_id, 0, MESSAGE_BYTES);
	honest_completion(&honest[0], wr_id);
	honest_completion(&honest[1], wr_id);
	fuzz_expect(memcmp(honest[0].memory, honest[1].memory + 4096, MESSAGE_BYTES) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t messages;
	struct fuzz_bytes record;
	uint8_t what, arg, len;

	programs_start(e, &hostile[0], &hostile[1]);
	while (size >= RECORD_LEN) {
		what = data[0];
		arg = data[1];
		len = data[2];
		data += RECORD_LEN;
		size -= RECORD_LEN;
		record = (struct fuzz_bytes){ data, len < size ? len : size };
		data += record.left;
		size -= record.left;
		acts[(what & 0x7f) % (sizeof(acts) / sizeof(acts[0]))](&hostile[what >> 7], arg,
			&record);
		clients_turns(e, 1);
	}
	honest_message(messages++);
	clients_rest(e);
	programs_stop(&hostile[0], &hostile[1]);
	fuzz_expect(programs_objects(e) == objects);
	return 0;
}
