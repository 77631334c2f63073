/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Memory windows: a owns them, b writes through them. A window that is bound admits the Write, one
 * that is unbound or invalidated does not.
 */

#include "probe.h"

#define WINDOW_OFFSET 4096
#define WINDOW_BYTES  64

static struct side a, b;
static struct ibv_mr *bindable;

static void
sides_connect(void)
{
	a.qp = side_make_qp(&a, false);
	b.qp = side_make_qp(&b, false);
	expect(a.qp != NULL && b.qp != NULL);
	qp_advance(a.qp, b.qp, IBV_QPS_RTS);
	qp_advance(b.qp, a.qp, IBV_QPS_RTS);
}

/* A refused Write ends the connection. */
static void
sides_connect_again(void)
{
	expect(ibv_destroy_qp(a.qp) == 0);
	expect(ibv_destroy_qp(b.qp) == 0);
	sides_connect();
}

static struct ibv_mw_bind_info
whole_window(void)
{
	return (struct ibv_mw_bind_info){
		.mr = bindable,
		.addr = (uintptr_t)a.memory + WINDOW_OFFSET,
		.length = WINDOW_BYTES,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE,
	};
}

/* Post a request of a, and expect its success as this. */
static void
a_does(struct ibv_send_wr *wr, enum ibv_wc_opcode opcode)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->wr_id = 7;
	wr->send_flags = IBV_SEND_SIGNALED;
	expect(ibv_post_send(a.qp, wr, &bad) == 0);
	wc = next_completion(a.cq);
	expect(wc.wr_id == 7 && wc.status == IBV_WC_SUCCESS && wc.opcode == opcode);
}

static enum ibv_wc_status
b_writes(uint32_t rkey, uint8_t value)
{
	struct ibv_sge sge = { (uintptr_t)b.memory, WINDOW_BYTES, b.mr->lkey };
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = value,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)a.memory + WINDOW_OFFSET, rkey },
		};
	struct ibv_wc wc;

	memset(b.memory, value, WINDOW_BYTES);
	expect(ibv_post_send(b.qp, &wr, &bad) == 0);
	wc = next_completion(b.cq);
	expect(wc.wr_id == value);
	return wc.status;
}

static void
expect_write_admitted(uint32_t rkey, uint8_t value)
{
	expect(b_writes(rkey, value) == IBV_WC_SUCCESS);
	for (int i = 0; i < WINDOW_BYTES; i++)
		expect(a.memory[WINDOW_OFFSET + i] == value);
	expect(a.memory[WINDOW_OFFSET + WINDOW_BYTES] == 0);
}

static void
expect_write_refused(uint32_t rkey)
{
	uint8_t before = a.memory[WINDOW_OFFSET];

	expect(b_writes(rkey, (uint8_t)~before) == IBV_WC_REM_ACCESS_ERR);
	expect(a.memory[WINDOW_OFFSET] == before);
	sides_connect_again();
}

static void
bind_type_1(struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { 9, IBV_SEND_SIGNALED, info };
	uint32_t before = mw->rkey;
	struct ibv_wc wc;

	expect(ibv_bind_mw(a.qp, mw, &bind) == 0);
	expect(mw->rkey != before);
	wc = next_completion(a.cq);
	expect(wc.wr_id == 9 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW);
}

static void
windows_type_1(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	uint32_t bound;

	expect(mw != NULL);
	bind_type_1(mw, whole_window());
	bound = mw->rkey;
	expect_write_admitted(bound, 0x11);
	bind_type_1(mw, whole_window());
	expect_write_admitted(mw->rkey, 0x12);
	expect_write_refused(bound);
	expect(ibv_dereg_mr(bindable) == EBUSY);
	bind_type_1(mw, (struct ibv_mw_bind_info){ 0 });
	expect_write_refused(mw->rkey);
	bind_type_1(mw, whole_window());
	bound = mw->rkey;
	expect_write_admitted(bound, 0x13);
	expect(ibv_dealloc_mw(mw) == 0);
	expect_write_refused(bound);
}

/* @return its key */
static uint32_t
bind_type_2(struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { mw, ibv_inc_rkey(mw->rkey), whole_window() },
	};

	a_does(&wr, IBV_WC_BIND_MW);
	expect(mw->rkey == wr.bind_mw.rkey);
	return mw->rkey;
}

static void
windows_type_2(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr invalidate = { .opcode = IBV_WR_LOCAL_INV };
	struct ibv_send_wr *bad,
		send = { .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw_bind bind = { 9, IBV_SEND_SIGNALED, whole_window() };
	struct ibv_wc wc;

	expect(mw != NULL);
	expect(ibv_bind_mw(a.qp, mw, &bind) == EINVAL);
	invalidate.invalidate_rkey = bind_type_2(mw);
	expect_write_admitted(mw->rkey, 0x21);
	a_does(&invalidate, IBV_WC_LOCAL_INV);
	expect_write_refused(mw->rkey);
	send.invalidate_rkey = bind_type_2(mw);
	expect_write_admitted(mw->rkey, 0x22);
	side_post_receive(&a, 8);
	expect(ibv_post_send(b.qp, &send, &bad) == 0);
	wc = next_completion(b.cq);
	expect(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND);
	wc = next_completion(a.cq);
	expect(wc.wr_id == 8 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
	expect(wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == mw->rkey);
	expect_write_refused(mw->rkey);
	bind_type_2(mw);
	expect(ibv_dealloc_mw(mw) == 0);
}

/* With "leave": end with both types bound, which polca then frees. */
int
probe_windows(int argc, char **argv)
{
	struct ibv_device_attr attr;
	struct ibv_mw *left;

	side_make(&a, ibv_open_device(find_device("polca0")), NULL);
	side_make(&b, ibv_open_device(find_device("polca1")), NULL);
	expect(ibv_query_device(a.context, &attr) == 0 && attr.max_mw > 0);
	expect((attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0);
	expect((attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0);
	bindable =
		ibv_reg_mr(a.pd, a.memory, SIDE_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	expect(bindable != NULL);
	sides_connect_again();
	windows_type_1();
	windows_type_2();
	if (argc > 1 && strcmp(argv[1], "leave") == 0) {
		left = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
		expect(left != NULL);
		bind_type_1(left, whole_window());
		left = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
		expect(left != NULL);
		bind_type_2(left);
		return 0;
	}
	expect(ibv_dereg_mr(bindable) == 0);
	probe_side_destroy(&a);
	probe_side_destroy(&b);
	return 0;
}
