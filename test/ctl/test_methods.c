/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Each method from its request to the verbs and back. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>
#include <rte_log.h>

#include "ask.h"
#include "base/verdict.h"
#include "engine/clients_info.h"
#include "wire/opcode.h"

static unsigned int
make_region(struct desk *d, unsigned int length)
{
	json_int_t pd = num(call(d, "pd_create", "%s", ""), "pd");

	return (unsigned int)num(
		call(d, "mr_register",
			"'pd': %d, 'length': %u, 'va': 4096, 'access': ['LOCAL_WRITE', 'REMOTE_READ']",
			(int)pd, length),
		"key");
}

static unsigned int
make_qp(struct desk *d)
{
	call(d, "cq_create", "%s", "");
	return (unsigned int)num(call(d, "qp_create", "'pd': 1, 'send_cq': 1"), "qp_num");
}

static void
test_version_and_rpc_list(void **state)
{
	struct desk *d = *state;
	const json_t *m;

	assert_string_equal(str(call(d, "version_get", "%s", ""), "version"), POLCA_VERSION);
	m = row(call(d, "rpc_list", "'method': 'cq_create'"), "methods", 0);
	assert_string_equal(str(m, "name"), "cq_create");
	m = json_array_get(json_object_get(m, "params"), 0);
	assert_string_equal(str(m, "name"), "depth");
	assert_string_equal(str(m, "type"), "integer");
	assert_string_equal(str(m, "default"), "256");
	assert_string_equal(str(m, "allowed"), "integer 1..16777216");
	assert_true(
		json_array_size(json_object_get(call(d, "rpc_list", "%s", ""), "methods")) > 30);
	assert_int_equal(num(call_fails(d, "rpc_list", "'method': 'x'"), "code"), -2);
}

static void
test_regions_are_registered_listed_and_deregistered(void **state)
{
	struct desk *d = *state;
	unsigned int key = make_region(d, 8192);
	const json_t *r = d->json;
	char text[16];

	r = json_object_get(r, "result");
	assert_int_equal(num(r, "lkey"), key);
	assert_int_equal(num(r, "rkey"), key);
	assert_int_equal(num(r, "va"), 4096);
	r = row(call(d, "mr_list", "%s", ""), "regions", 0);
	assert_int_equal(num(r, "key"), key);
	assert_int_equal(num(r, "length"), 8192);
	assert_string_equal(json_string_value(json_array_get(json_object_get(r, "access"), 1)),
		"REMOTE_READ");
	assert_true(json_is_null(json_object_get(json_object_get(d->json, "result"), "cursor")));
	/* keys may be written as hex text too */
	snprintf(text, sizeof(text), "0x%x", key);
	call(d, "mr_deregister", "'key': '%s'", text);
	assert_int_equal(json_array_size(json_object_get(call(d, "mr_list", "%s", ""), "regions")),
		0);
	assert_string_equal(str(json_object_get(call_fails(d, "mr_deregister", "'key': %u", key),
					"data"),
				    "errno"),
		"ENOENT");
}

#define assert_says(text, what) assert_non_null(strstr(text, what))

static void
test_a_region_needs_a_length_unless_it_is_a_file(void **state)
{
	struct desk *d = *state;
	int fd = memfd_create("region", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, 12288), 0);
	call(d, "pd_create", "%s", "");
	assert_says(fails(d, "mr_register", "'pd': 1"), "length");
	d->fd = dup(fd);
	assert_int_equal(num(call(d, "mr_register", "'pd': 1, 'file': 'f', 'offset': 4096"),
				 "length"),
		8192);
	d->fd = dup(fd);
	assert_says(fails(d, "mr_register", "'pd': 1, 'file': 'f', 'offset': 12288"), "offset");
	d->fd = fd;
	assert_says(fails(d, "mr_register", "'pd': 1, 'file': 'f', 'memzone': 'x'"), "memzone");
}

/* A thread of its own closes what is not in memory. */
static bool
is_closed_soon(int fd)
{
	int ms;

	for (ms = 0; ms < 30000; ms++) {
		if (fcntl(fd, F_GETFD) < 0)
			return errno == EBADF;
		usleep(1000);
	}
	return false;
}

/* anything else could keep the server waiting, or reading, for ever */
static void
test_only_a_regular_file_is_taken(void **state)
{
	struct desk *d = *state;
	int fds[2];

	assert_says(fails(d, "sa_import", "'file': '/etc/passwd'"), "file: got no descriptor");
	d->fd = open("/dev/zero", O_RDONLY);
	assert_says(fails(d, "sa_import", "'file': 'f'"), "file: got a device, allowed: the des");
	d->fd = open("/tmp", O_RDONLY);
	assert_says(fails(d, "sa_import", "'file': 'f'"), "file: got a directory");
	assert_int_equal(pipe(fds), 0);
	close(fds[1]);
	d->fd = fds[0];
	assert_says(fails(d, "sa_import", "'file': 'f'"), "file: got a pipe");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	close(fds[1]);
	d->fd = fds[0];
	assert_says(fails(d, "sa_import", "'file': 'f'"), "file: got a socket");
	assert_int_equal(d->fd, -1);
	assert_true(is_closed_soon(fds[0]));
}

static void
test_a_region_is_on_the_node_of_its_port(void **state)
{
	struct desk *d = *state;

	make_region(d, 4096);
	assert_int_equal(d->e->mr_local_port, 0);
	call(d, "mr_register", "'pd': 1, 'length': 4096, 'local_port': 1");
	assert_int_equal(d->e->mr_local_port, 1);
	assert_string_equal(str(call_fails(d, "mr_register",
					"'pd': 1, 'length': 4096, 'local_port': 2"),
				    "message"),
		"local_port: got 2, there are 2, counted from 0");
}

static void
test_a_bad_domain_is_named(void **state)
{
	struct desk *d = *state;

	call_fails(d, "mr_register", "'pd': 77, 'length': 4096");
	make_region(d, 4096);
	assert_int_equal(num(call_fails(d, "pd_destroy", "'pd': 1"), "code"), -16);
}

/* A service's objects are listed with its name. */
static void
test_lists_say_whose(void **state)
{
	struct desk *d = *state;
	json_t *r;
	int i;

	make_region(d, 4096); /* domain 1 */
	call(d, "pd_create", "%s", "");
	call(d, "pd_create", "%s", "");
	call(d, "mr_register", "'pd': 3, 'length': 4096");
	call(d, "mw_create", "'pd': 1");
	call(d, "mw_create", "'pd': 3");
	for (i = 0; i < FAKE_CQS - 1; i++)
		call(d, "cq_create", "%s", "");
	r = call(d, "mr_list", "%s", "");
	assert_true(json_is_null(json_object_get(row(r, "regions", 0), "service")));
	assert_string_equal(str(row(r, "regions", 1), "service"), "mine");
	r = call(d, "mw_list", "%s", "");
	assert_true(json_is_null(json_object_get(row(r, "windows", 0), "service")));
	assert_string_equal(str(row(r, "windows", 1), "service"), "mine");
	r = call(d, "cq_list", "%s", "");
	assert_true(json_is_null(json_object_get(row(r, "cqs", 0), "service")));
	assert_string_equal(str(row(r, "cqs", FAKE_CQS - 2), "service"), "mine");
}

static void
test_bytes_written_are_read_back(void **state)
{
	struct desk *d = *state;
	unsigned int key = make_region(d, 4096);

	assert_int_equal(num(call(d, "mr_write", "'key': %u, 'offset': 5, 'data': 'DEADbeef00'",
				     key),
				 "length"),
		5);
	assert_string_equal(str(call(d, "mr_read", "'key': %u, 'offset': 4, 'length': 7", key),
				    "data"),
		"00deadbeef0000");
	assert_string_equal(str(call(d, "mr_read", "'key': %u, 'length': 0", key), "data"), "");
	call_fails(d, "mr_read", "'key': %u, 'offset': 4090, 'length': 7", key);
	call_fails(d, "mr_read", "'key': %u, 'offset': '0xffffffffffffffff', 'length': 7", key);
	call_fails(d, "mr_write", "'key': %u, 'offset': 4095, 'data': '0011'", key);
	assert_int_equal(num(call_fails(d, "mr_read", "'key': %u, 'length': 262145", key), "code"),
		-32602);
}

