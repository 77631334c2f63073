/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the three classes share (liveness 2, 3): OUI check, rate limit, methods, ClassPortInfo.
 *
 * A single-packet request is answered at once without a session. Only multi-packet requests and
 * answers have one.
 */

#include "live/private.h"

#define CPI_ATTRIBUTE         0x0001
#define CPI_OFF_BASE_VERSION  0
#define CPI_OFF_CLASS_VERSION 1
#define CPI_OFF_RESP_TIME     7

static enum mad_outcome
live_class_port_info(const struct live *l, struct mad_request *req)
{
	uint8_t *data = req->reply + VENDOR_OFF_DATA;

	data[CPI_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	data[CPI_OFF_CLASS_VERSION] = LIVE_CLASS_VERSION;
	data[CPI_OFF_RESP_TIME] = mad_resp_time(l->config.mad);
	return MAD_ANSWER;
}

/* Serve a request that passed the OUI check and the rate limit. */
static enum mad_outcome
live_serve(struct live *l, struct mad_request *req)
{
	switch (req->mad[MAD_OFF_METHOD]) {
	case MAD_GET:
		if (get_be16(req->mad + MAD_OFF_ATTRIBUTE) == CPI_ATTRIBUTE)
			return live_class_port_info(l, req);
		break;
	case MAD_SEND: /* class 0x34 answers Send with Send */
		if (req->mad[MAD_OFF_CLASS] != LIVE_CLASS)
			return live_silent(req, VERDICT_MAD_UNMATCHED);
		req->reply[MAD_OFF_METHOD] = MAD_SEND;
		break;
	case MAD_TRAP: /* expects no answer */
	case MAD_TRAP_REPRESS:
		return live_silent(req, VERDICT_MAD_UNMATCHED);
	default:
		return live_status(req, MAD_STATUS_BAD_METHOD);
	}
	switch (req->mad[MAD_OFF_CLASS]) {
	case LIVE_CLASS_IBPING:
		return live_ibping_request(l, req);
	case LIVE_CLASS_SYSSTAT:
		return live_sysstat_request(l, req);
	default:
		return live_echo_request(l, req);
	}
}

static enum mad_outcome
live_receive(void *arg, struct mad_request *req)
{
	const uint8_t *oui = req->mad + VENDOR_OFF_OUI;
	struct live *l = arg;

	if (get_be24(oui - 1) != LIVE_OUI) {
		live_count(l, other_oui, 1);
		return live_silent(req, VERDICT_MAD_UNMATCHED);
	}
	if (!live_source_take(l, req)) {
		live_count(l, rate_limited, 1);
		return live_silent(req, VERDICT_RATE_LIMITED);
	}
	memcpy(req->reply + VENDOR_OFF_OUI, oui, VENDOR_OFF_DATA - VENDOR_OFF_OUI);
	return live_serve(l, req);
}

/* List all methods: the OUI must be checked first, another vendor's request gets no status. */
static void
list_methods(struct mad_method *m, uint8_t get_flags)
{
	unsigned int method;

	*m++ = (struct mad_method){ MAD_GET, get_flags };
	for (method = 1; method < MAD_RESPONSE; method++)
		if (method != MAD_GET)
			*m++ = (struct mad_method){ method, 0 };
}

int
live_serve_init(struct live *l)
{
	const struct {
		uint8_t mgmt_class;
		const char *name;
		const struct mad_method *methods;
		void (*departs)(void *arg, uint8_t *mad, uint64_t now);
		bool wanted;
	} classes[] = {
		{ LIVE_CLASS, "liveness", l->methods, live_departs, true },
		{ LIVE_CLASS_IBPING, "ibping", l->single_methods, NULL, l->config.limits.ibping },
		{ LIVE_CLASS_SYSSTAT, "ibsysstat", l->single_methods, NULL,
			l->config.limits.sysstat },
	};
	struct mad_agent agent = {
		.class_version = LIVE_CLASS_VERSION,
		.protocol = MAD_RMPP,
		.data_offset = VENDOR_OFF_DATA,
		.request = live_receive,
		.arg = l,
	};
	unsigned int i;
	int rc = 0;

	list_methods(l->methods, MAD_METHOD_MULTI_REQUEST);
	list_methods(l->single_methods, MAD_METHOD_LATER);
	for (i = 0; i < sizeof(classes) / sizeof(classes[0]) && rc == 0; i++) {
		agent.mgmt_class = classes[i].mgmt_class;
		agent.name = classes[i].name;
		agent.methods = classes[i].methods;
		agent.departs = classes[i].departs;
		if (classes[i].wanted)
			rc = mad_agent_add(l->config.mad, &agent);
	}
	return rc;
}
