# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Tools at the bridge's socket: one connection for each open /dev/infiniband/umadN or issmN.

preload.c is the other end. A message is a u32 type and its body; to the tool it is a struct
ib_user_mad and the MAD, and a MAD too long for a message is passed as an open file.
"""

import os
import socket
import struct

from ibwire import QP1_QKEY

REGISTER, UNREGISTER, MAD, IS_SM = range(1, 5)
HEADER = 64  # struct ib_user_mad
INLINE = 32768  # longer ones are passed as a file
MOST = 1 << 22
BUFFER = 8 << 20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33


class Agent:
    """struct ib_user_mad_reg_req, without its id."""

    def __init__(self, raw):
        self.methods = int.from_bytes(raw[:16], 'little')
        self.qpn, self.mgmt_class, self.version = raw[16:19]
        self.oui = raw[19:22]

    def takes(self, mad):
        return (mad[1], mad[2]) == (self.mgmt_class, self.version) and \
            self.methods >> (mad[3] & 0x7f) & 1 and \
            (not 0x30 <= mad[1] <= 0x4f or mad[37:40] == self.oui)


class Client:
    def __init__(self, sock, ident, bridge):
        self.sock, self.id, self.bridge = sock, ident, bridge
        self.agents, self.is_sm = {}, False
        sock.setblocking(False)
        for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER)

    def readable(self):
        try:
            message = self.sock.recv(MOST)
        except BlockingIOError:
            return
        except OSError:
            message = b''
        if not message:
            return self.bridge.gone(self)
        kind, = struct.unpack_from('=I', message)
        body = message[4:]
        if kind == REGISTER:
            self.agents[struct.unpack_from('=I', body)[0]] = Agent(body[4:])
        elif kind == UNREGISTER:
            self.agents.pop(struct.unpack_from('=I', body)[0], None)
        elif kind == MAD:
            self.take(body)
        elif kind == IS_SM:
            self.is_sm = True
            self.bridge.sm_changed()

    def take(self, body):
        agent, _, timeout, retries, _ = struct.unpack_from('=IIIII', body)
        qpn, qkey, lid, sl = struct.unpack_from('>IIHB', body, 20)
        mad = body[HEADER:]
        if len(mad) < 24:
            return
        if agent in self.agents:
            qpn = self.agents[agent].qpn
        self.bridge.user.from_tool(self, agent, mad.ljust(36, b'\0'), lid, qpn, sl, timeout / 1000,
                                   retries, qkey or None)

    def agent_of(self, mad):
        return next((i for i, a in self.agents.items() if a.takes(mad)), None)

    def deliver(self, mad, slid, sqp, agent, status=0):
        header = struct.pack('=IIIII', agent, status, 0, 0, HEADER + len(mad))
        header += struct.pack('>IIHBB', sqp, QP1_QKEY if sqp else 0, slid, 0, 0)
        header = header.ljust(HEADER, b'\0')
        try:
            if len(mad) <= INLINE:
                self.sock.send(header + mad)
                return
            fd = os.memfd_create('mad')
            try:
                with open(fd, 'wb', closefd=False) as f:
                    f.write(mad)
                socket.send_fds(self.sock, [header], [fd])
            finally:
                os.close(fd)
        except OSError as e:
            self.bridge.log('client %d does not take a MAD: %s', self.id, e)