/* the first words of SplitMix64 with seed 1234567, as its author publishes them */
static void
test_fill_is_splitmix64(void **state)
{
	static const uint64_t words[] = { UINT64_C(6457827717110365317),
		UINT64_C(3203168211198807973), UINT64_C(9817491932198370423) };
	struct desk *d = *state;
	unsigned int key = make_region(d, 4096);
	char hex[64] = "";
	size_t i, b;

	for (i = 0; i < 3; i++)
		for (b = 0; b < 8; b++)
			sprintf(hex + strlen(hex), "%02x",
				(unsigned int)(words[i] >> (8 * b)) & 255);
	call(d, "mr_fill", "'key': %u, 'offset': 3, 'length': 23, 'seed': 1234567", key);
	hex[46] = '\0'; /* 23 bytes */
	assert_string_equal(str(call(d, "mr_read", "'key': %u, 'offset': 3, 'length': 23", key),
				    "data"),
		hex);
	assert_string_equal(str(call(d, "mr_read", "'key': %u, 'offset': 26, 'length': 1", key),
				    "data"),
		"00");
}

static void
test_long_fills_and_checksums_go_in_slices(void **state)
{
	static const char start[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"mr_fill\",";
	const size_t len = (5 << 20) + 13;
	struct desk *d = *state;
	unsigned int key = make_region(d, (unsigned int)len);
	struct rpc_call *c;
	uint64_t state64 = 9, z = 0;
	size_t i, wrong = 0;
	unsigned int slices = 0;
	uint8_t *bytes;
	char line[128];

	snprintf(line, sizeof(line), "%s\"params\":{\"key\":%u,\"seed\":9}}", start, key);
	c = rpc_open(&d->state, line, strlen(line), &(int){ -1 }, 0);
	while (rpc_step(c, 0) == RPC_AGAIN)
		slices++;
	assert_in_range(slices, 4, 100);
	assert_int_equal(num(c->result, "length"), len);
	rpc_close(c);

	bytes = malloc(len);
	assert_int_equal(engine_mr_read(d->e, key, 0, bytes, len, NULL), 0);
	/* one sequence over all slices: SplitMix64 adds its constant to the state for each word */
	for (i = 0; i < len; i++) {
		if (i % 8 == 0) {
			state64 += UINT64_C(0x9e3779b97f4a7c15);
			z = state64;
			z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
			z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
			z ^= z >> 31;
		}
		wrong += bytes[i] != (uint8_t)(z >> (8 * (i % 8)));
	}
	assert_int_equal(wrong, 0);
	assert_int_equal(num(call(d, "mr_checksum", "'key': %u", key), "crc32"),
		crc32(0, bytes, (uInt)len));
	assert_int_equal(num(call(d, "mr_checksum", "'key': %u, 'offset': 100, 'length': 9", key),
				 "crc32"),
		crc32(0, bytes + 100, 9));
	free(bytes);
	/* of no bytes: 0, as zlib has it */
	assert_int_equal(num(call(d, "mr_checksum", "'key': %u, 'length': 0", key), "crc32"), 0);
	call_fails(d, "mr_checksum", "'key': %u, 'offset': %zu", key, len + 1);
	call_fails(d, "mr_checksum", "'key': 1");
	call_fails(d, "mr_fill", "'key': %u, 'offset': 1, 'length': %zu", key, len);
}

static void
test_windows(void **state)
{
	struct desk *d = *state;
	json_int_t key;
	const json_t *w;

	call(d, "pd_create", "%s", "");
	key = num(call(d, "mw_create", "'pd': 1, 'type': 'TYPE_1'"), "key");
	w = row(call(d, "mw_list", "%s", ""), "windows", 0);
	assert_int_equal(num(w, "key"), key);
	assert_string_equal(str(w, "type"), "TYPE_1");
	assert_true(json_is_false(json_object_get(w, "bound")));
	call(d, "mw_destroy", "'key': %lld", (long long)key);
	call_fails(d, "mw_destroy", "'key': %lld", (long long)key);
}

/* A bound one is told with what it is bound to; QP 0x123 has done so. */
static void
test_bound_windows_are_told_with_their_range(void **state)
{
	struct desk *d = *state;
	struct mem_bind bind = {
		.qpn = 0x123,
		.access = MEM_ACCESS_REMOTE_READ,
		.va = 4096 + 1024,
		.length = 512,
	};
	const json_t *w;
	uint64_t token;
	uint32_t key;

	bind.mr_key = (uint32_t)num(
		call(d, "mr_register",
			"'pd': %d, 'length': 8192, 'va': 4096, 'access': ['LOCAL_WRITE', 'REMOTE_READ', 'MW_BIND']",
			(int)num(call(d, "pd_create", "%s", ""), "pd")),
		"key");
	bind.pd = 1;
	bind.mw_key = (uint32_t)num(call(d, "mw_create", "'pd': 1"), "key");
	bind.new_key = bind.mw_key ^ 1;
	assert_int_equal(mem_mw_bind(d->e->mem, &bind, &key, &token), 0);
	w = row(call(d, "mw_list", "%s", ""), "windows", 0);
	assert_int_equal(num(w, "key"), bind.new_key);
	assert_string_equal(str(w, "type"), "TYPE_2");
	assert_true(json_is_true(json_object_get(w, "bound")));
	assert_int_equal(num(w, "mr_key"), bind.mr_key);
	assert_int_equal(num(w, "qp_num"), 0x123);
	assert_int_equal(num(w, "va"), 5120);
	assert_int_equal(num(w, "length"), 512);
	assert_string_equal(json_string_value(json_array_get(json_object_get(w, "access"), 0)),
		"REMOTE_READ");
	assert_int_equal(num(call_fails(d, "mr_deregister", "'key': %u", bind.mr_key), "code"),
		-16);
}

/*
 * Pages of two: the cursor of one leads to the next, and null ends them. Behind the last row, even
 * far behind, there is nothing.
 */
static void
expect_pages(struct desk *d, const char *method, const char *list, unsigned int rows)
{
	long long cursor = 0;
	unsigned int got = 0;
	const json_t *r;

	for (;;) {
		r = call(d, method, "'max': 2, 'cursor': %lld", cursor);
		got += (unsigned int)json_array_size(json_object_get(r, list));
		if (json_is_null(json_object_get(r, "cursor")))
			break;
		assert_int_equal(json_array_size(json_object_get(r, list)), 2);
		cursor = num(r, "cursor");
	}
	assert_int_equal(got, rows);
	assert_int_equal(json_array_size(json_object_get(call(d, method, "%s", ""), list)), rows);
	assert_int_equal(num(call_fails(d, method, "'max': 1001"), "code"), -32602);
	r = call(d, method, "'cursor': %lld", 1LL << 32);
	assert_int_equal(json_array_size(json_object_get(r, list)), 0);
}

static void
test_lists_of_memory_and_queues_are_paged(void **state)
{
	struct desk *d = *state;
	const json_t *r;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		call(d, "pd_create", "%s", "");
		call(d, "mr_register", "'pd': 1, 'length': 4096");
		call(d, "mw_create", "'pd': 1");
		call(d, "cq_create", "'depth': %u", 10 + i);
	}
	expect_pages(d, "pd_list", "domains", 5);
	expect_pages(d, "mr_list", "regions", 5);
	expect_pages(d, "mw_list", "windows", 5);
	expect_pages(d, "cq_list", "cqs", 5);
	r = row(call(d, "pd_list", "%s", ""), "domains", 0);
	assert_int_equal(num(r, "pd"), 1);
	assert_int_equal(num(r, "users"), 10);
	assert_true(json_is_null(json_object_get(r, "service")));
	r = row(call(d, "pd_list", "%s", ""), "domains", 2);
	assert_string_equal(str(r, "service"), "mine");
	assert_int_equal(num(row(call(d, "cq_list", "%s", ""), "cqs", 4), "depth"), 14);
}

static void
test_region_of_a_memzone_that_is_not_there(void **state)
{
	struct desk *d = *state;

	call(d, "pd_create", "%s", "");
	assert_non_null(
		strstr(str(call_fails(d, "mr_register", "'pd': 1, 'memzone': 'nosuch'"), "message"),
			"length: missing"));
	call_fails(d, "mr_register", "'pd': 1, 'memzone': 'nosuch', 'length': 4096");
	assert_int_equal(json_array_size(json_object_get(call(d, "mr_list", "%s", ""), "regions")),
		0);
}

