/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Full hand-off rings: what has no room is dropped, counted on its port, and its mbuf given back
 * (design.md rule 1). Two workers without EAL; the test is both.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <rte_mbuf.h>

#include "engine/worker.h"

#define RING    16 /* holds one less */
#define FITS    (RING - 1)
#define PACKETS LINK_BURST

struct handoff_pair {
	struct engine e;
	struct worker w[2];
	struct handoff_burst out[2][2], arrived[2][2];
	struct link_counters counters[2]; /* of two ports, as worker 0 counts */
	struct rte_mbuf mbuf[PACKETS];
	struct packet pkt[PACKETS];
	_Alignas(RTE_CACHE_LINE_SIZE) uint8_t ring[2][4096];
};

static struct rte_ring *
full_test_ring(uint8_t *memory, size_t size)
{
	struct rte_ring *r = (struct rte_ring *)memory;

	assert_in_range(rte_ring_get_memsize(RING), 1, size);
	assert_int_equal(rte_ring_init(r, "", RING, RING_F_SP_ENQ | RING_F_SC_DEQ), 0);
	return r;
}

/* The test holds a reference to each mbuf: 2 while the packet has one as well, then 1. */
static int
handoff_pair_setup(void **state)
{
	struct handoff_pair *p = aligned_alloc(4096, RTE_ALIGN(sizeof(*p), 4096));
	unsigned int i;

	assert_non_null(p);
	memset(p, 0, sizeof(*p));
	p->e.num_workers = 2;
	for (i = 0; i < 2; i++) {
		p->e.worker[i] = &p->w[i];
		p->w[i].id = i;
		p->w[i].workers = 2;
		p->w[i].engine = &p->e;
		p->w[i].out = p->out[i];
		p->w[i].arrived = p->arrived[i];
		p->w[0].counters[i] = &p->counters[i];
	}
	p->w[1].in[0] = full_test_ring(p->ring[0], sizeof(p->ring[0]));
	p->w[0].smps_in[1] = full_test_ring(p->ring[1], sizeof(p->ring[1]));
	for (i = 0; i < PACKETS; i++) {
		p->mbuf[i].nb_segs = 1;
		rte_mbuf_refcnt_set(&p->mbuf[i], 2);
		p->pkt[i].mbuf = &p->mbuf[i];
		p->pkt[i].port = i % 2;
	}
	*state = p;
	return 0;
}

static int
handoff_pair_teardown(void **state)
{
	free(*state);
	return 0;
}

static void
expect_given_back(struct handoff_pair *p, unsigned int from, unsigned int to)
{
	unsigned int i;

	for (i = 0; i < PACKETS; i++)
		assert_int_equal(rte_mbuf_refcnt_read(&p->mbuf[i]), i >= from && i < to ? 1 : 2);
}

/* A burst larger than the room: the first packets arrive in their order, the rest is lost. */
static void
test_burst_larger_than_the_room(void **state)
{
	struct handoff_pair *p = *state;
	struct packet *got[LINK_BURST];
	unsigned int i;

	for (i = 0; i < PACKETS; i++)
		handoff_stage(&p->w[0], 1, &p->pkt[i]);
	handoff_flush(&p->w[0]);
	assert_int_equal(p->w[0].stats.handoff_out, FITS);
	assert_int_equal(p->w[0].stats.handoff_full, PACKETS - FITS);
	assert_int_equal(p->counters[0].verdict[VERDICT_HANDOFF_FULL], 8); /* 16, 18, ... 30 */
	assert_int_equal(p->counters[1].verdict[VERDICT_HANDOFF_FULL], 9); /* 15, 17, ... 31 */
	expect_given_back(p, FITS, PACKETS);
	assert_int_equal(handoff_take(&p->w[1], 0, got), FITS);
	for (i = 0; i < FITS; i++)
		assert_ptr_equal(got[i], &p->pkt[i]);
	assert_int_equal(handoff_take(&p->w[1], 0, got), 0);
	/* there is room again */
	handoff_stage(&p->w[0], 1, &p->pkt[0]);
	handoff_flush(&p->w[0]);
	assert_int_equal(p->w[0].stats.handoff_out, FITS + 1);
	assert_int_equal(p->w[0].stats.handoff_full, PACKETS - FITS);
}

/* A packet that is handed on to the new owner of its QP finds the ring full. */
static void
test_no_room_for_a_packet_handed_on(void **state)
{
	struct handoff_pair *p = *state;
	unsigned int i;

	for (i = 0; i < FITS + 2; i++)
		handoff_again(&p->w[0], 1, &p->pkt[i]);
	assert_int_equal(p->w[0].stats.handoff_again, FITS);
	assert_int_equal(p->w[0].stats.handoff_out, 0);
	assert_int_equal(p->w[0].stats.handoff_full, 2);
	expect_given_back(p, FITS, FITS + 2);
}

/* The ring of SMPs is as deep as a VL15 buffer, and drops as one does (seed 004). */
static void
test_no_room_for_an_smp(void **state)
{
	struct handoff_pair *p = *state;
	unsigned int i;

	/* worker 1 sends them; the counters of its ports are these */
	p->w[1].counters[0] = &p->counters[0];
	p->w[1].counters[1] = &p->counters[1];
	for (i = 0; i < FITS + 2; i++)
		handoff_smp(&p->w[1], &p->pkt[i]);
	assert_int_equal(p->w[1].stats.handoff_out, FITS);
	assert_int_equal(p->w[1].stats.handoff_full, 0);
	assert_int_equal(p->counters[0].verdict[VERDICT_VL15_DROPPED], 1);
	assert_int_equal(p->counters[1].verdict[VERDICT_VL15_DROPPED], 1);
	assert_int_equal(p->counters[0].verdict[VERDICT_HANDOFF_FULL], 0);
	expect_given_back(p, FITS, FITS + 2);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, handoff_pair_setup, handoff_pair_teardown)
	const struct CMUnitTest tests[] = {
		T(test_burst_larger_than_the_room),
		T(test_no_room_for_a_packet_handed_on),
		T(test_no_room_for_an_smp),
	};

	return cmocka_run_group_tests_name("handoff", tests, NULL, NULL);
}
