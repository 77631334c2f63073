/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Print transactions of class version 2, or SMPs, as they are on the wire, so that another
 * program's dissection can be compared: every frame of both sides as a line of hex, the responder's
 * first, for SMPs the requester's first.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

static void
print_frames(const struct manager *m)
{
	const struct frame *f;
	uint64_t n;
	uint32_t i;

	for (n = 0; n < m->sent; n++) {
		f = &m->frames[n % HARNESS_FRAMES];
		for (i = 0; i < f->len; i++)
			printf("%02x", f->bytes[i]);
		printf("\n");
	}
}

static void
madtool_ask(struct harness *h, uint8_t method, uint64_t bytes)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	call_init(&h->b, &c, mad, method, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE);
	mad[MAD_OFF_CLASS_VERSION] = 2;
	memset(mad + MAD_HEADER_LEN, 0, MAD_LEN - MAD_HEADER_LEN);
	put_be32(mad + MAD_OFF_MODIFIER, 0x01020304);
	put_be64(mad + SA2_OFF_SM_KEY, 0x1122334455667788);
	put_be16(mad + SA2_OFF_ATTR_OFFSET, 14);
	put_be64(mad + SA2_OFF_MASK, 0x0123456789ABCDEF);
	c.protocol = MAD_RMPP;
	c.data_offset = SA2_OFF_DATA;
	if (method == SA2_GET_MULTI) {
		c.flags |= MAD_METHOD_MULTI_REQUEST;
		c.source = pattern_source(h, bytes);
	}
	if (mad_call(h->b.w, &c, h->now, NULL) == 0)
		harness_run(h, 20000 * MS);
}

static void
madtool_transaction(uint8_t method, enum mad_outcome outcome, uint64_t bytes, uint64_t stale_at,
	int take_error)
{
	struct harness *h = harness_create(NULL);

	h->outcome = outcome;
	h->table_bytes = bytes;
	h->stale_at = stale_at;
	h->take_error = take_error;
	h->take_error_at = 600;
	madtool_ask(h, method, bytes);
	print_frames(&h->a);
	print_frames(&h->b);
	harness_destroy(h);
}

/* --- SMPs on native IB ports --- */

static enum mad_outcome
madtool_node_info(void *arg, struct mad_request *req)
{
	(void)arg;
	memset(req->reply + SMP_OFF_DATA, 0x5A, SMP_DATA_LEN);
	return MAD_ANSWER;
}

static void
madtool_done(void *arg, const struct mad_result *result)
{
	(void)arg;
	(void)result;
}

/* b asks a for its NodeInfo, by a route of one hop or by LID. */
static void
madtool_smp(uint8_t mgmt_class, uint8_t class_version)
{
	struct harness *h = harness_create(&(struct harness_config){ .ib = true });
	const struct mad_agent agent = { mgmt_class, 1, "smp", MAD_SINGLE, SMP_OFF_DATA, NULL,
		madtool_node_info, NULL };
	uint8_t mad[MAD_LEN] = { 1, mgmt_class, class_version, MAD_GET };
	struct mad_call c = {
		.to = { .av = harness_av(&h->b), .neighbour = PATH_NO_NEIGHBOUR },
		.protocol = MAD_SINGLE,
		.data_offset = SMP_OFF_DATA,
		.mad = mad,
		.taker = { .done = madtool_done },
	};

	put_be16(mad + MAD_OFF_ATTRIBUTE, 0x0011);
	put_be64(mad + SMP_OFF_M_KEY, 0x1122334455667788);
	if (mgmt_class == MAD_CLASS_SUBN_ROUTED) {
		c.to.av.slid = c.to.av.dlid = 0xFFFF;
		mad[SMP_OFF_HOP_COUNT] = 1;
		memset(mad + SMP_OFF_DR_SLID, 0xFF, 4);
		mad[SMP_OFF_INITIAL_PATH + 1] = 1;
	}
	if (mad_agent_add(h->a.w, &agent) == 0 && mad_call(h->b.w, &c, h->now, NULL) == 0)
		harness_run(h, 1000 * MS);
	print_frames(&h->b);
	print_frames(&h->a);
	harness_destroy(h);
}

static void
smps(void)
{
	madtool_smp(MAD_CLASS_SUBN_ROUTED, 1);
	madtool_smp(MAD_CLASS_SUBN_ROUTED, 2); /* 0x0004 */
	madtool_smp(MAD_CLASS_SUBN_LID, 1);
}

/* madtool [smp] */
int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "smp") == 0) {
		smps();
		return 0;
	}
	madtool_transaction(SA_GET_TABLE, MAD_STREAM, 0, 0, 0);
	madtool_transaction(SA_GET_TABLE, MAD_STREAM, 112, 0, 0);
	madtool_transaction(SA_GET_TABLE, MAD_STREAM, 20 * 112, 0, 0);
	madtool_transaction(SA2_GET_MULTI, MAD_STREAM, 450, 0, 0);
	madtool_transaction(SA2_GET_MULTI, MAD_LATER, 50, 0, 0);
	madtool_transaction(SA_GET_TABLE, MAD_STREAM, 20 * 112, 1000, 0); /* the sender STOPs */
	madtool_transaction(SA_GET_TABLE, MAD_STREAM, 20 * 112, 0, -EINVAL); /* receiver ABORTs */
	return 0;
}