static void
test_completions_carry_the_names_of_ibv_wc(void **state)
{
	struct desk *d = *state;
	struct wc ok = {
		.wr_id = UINT64_MAX,
		.opcode = WC_RECV_RDMA_WITH_IMM,
		.byte_len = 9,
		.imm_data = 0xcafe,
		.qp_num = 0x100,
		.wc_flags = WC_WITH_IMM,
	};
	struct wc bad = { .wr_id = 2, .status = WC_REM_ACCESS_ERR, .qp_num = 0x100 };
	const json_t *wc;

	call(d, "cq_create", "%s", "");
	fake_complete(d->e, 1, &ok);
	fake_complete(d->e, 1, &bad);
	call(d, "cq_poll", "'cq': 1");
	assert_int_equal(json_array_size(json_object_get(json_object_get(d->json, "result"), "wc")),
		2);
	wc = row(json_object_get(d->json, "result"), "wc", 0);
	assert_string_equal(str(wc, "wr_id"), "0xffffffffffffffff");
	assert_string_equal(str(wc, "status"), "SUCCESS");
	assert_string_equal(str(wc, "opcode"), wc_opcode_name(WC_RECV_RDMA_WITH_IMM));
	assert_int_equal(num(wc, "byte_len"), 9);
	assert_int_equal(num(wc, "imm_data"), 0xcafe);
	wc = row(json_object_get(d->json, "result"), "wc", 1);
	assert_string_equal(str(wc, "status"), wc_status_name(WC_REM_ACCESS_ERR));
	/* as ibv_poll_cq: the rest is meaningless, so it is not there */
	assert_null(json_object_get(wc, "byte_len"));
}

static void
test_completions_of_invalidations_and_binds(void **state)
{
	struct desk *d = *state;
	struct wc inv = { .wr_id = 1,
		.opcode = WC_RECV,
		.imm_data = 0x77,
		.wc_flags = WC_WITH_INV };
	struct wc bind = { .wr_id = 2, .opcode = WC_BIND_MW, .mw_key = 0x88 };
	const json_t *r;

	call(d, "cq_create", "%s", "");
	fake_complete(d->e, 1, &inv);
	fake_complete(d->e, 1, &bind);
	r = call(d, "cq_poll", "'cq': 1");
	assert_int_equal(num(row(r, "wc", 0), "invalidated_rkey"), 0x77);
	assert_null(json_object_get(row(r, "wc", 0), "imm_data"));
	assert_null(json_object_get(row(r, "wc", 0), "mw_key"));
	assert_int_equal(num(row(r, "wc", 1), "mw_key"), 0x88);
	assert_null(json_object_get(row(r, "wc", 1), "invalidated_rkey"));
}

static void
test_cq_poll_waits_for_its_minimum_and_no_longer_than_told(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"cq_poll\","
				   "\"params\":{\"cq\":1,\"min\":2,\"timeout_ms\":50}}";
	struct desk *d = *state;
	struct wc wc = { .wr_id = 1 };
	struct rpc_call *c;

	call(d, "cq_create", "%s", "");
	c = rpc_open(&d->state, line, strlen(line), &(int){ -1 }, 100);
	assert_int_equal(rpc_step(c, 100), RPC_WAIT);
	fake_complete(d->e, 1, &wc);
	assert_int_equal(rpc_step(c, 120), RPC_WAIT);
	fake_complete(d->e, 1, &wc);
	assert_int_equal(rpc_step(c, 121), 0);
	assert_int_equal(json_array_size(json_object_get(c->result, "wc")), 2);
	rpc_close(c);

	c = rpc_open(&d->state, line, strlen(line), &(int){ -1 }, 200);
	fake_complete(d->e, 1, &wc);
	assert_int_equal(rpc_step(c, 200), RPC_WAIT);
	assert_int_equal(rpc_step(c, 249), RPC_WAIT);
	assert_int_equal(rpc_step(c, 250), 0);
	assert_int_equal(json_array_size(json_object_get(c->result, "wc")), 1);
	rpc_close(c);
	assert_int_equal(num(call_fails(d, "cq_poll", "'cq': 7, 'timeout_ms': 900"), "code"), -2);
}

static void
test_cq_poll_takes_no_more_than_max(void **state)
{
	struct desk *d = *state;
	struct wc wc = { .wr_id = 1 };
	unsigned int i;

	call(d, "cq_create", "%s", "");
	for (i = 0; i < 200; i++)
		fake_complete(d->e, 1, &wc);
	call(d, "cq_poll", "'cq': 1, 'max': 130");
	assert_int_equal(json_array_size(json_object_get(json_object_get(d->json, "result"), "wc")),
		130);
	call(d, "cq_poll", "'cq': 1, 'max': 128");
	assert_int_equal(json_array_size(json_object_get(json_object_get(d->json, "result"), "wc")),
		70);
	call(d, "cq_arm", "'cq': 1, 'solicited_only': true");
	assert_true(d->e->cq[1].armed && d->e->cq[1].solicited_only);
	assert_int_equal(num(row(call(d, "cq_list", "%s", ""), "cqs", 0), "depth"), 256);
	call(d, "cq_destroy", "'cq': 1");
}

static void
test_qp_create_passes_every_attribute(void **state)
{
	struct desk *d = *state;
	const struct qp_init_attr *init = &d->e->qp[0].init;

	call(d, "qp_create",
		"'pd': 1, 'send_cq': 2, 'recv_cq': 3, 'srq': 5, 'max_send_wr': 6, 'max_recv_wr': 7,"
		" 'max_send_sge': 8, 'max_recv_sge': 9, 'max_inline_data': 10, 'sq_sig_all': false,"
		" 'ack_coalescing': false, 'flow_control': false, 'migreq': true");
	assert_int_equal(init->qp_type, QPT_RC);
	assert_int_equal(init->pd, 1);
	assert_int_equal(init->send_cq, 2);
	assert_int_equal(init->recv_cq, 3);
	assert_int_equal(init->srq, 5);
	assert_int_equal(init->cap.max_send_wr, 6);
	assert_int_equal(init->cap.max_recv_wr, 7);
	assert_int_equal(init->cap.max_send_sge, 8);
	assert_int_equal(init->cap.max_recv_sge, 9);
	assert_int_equal(init->cap.max_inline_data, 10);
	assert_false(init->sq_sig_all);
	assert_true(init->ack_per_packet);
	assert_false(init->flow_control);
	assert_int_equal(init->migreq, MIGREQ_1);

	call(d, "qp_create", "'pd': 1, 'send_cq': 2");
	init = &d->e->qp[1].init;
	assert_int_equal(init->recv_cq, 2);
	assert_int_equal(init->srq, RC_NO_SRQ);
	assert_true(init->sq_sig_all);
	assert_false(init->ack_per_packet);
	assert_true(init->flow_control);
}

/* design.md rule 6: start PSNs come from a CSPRNG; both ends can tell theirs before they connect */
static void
test_start_psns_are_random_24_bits_and_kept(void **state)
{
	struct desk *d = *state;
	json_int_t psn[16];
	unsigned int i, same = 0;

	call(d, "cq_create", "%s", "");
	for (i = 0; i < 16; i++) {
		psn[i] = num(call(d, "qp_create", "'pd': 1, 'send_cq': 1"), "sq_psn");
		assert_in_range(psn[i], 0, 0xffffff);
		same += i > 0 && psn[i] == psn[i - 1];
	}
	assert_int_equal(same, 0);
	assert_int_equal(num(call(d, "qp_show", "'qp_num': %d", 0x103), "sq_psn"), psn[3]);
	call(d, "qp_connect", "'qp_num': %d, 'dgid': '10.0.0.2', 'dest_qp_num': 17, 'rq_psn': 4711",
		0x103);
	assert_int_equal(d->e->qp[3].attr.sq_psn, psn[3]);
	assert_int_equal(num(json_object_get(d->json, "result"), "sq_psn"), psn[3]);
	for (i = 0; i < 16; i++)
		call(d, "qp_destroy", "'qp_num': %u", 0x100 + i);
	assert_int_equal(json_object_size(d->state.start_psn), 0); /* and no longer than needed */
}

