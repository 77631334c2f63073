/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "../wire/build.h"
#include "engine/worker.h"
#include "smp.h"
#include "wire/opcode.h"
#include "wire/wire.h"

struct engine_mad_answer
mad_ask(struct engine *e, const struct engine_mad_ask *ask)
{
	struct engine_mad_answer a;
	struct error err = { "" };
	uint32_t id;

	assert_ok(engine_mad_ask(e, ask, &id, &err));
	do {
		pause_ms(1);
		assert_ok(engine_mad_look(e, id, &a, &err));
	} while (!a.done);
	engine_mad_forget(e, id);
	assert_int_equal(engine_mad_look(e, id, &(struct engine_mad_answer){ 0 }, NULL), -ENOENT);
	return a;
}

void
smp_head(uint8_t *mad, uint8_t mgmt_class, uint8_t method, uint16_t attribute, uint32_t modifier)
{
	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = 1;
	mad[MAD_OFF_CLASS] = mgmt_class;
	mad[MAD_OFF_CLASS_VERSION] = 1;
	mad[MAD_OFF_METHOD] = method;
	put_be16(mad + MAD_OFF_ATTRIBUTE, attribute);
	put_be32(mad + MAD_OFF_MODIFIER, modifier);
}

static struct engine_mad_answer
smp_smp(struct engine *e, const struct engine_ah *ah, uint8_t mgmt_class, unsigned int hops,
	uint16_t attribute, uint32_t modifier, const uint8_t *data)
{
	struct engine_mad_ask ask = { .ah = ah };

	smp_head(ask.mad, mgmt_class, data != NULL ? MAD_SET : MAD_GET, attribute, modifier);
	if (mgmt_class == MAD_CLASS_SUBN_ROUTED) {
		ask.mad[SMP_OFF_HOP_COUNT] = (uint8_t)hops;
		put_be16(ask.mad + SMP_OFF_DR_SLID, 0xFFFF);
		put_be16(ask.mad + SMP_OFF_DR_DLID, 0xFFFF);
		ask.mad[SMP_OFF_INITIAL_PATH + 1] = (uint8_t)(ah->port + 1);
	}
	if (data != NULL)
		memcpy(ask.mad + DATA, data, SMP_DATA_LEN);
	return mad_ask(e, &ask);
}

struct engine_mad_answer
smp_directed(struct engine *e, uint16_t port, unsigned int hops, uint16_t attribute,
	uint32_t modifier, const uint8_t *data)
{
	struct engine_ah ah = { .port = port };

	return smp_smp(e, &ah, MAD_CLASS_SUBN_ROUTED, hops, attribute, modifier, data);
}

struct engine_mad_answer
smp_lid(struct engine *e, uint16_t port, uint16_t dlid, uint16_t attribute, uint32_t modifier,
	const uint8_t *data)
{
	struct engine_ah ah = { .port = port, .dlid = dlid };

	return smp_smp(e, &ah, MAD_CLASS_SUBN_LID, 0, attribute, modifier, data);
}

void
set_port(struct engine *e, uint16_t port, uint16_t lid, uint16_t sm_lid, uint8_t state)
{
	struct engine_mad_answer a = smp_directed(e, port, HERE, SMA_PORT_INFO, 0, NULL);
	uint8_t info[SMP_DATA_LEN];

	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_OK));
	memcpy(info, a.mad + DATA, sizeof(info));
	if (lid != 0)
		put_be16(info + 16, lid);
	if (sm_lid != 0)
		put_be16(info + 18, sm_lid);
	info[32] = (info[32] & 0xF0) | state;
	info[33] &= 0x0F; /* PortPhysState: no change */
	a = smp_directed(e, port, HERE, SMA_PORT_INFO, 0, info);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_OK));
	if (state != 0)
		assert_int_equal(a.mad[DATA + 32] & 0xF, state);
}

struct sma_read_args {
	uint16_t port;
	uint16_t attribute;
	uint8_t *data;
};

static int
smp_read_here(struct worker *w, void *arg)
{
	const struct sma_read_args *a = arg;

	return sma_read(w->sma, a->port, a->attribute, 0, a->data);
}

void
read_sma(struct engine *e, uint16_t port, uint16_t attribute, uint8_t data[SMA_DATA_LEN])
{
	struct sma_read_args a = { port, attribute, data };

	assert_int_equal(engine_call(e, 0, smp_read_here, &a), 0);
}

static int
smp_send_here(struct worker *w, void *arg)
{
	const struct raw *raw = arg;
	struct tx_sink *tx = link_tx_sink(w->link);
	struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = raw->pkey,
		.dest_qpn = raw->dest_qpn,
		.qkey = raw->qkey,
		.src_qpn = raw->src_qpn,
	};
	struct path path;
	unsigned int i;
	uint8_t *bth;

	/* the path decides the VL (15 for QP0), although the packet may be for another QP */
	path_init(&path, &raw->av, raw->src_qpn, raw->vl15 ? 0 : 1);
	path.neighbour = PATH_NO_NEIGHBOUR;
	for (i = 0; i < raw->n; i++) {
		bth = tx_reserve(tx, &path, BTH_LEN + 8 + MAD_LEN);
		if (bth == NULL)
			return -ENOBUFS;
		memcpy(bth + wire_build(bth, &h), raw->mad, MAD_LEN);
		tx_commit(tx);
	}
	return 0;
}

void
send_raw(struct engine *e, const struct raw *raw)
{
	assert_int_equal(engine_call(e, raw->worker, smp_send_here, (void *)(uintptr_t)raw), 0);
}

struct av
av_ib(struct engine *e, uint16_t port, uint16_t slid, uint16_t dlid)
{
	const struct port_attr *attr = link_port_attr(engine_link(e), port);
	struct av av = {
		.encap = ENCAP_IB,
		.port = port,
		.vlan = PATH_NO_VLAN,
		.slid = slid,
		.dlid = dlid,
		.ethertype = attr->ethertype,
	};

	memcpy(av.smac, attr->mac, sizeof(av.smac));
	return av;
}
