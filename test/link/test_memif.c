/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Two ports of this process connected by memif: port0 is the server, port1 the client. Each has its
 * own path to the socket, because the driver allows one role per path.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "bench.h"
#include "link/device.h"
#include "link/private.h"

static char dir[] = "/tmp/polca-memif-XXXXXX";
static char path[64], same_path[64];

static void
port_config(struct link_port_config *p, const char *name, const char *device)
{
	strcpy(p->name, name);
	snprintf(p->device, sizeof(p->device), "%s", device);
	p->vlan = PATH_NO_VLAN;
	p->trusted = true;
}

static void
server_config(struct link_config *c)
{
	char device[160];

	memset(c, 0, sizeof(*c));
	c->workers = 1;
	c->hz = BENCH_HZ;
	snprintf(device, sizeof(device), "net_memif6,role=server,socket-abstract=no,socket=%s",
		path);
	port_config(&c->port[0], "port0", device);
	c->num_ports = 1;
}

static void
client_config(struct link_port_config *p, const char *name)
{
	char device[160];

	snprintf(device, sizeof(device), "net_memif7,role=client,socket-abstract=no,socket=%s",
		same_path);
	port_config(p, name, device);
}

static void
memif_pair_config(struct link_config *c)
{
	server_config(c);
	client_config(&c->port[1], "port1");
	c->num_ports = 2;
}

static struct link *
must_open(const struct link_config *c)
{
	struct error err = { .text = "" };
	struct link *l = link_open(c, &err);

	assert_string_equal(err.text, "");
	assert_non_null(l);
	return l;
}

static void
memif_refused(const struct link_config *c, const char *text)
{
	struct error err = { .text = "" };

	assert_null(link_open(c, &err));
	assert_string_equal(err.text, text);
}

static bool
is_up(const struct link *l, unsigned int port)
{
	struct rte_eth_link link = { 0 };

	return rte_eth_link_get_nowait(link_ethdev(l, port), &link) == 0 && link.link_status;
}

/* Wait for the state, as EAL's interrupt thread connects the two ends. */
static void
await_link(const struct link *l, unsigned int port, bool up)
{
	unsigned int ms;

	for (ms = 0; ms < 10000 && is_up(l, port) != up; ms++)
		rte_delay_us_sleep(1000);
	assert_int_equal(is_up(l, port), up);
}

static void
test_client_finds_its_server(void **state)
{
	struct link_state s;
	struct link_config c;
	struct link *l;

	(void)state;
	memif_pair_config(&c);
	l = must_open(&c);
	await_link(l, 0, true);
	await_link(l, 1, true);
	link_state(l, 1, &s);
	assert_string_equal(s.driver, "net_memif");
	assert_int_equal(s.rx_queues, 1);
	assert_int_equal(link_port_attr(l, 0)->mtu, 1500);
	link_close(l);
	assert_int_equal(access(path, F_OK), -1);
}

/* After a crash of the server its socket file is left, on which nobody listens. */
static void
test_file_that_a_server_left_is_removed(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct link_config c;

	(void)state;
	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	memif_pair_config(&c);
	link_close(must_open(&c));
}

/*
 * An abstract socket has no file, even if its name looks like a path: what stands there is
 * another program's, whether that listens or not. The driver keeps a name for a while after its
 * device is gone, so each has another.
 */