static void
test_qp_connect_goes_by_init_and_rtr_to_rts(void **state)
{
	struct desk *d = *state;
	unsigned int qpn = make_qp(d);
	const struct fake_qp *qp = &d->e->qp[0];
	json_t *r = call(d, "qp_connect",
		"'qp_num': %u, 'dgid': '10.0.0.2', 'dest_qp_num': 17, 'rq_psn': 4711, 'sq_psn': 5,"
		" 'traffic_class': 106, 'sl': 3, 'hop_limit': 9, 'dmac': '02:00:00:00:00:07'",
		qpn);

	assert_string_equal(str(r, "qp_state"), "RTS");
	assert_null(json_object_get(r, "warnings"));
	assert_int_equal(qp->modified, 3);
	/* RESET to INIT, INIT to RTR, RTR to RTS: what rc-transport 11 requires of each */
	assert_int_equal(qp->masks[0],
		QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
	assert_int_equal(qp->masks[1],
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	assert_int_equal(qp->masks[2],
		QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC);
	assert_int_equal(qp->attr.dest_qp_num, 17);
	assert_int_equal(qp->attr.rq_psn, 4711);
	assert_int_equal(qp->attr.sq_psn, 5);
	assert_int_equal(qp->attr.path_mtu, 1024);
	assert_int_equal(qp->attr.min_rnr_timer, 12);
	assert_int_equal(qp->attr.qp_access_flags, MEM_ACCESS_REMOTE);
	assert_int_equal(qp->ah.sgid_index, 1);
	assert_int_equal(qp->ah.traffic_class, 106);
	assert_int_equal(qp->ah.sl, 3);
	assert_int_equal(qp->ah.hop_limit, 9);
	assert_true(qp->ah.has_dmac);
	assert_memory_equal(qp->ah.dmac, "\x02\0\0\0\0\x07", 6);
	assert_non_null(strstr(
		str(call_fails(d, "qp_connect",
			    "'qp_num': %u, 'dgid': '10.0.0.2', 'dest_qp_num': 17, 'rq_psn': 0",
			    qpn),
			"message"),
		"RESET"));
}

static void
test_a_connect_that_fails_leaves_reset(void **state)
{
	struct desk *d = *state;
	unsigned int qpn = make_qp(d);
	json_t *error;

	d->e->modify_fails = true;
	error = call_fails(d, "qp_connect",
		"'qp_num': %u, 'dgid': '10.0.0.2', 'dest_qp_num': 17, 'rq_psn': 4711", qpn);
	assert_string_equal(str(error, "message"), "max_rd_atomic: got 16, allowed: 0 to 4");
	assert_int_equal(d->e->qp[0].attr.qp_state, QPS_RESET);
	d->e->modify_fails = false;
	call(d, "qp_connect", "'qp_num': %u, 'dgid': '10.0.0.2', 'dest_qp_num': 17, 'rq_psn': 4711",
		qpn);
}

/* own address: same subnet first, else same family and scope */
static void
test_the_source_address_suits_the_peers(void **state)
{
	struct desk *d = *state;
	static const struct {
		const char *dgid;
		int index;
	} cases[] = { { "10.0.0.9", 1 }, { "10.0.2.9", 2 }, { "192.0.2.1", 1 }, { "fe80::9", 0 } };
	unsigned int i, qpn = make_qp(d);

	for (i = 0; i < 4; i++) {
		assert_int_equal(
			num(call(d, "qp_connect",
				    "'qp_num': %u, 'dgid': '%s', 'dest_qp_num': 17, 'rq_psn': 1",
				    qpn, cases[i].dgid),
				"sgid_index"),
			cases[i].index);
		call(d, "qp_modify", "'qp_num': %u, 'qp_state': 'RESET'", qpn);
	}
	assert_non_null(strstr(
		str(call_fails(d, "qp_connect",
			    "'qp_num': %u, 'dgid': '2001:db8::1', 'dest_qp_num': 17, 'rq_psn': 1",
			    qpn),
			"message"),
		"no address of that kind"));
	call_fails(d, "qp_connect",
		"'qp_num': %u, 'port': 2, 'dgid': '10.0.0.9', 'dest_qp_num': 17, 'rq_psn': 1", qpn);
}

/* A LID alone is enough, and needed, on a native InfiniBand port; an address on a RoCE port. */
static void
test_whom_to_connect_to_by_the_port_s_kind(void **state)
{
	struct desk *d = *state;
	static const struct {
		const char *to, *says;
	} cases[] = {
		{ "'port': 0",
			"dgid: missing, local port 0 is a RoCE port: give the peer's address" },
		{ "'port': 0, 'dlid': 5",
			"dlid: got 5, but local port 0 is a RoCE port: give dgid" },
		{ "'port': 1", "dlid: missing, local port 1 is a native InfiniBand port" },
		{ "'port': 1, 'dlid': 5", NULL },
	};
	unsigned int i, qpn = make_qp(d);

	d->e->port[1].ib = true;
	for (i = 0; i < 4; i++) {
		static const char *const ask = "'qp_num': %u, 'dest_qp_num': 17, 'rq_psn': 1, %s";

		if (cases[i].says != NULL)
			assert_non_null(
				strstr(str(call_fails(d, "qp_connect", ask, qpn, cases[i].to),
					       "message"),
					cases[i].says));
		else
			call(d, "qp_connect", ask, qpn, cases[i].to);
	}
	assert_int_equal(d->e->qp[0].ah.dlid, 5);
	assert_true(gid_is_zero(&d->e->qp[0].ah.dgid));
	call(d, "qp_modify", "'qp_num': %u, 'ah_attr': {'dlid': 6, 'port': 1}", qpn);
	assert_int_equal(d->e->qp[0].ah.dlid, 6);
	assert_non_null(strstr(str(call_fails(d, "qp_modify",
					   "'qp_num': %u, 'ah_attr': {'dlid': 6, 'port': 0}", qpn),
				       "message"),
		"local port 0 is a RoCE port"));
	assert_non_null(
		strstr(str(call_fails(d, "sa_query", "'record': 'node', 'dlid': 6, 'port': 0"),
			       "message"),
			"local port 0 is a RoCE port"));
	call(d, "sa_query", "'record': 'node', 'dlid': 6, 'port': 1");
}

static void
test_qp_modify_sets_exactly_what_is_given(void **state)
{
	struct desk *d = *state;
	unsigned int qpn = make_qp(d);
	const struct fake_qp *qp = &d->e->qp[0];

	call(d, "qp_modify",
		"'qp_num': %u, 'qp_state': 'INIT', 'pkey_index': 0, 'port': 1,"
		" 'qp_access_flags': ['REMOTE_READ']",
		qpn);
	assert_int_equal(qp->masks[0],
		QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
	assert_int_equal(qp->attr.qp_state, QPS_INIT);
	assert_int_equal(qp->attr.port, 1);
	assert_int_equal(qp->attr.qp_access_flags, MEM_ACCESS_REMOTE_READ);
	/* the address is of the QP's port, 1 */
	call(d, "qp_modify",
		"'qp_num': %u, 'ah_attr': {'dgid': '10.0.1.7'}, 'path_mtu': 512,"
		" 'dest_qp_num': 9, 'rq_psn': 16777215, 'max_dest_rd_atomic': 3, 'min_rnr_timer': 1",
		qpn);
	assert_int_equal(qp->masks[1],
		QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	assert_int_equal(qp->ah.port, 1);
	assert_int_equal(qp->ah.sgid_index, 1);
	assert_int_equal(qp->attr.path_mtu, 512);
	assert_int_equal(qp->attr.rq_psn, 0xffffff);
	/* the port set in the same call, and the address's own word, come first */
	assert_int_equal(qp->attr.port, 0);
	call(d, "qp_modify", "'qp_num': %u, 'ah_attr': {'dgid': '10.0.1.7'}, 'port': 1", qpn);
	assert_int_equal(qp->ah.port, 1);
	call(d, "qp_modify", "'qp_num': %u, 'ah_attr': {'dgid': '10.0.1.7', 'port': 1}, 'port': 0",
		qpn);
	assert_int_equal(qp->ah.port, 1);
	call_fails(d, "qp_modify", "'qp_num': %u", qpn);
	assert_int_equal(num(call_fails(d, "qp_modify", "'qp_num': %u, 'timeout': 32", qpn),
				 "code"),
		-32602);
	assert_int_equal(num(call_fails(d, "qp_modify", "'qp_num': 1, 'qp_state': 'ERR'"), "code"),
		-2);
}

/* the alternate path: its own port, or the QP's; what goes with it does not go without it */
static void
test_qp_modify_loads_an_alternate_path(void **state)
{
	struct desk *d = *state;
	unsigned int qpn = make_qp(d);
	const struct fake_qp *qp = &d->e->qp[0];
	const json_t *r;

	r = call(d, "qp_show", "'qp_num': %u", qpn);
	assert_string_equal(str(r, "path_mig_state"), "MIGRATED");
	assert_null(json_object_get(r, "alt_ah_attr"));
	call(d, "qp_modify",
		"'qp_num': %u, 'alt_ah_attr': {'dgid': '10.0.1.7', 'port': 1},"
		" 'alt_pkey_index': 3, 'alt_timeout': 20, 'path_mig_state': 'REARM'",
		qpn);
	assert_int_equal(qp->masks[0], QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE);
	assert_int_equal(qp->alt_ah.port, 1);
	assert_int_equal(qp->alt_ah.sgid_index, 1);
	assert_int_equal(qp->attr.alt.pkey_index, 3);
	assert_int_equal(qp->attr.alt.timeout, 20);
	assert_int_equal(qp->attr.path_mig_state, MIG_REARM);
	assert_true(gid_is_zero(&qp->ah.dgid));
	r = call(d, "qp_show", "'qp_num': %u", qpn);
	assert_string_equal(str(r, "path_mig_state"), "REARM");
	assert_string_equal(str(json_object_get(r, "alt_ah_attr"), "dgid"), "10.0.1.7");
	assert_int_equal(num(json_object_get(r, "alt_ah_attr"), "port"), 1);
	assert_int_equal(num(r, "alt_pkey_index"), 3);
	assert_int_equal(num(r, "alt_timeout"), 20);

	call(d, "qp_modify", "'qp_num': %u, 'alt_ah_attr': {'dgid': '10.0.0.9'}", qpn);
	assert_int_equal(qp->masks[1], QP_ATTR_ALT_PATH);
	assert_int_equal(qp->alt_ah.port, 0);
	assert_int_equal(qp->attr.alt.timeout, 14);
	assert_string_equal(str(call_fails(d, "qp_modify", "'qp_num': %u, 'alt_timeout': 20", qpn),
				    "message"),
		"alt_ah_attr: missing; alt_pkey_index and alt_timeout go with it");
}

/* issue 2, section 3: code 0 means 655.36 ms and earns a warning */
static void
test_min_rnr_timer_0_earns_a_warning(void **state)
{
	struct desk *d = *state;
	unsigned int qpn = make_qp(d);
	const json_t *w;

	w = json_array_get(json_object_get(call(d, "qp_modify", "'qp_num': %u, 'min_rnr_timer': 0",
						   qpn),
				   "warnings"),
		0);
	assert_non_null(strstr(json_string_value(w), "655.36 ms"));
	w = json_array_get(
		json_object_get(
			call(d, "qp_connect",
				"'qp_num': %u, 'dgid': '10.0.0.2', 'dest_qp_num': 17, 'rq_psn': 1, 'min_rnr_timer': 0",
				qpn),
			"warnings"),
		0);
	assert_non_null(strstr(json_string_value(w), "655.36 ms"));
}

/*
 * a packet to a next hop without MAC is lost: the reply says so rather than let the user run into
 * it
 */
static void
test_a_silent_next_hop_is_waited_for_then_warned_of(void **state)
{
	struct desk *d = *state;
	unsigned int qpn = make_qp(d);
	uint64_t start = d->now;
	const json_t *w;

	d->e->hop_silent = true;
	w = json_array_get(
		json_object_get(
			call(d, "qp_connect",
				"'qp_num': %u, 'dgid': '10.0.0.2', 'dest_qp_num': 17, 'rq_psn': 1",
				qpn),
			"warnings"),
		0);
	assert_string_equal(json_string_value(w),
		"next hop 10.0.0.2 does not answer ARP yet: "
		"is it up, on this link, and the address right?");
	assert_true(d->now - start >= 500);
	assert_int_equal(d->e->qp[0].modified, 3); /* connected all the same, once */
	d->e->hop_silent = false;
	qpn = make_qp(d);
	start = d->now;
	assert_null(json_object_get(
		call(d, "qp_connect",
			"'qp_num': %u, 'dgid': '10.0.0.2', 'dest_qp_num': 17, 'rq_psn': 1", qpn),
		"warnings"));
	assert_true(d->now - start < 10);
}

static void
test_lists_page_with_cursors(void **state)
{
	struct desk *d = *state;
	json_int_t cursor = 0, last = 0;
	unsigned int i, pages = 0, rows = 0;
	json_t *r;

	call(d, "cq_create", "%s", "");
	for (i = 0; i < 23; i++)
		call(d, "qp_create", "'pd': 1, 'send_cq': 1");
	do {
		r = call(d, "qp_list", "'max': 10, 'cursor': %d", (int)cursor);
		for (i = 0; i < json_array_size(json_object_get(r, "qps")); i++, rows++) {
			assert_true(num(row(r, "qps", i), "qp_num") > last);
			last = num(row(r, "qps", i), "qp_num");
		}
		pages++;
		cursor = json_integer_value(json_object_get(r, "cursor"));
	} while (!json_is_null(json_object_get(r, "cursor")));
	assert_int_equal(rows, 23);
	assert_int_equal(pages, 3);
	call(d, "qp_rehome", "'qp_num': %d, 'worker': 1", 0x101);
	assert_int_equal(num(call(d, "qp_show", "'qp_num': %d", 0x101), "worker"), 1);
	call_fails(d, "qp_rehome", "'qp_num': %d, 'worker': 2", 0x101);
	assert_int_equal(num(call_fails(d, "qp_rehome", "'qp_num': %d", 0x101), "code"), -32602);
	call(d, "qp_destroy", "'qp_num': %d", 0x100);
	assert_int_equal(json_array_size(json_object_get(call(d, "qp_list", "%s", ""), "qps")), 22);
	assert_int_equal(num(call_fails(d, "qp_list", "'max': 1001"), "code"), -32602);
}

static void
test_post_send_passes_every_field(void **state)
{
	struct desk *d = *state;
	unsigned int key = make_region(d, 4096), qpn = make_qp(d);
	const struct fake_qp *qp = &d->e->qp[0];

	assert_int_equal(
		num(call(d, "post_send",
			    "'qp_num': %u, 'wr': [{'wr_id': '0xffffffffffffffff', 'opcode': 'RDMA_WRITE_WITH_IMM',"
			    " 'sg_list': [{'key': %u, 'offset': 16, 'length': 32}], 'imm_data': '0xfffffffe',"
			    " 'remote_addr': '0xfedcba9876543210', 'rkey': 77, 'send_flags': ['FENCE', 'SOLICITED']},"
			    "{'opcode': 'ATOMIC_CMP_AND_SWP', 'compare_add': '0x8000000000000000', 'swap': 2,"
			    " 'sg_list': {'lkey': 5, 'addr': 6, 'length': 8}},"
			    "{'opcode': 'SEND_WITH_INV', 'invalidate_rkey': 9, 'inline_data': '616263'},"
			    "{'opcode': 'BIND_MW', 'bind_mw': {'mw_key': 1, 'new_key': 2, 'mr_key': 3, 'addr': 4,"
			    " 'length': 5, 'access': ['REMOTE_WRITE']}}]",
			    qpn, key),
			"posted"),
		4);
	assert_true(qp->sent[0].wr_id == UINT64_MAX);
	assert_int_equal(qp->sent[0].opcode, WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(qp->sent[0].send_flags, SEND_FENCE | SEND_SOLICITED);
	assert_int_equal(qp->sent[0].imm_data, 0xfffffffe);
	assert_true(qp->sent[0].remote_addr == UINT64_C(0xfedcba9876543210));
	assert_int_equal(qp->sent[0].rkey, 77);
	assert_int_equal(qp->sent[0].num_sge, 1);
	assert_int_equal(qp->sge[0].lkey, key);
	assert_int_equal(qp->sge[0].addr, 4096 + 16); /* va of the region + offset */
	assert_int_equal(qp->sge[0].length, 32);
	assert_true(qp->sent[1].compare_add == UINT64_C(0x8000000000000000));
	assert_int_equal(qp->sent[1].swap, 2);
	assert_int_equal(qp->sge[1].lkey, 5);
	assert_int_equal(qp->sge[1].addr, 6);
	assert_int_equal(qp->sent[2].invalidate_rkey, 9);
	assert_int_equal(qp->sent[2].send_flags, SEND_INLINE);
	assert_int_equal(qp->sent[2].inline_len, 3);
	assert_memory_equal(qp->inline_data[2], "abc", 3);
	assert_int_equal(qp->sent[3].bind_mw.mw_key, 1);
	assert_int_equal(qp->sent[3].bind_mw.new_key, 2);
	assert_int_equal(qp->sent[3].bind_mw.mr_key, 3);
	assert_int_equal(qp->sent[3].bind_mw.addr, 4);
	assert_int_equal(qp->sent[3].bind_mw.length, 5);
	assert_int_equal(qp->sent[3].bind_mw.access, MEM_ACCESS_REMOTE_WRITE);
	assert_int_equal(json_array_size(json_object_get(call(d, "cq_poll", "'cq': 1"), "wc")), 4);
}

static void
test_work_requests_that_make_no_sense_are_refused_whole(void **state)
{
	struct desk *d = *state;
	unsigned int qpn = make_qp(d);

	call_fails(d, "post_send", "'qp_num': %u, 'wr': {'opcode': 'BIND_MW'}", qpn);
	call_fails(d, "post_send",
		"'qp_num': %u, 'wr': {'opcode': 'SEND', 'bind_mw': {'mw_key': 1}}", qpn);
	call_fails(d, "post_send",
		"'qp_num': %u, 'wr': {'opcode': 'SEND', 'send_flags': ['INLINE']}", qpn);
	call_fails(d, "post_send",
		"'qp_num': %u, 'wr': {'opcode': 'SEND', 'inline_data': '00',"
		" 'sg_list': {'lkey': 1, 'addr': 1, 'length': 1}}",
		qpn);
	call_fails(d, "post_send",
		"'qp_num': %u, 'wr': {'opcode': 'SEND', 'sg_list': {'lkey': 1, 'length': 1}}", qpn);
	call_fails(d, "post_send",
		"'qp_num': %u, 'wr': {'opcode': 'SEND',"
		" 'sg_list': {'lkey': 1, 'addr': 1, 'key': 1, 'length': 1}}",
		qpn);
	call_fails(d, "post_send",
		"'qp_num': %u, 'wr': {'opcode': 'SEND', 'sg_list': {'key': 123456, 'length': 1}}",
		qpn);
	/* the fault in the second keeps the first from going */
	call_fails(d, "post_send",
		"'qp_num': %u, 'wr': [{'opcode': 'SEND'}, {'opcode': 'BIND_MW'}]", qpn);
	assert_int_equal(num(call_fails(d, "post_send", "'qp_num': %u, 'wr': []", qpn), "code"),
		-32602);
	assert_int_equal(d->e->qp[0].num_sent, 0);
}

static void
test_a_full_queue_tells_how_many_went(void **state)
{
	struct desk *d = *state;
	unsigned int i, qpn = make_qp(d);
	char wrs[4096] = "";
	json_t *error;

	for (i = 0; i < FAKE_WRS + 3; i++)
		strcat(wrs, i == 0 ? "{'wr_id': 1}" : ",{'wr_id': 1}");
	error = call_fails(d, "post_recv", "'qp_num': %u, 'wr': [%s]", qpn, wrs);
	assert_string_equal(str(error, "message"), "receive queue full");
	assert_string_equal(str(json_object_get(error, "data"), "errno"), "ENOMEM");
	assert_int_equal(num(json_object_get(error, "data"), "posted"), FAKE_WRS);
	assert_int_equal(num(call(d, "srq_post", "'srq': 5, 'wr': [{}, {}]"), "posted"), 2);
}

static void
test_shared_receive_queues(void **state)
{
	struct desk *d = *state;

	assert_int_equal(num(call(d, "srq_create", "'pd': 1"), "srq"), 5);
	call(d, "srq_modify", "'srq': 5, 'limit': 3");
	assert_int_equal(num(row(call(d, "srq_list", "%s", ""), "srqs", 0), "limit"), 3);
	call_fails(d, "srq_destroy", "'srq': 5");
}

static void
test_programs_are_listed(void **state)
{
	struct desk *d = *state;
	const json_t *r = call(d, "client_list", "'max': 2"), *c = row(r, "clients", 0);

	assert_int_equal(num(c, "pid"), 700);
	assert_string_equal(str(c, "user"), "root");
	assert_string_equal(str(c, "command"), "pingpong");
	assert_int_equal(num(c, "contexts"), 1);
	assert_int_equal(num(c, "qps"), 1);
	assert_int_equal(num(c, "cqs"), 2);
	assert_int_equal(num(c, "regions"), 3);
	assert_int_equal(num(c, "bytes"), 4096);
	assert_int_equal(num(c, "posted"), 5);
	assert_int_equal(num(c, "completed"), 4);
	c = row(r, "clients", 1);
	assert_string_equal(str(c, "user"), "4000000000");
	assert_true(json_is_null(json_object_get(c, "command")));
	assert_int_equal(num(c, "port"), 1);
	assert_int_equal(num(c, "worker"), 1);
	assert_int_equal(num(c, "contexts"), 2);
	assert_int_equal(num(c, "srqs"), 1);
	assert_int_equal(num(c, "refused"), 7);
	assert_int_equal(num(r, "cursor"), 4);
	r = call(d, "client_list", "'cursor': 4");
	assert_int_equal(json_array_size(json_object_get(r, "clients")), 1);
	call(d, "client_rehome", "'id': 4, 'worker': 0");
	c = row(call(d, "client_list", "%s", ""), "clients", 1);
	assert_int_equal(num(c, "id"), 4);
	assert_int_equal(num(c, "worker"), 0);
	call_fails(d, "client_rehome", "'id': 99, 'worker': 0");
	r = call(d, "stats_get", "%s", "");
	assert_int_equal(num(json_object_get(r, "clients"), "posted"), 50);
}

static void
test_users_of_programs_are_listed(void **state)
{
	struct desk *d = *state;
	const json_t *r = call(d, "client_users", "%s", ""), *u = row(r, "users", 0);

	assert_int_equal(json_array_size(json_object_get(r, "users")), 2);
	assert_string_equal(str(u, "user"), "root");
	assert_int_equal(num(u, "clients"), 1);
	assert_int_equal(num(u, "qps"), 1);
	assert_int_equal(num(u, "max_qps"), 10);
	assert_int_equal(num(u, "max_cqs"), 20);
	assert_int_equal(num(u, "max_srqs"), 21);
	assert_int_equal(num(u, "max_pds"), 22);
	assert_int_equal(num(u, "max_regions"), 30);
	assert_int_equal(num(u, "max_windows"), 31);
	assert_int_equal(num(u, "bytes"), 4096);
	assert_int_equal(num(u, "max_bytes"), 8192);
	assert_int_equal(num(u, "requests"), 48);
	assert_int_equal(num(u, "max_requests"), 100);
	u = row(r, "users", 1);
	assert_string_equal(str(u, "user"), "4000000000");
	assert_int_equal(num(u, "clients"), 2);
}

static void
test_counters_name_every_verdict(void **state)
{
	struct desk *d = *state;
	json_t *r = call(d, "stats_get", "%s", "");
	const json_t *port = row(r, "ports", 1), *v;
	json_int_t sum = 0;
	const char *name;

	assert_int_equal(num(port, "rx_packets"), 20);
	assert_int_equal(json_object_size(json_object_get(port, "served")) +
			json_object_size(json_object_get(port, "dropped")),
		VERDICT_COUNT);
	assert_int_equal(num(json_object_get(port, "dropped"), "icrc"), 1);
	/* design.md rule 8: they sum to the packets received */
	json_object_foreach(json_object_get(port, "served"), name, v)
		sum += json_integer_value(v);
	json_object_foreach(json_object_get(port, "dropped"), name, v)
		sum += json_integer_value(v);
	assert_int_equal(sum, 20);
	assert_int_equal(num(json_object_get(r, "rc"), "rcvd_pkts"), 28);
	assert_int_equal(num(json_object_get(port, "rc"), "rcvd_pkts"), 14);
	assert_int_equal(num(port, "rx_missed"), 5);
	assert_int_equal(num(port, "rx_errors"), 0);
	assert_int_equal(num(port, "rx_nombuf"), 0);
	assert_int_equal(json_object_size(json_object_get(r, "rc")), RC_COUNTER_COUNT);
	assert_int_equal(json_object_size(json_object_get(r, "clients")), CLIENTS_COUNTER_COUNT);
	/* they are no worker's */
	assert_null(json_object_get(call(d, "stats_get", "'worker': 0"), "clients"));

	r = call(d, "stats_get", "'nonzero': true, 'port': 0, 'per_worker': true");
	assert_int_equal(json_array_size(json_object_get(r, "ports")), 1);
	assert_int_equal(json_object_size(json_object_get(row(r, "ports", 0), "dropped")), 1);
	assert_int_equal(json_object_size(json_object_get(r, "rc")), 1);
	assert_int_equal(num(row(row(r, "workers", 1), "ports", 0), "tx_packets"), 1);
	assert_int_equal(num(row(r, "workers", 1), "lcore"), 2);
	call_fails(d, "stats_get", "'port': 2");
	call_fails(d, "stats_get", "'worker': 2");
	make_qp(d);
	r = call(d, "stats_get", "'qp_num': %d", 0x100);
	assert_int_equal(num(json_object_get(r, "rc"), "sent_pkts"), 7);
	r = call(d, "stats_describe", "%s", "");
	assert_string_equal(str(row(r, "ports", 0), "name"), "rx_packets");
	assert_int_equal(json_array_size(json_object_get(r, "rc")), RC_COUNTER_COUNT);
	assert_int_equal(json_array_size(json_object_get(r, "mad")), MAD_COUNTER_COUNT);
	assert_int_equal(json_array_size(json_object_get(r, "sa")), SA_COUNTER_COUNT);
	assert_int_equal(json_array_size(json_object_get(r, "clients")), CLIENTS_COUNTER_COUNT);
}

static void
test_ports_workers_and_neighbours(void **state)
{
	struct desk *d = *state;
	const json_t *p = row(call(d, "port_list", "%s", ""), "ports", 0), *gid;

	assert_string_equal(str(p, "name"), "port0");
	assert_string_equal(str(p, "state"), "ACTIVE");
	assert_int_equal(num(p, "active_mtu"), 1024);
	assert_true(json_is_null(json_object_get(p, "vlan")));
	assert_string_equal(json_string_value(json_array_get(json_object_get(p, "rss"), 0)),
		"ipv4-udp");
	assert_string_equal(json_string_value(json_array_get(json_object_get(p, "rss"), 1)),
		"ipv6");
	assert_int_equal(json_array_size(json_object_get(p, "rss")), 2);
	gid = row(p, "gids", 1);
	assert_int_equal(num(gid, "index"), 1);
	assert_string_equal(str(gid, "gid"), "10.0.0.1");
	assert_string_equal(str(gid, "type"), "RoCEv2");
	p = row(call(d, "worker_list", "%s", ""), "workers", 1);
	assert_int_equal(num(p, "lcore"), 2);
	assert_true(json_real_value(json_object_get(p, "busy_share")) == 0.25);
	assert_true(json_real_value(json_object_get(p, "handoff_percent")) == 12.5);
	assert_int_equal(num(p, "rehomed_out"), 3);
	assert_int_equal(num(p, "rehomed_in"), 4);
	p = row(call(d, "neighbour_list", "%s", ""), "neighbours", 0);
	assert_string_equal(str(p, "gid"), "10.0.0.2");
	assert_string_equal(str(p, "state"), "RESOLVED");
}

static void
test_each_reader_of_events_has_its_own_cursor(void **state)
{
	struct desk *d = *state;
	json_t *r;

	fake_event(d->e, EVENT_QP_ACCESS_ERR, 0x105);
	fake_event(d->e, EVENT_CQ_ERR, 3);
	r = call(d, "events", "'max': 1");
	assert_string_equal(str(row(r, "events", 0), "event"),
		event_type_name(EVENT_QP_ACCESS_ERR));
	assert_int_equal(num(row(r, "events", 0), "qp_num"), 0x105);
	r = call(d, "events", "%s", "");
	assert_int_equal(json_array_size(json_object_get(r, "events")), 1);
	assert_int_equal(num(row(r, "events", 0), "cq"), 3);
	r = call(d, "events", "%s", "");
	assert_int_equal(json_array_size(json_object_get(r, "events")), 0);
	/* another follower sees them all, and takes none */
	r = call(d, "events", "'since': 0");
	assert_int_equal(json_array_size(json_object_get(r, "events")), 2);
	assert_int_equal(num(r, "next"), 3);
	assert_int_equal(num(r, "missed"), 0);
	r = call(d, "events", "'since': 3, 'timeout_ms': 10");
	assert_int_equal(json_array_size(json_object_get(r, "events")), 0);
	fake_event(d->e, EVENT_PORT_ACTIVE, 1);
	assert_int_equal(num(row(call(d, "events", "'since': 3"), "events", 0), "port"), 1);
	/* and so does one that has a connection of its own */
	d->state.next_event = 0;
	r = call(d, "events", "%s", "");
	assert_int_equal(json_array_size(json_object_get(r, "events")), 3);
	fake_event(d->e, EVENT_PORT_ACTIVE, 1);
	assert_int_equal(num(row(call(d, "events", "%s", ""), "events", 0), "port"), 1);
}

/* What an event is about has its name. */
static void
test_events_name_what_they_are_about(void **state)
{
	static const struct {
		enum event_type type;
		const char *name;
	} about[] = {
		{ EVENT_CQ_COMPLETION, "cq" },
		{ EVENT_SRQ_LIMIT_REACHED, "srq" },
		{ EVENT_QP_FATAL, "qp_num" },
		{ EVENT_RQ_EMPTY, "qp_num" },
		{ EVENT_WORKER_STALL, "worker" },
		{ EVENT_SM_SMP, "smp" },
		{ EVENT_LID_CHANGE, "port" },
		{ EVENT_CLIENT_REREGISTER, "port" },
	};
	struct desk *d = *state;
	const json_t *r, *event;
	unsigned int i;

	for (i = 0; i < sizeof(about) / sizeof(about[0]); i++)
		fake_event(d->e, about[i].type, i);
	r = call(d, "events", "%s", "");
	for (i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
		event = row(r, "events", i);
		assert_string_equal(str(event, "event"), event_type_name(about[i].type));
		assert_int_equal(num(event, about[i].name), i);
	}
}

static void
test_old_events_are_told_as_missed(void **state)
{
	struct desk *d = *state;
	unsigned int i;
	json_t *r;

	for (i = 0; i < 4096 + 10; i++) {
		fake_event(d->e, EVENT_COMM_EST, i);
		if (i % 100 == 0)
			call(d, "version_get", "%s", "");
		if (i % 200 == 0)
			call(d, "events", "'since': 100000");
	}
	r = call(d, "events", "'since': 1");
	assert_int_equal(num(r, "missed"), 10);
	assert_int_equal(num(r, "lost"), 0);
	assert_int_equal(num(row(r, "events", 0), "seq"), 11);
	assert_int_equal(num(row(r, "events", 0), "qp_num"), 10);
}

/* A reader counts the events that were lost before it came this far; a later one does not. */
static void
test_lost_events_are_counted_for_each_reader(void **state)
{
	struct desk *d = *state;
	json_t *r;

	fake_event(d->e, EVENT_COMM_EST, 1);
	call(d, "events", "'since': 1");
	d->e->lost = 6;
	fake_event(d->e, EVENT_COMM_EST, 2);
	r = call(d, "events", "'since': 2");
	assert_int_equal(num(r, "missed"), 6);
	assert_int_equal(num(r, "lost"), 6);
	assert_int_equal(json_array_size(json_object_get(r, "events")), 1);
	assert_int_equal(num(r, "next"), 9);
	assert_int_equal(num(call(d, "events", "'since': 9"), "missed"), 0);
	/* more than are kept */
	d->e->lost += 5000;
	r = call(d, "events", "'since': 9");
	assert_int_equal(num(r, "missed"), 5000);
	assert_int_equal(num(r, "next"), 5009);
}

/* An operator finds the QP, the peer and the reason in one event, and when it was. */
static void
test_event_of_a_failed_qp_tells_peer_and_reason(void **state)
{
	struct qp_failure *f;
	struct desk *d = *state;
	const json_t *event;

	fake_event(d->e, EVENT_QP_ERROR, 0x105);
	d->e->event[0].time = UINT64_C(1700000000123456789);
	f = &d->e->event[0].failure;
	*f = (struct qp_failure){ .peer_qpn = 0x77,
		.psn = 203,
		.port = 1,
		.syndrome = 0x62,
		.verdict = VERDICT_NAK_SENT };
	gid_parse("10.0.0.2", &f->peer);
	event = row(call(d, "events", "%s", ""), "events", 0);
	assert_string_equal(str(event, "time"), "2023-11-14T22:13:20.123Z");
	assert_string_equal(str(event, "event"), "QP_ERROR");
	assert_int_equal(num(event, "qp_num"), 0x105);
	assert_string_equal(str(event, "peer"), "10.0.0.2");
	assert_int_equal(num(event, "peer_qp"), 0x77);
	assert_int_equal(num(event, "port"), 1);
	assert_int_equal(num(event, "psn"), 203);
	assert_int_equal(num(event, "syndrome"), 0x62);
	assert_string_equal(str(event, "verdict"), "nak_sent");
	assert_null(json_object_get(event, "status"));
}

/* Two steps of the flight recorder: a packet, and the failure that it was. */
static void
fake_trace(struct desk *d)
{
	d->e->trace = (struct engine_trace){ .age_ns = 5000000 };
	trace_put(&d->e->trace.steps,
		(struct trace_step){ .event = RC_STEP_RECEIVED,
			.what = RC_SEND_MIDDLE,
			.number = 203,
			.expected = 201,
			.outcome = VERDICT_NAK_SENT });
	trace_put(&d->e->trace.steps,
		(struct trace_step){ .time = 1500,
			.event = RC_STEP_FAILED,
			.what = QP_FAILURE_SEQUENCE,
			.number = 203 });
}

static void
test_steps_are_recorded_and_shown(void **state)
{
	struct desk *d = *state;
	unsigned int qp = make_qp(d);
	const json_t *r, *step;

	fake_trace(d);
	assert_int_equal(num(call_fails(d, "qp_trace", "'qp_num': %u", qp), "code"), -ENODATA);
	assert_int_equal(num(call(d, "trace_start", "'object': 'qp', 'number': %u", qp),
				 "switched"),
		1);
	r = call(d, "qp_trace", "'qp_num': %u", qp);
	assert_int_equal(json_array_size(json_object_get(r, "steps")), 2);
	step = row(r, "steps", 0);
	assert_string_equal(str(step, "step"), "received");
	assert_string_equal(str(step, "what"), "SEND Middle");
	assert_string_equal(str(step, "outcome"), "nak_sent");
	assert_int_equal(num(step, "psn"), 203);
	assert_int_equal(num(step, "expected_psn"), 201);
	step = row(r, "steps", 1);
	assert_string_equal(str(step, "step"), "error");
	assert_string_equal(str(step, "what"), "opcode_sequence");
	assert_true(json_real_value(json_object_get(step, "time_us")) == 1.5);
	assert_true(json_real_value(json_object_get(r, "age_us")) == 5000);
	assert_int_equal(num(call(d, "trace_stop", "'object': 'connection'"), "switched"), 2);
	assert_int_equal(num(call_fails(d, "qp_trace", "'qp_num': %u", qp), "code"), -ENODATA);
}

/* The event of a failed QP carries its steps. */
static void
test_event_of_a_failed_qp_has_its_steps(void **state)
{
	struct desk *d = *state;
	const json_t *event;

	fake_trace(d);
	fake_event(d->e, EVENT_QP_ERROR, 0x105);
	d->e->event[0].failure = (struct qp_failure){ .reason = QP_FAILURE_SEQUENCE,
		.verdict = VERDICT_NAK_SENT,
		.trace = 1 };
	event = row(call(d, "events", "%s", ""), "events", 0);
	assert_string_equal(str(event, "reason"), "opcode_sequence");
	assert_int_equal(json_array_size(json_object_get(event, "trace")), 2);
	assert_string_equal(str(row(event, "trace", 0), "what"), "SEND Middle");
}

/* The monitoring socket sees what happened, but no PSN; it cannot start or stop. */
static void
test_monitoring_sees_no_psn(void **state)
{
	struct desk *d = *state;
	unsigned int qp = make_qp(d);
	const json_t *r;

	fake_trace(d);
	call(d, "trace_start", "'object': 'qp'");
	d->monitoring = true;
	r = call(d, "qp_trace", "'qp_num': %u", qp);
	assert_string_equal(str(row(r, "steps", 0), "what"), "SEND Middle");
	assert_null(json_object_get(row(r, "steps", 0), "psn"));
	assert_null(json_object_get(row(r, "steps", 0), "expected_psn"));
	r = call(d, "qp_explain", "'qp_num': %u", qp);
	assert_string_equal(str(r, "reason"), "none");
	assert_null(json_object_get(r, "received"));
	assert_int_equal(num(call_fails(d, "trace_start", "'object': 'qp'"), "code"), -EPERM);
	assert_int_equal(num(call_fails(d, "trace_stop", "'object': 'qp'"), "code"), -EPERM);
}

static void
test_a_failure_is_explained(void **state)
{
	struct desk *d = *state;
	unsigned int qp = make_qp(d);
	const json_t *r;

	d->e->qp[0].failure = (struct qp_failure){ .reason = QP_FAILURE_SEQUENCE,
		.opcode = RC_SEND_MIDDLE,
		.psn = 203,
		.expected = 203,
		.peer_qpn = 0x77,
		.dlid = 4,
		.verdict = VERDICT_NAK_SENT };
	r = call(d, "qp_explain", "'qp_num': %u", qp);
	assert_string_equal(str(r, "reason"), "opcode_sequence");
	assert_string_equal(str(r, "received"),
		"SEND Middle with PSN 203, 0 bytes of payload: its opcode does not follow the packet before it");
	assert_string_equal(str(r, "rule"),
		"rc-transport 6, row 2: opcode out of sequence, NAK 0x61; conformance T6.2");
	assert_string_equal(str(r, "peer"), "lid:4 QP 0x77");
	assert_null(json_object_get(r, "steps"));
	assert_null(json_object_get(r, "status"));
}

static void
test_log_levels(void **state)
{
	struct desk *d = *state;
	json_t *r;

	call(d, "log_level_set", "'component': 'lib.eal', 'level': 'debug'");
	r = call(d, "log_level_get", "'component': 'lib.eal'");
	assert_string_equal(str(row(r, "components", 0), "component"), "lib.eal");
	assert_string_equal(str(row(r, "components", 0), "level"), "debug");
	assert_true(json_array_size(
			    json_object_get(call(d, "log_level_get", "%s", ""), "components")) > 1);
	assert_int_equal(num(call_fails(d, "log_level_set", "'component': 'x', 'level': 'loud'"),
				 "code"),
		-32602);
}

/* DPDK's names and syslog's; what log_level_get tells can be set. */
static void
test_both_names_of_log_levels(void **state)
{
	static const char *const names[][2] = { { "emerg", "emergency" },
		{ "emergency", "emergency" }, { "crit", "critical" }, { "critical", "critical" },
		{ "err", "error" }, { "error", "error" }, { "warn", "warning" },
		{ "WARNING", "warning" } };
	struct desk *d = *state;
	unsigned int i;
	json_t *r;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		call(d, "log_level_set", "'component': 'lib.eal', 'level': '%s'", names[i][0]);
		r = call(d, "log_level_get", "'component': 'lib.eal'");
		assert_string_equal(str(row(r, "components", 0), "level"), names[i][1]);
	}
	call(d, "log_level_set", "%s", "'component': 'lib.eal', 'level': 'notice'");
}

static void
test_unknown_log_component(void **state)
{
	static const char words[] = "component: got \"lib.eel\", allowed lib.";
	struct desk *d = *state;
	const char *said;
	char name[32];
	int i;

	/* more that begin with "lib." than an error names, however few this DPDK has */
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "lib.test%d", i);
		assert_true(rte_log_register(name) >= 0);
	}
	said = str(call_fails(d, "log_level_set", "'component': 'lib.eel', 'level': 'debug'"),
		"message");
	assert_memory_equal(said, words, sizeof(words) - 1);
	assert_non_null(strstr(said, ", ... (all: polca-ctl log level get)"));
	call_fails(d, "log_level_set", "'component': 'nosuch.*', 'level': 'debug'");
	call(d, "log_level_set", "'component': 'lib.e?l', 'level': 'notice'");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, desk_setup, desk_teardown)
	const struct CMUnitTest tests[] = {
		T(test_version_and_rpc_list),
		T(test_regions_are_registered_listed_and_deregistered),
		T(test_a_region_needs_a_length_unless_it_is_a_file),
		T(test_only_a_regular_file_is_taken),
		T(test_a_region_is_on_the_node_of_its_port),
		T(test_a_bad_domain_is_named),
		T(test_lists_say_whose),
		T(test_bytes_written_are_read_back),
		T(test_fill_is_splitmix64),
		T(test_long_fills_and_checksums_go_in_slices),
		T(test_windows),
		T(test_bound_windows_are_told_with_their_range),
		T(test_lists_of_memory_and_queues_are_paged),
		T(test_region_of_a_memzone_that_is_not_there),
		T(test_completions_of_invalidations_and_binds),
		T(test_completions_carry_the_names_of_ibv_wc),
		T(test_cq_poll_waits_for_its_minimum_and_no_longer_than_told),
		T(test_cq_poll_takes_no_more_than_max),
		T(test_qp_create_passes_every_attribute),
		T(test_start_psns_are_random_24_bits_and_kept),
		T(test_qp_connect_goes_by_init_and_rtr_to_rts),
		T(test_whom_to_connect_to_by_the_port_s_kind),
		T(test_a_connect_that_fails_leaves_reset),
		T(test_the_source_address_suits_the_peers),
		T(test_qp_modify_sets_exactly_what_is_given),
		T(test_qp_modify_loads_an_alternate_path),
		T(test_min_rnr_timer_0_earns_a_warning),
		T(test_a_silent_next_hop_is_waited_for_then_warned_of),
		T(test_lists_page_with_cursors),
		T(test_post_send_passes_every_field),
		T(test_work_requests_that_make_no_sense_are_refused_whole),
		T(test_a_full_queue_tells_how_many_went),
		T(test_shared_receive_queues),
		T(test_programs_are_listed),
		T(test_users_of_programs_are_listed),
		T(test_counters_name_every_verdict),
		T(test_ports_workers_and_neighbours),
		T(test_each_reader_of_events_has_its_own_cursor),
		T(test_events_name_what_they_are_about),
		T(test_old_events_are_told_as_missed),
		T(test_lost_events_are_counted_for_each_reader),
		T(test_event_of_a_failed_qp_tells_peer_and_reason),
		T(test_steps_are_recorded_and_shown),
		T(test_event_of_a_failed_qp_has_its_steps),
		T(test_monitoring_sees_no_psn),
		T(test_a_failure_is_explained),
		T(test_log_levels),
		T(test_both_names_of_log_levels),
		T(test_unknown_log_component),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
