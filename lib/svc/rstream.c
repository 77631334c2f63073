/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * rstream: the server that librdmacm's rstream measures against, over rsockets. It takes what the
 * client sends and gives as many bytes back, as soon as the client has room for them: not the same
 * bytes, but what the program's -T v expects, a count that goes on from the client's first byte.
 *
 * rsockets (librdmacm rsocket.c, version 1; test/data/captures/rstream.pcap): each side has a receive
 * buffer in two halves, and a list of two entries {address 64, R_Key 32, length 32} that tells where it may
 * write in the other's buffer. Private data of REQ and REP, 40 bytes, big-endian:
 *
 *    0  version 1    1  flags: 0x01 lists are big-endian, else little-endian; 0x02 always
 *    2  credits (16): data messages that may come until more are granted
 *    7  entries of a table that is not used, 0
 *    8  where our list is: address, R_Key, entries      24  the first half of our buffer
 *
 * Everything is RDMA Write with immediate data; the upper 3 bits say what: 0 data, the rest is its length;
 * 4 credits, the rest is the number of the last data message granted (16 bits), its payload, if it has
 * any, is a half that is free again, written into the other's list; 7 control.
 */

#include <errno.h>

#include "svc/kinds.h"
#include "wire/bytes.h"

#define CONN_DATA    40
#define VERSION      1
#define FLAG_NET     0x01
#define FLAG_IOMAP   0x02

#define OP_DATA      0u
#define OP_CREDITS   4u
#define OP_CONTROL   7u
#define OP_SHIFT     29
#define OP_REST      0x1FFFFFFFu
#define DISCONNECT   0u

#define CREDITS      384 /* as the library */
#define CONTROLS     4 /* messages without credit that either side may have under way */
#define SENDS        64
#define SEND_MAX     65536u
#define LIST_ENTRIES 2
#define ENTRY        16
#define AT_BUFFER    64 /* of a place: the list, then the receive buffer */

enum wr_kind {
	WR_DATA,
	WR_CONTROL,
	WR_GOODBYE,
};

struct rstream {
	struct svc_windows windows;
	struct svc_region pattern; /* 0, 1, ... 255, 0, ... */
};

struct rstream_conn {
	/* of the peer's REQ */
	bool net; /* its lists are big-endian */
	uint64_t list_va;
	uint32_t list_key;
	uint32_t list_entries;
	uint32_t list_at; /* entry that we write next */

	/* receiving */
	uint64_t open; /* bytes that it may still write */
	uint64_t free; /* bytes of the buffer that nobody may write */
	uint64_t next_half; /* offset of the half that is granted next */
	uint16_t received; /* data messages */
	uint16_t grant_at; /* number of the one at which new credits are due */

	/* sending */
	uint64_t owed;
	uint8_t pattern; /* next byte */
	bool begun;
	uint32_t target_at; /* entry of our list in use */
	uint16_t sent; /* data messages */
	uint16_t granted;
	uint32_t sends, controls; /* under way */
};

static uint64_t
half(const struct svc *s)
{
	return svc_config(s)->length / 2;
}

/* --- lists, in the peer's byte order --- */

struct entry {
	uint64_t va;
	uint32_t key;
	uint32_t length;
};

static void
swap(struct entry *e)
{
	e->va = __builtin_bswap64(e->va);
	e->key = __builtin_bswap32(e->key);
	e->length = __builtin_bswap32(e->length);
}

static struct entry
get_entry(const uint8_t *at, bool net)
{
	struct entry e = { get_be64(at), get_be32(at + 8), get_be32(at + 12) };

	if (!net)
		swap(&e);
	return e;
}

static void
put_entry(uint8_t *at, struct entry e, bool net)
{
	if (!net)
		swap(&e);
	put_be64(at, e.va);
	put_be32(at + 8, e.key);
	put_be32(at + 12, e.length);
}

/* --- service --- */

static int
make_pattern(struct svc *s, struct rstream *t, struct error *err)
{
	uint32_t i;
	int ret = svc_region(s, SEND_MAX + 256, 0, &t->pattern, err);

	for (i = 0; ret == 0 && i < SEND_MAX + 256; i++)
		t->pattern.bytes[i] = (uint8_t)i;
	return ret;
}

