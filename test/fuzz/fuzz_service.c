/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz the services with what a connected peer may send. Input: the service, the length of the
 * private data, that data, then records {operation, length, offset, immediate data, bytes}. At the
 * end, nothing of the connection is left, and the bytes around the service's memory are the same
 * (AddressSanitizer).
 */

#include <string.h>

#include "../svc/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CONNECTIONS 100

static const struct svc_config services[] = {
	{ .kind = "echo", .size = 64, .depth = 4 },
	{ .kind = "sink", .depth = 4 },
	{ .kind = "ucmatose", .count = 8, .size = 64 },
	{ .kind = "rping" },
	{ .kind = "memory", .length = 4096 },
	{ .kind = "perftest", .length = 4096 },
	{ .kind = "rstream" },
	{ .kind = "rcopy" },
};

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

static uint8_t
fuzz_byte(struct fuzz_input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

/* Copy up to @p len bytes into memory that is there. */
static uint32_t
fuzz_bytes(struct fuzz_input *in, uint8_t *to, uint32_t len)
{
	if (len > in->left)
		len = (uint32_t)in->left;
	memcpy(to, in->at, len);
	in->at += len;
	in->left -= len;
	return len;
}

/* rsockets' private data changed by the input: its addresses are the client's. */
static struct life *
fuzz_connect(struct bench *b, struct fuzz_input *in)
{
	uint8_t private_data[56], change[56] = { 0 };
	uint8_t len = fuzz_byte(in) % (sizeof(private_data) + 1);
	unsigned int i;

	memset(private_data, 0, sizeof(private_data));
	conn_data(&b->w->a, private_data, 0x02);
	fuzz_bytes(in, change, len);
	for (i = 0; i < len; i++)
		private_data[i] ^= change[i];
	return connect_with(b, private_data, len);
}

/* @return false: the queue pair has ended */
static bool
fuzz_post(struct bench *b, struct life *l, struct fuzz_input *in)
{
	static const enum wr_opcode opcodes[] = { WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE,
		WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ };
	struct node *a = l->node;
	uint8_t op = fuzz_byte(in), len = fuzz_byte(in);
	struct sge sge = { a->va + OUT, len, a->key };
	struct send_wr wr = {
		.opcode = opcodes[op % RTE_DIM(opcodes)],
		.send_flags = SEND_SIGNALED,
		.num_sge = len != 0,
		.sg_list = &sge,
		.imm_data = (uint32_t)fuzz_byte(in) << 24 | fuzz_byte(in),
	};
	const uint8_t *theirs = l->private_data;
	struct recv_wr recv = { .num_sge = 0 };
	struct error err;
	struct wc wc;

	wr.remote_addr = get_be64(theirs + (op & 0x80 ? 24 : 8)) + fuzz_byte(in);
	wr.rkey = get_be32(theirs + 16);
	memset(a->bytes + OUT, 0, len);
	fuzz_bytes(in, a->bytes + OUT, len);
	rc_post_recv(a->rc, l->qpn, &recv, NULL);
	if (rc_post_send(a->rc, l->qpn, &wr, &err) != 0)
		return false;
	exchange(b->w);
	while (rc_cq_poll(a->dev, a->recv_cq, &wc, 1) == 1)
		;
	if (rc_cq_poll(a->dev, a->send_cq, &wc, 1) == 1)
		return wc.status == WC_SUCCESS;
	pass(b->w, SECOND); /* the service has no receive for it now */
	return rc_cq_poll(a->dev, a->send_cq, &wc, 1) == 1 && wc.status == WC_SUCCESS;
}

/* A world serves many connections in turn: to make one takes longer than a connection. */
static struct bench *
fuzz_bench(unsigned int service)
{
	static struct bench *b;
	static unsigned int kind, uses;
	static const struct world plain;

	if (b != NULL && (kind != service || uses == CONNECTIONS)) {
		bench_destroy(b);
		b = NULL;
	}
	if (b == NULL) {
		b = bench_create(&plain);
		serve(b, &b->w->b, &services[service]);
		kind = service;
		uses = 0;
	}
	uses++;
	return b;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct bench *b;
	struct life *l;

	if (size < 4)
		return 0;
	b = fuzz_bench(fuzz_byte(&in) % RTE_DIM(services));
	l = fuzz_connect(b, &in);
	if (strcmp(l->log, "prepare established ") == 0)
		while (in.left > 0 && fuzz_post(b, l, &in))
			;
	cm_disconnect(b->w->a.cm, l->id, NULL, 0, b->w->now);
	exchange(b->w);
	expect_all_released(b);
	return 0;
}
