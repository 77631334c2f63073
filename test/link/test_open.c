/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Opening and closing of links: pairs of ports inside the process, vdevs, and configurations that
 * are refused.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ib.h"
#include "../wire/build.h"
#include "wire/wire.h"

static void
open_pair_config(struct link_config *c, unsigned int workers)
{
	memset(c, 0, sizeof(*c));
	c->num_ports = 2;
	c->workers = workers;
	c->hz = BENCH_HZ;
	strcpy(c->port[0].name, "port0");
	strcpy(c->port[0].back_to_back, "port1");
	strcpy(c->port[1].name, "port1");
	strcpy(c->port[1].back_to_back, "port0");
	c->port[0].vlan = c->port[1].vlan = PATH_NO_VLAN;
	assert_true(gid_parse("10.0.0.1", &c->port[0].addr[0].gid));
	assert_true(gid_parse("10.0.0.2", &c->port[1].addr[0].gid));
	c->port[0].num_addr = c->port[1].num_addr = 1;
	c->port[0].addr[0].prefix_len = c->port[1].addr[0].prefix_len = 24;
}

static struct path
path_from(struct link *l, unsigned int port)
{
	const struct port_attr *a = link_port_attr(l, port);
	struct av av = { .encap = ENCAP_ROCEV2_IPV4, .port = port, .vlan = PATH_NO_VLAN };
	struct error err;
	struct path p;

	av.sgid = a->gid[0].gid;
	av.dgid = link_port_attr(l, !port)->gid[0].gid;
	memcpy(av.smac, a->mac, 6);
	path_init(&p, &av, 0x11, 0x12);
	assert_int_equal(link_neighbour(l, port, &av.sgid, &av.dgid, &p.neighbour, &err), 0);
	return p;
}

static void
send_psn(struct link_worker *w, const struct path *path, uint32_t psn)
{
	struct wire_headers h = {
		.opcode = RC_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 0x12,
		.psn = psn,
	};
	uint8_t *bth = tx_reserve(link_tx_sink(w), path, BTH_LEN + 4096);

	assert_non_null(bth);
	wire_build(bth, &h);
	memset(bth + BTH_LEN, psn, 4096);
	tx_commit(link_tx_sink(w));
}

static void
expect_psn(struct link_worker *w, unsigned int port, uint32_t psn)
{
	struct packet *pkts[LINK_BURST];
	enum verdict why;

	assert_int_equal(link_rx(w, 1, pkts), 1);
	assert_int_equal(pkts[0]->port, port);
	assert_int_equal(pkts[0]->psn, psn);
	assert_int_equal(pkts[0]->payload_len, 4096);
	assert_int_equal(pkts[0]->payload[4095], psn);
	assert_true(wire_crc_ok(pkts[0], &why));
	link_free(pkts, 1);
}

static void
test_pair_carries_packets_both_ways(void **state)
{
	struct error err = { 0 };
	struct link_config c;
	struct link_worker *w[2];
	struct link_state s;
	struct path there, back;
	struct link *l;
	unsigned int i;

	(void)state;
	open_pair_config(&c, 2);
	l = link_open(&c, &err);
	assert_string_equal(err.text, "");
	assert_non_null(l);
	for (i = 0; i < 2; i++)
		w[i] = link_worker_create(l, i, &err);
	link_state(l, 0, &s);
	assert_true(s.up);
	assert_string_equal(s.driver, "net_ring");
	assert_int_equal(s.rx_queues, 2);
	assert_int_equal(link_port_attr(l, 0)->active_mtu, 4096);
	assert_int_equal(link_port_attr(l, 0)->pkey[0], 0xFFFF);
	assert_memory_not_equal(link_port_attr(l, 0)->mac, link_port_attr(l, 1)->mac, 6);
	/* no address resolution is needed; each worker has its own pair of rings */
	there = path_from(l, 0);
	back = path_from(l, 1);
	for (i = 0; i < 2; i++) {
		send_psn(w[i], &there, 10 + i);
		send_psn(w[i], &back, 20 + i);
		link_tx_flush(w[i], 1);
		expect_psn(w[i], 0, 20 + i);
		expect_psn(w[i], 1, 10 + i);
	}
	for (i = 0; i < 2; i++) {
		assert_int_equal(link_worker_counters(w[i], 0)->tx_packets, 1);
		assert_int_equal(link_worker_counters(w[i], 1)->rx_packets, 1);
		assert_int_equal(link_worker_counters(w[i], 1)->rx_bytes, 14 + 28 + 12 + 4096 + 4);
		assert_int_equal(link_worker_counters(w[i], 0)->tx_unresolved, 0);
		link_worker_destroy(w[i]);
	}
	link_close(l);
}

