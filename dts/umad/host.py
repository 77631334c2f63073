# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The tools' own channel adapter: one port, its subnet management interface (smp-sma 2), and the
connection to the tools."""

import madview as mv
from agent import CA, Node, Port
from ibwire import datagram, PERMISSIVE

DR_SLID = 32


class Host:
    """link: the cable of port 1; user: receives the MADs for tools."""

    def __init__(self, guid, description, lid, sm_lid, state, vls, log):
        self.port = Port(1, lid, sm_lid, state, vls=vls)
        self.node = Node(CA, guid, description, [None, self.port])
        self.log, self.link, self.user = log, None, None

    lid = property(lambda self: self.port.lid)

    # ---- send

    def send(self, mad, dlid, qpn, sl=0, qkey=None):
        """A tool's MAD, or an answer of the host's agent."""
        if mad[1] == mv.DIRECTED and qpn == 0:
            return self.send_directed(bytearray(mad), dlid)
        if dlid and dlid == self.lid:
            return self.loop(mad, qpn)
        self.link.send(datagram(mad, self.lid, dlid, qpn, qpn, sl, qkey))

    def send_directed(self, m, dlid):
        hops = m[7]
        if m[4] & 0x80:  # a subnet manager here answers
            m[6] -= 1
        elif m[DR_SLID:DR_SLID + 2] != b'\xff\xff' and dlid != self.lid:
            # the directed part begins after a LID-routed part
            return self.link.send(datagram(bytes(m), self.lid, dlid, 0, 0))
        elif hops == 0:
            return self.loop(bytes(m), 0)
        elif hops > mv.MAX_HOPS or m[mv.INITIAL_PATH + 1] != 1:
            return self.log('no port %d to leave by', m[mv.INITIAL_PATH + 1])
        else:
            m[6] = 1
        self.link.send(datagram(bytes(m), PERMISSIVE, PERMISSIVE, 0, 0))

    def loop(self, mad, qpn):
        """The destination is this port itself."""
        if mv.is_response(mad):
            return self.user.response(mad, self.lid, qpn)
        if qpn == 0 and not mv.for_sm(mad):
            return self.user.response(bytes(self.node.answer(mad, 1)), self.lid, 0)
        if qpn == 1 and mad[1] == mv.PERFORMANCE:
            return self.user.response(self.node.counters(mad), self.lid, 1)
        self.user.unsolicited(mad, self.lid, qpn)

    # ---- receive

    def arrive(self, p):
        """A packet was received on port 1."""
        if p.mad is None:
            return self.log('not a datagram: %r', p)
        if p.dqp == 0 and p.mad[1] == mv.DIRECTED:
            return self.arrive_directed(bytearray(p.mad), p)
        if p.raw and p.dlid not in (self.lid, PERMISSIVE):
            return self.log('not our LID: %r', p)
        if p.dqp == 0:
            return self.arrive_smp(p)
        if p.dqp != 1:
            return self.log('no such queue pair: %r', p)
        if mv.is_rmpp(p.mad):
            return self.user.rmpp(p.mad, p.slid, p.sqp)
        if mv.is_response(p.mad):
            return self.user.response(p.mad, p.slid, p.sqp)
        if p.mad[1] == mv.PERFORMANCE:
            return self.send(self.node.counters(p.mad), p.slid, 1)
        self.user.unsolicited(p.mad, p.slid, p.sqp)

    def arrive_smp(self, p):
        if p.mad[1] != mv.LID_ROUTED:
            return self.log('no SMP: %r', p)
        if mv.is_response(p.mad):
            self.user.response(p.mad, p.slid, 0)
        elif mv.for_sm(p.mad):
            self.user.unsolicited(p.mad, p.slid, 0)
        else:
            self.send(bytes(self.node.answer(p.mad, 1)), p.slid, 0)

    def arrive_directed(self, m, p):
        if m[4] & 0x80:
            if m[6] != 1 and (m[6] or m[DR_SLID:DR_SLID + 2] == b'\xff\xff'):
                return self.log('response with hop pointer %d', m[6])
            m[6] = 0
            return self.user.response(bytes(m), p.slid, 0)
        if m[6] != m[7] or m[7] > mv.MAX_HOPS:
            return self.log('hop pointer %d of %d: to be passed on, but this is no switch',
                            m[6], m[7])
        if m[7]:
            m[mv.RETURN_PATH + m[6]] = 1
        m[6] += 1
        if mv.for_sm(m):
            return self.user.unsolicited(bytes(m), p.slid, 0)
        r = self.node.answer(bytes(m), 1)
        r[6] -= 1
        self.link.send(datagram(bytes(r), p.dlid, p.slid, 0, 0))
