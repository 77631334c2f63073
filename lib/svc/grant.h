/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_GRANT_H
#define SVC_GRANT_H

/**
 * @file
 * The grant of a service of kind "memory": 24 bytes in the private data of its REP, or of its
 * REQ if it connects (docs/services.md, "What memory grants").
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SVC_GRANT_LEN 24

struct svc_grant {
	uint32_t access; /**< MEM_ACCESS_REMOTE_... */
	bool own; /**< for this connection only */
	uint32_t rkey;
	uint64_t va; /**< of the first byte */
	uint64_t length; /**< bytes */
};

/** @param data  SVC_GRANT_LEN bytes, which are zero */
void svc_grant_put(uint8_t *data, const struct svc_grant *g);

/**
 * @param data  all of the private data
 * @retval false  not a grant: another program's private data
 */
bool svc_grant_get(const uint8_t *data, size_t len, struct svc_grant *g);

#endif
