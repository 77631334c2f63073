/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Calls of libibverbs that Polca's devices refuse. A line for each tells the error that the program
 * gets, which the test compares with docs/verbs.md. The objects that they were called for work on.
 */

#include <fcntl.h>
#include <unistd.h>

#include "probe.h"

static struct side a, b;

/* @return the errno value of a call that makes an object; 0: it made one */
static int
error_of(const void *made)
{
	return made == NULL ? errno : 0;
}

/* --- completion queues and shared receive queues --- */

static int
refused_resize_cq(void)
{
	return ibv_resize_cq(a.cq, SIDE_DEPTH * 8);
}

static int
refused_modify_cq(void)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 4, .cq_period = 10 },
	};

	return ibv_modify_cq(a.cq, &attr);
}

static int
refused_timestamps(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};

	return error_of(ibv_create_cq_ex(a.context, &attr));
}

static int
refused_clock(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	return ibv_query_rt_values_ex(a.context, &values);
}

static int
refused_resize_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .max_wr = 8 };
	struct ibv_srq *srq = ibv_create_srq(a.pd, &init);
	int rc;

	expect(srq != NULL);
	rc = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	expect(ibv_destroy_srq(srq) == 0);
	return rc;
}

/* --- memory --- */

static int
refused_rereg_mr(void)
{
	int rc = ibv_rereg_mr(a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
		IBV_ACCESS_LOCAL_WRITE);

	return rc < 0 ? errno : 0;
}

static int
refused_on_demand(void)
{
	return error_of(ibv_reg_mr(a.pd, a.memory, SIDE_BYTES,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
}

static int
refused_zero_based(void)
{
	return error_of(ibv_reg_mr(a.pd, a.memory, SIDE_BYTES,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED));
}

static int
refused_advise_mr(void)
{
	struct ibv_sge sge = { (uintptr_t)a.memory, 64, a.mr->lkey };

	return ibv_advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1);
}

static int
refused_null_mr(void)
{
	return error_of(ibv_alloc_null_mr(a.pd));
}

static int
refused_dmabuf(void)
{
	return error_of(
		ibv_reg_dmabuf_mr(a.pd, 0, SIDE_BYTES, 0, STDIN_FILENO, IBV_ACCESS_LOCAL_WRITE));
}

static int
refused_device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	return error_of(ibv_alloc_dm(a.context, &attr));
}

/* --- domains, and what another process has made --- */

static int
refused_thread_domain(void)
{
	struct ibv_td_init_attr attr = { 0 };

	return error_of(ibv_alloc_td(a.context, &attr));
}

static int
refused_parent_domain(void)
{
	struct ibv_parent_domain_init_attr attr = { .pd = a.pd };

	return error_of(ibv_alloc_parent_domain(a.context, &attr));
}

static int
refused_import_device(void)
{
	return error_of(ibv_import_device(a.context->cmd_fd));
}

static int
refused_import_pd(void)
{
	return error_of(ibv_import_pd(a.context, a.pd->handle));
}

static int
refused_import_mr(void)
{
	return error_of(ibv_import_mr(a.pd, a.mr->handle));
}

static int
refused_import_dm(void)
{
	return error_of(ibv_import_dm(a.context, 0));
}

/* --- other kinds of queue pairs --- */

static int
error_of_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = a.cq,
		.recv_cq = a.cq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = type,
	};

	return error_of(ibv_create_qp(a.pd, &init));
}

static int
refused_uc(void)
{
	return error_of_qp(IBV_QPT_UC);
}

static int
refused_ud(void)
{
	return error_of_qp(IBV_QPT_UD);
}

static int
refused_raw_packets(void)
{
	return error_of_qp(IBV_QPT_RAW_PACKET);
}

static int
refused_xrc_send(void)
{
	return error_of_qp(IBV_QPT_XRC_SEND);
}

static int
refused_create_ah(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 1 } };

	expect(ibv_query_gid(b.context, 1, 0, &attr.grh.dgid) == 0);
	return error_of(ibv_create_ah(a.pd, &attr));
}

static const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } };

static int
refused_attach_mcast(void)
{
	return ibv_attach_mcast(a.qp, &group, 0);
}

static int
refused_detach_mcast(void)
{
	return ibv_detach_mcast(a.qp, &group, 0);
}

static int
refused_open_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return error_of(ibv_open_xrcd(a.context, &attr));
}

static int
refused_xrc_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = a.pd,
		.cq = a.cq,
	};

	return error_of(ibv_create_srq_ex(a.context, &attr));
}

static int
refused_open_qp(void)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = a.qp->qp_num,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return error_of(ibv_open_qp(a.context, &attr));
}

