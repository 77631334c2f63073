/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_CM_SIM_H
#define SIM_CM_SIM_H

/**
 * @file
 * The communication manager in the simulation: two or three nodes with lib/cm, lib/mad and lib/rc
 * connect to each other, transfer, disconnect and crash; one more may be hostile.
 *
 * cm_node.c runs a node with its crashes, and checks the states of its connections; cm_user.c is
 * the user of a connection and checks the order of callbacks; cm_data.c transfers and compares
 * bytes;
 * cm_hostile.c floods, forges, and sends unexpected messages for its own connections; cm_model.c
 * has the invariants and expected outcomes; cm_scenario.c has the script.
 */

#include "cm/cm.h"
#include "cm/message.h"
#include "cm/timing.h"
#include "script.h"
#include "wire/bytes.h"

#define CM_US           1000ull
#define CM_MS           1000000ull
#define CM_NODES        SIM_NODES_MAX
#define CM_PATHS        2 /* ports of a node */
#define CM_CONNECTIONS  64 /* of a node, half-open ones not included */
#define CM_PLACES       128 /* connections of a node; of memory for their data, too */
#define CM_LIVES        4000
#define CM_MESSAGES_MAX 12 /* in each direction */
#define CM_MESSAGE_LEN  700
#define CM_AREA         (CM_MESSAGES_MAX * CM_MESSAGE_LEN)
#define CM_PLACE_LEN    (3 * CM_AREA) /* to send, received, written by the peer */
#define CM_SERVICES     4
#define CM_HOSTILE_GUID UINT64_C(0x0200666666666666)

/** What the two users of a connection will do. The active side's REQ contains it. */
enum cm_plan {
	CM_PLAN_ACCEPT,
	CM_PLAN_LATE_ACCEPT,
	CM_PLAN_REFUSE,
	CM_PLAN_LATE_REFUSE,
	CM_PLAN_SILENT, /**< the passive user never decides */
	CM_PLAN_CANCEL, /**< the active user cancels before it is established */
	CM_PLAN_CANCEL_PASSIVE, /**< the passive user cancels directly after it has accepted */
	CM_PLAN_UNPREPARED, /**< prepare() fails */
	CM_PLAN_BAD_QP, /**< its QP cannot be made */
	CM_PLAN_NO_SERVICE, /**< nobody listens */
	CM_PLAN_BAD_KEY, /**< a Write with a wrong R_Key: the passive QP goes to ERR */
	CM_PLANS
};

/** Private data of a REQ; of a REP .magic, .nonce, .va and .key. */
struct cm_hello {
	uint64_t nonce; /**< identifies the user */
	uint8_t plan;
	uint8_t count; /**< messages in each direction */
	uint8_t enders; /**< who disconnects: bit 0 the active side, bit 1 the passive one */
	uint64_t va;
	uint32_t key;
};
#define CM_HELLO_LEN 32

struct cm_side;

/** A user of a connection. */
struct cm_life {
	struct cm_side *side;
	unsigned int index;
	unsigned int birth; /**< number of its node's start */
	struct cm_life *peer; /**< NULL: not known yet */
	bool active;
	bool hostile; /**< the peer is hostile */
	bool clean; /**< no faults: it must go as planned */
	struct cm_hello hello; /**< of the active side */
	uint64_t nonce; /**< of this side */
	unsigned int to; /**< node */
	cm_id id;
	uint32_t qpn;
	bool prepared, established, ended, released;
	bool never; /**< refused in request(): no further callbacks */
	bool waits; /**< request() has postponed the decision */
	bool refused; /**< refused by us after request() */
	bool cancelled, disconnecting;
	bool by_data; /**< established by data instead of RTU */
	bool alternate; /**< it has an alternate path, or has asked for one */
	bool broken; /**< its QP has failed */
	uint8_t end; /**< enum cm_end */
	uint16_t reason;
	uint64_t born, act_at, next_at, progress_at;
	bool steady; /**< it must transfer during the flood */
	unsigned int flooded; /**< number of messages when the flood began */
	uint64_t pace; /**< time between messages */
	unsigned int place; /**< of its memory */
	unsigned int posted, done, got;
	uint64_t peer_va;
	uint32_t peer_key;
};

/** State of a connection at the last check. */
struct cm_seen {
	cm_id id;
	uint8_t state;
	uint64_t since; /**< when it entered this state, or the last MRA came */
};

/** A node with a communication manager. */
struct cm_side {
	struct cm_script *script;
	struct sim_node *node;
	struct timer_wheel *wheel;
	struct mad_worker *mad;
	struct cm *cm; /**< NULL: crashed */
	struct port_attr port[CM_PATHS];
	uint64_t guid;
	uint64_t qpns; /**< initial sim_node.same_qpns; 0: random QPNs */
	unsigned int birth; /**< number of starts */
	uint64_t paused_until; /**< it sends nothing until then */
	unsigned int sink_empty; /**< sim_node.sink_empty while not paused */
	uint64_t up_at; /**< when it starts again */
	bool stopping; /**< its users get no callback but released() */
	uint32_t send_cq, recv_cq, key;
	uint8_t *bytes; /**< CM_PLACES places */
	uint64_t places; /**< bits in use */
	bool changed; /**< since cm_model_look() */
	struct cm_seen seen[CM_PLACES];
	/* since this start, compared with counters */
	uint64_t told_established, told_end[CM_END_COUNT], refused_at_once;
	uint64_t sent[CM_MESSAGES];
	uint64_t received[CM_MESSAGES];
};

