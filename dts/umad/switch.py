# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A switch between the tools' channel adapter and several devices, with the functions that a
subnet manager needs to route through it."""

import struct

import madview as mv
from agent import ACTIVE, ARMED, Node, Port, SWITCH
from ibwire import datagram, PERMISSIVE

LFT_TOP, LFT_BLOCK = 1024, 64
NOWHERE = 0xff


class Switch:
    """ports: the objects cabled to port 1, 2, ..., each with send(packet)."""

    def __init__(self, guid, description, cables, vls, log):
        self.cables, self.log = [None] + cables, log
        ports = [Port(i, vls=vls) for i in range(len(self.cables))]
        self.node = Node(SWITCH, guid, description, ports)
        self.node.ports[0].link(True)
        self.lft = bytearray([NOWHERE]) * LFT_TOP
        self.info = bytearray(64)
        struct.pack_into('>HHHH', self.info, 0, LFT_TOP, 0, 0, 0)
        self.info[12] = 18 << 3
        self.node.attributes.update({mv.SWITCH_INFO: self.switch_info, mv.LFT: self.table})
        self.relayed = 0

    def switch_info(self, m, number):
        if m[3] == mv.SET:
            self.info[6:8] = m[70:72]  # LinearFDBTop
            self.info[8:12] = m[72:76]
            self.info[12] = m[76] & 0xf8
        return 0, self.info

    def table(self, m, number):
        at = mv.modifier(m) * LFT_BLOCK
        if at >= LFT_TOP:
            return mv.BAD_VALUE, None
        if m[3] == mv.SET:
            self.lft[at:at + LFT_BLOCK] = m[64:128]
        return 0, self.lft[at:at + LFT_BLOCK]

    def out(self, number, p):
        if not 1 <= number < len(self.cables):
            return self.log('switch: no port %d for %r', number, p)
        self.cables[number].send(p)

    def arrive(self, number, p):
        """A packet was received on a port."""
        smp = p.dqp == 0 and p.mad is not None
        if smp and p.mad[1] == mv.DIRECTED:
            return self.directed(number, p)
        if smp and p.dlid in (self.node.ports[0].lid, PERMISSIVE):
            return self.mine(number, p)
        to = self.lft[p.dlid] if p.dlid < LFT_TOP else NOWHERE
        if to == 0 or (not smp and self.state(number) not in (ARMED, ACTIVE)):
            return self.log('switch: port %d drops %r', number, p)
        self.relayed += 1
        self.out(to, p)

    def state(self, number):
        return self.node.ports[number].state

    def mine(self, number, p):
        if mv.is_response(p.mad) or mv.for_sm(p.mad):
            return self.log('switch: no subnet manager here')
        answer = bytes(self.node.answer(p.mad, number))
        self.out(number, datagram(answer, self.node.ports[0].lid, p.slid, 0, 0))

    def directed(self, number, p):
        m = bytearray(p.mad)
        at, hops = m[6], m[7]
        if hops > mv.MAX_HOPS:
            return self.log('switch: %d hops', hops)
        if m[4] & 0x80:  # a response returning
            if not 2 <= at <= hops:
                return self.log('switch: response with hop pointer %d of %d', at, hops)
            m[6] -= 1
            return self.pass_on(m[mv.RETURN_PATH + m[6]], m, p)
        if at > hops or at == 0:
            return self.log('switch: hop pointer %d of %d', at, hops)
        m[mv.RETURN_PATH + at] = number
        m[6] += 1
        if at < hops:
            return self.pass_on(m[mv.INITIAL_PATH + m[6]], m, p)
        if mv.for_sm(m):
            return self.log('switch: no subnet manager here')
        r = self.node.answer(bytes(m), number)
        r[6] -= 1
        self.out(number, datagram(bytes(r), p.dlid, p.slid, 0, 0))

    def pass_on(self, number, m, p):
        self.out(number, datagram(bytes(m), p.slid, p.dlid, 0, 0))
