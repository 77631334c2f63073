/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

const struct mad_limits harness_limits = {
	.max_sessions = 64,
	.max_sessions_per_peer = 32,
	.max_bytes = 1 << 20,
	.max_bytes_per_peer = 1 << 19,
	.v1_window = 64,
	.rmpp_window = 16,
	.rmpp_send_max = 64,
	.retries = 7,
	.resp_time = 10,
	.rmpp_total_ms = 40000,
	.keepalive_total_ms = 1000,
};

/* --- words --- */

static void
harness_describe(const uint8_t *mad, char *text, size_t size)
{
	uint32_t segment = get_be32(mad + SA1_OFF_SEGMENT);
	uint32_t length = get_be32(mad + SA1_OFF_PAYLOAD_LEN);
	uint16_t status = get_be16(mad + MAD_OFF_STATUS);
	uint8_t f = mad[SA1_OFF_FRAGMENT];
	int n = snprintf(text, size, "%02x", mad[MAD_OFF_METHOD]);

	text += n;
	size -= n;
	if (f == 0 && segment == 0 && status != 0)
		snprintf(text, size, " single status 0x%04x", status);
	else if (f == 0 && segment == 0)
		snprintf(text, size, " single of %u", length);
	else if (f == SA1_KEEPALIVE)
		snprintf(text, size, " KeepAlive");
	else if (f == SA1_RESEND)
		snprintf(text, size, " Resend %u", segment);
	else if (f == SA1_ACK)
		snprintf(text, size, " Ack %u window %u", segment, get_be16(mad + SA1_OFF_WINDOW));
	else if (f == 0)
		snprintf(text, size, " %u", segment);
	else
		snprintf(text, size, "%s%s%s %u of %u", f & SA1_FIRST ? " First" : "",
			f & SA1_LAST ? " Last" : "", f & ~(SA1_FIRST | SA1_LAST) ? " odd" : "",
			segment, length);
}

/* --- the wire --- */

static uint64_t
wire_random(struct harness *h)
{
	uint64_t x = h->wire.rng += UINT64_C(0x9E3779B97F4A7C15);

	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return x ^ x >> 31;
}

static bool
chance(struct harness *h, uint32_t in_thousand)
{
	return in_thousand != 0 && wire_random(h) % 1000 < in_thousand;
}

static struct frame *
frame_at(const struct manager *m, uint64_t i)
{
	return &m->frames[i % HARNESS_FRAMES];
}

static void
harness_parse(const struct manager *from, const struct frame *f, struct packet *pkt)
{
	enum encap encap = from->h->config.ib ? ENCAP_IB : ENCAP_ROCEV2_IPV4;
	enum verdict why;

	if (!wire_parse(encap, f->bytes + 14, f->len - 14, pkt, &why))
		fail_msg("%s", verdict_infos[why].name);
	pkt->port = 0;
	pkt->rx_time = from->h->now;
	pkt->mbuf = NULL;
	pkt->smac = f->bytes + 6;
}

static uint8_t *
harness_sink_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct manager *m = (struct manager *)sink;
	struct frame *f = frame_at(m, m->sent);

	assert_true(m->sent - m->delivered < HARNESS_FRAMES);
	assert_int_equal(len, 20 + MAD_LEN);
	if (m->room == 0)
		return NULL;
	m->path = path;
	m->reserved = len;
	memset(f->bytes, 0xEE, sizeof(f->bytes));
	return f->bytes + path->header_len;
}

static bool
harness_is_lost(struct manager *m)
{
	unsigned int i;

	for (i = 0; i < m->num_lose; i++) {
		if (m->lose[i] == m->sent) {
			m->lose[i] = m->lose[--m->num_lose];
			return true;
		}
	}
	return chance(m->h, m->h->wire.loss);
}

