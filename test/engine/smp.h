/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_ENGINE_SMP_H
#define TEST_ENGINE_SMP_H

/*
 * A subnet manager's hands: one SMP out of a port, and what came back.
 */

#include <errno.h>
#include <string.h>

#include "engine/verbs_mad.h"
#include "node.h"
#include "wire/bytes.h"

#define DATA  SMP_OFF_DATA
#define HERE  0 /* hops: the port itself, or the other end of its link */
#define THERE 1

struct engine_mad_answer mad_ask(struct engine *e, const struct engine_mad_ask *ask);

/* Header of an SMP. */
void smp_head(uint8_t *mad, uint8_t mgmt_class, uint8_t method, uint16_t attribute,
	uint32_t modifier);
/* Directed route out of a port: no hop or one. data NULL: Get. */
struct engine_mad_answer smp_directed(struct engine *e, uint16_t port, unsigned int hops,
	uint16_t attribute, uint32_t modifier, const uint8_t *data);
/* By LID. */
struct engine_mad_answer smp_lid(struct engine *e, uint16_t port, uint16_t dlid, uint16_t attribute,
	uint32_t modifier, const uint8_t *data);
/* Set a few fields of a port's PortInfo; 0: as it is. Expects it to be taken. */
void set_port(struct engine *e, uint16_t port, uint16_t lid, uint16_t sm_lid, uint8_t state);

/* On a worker: n packets of 256 bytes straight out of a port. */
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
/* av of a native IB port towards a LID */
struct av av_ib(struct engine *e, uint16_t port, uint16_t slid, uint16_t dlid);

#endif
