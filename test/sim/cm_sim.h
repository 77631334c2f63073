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
 * cm_node.c runs a node, through its crashes, and looks at the states of all its connections;
 * cm_user.c is the user of a connection and checks in which order it is told what; cm_data.c moves
 * and compares bytes; cm_hostile.c floods, forges, and has untimely messages for connections of its
 * own; cm_model.c says what must have become of everything; cm_scenario.c has the script.
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
#define CM_PLACES       64 /* connections of a node; of memory for their data, too */
#define CM_LIVES        4000
#define CM_MESSAGES_MAX 12 /* each way */
#define CM_MESSAGE_LEN  700
#define CM_AREA         (CM_MESSAGES_MAX * CM_MESSAGE_LEN)
#define CM_PLACE_LEN    (3 * CM_AREA) /* to send, received, written by the peer */
#define CM_SERVICES     4
#define CM_HOSTILE_GUID UINT64_C(0x0200666666666666)

/** What the two users of a connection make of it; the active one says it in its REQ. */
enum cm_plan {
	CM_PLAN_ACCEPT,
	CM_PLAN_LATE_ACCEPT,
	CM_PLAN_REFUSE,
	CM_PLAN_LATE_REFUSE,
	CM_PLAN_SILENT, /**< the passive user never decides */
	CM_PLAN_CANCEL, /**< the active one goes before it stands */
	CM_PLAN_CANCEL_PASSIVE, /**< the passive one, at once after it has accepted */
	CM_PLAN_UNPREPARED, /**< prepare() fails */
	CM_PLAN_BAD_QP, /**< its QP cannot be made */
	CM_PLAN_NO_SERVICE, /**< nobody listens */
	CM_PLAN_BAD_KEY, /**< a Write where there is nothing: the passive QP goes to ERR */
	CM_PLANS
};

/** Private data of a REQ; of a REP .magic, .nonce, .va and .key. */
struct cm_hello {
	uint64_t nonce; /**< names the life */
	uint8_t plan;
	uint8_t count; /**< messages, each way */
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
	unsigned int birth; /**< of its node */
	struct cm_life *peer; /**< once it is known */
	bool active;
	bool hostile; /**< the peer is */
	bool clean; /**< nothing but the plan is in its way */
	struct cm_hello hello; /**< the active side's */
	uint64_t nonce; /**< its own */
	unsigned int to; /**< node */
	cm_id id;
	uint32_t qpn;
	bool prepared, established, ended, released;
	bool never; /**< refused from inside request(): nobody else is told */
	bool waits; /**< request() said later */
	bool refused; /**< by us, later */
	bool cancelled, disconnecting;
	bool by_data; /**< established by data instead of RTU */
	bool alternate; /**< has one, or has asked for one */
	bool broken; /**< its QP failed */
	uint8_t end; /**< enum cm_end */
	uint16_t reason;
	uint64_t born, act_at, next_at, progress_at;
	bool steady; /**< has to transfer through the flood */
	unsigned int flooded; /**< messages, when the flood began */
	uint64_t pace; /**< between messages */
	unsigned int place; /**< of its memory */
	unsigned int posted, done, got;
	uint64_t peer_va;
	uint32_t peer_key;
};

/** A connection as last looked at. */
struct cm_seen {
	cm_id id;
	uint8_t state;
	uint64_t since; /**< in this state, or an MRA came */
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
	uint64_t qpns; /**< where sim_node.same_qpns starts; 0: anywhere */
	unsigned int birth; /**< counts lives */
	uint64_t paused_until; /**< nothing leaves */
	unsigned int sink_empty; /**< sim_node's, before and after */
	uint64_t up_at; /**< when it begins a new life */
	bool stopping; /**< its users are told released() only */
	uint32_t send_cq, recv_cq, key;
	uint8_t *bytes; /**< CM_PLACES places */
	uint64_t places; /**< bits in use */
	bool changed; /**< since cm_model_look() */
	struct cm_seen seen[CM_PLACES];
	/* of this birth, to be compared with counters */
	uint64_t told_established, told_end[CM_END_COUNT], refused_at_once;
	uint64_t sent[CM_MESSAGES];
	uint64_t received[CM_MESSAGES];
};

