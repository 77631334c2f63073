/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * MultiPathRecord queries (sa-multipacket B10; mask bits as in opensm's ib_types.h).
 */

#include <errno.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/multi.h"
#include "wire/bytes.h"

#define NUMB_PATH_MAX 127
#define MULTICAST     0xFF

/*
 * The standard leaves open whether the counts' mask bits are needed; like opensm we require them.
 */
#define COUNTS (SA_BIT(MPR_BIT_SGID_COUNT) | SA_BIT(MPR_BIT_DGID_COUNT))

static void
multi_read_request(const struct multi_query *m, unsigned int offset, uint8_t *buf, unsigned int len)
{
	if (m->body != NULL)
		mad_body_read(m->body, offset, buf, len);
	else
		memcpy(buf, m->data + offset, len);
}

void
multi_rewind(struct multi_query *m)
{
	m->left = m->numb_path;
	m->at = 0;
	m->begun = false;
}

uint16_t
multi_init(struct multi_query *m, struct mad_body *body, const uint8_t *data, uint64_t mask)
{
	uint64_t len = body != NULL ? mad_body_length(body) : SA2_AREA;
	uint8_t rec[MPR_LEN];

	m->body = body;
	if (body == NULL)
		memcpy(m->data, data, SA2_AREA);
	if (len < MPR_LEN)
		return MAD_STATUS_INVALID_FIELD;
	multi_read_request(m, 0, rec, MPR_LEN);
	m->sgids = rec[MPR_OFF_SGID_COUNT];
	m->dgids = rec[MPR_OFF_DGID_COUNT];
	if ((mask & COUNTS) != COUNTS || m->sgids == 0 || m->dgids == 0)
		return SA_STATUS_REQ_INVALID;
	if (len < MPR_LEN + 16u * (m->sgids + m->dgids))
		return MAD_STATUS_INVALID_FIELD;
	/* from RawTraffic to PacketLifeTime both records have the same layout and mask bits */
	memset(m->tmpl, 0, sizeof(m->tmpl));
	memcpy(m->tmpl + PR_OFF_FLOW_HOP, rec, PR_OFF_LIFE + 1 - PR_OFF_FLOW_HOP);
	m->mask = (mask & MPR_PATH_BITS) << PR_BIT_RAW | SA_BIT(PR_BIT_SGID) | SA_BIT(PR_BIT_DGID);
	m->numb_path = NUMB_PATH_MAX;
	if ((m->mask & SA_BIT(PR_BIT_NUMB_PATH)) != 0)
		m->numb_path = m->tmpl[PR_OFF_NUMB_PATH] & NUMB_PATH_MAX;
	multi_rewind(m);
	return MAD_STATUS_OK;
}

static unsigned int
multi_pairs(const struct multi_query *m)
{
	return (unsigned int)m->sgids * m->dgids;
}

/* Begin pair number .at, along the diagonals of sources and destinations. @return a MAD status */
static uint16_t
multi_begin_pair(struct multi_query *m, struct path_query *p, const struct sa_config *config,
	struct fabric *f)
{
	unsigned int s = m->at % m->sgids, d = (s + m->at / m->sgids) % m->dgids;
	unsigned int rest = multi_pairs(m) - m->at;
	uint16_t status;

	multi_read_request(m, MPR_LEN + 16 * s, m->tmpl + PR_OFF_SGID, 16);
	multi_read_request(m, MPR_LEN + 16 * (m->sgids + d), m->tmpl + PR_OFF_DGID, 16);
	if (m->tmpl[PR_OFF_DGID] == MULTICAST)
		return SA_STATUS_INVALID_GID;
	status = path_query_init(p, config, f, m->tmpl, m->mask, false);
	p->numb_path = (m->left + rest - 1) / rest;
	p->common.sprefix = p->common.dprefix = config->gid_prefix;
	m->begun = true;
	return status;
}

struct counting_sink {
	struct multi_query *m;
	path_sink *sink;
	void *arg;
};

static int
count_path(void *arg, const struct path_entry *e)
{
	struct counting_sink *c = arg;

	c->m->left--; /* never below 0: a pair's share is taken from what is left */
	return c->sink(c->arg, e);
}

int
multi_step(struct multi_query *m, struct path_query *p, const struct sa_config *config,
	struct fabric *f, const struct requester *who, unsigned int *budget, path_sink *sink,
	void *arg, uint16_t *status)
{
	struct counting_sink counting = { m, sink, arg };
	int rc;

	if (m->at == 0 && !m->begun)
		m->generation = fabric_generation(f);
	if (m->generation != fabric_generation(f))
		return -ESTALE;
	while (m->at < multi_pairs(m) && m->left > 0) {
		if (*budget == 0)
			return -EAGAIN;
		--*budget;
		if (!m->begun) {
			*status = multi_begin_pair(m, p, config, f);
			if (*status != MAD_STATUS_OK)
				return -EPROTO;
		}
		rc = path_query_step(p, f, who, budget, count_path, &counting);
		if (rc != 0)
			return rc;
		m->begun = false;
		m->at++;
	}
	return 0;
}
