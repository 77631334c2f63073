/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_ABI34_H
#define PROVIDER_ABI34_H

/**
 * @file
 * The private ABI, number 34, between libibverbs and its providers: rdma-core 36 to 56, with the
 * same structures in each. Its header is not installed; these are the layouts alone. Operations
 * that this provider lacks are void pointers.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include <infiniband/verbs.h>

struct list_node {
	struct list_node *next, *prev;
};

#define VERBS_MATCH_SENTINEL 0
#define VERBS_MATCH_MODALIAS 2

struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind; /* VERBS_MATCH_ */
};

/** A device that libibverbs has found; more members follow, which are not used here. */
struct verbs_sysfs_dev {
	struct list_node entry;
	void *provider_data;
	const struct verbs_match_ent *match;
	unsigned int flags;
	char sysfs_name[64];
	dev_t sysfs_cdev;
	char ibdev_name[64];
	char ibdev_path[256];
};

struct verbs_device_ops;

struct verbs_device {
	struct ibv_device device;
	const struct verbs_device_ops *ops;
	atomic_int refcount;
	struct list_node entry;
	struct verbs_sysfs_dev *sysfs;
	uint64_t core_support;
};

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table;
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *sysfs);
	struct verbs_context *(
		*alloc_context)(struct ibv_device *device, int cmd_fd, void *private_data);
	struct verbs_context *(*import_context)(struct ibv_device *device, int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs);
	void (*uninit_device)(struct verbs_device *device);
};

struct verbs_mr {
	struct ibv_mr ibv_mr;
	int mr_type;
	int access;
};

#define VERBS_QP_EX 2

/*
 * In rdma-core, struct verbs_qp is struct ibv_qp_ex, a comp_mask of 32 bits and a pointer, xrcd.
 * The number 34 stayed while struct ibv_qp_ex grew by two operations behind wr_abort: Atomic Write
 * in rdma-core 44, Flush in 45. ibv_qp_to_qp_ex() of each libibverbs looks for VERBS_QP_EX in the
 * mask behind the operations that it knows, so the mask is in all three places. In the two others,
 * a libibverbs has what it never uses here: operations that no queue pair of ours is created for
 * (wr_operations_allowed()), and xrcd, which only its own commands to the kernel set and read. The
 * header that we are built with may be of any of these versions; what is behind the masks is not
 * looked at by any.
 */
#define VERBS_QP_GROWS (offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void (*)(void)))
#define VERBS_QP_MASKS 3

struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
		struct {
			char never_grows[VERBS_QP_GROWS];
			uint64_t comp_masks[VERBS_QP_MASKS];
			void *xrcd; /* of the newest */
		};
	};
};
_Static_assert(VERBS_QP_GROWS % sizeof(uint64_t) == 0, "the masks are behind one another");
_Static_assert(offsetof(struct verbs_qp, comp_masks[VERBS_QP_MASKS - 1]) >=
		sizeof(struct ibv_qp_ex),
	"struct ibv_qp_ex has more operations than rdma-core 45 to 56: there is a further mask");

/** Every operation that a provider can have, sorted by name. */
struct verbs_context_ops {
	void *advise_mr, *alloc_dm;
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);
	void *alloc_null_mr, *alloc_parent_domain;
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	void *alloc_td, *async_event, *attach_counters_point_flow, *attach_mcast;
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
	void *close_xrcd, *cq_event;
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
	void *create_counters;
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
		struct ibv_comp_channel *channel, int vector);
	struct ibv_cq_ex *(
		*create_cq_ex)(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
	void *create_flow, *create_flow_action_esp;
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	struct ibv_qp *(
		*create_qp_ex)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
	void *create_rwq_ind_table;
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	void *create_srq_ex, *create_wq;
	int (*dealloc_mw)(struct ibv_mw *mw);
	int (*dealloc_pd)(struct ibv_pd *pd);
	void *dealloc_td;
	int (*dereg_mr)(struct verbs_mr *mr);
	int (*destroy_ah)(struct ibv_ah *ah);
	void *destroy_counters;
	int (*destroy_cq)(struct ibv_cq *cq);
	void *destroy_flow, *destroy_flow_action;
	int (*destroy_qp)(struct ibv_qp *qp);
	void *destroy_rwq_ind_table;
	int (*destroy_srq)(struct ibv_srq *srq);
	void *destroy_wq, *detach_mcast;
	void (*free_context)(struct ibv_context *context);
	void *free_dm, *get_srq_num, *import_dm, *import_mr, *import_pd, *modify_cq;
	void *modify_flow_action_esp;
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	void *modify_qp_rate_limit;
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	void *modify_wq, *open_qp, *open_xrcd;
	int (*poll_cq)(struct ibv_cq *cq, int num, struct ibv_wc *wc);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	void *post_srq_ops;
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*query_device_ex)(struct ibv_context *context,
		const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
		size_t size);
	void *query_ece;
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init);
	void *query_qp_data_in_order, *query_rt_values;
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	void *read_counters, *reg_dm_mr, *reg_dmabuf_mr;
	struct ibv_mr *(
		*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	void *rereg_mr, *resize_cq, *set_ece, *unimport_dm, *unimport_mr, *unimport_pd;
};

void verbs_register_driver_34(const struct verbs_device_ops *ops);
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t size,
	struct verbs_context *offset, uint32_t driver_id);
void verbs_uninit_context(struct verbs_context *context);
void verbs_set_ops(struct verbs_context *context, const struct verbs_context_ops *ops);

#endif