static int
rstream_open(struct svc *s, struct error *err)
{
	struct rstream *t;
	int ret;

	ret = svc_check("length", svc_config(s)->length, 2, 1u << 30, err);
	if (ret != 0)
		return ret;
	t = mem_zalloc(svc_env(s)->alloc, sizeof(*t), 64);
	if (t == NULL)
		return error_set(err, ENOMEM, "no memory for a service");
	svc_set_state(s, t);
	svc_queues(s, SENDS, CREDITS + CONTROLS);
	ret = svc_buffers(s, AT_BUFFER + 2 * half(s), MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_MW_BIND,
		err);
	if (ret == 0)
		ret = svc_windows_make(s, &t->windows, err);
	return ret != 0 ? ret : make_pattern(s, t, err);
}

static int
rstream_close(struct svc *s)
{
	struct rstream *t = svc_state(s);

	if (t == NULL)
		return 0;
	if (svc_windows_free(s, &t->windows) == -EAGAIN)
		return -EAGAIN;
	mem_free(svc_env(s)->alloc, t);
	svc_set_state(s, NULL);
	return 0;
}

/* --- connecting --- */

static uint16_t
rstream_request(struct svc_conn *c, const struct cm_request *req, struct cm_conn_param *param)
{
	struct svc *s = svc_conn_service(c);
	const struct rstream *t = svc_state(s);
	struct rstream_conn *r = svc_conn_priv(c);
	struct svc_region b = svc_conn_buffer(c);
	const uint8_t *in = req->private_data;
	uint8_t *out = param->private_data;
	uint32_t key = svc_window_key(&t->windows, c);
	struct entry list;

	if (req->private_len < CONN_DATA || in[0] != VERSION)
		return CM_REJ_CONSUMER;
	list = get_entry(in + 8, true);
	if (list.length == 0)
		return CM_REJ_CONSUMER;
	r->net = in[1] & FLAG_NET;
	r->granted = get_be16(in + 2);
	r->list_va = list.va;
	r->list_key = list.key;
	r->list_entries = list.length;
	r->list_at = 1 % list.length; /* the first came with the REP */
	put_entry(b.bytes, get_entry(in + 24, true), r->net);
	put_entry(b.bytes + ENTRY, (struct entry){ 0 }, r->net);

	out[0] = VERSION;
	out[1] = (r->net ? FLAG_NET : 0) | FLAG_IOMAP;
	put_be16(out + 2, CREDITS);
	put_entry(out + 8, (struct entry){ b.va, key, LIST_ENTRIES }, true);
	put_entry(out + 24, (struct entry){ b.va + AT_BUFFER, key, (uint32_t)half(s) }, true);
	param->private_len = CONN_DATA;
	param->access = MEM_ACCESS_REMOTE_WRITE;
	return 0;
}

static int
rstream_prepare(struct svc_conn *c)
{
	struct svc *s = svc_conn_service(c);
	struct rstream *t = svc_state(s);
	struct rstream_conn *r = svc_conn_priv(c);
	uint32_t i;
	int ret;

	r->open = half(s);
	r->free = half(s);
	r->next_half = half(s);
	r->grant_at = CREDITS / 2;
	ret = svc_window_bind(&t->windows, c, AT_BUFFER + 2 * half(s), MEM_ACCESS_REMOTE_WRITE);
	for (i = 0; i < CREDITS + CONTROLS && ret == 0; i++)
		ret = svc_post_recv(c, &(struct recv_wr){ .num_sge = 0 });
	return ret;
}

/* --- what we send --- */

static void
control(struct svc_conn *c, uint32_t op, uint32_t rest, const uint8_t entry[ENTRY])
{
	struct rstream_conn *r = svc_conn_priv(c);
	struct send_wr wr = {
		.wr_id = op == OP_CONTROL ? WR_GOODBYE : WR_CONTROL,
		.opcode = WR_RDMA_WRITE_WITH_IMM,
		.send_flags = SEND_INLINE,
		.imm_data = op << OP_SHIFT | rest,
		.inline_data = entry,
		.inline_len = entry != NULL ? ENTRY : 0,
		.remote_addr = r->list_va + (uint64_t)r->list_at * ENTRY,
		.rkey = r->list_key,
	};

	if (svc_post_send(c, &wr) == 0)
		r->controls++;
}

/* A half that is free, or messages enough. */
static void
grant(struct svc_conn *c)
{
	struct rstream_conn *r = svc_conn_priv(c);
	struct svc *s = svc_conn_service(c);
	struct svc_region b = svc_conn_buffer(c);
	const struct rstream *t = svc_state(s);
	bool room = r->free >= half(s);
	uint8_t entry[ENTRY];

	if (r->controls >= CONTROLS || (!room && (int16_t)(r->received - r->grant_at) < 0))
		return;
	r->grant_at = r->received + CREDITS / 2;
	put_entry(entry, (struct entry){ b.va + AT_BUFFER + r->next_half,
		t->windows.keys[svc_conn_place(c)], (uint32_t)half(s) }, r->net);
	control(c, OP_CREDITS, (uint16_t)(r->received + CREDITS), room ? entry : NULL);
	if (!room)
		return;
	r->free -= half(s);
	r->open += half(s);
	r->next_half = half(s) - r->next_half;
	r->list_at = (r->list_at + 1) % r->list_entries;
}

