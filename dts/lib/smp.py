# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Subnet management packets and vendor MADs as bytes, attributes by component (smp-sma 2, 3, 5;
liveness 1 to 3). Written from the sheets.

    PORT_INFO.get(answer.data, 'lid')
    directed(GET, NODE_INFO.attr, path=(1,))
"""

import itertools
import struct

import umad  # noqa: F401: where ibwire is
from ibwire import PERMISSIVE
from mad import Record

LID_ROUTED, DIRECTED = 0x01, 0x81
GET, SET, SEND, TRAP, REPRESS, GET_RESP = 1, 2, 3, 5, 7, 0x81
BAD_VERSION, BAD_METHOD, BAD_ATTRIBUTE, INVALID_FIELD = 0x04, 0x08, 0x0c, 0x1c
D_BIT = 0x8000
NODE_DESC, SWITCH_INFO, GUID_INFO, PKEY_TABLE, SLTOVL, VLARB = 0x10, 0x12, 0x14, 0x16, 0x17, 0x18
SM_INFO, VENDOR_DIAG, LED_INFO = 0x20, 0x30, 0x31
DOWN, INIT, ARMED, ACTIVE = 1, 2, 3, 4
OPENIB = 0x001405

NODE_INFO = Record('NodeInfo', 0x11, 0, 64, '''base_version:8 class_version:8 node_type:8
    num_ports:8 sys_guid:64 node_guid:64 port_guid:64 partition_cap:16 device_id:16 revision:32 local_port:8
    vendor_id:24 r1:192''')
PORT_INFO = Record('PortInfo', 0x15, 0, 64, '''m_key:64 gid_prefix:64 lid:16 sm_lid:16 cap_mask:32
    diag_code:16 m_key_lease:16 local_port:8 width_enabled:8 width_supported:8 width_active:8
    speed_supported:4 state:4 phys_state:4 down_default:4 protect:2 r1:3 lmc:3 speed_active:4
    speed_enabled:4 mtu:4 sm_sl:4 vl_cap:4 init_type:4 vl_high_limit:8 vlarb_high_cap:8
    vlarb_low_cap:8 init_type_reply:4 mtu_cap:4 vl_stall:3 hoq_life:5 oper_vls:4 enforce:4
    m_key_violations:16 pkey_violations:16 qkey_violations:16 guid_cap:8 reregister:1 suppress:2
    subnet_timeout:5 r2:3 resp_time:5 phy_errors:4 overrun_errors:4 max_credit:16 r3:8
    latency:24 cap_mask2:16 speed_ext_active:4 speed_ext_supported:4 r4:3 speed_ext_enabled:5''')
NOTICE = Record('Notice', 0x02, 0, 64, '''generic:1 type:7 producer:24 number:16 issuer:16 toggle:1
    count:15 details:432''')

_tids = itertools.count(0x0dd0000000000001)


class Smp:
    """A MAD with its fields by name; .data is the attribute."""

    def __init__(self, raw):
        self.raw = bytes(raw)
        (self.base, self.cls, self.version, self.method, self.status, self.specific, self.tid,
         self.attr, self.modifier, self.m_key) = struct.unpack_from('>BBBBHHQHxxIQ', self.raw)
        self.hop_pointer, self.hops = self.raw[6], self.raw[7]
        self.data = self.raw[64:128]
        self.initial, self.back = self.raw[128:192], self.raw[192:256]

    def __repr__(self):
        return '<SMP %s data %s>' % (' '.join('%s=0x%x' % (n, getattr(self, n)) for n in (
            'cls', 'version', 'method', 'status', 'specific', 'tid', 'attr', 'modifier')),
            self.data.hex())


def lid_routed(method, attr, modifier=0, data=b'', m_key=0, tid=None, base=1, cls=LID_ROUTED,
               version=1, status=0, specific=0):
    """A LID-routed SMP; with another class, the header of any MAD."""
    head = struct.pack('>BBBBHHQHxxIQ', base, cls, version, method, status, specific,
                       next(_tids) if tid is None else tid, attr, modifier, m_key)
    return (head.ljust(64, b'\0') + data).ljust(256, b'\0')


def directed(method, attr, modifier=0, data=b'', path=(1,), pointer=None, hops=None, status=0,
             dr_slid=PERMISSIVE, dr_dlid=PERMISSIVE, back=b'', **kw):
    """A directed-route SMP as on the last link of its path."""
    hops = len(path) if hops is None else hops
    pointer = hops if pointer is None else pointer
    m = bytearray(lid_routed(method, attr, modifier, data, cls=DIRECTED, status=status,
                             specific=pointer << 8 | hops & 0xff, **kw))
    struct.pack_into('>HH', m, 32, dr_slid, dr_dlid)
    m[129:129 + len(path)] = bytes(path)[:63]
    m[192:192 + len(back)] = back
    return bytes(m)


def notice(**values):
    """A Notice; its details are bytes."""
    return NOTICE.put(**values)


def vendor(cls, method=GET, attr=0, data=b'', modifier=0, tid=None, oui=OPENIB, version=1, base=1,
           rmpp=bytes(12), status=0):
    """A MAD of vendor range 2: classes 0x30 to 0x4F."""
    head = struct.pack('>BBBBHHQHxxI', base, cls, version, method, status, 0,
                       next(_tids) if tid is None else tid, attr, modifier)
    return (head + rmpp + struct.pack('>I', oui) + data).ljust(256, b'\0')


def live(kind, identifier=0, sequence=0, data=b'', **kw):
    """Class 0x34: echo 1, timestamp 3, LID/GUID 5."""
    return vendor(0x34, data=struct.pack('>BxxxHH', kind, identifier, sequence) + data, **kw)
