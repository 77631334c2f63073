/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_engine.h"
#include "wire/bytes.h"

/* --- datagrams --- */

static bool
is_lost(const struct fake_mad *m)
{
	return (m->lost > 0 && (m->asks + 1) % m->lost == 0) ||
		(m->lost_lid > 0 && m->ah.dlid == m->lost_lid);
}

/* A channel adapter is no switch. */
static uint16_t
status_of(const struct fake_mad *m, const struct engine_mad_ask *ask)
{
	uint16_t attribute = get_be16(ask->mad + MAD_OFF_ATTRIBUTE);

	if (m->is_ca && ask->qpn == 0 && attribute == SMA_SWITCH_INFO)
		return MAD_STATUS_BAD_METHOD_ATTR;
	return m->status;
}

static void
answer_smp(struct fake_mad *m, uint8_t *mad)
{
	if (mad[MAD_OFF_METHOD] == MAD_SET)
		memcpy(m->attribute, mad + SMP_OFF_DATA, SMA_DATA_LEN);
	memcpy(mad + SMP_OFF_DATA, m->attribute, SMA_DATA_LEN);
	mad[MAD_OFF_METHOD] = MAD_GET_RESP;
}

/* What a liveness agent says (liveness 2, 3); @p data begins with the type. */
static void
answer_live(struct fake_mad *m, const uint8_t *mad, uint8_t *data)
{
	uint16_t attribute = get_be16(mad + MAD_OFF_ATTRIBUTE);

	if (mad[MAD_OFF_CLASS] == LIVE_CLASS) {
		data[0]++;
		if (data[0] == LIVE_TIMESTAMP_RESPONSE)
			put_be64(data + 12, 0x0000000700000008);
		if (data[0] == LIVE_LIDGUID_RESPONSE) {
			put_be16(data + 8, 5);
			put_be64(data + 10, 0x0002c90300000005);
		}
		data[7] = (uint8_t)(data[7] + m->wrong_sequence);
	} else if (mad[MAD_OFF_CLASS] == LIVE_CLASS_IBPING || attribute >= SYSSTAT_HOST) {
		strcpy((char *)data, "host.example");
	}
}

static int
subnet_ask(struct fake_mad *m, const struct engine_mad_ask *ask, uint32_t *id, struct error *err)
{
	struct fake_smp *smp = m->smp;

	if (m->asks_left == 1)
		return error_set(err, EBUSY, "64 requests are under way");
	m->asks_left -= m->asks_left > 0;
	while (smp->used)
		assert_true(++smp < m->smp + ENGINE_MAD_ASKS);
	m->asked[m->asks % 4] = *ask;
	m->ah = *ask->ah;
	*id = 0x40 + m->asks++;
	*smp = (struct fake_smp){ .used = true, .id = *id, .looks = m->polls };
	memcpy(smp->answer.mad, ask->mad, MAD_LEN);
	memset(smp->answer.mad + SMP_OFF_DATA, 0, SMP_DATA_LEN);
	smp->answer.has_mad = m->subnet(m->subnet_arg, ask->mad, smp->answer.mad + SMP_OFF_DATA);
	smp->answer.end = smp->answer.has_mad ? MAD_END_OK : MAD_END_TIMEOUT;
	if (++m->under_way > m->most_under_way)
		m->most_under_way = m->under_way;
	return 0;
}

static struct fake_smp *
subnet_find(struct fake_mad *m, uint32_t id)
{
	unsigned int i;

	for (i = 0; i < ENGINE_MAD_ASKS; i++)
		if (m->smp[i].used && m->smp[i].id == id)
			return &m->smp[i];
	return NULL;
}

int
engine_mad_ask(struct engine *e, const struct engine_mad_ask *ask, uint32_t *id, struct error *err)
{
	struct fake_mad *m = &e->mad;
	struct engine_mad_answer *a = &m->answer;

	if (m->subnet != NULL)
		return subnet_ask(m, ask, id, err);
	m->asked[m->asks % 4] = *ask;
	m->ah = *ask->ah;
	memset(a, 0, sizeof(*a));
	memcpy(a->mad, ask->mad, MAD_LEN);
	a->elapsed_ns = 41250;
	a->has_mad = true;
	if (ask->many && ask->len > 0) {
		memcpy(m->data, ask->data, ask->len);
		a->mad[RMPP_OFF_FLAGS] = RMPP_ACTIVE;
	}
	a->data = ask->many ? m->data : NULL;
	a->len = ask->len;
	if (ask->qpn == 0)
		answer_smp(m, a->mad);
	else
		answer_live(m, ask->mad, ask->len > 0 ? m->data : a->mad + VENDOR_OFF_DATA);
	a->mad[MAD_OFF_METHOD] |= MAD_RESPONSE;
	a->status = status_of(m, ask);
	a->end = a->status != 0 ? MAD_END_STATUS : MAD_END_OK;
	if (is_lost(m)) {
		a->end = MAD_END_TIMEOUT;
		a->has_mad = false;
	}
	m->looks = m->lost_lid > 0 && m->ah.dlid == m->lost_lid + 1 ? UINT32_MAX : m->polls;
	m->forgotten = false;
	*id = 0x40 + m->asks++;
	return 0;
}

