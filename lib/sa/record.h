/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_RECORD_H
#define SA_RECORD_H

/**
 * @file
 * SA records: one table per record type describes each component's position, width, mask bit and
 * text form. Encoding, decoding, component masks of both class versions, matching, printing and
 * parsing all use that table (sa-multipacket B10, B11, A7).
 *
 * The stored form of a record is its class version 2 wire form without the padding to the stride.
 * Its class version 1 form is the RID and the attribute: the wire form without the RID part (A6).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "table/table.h"

#define SA_RECORD_MAX 256 /* bytes of the longest record, stride included */
#define SA_LIST_MAX   64 /* numbers of the longest list */

enum sa_attribute {
	SA_CLASS_PORT_INFO = 0x0001,
	SA_NOTICE = 0x0002,
	SA_INFORM_INFO = 0x0003,
	SA_NODE = 0x0011,
	SA_PORT_INFO = 0x0012,
	SA_SLTOVL = 0x0013,
	SA_SWITCH_INFO = 0x0014,
	SA_LFT = 0x0015,
	SA_RFT = 0x0016,
	SA_MFT = 0x0017,
	SA_SM_INFO = 0x0018,
	SA_LINK = 0x0020,
	SA_GUID_INFO = 0x0030,
	SA_SERVICE = 0x0031,
	SA_PKEY_TABLE = 0x0033,
	SA_PATH = 0x0035,
	SA_VLARB = 0x0036,
	SA_MCMEMBER = 0x0038,
	SA_MULTI_PATH = 0x003A,
	SA_INFORM_INFO_RECORD = 0x00F3,
	SA_PATH_SL = 0xFF15, /**< our own, from the vendors' range: SLs that an SM gave to paths */
};

/** Tables of the store; .table of stored types. */
enum sa_table {
	SA_TABLE_NODE,
	SA_TABLE_PORT_INFO,
	SA_TABLE_SM_INFO,
	SA_TABLE_LINK,
	SA_TABLE_GUID_INFO,
	SA_TABLE_PKEY,
	SA_TABLE_SLTOVL,
	SA_TABLE_VLARB,
	SA_TABLE_SWITCH_INFO,
	SA_TABLE_SERVICE,
	SA_TABLE_MCMEMBER,
	SA_TABLE_INFORM,
	SA_TABLE_LFT,
	SA_TABLE_RFT,
	SA_TABLE_MFT,
	SA_TABLE_PATH_SL,
	SA_TABLES
};

/** Text form of a component. */
enum sa_kind {
	SA_DEC,
	SA_HEX,
	SA_WORD, /**< one of .words, else a number */
	SA_FLAGS_WORD, /**< bits named by .words, joined by '+' */
	SA_LID,
	SA_GUID, /**< 64 bits, "0x0002c9030000beef" */
	SA_GID, /**< 128 bits, IPv6 notation */
	SA_TEXT, /**< bytes, NUL-padded UTF-8 */
	SA_BYTES, /**< bytes, hex */
	SA_DEC_LIST, /**< .count numbers of .bits / .count bits each: "1,2,3" */
	SA_HEX_LIST,
	SA_RESERVED, /**< has a mask bit but no value */
};

struct sa_field {
	const char *name; /**< as in opensm and saquery, lower case: "dlid", "packet_life" */
	uint16_t offset; /**< in bits */
	uint16_t bits;
	int8_t mask_bit; /**< in class version 2 (B11); -1: none */
	uint8_t kind;
	uint8_t count; /**< numbers in a list */
	uint8_t mask_bits; /**< number of mask bits, from mask_bit on; 0 means 1 */
	bool v2_only; /**< not in version 1, where later components move up (A7, B11) */
	const struct table_word *words;
	const char *help;
};

/** Meaning of the low 16 bits of a RID (A6). */
enum sa_rid_form {
	SA_RID_PORT_ENUM, /**< port and enumeration, at .rid_port and .rid_enum */
	SA_RID_BLOCK, /**< 16-bit block number, after the LID */
	SA_RID_MULTICAST, /**< position 4, block 10, zero 2; in the record 4, reserved 3, 9 */
};

