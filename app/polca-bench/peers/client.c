/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The client of a run of two processes. */

#include <errno.h>
#include <string.h>

#include "peers/exchange.h"
#include "peers/remote.h"

#define START_MS  30000 /* the other process starts DPDK and creates its queue pairs */
#define ANSWER_MS 10000

/* Read a message of the server. @return nonzero: the server is gone or has failed */
static int
listen_to_server(struct run *run)
{
	struct benchmark *s = run->arg;
	json_t *m = NULL;
	const char *type;
	int ret = exchange_poll(s->exchange, &m, &s->lost);

	if (ret <= 0)
		return ret;
	type = json_string_value(json_object_get(m, "type"));
	if (type != NULL && strcmp(type, "figures") == 0) {
		s->far.busy = json_real_value(json_object_get(m, "busy"));
		s->far.wrong = (uint64_t)json_integer_value(json_object_get(m, "wrong"));
		s->far.own = (uint64_t)json_integer_value(json_object_get(m, "done"));
		s->far.figures_received = true;
	} else {
		error_set(&s->lost, EIO, "the other process: %s",
			type != NULL && strcmp(type, "error") == 0
				? json_string_value(json_object_get(m, "text"))
				: "unexpected message");
	}
	json_decref(m);
	return s->lost.text[0] != '\0';
}

static int
client_look(struct run *run, uint64_t now)
{
	benchmark_look(run->arg, now);
	return listen_to_server(run);
}

/* Tell the server that all our requests are completed: it then checks what arrived. */
static int
client_say_done(struct benchmark *s)
{
	const struct load *l = &s->load[REQUESTER][0];
	bool all = load_idle(l);

	if (s->far.done_sent || (!all && l->failed == 0 && bench_stop == 0))
		return 0;
	s->far.done_sent = true;
	return exchange_send(s->exchange,
		json_pack("{s:s, s:I}", "type", "done", "messages", all ? (json_int_t)l->done : -1),
		&s->lost);
}

/*
 * Tell the server to stop, and wait until it has drained. @return 1: it has, negative: it is gone
 */
static int
client_others(struct run *run)
{
	struct benchmark *s = run->arg;
	int ret;

	if (!s->far.stop_sent) {
		s->far.stop_sent = true;
		ret = exchange_send(s->exchange, json_pack("{s:s}", "type", "stop"), &s->lost);
		if (ret != 0)
			return ret;
	}
	ret = client_say_done(s);
	if (ret == 0)
		ret = listen_to_server(run);
	return ret != 0 ? -1 : s->far.figures_received;
}

static int
client_one_size(struct benchmark *s, uint32_t size, struct error *err)
{
	json_t *m;
	int ret;

	memset(&s->far, 0, sizeof(s->far));
	ret = exchange_send(s->exchange, json_pack("{s:s, s:i}", "type", "size", "size", (int)size),
		err);
	if (ret != 0)
		return ret;
	m = exchange_wait(s->exchange, "go", ANSWER_MS, err);
	if (m == NULL)
		return -ECONNRESET;
	json_decref(m);
	ret = benchmark_prepare(s, size, err);
	if (ret == 0)
		ret = benchmark_run(s, err);
	if (ret != 0)
		return ret;
	s->far.messages = run_done(&s->run);
	benchmark_report_row(s, &s->far);
	return s->far.wrong == 0
		? 0
		: error_set(err, EBADMSG, "%lu messages did not arrive as they were sent",
			  s->far.wrong);
}

/* Exchange the endpoints' numbers and connect. */
static int
client_meet(struct benchmark *s, struct error *err)
{
	json_t *m = exchange_wait(s->exchange, "ready", START_MS, err);
	int ret;

	if (m == NULL)
		return -ECONNRESET;
	ret = benchmark_create(s, err);
	if (ret == 0)
		ret = message_take_end(m, s->o.qps, &s->peer[REQUESTER], err);
	if (ret == 0)
		ret = exchange_send(s->exchange, message_end("end", &s->end[REQUESTER]), err);
	json_decref(m);
	return ret != 0 ? ret : benchmark_connect(s, err);
}

static int
client_sizes(struct benchmark *s, struct error *err)
{
	uint32_t size = s->o.all_sizes ? 2 : s->o.size;
	int ret = 0;

	benchmark_report_environment(s);
	benchmark_report_head(s);
	s->run.look = client_look;
	s->run.others = client_others;
	s->run.arg = s;
	for (; size <= s->o.size && ret == 0 && bench_stop == 0; size *= 2)
		ret = client_one_size(s, size, err);
	if (ret == 0)
		exchange_send(s->exchange, json_pack("{s:s}", "type", "bye"), NULL);
	else if (s->lost.text[0] == '\0')
		exchange_send(s->exchange,
			json_pack("{s:s, s:s}", "type", "error", "text", err->text), NULL);
	return ret;
}

/* The run could not begin: find out whether the server has reported a reason or is gone. */
static int
client_not_begun(struct benchmark *s, int ret, struct error *err)
{
	struct error why = { "" };
	json_t *m = NULL;
	const char *text;

	if (ret == -ECONNRESET)
		return ret;
	if (exchange_poll(s->exchange, &m, &why) < 0)
		return error_set(err, ECONNRESET, "%s", why.text);
	text = json_string_value(json_object_get(m, "text"));
	if (text != NULL)
		ret = error_set(err, EIO, "the other process: %s", text);
	else
		exchange_send(s->exchange,
			json_pack("{s:s, s:s}", "type", "error", "text", err->text), NULL);
	json_decref(m);
	return ret;
}

int
remote_run(struct benchmark *s, struct error *err)
{
	struct eal_wish wish = { .share_memory = link_memif_zero_copy(&s->o) };
	char where[256];
	int ret;

	remote_address(&s->o, where, sizeof(where));
	s->exchange = exchange_connect(where, err);
	if (s->exchange == NULL)
		return -ECONNREFUSED;
	benchmark_wish(&s->o, s->link, REQUESTER, &wish);
	ret = exchange_send(s->exchange, message_options(&s->o), err);
	if (ret == 0)
		ret = bench_eal_start(&s->o, &wish, err);
	if (ret == 0)
		ret = client_meet(s, err);
	return ret != 0 ? client_not_begun(s, ret, err) : client_sizes(s, err);
}