/* A wrong address is refused at once instead of by a timeout. */
static void
test_pair_reaches_only_its_two_addresses(void **state)
{
	struct error err = { 0 };
	struct link_config c;
	union gid from, to;
	struct link *l;
	uint32_t index;

	(void)state;
	open_pair_config(&c, 1);
	l = link_open(&c, &err);
	assert_non_null(l);
	assert_true(gid_parse("10.0.0.1", &from));
	assert_true(gid_parse("10.0.0.3", &to));
	assert_int_equal(link_neighbour(l, 0, &from, &to, &index, &err), -EHOSTUNREACH);
	assert_string_equal(err.text,
		"dgid: 10.0.0.3 is nobody's: port0 is joined back to back to "
		"port1, whose addresses are 10.0.0.2");
	assert_int_equal(link_neighbour(l, 0, &from, &from, &index, &err), 0);
	assert_true(gid_parse("224.0.0.1", &to));
	assert_int_equal(link_neighbour(l, 0, &from, &to, &index, &err), 0);
	link_close(l);
}

/* A link can be opened again after it was closed: nothing is left. */
static void
test_pair_opens_again(void **state)
{
	struct error err = { 0 };
	struct link_config c;
	unsigned int i;
	struct link *l;

	(void)state;
	for (i = 0; i < 3; i++) {
		open_pair_config(&c, 20); /* more workers than net_ring has queues */
		c.port[0].rx_desc = c.port[1].rx_desc = 128;
		l = link_open(&c, &err);
		assert_string_equal(err.text, "");
		link_close(l);
	}
}

static void
open_refused(const struct link_config *c, const char *text)
{
	struct error err = { 0 };

	assert_null(link_open(c, &err));
	assert_string_equal(err.text, text);
}

static void
test_bad_configurations_are_refused(void **state)
{
	struct link_config c;

	(void)state;
	open_pair_config(&c, 1);
	strcpy(c.port[0].back_to_back, "port7");
	open_refused(&c, "port0: back_to_back: got \"port7\", which is no other port");
	open_pair_config(&c, 1);
	strcpy(c.port[0].back_to_back, "port0");
	open_refused(&c, "port0: back_to_back: got \"port0\", which is no other port");
	open_pair_config(&c, 1);
	strcpy(c.port[1].device, "net_null0");
	open_refused(&c, "port0: back_to_back and device exclude each other (port0 and port1)");
	open_pair_config(&c, 1);
	c.port[0].back_to_back[0] = '\0';
	c.port[1].back_to_back[0] = '\0';
	open_refused(&c,
		"port0: device is missing: a PCI address or a vdev, or back_to_back with the "
		"name of another port");
	open_pair_config(&c, 0);
	open_refused(&c, "workers: got 0, allowed 1..128");
	assert_null(link_open(&c, NULL));
}

static void
ib_pair_config(struct link_config *c)
{
	unsigned int i;

	open_pair_config(c, 1);
	for (i = 0; i < 2; i++) {
		c->port[i].num_addr = 0;
		c->port[i].ib = true;
	}
}

static struct path
ib_path_from(struct link *l, unsigned int port)
{
	const struct port_attr *a = link_port_attr(l, port);
	struct av av = ib_path(link_port_attr(l, !port)->lid, 1).av;
	struct path p;

	av.port = port;
	av.slid = a->lid;
	memcpy(av.smac, a->mac, 6);
	path_init(&p, &av, 1, 1);
	return p;
}

static void
test_native_pair_finds_its_lids(void **state)
{
	struct error err = { 0 };
	struct bench b = { .num_pkts = 0 };
	struct port_settings s[2];
	struct path there, back;
	unsigned int i;

	(void)state;
	ib_pair_config(&b.cfg);
	b.link = link_open(&b.cfg, &err);
	assert_string_equal(err.text, "");
	b.worker[0] = link_worker_create(b.link, 0, &err);
	for (i = 0; i < 2; i++) {
		s[i] = ib_settings(PORT_STATE_ACTIVE, i + 1, 0);
		s[i].mtu = 4096;
		link_port_set(b.worker[0], i, &s[i]);
		assert_int_equal(link_port_attr(b.link, i)->active_mtu, 4096);
	}
	there = ib_path_from(b.link, 0);
	back = ib_path_from(b.link, 1);
	/* the first packet is broadcast, the answer is not */
	ib_send(&b, &there);
	assert_int_equal(bench_poll(&b, 0), 1);
	assert_int_equal(b.pkts[0]->port, 1);
	assert_int_equal(b.pkts[0]->dlid, 2);
	ib_send(&b, &back);
	assert_int_equal(bench_poll(&b, 0), 1);
	assert_int_equal(b.pkts[0]->port, 0);
	assert_int_equal(b.pkts[0]->slid, 2);
	assert_int_equal(link_worker_counters(b.worker[0], 0)->tx_flooded, 1);
	assert_int_equal(link_worker_counters(b.worker[0], 1)->tx_flooded, 0);
	bench_free(&b);
	link_worker_destroy(b.worker[0]);
	link_close(b.link);
}

