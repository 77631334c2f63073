/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>
#include <string.h>

#include "bench.h"

static void
totals(void *arg, uint16_t port, struct pma_totals *t)
{
	const struct bench *b = arg;

	*t = b->totals[port];
}

int
bench_setup(void **state)
{
	struct harness_config hc = { .bare = true, .scripted = true };
	struct bench *b = calloc(1, sizeof(*b));
	struct pma_config config = {
		.alloc = &allocator_malloc,
		.hz = 1000000000,
		.num_ports = BENCH_PORTS,
		.tick = { 3 },
		.resp_time = 13,
		.totals = totals,
		.arg = b,
	};

	assert_non_null(b);
	b->h = harness_create(&hc);
	config.mad = b->h->a.w;
	config.wheel = b->h->a.wheel;
	b->pma = pma_create(&config);
	assert_non_null(b->pma);
	*state = b;
	return 0;
}

int
bench_teardown(void **state)
{
	struct bench *b = *state;

	pma_destroy(b->pma);
	harness_destroy(b->h);
	free(b);
	return 0;
}

const uint8_t *
ask(struct bench *b, uint8_t method, uint16_t attribute, const uint8_t *data, uint16_t status)
{
	uint8_t mad[MAD_LEN] = { 1, 0x04, 1, method };
	const uint8_t *answer;

	put_be64(mad + MAD_OFF_TID, 0x1234567812345678);
	put_be16(mad + MAD_OFF_ATTRIBUTE, attribute);
	if (data != NULL)
		memcpy(mad + 64, data, MAD_LEN - 64);
	assert_int_equal(say(b->h, mad), VERDICT_DATAGRAM);
	answer = next_sent(&b->h->a);
	assert_int_equal(answer[3], MAD_GET_RESP);
	assert_int_equal(get_be16(answer + MAD_OFF_STATUS), status);
	assert_int_equal(get_be64(answer + MAD_OFF_TID), 0x1234567812345678);
	b->h->a.delivered = b->h->a.sent;
	return answer + 64;
}

const uint8_t *
get_port(struct bench *b, uint16_t attribute, uint8_t port, uint16_t status)
{
	uint8_t data[MAD_LEN - 64] = { 0, port };

	return ask(b, MAD_GET, attribute, data, status);
}