static void
harness_sink_commit(struct tx_sink *sink)
{
	struct manager *m = (struct manager *)sink;
	struct frame *f = frame_at(m, m->sent), *copy;
	struct harness *h = m->h;

	m->room--;
	f->len = path_finish(m->path, f->bytes + m->path->header_len, m->reserved, 0);
	f->arrives = h->now + h->wire.latency;
	if (harness_is_lost(m))
		f->arrives = UINT64_MAX;
	else if (chance(h, h->wire.reorder))
		f->arrives += wire_random(h) % (4 * h->wire.latency);
	if (chance(h, h->wire.corrupt))
		f->bytes[wire_random(h) % (f->len - 54) + 54] ^= 1 + wire_random(h) % 255;
	m->sent++;
	if (chance(h, h->wire.duplicate)) {
		copy = frame_at(m, m->sent++);
		*copy = *f;
		copy->arrives = h->now + h->wire.latency + wire_random(h) % (4 * h->wire.latency);
	}
}

static enum verdict
harness_receive(struct manager *m, const struct packet *pkt)
{
	return pkt->dest_qpn == 0 ? mad_receive_smp(m->w, pkt, m->h->now)
				  : mad_receive(m->w, pkt, m->h->now);
}

static void
hand_over(struct manager *from, struct frame *f)
{
	struct manager *to = from->peer;
	struct packet pkt;

	f->arrives = UINT64_MAX;
	if (to->w == NULL)
		return;
	harness_parse(from, f, &pkt);
	to->verdicts[harness_receive(to, &pkt)]++;
}

void
transmit(struct manager *m)
{
	if (m->w == NULL)
		return;
	while (mad_run(m->w, m->h->now, 256) != 0)
		;
	timer_wheel_sent(m->wheel, m->h->now);
}

void
deliver(struct manager *m)
{
	while (m->delivered < m->sent) {
		struct frame *f = frame_at(m, m->delivered++);

		if (f->arrives != UINT64_MAX)
			hand_over(m, f);
	}
}

void
exchange(struct harness *h)
{
	do {
		transmit(&h->a);
		deliver(&h->a);
		transmit(&h->b);
		deliver(&h->b);
		transmit(&h->a);
	} while (h->a.delivered < h->a.sent);
}

static void
timers(struct harness *h)
{
	timer_wheel_run(h->a.wheel, h->now);
	if (h->b.w != NULL)
		timer_wheel_run(h->b.wheel, h->now);
}

void
pass(struct harness *h, uint64_t ns)
{
	h->now += ns;
	timers(h);
	transmit(&h->a);
	transmit(&h->b);
}

/* Frames that are due, in any order of sending; those left are the ring's, from .delivered on. */
static uint64_t
arrivals(struct manager *m)
{
	uint64_t next = UINT64_MAX, i;
	struct frame *f;

	for (i = m->delivered; i < m->sent; i++) {
		f = frame_at(m, i);
		if (f->arrives <= m->h->now)
			hand_over(m, f);
		else if (f->arrives < next)
			next = f->arrives;
	}
	while (m->delivered < m->sent && frame_at(m, m->delivered)->arrives == UINT64_MAX)
		m->delivered++;
	return next;
}

static uint64_t
harness_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool
harness_run(struct harness *h, uint64_t ns)
{
	uint64_t end = h->now + ns, next;

	while (h->now < end) {
		timers(h);
		next = harness_earlier(arrivals(&h->a), arrivals(&h->b));
		transmit(&h->a);
		transmit(&h->b);
		next = harness_earlier(next,
			harness_earlier(timer_wheel_next(h->a.wheel),
				timer_wheel_next(h->b.wheel)));
		if (h->a.delivered < h->a.sent || h->b.delivered < h->b.sent)
			next = harness_earlier(next, h->now + h->wire.latency);
		if (next == UINT64_MAX)
			return true;
		h->now = next > h->now ? next : h->now + 1;
	}
	return false;
}

void
lose(struct manager *m, uint64_t nth)
{
	assert_true(m->num_lose < 64);
	m->lose[m->num_lose++] = m->sent + nth;
}

/* --- expectations --- */

static const uint8_t *
mad_at(const struct manager *m, uint64_t i)
{
	struct packet pkt;

	harness_parse(m, frame_at(m, i), &pkt);
	assert_int_equal(pkt.opcode, UD_SEND_ONLY);
	assert_int_equal(pkt.payload_len, MAD_LEN);
	return pkt.payload;
}

