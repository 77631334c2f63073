/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_METHODS_H
#define CTL_METHODS_H

/**
 * @file
 * What the method files share: their tables, words for numbers, small helpers.
 */

#include "ctl/forms.h"
#include "ctl/rpc.h"
#include "table/value.h"
#include "engine/verbs.h"
#include "engine/verbs_mad.h"
#include "engine/verbs_sa.h"

extern const struct rpc_method methods_server[];
extern const struct rpc_method methods_config[];
extern const struct rpc_method methods_port[];
extern const struct rpc_method methods_lid[];
extern const struct rpc_method methods_stats[];
extern const struct rpc_method methods_mem[];
extern const struct rpc_method methods_bytes[];
extern const struct rpc_method methods_cq[];
extern const struct rpc_method methods_srq[];
extern const struct rpc_method methods_qp[];
extern const struct rpc_method methods_trace[];
extern const struct rpc_method methods_qp_trace[];
extern const struct rpc_method methods_cm_trace[];
extern const struct rpc_method methods_sa_trace[];
extern const struct rpc_method methods_modify[];
extern const struct rpc_method methods_post[];
extern const struct rpc_method methods_client[];
extern const struct rpc_method methods_sa[];
extern const struct rpc_method methods_sa_data[];
extern const struct rpc_method methods_sa_sweep[];
extern const struct rpc_method methods_sa_stats[];
extern const struct rpc_method methods_fleet[];
extern const struct rpc_method methods_smp[];
extern const struct rpc_method methods_trap[];
extern const struct rpc_method methods_sm[];
extern const struct rpc_method methods_live[];
extern const struct rpc_method methods_service[];
extern const struct rpc_method methods_cm_connect[];
extern const struct rpc_method methods_cm[];

/** methods_sm.c: a row of sm_take, and of events: what has come in for the subnet manager. */
struct sm_smp_row {
	struct engine_sm_smp info;
	const char *method;
	const char *attribute;
	uint32_t modifier;
	uint64_t tid;
	uint64_t age_ms;
	json_t *notice;
	struct table_bytes data;
};
extern const struct table_row rows_sm_smp[];
/** Fill what follows from .info. @retval -ENOMEM */
int fill_sm_smp(struct rpc_call *call, struct sm_smp_row *row);

/** methods_trace.c: a step of the flight recorder, as a row of a table. */
struct step_row {
	uint32_t present;
	double time_us;
	const char *step;
	uint32_t number;
	uint32_t expected;
	const char *what;
	const char *outcome;
};
extern const struct table_row rows_qp_step[];
/** The steps that came with a QP_ERROR: none if they were not recorded. @retval -ENOMEM */
int fill_event_steps(struct rpc_call *call, uint32_t trace, struct table_list *steps);

/* words.c */
extern const struct table_word words_access[];
extern const struct table_word words_remote_access[];
extern const struct table_word words_qp_type[];
extern const struct table_word words_qp_state[];
extern const struct table_word words_mig_state[];
extern const struct table_word words_wr_opcode[];
extern const struct table_word words_send_flags[];
extern const struct table_word words_wc_flags[];
extern const struct table_word words_mw_type[];
extern const struct table_word words_gid_type[];

/** A method without parameters. */
extern const struct table_row params_none[];

/** Parameters of every list: where to go on, and how many rows at most. */
#define PAGE_MAX 1000
struct page_args {
	uint64_t cursor;
	uint32_t max;
};
extern const struct table_row params_page[];

/** The result of every list: rows, which are structures S, and where to go on. */
struct page_reply {
	struct table_list rows;
	uint64_t cursor; /**< 0: that was all */
};
/* clang-format off */
#define PAGE_ROWS(text, S, table)                                                                  \
	ROW_NAMED(struct page_reply, text, rows, TABLE_LIST, .fields = table,                      \
		.item_size = sizeof(S)),                                                           \
	ROW(struct page_reply, cursor, TABLE_UINT,                                                 \
		"pass it to get the rows that follow; null: there are none", .flags = TABLE_NULL,  \
		.min = 1)
/* clang-format on */
/** Handler of all lists: args begin with struct page_args, and the method has .next. */
int page_list(struct rpc_call *call);
#define PAGES(rows, next_row) RESULTS(rows, struct page_reply), .next = next_row, .reads = true

