/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * PortCounters and PortCountersExtended (pma.md 3) show the same counters. One table each gives
 * every counter's position and its bit in CounterSelect.
 */

#include <rte_common.h>

#include "pma/private.h"

#define OFF_SELECT      2
#define OFF_SELECT2     18 /* of PortCounters, 8 bits */
#define OFF_EXT_SELECT2 4 /* of PortCountersExtended, 32 bits */

struct field {
	uint8_t counter; /* enum pma_counter */
	uint8_t select; /* bit of CounterSelect; from 16 on: bit of CounterSelect2 */
	uint8_t bits; /* 4, 8, 16, 32, 64 */
	uint16_t at; /* offset in bits */
};

/* clang-format off */
#define BYTE(n) ((n) * 8)
/* clang-format on */

static const struct field port_counters[] = {
	{ PMA_SYMBOL_ERROR, 0, 16, BYTE(4) },
	{ PMA_LINK_RECOVERY, 1, 8, BYTE(6) },
	{ PMA_LINK_DOWNED, 2, 8, BYTE(7) },
	{ PMA_RCV_ERRORS, 3, 16, BYTE(8) },
	{ PMA_RCV_REMOTE_PHYSICAL, 4, 16, BYTE(10) },
	{ PMA_RCV_SWITCH_RELAY, 5, 16, BYTE(12) },
	{ PMA_XMIT_DISCARDS, 6, 16, BYTE(14) },
	{ PMA_XMIT_CONSTRAINT, 7, 8, BYTE(16) },
	{ PMA_RCV_CONSTRAINT, 8, 8, BYTE(17) },
	{ PMA_LOCAL_INTEGRITY, 9, 4, BYTE(19) },
	{ PMA_EXCESSIVE_OVERRUN, 10, 4, BYTE(19) + 4 },
	{ PMA_VL15_DROPPED, 11, 16, BYTE(22) },
	{ PMA_XMIT_DATA, 12, 32, BYTE(24) },
	{ PMA_RCV_DATA, 13, 32, BYTE(28) },
	{ PMA_XMIT_PKTS, 14, 32, BYTE(32) },
	{ PMA_RCV_PKTS, 15, 32, BYTE(36) },
	{ PMA_XMIT_WAIT, 16, 32, BYTE(40) },
	{ PMA_QP1_DROPPED, 17, 16, BYTE(20) },
};

static const struct field port_counters_ext[] = {
	{ PMA_XMIT_DATA, 0, 64, BYTE(8) },
	{ PMA_RCV_DATA, 1, 64, BYTE(16) },
	{ PMA_XMIT_PKTS, 2, 64, BYTE(24) },
	{ PMA_RCV_PKTS, 3, 64, BYTE(32) },
	{ PMA_UNICAST_XMIT, 4, 64, BYTE(40) },
	{ PMA_UNICAST_RCV, 5, 64, BYTE(48) },
	{ PMA_MULTICAST_XMIT, 6, 64, BYTE(56) },
	{ PMA_MULTICAST_RCV, 7, 64, BYTE(64) },
	{ PMA_SYMBOL_ERROR, 16, 64, BYTE(72) },
	{ PMA_LINK_RECOVERY, 17, 64, BYTE(80) },
	{ PMA_LINK_DOWNED, 18, 64, BYTE(88) },
	{ PMA_RCV_ERRORS, 19, 64, BYTE(96) },
	{ PMA_RCV_REMOTE_PHYSICAL, 20, 64, BYTE(104) },
	{ PMA_RCV_SWITCH_RELAY, 21, 64, BYTE(112) },
	{ PMA_XMIT_DISCARDS, 22, 64, BYTE(120) },
	{ PMA_XMIT_CONSTRAINT, 23, 64, BYTE(128) },
	{ PMA_RCV_CONSTRAINT, 24, 64, BYTE(136) },
	{ PMA_LOCAL_INTEGRITY, 25, 64, BYTE(144) },
	{ PMA_EXCESSIVE_OVERRUN, 26, 64, BYTE(152) },
	{ PMA_VL15_DROPPED, 27, 64, BYTE(160) },
	{ PMA_XMIT_WAIT, 28, 64, BYTE(168) },
	{ PMA_QP1_DROPPED, 29, 64, BYTE(176) },
};

/* --- fields --- */

/* Read a field of a Set request. 4-bit fields: the first of a byte is its upper half. */
static uint64_t
field_get(const uint8_t *data, const struct field *f)
{
	const uint8_t *p = data + f->at / 8;

	switch (f->bits) {
	case 64:
		return get_be64(p);
	case 32:
		return get_be32(p);
	case 16:
		return get_be16(p);
	case 8:
		return *p;
	default:
		return f->at % 8 == 0 ? *p >> 4 : *p & 0xF;
	}
}