static void
test_abstract_socket_leaves_files_alone(void **state)
{
	static const char *const arguments[] = { "", ",socket-abstract=yes" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct link_config c;
	unsigned int i;
	int fd;

	(void)state;
	for (i = 0; i < 2 * RTE_DIM(arguments); i++) {
		snprintf(addr.sun_path, sizeof(addr.sun_path), "%s-%u", path, i);
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
		if (i >= RTE_DIM(arguments))
			assert_int_equal(listen(fd, 1), 0);
		server_config(&c);
		snprintf(c.port[0].device, sizeof(c.port[0].device),
			"net_memif6,role=server,socket=%s%s", addr.sun_path,
			arguments[i % RTE_DIM(arguments)]);
		link_close(must_open(&c));
		assert_int_equal(access(addr.sun_path, F_OK), 0);
		close(fd);
		assert_int_equal(unlink(addr.sun_path), 0);
	}
}

/*
 * The client tries to connect again one second after it has lost its server, and every second.
 */
static void
test_client_connects_again(void **state)
{
	struct link_config c;
	struct link *l;
	uint64_t now = 100 * BENCH_HZ;

	(void)state;
	memif_pair_config(&c);
	l = must_open(&c);
	await_link(l, 1, true);
	assert_false(link_is_lost(l, 0, now)); /* only clients connect */
	assert_false(link_is_lost(l, 1, now));
	device_stop(&l->port[0]);
	await_link(l, 1, false);
	assert_false(link_is_lost(l, 1, now + BENCH_HZ - 1));
	assert_true(link_is_lost(l, 1, now + BENCH_HZ));
	now += BENCH_HZ;
	assert_int_equal(rte_eth_dev_start(link_ethdev(l, 0)), 0);
	l->port[0].started = true;
	assert_true(link_reconnect(l, 1, now));
	await_link(l, 1, true);
	assert_false(link_is_lost(l, 1, now + 10 * BENCH_HZ));
	link_close(l);
}

static void
test_client_without_its_server_stays_down(void **state)
{
	struct link_config c;
	struct link *l;
	uint64_t now = 100 * BENCH_HZ;

	(void)state;
	memif_pair_config(&c);
	l = must_open(&c);
	await_link(l, 1, true);
	assert_false(link_is_lost(l, 1, now));
	unlink(path);
	device_stop(&l->port[0]);
	await_link(l, 1, false);
	assert_true(link_is_lost(l, 1, now + BENCH_HZ));
	assert_false(link_reconnect(l, 1, now + BENCH_HZ));
	assert_false(link_is_lost(l, 1, now + 2 * BENCH_HZ - 1));
	assert_true(link_is_lost(l, 1, now + 2 * BENCH_HZ));
	assert_false(link_reconnect(l, 1, now + 2 * BENCH_HZ));
	link_close(l);
}

static char told[256];

/* Give up waiting as soon as the message has been logged. */
static bool
go_on_until_told(const char *what)
{
	bool go_on = told[0] == '\0';

	if (what != NULL)
		snprintf(told, sizeof(told), "%s", what);
	return go_on;
}

static void
test_waiting_for_a_server_can_be_ended(void **state)
{
	struct link_config c;
	char want[256];

	(void)state;
	server_config(&c);
	client_config(&c.port[0], "port0");
	c.go_on_waiting = go_on_until_told;
	snprintf(want, sizeof(want), "port0: stopped while it waited for the memif server at %s",
		same_path);
	memif_refused(&c, want);
	snprintf(want, sizeof(want),
		"port0: waiting for the memif server at %s: start it, or stop this one with "
		"Ctrl-C (gives up after 5 s)",
		same_path);
	assert_string_equal(told, want);
}

static void
test_server_that_does_not_exist(void **state)
{
	struct link_config c;
	char want[256];

	(void)state;
	server_config(&c);
	client_config(&c.port[0], "port0");
	snprintf(want, sizeof(want),
		"port0: no memif server listens at %s: start it first (role=server), or give its socket",
		same_path);
	memif_refused(&c, want);
}

/* A server with another memif id, for example, is reachable but refuses the connection. */
static void
test_server_that_takes_no_connection(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct link_config c;
	char want[256];

	(void)state;
	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 64), 0);
	server_config(&c);
	client_config(&c.port[0], "port0");
	snprintf(want, sizeof(want),
		"port0: the memif server at %s takes no connection: give both ends the same id, "
		"secret, bsize and number of workers",
		same_path);
	memif_refused(&c, want);
	close(fd);
	unlink(path);
}

/* A frame uses one buffer, of which 22 bytes are headers. */
static void
test_buffers_fit_the_mtu(void **state)
{
	struct link_config c;
	struct link *l;

	(void)state;
	memif_pair_config(&c);
	c.port[0].mtu = c.port[1].mtu = 4200; /* bsize is chosen for it */
	l = must_open(&c);
	await_link(l, 1, true);
	assert_int_equal(link_port_attr(l, 1)->mtu, 4200);
	link_close(l);
	c.port[0].mtu = 2027;
	strcat(c.port[0].device, ",bsize=2048");
	memif_refused(&c,
		"port0: mtu: got 2027, net_memif allows up to 2026 with its bsize argument of now");
}

static int
memif_make_dir(void **state)
{
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/memif", dir);
	snprintf(same_path, sizeof(same_path), "%s//memif", dir);
	return bench_eal(state);
}

static int
memif_remove_dir(void **state)
{
	bench_eal_cleanup(state);
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_client_finds_its_server),
		cmocka_unit_test(test_file_that_a_server_left_is_removed),
		cmocka_unit_test(test_abstract_socket_leaves_files_alone),
		cmocka_unit_test(test_client_connects_again),
		cmocka_unit_test(test_client_without_its_server_stays_down),
		cmocka_unit_test(test_waiting_for_a_server_can_be_ended),
		cmocka_unit_test(test_server_that_does_not_exist),
		cmocka_unit_test(test_server_that_takes_no_connection),
		cmocka_unit_test(test_buffers_fit_the_mtu),
	};

	return cmocka_run_group_tests_name("link: memif", tests, memif_make_dir, memif_remove_dir);
}
