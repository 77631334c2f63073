/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Sampling (pma.md 4): SampleStart ticks after the request, up to 15 counters are counted for
 * SampleInterval ticks. Samples use the totals, so resetting a counter does not disturb them.
 */

#include <rte_common.h>

#include "base/time.h"
#include "pma/private.h"

/* PortSamplesControl */
#define OFF_TICK           2
#define OFF_COUNTER_WIDTH  3
#define OFF_MASKS_0_TO_9   4
#define OFF_MASKS_10_TO_14 8
#define OFF_STATUS         11
#define OFF_START          28
#define OFF_INTERVAL       32
#define OFF_TAG            36
#define OFF_SELECT         38
/* PortSamplesResult; in PortSamplesResultExtended counters start later and have 64 bits */
#define OFF_RESULT_STATUS 2
#define OFF_RESULT        4
#define OFF_RESULT_WIDTH  4
#define OFF_RESULT_EXT    8

#define WIDTH_32_BITS 4
#define WIDTH_64_BITS 0x80000000u
/* CounterMasks, three bits per counter: 1 means it can count the mandatory quantities */
#define MASKS_0_TO_9   01111111111u
#define MASKS_10_TO_14 011111u

/* Quantities by CounterSelect: the mandatory ones. */
static const uint8_t quantities[] = {
	[1] = PMA_XMIT_DATA,
	[2] = PMA_RCV_DATA,
	[3] = PMA_XMIT_PKTS,
	[4] = PMA_RCV_PKTS,
	[5] = PMA_XMIT_WAIT,
};

/* The totals of the sample's counters; 0 where no known quantity is selected. */
static void
read_totals(struct pma_port *p, uint64_t count[PMA_SAMPLES])
{
	struct pma_totals t;
	unsigned int i;
	uint16_t select;

	pma_totals(p, &t);
	for (i = 0; i < PMA_SAMPLES; i++) {
		select = p->sample.select[i];
		count[i] = select > 0 && select < RTE_DIM(quantities) ? t.value[quantities[select]]
								      : 0;
	}
}

/* --- timing --- */

static void
sample_arm(struct pma_port *p, uint64_t now, uint32_t ticks)
{
	timer_arm(p->pma->config.wheel, &p->sample.timer,
		now + time_of_ns(p->pma->config.hz, (uint64_t)ticks * PMA_TICK_NS));
}

static void
sample_begin(struct pma_port *p, uint64_t now)
{
	read_totals(p, p->sample.count);
	p->sample.status = PMA_SAMPLE_RUNNING;
	sample_arm(p, now, p->sample.interval);
}

static void
sample_end(struct pma_port *p)
{
	uint64_t count[PMA_SAMPLES];
	unsigned int i;

	read_totals(p, count);
	for (i = 0; i < PMA_SAMPLES; i++)
		p->sample.count[i] = count[i] - p->sample.count[i];
	p->sample.status = PMA_SAMPLE_DONE;
}

static void
sample_expired(struct timer *t, uint64_t now)
{
	struct pma_port *p = container_of(t, struct pma_port, sample.timer);

	if (p->sample.status == PMA_SAMPLE_STARTED)
		sample_begin(p, now);
	else
		sample_end(p);
	pma_port_check(p);
}

void
pma_sample_init(struct pma_port *p)
{
	timer_init(&p->sample.timer, sample_expired);
}

void
pma_sample_fini(struct pma_port *p)
{
	timer_disarm(p->pma->config.wheel, &p->sample.timer);
}

/* --- PortSamplesControl --- */

/* Only the receiving port can be sampled, because PortSamplesResult names no port. */
static bool
is_own_port(const struct pma_request *r)
{
	return r->in[PMA_OFF_PORT_SELECT] == r->port->index + 1;
}

uint16_t
pma_samples_control_get(const struct pma_request *r)
{
	const struct pma_sample *s = &r->port->sample;
	uint8_t *out = r->out;
	unsigned int i;

	out[PMA_OFF_PORT_SELECT] = r->in[PMA_OFF_PORT_SELECT];
	if (!is_own_port(r))
		return MAD_STATUS_INVALID_FIELD;
	out[OFF_TICK] = r->pma->config.tick[r->port->index];
	out[OFF_COUNTER_WIDTH] = WIDTH_32_BITS;
	put_be32(out + OFF_MASKS_0_TO_9, MASKS_0_TO_9);
	put_be16(out + OFF_MASKS_10_TO_14, MASKS_10_TO_14);
	out[OFF_STATUS] = s->status;
	put_be32(out + OFF_START, s->start);
	put_be32(out + OFF_INTERVAL, s->interval);
	put_be16(out + OFF_TAG, s->tag);
	for (i = 0; i < PMA_SAMPLES; i++)
		put_be16(out + OFF_SELECT + 2 * i, s->select[i]);
	return MAD_STATUS_OK;
}

/* A Set during a sample changes nothing; the answer shows that. */
uint16_t
pma_samples_control_set(const struct pma_request *r)
{
	struct pma_sample *s = &r->port->sample;
	unsigned int i;

	if (!is_own_port(r) || s->status != PMA_SAMPLE_DONE)
		return pma_samples_control_get(r);
	s->start = get_be32(r->in + OFF_START);
	s->interval = get_be32(r->in + OFF_INTERVAL);
	s->tag = get_be16(r->in + OFF_TAG);
	for (i = 0; i < PMA_SAMPLES; i++)
		s->select[i] = get_be16(r->in + OFF_SELECT + 2 * i);
	memset(s->count, 0, sizeof(s->count));
	s->status = PMA_SAMPLE_STARTED;
	sample_arm(r->port, r->now, s->start);
	pma_port_check(r->port);
	return pma_samples_control_get(r);
}

/* --- PortSamplesResult --- */

/* A counter's value in the last sample; 0 while a sample is running. */
static uint64_t
sample_result(const struct pma_sample *s, unsigned int i)
{
	return s->status == PMA_SAMPLE_DONE ? s->count[i] : 0;
}

static void
put_result_head(const struct pma_request *r)
{
	put_be16(r->out, r->port->sample.tag);
	put_be16(r->out + OFF_RESULT_STATUS, r->port->sample.status);
}

uint16_t
pma_samples_result_get(const struct pma_request *r)
{
	unsigned int i;

	put_result_head(r);
	for (i = 0; i < PMA_SAMPLES; i++)
		put_be32(r->out + OFF_RESULT + 4 * i,
			(uint32_t)RTE_MIN(sample_result(&r->port->sample, i), UINT32_MAX));
	return MAD_STATUS_OK;
}

uint16_t
pma_samples_result_ext_get(const struct pma_request *r)
{
	unsigned int i;

	put_result_head(r);
	put_be32(r->out + OFF_RESULT_WIDTH, WIDTH_64_BITS);
	for (i = 0; i < PMA_SAMPLES; i++)
		put_be64(r->out + OFF_RESULT_EXT + 8 * i, sample_result(&r->port->sample, i));
	return MAD_STATUS_OK;
}
