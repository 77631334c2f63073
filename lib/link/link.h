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
 * A port has one RX and one TX queue per worker if the PMD allows. With fewer, some workers have no
 * RX queue of the port and get packets by hand-off, and a worker without TX queue sends through a
 * worker that owns one. The control thread opens and closes ports; a struct link_worker belongs to
 * its lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/verdict.h"
#include "port/port.h"
#include "wire/packet.h"
#include "wire/tx.h"

#define LINK_PORTS_MAX        32
#define LINK_ADDRS_MAX        16
#define LINK_LEADER_ADDRS_MAX 4
#define LINK_WORKERS_MAX      128
#define LINK_BURST            32
#define LINK_LIDS_MAX         64 /* fixed LID routes of a port's configuration */

struct link;
struct link_worker;

/** One address of a port. */
struct link_addr {
	union gid gid; /**< IPv4-mapped or IPv6 */
	uint8_t prefix_len; /**< of the IPv4 or IPv6 address: 24, 64, ... */
	union gid gateway; /**< zero: none */
};

struct link_port_config {
	char name[32]; /**< for example "port0" */
	/** ethdev name, PCI address, or "net_tap0,iface=x"; "" with .back_to_back */
	char device[256];
	char back_to_back[32]; /**< name of the other port of an in-process pair; "" otherwise */
	struct link_addr addr[LINK_ADDRS_MAX];
	unsigned int num_addr;
	/** The engine adds and removes them: the port's while the fleet's leader is here. */
	struct link_addr leader_addr[LINK_LEADER_ADDRS_MAX];
	unsigned int num_leader_addr;
	uint16_t mtu; /**< 0: the device's */
	uint16_t vlan; /**< or PATH_NO_VLAN */
	uint16_t rx_desc; /**< 0: default */
	uint16_t tx_desc;
	uint32_t mbufs; /**< 0: computed from queues, descriptors and workers */
	bool rocev1; /**< use RoCEv1 as well: each GID gets a RoCEv1 entry too */
	uint8_t mac[6]; /**< zero: the device's */
	uint16_t pkeys[16];
	unsigned int num_pkeys; /**< 0: one, 0xFFFF */
	bool promiscuous;
	bool trusted; /**< memif only, required there: the peer may crash this process */
	/**
	 * Native InfiniBand packets in Ethernet frames instead of RoCE: no IP addresses, no RoCEv1.
	 * Subnet management sets LIDs, GIDs, P_Keys and the port's state by link_port_set().
	 */
	bool ib;
	uint16_t ethertype; /**< of these frames, 0: 0x88B5 */
	uint64_t guid; /**< of the port, 0: the EUI-64 of its MAC */
	/**
	 * MAC for packets to the permissive LID; zero: the sender of the last SMP, or else
	 * broadcast
	 */
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
	uint64_t hz;
	/**
	 * Its readers are the workers, which are quiescent between their turns; NULL: no workers
	 */
	struct rte_rcu_qsbr *rcu;
	/**
	 * RoCE packets are sent without an ICRC: only for a benchmark whose other end does
	 * not check it, never for a network
	 */
	bool icrc_off;
	/**
	 * Called while link_open() waits for the far end of a port (memif's server): the first time
	 * with a sentence for the user, then with NULL, up to fifty times a second. May be NULL.
	 * @return false: give up at once
	 */
	bool (*go_on_waiting)(const char *what);
};

/** Open, configure and start all ports. If one does not start, @p err says what to do. */
struct link *link_open(const struct link_config *config, struct error *err);
/**
 * munmap() of the program calls this before it unmaps. On EAL's interrupt thread it waits until no
 * worker can still read memory that a memif peer shared; on other threads it does nothing.
 */
void link_unmapping(void);
/** Call after the workers have stopped. */
void link_close(struct link *l);

unsigned int link_num_ports(const struct link *l);
/** Current attributes; immutable, valid until a grace period after their replacement. Any lcore. */
const struct port_attr *link_port_attr(const struct link *l, unsigned int port);
/**
 * True if the port has lost the memif server to which it must reconnect, and it is time to try.
 * Only one thread, no worker, may call this and link_reconnect().
 *
 * @param now  TSC
 */
bool link_is_lost(struct link *l, unsigned int port, uint64_t now);
/**
 * Try to reconnect; no worker may poll the port meanwhile. @retval false  there is no server; do
 * not poll the port until a later call succeeds
 */
bool link_reconnect(struct link *l, unsigned int port, uint64_t now);
/**
 * Worker 0: true if the physical link is up, whatever state subnet management gave the port. The
 * value is updated a few times a second.
 */
bool link_port_carrier(const struct link *l, unsigned int port);
/**
 * True if, since the port was set Armed, a valid packet to one of its LIDs came in on a VL other
 * than
 * 15. Any thread.
 */
bool link_port_heard_data(const struct link *l, unsigned int port);
/** ethdev id, for tools (pdump, telemetry). */
uint16_t link_ethdev(const struct link *l, unsigned int port);
/**
 * Path of the Unix socket that link_reconnect() connects to.
 *
 * @retval false  the port has none
 */
