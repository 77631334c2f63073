/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Walk the scatter/gather list of an SQ WQE.
 */

#include "mem/access.h"
#include "rc/qp_directory.h"

void
rc_cursor_seek(struct rc_cursor *c, const struct rc_sq_wqe *wqe, uint32_t index, uint32_t at)
{
	uint32_t left = at;

	if (c->wqe == index && c->at == at)
		return;
	*c = (struct rc_cursor){ .wqe = index, .at = at };
	while (c->sge < wqe->num_sge && left >= wqe->sge[c->sge].length)
		left -= wqe->sge[c->sge++].length;
	c->offset = left;
}

int
rc_cursor_take(struct rc_qp *qp, struct rc_cursor *c, struct rc_sq_wqe *wqe, uint32_t len,
	uint32_t access, struct rc_chunk *chunks)
{
	const struct sge *sge;
	uint32_t n;
	int count = 0;

	while (len != 0) {
		if (c->sge >= wqe->num_sge)
			return -1;
		sge = &wqe->sge[c->sge];
		n = RTE_MIN(len, sge->length - c->offset);
		if (n != 0) {
			if (mem_access_hint(qp->worker->mem, &qp->req.key_hint, sge->lkey, qp->pd,
				    qp->qpn, sge->addr + c->offset, n, access,
				    &chunks[count].host) != MEM_OK)
				return -1;
			chunks[count++].len = n;
		}
		c->at += n;
		c->offset += n;
		len -= n;
		if (c->offset == sge->length) {
			c->sge++;
			c->offset = 0;
		}
	}
	return count;
}
