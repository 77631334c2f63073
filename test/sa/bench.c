/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "bench.h"

#include <errno.h>
#include <stdlib.h>

#include "mad/mad.h"
#include "wire/packet.h"

static struct bench *bench; /* the bench that the functions of lib/mad below use */

/* --- the functions of lib/mad that the server calls --- */

int
mad_agent_add(struct mad_worker *w, const struct mad_agent *agent)
{
	(void)w;
	bench->agent[bench->agents++] = *agent;
	return 0;
}

static void
take_answer(const uint8_t *mad)
{
	assert_false(bench->answered); /* once */
	bench->answered = true;
	memcpy(bench->reply, mad, MAD_LEN);
}

/* Read a stream as lib/mad does: one segment after the other, then one of them again. */
static void
take_stream(const uint8_t *mad, const struct mad_source *source, mad_handle h)
{
	unsigned int area = mad[MAD_OFF_CLASS_VERSION] == 1 ? SA1_AREA : SA2_AREA;
	uint8_t again[SA1_AREA];
	uint64_t at;

	take_answer(mad);
	bench->streamed = true;
	bench->len = source->length;
	bench->source = *source;
	if (bench->keep_source && h < 64)
		bench->silent[h].source = *source;
	if (bench->keep_source)
		return;
	bench->data = realloc(bench->data, source->length + 1);
	for (at = 0; at < source->length && bench->read_error == 0; at += area)
		bench->read_error = source->read(source->arg, at, bench->data + at,
			source->length - at < area ? source->length - at : area);
	if (source->length > 0 && bench->read_error == 0) {
		at = source->length > 2 * area ? area : 0;
		source->read(source->arg, at, again,
			source->length - at < SA1_AREA ? source->length - at : SA1_AREA);
		assert_memory_equal(again, bench->data + at,
			source->length - at < SA1_AREA ? source->length - at : SA1_AREA);
	}
	source->release(source->arg);
}

mad_handle
mad_later(struct mad_request *req)
{
	return req->handle;
}

int
mad_answer(struct mad_worker *w, mad_handle h, const uint8_t *mad, uint64_t now)
{
	(void)w, (void)now;
	assert_int_equal(h, bench->handles);
	take_answer(mad);
	return 0;
}

int
mad_stream(struct mad_worker *w, mad_handle h, const uint8_t *mad, const struct mad_source *source,
	uint64_t now)
{
	(void)w, (void)now;
	assert_int_equal(h, bench->handles);
	take_stream(mad, source, h);
	return 0;
}

static void
bench_end_silent(unsigned int h)
{
	struct mad_source source = bench->silent[h].source;

	bench->gave_way++;
	bench->silent[h].source.release = NULL;
	if (source.release != NULL)
		source.release(source.arg);
}

int
mad_give_way(struct mad_worker *w, mad_handle h, bool proven)
{
	(void)w;
	assert_true(h < 64);
	if (bench->silent[h].proven && !proven)
		return -EBUSY;
	bench_end_silent((unsigned int)h);
	return 0;
}

bool
mad_make_room(struct mad_worker *w, mad_handle h)
{
	unsigned int i;

	(void)w;
	for (i = 0; bench->makes_room && i < h; i++)
		if (bench->silent[i].source.release != NULL) {
			bench_end_silent(i);
			return true;
		}
	return false;
}

uint64_t
mad_body_length(const struct mad_body *b)
{
	return b->len;
}

void
mad_body_read(const struct mad_body *b, uint64_t offset, void *buf, size_t len)
{
	assert_true(offset + len <= b->len);
	memcpy(buf, b->bytes + offset, len);
}

void
mad_body_free(struct mad_worker *w, struct mad_body *b)
{
	(void)w;
	assert_false(b->freed);
	b->freed = true;
}

int
mad_call(struct mad_worker *w, const struct mad_call *call, uint64_t now, mad_handle *h)
{
	struct bench_call *c = &bench->calls[bench->num_calls];

	(void)w, (void)now;
	if (bench->num_calls >= bench->calls_allowed)
		return -ENOSPC;
	c->call = *call;
	memcpy(c->mad, call->mad, MAD_LEN);
	c->open = true;
	*h = ++bench->num_calls;
	return 0;
}

