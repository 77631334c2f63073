/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_BULK_H
#define SA_BULK_H

/**
 * @file
 * What the standard leaves open of class version 1's GetBulk and Config (sa-multipacket A6), as this
 * house has chosen it. Server and client both read this.
 *
 * GetBulkResp: the tables in the order of enum sa_table, each as a header of 8 bytes, {AttributeID
 * 16, length of a record on the wire 16, number of records 32}, and its records in class version 1
 * form. With SA_Key 0 all tables; else those that have changed since the key was given.
 *
 * Config, add: records carry their RID, as for edit and delete; where RIDs are assigned (Service,
 * MCMember, InformInfo) a RID of 0 asks for one.
 */

#define SA_BULK_HEADER    8
#define SA_BULK_ATTRIBUTE 0
#define SA_BULK_RECORD_LEN 2
#define SA_BULK_COUNT     4

/** What EditModifier says; its codes are configured (A6: only 0 in queries is confirmed). */
enum sa_edit {
	SA_EDIT_NONE,
	SA_EDIT_ADD,
	SA_EDIT_DELETE,
	SA_EDIT_EDIT,
	SA_EDIT_UNKNOWN,
};

/** AttributeModifier and EndRID of special meaning (A6). */
#define SA_RID_TEMPLATE 0xFFFFFFFFu
#define SA_RID_ALL_FIRST 0
#define SA_RID_ALL_LAST 0xFFFFFFFFu

#endif