/* A counter stops at its largest value (pma.md 3). */
static void
field_put(uint8_t *data, const struct field *f, uint64_t value)
{
	uint64_t max = UINT64_MAX >> (64 - f->bits);
	uint8_t *p = data + f->at / 8;

	value = RTE_MIN(value, max);
	switch (f->bits) {
	case 64:
		put_be64(p, value);
		break;
	case 32:
		put_be32(p, (uint32_t)value);
		break;
	case 16:
		put_be16(p, (uint16_t)value);
		break;
	case 8:
		*p = (uint8_t)value;
		break;
	default:
		*p |= (uint8_t)(f->at % 8 == 0 ? value << 4 : value);
	}
}

/* --- totals --- */

/*
 * Totals are read while other workers count, so a total that sums several counters may briefly seem
 * to fall behind an earlier reading. Never show less than was read before.
 */
void
pma_totals(struct pma_port *p, struct pma_totals *t)
{
	unsigned int c;

	memset(t, 0, sizeof(*t));
	p->pma->config.totals(p->pma->config.arg, p->index, t);
	t->value[PMA_LINK_DOWNED] = p->link_downed;
	for (c = 0; c < PMA_COUNTERS; c++)
		p->seen.value[c] = RTE_MAX(p->seen.value[c], t->value[c]);
	*t = p->seen;
}

/* --- selected ports --- */

struct selection {
	unsigned int first, end;
};

/* @retval false  there is no such port */
static bool
select_ports(const struct pma_request *r, struct selection *s)
{
	uint8_t number = r->in[PMA_OFF_PORT_SELECT];

	*s = (struct selection){ 0, r->pma->config.num_ports };
	if (number == PMA_ALL_PORTS)
		return true;
	if (number == 0 || number > r->pma->config.num_ports)
		return false;
	*s = (struct selection){ number - 1u, number };
	return true;
}

/* --- both attributes --- */

static uint64_t
add_saturated(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint16_t
pma_show_counters(const struct pma_request *r, const struct field *fields, size_t num)
{
	uint64_t shown[PMA_COUNTERS] = { 0 };
	struct pma_totals t;
	struct selection s;
	unsigned int i, c;

	r->out[PMA_OFF_PORT_SELECT] = r->in[PMA_OFF_PORT_SELECT];
	if (!select_ports(r, &s))
		return MAD_STATUS_INVALID_FIELD;
	for (i = s.first; i < s.end; i++) {
		pma_totals(&r->pma->port[i], &t);
		for (c = 0; c < PMA_COUNTERS; c++)
			shown[c] = add_saturated(shown[c], t.value[c] - r->pma->port[i].offset[c]);
	}
	for (i = 0; i < num; i++)
		field_put(r->out, &fields[i], shown[fields[i].counter]);
	return MAD_STATUS_OK;
}

/* Selected counters continue from the value written, which tools set to 0. */
static uint16_t
pma_set_counters(const struct pma_request *r, const struct field *fields, size_t num,
	uint64_t select)
{
	struct pma_totals t;
	struct selection s;
	unsigned int i, k;
	uint8_t c;

	if (!select_ports(r, &s))
		return pma_show_counters(r, fields, num);
	for (i = s.first; i < s.end; i++) {
		pma_totals(&r->pma->port[i], &t);
		for (k = 0; k < num; k++) {
			c = fields[k].counter;
			if (select >> fields[k].select & 1)
				r->pma->port[i].offset[c] =
					t.value[c] - field_get(r->in, &fields[k]);
		}
	}
	return pma_show_counters(r, fields, num);
}

uint16_t
pma_counters_get(const struct pma_request *r)
{
	return pma_show_counters(r, port_counters, RTE_DIM(port_counters));
}

uint16_t
pma_counters_set(const struct pma_request *r)
{
	uint64_t select = get_be16(r->in + OFF_SELECT) | (uint64_t)r->in[OFF_SELECT2] << 16;

	return pma_set_counters(r, port_counters, RTE_DIM(port_counters), select);
}

uint16_t
pma_counters_ext_get(const struct pma_request *r)
{
	return pma_show_counters(r, port_counters_ext, RTE_DIM(port_counters_ext));
}

uint16_t
pma_counters_ext_set(const struct pma_request *r)
{
	uint64_t select =
		get_be16(r->in + OFF_SELECT) | (uint64_t)get_be32(r->in + OFF_EXT_SELECT2) << 16;

	return pma_set_counters(r, port_counters_ext, RTE_DIM(port_counters_ext), select);
}