bool link_server_socket(const struct link *l, unsigned int port, char *path, size_t size);

/** Most neighbours, of all ports. */
#define LINK_NEIGHBOURS 16384

/**
 * Control thread: find or create the neighbour entry of the next hop to dgid (the destination
 * itself if it is on the link, else a gateway). Worker 0 starts to resolve a new entry at once.
 *
 * The index stays valid as long as somebody uses it: see link_neighbours_forget().
 */
int link_neighbour(struct link *l, unsigned int port, const union gid *sgid, const union gid *dgid,
	uint32_t *index, struct error *err);

/** Entries that nobody answers for, of one stranger, and of a user's programs. */
#define LINK_PER_STRANGER 16
#define LINK_PER_USER     256
/**
 * Control thread: may a stranger, at address @p who, make us ask for one more next hop? Entries
 * that nobody answers for are bounded, for each stranger by @p most, and for all of them; with
 * those that are resolved, strangers cause half of the table at most.
 */
bool link_neighbour_allowed(struct link *l, const union gid *who, uint32_t most);
/** Control thread: true if link_neighbour() makes no new entry. */
bool link_neighbour_known(const struct link *l, unsigned int port, const union gid *sgid,
	const union gid *dgid);
/** Control thread: this entry is there because of a stranger at address @p who. */
void link_neighbour_caused(struct link *l, uint32_t index, const union gid *who);

/** One bit for each neighbour that is in use. */
struct link_neighbours_used {
	uint64_t word[LINK_NEIGHBOURS / 64];
};

static inline void
link_neighbour_use(struct link_neighbours_used *used, uint32_t index)
{
	if (index < LINK_NEIGHBOURS)
		used->word[index / 64] |= UINT64_C(1) << index % 64;
}

/**
 * Control thread: there are more than @p kept entries, or one was refused lately: look for unused
 * ones.
 */
bool link_neighbours_due(const struct link *l, uint32_t kept);
/** Control thread: a search begins for the indexes that somebody uses. */
void link_neighbours_search(struct link *l);
/**
 * Control thread: the search has ended. An entry is idle if it is not in @p used, and
 * link_neighbour() returned it neither during this search nor during the one before: no operation
 * is about to use it. Remove all idle entries that nobody answers for; of those that are resolved,
 * the ones that have been idle for @p idle_s seconds, and then the ones idle for longest, until
 * @p kept entries are left. So addresses that nobody has cannot push out a peer's.
 *
 * @return number of entries removed
 */
uint32_t link_neighbours_forget(struct link *l, const struct link_neighbours_used *used,
	uint32_t kept, uint32_t idle_s);

struct link_neighbour_counts {
	uint32_t present;
	uint64_t forgotten; /**< entries removed because nobody used them */
	uint64_t refused; /**< new ones refused: the table, or a stranger's share, was full */
};
/** Control thread. */
void link_neighbour_counts(const struct link *l, struct link_neighbour_counts *counts);

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
 * received packets, which are forgotten after 30 to 60 s of silence. A packet to a LID without
 * route is broadcast; receivers check the LID.
 */
struct link_lid_info {
	uint16_t lid;
	uint8_t mac[6];
	bool fixed;
};
/** Walk them: *cursor 0 starts. Any thread. */
bool link_lid_next(const struct link *l, unsigned int port, uint64_t *cursor,
	struct link_lid_info *info);
/**
 * Control thread: set a fixed route, which replaces a learned one; mac NULL: remove the route.
 *
 * @retval -EINVAL  not a native IB port, or not a unicast LID
 */
int link_lid_set(struct link *l, unsigned int port, uint16_t lid, const uint8_t *mac,
	struct error *err);

/** What a worker reports about a port's addresses. */
struct link_news {
	enum link_news_kind {
		LINK_NEIGHBOUR_KNOWN, /**< the MAC address of .gid, .mac, has become known */
		LINK_NEIGHBOUR_MOVED, /**< .gid has another MAC address now, .mac */
		LINK_NEIGHBOUR_LOST, /**< .gid does not answer any more */
		LINK_ADDRESS_CONFLICT, /**< .mac uses our address .gid, too */
	} what;
	uint16_t port;
	union gid gid;
	uint8_t mac[6];
};
typedef void (*link_tell_fn)(void *arg, const struct link_news *news);

/* --- per worker --- */
struct link_worker *link_worker_create(struct link *l, unsigned int worker, struct error *err);
void link_worker_destroy(struct link_worker *w);
/** Before the worker runs: call @p tell on it with news. */
void link_worker_tell(struct link_worker *w, link_tell_fn tell, void *arg);
/** On the worker: stop to use the port's device, or use it again. */
void link_worker_poll_port(struct link_worker *w, unsigned int port, bool poll);

/**
 * Receive a burst from one of this worker's queues; queues and ports take turns. ARP, ND and echo
 * requests are answered and dropped frames counted inside. Transport packets come back with parsed
 * headers; the struct packet is in its mbuf's private area.
 *
 * @param pkts  room for LINK_BURST
 * @return number of packets; the caller owns their mbufs and frees them with link_free()
 */
