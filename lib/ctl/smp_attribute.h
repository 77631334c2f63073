/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_SMP_ATTRIBUTE_H
#define CTL_SMP_ATTRIBUTE_H

/**
 * @file
 * Attributes of subnet management by name, and their components as the records of subnet
 * administration describe them: a record is the attribute behind its record identifier (smp-sma 3).
 */

#include <jansson.h>

#include "base/error.h"
#include "sa/record.h"
#include "sma/sma.h"

struct smp_attribute {
	uint16_t id; /**< enum sma_attribute_id */
	const char *name; /**< "PortInfo" */
	const char *alias; /**< what smpquery calls it, where that is another name */
	uint16_t record; /**< attribute of the record whose table describes it; 0: .own does */
	const struct sa_record_type *own;
	uint16_t first; /**< bytes of the record that are the attribute */
	uint16_t end;
	/** Components, parted by blanks, whose 0 leaves things as they are in a Set. */
	const char *unchanged;
};

extern const struct smp_attribute smp_attributes[]; /**< ends with a row without name */

/** NULL: none that is known here. */
const struct smp_attribute *smp_attribute(uint16_t id);
/** By name or smpquery's name, case ignored. */
const struct smp_attribute *smp_attribute_named(const char *name);

/** {"base_lid": 5, ...} */
json_t *smp_fields(const struct smp_attribute *t, const uint8_t data[SMA_DATA_LEN]);
json_t *smp_field_names(const struct smp_attribute *t);
/** @return the name that is no component's, or NULL */
const char *smp_field_unknown(const struct smp_attribute *t, json_t *fields);
/**
 * Components by name into an attribute; those not given stay.
 *
 * @param fields  all its names are known
 * @retval -EINVAL  err says why
 */
int smp_fields_put(const struct smp_attribute *t, json_t *fields, uint8_t data[SMA_DATA_LEN],
	struct error *err);
/** What a Get brought, as a Set that changes nothing. */
void smp_fields_unchanged(const struct smp_attribute *t, uint8_t data[SMA_DATA_LEN]);

#endif