void
bench_answer_call(struct bench *b, unsigned int i, enum mad_end end)
{
	struct mad_result result = { .end = end };

	assert_true(b->calls[i].open);
	b->calls[i].open = false;
	b->calls[i].call.taker.done(b->calls[i].call.taker.arg, &result);
}

int
mad_cancel(struct mad_worker *w, mad_handle h, uint64_t now)
{
	(void)w, (void)now;
	bench_answer_call(bench, h - 1, MAD_END_CANCELLED);
	return 0;
}

/* --- the server --- */

static uint64_t
sa_bench_grace_start(void *arg)
{
	(void)arg;
	return 0;
}

static bool
sa_bench_grace_done(void *arg, uint64_t token)
{
	(void)arg, (void)token;
	return true;
}

/* a disk that may fail */

static int
sa_bench_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to,
	struct error *err)
{
	(void)arg, (void)each, (void)to, (void)err;
	return 0;
}

static int
sa_bench_apply(void *arg, const struct store_op *ops, size_t n, struct error *err)
{
	struct bench *b = arg;

	(void)ops;
	b->commits++;
	if (bench_store_max_ops != 0 && n > bench_store_max_ops)
		return error_set(err, E2BIG, "more than %zu changes", bench_store_max_ops);
	return b->fail_commits || b->commits == b->fail_commit
		? error_set(err, EIO, "the disk is full of holes")
		: 0;
}

static void
sa_bench_fill(void *arg, void *buf, size_t len)
{
	(void)arg;
	memset(buf, 0x5A, len);
}

static const struct rng rng = { sa_bench_fill, NULL };

static bool
sa_bench_submit(void *arg, struct sa_write *write)
{
	struct bench *b = arg;

	if (b->refuse_writes)
		return false;
	b->writes[b->num_writes++] = write;
	return true;
}

static void
make_fabric(struct bench *b)
{
	static const uint16_t a[] = { 0xFFFF, 0x8001 }, c[] = { 0x7FFF, 0x8002 },
			      d[] = { 0x7FFF, 0x8001 };
	struct sa_change guids = change_of(SA_GUID_INFO);

	put_port(b, 1, 0x51, NODE_TYPE_SWITCH, 0);
	put_port(b, 2, 0x52, NODE_TYPE_SWITCH, 0);
	put_port(b, 4, GUID_A, NODE_TYPE_CA, 0);
	put_port(b, 5, GUID_B, NODE_TYPE_CA, 0);
	put_port(b, 8, GUID_C, NODE_TYPE_CA, 1);
	put_port(b, 12, GUID_D, NODE_TYPE_CA, 0);
	put_port_info(b, 1, 1, 0, 5, 4, 2);
	put_port_info(b, 1, 2, 0, 4, 4, 0);
	put_port_info(b, 1, 10, 0, 4, 4, 1);
	put_port_info(b, 2, 1, 0, 5, 4, 2);
	put_port_info(b, 2, 2, 0, 5, 4, 2);
	put_port_info(b, 2, 10, 0, 4, 4, 1);
	put_port_info(b, 4, 1, 0, 5, 4, 2);
	put_port_info(b, 5, 1, 0, 4, 4, 0);
	put_port_info(b, 8, 1, 1, 5, 4, 2);
	put_port_info(b, 12, 1, 0, 5, 4, 2);
	put_link(b, 4, 1, 1, 1);
	put_link(b, 5, 1, 1, 2);
	put_link(b, 1, 10, 2, 10);
	put_link(b, 8, 1, 2, 1);
	put_link(b, 12, 1, 2, 2);
	put_pkeys(b, 4, 1, a, 2);
	put_pkeys(b, 8, 1, c, 2);
	put_pkeys(b, 12, 1, d, 2);
	set_field(&guids, "lid", 4);
	put_be64(guids.rec + GUIDINFO_OFF_GUIDS, GUID_A);
	put_be64(guids.rec + GUIDINFO_OFF_GUIDS + 8, GUID_A1);
	bench_put(b, &guids);
}

