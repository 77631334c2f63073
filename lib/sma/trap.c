/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Traps (smp-sma 5, seed 004): a cause becomes a notice, which is sent to the master SM until the
 * SM represses it or the retries are used up. The next repeat is due one interval after the last
 * one has left; while a Trap waits for the transmit sink no timer runs.
 */

#include <rte_debug.h>

#include "base/time.h"
#include "sma/trap.h"

#define QP0          0
#define PKEY_DEFAULT 0xFFFF

/* --- timing --- */

/* Time between repeats: our interval, or 4.096 us * 2^SubnetTimeOut if that is longer. */
static uint64_t
trap_interval(const struct sma_port *p)
{
	const struct sma_config *c = &p->sma->config;
	uint64_t ours = time_of_ns(c->hz, UINT64_C(1000000) * c->limits.trap_interval_ms);
	uint64_t subnet = time_of_ns(c->hz, UINT64_C(4096) << sma_subnet_timeout(p));

	return ours > subnet ? ours : subnet;
}

static bool
trap_may_send(const struct sma_port *p)
{
	return sma_port_state(p) == PORT_STATE_ACTIVE && sma_master_sm_lid(p) != 0;
}

/* Start the timer when the Trap has left. */
static void
repeat_later(struct sma_trap *t)
{
	timer_start(t->port->sma->config.wheel, &t->timer, trap_interval(t->port));
}

/* --- sending --- */

void
trap_refresh(struct sma_trap *t)
{
	uint16_t lid = sma_lid(t->port);

	put_be16(t->info.notice + NOTICE_OFF_ISSUER_LID, lid);
	if (t->own_lid)
		put_be16(t->info.notice + NOTICE_OFF_LID, lid);
}

static void
trap_sent(void *arg, const struct mad_result *result)
{
	struct sma_trap *t = arg;

	t->calling = false;
	if (result->end == MAD_END_CANCELLED)
		return;
	t->last = t->called + result->elapsed;
	if (result->end == MAD_END_OK) {
		sma_count(t->port, traps_sent);
		t->info.sent++;
	}
	repeat_later(t);
}

static void
fill_mad(const struct sma_trap *t, uint8_t mad[MAD_LEN])
{
	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_LID;
	mad[MAD_OFF_CLASS_VERSION] = 1;
	mad[MAD_OFF_METHOD] = MAD_TRAP;
	put_be64(mad + MAD_OFF_TID, t->info.tid);
	put_be16(mad + MAD_OFF_ATTRIBUTE, SMA_NOTICE);
	memcpy(mad + SMP_OFF_DATA, t->info.notice, SMA_DATA_LEN);
}

/* smp-sma 5: from our LID to the master SM's on VL 15. Repeats keep their TransactionID. */
static void
trap_transmit(struct sma_trap *t, uint64_t now)
{
	const struct sma_port *p = t->port;
	uint8_t mad[MAD_LEN];
	struct mad_call call = {
		.to = {
			.av = {
				.encap = ENCAP_IB,
				.port = p->index,
				.slid = sma_lid(p),
				.dlid = sma_master_sm_lid(p),
				.vlan = PATH_NO_VLAN,
			},
			.qpn = QP0,
			.pkey = PKEY_DEFAULT,
			.neighbour = PATH_NO_NEIGHBOUR,
		},
		.protocol = MAD_SINGLE,
		.data_offset = SMP_OFF_DATA,
		.mad = mad,
		.no_answer = true,
		.keep_tid = true,
		.taker = { .arg = t, .done = trap_sent },
	};

	trap_refresh(t);
	fill_mad(t, mad);
	t->called = now;
	t->calling = true; /* set first: mad_call() may call done() */
	if (mad_call(p->sma->config.mad, &call, now, &t->call) == 0)
		return;
	t->calling = false;
	repeat_later(t);
}

void
trap_proceed(struct sma_trap *t, uint64_t now)
{
	struct sma_port *p = t->port;

	RTE_ASSERT(trap_pending(t) && !t->calling);
	if (t->info.sent > p->sma->config.limits.trap_retries) {
		t->info.state = SMA_TRAP_GIVEN_UP;
		sma_count(p, traps_given_up);
		return;
	}
	if (!trap_may_send(p)) {
		t->info.state = SMA_TRAP_HELD;
		return;
	}
	t->info.state = SMA_TRAP_SENT;
	/* not yet due: SubnetTimeOut has grown, or the port was not Active only briefly */
	if (t->info.sent > 0 && now - t->last < trap_interval(p))
		timer_arm(p->sma->config.wheel, &t->timer, t->last + trap_interval(p));
	else
		trap_transmit(t, now);
}

static void
trap_repeat(struct timer *timer, uint64_t now)
{
	trap_proceed((struct sma_trap *)((char *)timer - offsetof(struct sma_trap, timer)), now);
}

void
trap_stop(struct sma_trap *t, uint64_t now)
{
	struct sma *s = t->port->sma;

	timer_disarm(s->config.wheel, &t->timer);
	if (t->calling)
		mad_cancel(s->config.mad, t->call, now);
}

/* A Trap that waits for the sink has the port's old addresses: send it anew, or hold it. */
void
sma_trap_resume(struct sma_port *p, uint64_t now)
{
	for (unsigned int i = 0; i < SMA_TRAPS_MAX; i++) {
		struct sma_trap *t = &p->trap[i];

		if (t->info.state != SMA_TRAP_HELD && !t->calling)
			continue;
		trap_stop(t, now);
		trap_proceed(t, now);
	}
}

void
sma_trap_init(struct sma_port *p)
{
	const struct sma_limits *l = &p->sma->config.limits;

	token_bucket_init(&p->trap_rate, l->trap_rate ? p->sma->config.hz / l->trap_rate : 0,
		l->trap_burst);
	for (unsigned int i = 0; i < SMA_TRAPS_MAX; i++) {
		p->trap[i].port = p;
		timer_init(&p->trap[i].timer, trap_repeat);
	}
}

void
sma_trap_fini(struct sma_port *p)
{
	for (unsigned int i = 0; i < SMA_TRAPS_MAX; i++)
		trap_stop(&p->trap[i], 0);
}