struct sa_record_type {
	uint16_t attribute;
	uint16_t len; /**< length of the version 2 form */
	uint16_t stride; /**< bytes, a multiple of 8: AttributeOffset * 8 */
	uint8_t rid_len; /**< length of the RID part, which the version 1 form lacks */
	uint8_t rid_components; /**< mask bits of the RID part: v1 bit = v2 bit - this (A7) */
	uint8_t rid_form; /**< enum sa_rid_form */
	uint8_t rid_port; /**< offsets of a RID's port and enumeration; 0: none (A6) */
	uint8_t rid_enum;
	bool stored; /**< has a table in the store; others are computed */
	uint8_t table; /**< enum sa_table */
	const char *name; /**< "NodeRecord" */
	const char *alias; /**< "node", for command lines */
	const struct sa_field *fields;
	unsigned int num_fields;
	const char *help;
};

extern const struct sa_record_type sa_record_types[];
extern const unsigned int sa_num_record_types;

/** Find a type by attribute ID; NULL: none. */
const struct sa_record_type *sa_record_type(uint16_t attribute);
/** Find it by name or alias, ignoring case, or by attribute ID as a number. */
const struct sa_record_type *sa_record_type_named(const char *name);
const struct sa_field *sa_field_named(const struct sa_record_type *t, const char *name);

/** Read or write a component of up to 64 bits. */
uint64_t sa_get(const struct sa_field *f, const uint8_t *rec);
void sa_put(const struct sa_field *f, uint8_t *rec, uint64_t value);
/** The same by name, which must exist in the type. */
uint64_t sa_get_named(const struct sa_record_type *t, const char *name, const uint8_t *rec);
void sa_put_named(const struct sa_record_type *t, const char *name, uint8_t *rec, uint64_t value);

/** Class version. */
enum sa_version {
	SA_V1 = 1,
	SA_V2 = 2,
};
/** Mask bits of a field in a version; 0: it cannot be selected there (v1: the RID part). */
uint64_t sa_mask(const struct sa_record_type *t, const struct sa_field *f, enum sa_version v);
/** Convert a mask of version v to version 2's numbering. */
uint64_t sa_mask_v2(const struct sa_record_type *t, uint64_t mask, enum sa_version v);
/** All mask bits with a component, in version 2's numbering; ignore others. */
uint64_t sa_mask_known(const struct sa_record_type *t);

/**
 * A query template, compiled for fast comparison: a mask and a value, compared word by word.
 */
struct sa_match {
	uint16_t first; /**< first byte compared; equal to .end: all records match */
	uint16_t end;
	uint64_t mask[SA_RECORD_MAX / 8];
	uint64_t value[SA_RECORD_MAX / 8];
};
/** @param mask  version 2's numbering. @param skip  components to leave out (selectors) */
void sa_match_compile(struct sa_match *m, const struct sa_record_type *t, const uint8_t *tmpl,
	uint64_t mask, uint64_t skip);
bool sa_match(const struct sa_match *m, const uint8_t *rec);

/**
 * RID of a record (A6). Types without RID part (Service, Path, MCMember, InformInfo and the like):
 * 0. The port number is always part of it, on channel adapters, too: two ports with the same LID
 * are two records.
 */
uint32_t sa_rid(const struct sa_record_type *t, const uint8_t *rec);
/** Write a RID to the RID part, after clearing it. */
void sa_rid_put(const struct sa_record_type *t, uint8_t *rec, uint32_t rid);

/**
 * Length of one record on the wire: the stride, or in version 1 RID and attribute. Attributes of
 * the class itself (ClassPortInfo, Notice, InformInfo) are no records and have no RID.
 */
uint16_t sa_wire_len(const struct sa_record_type *t, enum sa_version v);
/** Encode the stored form: sa_wire_len() bytes. @param rid  used by version 1 */
void sa_encode(const struct sa_record_type *t, enum sa_version v, const uint8_t *rec, uint32_t rid,
	uint8_t *wire);
/** Decode to the stored form; @p rec takes t->len bytes. Any bytes can be decoded. */
void sa_decode(const struct sa_record_type *t, enum sa_version v, const uint8_t *wire, uint8_t *rec,
	uint32_t *rid);

/** Print a component. @return buf */
const char *sa_print(const struct sa_field *f, const uint8_t *rec, char *buf, size_t size);
#define SA_PRINT_MAX 1200 /* longest text: 192 bytes with escapes */
/**
 * Parse a component: "4096" or "2048" for MTUs, "0x12", "fe80::1", words, ... @retval -EINVAL err
 * tells what is allowed
 */
int sa_parse(const struct sa_field *f, uint8_t *rec, const char *text, struct error *err);

#endif