uint64_t bench_store_bytes;
size_t bench_store_max_ops;

struct bench *
bench_create(void (*change)(struct sa_config *config))
{
	struct store_config sc = {
		.tables = sa_num_tables,
		.indexes = sa_indexes,
		.num_indexes = sa_num_indexes,
		.readers = 1,
		.max_bytes = bench_store_bytes,
		.max_old_bytes = 1 << 20,
		.max_versions = 4,
		.grace = { sa_bench_grace_start, sa_bench_grace_done, NULL },
	};
	struct sa_worker_config wc;
	struct error err = { "" };
	struct bench *b = calloc(1, sizeof(*b));

	bench = b;
	sc.backend = (struct store_backend){
		.arg = b,
		.load = sa_bench_load,
		.apply = sa_bench_apply,
		.max_ops = bench_store_max_ops,
	};
	counted_init(&b->store_memory);
	sc.alloc = &b->store_memory.alloc;
	b->seconds = 1000;
	b->calls_allowed = CALLS_MAX;
	b->store = store_create(&sc, &err);
	assert_non_null(b->store);
	b->reader = store_reader(b->store, 0);
	b->config = sa_config_default;
	b->config.store = b->store;
	b->config.hz = 1000000;
	counted_init(&b->memory);
	b->config.alloc = &b->memory.alloc;
	b->config.rng = &rng;
	b->config.workers = 1;
	b->config.sm_key = SM_KEY;
	b->config.gid_prefix = PREFIX;
	b->config.path_ports = 64;
	b->config.path_switches = 8;
	b->config.path_links = 32;
	b->config.path_routes = 2;
	b->config.max_transfers = 8;
	b->config.max_queries = 4;
	b->config.max_writes = 8;
	b->config.max_result_bytes = 64 << 10;
	if (change != NULL)
		change(&b->config);
	b->sa = sa_create(&b->config, &err);
	assert_non_null(b->sa);
	make_fabric(b);
	wc = (struct sa_worker_config){
		.mad = NULL,
		.reader = b->reader,
		.submit = sa_bench_submit,
		.submit_arg = b,
	};
	b->w = sa_worker_create(b->sa, &wc);
	assert_non_null(b->w);
	assert_int_equal(b->agents, 2);
	/* the fabric's own ports cause no events */
	sa_run(b->w, 0, 1000);
	return b;
}

void
bench_destroy(struct bench *b)
{
	sa_worker_destroy(b->w);
	sa_destroy(b->sa);
	assert_int_equal(b->memory.held, 0);
	store_destroy(b->store);
	assert_int_equal(b->store_memory.held, 0);
	free(b->data);
	free(b);
}

int
bench_setup(void **state)
{
	*state = bench_create(NULL);
	return 0;
}

int
bench_teardown(void **state)
{
	bench_destroy(*state);
	return 0;
}

/* --- records --- */

struct sa_change
change_of(uint16_t attribute)
{
	struct sa_change c = { .type = sa_record_type(attribute) };

	return c;
}

void
set_field(struct sa_change *c, const char *name, uint64_t value)
{
	sa_put_named(c->type, name, c->rec, value);
}

void
set_gid(uint8_t *at, uint64_t guid)
{
	put_be64(at, PREFIX);
	put_be64(at + 8, guid);
}

void
bench_put(struct bench *b, const struct sa_change *c)
{
	struct error err = { "" };

	if (sa_change(b->sa, c, 1, &err) != 0)
		fail_msg("%s", err.text);
}

void
put_port(struct bench *b, uint16_t lid, uint64_t guid, uint8_t type, uint8_t lmc)
{
	struct sa_change c = change_of(SA_NODE);

	set_field(&c, "lid", lid);
	set_field(&c, "node_type", type);
	set_field(&c, "node_guid", guid | 0x1000);
	set_field(&c, "port_guid", guid);
	set_field(&c, "port_num", type == NODE_TYPE_SWITCH ? 0 : 1);
	bench_put(b, &c);
	if (type != NODE_TYPE_SWITCH)
		return;
	c = change_of(SA_SWITCH_INFO);
	set_field(&c, "lid", lid);
	bench_put(b, &c);
	put_port_info(b, lid, 0, lmc, 5, 0, 0);
}