void
expect_sent(struct manager *m, const char *first, ...)
{
	const char *want;
	char text[80];
	va_list ap;

	va_start(ap, first);
	for (want = first; want != NULL; want = va_arg(ap, const char *)) {
		if (m->seen == m->sent)
			fail_msg("expected \"%s\", nothing was sent", want);
		harness_describe(mad_at(m, m->seen++), text, sizeof(text));
		assert_string_equal(text, want);
	}
	va_end(ap);
	if (m->seen < m->sent) {
		harness_describe(mad_at(m, m->seen), text, sizeof(text));
		fail_msg("\"%s\" was sent, nothing expected", text);
	}
}

void
expect_segments(struct manager *m, uint8_t method, uint32_t first, uint32_t last)
{
	char want[80], text[80];

	for (; first <= last; first++) {
		snprintf(want, sizeof(want), "%02x %u", method, first);
		if (m->seen == m->sent)
			fail_msg("expected \"%s\", nothing was sent", want);
		harness_describe(mad_at(m, m->seen++), text, sizeof(text));
		assert_string_equal(text, want);
	}
}

const uint8_t *
next_sent(struct manager *m)
{
	if (m->seen == m->sent)
		fail_msg("nothing was sent");
	return mad_at(m, m->seen++);
}

void
next_packet(struct manager *m, struct packet *pkt)
{
	if (m->seen == m->sent)
		fail_msg("nothing was sent");
	harness_parse(m, frame_at(m, m->seen++), pkt);
}

void
skip_sent(struct manager *m)
{
	m->seen = m->sent;
}

/* --- b, played by the test --- */

static struct av
harness_av_of(const struct manager *from)
{
	uint8_t self = from == &from->h->a ? 1 : 2, other = 3 - self;

	return (struct av){
		.encap = from->h->config.ib ? ENCAP_IB : ENCAP_ROCEV2_IPV4,
		.vlan = PATH_NO_VLAN,
		.sgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = self },
		.dgid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = other },
		.smac = { 2, 0, 0, 0, 0, self },
		.dmac = { 2, 0, 0, 0, 0, other },
		.slid = self,
		.dlid = other,
	};
}

struct av
harness_av(const struct manager *from)
{
	return harness_av_of(from);
}

static const struct wire_headers plain = {
	.opcode = UD_SEND_ONLY,
	.pkey = 0xFFFF,
	.dest_qpn = 1,
	.qkey = MAD_QKEY,
	.src_qpn = 1,
};

static enum verdict
frame_before_a(struct harness *h, const struct frame *f)
{
	struct packet pkt;
	enum verdict v;

	harness_parse(&h->b, f, &pkt);
	v = harness_receive(&h->a, &pkt);
	h->a.verdicts[v]++;
	transmit(&h->a);
	return v;
}

static enum verdict
put_before_a(struct harness *h, const struct av *av, const struct wire_headers *headers,
	const uint8_t *mad, uint32_t len, bool break_icrc)
{
	struct frame f = { 0 };
	struct path path;
	uint32_t at;

	path_init(&path, av, 1, headers->dest_qpn);
	at = path.header_len + wire_build(f.bytes + path.header_len, headers);
	memcpy(f.bytes + at, mad, len);
	f.len = path_finish(&path, f.bytes + path.header_len, at + len - path.header_len, 0);
	if (break_icrc)
		f.bytes[at] ^= 1;
	return frame_before_a(h, &f);
}

enum verdict
say_bytes(struct harness *h, const uint8_t *l3, uint32_t len)
{
	enum encap encap = h->config.ib ? ENCAP_IB : ENCAP_ROCEV2_IPV4;
	struct av av = harness_av_of(&h->b);
	struct frame f = { .len = 14 + len + 4 };

	memcpy(f.bytes + 6, av.smac, 6);
	memcpy(f.bytes + 14, l3, len);
	put_le32(f.bytes + 14 + len, wire_icrc(encap, l3, len));
	if (encap == ENCAP_IB) {
		put_le16(f.bytes + f.len, wire_vcrc(f.bytes + 14, len + 4));
		f.len += 2;
	}
	return frame_before_a(h, &f);
}

enum verdict
say_frame(struct harness *h, const struct wire_headers *headers, const uint8_t *mad, uint32_t len,
	bool break_icrc)
{
	struct av av = harness_av_of(&h->b);

	return put_before_a(h, &av, headers, mad, len, break_icrc);
}

