/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Requests of class 0x04: dispatch to the attributes (pma.md 2), and ClassPortInfo. */

#include <rte_common.h>

#include "pma/private.h"

#define CLASS_VERSION 1

/* ClassPortInfo */
#define OFF_CAPABILITY       2
#define OFF_CAPABILITY2      4 /* 27 bits, followed by RespTimeValue */
#define RESP_TIME_BITS       5
#define CAP_ALL_PORT_SELECT  0x0100
#define CAP_EXTENDED_WIDTH   0x0200
#define CAP_XMIT_WAIT        0x1000
#define CAP_QP1_DROPPED      0x8000
#define CAP2_ERRORS_EXTENDED 0x2 /* PortCountersExtended includes the error counters */

/* Get(ClassPortInfo): what this agent supports, and how fast it answers, as a code of 5 bits. */
static uint16_t
pma_class_port_info(const struct pma_request *r)
{
	r->out[0] = MAD_BASE_VERSION;
	r->out[1] = CLASS_VERSION;
	put_be16(r->out + OFF_CAPABILITY,
		CAP_ALL_PORT_SELECT | CAP_EXTENDED_WIDTH | CAP_XMIT_WAIT | CAP_QP1_DROPPED);
	put_be32(r->out + OFF_CAPABILITY2,
		CAP2_ERRORS_EXTENDED << RESP_TIME_BITS | r->pma->config.resp_time);
	return MAD_STATUS_OK;
}

static const struct {
	uint16_t id;
	pma_handler get;
	pma_handler set; /* NULL: read only */
} attributes[] = {
	{ PMA_CLASS_PORT_INFO, pma_class_port_info, NULL },
	{ PMA_SAMPLES_CONTROL, pma_samples_control_get, pma_samples_control_set },
	{ PMA_SAMPLES_RESULT, pma_samples_result_get, NULL },
	{ PMA_PORT_COUNTERS, pma_counters_get, pma_counters_set },
	{ PMA_PORT_COUNTERS_EXT, pma_counters_ext_get, pma_counters_ext_set },
	{ PMA_SAMPLES_RESULT_EXT, pma_samples_result_ext_get, NULL },
};

static pma_handler
pma_handler_of(const uint8_t *mad)
{
	uint16_t id = get_be16(mad + MAD_OFF_ATTRIBUTE);
	unsigned int i;

	for (i = 0; i < RTE_DIM(attributes); i++)
		if (attributes[i].id == id)
			return mad[MAD_OFF_METHOD] == MAD_SET ? attributes[i].set
							      : attributes[i].get;
	return NULL;
}

static enum mad_outcome
pma_serve(void *arg, struct mad_request *req)
{
	struct pma *p = arg;
	pma_handler handler = pma_handler_of(req->mad);
	uint16_t status = MAD_STATUS_BAD_METHOD_ATTR;
	struct pma_request r = {
		.pma = p,
		.port = &p->port[req->peer->av.port],
		.in = req->mad + PMA_OFF_DATA,
		.out = req->reply + PMA_OFF_DATA,
		.now = req->now,
	};

	if (handler != NULL)
		status = get_be32(req->mad + MAD_OFF_MODIFIER) == 0 ? handler(&r)
								    : MAD_STATUS_INVALID_FIELD;
	put_be16(req->reply + MAD_OFF_STATUS, status);
	return MAD_ANSWER;
}

int
pma_agent_add(struct pma *p)
{
	struct mad_agent agent = {
		.mgmt_class = MAD_CLASS_PERFORMANCE,
		.class_version = CLASS_VERSION,
		.name = "PMA",
		.protocol = MAD_SINGLE,
		.data_offset = PMA_OFF_DATA,
		.methods = p->methods,
		.request = pma_serve,
		.arg = p,
	};

	p->methods[0].method = MAD_GET;
	p->methods[1].method = MAD_SET;
	return mad_agent_add(p->config.mad, &agent);
}
