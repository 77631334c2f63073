/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Regions whose file was shortened by its owner: bytes that peers read or wrote there are lost. The
 * queue pairs of the region's protection domain go to ERR, so that no peer takes them for good.
 */

#include "base/plural.h"
#include "engine/verbs.h"
#include "engine/worker.h"

static unsigned int
fail_qps_of(struct engine *e, uint32_t pd)
{
	struct rc_qp_info qp;
	uint64_t cursor = 0;
	unsigned int n = 0;

	while (engine_qp_next(e, &cursor, &qp)) {
		if (qp.init.pd != pd || qp.attr.qp_state == QPS_RESET ||
			qp.attr.qp_state == QPS_ERR || engine_qp_fail(e, qp.qpn) != 0)
			continue;
		events_put_control(e, &(struct event){ EVENT_QP_FATAL, qp.qpn });
		n++;
	}
	return n;
}

void
lost_memory_watch(struct engine *e)
{
	struct mem_mr_info mr;

	while (mem_mr_lost(e->mem, &mr)) {
		unsigned int n = fail_qps_of(e, mr.pd);

		mem_mr_close_lost(e->mem, mr.key);
		ENGINE_LOG(ERR,
			"memory region 0x%08x: its file was shortened, so bytes are lost: the region "
			"is closed, and %u queue pair%s of protection domain %u went to ERR",
			mr.key, n, plural(n), mr.pd);
	}
}
