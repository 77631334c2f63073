/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_BULK_H
#define SA_BULK_H

/**
 * @file
 * Our choices where the standard leaves class version 1's GetBulk and Config open (sa-multipacket
 * A6). Server and client both use them.
 *
 * GetBulkResp: the tables in the order of enum sa_table. Each has a header of 8 bytes, {AttributeID
 * 16, length of a record on the wire 16, number of records 32}, followed by its records in class
 * version 1 form. SA_Key 0 asks for all tables, another SA_Key for those changed since it was
 * given.
 *
 * Config, add: records carry their RID, like edit and delete. In tables whose RIDs the SA assigns
 * (Service, MCMember, InformInfo), RID 0 asks for a new one.
 */

#define SA_BULK_HEADER     8
#define SA_BULK_ATTRIBUTE  0
#define SA_BULK_RECORD_LEN 2
#define SA_BULK_COUNT      4

/** Meaning of EditModifier; its codes are configured (A6: only 0 in queries is confirmed). */
enum sa_edit {
	SA_EDIT_NONE,
	SA_EDIT_ADD,
	SA_EDIT_DELETE,
	SA_EDIT_EDIT,
	SA_EDIT_UNKNOWN,
};

/** Special values of AttributeModifier and EndRID (A6). */
#define SA_RID_TEMPLATE  0xFFFFFFFFu
#define SA_RID_ALL_FIRST 0
#define SA_RID_ALL_LAST  0xFFFFFFFFu

#endif
