/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Print answers in ping's format, or everything as JSON. */

#include <string.h>

#include "methods.h"
#include "ping.h"

#define ECHO_SIZE 56

void
ping_print_head(const char *dest, const json_t *params)
{
	const json_t *mode = json_object_get(params, "mode"),
		     *size = json_object_get(params, "size");
	const char *name = mode != NULL ? json_string_value(mode) : "echo";

	printf("PING %s: %s", dest, name);
	if (strcmp(name, "echo") == 0)
		printf(", %lld bytes of data",
			(long long)(size != NULL ? json_integer_value(size) : ECHO_SIZE));
	printf("\n");
}

/* Print a host's description of itself on one line: it may have several. */
static void
print_text(const char *text)
{
	size_t len = strcspn(text, "\n");

	printf(": %.*s", (int)len, text);
	for (text += len; text[0] != '\0' && text[1] != '\0'; text += len) {
		len = 1 + strcspn(text + 1, "\n");
		printf("; %.*s", (int)len - 1, text + 1);
	}
}

static void
print_extra(const char *name, const json_t *v)
{
	if (json_is_integer(v))
		printf(" %s=%lld", name, (long long)json_integer_value(v));
	else if (json_is_string(v))
		printf(" %s=%s", name, json_string_value(v));
}

static void
print_answer(const char *dest, uint64_t seq, const json_t *reply)
{
	static const char *const extras[] = { "originate", "receive", "transmit", "residence_ms",
		"lid", "guid" };
	const json_t *text = json_object_get(reply, "text");
	size_t i;

	printf("%lld bytes from %s: seq=%llu time=%.1f us", (long long)member_int(reply, "bytes"),
		dest, (unsigned long long)seq, json_real_value(json_object_get(reply, "time_us")));
	for (i = 0; i < sizeof(extras) / sizeof(extras[0]); i++)
		print_extra(extras[i], json_object_get(reply, extras[i]));
	if (text != NULL)
		print_text(json_string_value(text));
	printf("\n");
}

void
ping_print_reply(const char *dest, uint64_t seq, const json_t *reply)
{
	const char *error = method_text(reply, "error");

	if (error[0] == '\0')
		print_answer(dest, seq, reply);
	else if (strcmp(error, "TIMEOUT") == 0)
		printf("no answer from %s: seq=%llu\n", dest, (unsigned long long)seq);
	else
		printf("no good answer from %s: seq=%llu %s: %s\n", dest, (unsigned long long)seq,
			error, method_text(reply, "message"));
}

void
ping_print_json(const char *dest, json_t *replies, const struct ping_stats *s, uint64_t ms)
{
	json_t *end = json_pack("{s:s, s:O, s:I, s:I, s:f, s:I}", "dest", dest, "replies", replies,
		"sent", (json_int_t)s->sent, "received", (json_int_t)s->received, "loss_percent",
		ping_stats_loss(s), "time_ms", (json_int_t)ms);

	if (s->received > 0)
		json_object_set_new(end, "rtt_us",
			json_pack("{s:f, s:f, s:f, s:f}", "min", s->min, "avg", ping_stats_avg(s),
				"max", s->max, "mdev", ping_stats_mdev(s)));
	print_json(end);
	json_decref(end);
}