static void
test_bad_native_ports_are_refused(void **state)
{
	struct link_config c;

	(void)state;
	ib_pair_config(&c);
	c.port[1].num_addr = 1;
	open_refused(&c,
		"port1: addresses: got 1, but a native InfiniBand port has none: LIDs and "
		"GIDs are subnet management's");
	ib_pair_config(&c);
	c.port[0].rocev1 = true;
	open_refused(&c, "port0: rocev1 and native InfiniBand exclude each other");
	ib_pair_config(&c);
	c.port[0].ethertype = 0x05DC;
	open_refused(&c, "port0: ethertype: got 0x05dc, allowed 0x0600..0xffff but 0x8100");
	c.port[0].ethertype = 0x8100;
	open_refused(&c, "port0: ethertype: got 0x8100, allowed 0x0600..0xffff but 0x8100");
	ib_pair_config(&c);
	c.port[0].mtu = 335;
	open_refused(&c,
		"port0: mtu: got 335, native InfiniBand needs 336 or more: a path MTU of 256 "
		"and its headers");
	ib_pair_config(&c);
	c.port[0].num_lids = 65;
	open_refused(&c, "port0: LID routes: got 65, allowed up to 64");
	ib_pair_config(&c);
	c.port[0].lids[0] = (struct link_lid){ 0xC000, { 2, 0, 0, 0, 0, 1 } };
	c.port[0].num_lids = 1;
	open_refused(&c, "port0: lid: got 0xc000, allowed 1..0xbfff");
	c.port[0].lids[0] = (struct link_lid){ 3, { 0 } };
	open_refused(&c, "port0: mac of LID 3: neither zero nor a group address is a port's");
}

/* A vdev is plugged with its arguments, and unplugged at the end. */
static void
test_vdev_is_plugged_and_unplugged(void **state)
{
	struct error err = { 0 };
	struct link_config c;
	struct link *l;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		open_pair_config(&c, 1);
		c.num_ports = 1;
		c.port[0].back_to_back[0] = '\0';
		strcpy(c.port[0].device, "net_null7,size=64,no-rx=1");
		l = link_open(&c, &err);
		assert_string_equal(err.text, "");
		assert_non_null(l);
		link_close(l);
	}
	strcpy(c.port[0].device, "net_nonesuch0,iface=x");
	assert_null(link_open(&c, &err));
	assert_non_null(strstr(err.text,
		"port0: device net_nonesuch0,iface=x: DPDK has no driver net_nonesuch: "));
}

/*
 * vhost and memif leave their socket file. The next start removes it, but not one in use.
 */
static void
test_stale_socket_is_removed_and_a_live_one_is_left(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/polca-link-XXXXXX";
	struct error err = { 0 };
	struct link_config c;
	char want[256];
	struct link *l;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/vhost", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	open_pair_config(&c, 1);
	c.num_ports = 1;
	c.port[0].back_to_back[0] = '\0';
	snprintf(c.port[0].device, sizeof(c.port[0].device), "net_vhost7,iface=%s", addr.sun_path);
	snprintf(want, sizeof(want), "port0: another program listens on %s", addr.sun_path);
	assert_null(link_open(&c, &err));
	assert_string_equal(err.text, want);
	assert_int_equal(access(addr.sun_path, F_OK), 0);
	close(fd);
	memset(&err, 0, sizeof(err));
	l = link_open(&c, &err);
	assert_string_equal(err.text, "");
	assert_non_null(l);
	assert_false(link_port_attr(l, 0)->up); /* no guest yet */
	link_close(l);
	unlink(addr.sun_path);
	assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pair_carries_packets_both_ways),
		cmocka_unit_test(test_pair_reaches_only_its_two_addresses),
		cmocka_unit_test(test_pair_opens_again),
		cmocka_unit_test(test_bad_configurations_are_refused),
		cmocka_unit_test(test_native_pair_finds_its_lids),
		cmocka_unit_test(test_bad_native_ports_are_refused),
		cmocka_unit_test(test_vdev_is_plugged_and_unplugged),
		cmocka_unit_test(test_stale_socket_is_removed_and_a_live_one_is_left),
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
