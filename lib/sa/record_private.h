/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_RECORD_PRIVATE_H
#define SA_RECORD_PRIVATE_H

/* Words for components' values; each list ends with a NULL name. */

#include "sa/record.h"

extern const struct table_word sa_words_node_type[];
extern const struct table_word sa_words_mtu[];
extern const struct table_word sa_words_rate[];
extern const struct table_word sa_words_selector[];
extern const struct table_word sa_words_width[];
extern const struct table_word sa_words_speed[];
extern const struct table_word sa_words_speed_ext[];
extern const struct table_word sa_words_port_state[];
extern const struct table_word sa_words_phys_state[];
extern const struct table_word sa_words_vls[];
extern const struct table_word sa_words_sm_state[];
extern const struct table_word sa_words_lease[];
extern const struct table_word sa_words_scope[];
extern const struct table_word sa_words_join[];
extern const struct table_word sa_words_notice_type[];
extern const struct table_word sa_words_inform_type[];
extern const struct table_word sa_words_trap[];
extern const struct table_word sa_words_producer[];

/** Number of mask bits of a field. */
static inline unsigned int
sa_components(const struct sa_field *f)
{
	return f->mask_bits != 0 ? f->mask_bits : 1;
}

#endif