void
put_port_info(struct bench *b, uint16_t lid, uint8_t port, uint8_t lmc, uint8_t mtu, uint8_t speed,
	uint8_t ext)
{
	struct sa_change c = change_of(SA_PORT_INFO);

	set_field(&c, "lid", lid);
	set_field(&c, "port_num", port);
	set_field(&c, "m_key", 0x4D4B4559);
	set_field(&c, "base_lid", lid);
	set_field(&c, "lmc", lmc);
	set_field(&c, "port_state", 4);
	set_field(&c, "link_width_active", 2); /* 4x */
	set_field(&c, "link_speed_active", speed);
	set_field(&c, "link_speed_ext_active", ext);
	set_field(&c, "neighbor_mtu", mtu);
	set_field(&c, "mtu_cap", 5);
	bench_put(b, &c);
}

static void
put_link_one(struct bench *b, uint16_t from, uint8_t from_port, uint16_t to, uint8_t to_port)
{
	struct sa_change c = change_of(SA_LINK);

	set_field(&c, "from_lid", from);
	set_field(&c, "from_port", from_port);
	set_field(&c, "to_lid", to);
	set_field(&c, "to_port", to_port);
	bench_put(b, &c);
}

void
put_link(struct bench *b, uint16_t from, uint8_t from_port, uint16_t to, uint8_t to_port)
{
	put_link_one(b, from, from_port, to, to_port);
	put_link_one(b, to, to_port, from, from_port);
}

void
put_pkeys(struct bench *b, uint16_t lid, uint8_t port, const uint16_t *pkeys, unsigned int n)
{
	struct sa_change c = change_of(SA_PKEY_TABLE);
	unsigned int i;

	set_field(&c, "lid", lid);
	c.rec[PKEY_OFF_PORT] = port;
	for (i = 0; i < n; i++)
		put_be16(c.rec + PKEY_OFF_KEYS + 2 * i, pkeys[i]);
	bench_put(b, &c);
}

uint64_t
count_of(struct bench *b, unsigned int table)
{
	return store_count(store_current(b->reader), table);
}

/* --- requests --- */

static void
fill_v1(uint8_t *mad, const struct ask *a)
{
	put_be64(mad + SA1_OFF_SM_KEY, a->untrusted ? 0 : a->sm_key != 0 ? a->sm_key : SM_KEY);
	put_be64(mad + SA1_OFF_SA_KEY, a->sa_key);
	put_be32(mad + SA1_OFF_PAYLOAD_LEN, a->payload_len);
	put_be32(mad + SA1_OFF_END_RID, a->end_rid);
	put_be64(mad + SA1_OFF_MASK, a->mask);
	mad[SA1_OFF_EDIT] = a->edit;
	if (a->data != NULL)
		memcpy(mad + SA1_OFF_DATA, a->data, a->data_len);
}

static void
fill_v2(uint8_t *mad, const struct ask *a)
{
	put_be64(mad + SA2_OFF_SM_KEY, a->untrusted ? 0 : a->sm_key != 0 ? a->sm_key : SM_KEY);
	put_be64(mad + SA2_OFF_MASK, a->mask);
	if (a->data != NULL)
		memcpy(mad + SA2_OFF_DATA, a->data, a->data_len);
}