enum verdict
say_by(struct harness *h, const struct av *av, const struct wire_headers *headers,
	const uint8_t *mad)
{
	return put_before_a(h, av, headers, mad, MAD_LEN, false);
}

enum verdict
say(struct harness *h, const uint8_t *mad)
{
	return say_frame(h, &plain, mad, MAD_LEN, false);
}

enum verdict
say_from(struct harness *h, const uint8_t *mad, uint16_t who, uint32_t qpn)
{
	struct wire_headers headers = plain;
	struct av av = harness_av_of(&h->b);

	headers.src_qpn = qpn;
	put_be16(av.sgid.raw + 14, who);
	return put_before_a(h, &av, &headers, mad, MAD_LEN, false);
}

uint8_t *
v1_mad(const struct harness *h, uint8_t *mad, uint8_t method, uint8_t flags, uint32_t segment,
	uint32_t length, uint16_t window)
{
	uint32_t i;

	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = 1;
	mad[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM;
	mad[MAD_OFF_CLASS_VERSION] = 1;
	mad[MAD_OFF_METHOD] = method;
	put_be64(mad + MAD_OFF_TID, h->tid);
	put_be16(mad + MAD_OFF_ATTRIBUTE, 0x0011);
	put_be64(mad + SA1_OFF_SM_KEY, 0x5AFE);
	put_be32(mad + SA1_OFF_SEGMENT, segment);
	put_be32(mad + SA1_OFF_PAYLOAD_LEN, length);
	mad[SA1_OFF_FRAGMENT] = flags;
	put_be16(mad + SA1_OFF_WINDOW, window);
	for (i = 0; segment != 0 && i < SA1_AREA; i++)
		mad[SA1_OFF_DATA + i] = pattern((uint64_t)(segment - 1) * SA1_AREA + i);
	return mad;
}

/* --- a's agent --- */

static int
harness_source_read(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	struct harness *h = arg;
	uint32_t i;

	if (h->late_at != 0 && offset + len > h->late_at)
		return -EAGAIN;
	if (h->stale_at != 0 && offset + len > h->stale_at)
		return -ESTALE;
	for (i = 0; i < len; i++)
		buf[i] = pattern(offset + i);
	return 0;
}

static void
harness_source_release(void *arg)
{
	struct harness *h = arg;

	h->released++;
}

struct mad_source
pattern_source(struct harness *h, uint64_t length)
{
	h->sources++;
	return (struct mad_source){
		.arg = h,
		.length = length,
		.read = harness_source_read,
		.release = harness_source_release,
	};
}

static enum mad_outcome
agent_request(void *arg, struct mad_request *req)
{
	struct harness *h = arg;

	h->requests++;
	h->handle = h->outcome == MAD_LATER ? mad_later(req) : req->handle;
	memcpy(h->request, req->mad, MAD_LEN);
	free(h->body);
	h->body = NULL;
	h->body_len = 0;
	if (req->body != NULL) {
		h->body_len = mad_body_length(req->body);
		h->body = malloc(h->body_len + 1);
		assert_non_null(h->body);
		mad_body_read(req->body, 0, h->body, h->body_len);
	}
	put_be16(req->reply + MAD_OFF_STATUS, h->status);
	if (h->outcome == MAD_LATER && h->handle == 0) {
		put_be16(req->reply + MAD_OFF_STATUS, SA_STATUS_NO_RESOURCES);
		return MAD_ANSWER;
	}
	if (h->outcome == MAD_STREAM)
		req->source = pattern_source(h, h->table_bytes);
	return h->outcome;
}

static const struct mad_method v1_methods[] = {
	{ MAD_GET, MAD_METHOD_LATER },
	{ MAD_SET, MAD_METHOD_SESSION },
	{ SA_GET_TABLE, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ SA1_GET_BULK, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ SA1_CONFIG, MAD_METHOD_SESSION | MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE },
	{ 0, 0 },
};

static const struct mad_method v2_methods[] = {
	{ MAD_GET, MAD_METHOD_LATER },
	{ MAD_SET, MAD_METHOD_SESSION },
	{ SA_GET_TABLE, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ SA2_GET_TRACE, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE },
	{ SA2_GET_MULTI,
		MAD_METHOD_SESSION | MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE },
	{ SA2_DELETE, MAD_METHOD_SESSION },
	{ 0, 0 },
};

static const struct mad_method live_methods[] = {
	{ MAD_GET, 0 },
	{ MAD_SET, MAD_METHOD_SESSION },
	{ 0, 0 },
};

/* Who has an SM_Key is trusted. */
static uint16_t
agent_admit(void *arg, const struct mad_peer *peer, const uint8_t *mad, bool *trusted)
{
	const struct harness *h = arg;

	(void)peer;
	*trusted = get_be64(mad + SA1_OFF_SM_KEY) != 0;
	return *trusted ? MAD_STATUS_OK : h->admits;
}

static void
add_agents(struct harness *h, struct mad_worker *w)
{
	const struct mad_agent agents[] = {
		{ 0x03, 1, "sa1", MAD_SA1, SA1_OFF_DATA, v1_methods, agent_request, h,
			.admit = agent_admit },
		{ 0x03, 2, "sa2", MAD_RMPP, SA2_OFF_DATA, v2_methods, agent_request, h },
		{ 0x34, 1, "live", MAD_SINGLE, 24, live_methods, agent_request, h },
	};
	unsigned int i;

	for (i = 0; i < sizeof(agents) / sizeof(agents[0]); i++)
		assert_int_equal(mad_agent_add(w, &agents[i]), 0);
}

/* --- asking --- */

static int
take_data(void *arg, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct harness *h = arg;
	uint32_t i;

	assert_int_equal(h->done, 0);
	assert_int_equal(offset, h->taken);
	for (i = 0; i < len; i++)
		assert_int_equal(data[i], pattern(offset + i));
	h->taken += len;
	return h->take_error != 0 && h->taken > h->take_error_at ? h->take_error : 0;
}

static void
harness_take_done(void *arg, const struct mad_result *result)
{
	struct harness *h = arg;

	h->done++;
	h->result = *result;
	if (result->mad != NULL)
		memcpy(h->result_mad, result->mad, MAD_LEN);
}

void
call_init(struct manager *m, struct mad_call *c, uint8_t *mad, uint8_t method, uint8_t flags)
{
	*c = (struct mad_call){
		.to = { .av = harness_av_of(m), .qpn = 1, .qkey = MAD_QKEY, .pkey = 0xFFFF,
			.neighbour = PATH_NO_NEIGHBOUR, },
		.protocol = MAD_SA1,
		.data_offset = SA1_OFF_DATA,
		.flags = flags,
		.mad = v1_mad(m->h, mad, method, 0, 0, 0, 0),
		.resp_time = 10,
		.taker = { .arg = m->h, .data = take_data, .done = harness_take_done },
	};
}

/* --- set-up --- */

static const struct port_attr *
harness_get_port(void *arg, uint16_t port)
{
	struct manager *m = arg;

	return port == 0 ? &m->attr : NULL;
}

static void
violation(void *arg, const struct packet *pkt, bool qkey)
{
	struct harness *h = arg;

	h->bad_key = *pkt;
	h->bad_keys[qkey]++;
}

static void
manager_create(struct manager *m, struct harness *h, struct manager *peer, bool played)
{
	struct mad_worker_config config = {
		.id = h->config.id,
		.workers = h->config.workers,
		.hash_key = HARNESS_HASH_KEY,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &m->sink,
		.port = harness_get_port,
		.port_arg = m,
		.limits = h->config.limits,
		.violation = m == &h->a ? violation : NULL,
		.violation_arg = h,
	};

	m->sink = (struct tx_sink){ harness_sink_reserve, harness_sink_commit };
	m->h = h;
	m->peer = peer;
	m->room = UINT32_MAX;
	m->frames = calloc(HARNESS_FRAMES, sizeof(*m->frames));
	assert_non_null(m->frames);
	m->attr = (struct port_attr){
		.mac = { 2, 0, 0, 0, 0, m == &h->a ? 1 : 2 },
		.vlan = PATH_NO_VLAN,
		.up = true,
		.subnet_timeout = h->config.subnet_timeout,
		.pkey = { 0x8001, 0xFFFF },
		.num_pkeys = 2,
		.ib = h->config.ib,
		.lid = m == &h->a ? 1 : 2,
		.sl_to_vl = { 0, 1, 2, 3, 4, 6, 5, 7 },
	};
	if (played)
		return;
	m->wheel = timer_wheel_create(&allocator_malloc, 1024, h->now);
	config.wheel = m->wheel;
	m->w = mad_worker_create(&config);
	assert_non_null(m->w);
	if (!h->config.bare)
		add_agents(h, m->w);
}

struct harness *
harness_create(const struct harness_config *config)
{
	struct harness *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	if (config != NULL)
		h->config = *config;
	if (h->config.limits.max_sessions == 0)
		h->config.limits = harness_limits;
	if (h->config.subnet_timeout == 0)
		h->config.subnet_timeout = 8;
	if (h->config.workers == 0)
		h->config.workers = 1;
	h->now = 1000000;
	h->tid = 0x77;
	h->wire.latency = 20 * US;
	manager_create(&h->a, h, &h->b, false);
	manager_create(&h->b, h, &h->a, h->config.scripted);
	return h;
}

static void
manager_destroy(struct manager *m)
{
	mad_worker_destroy(m->w);
	timer_wheel_destroy(m->wheel);
	free(m->frames);
}

void
harness_destroy(struct harness *h)
{
	manager_destroy(&h->a);
	manager_destroy(&h->b);
	free(h->body);
	free(h);
}

int
harness_setup(void **state)
{
	*state = harness_create(NULL);
	return 0;
}

int
scripted_setup(void **state)
{
	*state = harness_create(&(struct harness_config){ .scripted = true });
	return 0;
}

void
harness_prove(struct harness *h)
{
	const enum mad_outcome outcome = h->outcome;
	const uint64_t tid = h->tid, table_bytes = h->table_bytes;

	h->tid = 0x50;
	h->outcome = MAD_STREAM;
	h->table_bytes = 2 * SA1_AREA;
	say_v1(h, SA_GET_TABLE, 0, 0, 0, 0);
	say_v1(h, SA_GET_TABLE, h->config.limits.v1_flags_lsb ? 0x20 : SA1_ACK, 2, 0, 0);
	assert_int_equal(h->a.sent, 2);
	expect_clean(h);
	h->a.seen = h->a.delivered = h->a.sent;
	memset(h->a.verdicts, 0, sizeof(h->a.verdicts));
	h->a.base = *mad_worker_counters(h->a.w);
	h->outcome = outcome;
	h->table_bytes = table_bytes;
	h->tid = tid;
	h->requests = h->sources = h->released = 0;
	memset(h->request, 0, sizeof(h->request));
}

int
proven_setup(void **state)
{
	scripted_setup(state);
	harness_prove(*state);
	return 0;
}

int
harness_teardown(void **state)
{
	harness_destroy(*state);
	return 0;
}

struct mad_counters
counters_of(const struct manager *m)
{
	const struct mad_counters *c = mad_worker_counters(m->w);
	struct mad_counters n;
	unsigned int i;

	for (i = 0; i < MAD_COUNTER_COUNT; i++)
		((uint64_t *)&n)[i] = ((const uint64_t *)c)[i] - ((const uint64_t *)&m->base)[i];
	return n;
}

unsigned int
sessions_of(const struct manager *m)
{
	struct mad_session_info info;
	unsigned int n = 0;
	uint32_t cursor = 0;

	while (mad_session_next(m->w, &cursor, m->h->now, &info))
		n++;
	return n;
}

const char *
state_of(const struct manager *m)
{
	struct mad_session_info info;
	uint32_t cursor = 0;

	if (!mad_session_next(m->w, &cursor, m->h->now, &info))
		return "none";
	assert_int_equal(sessions_of(m), 1);
	return info.state;
}

static void
expect_no_memory(const struct manager *m)
{
	uint64_t used, total;

	if (m->w == NULL)
		return;
	assert_int_equal(sessions_of(m), 0);
	mad_worker_memory(m->w, &used, &total);
	assert_int_equal(used, 0);
}

void
expect_clean(struct harness *h)
{
	expect_no_memory(&h->a);
	expect_no_memory(&h->b);
	assert_int_equal(h->released, h->sources);
}
