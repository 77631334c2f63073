/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_SMI_SIM_H
#define SIM_SMI_SIM_H

/**
 * @file
 * Subnet management in the simulation: node 0 is a native IB port of the appliance with its agent,
 * node 1 a scripted subnet manager.
 *
 * smi_node.c runs lib/mad and lib/sma on node 0 and checks all its packets and its PortState;
 * trap_model.c follows each trap and checks how it ends; trap_sm.c is the subnet manager;
 * trap_scenario.c has the script. test/fuzz/fuzz_smp.c uses smi_node.c alone.
 */

#include "../wire/build.h"
#include "mad/mad.h"
#include "script.h"
#include "sma/sma.h"

#define SMI_CA     0
#define SMI_SM     1
#define SMI_CA_LID 0x0005
#define SMI_SM_LID 0x0007
#define SMI_GUID   UINT64_C(0x0002C90300001234)
#define SMI_ASKED  128 /* last requests, which answers are compared with */

/* --- smi_node.c --- */

/** Fields of a request that its answer must repeat. */
struct smi_asked {
	uint64_t tid;
	uint64_t m_key;
	uint32_t modifier;
	uint16_t attribute;
	uint16_t slid, dlid;
	uint8_t mgmt_class, class_version, method;
};

struct smi_side {
	struct sim *sim;
	struct sim_node *node;
	struct timer_wheel *wheel;
	struct mad_worker *mad;
	struct sma *sma;
	struct port_attr attr; /**< as lib/link publishes it */
	uint8_t state; /**< PortState at the last check */
	bool active; /**< the port becomes Active without a subnet manager */
	struct smi_asked asked[SMI_ASKED];
	unsigned int num_asked;
};

/** Start the agent, with its link up. */
void smi_side_start(struct smi_side *side, struct sim *s, const struct sma_port_config *port,
	const struct sma_limits *limits);
void smi_side_stop(struct smi_side *side);
/** Receive any packet, as lib/link and the engine do. */
enum verdict smi_side_receive(struct smi_side *side, const struct packet *pkt);
bool smi_side_run(struct smi_side *side);
uint64_t smi_side_next(const struct smi_side *side);
/** Check a packet of the port: it must be a valid Trap, or the answer to a request. */
void smi_check_sent(struct smi_side *side, const struct packet *pkt);
/** The port's present PortInfo. */
const uint8_t *smi_port_info(struct smi_side *side);

/** Headers of an SMP; smi_frame_default has valid ones. */
struct smi_frame {
	struct wire_headers headers;
	uint16_t slid, dlid;
	bool grh;
	uint32_t len; /**< of the MAD, a multiple of 4, at most 4 * MAD_LEN */
};
extern const struct smi_frame smi_frame_default; /**< from the SM to the appliance */
/** Build the Ethernet frame, with valid CRCs. @return its length */
uint32_t smi_build(const struct smi_frame *f, const uint8_t *mad, uint8_t frame[SIM_FRAME_MAX]);

#endif
