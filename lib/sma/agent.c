/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Request SMPs (smp-sma 6, seed 004), once lib/mad has seen that they are SMPs and end here: who
 * they are for, M_Key, method, attribute, answer. Traps are for the SM behind the port.
 */

#include "sma/private.h"

#define CLASS_VERSION 1
/* PortInfo's modifier: the SM knows extended speeds. No port number, and nothing to do for us. */
#define SM_EXT_SPEEDS (1u << 31)

/* --- attributes --- */

/* The port whose attribute it is (smp-sma 3); NULL: PortInfo's modifier names none. */
static struct sma_port *
target_of(const struct smp *smp)
{
	uint32_t number = smp->modifier & ~SM_EXT_SPEEDS;

	if (smp->attribute != SMA_PORT_INFO || number == 0)
		return smp->port;
	/* ports without an agent (RoCE) have no PortInfo either */
	return sma_port_find(smp->port->sma, number - 1);
}

static uint16_t
get(const struct smp *smp, uint8_t *data)
{
	const struct sma_attribute *a = sma_attribute_find(smp->attribute);
	struct sma_port *p = target_of(smp);

	if (a == NULL)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (p == NULL)
		return MAD_STATUS_INVALID_FIELD;
	return a->get(smp, p, data);
}

static uint16_t
set(const struct smp *smp)
{
	const struct sma_attribute *a = sma_attribute_find(smp->attribute);
	struct sma_port *p = target_of(smp);

	if (a == NULL || a->set == NULL)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (p == NULL)
		return MAD_STATUS_INVALID_FIELD;
	return a->set(smp, p, smp->mad + SMP_OFF_DATA);
}

/* --- answers --- */

static void
count(struct sma_port *p, uint8_t method, uint16_t status)
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

/* @return MAD status; data, zero before, is what the answer says if it is not the request's */
static uint16_t
serve(const struct smp *smp, uint8_t *data, bool *result)
{
	uint16_t status;

	switch (smp->method) {
	case MAD_GET:
		status = get(smp, data);
		*result = status == MAD_STATUS_OK;
		return status;
	case MAD_SET:
		status = set(smp);
		if (status == MAD_STATUS_BAD_METHOD_ATTR)
			return status;
		/* seed 004: the answer is read back */
		*result = get(smp, data) == MAD_STATUS_OK;
		return status;
	default:
		return MAD_STATUS_BAD_METHOD;
	}
}

static enum mad_outcome
answer(const struct smp *smp, struct mad_request *req)
{
	uint8_t data[SMA_DATA_LEN] = { 0 };
	bool result = false;
	uint16_t status = serve(smp, data, &result);

	count(smp->port, smp->method, status);
	/* smp-sma 6.6: whatever the method was */
	req->reply[MAD_OFF_METHOD] = MAD_GET_RESP;
	put_be16(req->reply + MAD_OFF_STATUS, status);
	/* smp-sma 2: an error gives the request's data back, but where a Get result is due */
	memcpy(req->reply + SMP_OFF_DATA, result ? data : smp->mad + SMP_OFF_DATA, SMP_DATA_LEN);
	return MAD_ANSWER;
}

/* --- requests --- */

static enum mad_outcome
silent(struct mad_request *req, enum verdict verdict)
{
	req->verdict = verdict;
	return MAD_SILENT;
}

static bool
guarded(uint8_t method)
{
	return method == MAD_GET || method == MAD_SET || method == MAD_TRAP_REPRESS;
}

/* The port's own M_Key, and of another port's PortInfo that port's too (smp-sma 3). */
static bool
may_pass(struct smp *smp)
{
	struct sma_port *target = target_of(smp);

	if (sma_mkey_check(smp, smp->port) == SMA_MKEY_FAILED)
		return false;
	if (target == NULL || target == smp->port || smp->method == MAD_TRAP_REPRESS)
		return true;
	/* what is hidden is the key of the port that is shown */
	smp->hide_m_key = false;
	return sma_mkey_check(smp, target) != SMA_MKEY_FAILED;
}

static enum mad_outcome
request(void *arg, struct mad_request *req)
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
		return silent(req, VERDICT_SMP);
	if (smp.method == MAD_TRAP && smp.attribute == SMA_NOTICE && sma_sm_give(&smp))
		return silent(req, VERDICT_DATAGRAM);
	if (smp.method & MAD_RESPONSE || smp.method == MAD_TRAP)
		return silent(req, VERDICT_SMP_NO_SM);
	if (guarded(smp.method) && !may_pass(&smp))
		return silent(req, VERDICT_MKEY);
	if (smp.method == MAD_TRAP_REPRESS) {
		sma_trap_repressed(smp.port, smp.mad, smp.now);
		return silent(req, VERDICT_DATAGRAM);
	}
	return answer(&smp, req);
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
		.request = request,
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
	return smp.port != NULL ? get(&smp, data) : MAD_STATUS_INVALID_FIELD;
}