/** A connection of which the hostile node knows. */
struct cm_foe {
	unsigned int node;
	struct cm_msg first; /**< REQ of the hostile node or of the victim */
	uint32_t id; /**< of the hostile node */
	uint32_t qpn;
	cm_id theirs; /**< of the victim; 0: not known yet */
	uint32_t their_qpn;
	bool active; /**< the hostile node has sent the REQ */
};
#define CM_FOES 32

/** An overheard REP between other nodes: IDs and QPNs of both. */
struct cm_overheard {
	struct cm_msg rep;
	unsigned int from, to;
};
#define CM_OVERHEARD 16

struct cm_script {
	struct sim *sim;
	enum encap encap;
	bool grh; /**< on native IB */
	struct cm_limits limits;
	struct cm_side side[CM_NODES];
	unsigned int honest; /**< number of honest nodes; a further one is hostile */
	bool has_hostile;
	bool strict; /**< every connection must go as planned */
	bool lossless; /**< no message needs to be repeated */
	bool dialog; /**< the hostile node also opens connections */
	bool late; /**< the network delivers old messages again */
	bool cut_paths; /**< paths fail */
	uint64_t longest; /**< longest possible attempt of an honest side */

	unsigned int connects; /**< number of attempts left */
	unsigned int crashes_left;
	unsigned int hostile_left; /**< number of hostile messages left */
	unsigned int flood_left;
	uint64_t flood_from, flood_to;
	unsigned int flood_burst;
	bool flood_spoofs;
	uint64_t step;
	uint64_t mend_at; /**< when failed paths work again */

	/* a crash is due when a node sends or receives such a message */
	uint8_t crash_message; /**< enum cm_message */
	bool crash_received;

	struct cm_life *lives[CM_LIVES];
	unsigned int num_lives;
	struct cm_life *now[CM_NODES * CM_PLACES]; /**< not yet released */
	unsigned int num_now;

	struct cm_foe foes[CM_FOES];
	unsigned int num_foes;
	struct cm_overheard overheard[CM_OVERHEARD];
	unsigned int num_overheard;
	unsigned int last_foe; /**< the newest entry of foe[] */
};

static inline bool
cm_is_message(const struct packet *pkt)
{
	return pkt->dest_qpn == 1 && pkt->payload_len == MAD_LEN &&
		pkt->payload[MAD_OFF_CLASS] == CM_CLASS;
}

/* --- cm_node.c --- */

extern const struct sim_guest cm_guest;
void cm_side_start(struct cm_side *side);
/** Stop the node; with @p crash it starts again later. Users only get released(). */
void cm_side_stop(struct cm_side *side, bool crash);
/** Choose the message at which a node crashes next. */
void cm_plan_crash(struct cm_script *sc);
/** Check all connections. To be called after anything that may have changed them. */
void cm_side_look(struct cm_side *side);
union gid cm_gid(const struct cm_script *sc, unsigned int node, unsigned int path);
uint16_t cm_lid(unsigned int node, unsigned int path);
struct av cm_av(const struct cm_script *sc, unsigned int from, unsigned int to, unsigned int path);
/** @return the node with this address, or -1 */
int cm_node_of(const struct cm_script *sc, const struct av *av);
uint64_t cm_service(const struct cm_script *sc, unsigned int which);

/* --- cm_user.c --- */

extern const struct cm_user cm_sim_user;
struct cm_life *cm_life_new(struct cm_side *side);
/** Connect two honest nodes, or to the hostile one. */
void cm_life_connect(struct cm_script *sc, unsigned int from, unsigned int to);
/** The user's own actions in a turn. */
void cm_life_step(struct cm_life *l);
void cm_sim_path(const struct cm_script *sc, unsigned int from, unsigned int to, unsigned int path,
	struct cm_path *p);

/* --- cm_data.c --- */

/** Reserve and fill memory, and post receives. @retval false no memory left */
bool cm_data_take(struct cm_life *l);
int cm_data_prepare(struct cm_life *l);
void cm_data_give_back(struct cm_life *l);
void cm_data_post(struct cm_life *l);
void cm_data_poll(struct cm_side *side);
bool cm_data_complete(const struct cm_life *l);
uint64_t cm_data_va(const struct cm_life *l);

/* --- cm_model.c --- */

/** A callback has come. Fail unless @p right: it came in the right order. */
void cm_model_told(struct cm_life *l, const char *what, bool right);
/** Both sides are known: compare their connection. */
void cm_model_pair(struct cm_life *l, const struct cm_info *info);
/** A user was released: check that it went as planned. */
void cm_model_released(struct cm_life *l);
/** A node stops, and nothing is outstanding: check its counters. */
void cm_model_counters(struct cm_side *side);
/** Check limits, time in each state, and that no two connections have the same peer QP. */
void cm_model_look(struct cm_side *side);
/** Check connections during and after the flood. */
void cm_model_flood(struct cm_script *sc);
void cm_model_end(struct cm_script *sc);

/* --- cm_hostile.c --- */

enum verdict cm_hostile_receive(struct sim_node *n, const struct packet *pkt);
void cm_hostile_act(struct cm_script *sc);
/** Remember a REP of an honest node. */
void cm_hostile_overhear(struct cm_script *sc, unsigned int from, unsigned int to,
	const struct cm_msg *rep);
void cm_hostile_flood(struct cm_script *sc);

/* --- cm_scenario.c --- */

void cm_scenario(struct sim *s);

#endif
