/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_SMP_BUILD_H
#define CTL_SMP_BUILD_H

/** @file The bytes of a subnet management packet that a user asks for (smp-sma 2). */

#include "base/error.h"
#include "mad/layout.h"
#include "port/port.h"

/** A directed route: the ports to leave by, from port[1] on; port[0] is not used. */
struct smp_path {
	uint8_t hops;
	uint8_t port[SMP_PATH_LEN];
};

/** "0,1,2" is 2 hops. @retval -EINVAL err says what is allowed */
int smp_path_parse(const char *text, struct smp_path *path, struct error *err);

struct smp_request {
	uint8_t method;
	uint16_t attribute;
	uint32_t modifier;
	uint64_t m_key;
	const uint8_t *data; /**< SMP_DATA_LEN bytes */
	const struct smp_path *path; /**< NULL: LID routed */
};
/** All of it but the TID. */
void smp_build(const struct smp_request *r, uint8_t mad[MAD_LEN]);

#endif
