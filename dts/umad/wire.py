# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The cable to a device: an Ethernet interface that carries native InfiniBand packets and, if
requested, datagrams to QP1 as RoCEv2."""

import socket
import struct

import ibwire

ETH_P_ALL, ETH_P_IP, ETH_P_ARP = 3, 0x0800, 0x0806
BROADCAST = b'\xff' * 6
SO_RCVBUFFORCE = 33
BURST = 64


class Cable:
    """arrive: called with received packets; bad: called with the errors of invalid frames.
    roce: (our address, the device's) if QP1 uses RoCEv2; then every LID is the device."""

    def __init__(self, interface, roce=None, ethertype=ibwire.ETHERTYPE):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
        self.sock.bind((interface, 0))
        self.sock.setblocking(False)
        self.interface, self.roce, self.mac = interface, roce, self.sock.getsockname()[4]
        self.head = self.mac + struct.pack('>H', ethertype)
        self.ethertype, self.peer, self.waiting, self.psn = ethertype, None, [], 0
        self.arrive = self.bad = None

    # ---- send

    def send(self, p):
        if self.roce and p.dqp == 1:
            self.psn = p.psn = self.psn + 1 & 0xffffff
            return self.send_udp(p)
        raw = p.raw
        if raw is None:
            self.psn = self.psn + 1 & 0xffffff
            raw = ibwire.build(p.mad, p.slid, p.dlid, p.dqp, p.sqp, sl=p.sl, vl=p.vl, pkey=p.pkey,
                               psn=self.psn, qkey=p.qkey)
        self.sock.send((self.peer or BROADCAST) + self.head + raw)

    def send_udp(self, p):
        packet = ibwire.build_udp(p, *self.roce)
        if self.peer:
            self.sock.send(self.peer + self.mac + b'\x08\x00' + packet)
            return
        self.waiting.append(packet)
        self.arp(1, BROADCAST, bytes(6), socket.inet_aton(self.roce[1]))

    def arp(self, op, mac, target_mac, target):
        self.sock.send(mac + self.mac + b'\x08\x06\0\1\x08\0\6\4' + struct.pack('>H', op) +
                       self.mac + socket.inet_aton(self.roce[0]) + target_mac + target)

    # ---- receive

    def readable(self):
        for _ in range(BURST):
            try:
                frame, where = self.sock.recvfrom(9216)
            except BlockingIOError:
                return
            if where[2] != socket.PACKET_OUTGOING and len(frame) >= 14:
                self.frame(frame)

    def frame(self, frame):
        kind, = struct.unpack_from('>H', frame, 12)
        try:
            if kind == self.ethertype:
                p = ibwire.parse(memoryview(frame)[14:])
            elif kind == ETH_P_IP and self.roce:
                p = ibwire.parse_udp(frame[14:])
                if p is None or frame[30:34] != socket.inet_aton(self.roce[0]):
                    return
            else:
                if kind == ETH_P_ARP and self.roce and len(frame) >= 42:
                    self.heard_arp(frame)
                return
        except ibwire.WireError as e:
            return self.bad('frame from %s: %s' % (self.interface, e))
        self.learn(frame[6:12])
        self.arrive(p)

    def heard_arp(self, frame):
        if frame[38:42] != socket.inet_aton(self.roce[0]):
            return
        if frame[20:22] == b'\0\1':
            self.arp(2, frame[22:28], frame[22:28], frame[28:32])
        if frame[28:32] == socket.inet_aton(self.roce[1]):
            self.learn(frame[22:28])

    def learn(self, mac):
        self.peer = mac
        for packet in self.waiting:
            self.sock.send(mac + self.mac + b'\x08\x00' + packet)
        self.waiting = []
