/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_LINK_H
#define LINK_LINK_H

/**
 * @file
 * ethdev ports: queues, encapsulation, addresses, neighbours (ARP, IPv6 ND), ICMP echo, VLAN,
 * LID routes, link state.
 *
 * A port has one RX and one TX queue per worker where the PMD allows; with fewer, some workers have
 * no RX queue of the port and packets reach them by hand-off, and TX queues are shared only through
 * the worker that owns one (see link_tx). Opening and closing happen on the control thread; a
 * struct link_worker belongs to its lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/verdict.h"
#include "port/port.h"
#include "wire/packet.h"
#include "wire/tx.h"

#define LINK_PORTS_MAX   32
#define LINK_ADDRS_MAX   16
#define LINK_WORKERS_MAX 128
#define LINK_BURST       32
#define LINK_LIDS_MAX    64 /* fixed LID routes of a port's configuration */

struct link;
struct link_worker;

/** One address of a port. */
struct link_addr {
	union gid gid; /**< IPv4-mapped or IPv6 */
	uint8_t prefix_len; /**< of the IPv4 or IPv6 address: 24, 64, ... */
	union gid gateway; /**< zero: none */
};

struct link_port_config {
	char name[32]; /**< ours: "port0" */
	/** ethdev name, PCI address, or "net_tap0,iface=x"; "" with .back_to_back */
	char device[256];
	char back_to_back[32]; /**< name of the other port of an in-process pair; "" otherwise */
	struct link_addr addr[LINK_ADDRS_MAX];
	unsigned int num_addr;
	uint16_t mtu; /**< 0: the device's */
	uint16_t vlan; /**< or PATH_NO_VLAN */
	uint16_t rx_desc; /**< 0: default */
	uint16_t tx_desc;
	uint32_t mbufs; /**< 0: computed from queues, descriptors and workers */
	bool rocev1; /**< speak RoCEv1 as well: GIDs get a v1 twin */
	uint8_t mac[6]; /**< zero: the device's */
	uint16_t pkeys[16];
	unsigned int num_pkeys; /**< 0: one, 0xFFFF */
	bool promiscuous;
	/**
	 * Native InfiniBand packets in Ethernet frames instead of RoCE: no IP addresses, no RoCEv1.
	 * LIDs, GIDs, P_Keys and the port's state are subnet management's, link_port_set().
	 */
	bool ib;
	uint16_t ethertype; /**< of these frames, 0: 0x88B5 */
	uint64_t guid; /**< of the port, 0: the EUI-64 of its MAC */
	/** Where packets to the permissive LID go; zero: who sent the last SMP, else all */
	uint8_t peer_mac[6];
	struct link_lid {
		uint16_t lid;
		uint8_t mac[6];
	} lids[LINK_LIDS_MAX]; /**< fixed routes from LID to MAC */
	unsigned int num_lids;
};

struct link_config {
	struct link_port_config port[LINK_PORTS_MAX];
	unsigned int num_ports;
	unsigned int workers;
	/** Bytes kept before each mbuf's data for its owner: sizeof(struct packet) at least. */
	uint16_t mbuf_priv;
	uint64_t hz;
	/** The workers are its readers, and quiescent between their turns; NULL: nobody polls */
	struct rte_rcu_qsbr *rcu;
	/**
	 * RoCE packets that tx_send() sends leave without an ICRC: for a benchmark whose other end
	 * does not look at it, never for a network
	 */
	bool icrc_off;
	/**
	 * Called while link_open() waits for the far end of a port (memif's server): the first time
	 * with a sentence for the user, then with NULL, some ten times a second. NULL: nobody wants
	 * to know. @return false: give up at once
	 */
	bool (*go_on_waiting)(const char *what);
};

/** Open, configure and start all ports. @p err says what to do about one that will not start. */
struct link *link_open(const struct link_config *config, struct error *err);
/**
 * A program's munmap() calls this before anything is unmapped: on EAL's interrupt thread it waits
 * until no worker can be reading what a memif peer has left behind; elsewhere it does nothing.
 */
void link_unmapping(void);
/** After the workers have stopped. */
void link_close(struct link *l);

unsigned int link_num_ports(const struct link *l);
/** Current attributes; immutable, valid until a grace period after their replacement. Any lcore. */
const struct port_attr *link_port_attr(const struct link *l, unsigned int port);
/**
 * Has the port lost a server that it has to connect to again itself, and is it time to try? One
 * thread calls this and link_reconnect(), and no worker.
 *
 * @param now  TSC
 */
bool link_is_lost(struct link *l, unsigned int port, uint64_t now);
/**
 * Try, while no worker polls the port. @retval false  there is no server, and the port must not be
 * polled before one is found
 */
bool link_reconnect(struct link *l, unsigned int port, uint64_t now);
/**
 * Worker 0: is the link itself up, whatever subnet management has made of the port? As it was seen
 * last, a few times a second.
 */
bool link_port_carrier(const struct link *l, unsigned int port);
/**
 * Has a valid packet for a LID of the port's come in on another VL than 15, since it was set Armed?
 * False in all other states. Any thread.
 */
bool link_port_heard_data(const struct link *l, unsigned int port);
/** ethdev id, for tools (pdump, telemetry). */
uint16_t link_ethdev(const struct link *l, unsigned int port);

