/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz the neighbour table with what its users and strangers do. Input: records {operation,
 * argument}. Hosts with an even number answer questions. A neighbour in use keeps its entry; the
 * address of a host that answers does not move to another MAC, however often that is claimed; when
 * nobody uses the entries, all are forgotten.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../link/bench.h"
#include "wire/bytes.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOSTS     64
#define HOST_0    64 /* 10.0.0.64 is host 0 */
#define OWN_MAC   0x02 /* first byte of a host's MAC; its last one is the host's number */
#define FALSE_MAC 0x06
#define STEP_MS   10

static struct bench net;
static struct {
	bool used;
	bool owns; /* its entry had its own MAC, and it answers */
	uint32_t index;
} hosts[HOSTS];

static void
neigh_must(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "fuzz_neigh: %s\n", what);
	abort();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (bench_eal(NULL) != 0)
		abort();
	bench_config(&net);
	bench_open(&net);
	return 0;
}

static union gid
subnet_address(const char *subnet, unsigned int last)
{
	union gid g;

	neigh_must(gid_parse(subnet, &g), "an address");
	g.raw[15] = (uint8_t)last;
	return g;
}

static bool
entry_of(unsigned int host, struct link_neighbour_info *info)
{
	union gid g = subnet_address("10.0.0.0", HOST_0 + host);
	uint32_t cursor = 0;

	while (link_neighbour_next(net.link, &cursor, info))
		if (gid_equal(&info->gid, &g))
			return true;
	return false;
}

static void
host_ask(unsigned int host)
{
	union gid s = subnet_address("10.0.0.0", 2), d = subnet_address("10.0.0.0", HOST_0 + host);
	struct error err = { "" };
	uint32_t index;

	neigh_must(link_neighbour(net.link, 0, &s, &d, &index, &err) == 0, err.text);
	neigh_must(!hosts[host].used || hosts[host].index == index, "an entry in use moved");
	hosts[host].index = index;
}

/* An ARP reply that says where the host is. */
static void
host_say(unsigned int host, uint8_t mac)
{
	char frame[128];

	snprintf(frame, sizeof(frame),
		"020000000002 %02x00000000%02x 0806 0001080006040002 %02x00000000%02x 0a0000%02x"
		"020000000002 0a000002",
		mac, host, mac, host, HOST_0 + host);
	bench_inject(&net, frame);
	bench_poll(&net, 0);
}

/* Hosts that answer do so for each question. */
static void
answer_questions(void)
{
	bool asked[HOSTS] = { false };
	struct rte_mbuf *m;
	const uint8_t *arp;
	unsigned int host;

	while (rte_ring_dequeue(net.out[0], (void **)&m) == 0) {
		arp = rte_pktmbuf_mtod_offset(m, const uint8_t *, 14);
		host = arp[27] - (unsigned int)HOST_0;
		if (m->data_len >= 42 && get_be16(arp + 6) == 1 && host < HOSTS)
			asked[host] = true;
		rte_pktmbuf_free(m);
	}
	for (host = 0; host < HOSTS; host += 2)
		if (asked[host])
			host_say(host, OWN_MAC);
}

static void
forget_unused(uint32_t kept, uint32_t idle_s)
{
	struct link_neighbours_used used = { { 0 } };
	unsigned int host;

	link_neighbours_search(net.link);
	for (host = 0; host < HOSTS; host++)
		if (hosts[host].used)
			link_neighbour_use(&used, hosts[host].index);
	link_neighbours_forget(net.link, &used, kept, idle_s);
}

static void
neigh_step(uint8_t operation, uint8_t argument)
{
	union gid stranger = subnet_address("10.0.1.0", argument % 4);
	unsigned int host = argument % HOSTS;

	switch (operation % 7) {
	case 0:
		host_ask(host);
		hosts[host].used = true;
		break;
	case 1:
		hosts[host].used = false;
		break;
	case 2:
		host_say(host, OWN_MAC);
		break;
	case 3:
		host_say(host, FALSE_MAC);
		break;
	case 4:
		net.now += argument * (uint64_t)STEP_MS * (BENCH_HZ / 1000);
		link_tick(net.worker[0], net.now);
		link_tx_flush(net.worker[0], net.now);
		break;
	case 5:
		forget_unused(argument, argument / 8);
		break;
	default:
		if (!link_neighbour_allowed(net.link, &stranger, LINK_PER_STRANGER))
			break;
		host_ask(host);
		link_neighbour_caused(net.link, hosts[host].index, &stranger);
	}
	answer_questions();
}

static void
check_hosts(void)
{
	struct link_neighbour_info info;
	unsigned int host;
	bool own;

	for (host = 0; host < HOSTS; host++) {
		if (!entry_of(host, &info)) {
			neigh_must(!hosts[host].used, "an entry in use is forgotten");
			hosts[host].owns = false;
			continue;
		}
		own = info.resolved && info.mac[0] == OWN_MAC;
		neigh_must(!hosts[host].owns || own, "the address of a host that answers moved");
		hosts[host].owns = own && host % 2 == 0;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct link_neighbour_counts counts;
	unsigned int i;

	for (; size >= 2; data += 2, size -= 2) {
		neigh_step(data[0], data[1]);
		check_hosts();
	}
	memset(hosts, 0, sizeof(hosts));
	for (i = 0; i < 3; i++)
		forget_unused(0, 0);
	link_neighbour_counts(net.link, &counts);
	neigh_must(counts.present == 0, "entries that nobody uses are left");
	bench_poll(&net, 0);
	answer_questions();
	bench_free(&net);
	return 0;
}
