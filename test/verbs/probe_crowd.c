/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A program with many queue pairs that the test kills, and the peer of one of them.
 */

#include <unistd.h>

#include "probe.h"

static struct side own;

/* Read "peer QPN": the queue pair on the other device. */
static struct ibv_qp
hear_peer(const char *device)
{
	struct ibv_qp peer = { .context = ibv_open_device(find_device(device)) };
	char line[64];

	expect(peer.context != NULL);
	printf("qpn %u\n", own.qp->qp_num);
	fflush(stdout);
	expect(fgets(line, sizeof(line), stdin) != NULL);
	expect(sscanf(line, "peer %u", &peer.qp_num) == 1);
	return peer;
}

/* A queue pair in RTS towards another one of this program; each has a receive request. */
static void
connect_within(struct ibv_qp *qp, struct ibv_qp *peer)
{
	struct side s = own;

	s.qp = qp;
	qp_advance(qp, peer, IBV_QPS_RTS);
	side_post_receive(&s, 1);
}

/* victim QPS [connect: the first one with a survivor; or pairs: the others with each other] */
int
probe_victim(int argc, char **argv)
{
	int qps = argc > 1 ? atoi(argv[1]) : 1;
	bool pairs = argc > 2 && strcmp(argv[2], "pairs") == 0;
	struct ibv_qp peer, *before = NULL, *qp;

	side_make(&own, ibv_open_device(find_device("polca0")), NULL);
	for (int i = 1; i < qps; i++) {
		qp = side_make_qp(&own, true);
		expect(qp != NULL);
		if (pairs && i % 2 == 0) {
			connect_within(before, qp);
			connect_within(qp, before);
		}
		before = qp;
	}
	if (argc > 2 && !pairs) {
		peer = hear_peer("polca1");
		qp_advance(own.qp, &peer, IBV_QPS_RTS);
		for (uint64_t i = 0; i < SIDE_DEPTH; i++)
			side_post_receive(&own, i);
	}
	probe_say("ready");
	pause();
	return 0;
}

/* The peer of a dead program: it gets no answer, and its queue pair fails as the standard says. */
int
probe_survivor(int argc, char **argv)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;
	struct ibv_qp peer;

	(void)argc;
	(void)argv;
	side_make(&own, ibv_open_device(find_device("polca1")), NULL);
	peer = hear_peer("polca0");
	probe_retries = 1;
	qp_advance(own.qp, &peer, IBV_QPS_RTS);
	probe_say("connected");
	probe_hear("send");
	side_post_send(&own, 1, true);
	wc = next_completion(own.cq);
	expect(wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS);
	probe_say("sent");
	probe_hear("it is dead");
	side_post_receive(&own, 4);
	side_post_send(&own, 2, true);
	side_post_send(&own, 3, false);
	wc = next_completion(own.cq);
	expect(wc.wr_id == 2 && wc.status == IBV_WC_RETRY_EXC_ERR);
	for (int i = 0; i < 2; i++) {
		wc = next_completion(own.cq);
		expect(wc.status == IBV_WC_WR_FLUSH_ERR && (wc.wr_id == 3 || wc.wr_id == 4));
	}
	expect(ibv_query_qp(own.qp, &attr, IBV_QP_STATE, &init) == 0);
	expect(attr.qp_state == IBV_QPS_ERR);
	probe_side_destroy(&own);
	expect(ibv_close_device(peer.context) == 0);
	return 0;
}

/* Bring a queue pair to RTR towards an address of this network that nobody has. */
static int
qp_name_stranger(struct ibv_qp *qp, unsigned int which)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 7,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 1 } },
	};

	expect(ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
	attr.ah_attr.grh.dgid.raw[14] = (uint8_t)(1 + which / 250);
	attr.ah_attr.grh.dgid.raw[15] = (uint8_t)(1 + which % 250);
	return ibv_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* stranger QPS NUMBER: each queue pair names another address. */
int
probe_stranger(int argc, char **argv)
{
	unsigned int qps = argc > 1 ? (unsigned int)atoi(argv[1]) : 1, named = 0;
	unsigned int first = argc > 2 ? (unsigned int)atoi(argv[2]) * qps : 0;

	side_make(&own, ibv_open_device(find_device("polca0")), NULL);
	for (unsigned int i = 0; i < qps; i++) {
		struct ibv_qp *qp = i == 0 ? own.qp : side_make_qp(&own, true);
		int rc;

		expect(qp != NULL);
		qp_advance(qp, NULL, IBV_QPS_INIT);
		rc = qp_name_stranger(qp, first + i);
		expect(rc == 0 || rc == ENOMEM);
		named += rc == 0;
	}
	printf("named %u\n", named);
	probe_say("done");
	probe_hear("end");
	return 0;
}
