/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "command.h"
#include "peers/exchange.h"
#include "peers/perftest.h"
#include "svc/perftest_exchange.h"

#define ANSWER_S 30
#define DEPTH    4
#define BUFFER   4096
#define PAUSE_US 200

int
perftest_talk_tcp(struct perftest_talk *t, const char *where, struct error *err)
{
	t->fd = exchange_dial_tcp("--perftest", where, PERFTEST_PORT, err);
	return t->fd < 0 ? t->fd : 0;
}

/* --- over an RDMA connection (perftest -R), with a CQ of its own and one posted receive --- */

static int
talk_post_receive(struct perftest_talk *t, struct error *err)
{
	struct sge sge = { t->mr.va, BUFFER, t->mr.key };
	struct recv_wr wr = { .num_sge = 1, .sg_list = &sge };

	return rc_post_recv(t->end->rc[0], t->qpn, &wr, err);
}

int
perftest_talk_cm(struct perftest_talk *t, struct connector *c, struct error *err)
{
	struct mem_mr_attr mr = {
		.pd = t->end->pd,
		.access = MEM_ACCESS_LOCAL_WRITE,
		.length = BUFFER,
		.va = BUFFER,
		.numa_node = -1,
	};
	struct engine *e = t->end->engine;
	struct connector control = *c;
	struct engine_cm_outcome out;
	int ret;

	ret = engine_mr_register(e, &mr, 0, &t->mr, err);
	if (ret == 0)
		ret = engine_cq_create(e, 2 * DEPTH, &t->cq, err);
	if (ret != 0)
		return ret;
	control.connect.ah = &control.ah;
	control.connect.param.qp.send_cq = control.connect.param.qp.recv_cq = t->cq;
	control.connect.param.qp.cap = (struct qp_cap){
		.max_send_wr = DEPTH,
		.max_recv_wr = DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline_data = PERFTEST_MESSAGE_MAX,
	};
	ret = connector_open(&control, &out, err);
	t->qpn = out.info.qpn;
	return ret == 0 ? talk_post_receive(t, err) : ret;
}

void
perftest_talk_end(struct perftest_talk *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

/* --- a message --- */

static int
talk_send(struct perftest_talk *t, const uint8_t *message, size_t len, struct error *err)
{
	struct send_wr wr = {
		.opcode = WR_SEND,
		.send_flags = SEND_INLINE,
		.inline_data = message,
		.inline_len = (uint32_t)len,
	};

	if (t->fd < 0)
		return rc_post_send(t->end->rc[0], t->qpn, &wr, err);
	if (send(t->fd, message, len, MSG_NOSIGNAL) == (ssize_t)len)
		return 0;
	return error_set(err, ECONNRESET, "the perftest server is gone (%s)", strerror(errno));
}

/* @return bytes received, 0: none yet, negative: the server is gone */
static int
talk_receive_cm(struct perftest_talk *t, uint8_t *answer)
{
	struct wc wc;

	if (engine_cq_poll(t->end->engine, t->cq, &wc, 1, NULL) <= 0)
		return 0;
	if (wc.status != WC_SUCCESS)
		return -ECONNRESET;
	if (wc.opcode != WC_RECV || wc.byte_len > PERFTEST_MESSAGE_MAX)
		return wc.opcode == WC_RECV ? -EMSGSIZE : 0;
	memcpy(answer, t->mr.base, wc.byte_len);
	return talk_post_receive(t, NULL) == 0 ? (int)wc.byte_len : -ECONNRESET;
}

static int
talk_receive_tcp(struct perftest_talk *t, uint8_t *answer, size_t room)
{
	ssize_t n = recv(t->fd, answer, room, MSG_DONTWAIT);

	if (n > 0)
		return (int)n;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ECONNRESET;
}

/* Keep the engine running: the peer may ask for our MAC address. */
static void
talk_keep_running(struct perftest_talk *t)
{
	if (t->end->engine != NULL)
		connection_turn(t->end);
	else
		usleep(PAUSE_US);
}

static int
talk_receive(struct perftest_talk *t, uint8_t *answer, size_t len, struct error *err)
{
	uint64_t until = rte_get_tsc_cycles() + ANSWER_S * rte_get_tsc_hz();
	size_t got = 0;
	int n;

	while (got < len) {
		n = t->fd < 0 ? talk_receive_cm(t, answer)
			      : talk_receive_tcp(t, answer + got, len - got);
		if (n < 0)
			return error_set(err, ECONNRESET,
				"the perftest server is gone: see its own messages for the reason");
		got += (size_t)n;
		if (n > 0 && t->fd < 0 && got != len)
			return error_set(err, EPROTO,
				"the perftest server sent an unexpected answer");
		if (bench_stop != 0)
			return error_set(err, EINTR, "interrupted");
		if (rte_get_tsc_cycles() > until)
			return error_set(err, ETIMEDOUT, "the perftest server does not answer");
		report_progress("waiting for the perftest server");
		talk_keep_running(t);
	}
	return 0;
}

int
perftest_talk(struct perftest_talk *t, const uint8_t *message, size_t len, uint8_t *answer,
	struct error *err)
{
	int ret = talk_send(t, message, len, err);

	return ret == 0 ? talk_receive(t, answer, len, err) : ret;
}

bool
perftest_talk_quiet(struct perftest_talk *t)
{
	uint8_t answer[PERFTEST_MESSAGE_MAX];

	if (t->fd < 0)
		return talk_receive_cm(t, answer) == 0;
	return recv(t->fd, answer, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}
