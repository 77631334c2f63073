# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Subnet management agents of the nodes that the bridge implements: the tools' channel adapter,
and the switch between it and the devices. They are test equipment, not a reference for Polca's
answers.
"""

import struct

import madview as mv

CAP_SM, CAP_TRAP, CAP_SYSTEM_GUID = 1 << 1, 1 << 3, 1 << 11
INIT, ARMED, ACTIVE = 2, 3, 4
CA, SWITCH = 1, 2
VL0, VL0_7 = 1, 4  # VLCap


class Port:
    """Attributes of one port, as bytes."""

    def __init__(self, number, lid=0, sm_lid=0, state=INIT, mtu=5, vls=VL0_7):
        pi = self.info = bytearray(64)
        struct.pack_into('>QHHI', pi, 8, 0xfe80000000000000, lid, sm_lid,
                         CAP_TRAP | CAP_SYSTEM_GUID)
        pi[28:32] = bytes((number, 3, 3, 2))  # 1x and 4x, 4x active
        pi[32], pi[33] = 1 << 4 | state, 5 << 4 | 2  # SDR; LinkUp, Polling
        pi[35], pi[36], pi[37] = 0x11, mtu << 4, vls << 4  # SDR; NeighborMTU; VLCap
        pi[41], pi[43] = mtu, vls << 4
        pi[50], pi[51], pi[52] = 1, 18, 16
        self.pkeys = bytearray(b'\xff\xff' + bytes(62))

    lid = property(lambda self: struct.unpack_from('>H', self.info, 16)[0])
    state = property(lambda self: self.info[32] & 15)

    def link(self, up):
        self.info[32] = self.info[32] & 0xf0 | (INIT if up else 1)

    def set_sm(self, on):
        bits, = struct.unpack_from('>I', self.info, 20)
        struct.pack_into('>I', self.info, 20, bits | CAP_SM if on else bits & ~CAP_SM)

    def set_info(self, d):
        """Set(PortInfo): the fields that a subnet manager writes."""
        pi = self.info
        # M_Key .. MasterSMLID; lease; VLHighLimit; violations; SubnetTimeOut
        for a, b in ((0, 20), (26, 28), (38, 39), (44, 50), (51, 52)):
            pi[a:b] = d[a:b]
        pi[51] &= 0x7f
        pi[34], pi[36], pi[53] = d[34] & 0xc7, d[36], d[53]
        if d[29] not in (0, 0xff):
            pi[29] = d[29]
        if d[35] & 15 not in (0, 15):
            pi[35] = pi[35] & 0xf0 | d[35] & 15
        if d[43] & 0xf0:
            pi[43] = d[43]
        wanted, phys = d[32] & 15, d[33] >> 4
        if wanted == 1 or phys == 2:
            pi[32] = pi[32] & 0xf0 | INIT  # the link trains again at once
        elif wanted in (ARMED, ACTIVE) and self.state in (wanted, wanted - 1):
            pi[32] = pi[32] & 0xf0 | wanted
        elif wanted:
            return mv.BAD_VALUE
        return 0


class Node:
    """ports[n] is port n; a channel adapter does not use ports[0]."""

    def __init__(self, kind, guid, description, ports):
        self.kind, self.guid, self.description, self.ports = kind, guid, description, ports
        self.num_ports = len(ports) - 1
        self.attributes = {mv.NODE_INFO: self.node_info, mv.NODE_DESC: self.node_desc,
                           mv.PORT_INFO: self.port_info, mv.PKEY_TABLE: self.pkey_table,
                           mv.GUID_INFO: self.guid_info}

    def port_guid(self, number):
        return self.guid if self.kind == SWITCH else self.guid + number

    def info(self, number):
        """NodeInfo as seen through this port."""
        return (struct.pack('>BBBBQQQHHI', 1, 1, self.kind, self.num_ports, self.guid, self.guid,
                            self.port_guid(number), 32, 1, 1) +
                struct.pack('>I', number << 24 | 0xc0ffee)).ljust(64, b'\0')

    def node_info(self, m, number):
        return (mv.BAD_ATTRIBUTE, None) if m[3] == mv.SET else (0, self.info(number))

    def node_desc(self, m, number):
        return (mv.BAD_ATTRIBUTE, None) if m[3] == mv.SET else \
            (0, self.description.encode().ljust(64, b'\0'))

    def which(self, wanted, number):
        """The port that a modifier selects: on a channel adapter, 0 is the port that received
        the SMP."""
        return number if self.kind == CA and wanted == 0 else wanted

    def port_info(self, m, number):
        n = self.which(mv.modifier(m) & 0xff, number)
        if n > self.num_ports:
            return mv.BAD_VALUE, None
        port = self.ports[n]
        status = port.set_info(m[64:128]) if m[3] == mv.SET else 0
        data = bytearray(port.info)
        data[28] = number
        return status, data

    def pkey_table(self, m, number):
        n = self.which(mv.modifier(m) >> 16, number)
        if n > self.num_ports or mv.modifier(m) & 0xffff:
            return mv.BAD_VALUE, None
        if m[3] == mv.SET:
            self.ports[n].pkeys[:] = m[64:128]
        return 0, self.ports[n].pkeys

    def guid_info(self, m, number):
        return (mv.BAD_VALUE, None) if mv.modifier(m) else \
            (0, struct.pack('>Q', self.port_guid(number)).ljust(64, b'\0'))

    def answer(self, mad, number):
        """The GetResp to an SMP received on this port; the caller sets the hop fields."""
        m, data = bytearray(mad), None
        handler = self.attributes.get(mv.attribute(mad))
        if mad[0] != 1 or mad[2] != 1:
            status = mv.BAD_VERSION
        elif mad[3] not in (mv.GET, mv.SET):
            status = mv.BAD_METHOD
        elif handler is None:
            status = mv.BAD_ATTRIBUTE
        else:
            status, data = handler(mad, number)
        m[3] = mv.GET_RESP
        if data is not None:
            m[64:128] = data
        struct.pack_into('>H', m, 4, status | (mv.D_BIT if mad[1] == mv.DIRECTED else 0))
        return m

    def counters(self, mad):
        """Performance management: ClassPortInfo, and counters that are always 0."""
        m, status = bytearray(mad), 0
        m[3] = mv.GET_RESP
        which = mv.attribute(mad)
        if mad[3] not in (mv.GET, mv.SET):
            status = mv.BAD_METHOD
        elif which == 1:
            m[64:] = struct.pack('>BBHI', 1, 1, 0x0200, 18).ljust(192, b'\0')
        elif which in (0x12, 0x1d):
            m[68:] = bytes(188)
        else:
            status = mv.BAD_ATTRIBUTE
        struct.pack_into('>H', m, 4, status)
        return bytes(m)
