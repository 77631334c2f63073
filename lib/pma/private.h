/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PMA_PRIVATE_H
#define PMA_PRIVATE_H

/**
 * @file
 * Private to lib/pma: the agent's state, and the functions its files share.
 */

#include <rte_common.h>

#include "pma/pma.h"
#include "wire/bytes.h"

#define PMA_OFF_DATA 64 /* data of every attribute in a MAD */

/* attributes (pma.md 2) */
#define PMA_CLASS_PORT_INFO    0x0001
#define PMA_SAMPLES_CONTROL    0x0010
#define PMA_SAMPLES_RESULT     0x0011
#define PMA_PORT_COUNTERS      0x0012
#define PMA_PORT_COUNTERS_EXT  0x001D
#define PMA_SAMPLES_RESULT_EXT 0x001E

/* PortSelect */
#define PMA_OFF_PORT_SELECT 1
#define PMA_ALL_PORTS       0xFF

#define PMA_SAMPLES 15 /* counters of one sample */

enum pma_sample_status {
	PMA_SAMPLE_DONE,
	PMA_SAMPLE_STARTED, /* waits until SampleStart has passed */
	PMA_SAMPLE_RUNNING,
};

/* A sample as PortSamplesControl requests it, and its result. */
struct pma_sample {
	struct timer timer;
	enum pma_sample_status status;
	uint32_t start, interval; /* ticks */
	uint16_t tag;
	uint16_t select[PMA_SAMPLES];
	uint64_t count[PMA_SAMPLES]; /* while running: totals at the start; then the result */
};

struct pma_port {
	struct pma *pma;
	uint16_t index;
	bool known, up; /* known: pma_link() has been called */
	uint64_t link_downed;
	struct pma_totals seen; /* highest totals read so far */
	uint64_t offset[PMA_COUNTERS]; /* shown value = total - offset */
	struct pma_sample sample;
};

struct pma {
	struct pma_config config;
	struct mad_method methods[3];
	struct pma_port port[]; /* [config.num_ports] */
};

/* A request for one attribute. */
struct pma_request {
	struct pma *pma;
	struct pma_port *port; /* receiving port */
	const uint8_t *in; /* the request's data, 192 bytes */
	uint8_t *out; /* zeroed */
	uint64_t now;
};
/* @return MAD status */
typedef uint16_t (*pma_handler)(const struct pma_request *r);

/* --- counters.c --- */

void pma_totals(struct pma_port *p, struct pma_totals *t);
uint16_t pma_counters_get(const struct pma_request *r);
uint16_t pma_counters_set(const struct pma_request *r);
uint16_t pma_counters_ext_get(const struct pma_request *r);
uint16_t pma_counters_ext_set(const struct pma_request *r);

/* --- samples.c --- */

void pma_sample_init(struct pma_port *p);
void pma_sample_fini(struct pma_port *p);
uint16_t pma_samples_control_get(const struct pma_request *r);
uint16_t pma_samples_control_set(const struct pma_request *r);
uint16_t pma_samples_result_get(const struct pma_request *r);
uint16_t pma_samples_result_ext_get(const struct pma_request *r);

/* --- check.c --- */

/* Builds with RTE_ENABLE_ASSERT check a port after each event; others contain none of it. */
#ifdef RTE_ENABLE_ASSERT
void pma_port_check(const struct pma_port *p);
#else
#define pma_port_check(p) RTE_SET_USED(p)
#endif

/* --- serve.c --- */

/* @retval negative errno */
int pma_agent_add(struct pma *p);

#endif