static void
sa_bench_fill_peer(const struct bench *b, struct mad_peer *peer, const struct ask *a)
{
	memset(peer, 0, sizeof(*peer));
	peer->qpn = 1;
	peer->qkey = MAD_QKEY;
	peer->pkey = 0xFFFF;
	if (a->slid != 0) {
		peer->av.encap = ENCAP_IB;
		peer->av.dlid = a->slid;
		peer->av.grh = a->from != 0 || a->sgid != NULL;
		if (a->from != 0)
			set_gid(peer->av.dgid.raw, a->from);
		if (a->sgid != NULL)
			memcpy(peer->av.dgid.raw, a->sgid, 16);
		return;
	}
	peer->av.encap = ENCAP_ROCEV2_IPV6;
	if (a->from != 0)
		set_gid(peer->av.dgid.raw, a->from);
	else /* 10.0.0.9 */
		memcpy(peer->av.dgid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x09", 16);
	set_gid(peer->av.sgid.raw, 0x5A);
	if (b->our_gid != NULL)
		memcpy(peer->av.sgid.raw, b->our_gid, 16);
}

uint16_t
bench_admit(struct bench *b, const struct ask *a, bool *trusted)
{
	uint8_t mad[MAD_LEN] = { MAD_BASE_VERSION, MAD_CLASS_SUBN_ADM, a->version, a->method };
	struct mad_peer peer;

	sa_bench_fill_peer(b, &peer, a);
	fill_v1(mad, a);
	*trusted = false;
	return b->agent[0].admit(b->agent[0].arg, &peer, mad, trusted);
}

void
ask_only(struct bench *b, const struct ask *a)
{
	uint8_t mad[MAD_LEN] = { MAD_BASE_VERSION, MAD_CLASS_SUBN_ADM, a->version, a->method };
	uint8_t reply[MAD_LEN];
	struct mad_peer peer;
	struct mad_request req = {
		.peer = &peer,
		.mad = mad,
		.body = a->body,
		.reply = reply,
		.handle = ++b->handles,
	};

	bench = b;
	b->answered = b->streamed = false;
	b->read_error = 0;
	b->len = 0;
	sa_bench_fill_peer(b, &peer, a);
	put_be16(mad + MAD_OFF_ATTRIBUTE, a->attribute);
	put_be32(mad + MAD_OFF_MODIFIER, a->modifier);
	if (a->version == 1)
		fill_v1(mad, a);
	else
		fill_v2(mad, a);
	memset(reply, 0, sizeof(reply));
	memcpy(reply, mad, MAD_HEADER_LEN);
	reply[MAD_OFF_METHOD] |= MAD_RESPONSE;
	b->outcome = b->agent[a->version - 1].request(b->agent[a->version - 1].arg, &req);
	if (a->body != NULL)
		a->body->taken = req.take_body;
	if (a->body != NULL && !req.take_body) /* as lib/mad does */
		mad_body_free(NULL, a->body);
	if (b->outcome == MAD_ANSWER)
		take_answer(reply);
	else if (b->outcome == MAD_STREAM)
		take_stream(reply, &req.source, req.handle);
}

void
bench_run(struct bench *b)
{
	unsigned int i, n = b->num_writes;

	if (n > 0 && !b->hold_writes) {
		sa_write_execute(b->sa, b->writes, n, b->seconds);
		b->num_writes = 0;
		for (i = 0; i < n; i++)
			sa_write_done(b->w, b->writes[i], b->now);
	}
	sa_run(b->w, b->now, 64);
}

uint16_t
ask(struct bench *b, const struct ask *a)
{
	unsigned int turns;

	ask_only(b, a);
	for (turns = 0; !b->answered && turns < 100000; turns++)
		bench_run(b);
	assert_true(b->answered);
	return get_be16(b->reply + MAD_OFF_STATUS);
}

unsigned int
records(struct bench *b, uint16_t attribute, uint8_t version)
{
	uint16_t size = sa_wire_len(sa_record_type(attribute), version);

	assert_true(b->streamed);
	assert_int_equal(b->read_error, 0);
	assert_int_equal(b->len % size, 0);
	return b->len / size;
}

const uint8_t *
record_of(struct bench *b, uint16_t attribute, uint8_t version, unsigned int n)
{
	uint16_t size = sa_wire_len(sa_record_type(attribute), version);

	if (!b->streamed)
		return b->reply + (version == 1 ? SA1_OFF_DATA : SA2_OFF_DATA);
	assert_true((n + 1) * size <= b->len);
	return b->data + n * size;
}