int
engine_mad_look(struct engine *e, uint32_t id, struct engine_mad_answer *a, struct error *err)
{
	struct fake_smp *smp = subnet_find(&e->mad, id);

	if (smp != NULL) {
		*a = smp->answer;
		a->done = smp->looks == 0;
		smp->looks -= !a->done;
		fake_wake(e);
		return 0;
	}
	if (e->mad.subnet != NULL || e->mad.forgotten || id != 0x40 + e->mad.asks - 1)
		return error_set(err, ENOENT, "there is no request %u (any more)", id);
	*a = e->mad.answer;
	a->done = e->mad.looks == 0;
	e->mad.looks -= !a->done;
	fake_wake(e);
	return 0;
}

void
engine_mad_forget(struct engine *e, uint32_t id)
{
	struct fake_smp *smp = subnet_find(&e->mad, id);

	if (smp != NULL) {
		smp->used = false;
		e->mad.under_way--;
	}
	e->mad.forgotten |= id == 0x40 + e->mad.asks - 1;
}

void
engine_live_counters(const struct engine *e, int worker, struct live_counters *sum)
{
	(void)e;
	memset(sum, 0, sizeof(*sum));
	sum->echo = worker < 0 ? 30 : 15;
}

/* --- subnet management --- */

bool
engine_sma_managed(const struct engine *e, unsigned int port)
{
	return e->port[port].ib;
}

void
engine_sma_counters(const struct engine *e, unsigned int port, struct sma_counters *c)
{
	memset(c, 0, sizeof(*c));
	if (engine_sma_managed(e, port))
		c->smp_get = 12;
}

unsigned int
engine_trap_list(struct engine *e, uint32_t *cursor, struct sma_trap_info *info, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && *cursor < e->sma.traps; i++) {
		++*cursor;
		info[i] = (struct sma_trap_info){
			.id = *cursor,
			.port = *cursor % 2,
			.state = SMA_TRAP_SENT,
			.number = 144,
			.type = 4,
			.sent = 3,
			.raised = 2,
			.age = 2500000,
			.tid = 0xabc,
			/* generic, informational, of a CA; trap 144; issuer 5 */
			.notice = { 0x84, 0, 0, 1, 0, 144, 0, 5 },
		};
	}
	return i;
}

int
engine_trap_send(struct engine *e, unsigned int port, uint16_t number, const uint8_t *notice,
	uint32_t *id, struct error *err)
{
	if (e->sma.traps >= 5)
		return error_set(err, EBUSY, "too many traps");
	e->sma.port = port;
	e->sma.number = number;
	if (notice != NULL)
		memcpy(e->sma.notice, notice, SMA_DATA_LEN);
	*id = 7;
	return 0;
}

int
engine_trap_repress(struct engine *e, uint32_t id, struct error *err)
{
	if (id != 7)
		return error_set(err, ENOENT, "trap: there is no trap %u", id);
	e->sma.repressed = id;
	return 0;
}

static int
check_sm(struct engine *e, unsigned int port, struct error *err)
{
	return e->port[port].ib ? 0 : error_set(err, EINVAL, "port: got %u, no manager", port);
}

int
engine_sm_take(struct engine *e, unsigned int port, struct engine_sm_smp *smp, unsigned int n,
	uint64_t *lost, struct error *err)
{
	int rc = check_sm(e, port, err);

	*lost = 4;
	if (rc != 0 || n == 0 || e->sma.smp.number == 0 || e->sma.smp_taken)
		return rc;
	e->sma.smp_taken = true;
	*smp = e->sma.smp;
	return 1;
}

const struct engine_sm_smp *
engine_sm_find(struct engine *e, uint32_t number)
{
	return number == e->sma.smp.number ? &e->sma.smp : NULL;
}

int
engine_sm_set(struct engine *e, unsigned int port, uint8_t state, uint8_t priority,
	struct error *err)
{
	e->sma.sm_state = state;
	e->sma.sm_priority = priority;
	return check_sm(e, port, err);
}

/* --- routes --- */

bool
link_lid_next(const struct link *l, unsigned int port, uint64_t *cursor, struct link_lid_info *info)
{
	const struct fake_sma *s = &((const struct engine *)l)->sma;

	(void)port;
	if (*cursor >= s->lids)
		return false;
	*info = s->lid[(*cursor)++];
	return true;
}

int
link_lid_set(struct link *l, unsigned int port, uint16_t lid, const uint8_t *mac, struct error *err)
{
	struct fake_sma *s = &((struct engine *)l)->sma;

	(void)port;
	(void)err;
	s->forgot = mac == NULL;
	s->lids = 1;
	s->lid[0] = (struct link_lid_info){ .lid = lid, .fixed = true };
	if (mac != NULL)
		memcpy(s->lid[0].mac, mac, 6);
	return 0;
}
