/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz a QP with raw packets. The input is a list of records {length, flags, bytes from the BTH
 * on}; each becomes a frame with valid addresses and ICRC, so that it reaches the QP's own checks.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_KEEP_QPN 0x01 /* the QPN is that of the bytes; else the QP's */
#define RECORD_KEEP_PSN 0x02 /* the PSN is that of the bytes; else relative to the expected one */
#define RECORD_KEEP_KEY 0x04 /* the R_Key is that of the bytes; else of one of the regions */
#define RECORD_POST     0x08 /* the user posts a work request first */
#define RECORD_TO_FIRST 0x10 /* to node 0 */

static void
fuzz_qp_aim(struct conn *c, unsigned int node, uint8_t *bth, uint32_t len, uint8_t flags)
{
	struct rc_qp_info info;

	if (!(flags & RECORD_KEEP_QPN)) {
		bth[5] = (uint8_t)(c->qpn[node] >> 16);
		bth[6] = (uint8_t)(c->qpn[node] >> 8);
		bth[7] = (uint8_t)c->qpn[node];
	}
	if (!(flags & RECORD_KEEP_PSN) &&
		rc_qp_query(c->sim->node[node].worker, c->qpn[node], &info) == 0) {
		uint32_t base = bth[0] >= RC_READ_RESP_FIRST && bth[0] <= RC_ATOMIC_ACK
			? info.attr.sq_psn
			: info.attr.rq_psn;
		uint32_t psn = psn_add(base, (uint32_t)(int32_t)(int8_t)bth[11]);

		bth[9] = (uint8_t)(psn >> 16);
		bth[10] = (uint8_t)(psn >> 8);
		bth[11] = (uint8_t)psn;
	}
	if (!(flags & RECORD_KEEP_KEY) && len >= BTH_LEN + 16 && !(bth[0] & 1)) {
		const struct flow *f = &c->flow[!node];
		const uint32_t keys[] = { f->hot_key, f->once_key, f->konst_key, f->words_key };
		const uint32_t at[] = { f->hot, f->once, f->konst, f->words };
		uint32_t k = bth[BTH_LEN + 8] & 3, va = at[k] + (bth[BTH_LEN + 7] & 0x3F);

		memset(bth + BTH_LEN, 0, 8);
		bth[BTH_LEN + 3] = (uint8_t)(SIM_VA >> 32);
		bth[BTH_LEN + 4] = (uint8_t)(va >> 24);
		bth[BTH_LEN + 5] = (uint8_t)(va >> 16);
		bth[BTH_LEN + 6] = (uint8_t)(va >> 8);
		bth[BTH_LEN + 7] = (uint8_t)va;
		for (int i = 0; i < 4; i++)
			bth[BTH_LEN + 8 + i] = (uint8_t)(keys[k] >> (24 - 8 * i));
	}
}

static void
fuzz_qp_send_record(struct conn *c, const uint8_t *bytes, uint32_t len, uint8_t flags)
{
	unsigned int node = flags & RECORD_TO_FIRST ? 0 : 1;
	struct sim_node *from = &c->sim->node[!node];
	uint8_t frame[SIM_FRAME_MAX] = { 0 }, *bth = frame + PATH_HEADER_MAX;
	struct av av = {
		.encap = ENCAP_ROCEV2_IPV4,
		.sgid = from->gid,
		.dgid = c->sim->node[node].gid,
		.vlan = PATH_NO_VLAN,
	};
	struct path path;
	uint32_t frame_len;

	memcpy(bth, bytes, len);
	if (len < BTH_LEN) /* fill the BTH up with zeros */
		len = BTH_LEN;
	fuzz_qp_aim(c, node, bth, len, flags);
	path_init(&path, &av, c->qpn[!node], c->qpn[node]);
	frame_len = path_finish(&path, bth, len, 1);
	sim_deliver(c->sim, &c->sim->node[node], c->sim->now + 100, bth - path.header_len,
		frame_len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct coverage coverage;
	struct sim *s = sim_create(size, &coverage, false);
	struct conn_options o;
	struct conn *c;

	script_create(s);
	script_nodes(s);
	o = conn_options_random(s);
	o.encap = ENCAP_ROCEV2_IPV4;
	o.pmtu = 256;
	c = script_connect(s, &o);
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		flow_plan(&c->flow[i], 20, KINDS_ALL);
		c->flow[i].lenient = true;
		flow_post_recv(&c->flow[i], 3);
	}
	while (size >= 3 && !s->failed) {
		uint32_t len = (uint32_t)data[0] * 8 + (data[1] & 7);
		uint8_t flags = data[2];

		data += 3;
		size -= 3;
		if (len > size)
			len = (uint32_t)size;
		if (len > MTU_MAX)
			break;
		if (flags & RECORD_POST)
			for (unsigned int i = 0; i < SIM_NODES; i++) {
				flow_post(&c->flow[i], 1);
				flow_post_recv(&c->flow[i], 1);
			}
		fuzz_qp_send_record(c, data, len & ~3u, flags);
		data += len;
		size -= len;
		sim_run(s, s->now + 2000, NULL);
		for (unsigned int i = 0; i < SIM_NODES; i++)
			flow_poll(&c->flow[i]);
	}
	sim_run(s, s->now + 100000, NULL);
	script_end(s);
	if (s->failed) {
		fprintf(stderr, "%s\n", s->why);
		abort();
	}
	sim_destroy(s);
	return 0;
}
