/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Process request SMPs (smp-sma 6, seed 004) that lib/mad has checked: find the port, check the
 * M_Key, execute the method on the attribute, answer. Traps go to the SM behind the port.
 */

#include "sma/private.h"

#define CLASS_VERSION 1
/*
 * PortInfo modifier bit: the SM knows extended speeds. Not part of the port number; we ignore it.
 */
#define SM_EXT_SPEEDS (1u << 31)

/* --- attributes --- */

/*
 * The port whose attribute is meant (smp-sma 3); NULL: PortInfo's modifier names no managed port.
 */
static struct sma_port *
smp_target_port(const struct smp *smp)
{
	uint32_t number = smp->modifier & ~SM_EXT_SPEEDS;

	if (smp->attribute != SMA_PORT_INFO || number == 0)
		return smp->port;
	/* RoCE ports have no agent, and so no PortInfo */
	return sma_port_find(smp->port->sma, number - 1);
}

static uint16_t
smp_get_attribute(const struct smp *smp, uint8_t *data)
{
	const struct sma_attribute *a = sma_attribute_find(smp->attribute);
	struct sma_port *p = smp_target_port(smp);

	if (a == NULL)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (p == NULL)
		return MAD_STATUS_INVALID_FIELD;
	return a->get(smp, p, data);
}

static uint16_t
smp_set_attribute(const struct smp *smp)
{
	const struct sma_attribute *a = sma_attribute_find(smp->attribute);
	struct sma_port *p = smp_target_port(smp);

	if (a == NULL || a->set == NULL)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (p == NULL)
		return MAD_STATUS_INVALID_FIELD;
	return a->set(smp, p, smp->mad + SMP_OFF_DATA);
}

/* --- answers --- */

static void
smp_count_answer(struct sma_port *p, uint8_t method, uint16_t status)
{
	if (method == MAD_GET)
		sma_count(p, smp_get);
	else if (method == MAD_SET)
		sma_count(p, smp_set);
	if (status == MAD_STATUS_BAD_METHOD)
		sma_count(p, smp_bad_method);
	else if (status == MAD_STATUS_BAD_METHOD_ATTR)
		sma_count(p, smp_bad_attribute);
	else if (status == MAD_STATUS_INVALID_FIELD)
		sma_count(p, smp_invalid_field);
}

/* Execute the method. @param result  true: answer with data, else with the request's data */
static uint16_t
smp_serve(const struct smp *smp, uint8_t *data, bool *result)
{
	uint16_t status;

	switch (smp->method) {
	case MAD_GET:
		status = smp_get_attribute(smp, data);
		*result = status == MAD_STATUS_OK;
		return status;
	case MAD_SET:
		status = smp_set_attribute(smp);
		if (status == MAD_STATUS_BAD_METHOD_ATTR)
			return status;
		/* seed 004: the answer shows the attribute after the Set, like a Get */
		*result = smp_get_attribute(smp, data) == MAD_STATUS_OK;
		return status;
	default:
		return MAD_STATUS_BAD_METHOD;
	}
}

static enum mad_outcome
smp_answer(const struct smp *smp, struct mad_request *req)
{
	uint8_t data[SMA_DATA_LEN] = { 0 };
	bool result = false;
	uint16_t status = smp_serve(smp, data, &result);

	smp_count_answer(smp->port, smp->method, status);
	/* smp-sma 6.6: the same for every method */
	req->reply[MAD_OFF_METHOD] = MAD_GET_RESP;
	put_be16(req->reply + MAD_OFF_STATUS, status);
	/* smp-sma 2: an error returns the request's data, except after a Set */
	memcpy(req->reply + SMP_OFF_DATA, result ? data : smp->mad + SMP_OFF_DATA, SMP_DATA_LEN);
	return MAD_ANSWER;
}

/* --- requests --- */

static enum mad_outcome
smp_silent(struct mad_request *req, enum verdict verdict)
{
	req->verdict = verdict;
	return MAD_SILENT;
}

static bool
smp_needs_mkey(uint8_t method)
{
	return method == MAD_GET || method == MAD_SET || method == MAD_TRAP_REPRESS;
}

/* Check the receiving port's M_Key, and for another port's PortInfo that port's too (smp-sma 3). */
static bool
smp_mkey_ok(struct smp *smp)
{
	struct sma_port *target = smp_target_port(smp);

	if (sma_mkey_check(smp, smp->port) == SMA_MKEY_FAILED)
		return false;
	if (target == NULL || target == smp->port || smp->method == MAD_TRAP_REPRESS)
		return true;
	/* the second check decides whether the shown port's own M_Key is hidden */
	smp->hide_m_key = false;
	return sma_mkey_check(smp, target) != SMA_MKEY_FAILED;
}

static enum mad_outcome
smp_request(void *arg, struct mad_request *req)
{
	struct sma *s = arg;
	struct smp smp = {
		.port = sma_port_find(s, req->peer->av.port),
		.mad = req->mad,
		.method = req->mad[MAD_OFF_METHOD],
		.attribute = get_be16(req->mad + MAD_OFF_ATTRIBUTE),
		.modifier = get_be32(req->mad + MAD_OFF_MODIFIER),
		.now = req->now,
		.slid = req->peer->av.dlid,
	};

	if (smp.port == NULL)
		return smp_silent(req, VERDICT_SMP);
	if (smp.method == MAD_TRAP && smp.attribute == SMA_NOTICE && sma_sm_give(&smp))
		return smp_silent(req, VERDICT_DATAGRAM);
	if (smp.method & MAD_RESPONSE || smp.method == MAD_TRAP)
		return smp_silent(req, VERDICT_SMP_NO_SM);
	if (smp_needs_mkey(smp.method) && !smp_mkey_ok(&smp))
		return smp_silent(req, VERDICT_MKEY);
	if (smp.method == MAD_TRAP_REPRESS) {
		sma_trap_repressed(smp.port, smp.mad, smp.now);
		return smp_silent(req, VERDICT_DATAGRAM);
	}
	return smp_answer(&smp, req);
}

int
sma_agents_add(struct sma *s)
{
	struct mad_agent agent = {
		.mgmt_class = MAD_CLASS_SUBN_LID,
		.class_version = CLASS_VERSION,
		.name = "SMA",
		.protocol = MAD_SINGLE,
		.data_offset = SMP_OFF_DATA,
		.request = smp_request,
		.arg = s,
	};
	int ret = mad_agent_add(s->config.mad, &agent);

	if (ret != 0)
		return ret;
	agent.mgmt_class = MAD_CLASS_SUBN_ROUTED;
	agent.name = "SMA, directed route";
	return mad_agent_add(s->config.mad, &agent);
}

uint16_t
sma_read(struct sma *s, uint16_t port, uint16_t attribute, uint32_t modifier,
	uint8_t data[SMA_DATA_LEN])
{
	struct smp smp = {
		.port = sma_port_find(s, port),
		.method = MAD_GET,
		.attribute = attribute,
		.modifier = modifier,
	};

	memset(data, 0, SMA_DATA_LEN);
	return smp.port != NULL ? smp_get_attribute(&smp, data) : MAD_STATUS_INVALID_FIELD;
}