unsigned int link_rx(struct link_worker *w, uint64_t now, struct packet **pkts);
void link_free(struct packet **pkts, unsigned int n);

/** The worker's transmit sink: completes headers and ICRC, and batches frames per port. */
struct tx_sink *link_tx_sink(struct link_worker *w);
/**
 * Worker 0's sink for SMPs of native IB ports (smp-sma 1). Each port's VL15 has its own transmit
 * buffer and packets and is served before other traffic, so that a flood of data does not delay
 * SMPs. NULL on other workers, or without native IB port.
 */
struct tx_sink *link_smp_sink(struct link_worker *w);
/** Send all batches. */
void link_tx_flush(struct link_worker *w, uint64_t now);
/** After link_tx_flush(): remember which frames the drivers have not taken yet. */
void link_tx_mark(struct link_worker *w);
/** True if all frames of the last link_tx_mark() have been taken or dropped since. */
bool link_tx_left(const struct link_worker *w);
/** Timed work (neighbour retries and ageing, link state, gratuitous ARP), a few times a second. */
void link_tick(struct link_worker *w, uint64_t now);

/**
 * Worker 0: publish subnet management's settings of a native IB port as its attributes, at once, or
 * after many recent changes within the next ticks.
 */
void link_port_set(struct link_worker *w, unsigned int port, const struct port_settings *s);

/** Control thread: whether the port can get this address, too. It is not one of another port. */
int link_check_address(const struct link *l, unsigned int port, const struct link_addr *addr,
	struct error *err);
/**
 * Control thread, which alone has the capabilities for it: let the device receive what comes to
 * this address, before link_add_address().
 */
void link_admit_address(struct link *l, unsigned int port, const struct link_addr *addr);
/**
 * Worker 0, while the control thread waits: the port gets an address that link_check_address() has
 * found good. It is published as the last GID, and announced to the neighbours.
 */
void link_add_address(struct link_worker *w, unsigned int port, const struct link_addr *addr);
/**
 * Worker 0, while the control thread waits: the port loses the address that link_add_address()
 * gave it last, and its GID. Nobody but the same address may come to its place within a grace
 * period.
 */
void link_remove_last_address(struct link_worker *w, unsigned int port);
/** Control thread: warn if this host's kernel holds an address of the port. */
void link_warn_of_kernel(const struct link *l, unsigned int port);

/** Frames that a device did not pass to a worker; they are not among rx_packets. */
struct link_drops {
	uint64_t rx_missed; /**< its receive queue was full */
	uint64_t rx_errors; /**< damaged */
	uint64_t rx_nombuf; /**< no buffer for them */
};

/**
 * Control thread: frames of link_drops.rx_missed that DPDK's driver does not report, because the
 * kernel dropped them.
 */
uint64_t link_ring_full(struct link *l, unsigned int port);

/** Single-writer counters of a port on a worker; relaxed readers. */
struct link_counters {
	uint64_t rx_packets;
	uint64_t rx_bytes;
	uint64_t tx_packets;
	uint64_t tx_bytes;
	uint64_t tx_no_mbuf; /**< no buffer for a packet */
	uint64_t tx_full; /**< queue full for too long: packet dropped */
	uint64_t tx_unresolved; /**< next hop not resolved yet: packet dropped */
	/** native IB: dropped, because the port is not Active or the SL has no VL */
	uint64_t tx_port_state;
	uint64_t tx_flooded; /**< native IB: no route to the LID, broadcast */
	uint64_t lid_moved; /**< native IB: a learned LID was heard from another MAC */
	/** ICMP port unreachable for RoCE traffic: a kernel holds the peer's address, or ours */
	uint64_t port_unreachable;
	uint64_t neighbour_moved; /**< entries moved to another MAC, the old one being silent */
	uint64_t
		/** claims of another MAC that were refused: the old one answered */
		neighbour_kept;
	/* for performance management */
	uint64_t rx_pad; /**< native IB: bytes of rx_bytes that are padding of short frames */
	uint64_t tx_pad; /**< bytes of tx_bytes that are padding of short frames */
	uint64_t tx_wait; /**< ns that frames waited for a full queue */
	uint64_t verdict[VERDICT_COUNT];
	struct link_drops drops; /**< of the device; 0 in the counters of a worker */
};
struct link_counters *link_worker_counters(struct link_worker *w, unsigned int port);

struct link_state {
	bool up;
	uint32_t speed_mbps;
	uint16_t mtu;
	uint16_t rx_queues;
	uint16_t tx_queues;
	char driver[32]; /**< of DPDK, such as "net_memif" */
	bool physical; /**< a PCI device, not a software device */
	/** RTE_ETH_RSS_ bits by which the device spreads frames over queues; 0: no RSS */
	uint64_t rss;
	int numa_node;
	int memory_node; /**< NUMA node of the packet buffers; -1: not known, without hugepages */
};
void link_state(const struct link *l, unsigned int port, struct link_state *state);

/** The NUMA node of memory from EAL; -1: not known, or not in hugepages. */
int link_memory_node(const void *mem);

#endif
