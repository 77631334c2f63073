/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <iba/ib_types.h>

#include "osm_notice.h"

#define D(field) n->data_details.field

/* X(name, value) */
/* clang-format off */
#define FIELDS(X)                                                                                  \
	X("generic", ib_notice_is_generic(n) != 0)                                                 \
	X("type", ib_notice_get_type(n))                                                           \
	X("producer", cl_ntoh32(ib_notice_get_prod_type(n)))                                       \
	X("trap", cl_ntoh16(n->g_or_v.generic.trap_num))                                           \
	X("issuer_lid", cl_ntoh16(n->issuer_lid))                                                  \
	X("toggle", cl_ntoh16(n->toggle_count) >> 15)                                              \
	X("count", cl_ntoh16(n->toggle_count) & 0x7FFF)                                            \
	X("129.lid", cl_ntoh16(D(ntc_129_131.lid)))                                                \
	X("129.port", D(ntc_129_131.port_num))                                                     \
	X("144.lid", cl_ntoh16(D(ntc_144.lid)))                                                    \
	X("144.other", D(ntc_144.local_changes) & TRAP_144_MASK_OTHER_LOCAL_CHANGES)               \
	X("144.cap_mask", cl_ntoh32(D(ntc_144.new_cap_mask)))                                      \
	X("144.cap_mask2", cl_ntoh16(D(ntc_144.cap_mask2)))                                        \
	X("144.node_desc", (D(ntc_144.change_flgs) & TRAP_144_MASK_NODE_DESCRIPTION_CHANGE) != 0)  \
	X("144.width", (D(ntc_144.change_flgs) & TRAP_144_MASK_LINK_WIDTH_ENABLE_CHANGE) != 0)     \
	X("144.speed", (D(ntc_144.change_flgs) & TRAP_144_MASK_LINK_SPEED_ENABLE_CHANGE) != 0)     \
	X("145.lid", cl_ntoh16(D(ntc_145.lid)))                                                    \
	X("145.guid", cl_ntoh64(D(ntc_145.new_sys_guid)))                                          \
	X("256.lid", cl_ntoh16(D(ntc_256.lid)))                                                    \
	X("256.dr_slid", cl_ntoh16(D(ntc_256.dr_slid)))                                            \
	X("256.method", D(ntc_256.method))                                                         \
	X("256.attribute", cl_ntoh16(D(ntc_256.attr_id)))                                          \
	X("256.modifier", cl_ntoh32(D(ntc_256.attr_mod)))                                          \
	X("256.m_key", cl_ntoh64(D(ntc_256.mkey)))                                                 \
	X("256.dr", D(ntc_256.dr_trunc_hop))                                                       \
	X("256.path[3]", D(ntc_256.dr_rtn_path[3]))                                                \
	X("257.lid1", cl_ntoh16(D(ntc_257_258.lid1)))                                              \
	X("257.lid2", cl_ntoh16(D(ntc_257_258.lid2)))                                              \
	X("257.key", cl_ntoh32(D(ntc_257_258.key)))                                                \
	X("257.sl_qp1", cl_ntoh32(D(ntc_257_258.qp1)))                                             \
	X("257.qp2", cl_ntoh32(D(ntc_257_258.qp2)))                                                \
	X("257.gid1", cl_ntoh64(D(ntc_257_258.gid1.unicast.interface_id)))                         \
	X("257.gid2", cl_ntoh64(D(ntc_257_258.gid2.unicast.interface_id)))
/* clang-format on */

uint64_t
osm_notice(const uint8_t *notice, const char *name)
{
	ib_mad_notice_attr_t copy, *n = &copy;

	memcpy(n, notice, 64);
#define X(field, value)                                                                            \
	if (strcmp(name, field) == 0)                                                              \
		return (uint64_t)(value);
	FIELDS(X)
#undef X
	fail_msg("no field %s", name);
	return 0;
}
