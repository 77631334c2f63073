/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_SMI_SIM_H
#define SIM_SMI_SIM_H

/**
 * @file
 * Subnet management in the simulation: node 0 is a native IB port of the appliance with its agent,
 * node 1 a subnet manager that is played.
 *
 * smi_node.c runs lib/mad and lib/sma on node 0 and looks at all it sends and at its PortState;
 * trap_model.c keeps count of each trap and knows what must become of it; trap_sm.c is the subnet
 * manager; trap_scenario.c has the script. test/fuzz/fuzz_smp.c uses smi_node.c by itself.
 */

#include "mad/mad.h"
#include "script.h"
#include "sma/sma.h"

#define SMI_CA     0
#define SMI_SM     1
#define SMI_CA_LID 0x0005
#define SMI_SM_LID 0x0007
#define SMI_GUID   UINT64_C(0x0002C90300001234)
#define SMI_ASKED  128 /* requests that answers are compared with */

/* --- smi_node.c --- */

/** What an answer must say again. */
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
	struct port_attr attr; /**< as lib/link would publish it */
	uint8_t state; /**< PortState, as last looked at */
	bool active; /**< comes up so by itself */
	struct smi_asked asked[SMI_ASKED];
	unsigned int num_asked;
};

/** Up, with its link. */
void smi_side_start(struct smi_side *side, struct sim *s, const struct sma_port_config *port,
	const struct sma_limits *limits);
void smi_side_stop(struct smi_side *side);
/** A packet for QP0, or anything else: as lib/link and the engine take it. */
enum verdict smi_side_receive(struct smi_side *side, const struct packet *pkt);
bool smi_side_run(struct smi_side *side);
uint64_t smi_side_next(const struct smi_side *side);
/**
 * What it sends is an SMP in all respects: a Trap, or the answer to something that it was asked.
 */
void smi_check_sent(struct smi_side *side, const struct packet *pkt);
/** PortInfo as it is. */
const uint8_t *smi_port_info(struct smi_side *side);

/** Headers of an SMP, right by default: smi_frame_default. */
struct smi_frame {
	struct wire_headers headers;
	uint16_t slid, dlid;
	bool grh;
	uint32_t len; /**< of the MAD, a multiple of 4, at most 4 * MAD_LEN */
};
extern const struct smi_frame smi_frame_default; /**< from the SM to the appliance */
/** An Ethernet frame of it, with right CRCs. @return length */
uint32_t smi_build(const struct smi_frame *f, const uint8_t *mad, uint8_t frame[SIM_FRAME_MAX]);

#endif
