/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * List and raise traps for the operator, and the Notice attribute.
 */

#include <errno.h>

#include "sma/trap.h"

/* The newest trap of a port that is older than @p than (NULL: of all). NULL: none */
static const struct sma_trap *
trap_next_older(const struct sma_port *p, const struct sma_trap *than)
{
	const struct sma_trap *next = NULL;

	for (unsigned int i = 0; i < SMA_TRAPS_MAX; i++) {
		const struct sma_trap *t = &p->trap[i];

		if (t->info.state != SMA_TRAP_FREE && (than == NULL || trap_older(t, than)) &&
			(next == NULL || trap_older(next, t)))
			next = t;
	}
	return next;
}

/* The cursor is the position, from 1 and over all ports, of the trap returned last. */
bool
sma_trap_next(const struct sma *s, uint32_t *cursor, uint64_t now, struct sma_trap_info *info)
{
	uint32_t last = *cursor - 1, i = *cursor == 0 ? 0 : last / SMA_TRAPS_MAX;
	const struct sma_trap *t = NULL;

	if (i >= s->num_ports)
		return false;
	if (*cursor != 0)
		t = &s->port[i].trap[last % SMA_TRAPS_MAX];
	t = trap_next_older(&s->port[i], t);
	while (t == NULL && ++i < s->num_ports)
		t = trap_next_older(&s->port[i], NULL);
	if (t == NULL)
		return false;
	*cursor = i * SMA_TRAPS_MAX + (uint32_t)(t - s->port[i].trap) + 1;
	*info = t->info;
	info->age = now - t->first;
	return true;
}

/*
 * Build a notice with details from the port. @retval false  not a trap that can be raised by hand
 */
static bool
trap_make_notice(struct sma_port *p, uint16_t number, uint8_t *notice)
{
	switch (number) {
	case TRAP_LINK_INTEGRITY:
	case TRAP_BUFFER_OVERRUN:
	case TRAP_FLOW_CONTROL:
		sma_notice_link(p, number, notice);
		return true;
	case TRAP_LOCAL_CHANGE:
		sma_notice_change(p, 0, notice);
		return true;
	case TRAP_SYSTEM_IMAGE:
		sma_notice_image(p, notice);
		return true;
	default:
		return false;
	}
}

int
sma_trap_send(struct sma *s, uint16_t port, uint16_t number, const uint8_t *notice, uint64_t now,
	uint32_t *id, struct error *err)
{
	struct sma_port *p = sma_port_find(s, port);
	uint8_t made[SMA_DATA_LEN];
	struct sma_trap *t;

	if (p == NULL)
		return error_set(err, EINVAL, "port: got %u, it has no subnet management agent",
			port);
	if (number == 0 && notice != NULL)
		t = trap_raise(p, notice, false, now);
	else if (trap_make_notice(p, number, made))
		t = sma_trap_raise(p, made, now);
	else
		return error_set(err, EINVAL,
			"number: got %u, allowed: 129, 130, 131, 144, 145, or 0 with a notice",
			number);
	if (t == NULL)
		return error_set(err, EBUSY,
			"port %u: %u traps a second is the limit, and %u pending ones", port,
			s->config.limits.trap_rate, SMA_TRAPS_MAX);
	*id = t->info.id;
	return 0;
}

bool
sma_trap_newest(const struct sma_port *p, uint8_t notice[SMA_DATA_LEN])
{
	const struct sma_trap *t = trap_next_older(p, NULL);

	while (t != NULL && t->info.state == SMA_TRAP_REPRESSED)
		t = trap_next_older(p, t);
	if (t != NULL)
		memcpy(notice, t->info.notice, SMA_DATA_LEN);
	return t != NULL;
}