/**
 * Control thread: index of the next hop for dgid out of @p port (on-link, gateway, or link-local),
 * made if it is new; the owning worker starts to resolve it at once. A port with a fixed peer MAC
 * needs none.
 */
int link_neighbour(struct link *l, unsigned int port, const union gid *sgid,
	const union gid *dgid, uint32_t *index, struct error *err);

struct link_neighbour_info {
	union gid gid;
	uint8_t mac[6];
	bool resolved;
	uint32_t age_ms; /**< since last confirmed */
	unsigned int port;
};
bool link_neighbour_next(const struct link *l, uint32_t *cursor, struct link_neighbour_info *info);

/**
 * Routes from LID to MAC of a native IB port: fixed ones, and those learned from the source LIDs of
 * received packets; those are forgotten after 30 to 60 s of silence. A packet to a LID without a
 * route goes to all (broadcast), as a switch would have it; receivers look at the LID.
 */
struct link_lid_info {
	uint16_t lid;
	uint8_t mac[6];
	bool fixed;
};
/** Walk them: *cursor 0 starts. Any thread. */
bool link_lid_next(const struct link *l, unsigned int port, uint32_t *cursor,
	struct link_lid_info *info);
/**
 * Control thread: a fixed route, in place of what was learned; mac NULL: forget what there is.
 *
 * @retval -EINVAL  no native IB port, or no unicast LID
 */
int link_lid_set(struct link *l, unsigned int port, uint16_t lid, const uint8_t *mac,
	struct error *err);

/* --- per worker --- */
struct link_worker *link_worker_create(struct link *l, unsigned int worker, struct error *err);
void link_worker_destroy(struct link_worker *w);
/** The worker itself: leave the port's device alone from now on, or poll it again. */
void link_worker_poll_port(struct link_worker *w, unsigned int port, bool poll);

/**
 * Take a burst from this worker's queues of all ports in turn. ARP, ND and echo are served inside;
 * what is dropped is counted inside. Transport packets come back parsed (headers only): the packet
 * view stands in its mbuf's private area.
 *
 * @param pkts  room for LINK_BURST
 * @return number of packets; the caller owns their mbufs and frees them with link_free()
 */
unsigned int link_rx(struct link_worker *w, uint64_t now, struct packet **pkts);
void link_free(struct packet **pkts, unsigned int n);

/** The worker's transmit sink: batches per port, completes headers and ICRC. */
struct tx_sink *link_tx_sink(struct link_worker *w);
/**
 * Worker 0's sink for SMPs of native IB ports (smp-sma 1): each port's VL15 has its own transmit
 * buffer and packets, and is served before whatever else waits there, so that no flood of data holds
 * them up. NULL where there is none: another worker, or no native IB port.
 */
struct tx_sink *link_smp_sink(struct link_worker *w);
/** Push out what is batched. */
void link_tx_flush(struct link_worker *w, uint64_t now);
/** Remember what drivers have not taken yet, behind link_tx_flush(). */
void link_tx_mark(struct link_worker *w);
/** Has all of it been taken since, or dropped? */
bool link_tx_left(const struct link_worker *w);
/** Timed work (neighbour retries and ageing, link state, gratuitous ARP), a few times a second. */
void link_tick(struct link_worker *w, uint64_t now);

/**
 * Worker 0: subnet management's settings of a native IB port become attributes at once, or, when
 * there were very many changes lately, within the next ticks.
 */
void link_port_set(struct link_worker *w, unsigned int port, const struct port_settings *s);

/** Single-writer counters of a port on a worker; relaxed readers. */
struct link_counters {
	uint64_t rx_packets;
	uint64_t rx_bytes;
	uint64_t tx_packets;
	uint64_t tx_bytes;
	uint64_t tx_no_mbuf; /**< sink had no buffer */
	uint64_t tx_full; /**< queue full: packet dropped after a bounded retry */
	uint64_t tx_unresolved; /**< next hop not resolved yet: packet dropped */
	uint64_t tx_port_state; /**< native IB: no SMP, and the port not Active or the SL without VL */
	uint64_t tx_flooded; /**< native IB: no route to the LID, sent to all */
	uint64_t lid_moved; /**< native IB: a learned LID was heard from another MAC */
	/** ICMP port unreachable for RoCE traffic: a kernel holds the peer's address, or ours */
	uint64_t port_unreachable;
	/* for performance management */
	uint64_t rx_pad; /**< native IB: bytes of rx_bytes that pad short frames */
	uint64_t tx_pad; /**< of tx_bytes, that pad short frames */
	uint64_t tx_wait; /**< ns that frames waited for a queue that took none */
	uint64_t verdict[VERDICT_COUNT];
};
struct link_counters *link_worker_counters(struct link_worker *w, unsigned int port);

struct link_state {
	bool up;
	uint32_t speed_mbps;
	uint16_t mtu;
	uint16_t rx_queues;
	uint16_t tx_queues;
	char driver[32];
	bool physical; /**< a PCI device, not one made of software */
	uint64_t rss; /**< RTE_ETH_RSS_ bits that spread frames over the queues; 0: not the device's choice */
	int numa_node;
	int memory_node; /**< of the packet buffers; -1: not known, without hugepages */
};
void link_state(const struct link *l, unsigned int port, struct link_state *state);

/** The NUMA node that memory of the EAL's is on; -1: not known, or not from hugepages. */
int link_memory_node(const void *mem);

#endif