/** A list of texts. */
extern const struct table_row value_text[];
#define WARNINGS_ROW(S)                                                                            \
	ROW(S, warnings, TABLE_LIST, "list of text, when there is something to warn of",           \
		.flags = TABLE_OPTIONAL | TABLE_VALUES, .fields = value_text,                      \
		.item_size = sizeof(const char *))
void add_warning(struct rpc_call *call, struct table_list *warnings, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** Append a row to a list of the reply. @return the zeroed row; NULL: no memory */
#define ADD(call, list, S) ((S *)list_add(&(call)->arena, list, sizeof(S)))

/** Whose an object is. */
#define SERVICE_NAME_ROW(S)                                                                        \
	ROW(S, service, TABLE_STRING, "whose it is; null: a caller's own", .flags = TABLE_NULL)

/** One object, by number: the parameter of a method, or the result of one that makes an object. */
struct number_args {
	uint32_t number;
};
#define NUMBER_ROW(text, ...) ROW_NAMED(struct number_args, text, number, TABLE_UINT, __VA_ARGS__)
/** Handler of methods that have .verb: args are struct number_args. */
int number_method(struct rpc_call *call);

/** The region whose key this is. @retval -ENOENT call->err says so */
int find_region(struct rpc_call *call, uint32_t key, struct mem_mr_info *info);
/** Is call->now beyond the time the caller wanted to wait? */
bool waited(struct rpc_call *call, uint32_t timeout_ms);

/** A name that is none of @p of's: in words as many of the right ones as fit, in data all. */
int no_such_field(struct rpc_call *call, const char *unknown, const char *of, json_t *names);
/** Is there such a port? And is it a native InfiniBand one? @retval -EINVAL call->err says so */
int ctl_check_port(struct rpc_call *call, unsigned int port);
int ctl_check_local_port(struct rpc_call *call, unsigned int port);
int ctl_check_ib_port(struct rpc_call *call, unsigned int port);

/* start_psn.c: the start PSN chosen for a QP when it was made */
uint32_t start_psn_choose(struct rpc_call *call, uint32_t qpn);
/** @return the one chosen; a fresh one for a QP that somebody else made */
uint32_t start_psn_of(struct rpc_call *call, uint32_t qpn);
void start_psn_forget(struct rpc_call *call, uint32_t qpn);

/* methods_sa_data.c */
/**
 * How the import that was started ends.
 *
 * @return RPC_WAIT, 0 or what it failed with
 */
int wait_for_import(struct rpc_call *call, struct engine_sa_imported *imported);

/* methods_port.c */
/** The port's state as PortInfo.PortState has it; of a RoCE port DOWN or ACTIVE. */
uint32_t port_state(const struct port_attr *attr, const struct link_state *state);

/* methods_stats.c */
/** Takes counters into an object: what counters_rc() and the others call, with this as argument. */
struct counter_sink {
	json_t *obj; /**< lives as long as the call */
	bool nonzero; /**< leave out those that are 0 */
};
struct counter_sink counter_sink(struct rpc_call *call, bool nonzero);
void counter_take(void *arg, const char *name, const char *help, uint64_t value);
json_t *json_rc_counters(struct rpc_call *call, const struct rc_counters *c, bool nonzero);

/* --- queue pairs to be made: rows of a structure that has a struct qp_init_attr at @p at --- */
/* clang-format off */
#define QP_INIT_ROW(at, field, t, ...)                                                             \
	{ .name = #field, .type = t, .offset = (at) + offsetof(struct qp_init_attr, field),        \
		.size = sizeof(((struct qp_init_attr *)0)->field), __VA_ARGS__ }
#define QP_CAP_ROW(at, field, ...)                                                                 \
	{ .name = #field, .type = TABLE_UINT,                                                      \
		.offset = (at) + offsetof(struct qp_init_attr, cap.field),                         \
		.size = sizeof(uint32_t), __VA_ARGS__ }
#define QP_QUEUE_ROWS(at)                                                                          \
	QP_INIT_ROW(at, srq, TABLE_UINT, "shared receive queue in place of one of its own",        \
		.def = RC_NO_SRQ, .def_text = "none"),                                             \
	QP_CAP_ROW(at, max_send_wr, "work requests the send queue holds", .def = 128),             \
	QP_CAP_ROW(at, max_recv_wr, "receive requests the receive queue holds", .def = 128),       \
	QP_CAP_ROW(at, max_send_sge, "gather entries of a work request", .def = 4,                 \
		.max = RC_SGE_MAX),                                                                \
	QP_CAP_ROW(at, max_recv_sge, "scatter entries of a receive request", .def = 4,             \
		.max = RC_SGE_MAX),                                                                \
	QP_CAP_ROW(at, max_inline_data, "bytes of inline_data", .def = 64, .max = RC_INLINE_MAX),  \
	QP_INIT_ROW(at, sq_sig_all, TABLE_BOOL, "every work request completes, SIGNALED or not",   \
		.def = 1)
/* clang-format on */

/* methods_post.c */
struct recv_wr_args {
	uint64_t wr_id;
	struct table_list sg_list;
};
extern const struct table_row params_recv_wr[];
/** What post_send, post_recv and srq_post reply. */
struct posted_reply {
	uint64_t posted;
};
extern const struct table_row results_posted[];
typedef int recv_poster(struct engine *e, uint32_t queue, const struct recv_wr *wr, unsigned int n,
	struct error *err);
/** Post decoded receive requests one after the other, and tell how many: posted. */
int post_recv_wrs(struct rpc_call *call, recv_poster *post, uint32_t queue,
	const struct table_list *list);

/* addr.c */

/** Where packets go, as parameters. */
struct ah_args {
	uint32_t present;
	uint16_t port;
	uint16_t sgid_index;
	union gid dgid;
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t dmac[6];
};
#define AH_SGID_INDEX 0x1
#define AH_DMAC       0x2
#define AH_PORT       0x4
#define AH_LAST       0x4

/**
 * Rows of an address in a structure that has a struct ah_args at @p at (0: it is one, or begins
 * with one).
 */
/* clang-format off */
#define AH_ROW_NAMED(at, text, field, t, ...)                                                      \
	{ .name = text, .type = t, .offset = (at) + offsetof(struct ah_args, field),               \
		.size = sizeof(((struct ah_args *)0)->field), __VA_ARGS__ }
/* clang-format on */
#define AH_ROW(at, field, t, ...) AH_ROW_NAMED(at, #field, field, t, __VA_ARGS__)
/* clang-format off */
#define AH_ROWS(at)                                                                                \
	AH_ROW(at, dgid, TABLE_GID,                                                                \
		.help = "the peer's address; native IB: its GID, where packets shall have a GRH"), \
	AH_ROW(at, sgid_index, TABLE_UINT, "own address: index in the port's list (port_list)",    \
		.max = 255, .bit = AH_SGID_INDEX,                                                  \
		.def_text = "the first that suits the peer's address"),                            \
	AH_ROW(at, traffic_class, TABLE_UINT, "DSCP and ECN bits (IPv4 TOS, IPv6 traffic class)"), \
	AH_ROW(at, flow_label, TABLE_UINT, "IPv6 flow label; also chooses the UDP source port",    \
		.max = 0xfffff),                                                                   \
	AH_ROW(at, hop_limit, TABLE_UINT, "IPv4 TTL, IPv6 hop limit", .def = 64, .min = 1),        \
	AH_ROW(at, sl, TABLE_UINT, "service level; the VLAN's PCP where there is a VLAN",          \
		.max = 15),                                                                        \
	AH_ROW(at, dlid, TABLE_UINT, "native IB: the peer's LID"),                                 \
	AH_ROW(at, dmac, TABLE_MAC, .help = "MAC address of the next hop", .bit = AH_DMAC,         \
		.def_text = "found by ARP or IPv6 ND")
/* clang-format on */

/**
 * Fill in what the verbs want of an address.
 *
 * @param port  the local port that packets leave by
 * @retval -EINVAL  call->err says why
 */
int make_ah(struct rpc_call *call, const struct ah_args *a, uint16_t port, struct engine_ah *ah);
/** Is the next hop known? A datagram sent before is lost, and costs a timeout. */
bool hop_known(struct rpc_call *call, const struct engine_ah *ah);
#define NEXT_HOP_WAIT_MS 500
/** A QP's address as ah_attr has it: rows of struct av. */
extern const struct table_row rows_ah[];

#endif
