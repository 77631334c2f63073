/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* CRC-32: the choice of a kernel at start. */

#include "wire/crc32.h"

#include <errno.h>

#include "wire/crc32_kernels.h"
#include "wire/wire.h"

static bool
always(void)
{
	return true;
}

/* slowest first */
static const struct crc_kernel kernels[] = {
	{ "portable", always, crc32_portable, crc32_packet_portable, icrc_portable,
		path_finish_send_portable, NULL },
#ifdef __x86_64__
	{ "pclmul", crc32_pclmul_supported, crc32_pclmul, crc32_packet_pclmul, icrc_pclmul,
		path_finish_send_pclmul, vcrc_fold_pclmul },
	{ "vpclmul", crc32_vpclmul_supported, crc32_vpclmul, crc32_packet_vpclmul, icrc_vpclmul,
		path_finish_send_vpclmul, vcrc_fold_pclmul },
#endif
};

const struct crc_kernel *crc_kernel = &kernels[0];

int
crc32_use(const char *name)
{
	int rc = -ENOTSUP;
	unsigned int i;

	for (i = 0; i < RTE_DIM(kernels); i++) {
		if ((name == NULL || strcmp(kernels[i].name, name) == 0) &&
			kernels[i].supported()) {
			crc_kernel = &kernels[i];
			rc = 0;
		}
	}
	return rc;
}

RTE_INIT(crc32_init)
{
	crc32_use(NULL);
}
