/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class 0x33, ibsysstat's server (liveness 3). Answers are text that the client prints unchanged:
 * the host name, or a line for each CPU. Text that does not fit one packet is sent by RMPP.
 */

#include <errno.h>
#include <stdio.h>

#include <rte_common.h>

#include "live/private.h"

int
live_sysstat_init(struct live *l)
{
	unsigned int n = RTE_MIN(l->config.num_cpus, (unsigned int)LIVE_CPUS_MAX), i;
	size_t room = n * LIVE_CPU_LINE + 1;
	char *p;

	p = l->cpu_text = mem_zalloc(l->config.alloc, room, 64);
	if (p == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		const struct live_cpu *cpu = &l->config.cpu[i];

		p += snprintf(p, l->cpu_text + room - p, "cpu %u: model %.*s MHZ %.*s\n", i,
			(int)sizeof(cpu->model) - 1, cpu->model, (int)sizeof(cpu->mhz) - 1,
			cpu->mhz);
	}
	l->cpu_text_len = (uint32_t)(p - l->cpu_text) + 1;
	return 0;
}

static int
sysstat_text_read(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	const struct live *l = arg;

	memcpy(buf, l->cpu_text + offset, len);
	return 0;
}

static enum mad_outcome
sysstat_cpu(struct live *l, struct mad_request *req)
{
	if (l->cpu_text_len <= VENDOR_AREA) {
		memcpy(req->reply + VENDOR_OFF_DATA, l->cpu_text, l->cpu_text_len);
		return MAD_ANSWER;
	}
	if (mad_later(req) == 0) {
		live_count(l, refused, 1);
		return live_status(req, MAD_STATUS_BUSY);
	}
	req->source = (struct mad_source){
		.arg = l,
		.length = l->cpu_text_len,
		.read = sysstat_text_read,
	};
	return MAD_STREAM;
}

enum mad_outcome
live_sysstat_request(struct live *l, struct mad_request *req)
{
	switch (get_be16(req->mad + MAD_OFF_ATTRIBUTE)) {
	case SYSSTAT_PING:
		break;
	case SYSSTAT_HOST:
		memcpy(req->reply + VENDOR_OFF_DATA, l->config.host, LIVE_HOST_MAX);
		break;
	case SYSSTAT_CPU:
		live_count(l, sysstat, 1);
		return sysstat_cpu(l, req);
	default:
		live_count(l, unknown_type, 1);
		return live_status(req, MAD_STATUS_BAD_METHOD_ATTR);
	}
	live_count(l, sysstat, 1);
	return MAD_ANSWER;
}
