/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_PRIVATE_H
#define LINK_PRIVATE_H

/* Private to lib/link: declarations that its files share. */

/* the system's headers for the whole folder */
#include <errno.h>
#include <libgen.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_debug.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "base/atomic.h"
#include "base/token_bucket.h"
#include "link/link.h"
#include "link/rx_template.h"
#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/wire.h"

extern int link_logtype;
#define LINK_LOG(level, fmt, ...)                                                                  \
	rte_log(RTE_LOG_##level, link_logtype, "link: " fmt "\n", ##__VA_ARGS__)
/* Log of a port, or set an error: with the port's name in front. */
#define PORT_LOG(p, level, fmt, ...) LINK_LOG(level, "%s: " fmt, (p)->cfg.name, ##__VA_ARGS__)
#define port_error(p, err, eno, fmt, ...)                                                          \
	error_set(err, eno, "%s: " fmt, (p)->cfg.name, ##__VA_ARGS__)

#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_MIN 0x0600 /* smaller values are lengths */
#define PROTO_ICMP    1
#define PROTO_ICMPV6  58
#define ETH_MIN_LEN   60 /* without FCS; shorter frames of ours are padded */
#define MAC_LEN       6
#define MAC_MASK      UINT64_C(0xFFFFFFFFFFFF) /* see mac_word() */
#define VLAN_VID      0x0FFF

/* MTU of an in-process pair, which has no limit of its own: a path MTU of 4096 and its headers */
#define BACK_TO_BACK_MTU 4200
/*
 * The ring of such a pair. One worker may serve both ports, and then sends more than it receives in
 * a turn until the ring is full: so much payload must stay in a CPU's cache.
 */
#define BACK_TO_BACK_DESC 64
#define QUEUE_DESC        1024
#define TX_HANDOFF_RING   512
#define SELF_QUEUE        512
/*
 * net_ring's limit (RTE_PMD_RING_MAX_RX_RINGS); further workers have no queue
 */
#define BACK_TO_BACK_QUEUES 16
/* Queues of a port whose drops are read from the kernel; further ones are not counted */
#define RX_SOCKETS_MAX 64
/* Bytes of an mbuf's private area, which holds the packet */
#define MBUF_PRIV RTE_ALIGN_CEIL(sizeof(struct packet), RTE_CACHE_LINE_SIZE)
/* Generations of a port's attributes kept: see state.c */
#define ATTR_COPIES 64

enum queue_rule {
	QUEUES_RSS, /* as many as workers if the device can hash, else one */
	QUEUES_ALL, /* all queues of the device, RX and TX in pairs */
	QUEUES_PER_WORKER, /* as many as workers, RX and TX in pairs */
};

enum mtu_rule {
	MTU_DEVICE, /* the driver reports and sets it */
	MTU_INTERFACE, /* that of the kernel's interface behind the device */
	MTU_ANY, /* the configured one: the link has no limit */
};

/* Special rules of a driver: see the table in configure.c. */
struct driver_rule {
	const char *driver;
	enum queue_rule queues;
	enum mtu_rule mtu;
	bool xdp; /* the port registers its packet buffers with the kernel: they are its own */
	/* always reports its link as up: check the kernel's interface instead */
	bool link_of_interface;
	bool queues_may_sleep; /* the far end may serve only the first queue */
	/* ring_full.c: where the driver does not report what the kernel drops: */
	int family; /* of the driver's sockets */
	/* frames dropped until now, of which `total` were known; NULL: the driver reports them */
	uint64_t (*ring_full)(int fd, uint64_t total);
};

struct link_pool {
	struct rte_mempool *mp;
	int numa_node;
	bool own; /* used by one port only */
	uint16_t data_room; /* without headroom */
	uint32_t mbufs;
};

struct attr_copy {
	struct port_attr attr;
	uint64_t free_at; /* time from which no thread reads it */
};

struct lid_table;

/* Saved state of the kernel's interface behind a device: see interface.c */
struct interface_state {
	/*
	 * The record in the file, as far as .name: see interface_file.c. set_...: values that this
	 * process sets
	 */
	uint64_t magic;
	uint32_t size;
	int32_t mtu;
	int32_t set_mtu; /* 0: unchanged */
	uint16_t flags;
	/* flags that the device's start turned on; before it has started, all that it might */
	uint16_t set_flags;
	struct sockaddr hwaddr;
	uint8_t set_mac[MAC_LEN]; /* zero: unchanged */
	uint8_t reserved[2];
	/* not in the file */
	char name[IF_NAMESIZE]; /* "": none */
	unsigned int index; /* of the kernel */
	bool temporary; /* created by the driver, and removed with the device */
	int file; /* descriptor of the file with the record; -1: none */
};

/* A socket of the driver, and what the kernel dropped because its ring was full. */
struct rx_socket {
	int fd;
	uint64_t drops;
};

struct link_port {
	struct link_port_config cfg;
	uint16_t index;
	uint16_t ethdev;
	bool opened; /* the device is configured and must be closed */
	bool started; /* the device is started */
	bool reconnects; /* see reconnect.c; control thread only, as the next */
	uint64_t reconnect_at;
	bool hotplugged; /* attached by us, so we must remove it */
	struct link_port *peer; /* the other port of an in-process pair; else NULL */
	struct interface_state interface[2]; /* the device's, and that of tap's remote= */
	char args[512]; /* of the device, as EAL has it: "name,key=value,..."; "" for a pair */
	char driver[32];
	const struct driver_rule *driver_rule;
	uint32_t frame_size; /* size of a buffer that the driver requires; 0: by MTU */
	bool physical;
	int numa_node;
	/* .numa_node, or SOCKET_ID_ANY if that has no room for the packet buffers */
	int memory_node;
	uint64_t rss_hf; /* header fields that the device hashes, RTE_ETH_RSS_; 0: none */
	uint16_t nrx;
	uint16_t ntx;
	uint16_t rx_desc;
	uint16_t tx_desc;
	uint16_t mtu;
	struct link_pool *pool;
	uint64_t mac_word; /* its MAC: see mac_word() */
	struct rx_template rx_template;

	/* back-to-back port: rings from which it receives, which it owns */
	struct rte_ring *ring[BACK_TO_BACK_QUEUES];
	/*
	 * [worker]: frames of a worker without TX queue, to the worker that sends them; else NULL
	 */
	struct rte_ring *tx_ring[LINK_WORKERS_MAX];
	/*
	 * frames of that ring that a driver has taken or that were dropped; the sending worker
	 * writes it
	 */
	uint32_t tx_ring_left[LINK_WORKERS_MAX];

	/* see state.c */
	const struct port_attr *attr;
	struct attr_copy *attr_copies;
	unsigned int attr_next;
	bool attr_stale; /* a change waits for a free copy */
	struct port_settings settings; /* native IB: set by subnet management, after the start */
	bool heard_data; /* link_port_heard_data(); any worker sets it, link_port_set() clears it */
	struct lid_table *lids; /* native IB; else NULL */
	bool carrier; /* as last read from the device */
	/* see ring_full.c; control thread only */
	struct rx_socket rx_socket[RX_SOCKETS_MAX];
	unsigned int num_rx_sockets;
};

/* Any thread: the number of .cfg.addr[]. See addresses.c. */
static inline unsigned int
port_num_addr(const struct link_port *p)
{
	return ACQUIRE_GET(p->cfg.num_addr);
}

/* Any thread: true if the address is one of the port's. */
static inline bool
port_has_address(const struct link_port *p, const union gid *gid)
{
	unsigned int i;

	for (i = 0; i < port_num_addr(p); i++)
		if (likely(gid_equal(&p->cfg.addr[i].gid, gid)))
			return true;
	return false;
}

/* Any thread: true if a frame's source can be a host's address on this port. */
static inline bool
source_is_host(const struct link_port *p, const union gid *source)
{
	return port_source_is_host(ACQUIRE_GET(p->attr), source);
}

struct neigh_table;

struct link {
	struct link_config cfg;
	bool guarded; /* memif_guard() */
	unsigned int num_ports;
	struct link_port *port; /* [num_ports] */
	struct link_pool pool[LINK_PORTS_MAX];
	unsigned int num_pools;
	struct neigh_table *neigh;
};

/* The port with this index, which the caller knows to exist. */
static inline struct link_port *
link_port_at(const struct link *l, unsigned int port)
{
	RTE_ASSERT(port < l->num_ports);
	return &l->port[port];
}

/* The same of a caller's number. @return NULL: there is none, and err is set */
static inline struct link_port *
link_port_checked(const struct link *l, unsigned int port, struct error *err)
{
	if (port < l->num_ports)
		return &l->port[port];
	error_set(err, EINVAL, "port: got %u, allowed 0..%u", port, l->num_ports - 1);
	return NULL;
}

/* n milliseconds in TSC cycles */
static inline uint64_t
link_ms(const struct link *l, uint64_t n)
{
	return n * (l->cfg.hz / 1000);
}

/* Each port p of a link, which has the index p->index. */
#define LINK_FOREACH_PORT(p, link)                                                                 \
	for ((p) = (link)->port; (p) < (link)->port + (link)->num_ports; (p)++)

struct rx_queue {
	struct link_port *port;
	uint16_t queue;
	bool stopped;
};

enum tx_way {
	TX_QUEUE, /* our own queue of the device */
	TX_RING, /* a ring to a worker that has a queue */
	TX_STOPPED,
};

/*
 * A worker's batch of frames to send from one port. For a native IB port worker 0 has a second one
 * for VL15, which is sent first.
 */
struct tx_port {
	struct rte_mbuf *mbuf[LINK_BURST];
	uint64_t bytes; /* in these frames */
	unsigned int num;
	/* total of frames that left .mbuf: taken by a driver or a ring, or dropped */
	uint64_t left;
	uint64_t mark; /* link_tx_left() is true once .left reaches this */
	uint16_t port;
	uint16_t queue;
	uint16_t ethdev;
	bool full; /* the queue took no frame at the last try */
	/* full for so long that frames are dropped, so that other ports need not wait */
	bool stuck;
	uint64_t full_since;
	enum tx_way way;
	/* ring to another worker, if our queue does not exist or may sleep */
	struct rte_ring *ring;
	uint32_t ringed; /* total of frames put on the ring */
	uint32_t ring_mark; /* as .mark, compared with link_port.tx_ring_left[] */
	/* cache of free mbufs */
	struct rte_mempool *mp;
	struct rte_mbuf *cache[LINK_BURST];
	unsigned int num_cached;
	unsigned int room; /* bytes of a frame that fit after the headroom */
	uint64_t rearm; /* initial value of rte_mbuf.rearm_data */
	struct tx_port *vl15; /* batch to send before this one; NULL: none */
};

static inline void
tx_cache_put(struct tx_port *t, struct rte_mbuf *m)
{
	RTE_ASSERT(t->num_cached < LINK_BURST);
	t->cache[t->num_cached++] = m;
}

/* A ring of another worker whose frames this worker sends. */
struct tx_handoff {
	struct rte_ring *ring;
	uint32_t *ring_left; /* link_port.tx_ring_left[] of the other worker */
	uint32_t taken; /* total of frames taken from the ring */
	uint32_t marked; /* value of .taken that *ring_left gets when the batch reaches .mark */
	uint64_t mark; /* value of the port's tx_port.left */
	uint16_t port;
};

/* limits.c: what a stranger's frame may make us send, each with a budget of its own. */
enum answer { ANSWER_ARP, ANSWER_ND, ANSWER_ICMP, ANSWERS };
#define ANSWER_SOURCES 256 /* budgets of a kind; a source's is chosen by a keyed hash */

struct port_limits {
	struct token_bucket answers[ANSWERS][ANSWER_SOURCES];
	union gid unreachable_from; /* sender of the last ICMP port unreachable for port 4791 */
	union gid conflict; /* our address that another node claims */
	uint64_t conflict_mac; /* the MAC of that node; 0: no conflict */
	uint64_t conflict_next; /* earliest time of the next warning */
	uint64_t unreachable_told; /* value of counters.port_unreachable at the last warning */
	uint64_t unreachable_next; /* earliest time of the next warning */
};

/* A worker's share of a port. */
struct worker_port {
	struct tx_port tx;
	struct tx_port vl15; /* used if tx.vl15 points here */
	struct link_counters counters;
	struct port_limits limits;
	/* worker 0: gratuitous ARP, unsolicited NA */
	uint64_t announce_next;
	uint8_t announce_left;
};

struct link_worker {
	struct tx_sink sink; /* first: commit() and reserve() cast */
	struct link *link;
	const struct worker_port *end; /* of .port[] */
	unsigned int id;

	/* the packet that reserve() returned */
	const struct path *path;
	struct tx_port *from; /* the batch that owns its mbuf */
	struct rte_mbuf *mbuf;
	uint32_t bth_len;
	uint16_t ip_id;

	/* queue of frames that a port sends to itself */
	unsigned int self_head;
	unsigned int self_tail;
	struct rte_mbuf *self[SELF_QUEUE];
	bool self_turn;
	bool from_self; /* the burst being received comes from this queue */

	uint64_t now; /* of the last rx, flush or tick */
	unsigned int num_rx;
	unsigned int cursor;
	struct rx_queue *rx;
	unsigned int num_handoff;
	struct tx_handoff *handoff;

	uint32_t neigh_seen; /* worker 0: of .made, those whose resolution has been started */
	uint32_t neigh_cursor; /* worker 0: next entry that a tick checks */
	uint64_t state_next; /* worker 0: time of the next check of link states */
	struct token_bucket requests; /* worker 0: ARP and ND requests */
	struct token_bucket moves; /* worker 0: those that ask an old MAC */

	link_tell_fn tell; /* may be NULL */
	void *tell_arg;
	uint64_t answer_key; /* secret: chooses the budget of a source */
	struct tx_sink smp_sink; /* see link_smp_sink() */
	struct tx_port *tx[LINK_PORTS_MAX]; /* &.port[].tx */
	struct worker_port port[]; /* [num_ports] */
};

/* Each worker_port o of a worker; its port is o->tx.port. */
#define WORKER_FOREACH_PORT(o, w) for ((o) = (w)->port; (o) < (w)->end; (o)++)

/*
 * True if this source may have one more answer of this kind. The budget is the source's, so that
 * one flooder does not use up the answers of the others.
 */
bool link_may_answer(struct link_worker *w, const struct link_port *p, enum answer kind,
	const union gid *source);
void limits_init(struct link_worker *w);

/* Add to a worker's counter of a port. It has one writer. */
#define link_count(w, at, field, n)                                                                \
	RELAXED_SET((w)->port[at].counters.field, (w)->port[at].counters.field + (n))

/* A MAC's six bytes as a number, in memory order, for comparisons. */
static inline uint64_t
mac_word(const uint8_t *mac)
{
	uint64_t w = 0;

	memcpy(&w, mac, MAC_LEN);
	return w;
}

/* Write a MAC. In two parts, because a copy of six bytes would put the word into memory first. */
static inline void
put_mac(uint8_t *to, uint64_t word)
{
	put_le32(to, (uint32_t)word);
	put_le16(to + 4, (uint16_t)(word >> 32));
}

/* tx.c */
/*
 * Send a frame whose l3_len bytes from layer 3 on are at l3 within m: write the Ethernet (and VLAN)
 * header in front, pad it, and queue it. Takes the mbuf.
 */
void tx_l3(struct link_worker *w, struct link_port *p, struct rte_mbuf *m, uint8_t *l3,
	uint32_t l3_len, uint64_t dmac, uint16_t ethertype);
/*
 * Allocate an mbuf for a control frame; *l3 is after the Ethernet header. @return NULL: no mbuf,
 * counted
 */
struct rte_mbuf *tx_control(struct link_worker *w, struct link_port *p, uint8_t **l3);
/* A packet of len bytes from BTH on, to be written and committed; NULL: not now. */
uint8_t *tx_port_reserve(struct link_worker *w, struct tx_port *t, const struct path *path,
	uint32_t len);
/* Offer the batch to the queue. What is not taken waits, or is dropped if the queue is stuck. */
void tx_burst(struct link_worker *w, struct tx_port *t);
/* A packet that was reserved and not committed goes back to its batch's cache. */
void tx_take_back(struct link_worker *w);
void tx_init(struct link_worker *w);

/* tx_vl15.c: SMPs' own transmit buffer */
void tx_vl15_init(struct link_worker *w);

/* tx_setup.c */
void tx_fini(struct link_worker *w);
void tx_port_init(const struct link_worker *w, struct tx_port *t, uint16_t port);
/* Stop to use the device's queue, or use it again. */
void tx_stop(struct tx_port *t, bool stopped);

/* The device whose burst function this thread called last: of a fault there, the port's. */
extern __thread uint16_t ethdev_in_burst;

/* steering.c: describe an uneven distribution of packets to workers. @return false: it is even */
bool steering_words(const struct link_port *p, unsigned int workers, char *text, size_t size);

/* configure.c, pool.c: in this order */
int port_configure(const struct link *l, struct link_port *p, struct error *err);
void pool_choose(struct link *l, struct link_port *p);
int pool_create_all(struct link *l, struct error *err);
void pool_free_all(struct link *l);
/** The NUMA node of the pool's buffers. */
int pool_memory_node(const struct link_pool *pool);

/* pool.c: a ring into which one worker sends frames, and from which one receives them */
struct rte_ring *mbuf_ring_create(const char *name, unsigned int size, int numa_node);
/* Free a ring and the frames in it. NULL: nothing. */
void mbuf_ring_free(struct rte_ring *ring);

/* back_to_back.c */
int back_to_back_open(struct link *l, struct error *err);
void back_to_back_close(struct link_port *p);

/* ring_full.c: see struct driver_rule */
uint64_t packet_ring_full(int fd, uint64_t total);
uint64_t xdp_ring_full(int fd, uint64_t total);
/* After the port has started. */
void ring_full_find(const struct link *l, struct link_port *p);

/* addresses.c */
/* The port's first address of a family; NULL: it has none. */
const union gid *port_first_address(const struct link_port *p, bool ipv4);
void admit_multicast(struct link_port *p);

/* state.c */
/* Worker 0: publish the port's addresses, and announce them. */
void state_addresses_changed(struct link_worker *w, struct link_port *p);
int state_init(struct link *l, struct link_port *p, struct error *err);
/* Worker 0: gratuitous ARP and unsolicited NA soon, where the link is up. */
void state_announce(struct link_worker *w);
void state_tick(struct link_worker *w, uint64_t now);

#endif
