/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_CTL_FAKE_ENGINE_H
#define TEST_CTL_FAKE_ENGINE_H

/**
 * @file
 * An engine without lcores or ports: real memory regions, and queue pairs that only remember what
 * was asked of them. Every posted send request completes at once with success.
 */

#include "engine/verbs.h"
#include "engine/verbs_trace.h"
#include "engine/verbs_cm.h"
#include "engine/verbs_mad.h"

#define FAKE_QPS      64
#define FAKE_CQS      8
#define FAKE_EVENTS   256
#define FAKE_SERVICES 1200 /* more than one page of polca-ctl's */
#define FAKE_WRS      64 /* a queue holds so many */

struct fake_qp {
	bool used;
	unsigned int worker;
	struct qp_init_attr init;
	struct qp_attr attr;
	struct engine_ah ah, alt_ah;
	uint32_t masks[8]; /* of each engine_qp_modify() */
	unsigned int modified;
	struct send_wr sent[FAKE_WRS];
	struct sge sge[FAKE_WRS];
	char inline_data[FAKE_WRS][64];
	unsigned int num_sent;
	unsigned int num_recv;
	struct recv_wr recv[FAKE_WRS];
	struct qp_failure failure;
};

struct fake_cq {
	bool used;
	uint32_t depth;
	struct wc wc[1024];
	unsigned int head, tail;
	bool armed, solicited_only;
};

/*
 * Queries that are answered at once with .num nodes of LIDs from 1 on, or stay running with what
 * has come so far, or end as a test says.
 */
struct fake_sa {
	bool disabled;
	bool fleet; /* it belongs to one */
	struct sa_query asked; /* the last one; its pointers are not kept */
	struct engine_ah ah;
	bool own;
	uint16_t pkey_index;
	uint32_t timeout_ms;
	int worker;
	bool monitoring;
	uint8_t records[4][SA_RECORD_MAX]; /* of a Config */
	uint32_t rids[4];
	uint32_t id; /* of the query there is; 0: none */
	uint64_t num;
	bool running;
	enum mad_end end;
	uint16_t status;
	uint8_t rmpp_status;
	int error;
	unsigned int sessions;
	struct engine_sa_import import; /* the last one */
	char import_text[4096];
	unsigned int import_polls; /* left until it is done */
	int import_result;
	uint64_t exported;
};

/* A request that a subnet of the test's answers. */
struct fake_smp {
	bool used;
	uint32_t id;
	unsigned int looks; /* left until its answer is there */
	struct engine_mad_answer answer;
};

/*
 * Datagrams: SMPs read and write one attribute, whatever its name; liveness requests are answered.
 * Some are lost, or answered with a status, as a test says.
 */
struct fake_mad {
	struct engine_mad_ask asked[4]; /* the last ones, by .asks % 4; pointers are not kept */
	struct engine_ah ah;
	unsigned int asks;
	unsigned int lost; /* every so many: 0 none, 1 all */
	uint16_t lost_lid; /* all to it; to the next one they are never over */
	unsigned int polls; /* looks until an answer is there */
	unsigned int looks; /* left, of the one under way */
	bool forgotten;
	uint16_t status;
	bool is_ca; /* SwitchInfo is refused */
	bool wrong_sequence;
	uint8_t attribute[SMA_DATA_LEN];
	struct engine_mad_answer answer;
	uint8_t data[(1 << 20) + 8]; /* of a request, and then of its answer, of many packets */
	/*
	 * A subnet in place of the one attribute: many requests at a time. @return false: nobody
	 * answers
	 */
	bool (*subnet)(void *arg, const uint8_t *smp, uint8_t *data);
	void *subnet_arg;
	struct fake_smp smp[ENGINE_MAD_ASKS];
	unsigned int under_way;
	unsigned int most_under_way;
	unsigned int asks_left; /* of a subnet: then there is no more room; 0: no such bound */
};

struct fake_sma {
	unsigned int traps; /* there are so many */
	unsigned int port; /* of the one sent last */
	uint16_t number;
	uint8_t notice[SMA_DATA_LEN];
	uint32_t repressed;
	struct engine_sm_smp smp; /* .number 0: none has come in */
	bool smp_taken;
	uint8_t sm_state;
	uint8_t sm_priority;
	struct link_lid_info lid[3];
	unsigned int lids;
	bool forgot;
};

/*
 * Services that only stand there, and connections that are made as their port says, or as a test
 * does.
 */
struct fake_cm {
	struct engine_service_info service[FAKE_SERVICES];
	unsigned int services;
	bool disconnect; /* of the last unlisten */
	struct engine_cm_connect asked; /* the last one; its pointers are not kept */
	struct engine_ah ah;
	struct svc_config driver;
	bool driven;
	int connect_error;
	bool scripted; /* outcome is the test's */
	struct engine_cm_outcome outcome;
	unsigned int polls; /* looks until it is done */
	unsigned int looks; /* left, of the one under way */
	uint32_t forgotten;
	cm_id connections; /* there are so many */
	cm_id disconnected;
	cm_id alternate_of;
	struct engine_ah alternate;
	bool disagrees; /* the peer, with alternate paths */
};

struct engine {
	struct fake_sa sa;
	struct fake_mad mad;
	struct fake_sma sma;
	struct fake_cm cm;
	struct event_base *base;
	bool awaited;
	struct event *wakeup; /* libevent's */
	struct mem *mem;
	struct port_attr port[2];
	struct fake_qp qp[FAKE_QPS];
	struct fake_cq cq[FAKE_CQS];
	struct event event[FAKE_EVENTS];
	unsigned int event_head, event_tail;
	uint64_t lost;
	bool recorded;
	struct engine_trace trace; /* what the flight recorder has */
	bool hop_silent; /* the next hop does not answer ARP */
	bool modify_fails; /* the RTR -> RTS step */
	uint32_t srq_limit;
	unsigned int mr_local_port; /* of the last region */
};

struct engine *fake_engine_create(void);
void fake_engine_destroy(struct engine *e);
void fake_complete(struct engine *e, uint32_t cqn, const struct wc *wc);
void fake_event(struct engine *e, enum event_type type, uint32_t element);
/** End the wait of the event loop, if the control thread awaits a change. */
void fake_wake(struct engine *e);

#endif
