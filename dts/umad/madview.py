# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The MAD fields that the bridge reads and writes (smp-sma 2, sa-multipacket B1)."""

import struct

LID_ROUTED, DIRECTED, SUBN_ADM, PERFORMANCE = 0x01, 0x81, 0x03, 0x04
SMPS = (LID_ROUTED, DIRECTED)
GET, SET, SEND, TRAP, REPORT, REPRESS, GET_RESP = 1, 2, 3, 5, 6, 7, 0x81
NOTICE, NODE_DESC, NODE_INFO, SWITCH_INFO = 0x02, 0x10, 0x11, 0x12
GUID_INFO, PORT_INFO, PKEY_TABLE, SLTOVL, VLARB = 0x14, 0x15, 0x16, 0x17, 0x18
LFT, RANDOM_FT, MFT, SM_INFO = 0x19, 0x1a, 0x1b, 0x20
BAD_VERSION, BAD_METHOD, BAD_ATTRIBUTE, BAD_VALUE = 0x04, 0x08, 0x0c, 0x1c
D_BIT = 0x8000
INITIAL_PATH, RETURN_PATH, MAX_HOPS = 128, 192, 63

DATA, ACK, STOP, ABORT = 1, 2, 3, 4  # RMPPType
ACTIVE, FIRST, LAST = 1, 2, 4


def tid(mad):
    return struct.unpack_from('>Q', mad, 8)[0]


def with_tid(mad, value):
    return mad[:8] + struct.pack('>Q', value) + mad[16:]


def attribute(mad):
    return struct.unpack_from('>H', mad, 16)[0]


def modifier(mad):
    return struct.unpack_from('>I', mad, 20)[0]


def is_response(mad):
    """True for a response, as the kernel decides: the R bit, or TrapRepress."""
    return bool(mad[3] & 0x80) or mad[3] == REPRESS


def for_sm(mad):
    """True if an SMP is for the subnet manager, not for the agent."""
    return attribute(mad) == SM_INFO or mad[3] in (TRAP, REPRESS)


def can_rmpp(mad):
    return mad[1] == SUBN_ADM or 0x30 <= mad[1] <= 0x4f


def is_rmpp(mad):
    return can_rmpp(mad) and bool(mad[26] & ACTIVE)


def data_offset(mad):
    """The offset of the data of a class that may use RMPP."""
    return 56 if mad[1] == SUBN_ADM else 40


def show(mad):
    return 'class 0x%02x method 0x%02x attribute 0x%04x modifier 0x%x tid %016x' % (
        mad[1], mad[3], attribute(mad), modifier(mad), tid(mad))
