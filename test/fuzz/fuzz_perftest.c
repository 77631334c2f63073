/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz perftest's exchange, which any host that reaches the TCP port may use. The first input byte
 * chooses a TCP stream or a connection; then follow the received bytes, over a connection messages
 * with their lengths. No answer exceeds its buffer, and the session never waits without a reason.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "svc/perftest_exchange.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of every second QPN, ours is known only when it is asked for again. */
static int
fuzz_perftest_dest(void *arg, const struct perftest_dest *theirs, struct perftest_dest *ours)
{
	bool *asked = arg;

	if ((theirs->qpn & 1) != 0 && !*asked) {
		*asked = true;
		return -EAGAIN;
	}
	*asked = false;
	*ours = *theirs;
	return theirs->qpn != 0xbad ? 0 : -1;
}

/* Before the answer to the same message is known, the exchange must not go on. */
static int
perftest_answer_at_last(struct perftest_exchange *x, const uint8_t *message, size_t len,
	uint8_t *answer)
{
	struct perftest_exchange before = *x;
	int n = perftest_answer(x, message, len, answer);

	if (n != 0)
		return n;
	if (x->step != before.step || x->numbers != before.numbers || x->mtu != before.mtu)
		abort();
	return perftest_answer(x, message, len, answer);
}

static void
stream(struct perftest_exchange *x, const uint8_t *data, size_t size)
{
	uint8_t answer[PERFTEST_MESSAGE_MAX];
	size_t room;
	int len, n;

	while (size > 0) {
		/* size of a session's buffer */
		room = size < PERFTEST_MESSAGE_MAX ? size : PERFTEST_MESSAGE_MAX;
		len = perftest_frame(x, data, room);
		if (len == 0 && room == PERFTEST_MESSAGE_MAX)
			abort(); /* it would wait for ever */
		if (len <= 0)
			return;
		if ((size_t)len > room)
			abort();
		n = perftest_answer_at_last(x, data, (size_t)len, answer);
		if (n < 0)
			return;
		if (n == 0 || n > PERFTEST_MESSAGE_MAX)
			abort();
		data += len;
		size -= (size_t)len;
	}
}

static void
messages(struct perftest_exchange *x, const uint8_t *data, size_t size)
{
	uint8_t answer[PERFTEST_MESSAGE_MAX], message[PERFTEST_MESSAGE_MAX];

	while (size > 0) {
		size_t len = data[0] % (PERFTEST_MESSAGE_MAX + 1);

		data++;
		size--;
		if (len > size)
			return;
		memcpy(message, data, len);
		if (perftest_answer_at_last(x, message, len, answer) < 0)
			return;
		data += len;
		size -= len;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool asked = false;
	struct perftest_exchange x = { .mtu = 1024, .dest = fuzz_perftest_dest, .arg = &asked };

	if (size == 0)
		return 0;
	x.stream = data[0] & 1;
	if (data[0] & 2) /* begin after the greeting */
		x.step = PERFTEST_TALK;
	if (x.stream)
		stream(&x, data + 1, size - 1);
	else
		messages(&x, data + 1, size - 1);
	return 0;
}