static bool
send_some(struct svc_conn *c)
{
	struct rstream_conn *r = svc_conn_priv(c);
	const struct rstream *t = svc_state(svc_conn_service(c));
	uint8_t *at = svc_conn_buffer(c).bytes + r->target_at * ENTRY;
	struct entry to = get_entry(at, r->net);
	uint32_t len = r->owed < SEND_MAX ? (uint32_t)r->owed : SEND_MAX;
	struct sge sge = { .addr = t->pattern.va + r->pattern, .lkey = t->pattern.lkey };
	struct send_wr wr = {
		.wr_id = WR_DATA,
		.opcode = WR_RDMA_WRITE_WITH_IMM,
		.num_sge = 1,
		.sg_list = &sge,
		.remote_addr = to.va,
		.rkey = to.key,
	};

	if (len > to.length)
		len = to.length;
	if (len == 0 || r->sent == r->granted || r->sends == SENDS - CONTROLS - 1)
		return false;
	/* before the peer can do so: when all of it is used the entry is the peer's */
	put_entry(at, (struct entry){ to.va + len, to.key, to.length - len }, r->net);
	if (len == to.length)
		r->target_at = (r->target_at + 1) % LIST_ENTRIES;
	sge.length = len;
	wr.imm_data = OP_DATA << OP_SHIFT | len;
	if (svc_post_send(c, &wr) != 0)
		return false;
	r->sends++;
	r->sent++;
	r->owed -= len;
	r->pattern = (uint8_t)(r->pattern + len);
	return true;
}

/* --- what comes --- */

/* It lies where the last one ended: the buffer is used in order, half by half. */
static void
take_data(struct svc_conn *c, uint32_t len)
{
	struct rstream_conn *r = svc_conn_priv(c);

	if (len > r->open) {
		svc_violation(c);
		return;
	}
	if (!r->begun)
		r->pattern = svc_conn_buffer(c).bytes[AT_BUFFER];
	r->begun = true;
	r->received++;
	r->open -= len;
	r->free += len;
	r->owed += len;
}

static void
take(struct svc_conn *c, const struct wc *wc)
{
	struct rstream_conn *r = svc_conn_priv(c);
	uint32_t op = wc->imm_data >> OP_SHIFT, rest = wc->imm_data & OP_REST;

	if (wc->opcode != WC_RECV_RDMA_WITH_IMM) { /* only iWARP has messages */
		svc_violation(c);
		return;
	}
	svc_post_recv(c, &(struct recv_wr){ .num_sge = 0 });
	if (op == OP_DATA)
		take_data(c, rest);
	else if (op == OP_CREDITS)
		r->granted = (uint16_t)rest;
	else if (op == OP_CONTROL && rest == DISCONNECT)
		control(c, OP_CONTROL, DISCONNECT, NULL);
}

static void
rstream_completion(struct svc_conn *c, const struct wc *wc)
{
	struct rstream_conn *r = svc_conn_priv(c);

	if (wc->opcode == WC_RECV || wc->opcode == WC_RECV_RDMA_WITH_IMM)
		take(c, wc);
	else if (wc->wr_id == WR_DATA)
		r->sends--;
	else
		r->controls--;
	if (wc->opcode == WC_RDMA_WRITE && wc->wr_id == WR_GOODBYE)
		svc_disconnect(c);
	grant(c);
	while (send_some(c))
		;
}

static void
rstream_established(struct svc_conn *c, const uint8_t *private_data, uint8_t len)
{
	(void)private_data;
	(void)len;
	grant(c); /* the second half */
}

const struct svc_ops svc_rstream = {
	.name = "rstream",
	.help = "the server of librdmacm's rstream: as many bytes back as come, over rsockets",
	.server = true,
	.defaults = { .length = 1 << 20, .max_connections = 16 },
	.conn_size = sizeof(struct rstream_conn),
	.open = rstream_open,
	.close = rstream_close,
	.request = rstream_request,
	.prepare = rstream_prepare,
	.established = rstream_established,
	.completion = rstream_completion,
};
