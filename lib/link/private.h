/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_PRIVATE_H
#define LINK_PRIVATE_H

/* Private to lib/link: what its files share. */

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_hash.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "base/token_bucket.h"
#include "link/link.h"
#include "link/rx_template.h"
#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/wire.h"

extern int link_logtype;
#define LINK_LOG(level, fmt, ...)                                                                  \
	rte_log(RTE_LOG_##level, link_logtype, "link: " fmt "\n", ##__VA_ARGS__)

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP  0x0806
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_MIN  0x0600 /* below, it is a length */
#define ETHERTYPE_IPV6 0x86DD
#define PROTO_ICMP     1
#define PROTO_UDP      17
#define PROTO_ICMPV6   58
#define ETH_MIN_LEN    60 /* without FCS; shorter frames of ours are padded */
#define MAC_LEN        6
#define MAC_MASK       UINT64_C(0xFFFFFFFFFFFF) /* see mac_word() */
#define VLAN_VID       0x0FFF

/* PMTU 4096 and its headers in one frame of an in-process pair, whose wire knows no limit */
#define BACK_TO_BACK_MTU 4200
#define QUEUE_DESC       1024
#define TX_HANDOFF_RING  512
#define SELF_QUEUE       512
/*
 * net_ring's limit (RTE_PMD_RING_MAX_RX_RINGS); workers beyond it share queues like anywhere else
 */
#define BACK_TO_BACK_QUEUES 16
/* Generations of a port's attributes kept: see state.c */
#define ATTR_COPIES 64

enum queue_rule {
	QUEUES_RSS, /* as many as workers if the device can hash, else one */
	QUEUES_ALL, /* as the device was made, RX and TX in pairs */
	QUEUES_PER_WORKER, /* as many as workers, RX and TX in pairs */
};

enum mtu_rule {
	MTU_DEVICE, /* the driver knows and sets it */
	MTU_INTERFACE, /* that of the kernel's interface behind the device */
	MTU_ANY, /* no limit on the way: the configuration's */
};

/* What is peculiar to a driver: see configure.c's table. */
struct driver_rule {
	const char *driver;
	enum queue_rule queues;
	enum mtu_rule mtu;
	bool own_pool;
	bool link_of_interface; /* reports its link up whatever the kernel's interface is */
	bool queues_may_sleep; /* the far end decides which but the first are served */
};

struct link_pool {
	struct rte_mempool *mp;
	int numa_node;
	bool own; /* of one port */
	uint16_t data_room; /* headroom not counted */
	uint32_t mbufs;
};

struct attr_copy {
	struct port_attr attr;
	uint64_t free_at; /* since when nobody reads it */
};

struct lid_table;

/* Of the kernel's interface behind a device, as it was before: see interface.c */
struct interface_state {
	char name[IF_NAMESIZE]; /* "": none */
	unsigned int index; /* the kernel's */
	bool temporary; /* made by the driver, and gone with the device */
	int mtu;
	short flags;
	struct sockaddr hwaddr;
	/* what this process makes of it */
	int set_mtu; /* 0: leaves it */
	uint8_t set_mac[MAC_LEN]; /* zero: leaves it */
	short set_flags; /* those that were off, and on when the device had started; until then: any */
	int file; /* of what it was: see interface_file.c; -1: none */
};

struct link_port {
	struct link_port_config cfg;
	uint16_t index;
	uint16_t ethdev;
	bool opened; /* configured: to be closed */
	bool started; /* the device, that is */
	bool reconnects; /* see reconnect.c; what follows is the control thread's */
	uint64_t reconnect_at;
	bool hotplugged; /* plugged by us: to be removed by us */
	bool back_to_back;
	uint16_t peer; /* index of the other port of a pair */
	struct interface_state interface[2]; /* the device's, and that of tap's remote= */
	char driver[32];
	const struct driver_rule *driver_rule;
	uint32_t frame_size; /* that the driver wants a buffer to hold; 0: just the MTU */
	bool physical;
	int numa_node;
	int memory_node; /* .numa_node, or any where that has no room for the packet buffers */
	uint64_t rss_hf; /* what the device was asked to hash, RTE_ETH_RSS_; 0: nothing */
	uint16_t nrx;
	uint16_t ntx;
	uint16_t rx_desc;
	uint16_t tx_desc;
	uint16_t mtu;
	struct link_pool *pool;
	uint8_t mac[MAC_LEN];
	uint64_t mac_word;
	struct rx_template rx_template;

	/* what we accept, in the form that the receive path compares */
	unsigned int num_ipv4;
	unsigned int num_ipv6;
	uint32_t ipv4[LINK_ADDRS_MAX]; /* network order */
	union gid ipv6[LINK_ADDRS_MAX];

	/* rings of a pair that this port receives from; owned here */
	struct rte_ring *ring[BACK_TO_BACK_QUEUES];
	/*
	 * [worker]: frames of a worker without a TX queue, for the worker that owns one; NULL
	 * elsewhere
	 */
	struct rte_ring *tx_ring[LINK_WORKERS_MAX];
	/* frames of that ring that a driver has taken, or that were dropped; its owner writes */
	uint32_t tx_ring_left[LINK_WORKERS_MAX];

	/* see state.c */
	const struct port_attr *attr;
	struct attr_copy *attr_copies;
	unsigned int attr_next;
	bool attr_stale; /* a change waits for a free copy */
	struct port_settings settings; /* native IB: subnet management's */
	bool heard_data; /* link_port_heard_data(); any worker sets it, link_port_set() clears it */
	uint64_t guid;
	struct lid_table *lids; /* native IB; NULL elsewhere */
	struct rte_eth_link link; /* last seen */
};

struct neigh_table;

struct link {
	struct link_config cfg;
	bool guarded; /* memif_guard() */
	unsigned int num_ports;
	struct link_port *port; /* [num_ports] */
	struct link_pool pool[LINK_PORTS_MAX];
	unsigned int num_pools;
	struct neigh_table *neigh;
	const uint64_t *neigh_mac; /* [index]: one word each, see neigh.h */
};

struct rx_queue {
	struct link_port *port;
	uint16_t queue;
	bool stopped;
};

enum tx_way {
	TX_QUEUE, /* our own of the device */
	TX_RING, /* to a worker that has one */
	TX_STOPPED,
};

/*
 * Frames of one worker on their way out of one port. Of a native IB port worker 0 has two, for VL15's
 * own goes first.
 */
struct tx_port {
	struct rte_mbuf *mbuf[LINK_BURST];
	uint64_t bytes; /* in them */
	unsigned int num;
	uint64_t left; /* frames that are no longer in .mbuf: taken by a driver or a ring, or dropped */
	uint64_t mark; /* what .left must reach for link_tx_left() */
	uint16_t port;
	uint16_t queue;
	uint16_t ethdev;
	bool full; /* the queue took nothing at the last try, */
	bool stuck; /* nor for so long that frames are dropped: other ports must not wait for it */
	uint64_t full_since;
	enum tx_way way;
	struct rte_ring *ring; /* when ours is none or asleep */
	uint32_t ringed; /* frames put there, ever */
	uint32_t ring_mark; /* as .mark, of p->tx_ring_left[] */
	/* bulk cache */
	struct rte_mempool *mp;
	struct rte_mbuf *cache[LINK_BURST];
	unsigned int num_cached;
	unsigned int room; /* bytes of a frame that fit behind the headroom */
	uint64_t rearm; /* first words of an mbuf that is about to be filled */
	struct tx_port *vl15; /* whose frames go before these; NULL: there is none */
};

/* Another worker's frames that leave through a queue of ours. */
struct tx_handoff {
	struct rte_ring *ring;
	uint32_t *ring_left; /* who put the frames there reads it */
	uint32_t taken; /* frames out of the ring, ever */
	uint32_t marked; /* those of them that have left the port's batch by .mark */
	uint64_t mark; /* of the port's tx_port.left */
	uint16_t port;
};

/* What a stranger may make one worker send or say, per port. */
struct port_limits {
	struct token_bucket arp;
	struct token_bucket nd;
	struct token_bucket icmp;
	union gid unreachable_from; /* who answered port 4791 last */
	union gid conflict; /* an address of ours that somebody else claims */
	uint64_t conflict_mac; /* who: 0 nobody */
	uint64_t conflict_next;
	uint64_t unreachable_told; /* counters.port_unreachable when last told */
	uint64_t unreachable_next; /* not told again before */
};

struct link_worker {
	struct tx_sink sink; /* first: commit() and reserve() cast */
	struct link *link;
	unsigned int id;
	int socket;

	/* the packet that reserve() gave out */
	const struct path *path;
	struct tx_port *from; /* whose mbuf it is */
	struct rte_mbuf *mbuf;
	uint32_t bth_len;
	uint16_t ip_id;
	bool icrc_off;

	/* frames that the port sends to itself, a queue of its own */
	unsigned int self_head;
	unsigned int self_tail;
	struct rte_mbuf **self; /* [SELF_QUEUE] */
	bool self_turn;
	bool from_self; /* what is being received comes from there */

	uint64_t now; /* of the last rx, flush or tick */
	unsigned int num_rx;
	unsigned int cursor;
	struct rx_queue *rx;
	unsigned int num_handoff;
	struct tx_handoff *handoff;

	uint32_t neigh_seen; /* worker 0: entries whose resolution has been started */
	uint32_t neigh_cursor; /* worker 0: next entry that a tick looks at */
	uint64_t state_next; /* worker 0: next look at link states */
	uint64_t announce_next[LINK_PORTS_MAX]; /* worker 0: gratuitous ARP, unsolicited NA */
	uint8_t announce_left[LINK_PORTS_MAX];
	struct token_bucket requests; /* worker 0: ARP and ND requests */

	struct port_limits *limits; /* [num_ports] */
	struct link_counters *counters; /* [num_ports] */
	struct smp_sink {
		struct tx_sink sink; /* first: as above */
		struct link_worker *worker;
	} smp_sink;
	struct tx_port *vl15; /* [num_ports], used of native IB ports; NULL: see link_smp_sink() */
	struct tx_port *tx[LINK_PORTS_MAX];
	struct tx_port tx_ports[]; /* [num_ports] */
};

/* A single writer's counter: plain for us, whole for relaxed readers. */
static inline void
count(uint64_t *c, uint64_t n)
{
	__atomic_store_n(c, *c + n, __ATOMIC_RELAXED);
}

/* Six bytes as a number, in memory order: two MACs are equal if their words are. */
static inline uint64_t
mac_word(const uint8_t *mac)
{
	uint64_t w = 0;

	memcpy(&w, mac, MAC_LEN);
	return w;
}

/* Received frame under classification: rx.c fills it, arp.c, nd.c and icmp.c read it. */
struct rx_frame {
	struct rte_mbuf *mbuf; /* linear */
	struct link_port *port;
	uint8_t *eth;
	uint8_t *l3;
	uint32_t l3_len; /* bytes there, Ethernet padding included */
	uint8_t pcp;
	bool multicast; /* destination MAC is a group address */
};

/*
 * Control protocols (arp.c, nd.c, icmp.c). They return the frame's verdict; when they answer in
 * place they take the mbuf: frame->mbuf is NULL afterwards.
 */
enum verdict arp_receive(struct link_worker *w, struct rx_frame *f);
enum verdict icmp_receive(struct link_worker *w, struct rx_frame *f);
enum verdict icmpv6_receive(struct link_worker *w, struct rx_frame *f);
enum verdict nd_receive(struct link_worker *w, struct rx_frame *f, uint8_t *icmp, uint32_t len);
/*
 * A frame that our own host's kernel sent from our MAC, overheard: does it refuse port 4791 in our
 * name?
 */
void icmp_overheard(struct link_worker *w, struct rx_frame *f);
void icmp_tick(struct link_worker *w, uint64_t now);
/* Somebody else's MAC for an address of ours: said in a log by and by. */
void neigh_conflict(struct link_worker *w, const struct link_port *p, const union gid *gid,
	const uint8_t *mac);
void neigh_warn(struct link_worker *w, uint64_t now);
/*
 * Ask for, or with our own address as target tell, who has an address. dmac NULL: the protocol's
 * multicast.
 */
void arp_send(struct link_worker *w, struct link_port *p, const union gid *sender,
	const union gid *target, const uint8_t *dmac);
void nd_solicit(struct link_worker *w, struct link_port *p, const union gid *source,
	const union gid *target, const uint8_t *dmac);
void nd_announce(struct link_worker *w, struct link_port *p, const union gid *addr);
/* tx.c */
/*
 * A frame of ours whose bytes from layer 3 on (l3_len) start at l3 within m: write the Ethernet
 * (and VLAN) header in front, pad, and queue it. Takes the mbuf.
 */
void tx_l3(struct link_worker *w, struct link_port *p, struct rte_mbuf *m, uint8_t *l3,
	uint32_t l3_len, uint64_t dmac, uint16_t ethertype);
/* A new mbuf with room for a control frame; l3 points behind the Ethernet header. NULL: counted */
struct rte_mbuf *tx_control(struct link_worker *w, struct link_port *p, uint8_t **l3);
/* A packet of len bytes from BTH on, to be written and committed; NULL: not now. */
uint8_t *tx_port_reserve(struct link_worker *w, struct tx_port *t, const struct path *path,
	uint32_t len);
/* Offer the batch to the queue. What is not taken waits, or is dropped if the queue is stuck. */
void tx_burst(struct link_worker *w, struct tx_port *t);
void tx_handoff_drain(struct link_worker *w);
void tx_sink_init(struct link_worker *w);

/* tx_vl15.c: SMPs' own transmit buffer */
void tx_vl15_init(struct link_worker *w);
void tx_vl15_flush(struct link_worker *w);

/* tx_setup.c */
void tx_init(struct link_worker *w);
void tx_fini(struct link_worker *w);
void tx_port_init(const struct link_worker *w, struct tx_port *t, uint16_t port);
/* The device's queue is not to be touched, or may be again. */
void tx_stop(struct tx_port *t, bool stopped);

/* device.c: find or plug an ethdev; unlink what an earlier run left behind */
/* Drivers say -1 and mean nothing by it. */
const char *device_strerror(int rc);
/* The device connects to somebody's socket once, when it starts (memif's client). */
bool device_is_client(const struct link_port *p);
bool device_is_memif(const struct link_port *p);
int device_attach(struct link_port *p, struct error *err);
/* interface.c; its MTU, or -errno. set: 0 to look only */
int interface_mtu(const char *name, int set);
/* Before anything is changed; when all has been; at the end. */
void interface_note(struct link_port *p);
void interface_tell(struct link_port *p);
void interface_restore(struct link_port *p);
/* Is the device's interface up, with a carrier? True when the device has none. */
bool interface_is_running(const struct link_port *p);
void print_mac(const uint8_t *mac, char text[RTE_ETHER_ADDR_FMT_SIZE]);
/* interface_file.c: open and lock the file of .index; when a living process has it, .file is -1 */
void interface_file_open(struct interface_state *s);
/* @return false: no killed process has left anything there */
bool interface_file_read(const struct interface_state *now, struct interface_state *was);
void interface_file_write(const struct interface_state *s);
void interface_file_remove(struct interface_state *s);
void device_detach(struct link_port *p);
/* device_end.c; not on EAL's interrupt thread */
void device_stop(struct link_port *p);
void device_close(struct link_port *p);
/* reconnect.c: say no more than this. @return what memif_log_restore() wants */
int memif_log_level(uint32_t most);
void memif_log_restore(int level);
/* Start a client's device, when its server is there or comes. */
int memif_client_start(const struct link *l, struct link_port *p, struct error *err);
/* Run fn on EAL's interrupt thread, and wait for it. */
void interrupts_run(void (*fn)(void *arg), void *arg);
/*
 * memif.c: nothing is unmapped on that thread before all readers of rcu have been quiescent; NULL:
 * as ever. One link of a process.
 */
void memif_guard(struct rte_rcu_qsbr *rcu);

/*
 * Of a frame's slot in af_packet's ring, what the kernel keeps for itself (TPACKET2_HDRLEN, VLAN
 * tag, alignment)
 */
#define AF_PACKET_SLOT_HEADER 128
/* Of a memif buffer, what is not MTU: Ethernet header, VLAN tag, FCS */
#define MEMIF_FRAME_HEADER 22
/* Either driver's buffer when its arguments do not say */
#define BUFFER_DEFAULT 2048
/* The whole value of an argument of the device; false: it has none, or an empty one. */
bool device_arg(const struct link_port *p, const char *key, char *value, size_t size);

/* steering.c: is there anything to be said of who receives for whom? */
bool steering_words(const struct link_port *p, unsigned int workers, char *text, size_t size);

/* xdp_log.c: before a net_af_xdp device starts; what the kernel has said since then; NULL: not
 * begun
 */
void xdp_log_begin(void);
const char *xdp_log_kernel(void);

/* configure.c, pool.c: in this order */
int port_configure(const struct link *l, struct link_port *p, struct error *err);
void pool_choose(struct link *l, struct link_port *p);
int pool_create_all(struct link *l, struct error *err);
void pool_free_all(struct link *l);
/** Where its buffers have come to lie. */
int pool_memory_node(const struct link_pool *pool);

/* back_to_back.c */
int back_to_back_open(struct link *l, struct error *err);
void back_to_back_close(struct link_port *p);

/* state.c */
int state_init(struct link *l, struct link_port *p, struct error *err);
/* Worker 0: gratuitous ARP and unsolicited NA soon, where the link is up. */
void state_announce(struct link_worker *w);
void state_tick(struct link_worker *w, uint64_t now);

#endif
