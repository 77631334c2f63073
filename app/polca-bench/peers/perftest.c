/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "peers/perftest.h"
#include "svc/perftest_client.h"

#define READS   16
#define RETRY_S 10 /* the server listens again some time after each connection */
#define STALL_S 20
#define MIB     1048576.0

struct perftest {
	struct benchmark *s;
	struct perftest_client client;
	struct perftest_talk talk;
	struct connector connector;
	struct perftest_dest *ours, *theirs;
	uint64_t seen; /* completed messages */
	uint64_t moved; /* TSC when .seen last changed */
};

static enum perftest_program
program_of(const struct bench_options *o)
{
	return (enum perftest_program)(2 * (unsigned int)o->verb + (o->mode == BENCH_LAT));
}

static bool
needs_memory(const struct bench_options *o)
{
	return o->verb != BENCH_SEND;
}

/* --- addresses, keys and queue pair numbers of both sides --- */

static void
describe_ours(struct perftest *p)
{
	const struct bench_options *o = &p->s->o;
	struct endpoint *end = &p->s->end[REQUESTER];
	struct peer us;
	uint32_t i;

	endpoint_describe(end, &us);
	for (i = 0; i < o->qps; i++)
		p->ours[i] = (struct perftest_dest){
			.out_reads = o->verb >= BENCH_READ ? READS : 1,
			.qpn = end->qpn[i],
			.psn = us.psn,
			.rkey = us.key,
			.va = us.va + memory_arrivals(o),
			.has_gid = true,
			.gid = us.gid,
		};
}

static int
take_theirs(struct perftest *p, struct error *err)
{
	const struct bench_options *o = &p->s->o;
	struct peer *peer = &p->s->peer[REQUESTER];
	const struct perftest_dest *d = p->theirs;
	uint32_t i;

	peer->gid = d->gid;
	peer->va = d->va;
	peer->key = d->rkey;
	peer->length = RTE_MAX(o->size, p->client.cycle_buffer);
	if (needs_memory(o) && d->rkey == 0)
		return error_set(err, EPROTO, "the server offers no memory: is it %s?",
			perftest_program_name(program_of(o)));
	for (i = 0; i < o->qps; i++) {
		peer->qpn[i] = d[i].qpn;
		peer->psns[i] = d[i].psn;
		if (d[i].rkey != d->rkey)
			return error_set(err, ENOTSUP,
				"the server has separate memory for each queue pair: leave out --mr_per_qp there, or -q");
	}
	return 0;
}

static int
perftest_alloc(struct perftest *p, struct error *err)
{
	struct peer *peer = &p->s->peer[REQUESTER];
	uint32_t n = p->s->o.qps;

	p->ours = calloc(n, sizeof(*p->ours));
	p->theirs = calloc(n, sizeof(*p->theirs));
	peer->qpn = calloc(n, sizeof(*peer->qpn));
	peer->psns = calloc(n, sizeof(*peer->psns));
	if (p->ours == NULL || p->theirs == NULL || peer->qpn == NULL || peer->psns == NULL)
		return error_set(err, ENOMEM, "no memory for %u queue pairs", n);
	return 0;
}

/* --- queue pairs --- */

static int
connect_by_address(struct perftest *p, struct error *err)
{
	struct benchmark *s = p->s;
	struct endpoint *end = &s->end[REQUESTER];
	int ret = take_theirs(p, err);

	s->o.mtu = p->client.mtu;
	if (ret == 0 && gid_is_ipv4(&p->ours->gid) != gid_is_ipv4(&p->theirs->gid))
		ret = error_set(err, EAFNOSUPPORT,
			"the server's address family differs from ours: choose another one with -x there");
	if (ret == 0)
		ret = endpoint_connect(end, &s->peer[REQUESTER], &s->o, err);
	return ret == 0 ? endpoints_resolve(end, 1, err) : ret;
}

static bool
perftest_not_listening(const struct engine_cm_outcome *out)
{
	return out->done && out->info.reason == CM_REJ_INVALID_SERVICE_ID;
}

static int
connect_by_cm(struct perftest *p, struct error *err)
{
	uint64_t until = rte_get_tsc_cycles() + RETRY_S * rte_get_tsc_hz();
	struct endpoint *end = &p->s->end[REQUESTER];
	struct engine_cm_outcome out;
	int ret = 0;

	while (end->qps < p->s->o.qps) {
		ret = connector_open(&p->connector, &out, err);
		if (ret == 0)
			end->qpn[end->qps++] = out.info.qpn;
		else if (!perftest_not_listening(&out) || rte_get_tsc_cycles() > until)
			return ret;
	}
	describe_ours(p);
	return 0;
}

/* --- the run --- */

/* Exchange messages until the next step is not a message. */
static int
perftest_converse(struct perftest *p, struct error *err)
{
	struct perftest_client *c = &p->client;
	uint8_t message[PERFTEST_MESSAGE_MAX], answer[PERFTEST_MESSAGE_MAX];
	const char *wrong;
	size_t len;
	int ret;

	while (perftest_client_step(c) == PERFTEST_CLIENT_SAY) {
		len = perftest_client_say(c, message);
		ret = perftest_talk(&p->talk, message, len, answer, err);
		if (ret != 0)
			return ret;
		wrong = perftest_client_hear(c, answer, len);
		if (wrong != NULL)
			return error_set(err, EPROTO,
				c->version[0] == '\0' ? "%s %s"
						      : "%s %s (%.15s; allowed 5.70 and newer)",
				p->s->o.perftest, wrong, c->version);
	}
	return 0;
}

