/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A memif client connects only when its device starts. At first, before the workers run, it waits
 * some seconds for its server. If it loses the server later, the device is restarted again and
 * again, while no worker polls it, until the server is back.
 */

#include "link/device.h"
#include "link/private.h"

#define RECONNECT_S 1
#define WAIT_S      5
#define TRY_MS      200
#define LOOK_MS     20

bool
link_is_lost(struct link *l, unsigned int port, uint64_t now)
{
	struct link_port *p = &l->port[port];
	struct rte_eth_link link = { 0 };

	if (!p->reconnects)
		return false;
	if (p->started && (rte_eth_link_get_nowait(p->ethdev, &link) != 0 || link.link_status))
		p->reconnect_at = now + RECONNECT_S * l->cfg.hz;
	return now >= p->reconnect_at;
}

int
memif_log_lower(int level)
{
	int type = rte_log_register("pmd.net.memif"), before = rte_log_get_level(type);

	if (before > level)
		rte_log_set_level(type, level);
	return before;
}

void
memif_log_restore(int before)
{
	rte_log_set_level(rte_log_register("pmd.net.memif"), before);
}

/* The driver logs each failed attempt as an error: hide these, or they would fill the log. */
static int
start_quietly(uint16_t ethdev)
{
	int before = memif_log_lower(RTE_LOG_CRIT);
	int rc = rte_eth_dev_start(ethdev);

	memif_log_restore(before);
	return rc;
}

/* @return 0 connected, -EINTR given up, -EAGAIN */
static int
await_connection(const struct link *l, const struct link_port *p)
{
	struct rte_eth_link link = { 0 };
	unsigned int ms;

	for (ms = 0; ms < TRY_MS; ms += LOOK_MS) {
		if (rte_eth_link_get_nowait(p->ethdev, &link) == 0 && link.link_status)
			return 0;
		if (l->cfg.go_on_waiting != NULL && !l->cfg.go_on_waiting(NULL))
			return -EINTR;
		rte_delay_us_sleep(LOOK_MS * 1000);
	}
	return -EAGAIN;
}

static void
say_waiting(const struct link *l, const struct link_port *p, const char *path)
{
	char text[256];

	snprintf(text, sizeof(text),
		"%s: waiting for the memif server at %s: start it, or stop this "
		"one with Ctrl-C (gives up after %d s)",
		p->cfg.name, path, WAIT_S);
	if (l->cfg.go_on_waiting != NULL)
		l->cfg.go_on_waiting(text);
	else
		LINK_LOG(NOTICE, "%s", text);
}

bool
link_server_socket(const struct link *l, unsigned int port, char *path, size_t size)
{
	const struct link_port *p = &l->port[port];
	bool server;

	return p->reconnects && device_socket(p->args, path, size, &server);
}

/* A server that is just starting may reject a client, so the client tries again. */
int
memif_client_start(const struct link *l, struct link_port *p, struct error *err)
{
	char path[128];
	uint64_t until = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
	bool reached = false, told = false, server;
	int rc;

	device_socket(p->args, path, sizeof(path), &server);
	while (rte_get_tsc_cycles() < until) {
		p->started = start_quietly(p->ethdev) == 0;
		reached |= p->started;
		rc = await_connection(l, p);
		if (rc == 0)
			return 0;
		device_stop(p);
		if (rc == -EINTR)
			return port_error(p, err, EINTR,
				"stopped while it waited for the memif server at %s", path);
		if (!told)
			say_waiting(l, p, path);
		told = true;
	}
	return error_set(err, ECONNREFUSED,
		reached ? "%s: the memif server at %s takes no connection: give both ends the same id, secret, "
			  "bsize and number of workers"
			: "%s: no memif server listens at %s: start it first (role=server), or give its socket",
		p->cfg.name, path);
}

bool
link_reconnect(struct link *l, unsigned int port, uint64_t now)
{
	struct link_port *p = link_port_at(l, port);

	p->reconnect_at = now + RECONNECT_S * l->cfg.hz;
	device_stop(p);
	p->started = start_quietly(p->ethdev) == 0;
	return p->started;
}

void
link_worker_poll_port(struct link_worker *w, unsigned int port, bool poll)
{
	unsigned int i;

	RTE_ASSERT(port < w->link->num_ports);
	for (i = 0; i < w->num_rx; i++)
		if (w->rx[i].port->index == port)
			w->rx[i].stopped = !poll;
	tx_stop(w->tx[port], !poll);
}
