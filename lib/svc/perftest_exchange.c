/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <string.h>

#include "svc/perftest_exchange.h"
#include "wire/bytes.h"

#define OLDEST   "5.70" /* the oldest version with which 6.06 works */
#define DONE_LEN 5

bool
perftest_is_version(const uint8_t *m, size_t len)
{
	unsigned int i, points = 0;

	if (len != PERFTEST_VERSION_LEN || (m[1] != '.' && m[2] != '.'))
		return false;
	for (i = 0; i < len && m[i] != '\0'; i++) {
		points += m[i] == '.';
		if ((m[i] < '0' || m[i] > '9') && m[i] != '.')
			return false;
	}
	return i > 3 && i < len && points == 1;
}

/* A version has two digits after the point and one before it, or more if it is newer, as 23.04. */
bool
perftest_is_old(const uint8_t *version)
{
	return version[1] == '.' && memcmp(version, OLDEST, 4) < 0;
}

size_t
perftest_version_write(uint8_t *message)
{
	memset(message, 0, PERFTEST_VERSION_LEN);
	memcpy(message, PERFTEST_VERSION, sizeof(PERFTEST_VERSION));
	return PERFTEST_VERSION_LEN;
}

uint16_t
perftest_mtu_bytes(uint8_t digit)
{
	return digit >= '1' && digit <= '5' ? (uint16_t)(128u << (digit - '0')) : 0;
}

uint8_t
perftest_mtu_digit(uint16_t bytes)
{
	uint8_t digit = '1';

	while (digit < '5' && perftest_mtu_bytes(digit + 1) <= bytes)
		digit++;
	return digit;
}

/* --- messages: each fills the answer and returns its length; 0: not known yet; -1: none --- */

static int
version(struct perftest_exchange *x, const uint8_t *m, size_t len, uint8_t *answer)
{
	if (!perftest_is_version(m, len) || perftest_is_old(m))
		return -1;
	x->step = PERFTEST_CYCLE_BUFFER;
	return (int)perftest_version_write(answer);
}

/* Both sides use the larger value: echo the client's. */
static int
exchange_same(struct perftest_exchange *x, const uint8_t *m, size_t len, uint8_t *answer)
{
	if (len != PERFTEST_WORD)
		return -1;
	memcpy(answer, m, PERFTEST_WORD);
	x->step++;
	return PERFTEST_WORD;
}

/* Both sides use the smaller value. The message has two bytes, on some connections four. */
static int
mtu(struct perftest_exchange *x, const uint8_t *m, size_t len, uint8_t *answer)
{
	uint16_t theirs = len >= PERFTEST_MTU_LEN ? perftest_mtu_bytes(m[0]) : 0;

	if (len > PERFTEST_WORD || theirs == 0)
		return -1;
	memset(answer, 0, len);
	answer[0] = perftest_mtu_digit(x->mtu);
	if (theirs < x->mtu)
		x->mtu = theirs;
	x->step = PERFTEST_TALK;
	return (int)len;
}

static int
exchange_swap_dest(struct perftest_exchange *x, const uint8_t *m, size_t len, uint8_t *answer)
{
	struct perftest_dest theirs, ours = { 0 };
	int ret;

	if (!x->stream)
		perftest_bytes_read(m, &theirs);
	else if (!perftest_text_read(m, len, &theirs))
		return -1;
	ret = x->dest(x->arg, &theirs, &ours);
	if (ret != 0)
		return ret == -EAGAIN ? 0 : -1;
	ours.has_gid = theirs.has_gid;
	if (x->stream)
		return (int)perftest_text_write(&ours, answer);
	perftest_bytes_write(&ours, answer);
	return PERFTEST_BYTES;
}

/* In a test of one direction the client ignores our report. */
static int
exchange_report(struct perftest_exchange *x, const uint8_t *m, size_t len, uint8_t *answer)
{
	(void)m;
	if (len != PERFTEST_NUMBER)
		return -1;
	if (x->step != PERFTEST_REPORT) {
		x->step = PERFTEST_REPORT;
		x->numbers = PERFTEST_NUMBERS;
	}
	if (--x->numbers == 0)
		x->step = PERFTEST_TALK;
	memset(answer, 0, PERFTEST_NUMBER);
	return PERFTEST_NUMBER;
}

static int
talk(struct perftest_exchange *x, const uint8_t *m, size_t len, uint8_t *answer)
{
	if (len == PERFTEST_NUMBER)
		return exchange_report(x, m, len, answer);
	if (x->stream && len == DONE_LEN) {
		memcpy(answer, PERFTEST_DONE_TEXT, DONE_LEN);
		x->step = PERFTEST_DONE;
		return DONE_LEN;
	}
	if (x->stream || len == PERFTEST_BYTES)
		return exchange_swap_dest(x, m, len, answer);
	return -1;
}

static int
after_done(struct perftest_exchange *x, const uint8_t *m, size_t len, uint8_t *answer)
{
	(void)x;
	(void)m;
	(void)len;
	(void)answer;
	return -1;
}

static const struct {
	unsigned int length; /* on a stream; 0: see frame_talk() */
	int (*answer)(struct perftest_exchange *x, const uint8_t *m, size_t len, uint8_t *answer);
} steps[] = {
	[PERFTEST_VERSION_STEP] = { PERFTEST_VERSION_LEN, version },
	[PERFTEST_CYCLE_BUFFER] = { PERFTEST_WORD, exchange_same },
	[PERFTEST_CACHE_LINE] = { PERFTEST_WORD, exchange_same },
	[PERFTEST_MTU] = { PERFTEST_MTU_LEN, mtu },
	[PERFTEST_TALK] = { 0, talk },
	[PERFTEST_REPORT] = { PERFTEST_NUMBER, exchange_report },
	[PERFTEST_DONE] = { 1, after_done },
};

/*
 * Tell messages apart: a report begins with a size below 2^56, a text with a digit, else it is
 * "done".
 */
static int
frame_talk(const uint8_t *bytes, size_t len)
{
	int text;

	if (bytes[0] == 0)
		return PERFTEST_NUMBER;
	if (bytes[0] == 'd' && (len < 2 || bytes[1] == 'o'))
		return len >= DONE_LEN && memcmp(bytes, PERFTEST_DONE_TEXT, DONE_LEN) != 0
			? -1
			: DONE_LEN;
	text = perftest_text_length(bytes, len);
	return text != 0 ? text : PERFTEST_TEXT_LID;
}

int
perftest_frame(const struct perftest_exchange *x, const uint8_t *bytes, size_t len)
{
	int length;

	if (len == 0)
		return 0;
	length = (int)steps[x->step].length;
	if (length == 0)
		length = frame_talk(bytes, len);
	return length < 0 || (size_t)length <= len ? length : 0;
}

int
perftest_answer(struct perftest_exchange *x, const uint8_t *message, size_t len, uint8_t *answer)
{
	return steps[x->step].answer(x, message, len, answer);
}