static int
perftest_look(struct run *run, uint64_t now)
{
	struct perftest *p = run->arg;
	struct benchmark *s = p->s;
	uint64_t done = run_done(run);

	benchmark_look(s, now);
	if (done != p->seen || p->moved == 0) {
		p->seen = done;
		p->moved = now;
	}
	if (s->o.iterations > 0 && done >= s->o.iterations)
		return 0;
	if (now - p->moved > STALL_S * rte_get_tsc_hz())
		return error_set(&s->lost, ETIMEDOUT, "no message was done for %u s", STALL_S);
	if (!perftest_talk_quiet(&p->talk))
		return error_set(&s->lost, ECONNRESET, "the perftest server has ended");
	return 0;
}

/* Add what the server's command line must be: most often the two differ. */
static int
perftest_hint(const struct perftest *p, int ret, struct error *err)
{
	const struct bench_options *o = &p->s->o;
	char what[sizeof(err->text)], count[40] = "and the same -D";

	if (ret == 0 || ret == -EINTR)
		return ret;
	if (o->iterations > 0)
		snprintf(count, sizeof(count), "-n %lu", o->iterations / o->qps);
	snprintf(what, sizeof(what), "%s", err->text);
	return error_set(err, -ret, "%.160s. The server must be: %s -s %u %s%s", what,
		perftest_program_name(program_of(o)), o->size, count,
		o->qps > 1 ? ", and the same -q" : "");
}

static void
perftest_fill_report(struct perftest *p)
{
	const struct benchmark *s = p->s;
	double best, average = benchmark_rate(s, &best);

	p->client.report = (struct perftest_report){
		.size = s->size,
		.iterations = s->run.to.done - s->run.from.done,
		.peak = best * s->size / MIB,
		.average = average * s->size / MIB,
		.rate = average / 1e6,
	};
}

static int
perftest_measure(struct perftest *p, struct error *err)
{
	struct benchmark *s = p->s;
	int ret = s->o.rdma_cm ? take_theirs(p, err) : 0;

	if (ret == 0)
		ret = benchmark_load(s, err);
	if (ret != 0)
		return ret;
	benchmark_report_environment(s);
	report_fact(s->report, "perftest", "%s, %s%s, version %.15s", s->o.perftest,
		perftest_program_name(program_of(&s->o)), s->o.rdma_cm ? " -R" : "",
		p->client.version);
	benchmark_report_head(s);
	s->run.look = perftest_look;
	s->run.arg = p;
	ret = benchmark_prepare(s, s->o.size, err);
	if (ret == 0)
		ret = benchmark_run(s, err);
	if (ret == 0) {
		benchmark_report_row(s, NULL);
		perftest_fill_report(p);
	}
	return perftest_hint(p, ret, err);
}

static int
perftest_begin(struct perftest *p, struct error *err)
{
	struct eal_wish wish = { .workers = 0 };
	struct benchmark *s = p->s;
	struct endpoint *end = &s->end[REQUESTER];
	int ret = 0;

	if (!s->o.rdma_cm)
		ret = perftest_talk_tcp(&p->talk, s->o.perftest, err);
	benchmark_wish(&s->o, s->link, REQUESTER, &wish);
	if (ret == 0)
		ret = bench_eal_start(&s->o, &wish, err);
	if (ret == 0)
		ret = benchmark_create(s, err);
	if (ret != 0)
		return ret;
	if (s->o.mode == BENCH_LAT && s->o.verb == BENCH_WRITE)
		/* the server's first Write may arrive at any time */
		memset(end->mr.base, 0, end->mr.length);
	if (!s->o.rdma_cm) {
		describe_ours(p);
		return 0;
	}
	ret = connector_init(&p->connector, end, &s->o, "--perftest", s->o.perftest, PERFTEST_PORT,
		s->o.qps + 1, err);
	return ret == 0 ? perftest_talk_cm(&p->talk, &p->connector, err) : ret;
}

static int
perftest_run_all(struct perftest *p, struct error *err)
{
	struct perftest_client *c = &p->client;
	int ret = perftest_alloc(p, err);

	if (ret == 0)
		ret = perftest_begin(p, err);
	*c = (struct perftest_client){
		.stream = !p->s->o.rdma_cm,
		.mtu = (uint16_t)p->s->o.mtu,
		.num_qps = p->s->o.qps,
		.ours = p->ours,
		.theirs = p->theirs,
	};
	perftest_client_begin(c, program_of(&p->s->o));
	if (ret == 0)
		ret = perftest_converse(p, err);
	if (ret == 0)
		ret = c->stream ? connect_by_address(p, err) : connect_by_cm(p, err);
	perftest_client_done(c);
	if (ret == 0)
		ret = perftest_converse(p, err);
	if (ret == 0)
		ret = perftest_measure(p, err);
	perftest_client_done(c);
	if (ret != 0 || bench_stop != 0)
		return ret;
	return perftest_hint(p, perftest_converse(p, err), err);
}

int
perftest_run(struct benchmark *s, struct error *err)
{
	struct perftest p = { .s = s, .talk = { .fd = -1, .end = &s->end[REQUESTER] } };
	struct peer *peer = &s->peer[REQUESTER];
	int ret = perftest_run_all(&p, err);

	perftest_talk_end(&p.talk);
	free(peer->qpn);
	free(peer->psns);
	free(p.ours);
	free(p.theirs);
	return ret;
}
