# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The peer of a native InfiniBand port: the test writes every frame it sends, and every frame it
receives must be complete with both CRCs right."""

import socket
import struct
import time

import umad  # noqa: F401: where ibwire is
import ibwire
import time_limit
from roce import mac_bytes, SO_RCVBUFFORCE
from smp import NOTICE, Smp, TRAP

ETH_P_ALL = 3


class IbStation:
    """On an interface of a namespace; lid is ours, remote_lid and mac are those of the port."""

    def __init__(self, ns, ifname, mac, remote_mac, lid, remote_lid, ethertype=ibwire.ETHERTYPE):
        self.mac, self.remote_mac = mac, remote_mac
        self.lid, self.remote_lid, self.ethertype = lid, remote_lid, ethertype
        self.psn, self.traps = 0, []

        def opened():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
            s.bind((ifname, 0))
            return s
        self.sock = ns.call(opened)

    def close(self):
        self.sock.close()

    # ---- out

    def raw(self, packet, dst=None, ethertype=None):
        """Send an LRH with what follows it, or any other bytes."""
        self.sock.send(mac_bytes(dst or self.remote_mac) + mac_bytes(self.mac) +
                       struct.pack('>H', ethertype or self.ethertype) + packet)

    def build(self, mad, qpn=0, permissive=False, **kw):
        """kw: as for ibwire.build()."""
        self.psn = self.psn + 1 & 0xffffff
        both = ibwire.PERMISSIVE if permissive else None
        return ibwire.build(mad, **dict(dict(slid=both or self.lid, dlid=both or self.remote_lid,
                                             dqp=qpn, psn=self.psn), **kw))

    def tx(self, mad, qpn=0, dst=None, ethertype=None, **kw):
        self.raw(self.build(mad, qpn, **kw), dst, ethertype)

    # ---- in

    def maybe(self, timeout=0.0):
        """The next packet, or None. Traps may arrive at any time and are set aside."""
        end = time.monotonic() + timeout
        while True:
            self.sock.settimeout(max(0.0001, end - time.monotonic()))
            try:
                frame, where = self.sock.recvfrom(1 << 16)
            except (socket.timeout, BlockingIOError):
                return None
            if where[2] == socket.PACKET_OUTGOING or frame[6:12] != mac_bytes(self.remote_mac) or \
                    frame[12:14] != struct.pack('>H', self.ethertype):
                continue
            p = ibwire.parse(frame[14:])
            if p.mad is not None:
                p.smp = Smp(p.mad)
                if p.dqp == 0 and p.smp.method == TRAP:
                    self.traps.append(p)
                    continue
            return p

    def rx(self, timeout=10):
        """The next packet; an error after the timeout."""
        p = self.maybe(time_limit.limit(timeout))
        assert p is not None, 'no packet within %g s' % timeout
        return p

    def trap(self, number, timeout=10):
        """The next Trap of this number; earlier ones of other numbers are discarded."""
        end = time_limit.end(timeout)
        while True:
            while self.traps:
                p = self.traps.pop(0)
                if NOTICE.get(p.smp.data, 'number') == number:
                    return p
            left = end - time.monotonic()
            assert left > 0, 'no trap %d within %g s' % (number, timeout)
            p = self.maybe(min(left, 0.05))
            assert p is None, p

    def drain(self):
        out = []
        while True:
            p = self.maybe()
            if p is None:
                self.traps = []
                return out
            out.append(p)

    def ask(self, mad, qpn=0, timeout=10, **kw):
        """Send a request and return the next packet, which must be its answer."""
        self.tx(mad, qpn, **kw)
        p = self.rx(timeout)
        assert p.smp.tid == Smp(mad).tid and p.smp.method & 0x80, (Smp(mad), p, p.smp)
        return p
