# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A memif client in Python: it connects as any client does, and then writes what it likes into the
memory that it shares with the server."""

import array
import mmap
import os
import socket
import struct

HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED = range(2, 8)
MESSAGE = 128  # bytes of every message
VERSION = 2 << 8
COOKIE = 0x3E31F20
TO_SERVER = 1  # flag of a ring
RING_SIZE_LOG2 = 10
DESCRIPTORS = 128  # offset in a ring
DESCRIPTOR = struct.Struct('<HHIII')  # flags, region, length, offset, metadata
RING = DESCRIPTORS + (DESCRIPTOR.size << RING_SIZE_LOG2)
REGION = 1 << 20


class MemifClient:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect(path)
        self.fd = os.memfd_create('region')
        os.ftruncate(self.fd, REGION)
        self.memory = mmap.mmap(self.fd, REGION)
        self.events = [os.eventfd(0) for _ in range(2)]
        self.next = 0
        self.expect(HELLO)
        self.say(INIT, struct.pack('<HIB24s32s', VERSION, 0, 0, b'', b'peer'))
        self.say(ADD_REGION, struct.pack('<HQ', 0, REGION), self.fd)
        for i, flags in enumerate((TO_SERVER, 0)):
            struct.pack_into('<I', self.memory, i * RING, COOKIE)
            self.say(ADD_RING, struct.pack('<HHHIBH', flags, 0, 0, i * RING, RING_SIZE_LOG2, 0),
                     self.events[i])
        self.say(CONNECT, struct.pack('<32s', b'peer'))
        self.expect(CONNECTED)

    def expect(self, kind):
        """Read messages until one of this kind comes; acknowledgements are among them."""
        while True:
            message = self.socket.recv(MESSAGE)
            assert message, 'the server closed the connection before message %d' % kind
            if struct.unpack_from('<H', message)[0] == kind:
                return

    def say(self, kind, body, fd=None):
        message = struct.pack('<H', kind) + body
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))] if fd else []
        self.socket.sendmsg([message.ljust(MESSAGE, b'\0')], rights)

    def offer(self, length, offset, region=0):
        """Put a frame into the ring to the server: any bytes that it says are a frame."""
        at = DESCRIPTORS + DESCRIPTOR.size * (self.next % (1 << RING_SIZE_LOG2))
        DESCRIPTOR.pack_into(self.memory, at, 0, region, length, offset, 0)
        self.next += 1
        struct.pack_into('<H', self.memory, 6, self.next & 0xFFFF)

    def send(self, frame):
        offset = 2 * RING
        self.memory[offset:offset + len(frame)] = frame
        self.offer(len(frame), offset)

    def close(self):
        self.socket.close()
        self.memory.close()
        for fd in (self.fd, *self.events):
            os.close(fd)
