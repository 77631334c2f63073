/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <string.h>

#include "stream.h"

void
conn_data(const struct node *a, uint8_t *data, uint8_t flags)
{
	memset(data, 0, 40);
	data[0] = 1;
	data[1] = flags;
	put_be16(data + 2, 384);
	put_be64(data + 8, a->va + LIST);
	put_be32(data + 16, a->key);
	put_be32(data + 20, 2);
	put_be64(data + 24, a->va + IN);
	put_be32(data + 32, a->key);
	put_be32(data + 36, HALF);
}

struct life *
connect_with(struct bench *b, const uint8_t *data, uint8_t len)
{
	struct node *a = &b->w->a;
	struct life *l = &a->lives[a->num_lives++];
	struct cm_connect c;
	struct error err;

	*l = (struct life){ .node = a };
	connect_init(a, &c);
	c.user = l;
	c.param.qp.cap.max_send_wr = 64;
	c.param.qp.cap.max_recv_wr = 64;
	memcpy(c.param.private_data, data, len);
	c.param.private_len = len;
	assert_int_equal(cm_connect(a->cm, &c, b->w->now, &l->id, &err), 0);
	exchange(b->w);
	return l;
}

struct stream
open_stream(struct bench *b, const struct svc_config *config, uint8_t flags)
{
	struct stream t = { .b = b };
	struct recv_wr wr = { .num_sge = 0 };
	uint8_t data[40];
	unsigned int i;

	t.s = serve(b, &b->w->b, config);
	conn_data(&b->w->a, data, flags);
	t.l = connect_with(b, data, 40);
	expect_log(t.l, "prepare established");
	for (i = 0; i < 32; i++)
		assert_int_equal(rc_post_recv(b->w->a.rc, t.l->qpn, &wr, NULL), 0);
	t.list_va = get_be64(t.l->private_data + 8);
	t.key = get_be32(t.l->private_data + 16);
	t.va = get_be64(t.l->private_data + 24);
	return t;
}

void
write_imm(struct stream *t, uint32_t at, uint32_t len, uint64_t remote, uint32_t imm)
{
	struct node *a = t->l->node;
	struct sge sge = { a->va + at, len, a->key };
	struct send_wr wr = {
		.opcode = WR_RDMA_WRITE_WITH_IMM,
		.send_flags = SEND_SIGNALED,
		.num_sge = len != 0,
		.sg_list = &sge,
		.remote_addr = remote,
		.rkey = t->key,
		.imm_data = imm,
	};

	assert_int_equal(act(t->b, t->l, &wr), WC_SUCCESS);
}

uint32_t
next_imm(struct stream *t)
{
	struct wc wc = heard(t->l);

	assert_int_equal(wc.wc_flags & WC_WITH_IMM, WC_WITH_IMM);
	return wc.imm_data;
}
