/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_ENGINE_SMP_H
#define TEST_ENGINE_SMP_H

/*
 * Send SMPs from a port of the engine, as a subnet manager does, and get the answers.
 */

#include <errno.h>
#include <string.h>

#include "engine/verbs_mad.h"
#include "node.h"
#include "wire/bytes.h"

#define DATA  SMP_OFF_DATA
#define HERE  0 /* number of hops to the port itself */
#define THERE 1 /* number of hops to the other end of its link */

struct engine_mad_answer mad_ask(struct engine *e, const struct engine_mad_ask *ask);

/* Write the header of an SMP. */
void smp_head(uint8_t *mad, uint8_t mgmt_class, uint8_t method, uint16_t attribute,
	uint32_t modifier);
/* Send an SMP with a directed route of HERE or THERE hops. @param data  NULL: a Get, else a Set */
struct engine_mad_answer smp_directed(struct engine *e, uint16_t port, unsigned int hops,
	uint16_t attribute, uint32_t modifier, const uint8_t *data);
/* Send an SMP routed by LID. */
struct engine_mad_answer smp_lid(struct engine *e, uint16_t port, uint16_t dlid, uint16_t attribute,
	uint32_t modifier, const uint8_t *data);
/* Set fields of a port's PortInfo, and expect success. 0: the field stays as it is. */
void set_port(struct engine *e, uint16_t port, uint16_t lid, uint16_t sm_lid, uint8_t state);

/* Read an attribute of a port's subnet management agent. */
void read_sma(struct engine *e, uint16_t port, uint16_t attribute, uint8_t data[SMA_DATA_LEN]);

/* Packets that a worker sends from a port without any agent: n packets of 256 bytes. */
struct raw {
	unsigned int worker;
	bool vl15;
	struct av av;
	uint32_t dest_qpn;
	uint32_t src_qpn;
	uint32_t qkey;
	uint16_t pkey;
	const uint8_t *mad;
	unsigned int n;
};
void send_raw(struct engine *e, const struct raw *raw);
/* @return the address vector from a native IB port to a LID */
struct av av_ib(struct engine *e, uint16_t port, uint16_t slid, uint16_t dlid);

#endif