/** What the hostile node knows of a connection. */
struct cm_foe {
	unsigned int node;
	struct cm_msg first; /**< our REQ, or the victim's */
	uint32_t id; /**< ours */
	uint32_t qpn;
	cm_id theirs; /**< 0: not known yet */
	uint32_t their_qpn;
	bool active; /**< we connected */
};
#define CM_FOES 32

/** A REP between others that it overheard: the IDs and the QPN of both. */
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
	unsigned int honest; /**< nodes 0 to this; the next one, if there is one, is hostile */
	bool has_hostile;
	bool strict; /**< every connection must go as planned */
	bool lossless; /**< nothing need be said twice */
	bool dialog; /**< the hostile node talks, it does not only flood */
	bool late; /**< the network delivers messages again when they are old */
	bool cut_paths; /**< paths die */
	uint64_t longest; /**< that any try of an honest side lasts */

	unsigned int connects; /**< still to be made */
	unsigned int crashes_left;
	unsigned int hostile_left; /**< messages still to come */
	unsigned int flood_left;
	uint64_t flood_from, flood_to;
	unsigned int flood_burst;
	bool flood_spoofs;
	uint64_t step;
	uint64_t mend_at; /**< of paths */

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
	unsigned int last_foe; /**< that was made or heard of */
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
/** Stop, and be down for a while if @p crash. Nobody is told but by released(). */
void cm_side_stop(struct cm_side *side, bool crash);
/** The next message that a node crashes at. */
void cm_plan_crash(struct cm_script *sc);
/** Look at all connections; after anything that may have changed them. */
void cm_side_look(struct cm_side *side);
union gid cm_gid(const struct cm_script *sc, unsigned int node, unsigned int path);
uint16_t cm_lid(unsigned int node, unsigned int path);
struct av cm_av(const struct cm_script *sc, unsigned int from, unsigned int to, unsigned int path);
/** Of a GID of a node, or -1. */
int cm_node_of(const struct cm_script *sc, const struct av *av);
uint64_t cm_service(const struct cm_script *sc, unsigned int which);

/* --- cm_user.c --- */

extern const struct cm_user cm_sim_user;
struct cm_life *cm_life_new(struct cm_side *side);
/** Connect two honest nodes, or to the hostile one. */
void cm_life_connect(struct cm_script *sc, unsigned int from, unsigned int to);
/** What a user does by itself in a turn. */
void cm_life_step(struct cm_life *l);
void cm_sim_path(const struct cm_script *sc, unsigned int from, unsigned int to, unsigned int path,
	struct cm_path *p);

/* --- cm_data.c --- */

/** Places with what will be sent, and receives for what will come. @retval false no place */
bool cm_data_take(struct cm_life *l);
int cm_data_prepare(struct cm_life *l);
void cm_data_give_back(struct cm_life *l);
void cm_data_post(struct cm_life *l);
void cm_data_poll(struct cm_side *side);
bool cm_data_complete(const struct cm_life *l);
uint64_t cm_data_va(const struct cm_life *l);

/* --- cm_model.c --- */

/** The user is told something: in its turn? */
void cm_model_told(struct cm_life *l, const char *what, bool right);
/** Both sides know each other: do they agree? */
void cm_model_pair(struct cm_life *l, const struct cm_info *info);
/** A user is gone: as was planned? */
void cm_model_released(struct cm_life *l);
/** A node stops, all at rest: counters. */
void cm_model_counters(struct cm_side *side);
/** Limits hold, nobody stays too long, no two connections have the same peer QP. */
void cm_model_look(struct cm_side *side);
/** During and after the flood. */
void cm_model_flood(struct cm_script *sc);
void cm_model_end(struct cm_script *sc);

/* --- cm_hostile.c --- */

enum verdict cm_hostile_receive(struct sim_node *n, const struct packet *pkt);
void cm_hostile_act(struct cm_script *sc);
/** A REP of an honest node. */
void cm_hostile_overhear(struct cm_script *sc, unsigned int from, unsigned int to,
	const struct cm_msg *rep);
void cm_hostile_flood(struct cm_script *sc);

/* --- cm_scenario.c --- */

void cm_scenario(struct sim *s);

#endif
