/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "svc/perftest_write.h"

bool
perftest_write_answers(struct perftest_write *p, uint64_t writes, uint64_t bytes, bool partial,
	struct perftest_write_answer *a)
{
	uint64_t size = bytes - p->bytes;

	if (!p->begun || writes == p->writes)
		return false;
	if (writes - p->writes > 1 || partial || size == 0) {
		p->begun = false;
		return false;
	}
	p->writes = writes;
	p->bytes = bytes;
	if (size != p->size) {
		p->size = size;
		p->count = 0;
		p->sizes++;
	}
	p->count++;
	*a = (struct perftest_write_answer){
		.length = size,
		.last = (uint8_t)(p->count + 1),
		.prepare = p->sizes == 2 && p->count == 1,
	};
	return true;
}
