/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <sys/mman.h>

#include "probe.h"

void
probe_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: not true: %s (errno %d: %s)\n", file, line, condition, errno,
		strerror(errno));
	exit(1);
}

void
probe_say(const char *line)
{
	puts(line);
	fflush(stdout);
}

void
probe_hear(const char *line)
{
	char got[64];

	expect(fgets(got, sizeof(got), stdin) != NULL);
	got[strcspn(got, "\n")] = '\0';
	expect(strcmp(got, line) == 0);
}

/* The list stays: a device of it can be opened for the program's life. */
struct ibv_device *
find_device(const char *name)
{
	static struct ibv_device **list;

	if (list == NULL)
		list = ibv_get_device_list(NULL);
	expect(list != NULL);
	for (struct ibv_device **d = list; *d != NULL; d++)
		if (strcmp(ibv_get_device_name(*d), name) == 0)
			return *d;
	probe_fail(__FILE__, __LINE__, name);
}

struct ibv_qp *
side_make_qp(struct side *s, bool all_signaled)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { SIDE_DEPTH, SIDE_DEPTH, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = all_signaled,
	};

	return ibv_create_qp(s->pd, &init);
}

void
side_make(struct side *s, struct ibv_context *context, uint8_t *memory)
{
	s->context = context;
	expect(context != NULL);
	s->memory = memory != NULL ? memory
				   : mmap(NULL, SIDE_BYTES, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(s->memory != MAP_FAILED);
	s->pd = ibv_alloc_pd(context);
	expect(s->pd != NULL);
	s->channel = ibv_create_comp_channel(context);
	expect(s->channel != NULL);
	s->cq = ibv_create_cq(context, SIDE_DEPTH * 4, s, s->channel, 0);
	expect(s->cq != NULL);
	s->mr = ibv_reg_mr(s->pd, s->memory, SIDE_BYTES,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	expect(s->mr != NULL);
	s->qp = side_make_qp(s, false);
	expect(s->qp != NULL);
}

void
probe_side_destroy(struct side *s)
{
	expect(ibv_destroy_qp(s->qp) == 0);
	expect(ibv_dereg_mr(s->mr) == 0);
	expect(ibv_destroy_cq(s->cq) == 0);
	expect(ibv_destroy_comp_channel(s->channel) == 0);
	expect(ibv_dealloc_pd(s->pd) == 0);
	expect(ibv_close_device(s->context) == 0);
}

static int
qp_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return ibv_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

uint32_t probe_psn;

static int
qp_to_rtr(struct ibv_qp *qp, struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.rq_psn = probe_psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 1 } },
	};

	if (ibv_query_gid(peer->context, 1, 0, &attr.ah_attr.grh.dgid) != 0)
		return -1;
	return ibv_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

uint8_t probe_retries = 7;

/* What has no receive request stays outstanding for ever. */
static int
qp_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = probe_retries,
		.rnr_retry = 7,
		.sq_psn = probe_psn,
		.max_rd_atomic = 1,
	};

	return ibv_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void
qp_advance(struct ibv_qp *qp, struct ibv_qp *peer, enum ibv_qp_state to)
{
	expect(qp_to_init(qp) == 0);
	if (to >= IBV_QPS_RTR)
		expect(qp_to_rtr(qp, peer) == 0);
	if (to >= IBV_QPS_RTS)
		expect(qp_to_rts(qp) == 0);
}

int
side_try_receive(struct side *s, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, 64, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(s->qp, &wr, &bad);
}

int
side_try_send(struct side *s, uint64_t wr_id, bool signaled)
{
	struct ibv_sge sge = { (uintptr_t)s->memory + SIDE_BYTES / 2, 64, s->mr->lkey };
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = wr_id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = signaled ? IBV_SEND_SIGNALED : 0,
		};

	return ibv_post_send(s->qp, &wr, &bad);
}

void
side_post_receive(struct side *s, uint64_t wr_id)
{
	expect(side_try_receive(s, wr_id) == 0);
}

void
side_post_send(struct side *s, uint64_t wr_id, bool signaled)
{
	expect(side_try_send(s, wr_id, signaled) == 0);
}

struct ibv_wc
next_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (n == 0);
	expect(n == 1);
	return wc;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} probes[] = {
		{ "death", probe_death },
		{ "acknowledge", probe_acknowledge },
		{ "close", probe_close },
		{ "limits", probe_limits },
		{ "victim", probe_victim },
		{ "survivor", probe_survivor },
		{ "stranger", probe_stranger },
		{ "windows", probe_windows },
		{ "wr", probe_wr },
		{ "shared", probe_shared },
		{ "swapped", probe_swapped },
		{ "left", probe_left },
		{ "refused", probe_refused },
		{ "reset", probe_reset },
		{ "unsupported", probe_unsupported },
	};

	for (size_t i = 0; argc > 1 && i < sizeof(probes) / sizeof(probes[0]); i++)
		if (strcmp(argv[1], probes[i].name) == 0)
			return probes[i].run(argc - 1, argv + 1);
	fprintf(stderr,
		"usage: verbs_probe death|acknowledge|close|limits|victim|survivor|stranger|windows|"
		"wr|shared|swapped|left|refused|reset|unsupported [ARGUMENT ...]\n");
	return 2;
}
