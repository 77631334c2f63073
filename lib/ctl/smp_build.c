/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <string.h>

#include "ctl/smp_build.h"
#include "wire/bytes.h"

#define HOPS_MAX (SMP_PATH_LEN - 1)

/* A number of at most two hundred and fifty-five, then a comma or the end. */
static const char *
take_hop(const char *text, uint8_t *hop)
{
	unsigned int v = 0, digits = 0;

	for (; *text >= '0' && *text <= '9' && digits < 4; text++, digits++)
		v = v * 10 + (unsigned int)(*text - '0');
	if (digits == 0 || v > UINT8_MAX || (*text != '\0' && *text != ','))
		return NULL;
	*hop = (uint8_t)v;
	return text;
}

int
smp_path_parse(const char *text, struct smp_path *path, struct error *err)
{
	const char *at = text;

	memset(path, 0, sizeof(*path));
	for (;;) {
		at = path->hops <= HOPS_MAX ? take_hop(at, &path->port[path->hops]) : NULL;
		if (at == NULL)
			break;
		path->hops++;
		if (*at++ == '\0')
			break;
	}
	if (at == NULL || path->port[0] != 0)
		return error_set(err, EINVAL,
			"path: got \"%.40s\", allowed: 0 for this port itself, and then the ports to leave by, as \"0,1,2\", %d at most",
			text, HOPS_MAX);
	path->hops--;
	return 0;
}

void
smp_build(const struct smp_request *r, uint8_t mad[MAD_LEN])
{
	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	mad[MAD_OFF_CLASS] = r->path != NULL ? MAD_CLASS_SUBN_ROUTED : MAD_CLASS_SUBN_LID;
	mad[MAD_OFF_CLASS_VERSION] = 1;
	mad[MAD_OFF_METHOD] = r->method;
	put_be16(mad + MAD_OFF_ATTRIBUTE, r->attribute);
	put_be32(mad + MAD_OFF_MODIFIER, r->modifier);
	put_be64(mad + SMP_OFF_M_KEY, r->m_key);
	memcpy(mad + SMP_OFF_DATA, r->data, SMP_DATA_LEN);
	if (r->path == NULL)
		return;
	/* pure directed route: the LIDs of both ends are the permissive one (smp-sma 2) */
	mad[SMP_OFF_HOP_COUNT] = r->path->hops;
	put_be16(mad + SMP_OFF_DR_SLID, PORT_LID_PERMISSIVE);
	put_be16(mad + SMP_OFF_DR_DLID, PORT_LID_PERMISSIVE);
	memcpy(mad + SMP_OFF_INITIAL_PATH, r->path->port, SMP_PATH_LEN);
}