static int
refused_create_wq(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 4,
		.max_sge = 1,
		.pd = a.pd,
		.cq = a.cq,
	};

	return error_of(ibv_create_wq(a.context, &attr));
}

static int
refused_rwq_ind_table(void)
{
	struct ibv_rwq_ind_table_init_attr attr = { 0 };

	return error_of(ibv_create_rwq_ind_table(a.context, &attr));
}

static int
refused_create_flow(void)
{
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT,
		.size = sizeof(attr),
		.port = 1,
	};

	return error_of(ibv_create_flow(a.qp, &attr));
}

static int
refused_create_counters(void)
{
	struct ibv_counters_init_attr attr = { 0 };

	return error_of(ibv_create_counters(a.context, &attr));
}

/* --- what a device may do for a queue pair --- */

static int
refused_rate_limit(void)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 1000 };

	return ibv_modify_qp_rate_limit(a.qp, &attr);
}

static int
refused_query_ece(void)
{
	struct ibv_ece ece = { 0 };

	return ibv_query_ece(a.qp, &ece);
}

static const struct {
	const char *call; /* as docs/verbs.md writes it */
	int (*run)(void); /* errno value; 0: it was not refused */
} refused_calls[] = {
	{ "ibv_resize_cq()", refused_resize_cq },
	{ "ibv_modify_srq(IBV_SRQ_MAX_WR)", refused_resize_srq },
	{ "ibv_modify_cq()", refused_modify_cq },
	{ "ibv_create_cq_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)", refused_timestamps },
	{ "ibv_query_rt_values_ex()", refused_clock },
	{ "ibv_rereg_mr()", refused_rereg_mr },
	{ "ibv_reg_mr(IBV_ACCESS_ON_DEMAND)", refused_on_demand },
	{ "ibv_reg_mr(IBV_ACCESS_ZERO_BASED)", refused_zero_based },
	{ "ibv_advise_mr()", refused_advise_mr },
	{ "ibv_alloc_null_mr()", refused_null_mr },
	{ "ibv_reg_dmabuf_mr()", refused_dmabuf },
	{ "ibv_alloc_dm()", refused_device_memory },
	{ "ibv_alloc_td()", refused_thread_domain },
	{ "ibv_alloc_parent_domain()", refused_parent_domain },
	{ "ibv_import_device()", refused_import_device },
	{ "ibv_import_pd()", refused_import_pd },
	{ "ibv_import_mr()", refused_import_mr },
	{ "ibv_import_dm()", refused_import_dm },
	{ "ibv_create_qp(IBV_QPT_UC)", refused_uc },
	{ "ibv_create_qp(IBV_QPT_UD)", refused_ud },
	{ "ibv_create_qp(IBV_QPT_RAW_PACKET)", refused_raw_packets },
	{ "ibv_create_qp(IBV_QPT_XRC_SEND)", refused_xrc_send },
	{ "ibv_create_ah()", refused_create_ah },
	{ "ibv_attach_mcast()", refused_attach_mcast },
	{ "ibv_detach_mcast()", refused_detach_mcast },
	{ "ibv_open_xrcd()", refused_open_xrcd },
	{ "ibv_create_srq_ex(IBV_SRQT_XRC)", refused_xrc_srq },
	{ "ibv_open_qp()", refused_open_qp },
	{ "ibv_create_wq()", refused_create_wq },
	{ "ibv_create_rwq_ind_table()", refused_rwq_ind_table },
	{ "ibv_create_flow()", refused_create_flow },
	{ "ibv_create_counters()", refused_create_counters },
	{ "ibv_modify_qp_rate_limit()", refused_rate_limit },
	{ "ibv_query_ece()", refused_query_ece },
};

int
probe_unsupported(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	side_make(&a, ibv_open_device(find_device("polca0")), NULL);
	side_make(&b, ibv_open_device(find_device("polca1")), NULL);
	for (size_t i = 0; i < sizeof(refused_calls) / sizeof(refused_calls[0]); i++) {
		int error;

		errno = 0;
		error = refused_calls[i].run();
		printf("%s: %s\n", refused_calls[i].call,
			error == 0 ? "done" : strerrorname_np(error));
	}
	qp_advance(a.qp, b.qp, IBV_QPS_RTS);
	qp_advance(b.qp, a.qp, IBV_QPS_RTS);
	side_post_receive(&b, 1);
	side_post_send(&a, 2, true);
	expect(next_completion(a.cq).status == IBV_WC_SUCCESS);
	expect(next_completion(b.cq).status == IBV_WC_SUCCESS);
	probe_side_destroy(&a);
	probe_side_destroy(&b);
	return 0;
}
