# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Reliable multi-packet transfers, sent and received, for tools whose kernel would do them
(sa-multipacket B4 to B6).

The receiver opens a window so large that the sender never waits. For each segment in order, it
only checks the number and keeps the bytes.
"""

import struct
import time

import madview as mv

WINDOW = 128  # segments; an ACK after each half of it
BAD_LAST, BAD_FIRST = 119, 120


def control(mad, kind, segment=0, window_last=0, status=0):
    """An ACK, STOP or ABORT that answers this segment."""
    at = mv.data_offset(mad)
    m = bytearray(mad[:at].ljust(256, b'\0'))
    m[3] ^= 0x80
    struct.pack_into('>BBBBII', m, 24, 1, kind, mad[26] & 0xf8 | mv.ACTIVE, status, segment,
                     window_last)
    return bytes(m)


def segments(mad):
    """Divide a MAD of any length, as passed by the kernel's users, into packets."""
    at = mv.data_offset(mad)
    area, header = 256 - at, at - 36
    data = mad[at:]
    n = max(1, -(-len(data) // area))
    out = []
    for i in range(n):
        part = data[i * area:(i + 1) * area]
        flags = mv.ACTIVE | (mv.FIRST if i == 0 else 0) | (mv.LAST if i == n - 1 else 0)
        length = header + len(part) if i == n - 1 else n * header + len(data) if i == 0 else 0
        m = bytearray((mad[:at] + part).ljust(256, b'\0'))
        struct.pack_into('>BBBBII', m, 24, 1, mv.DATA, 0xf8 | flags, 0, i + 1, length)
        out.append(bytes(m))
    return out


class Receiver:
    """take() each DATA packet; returns the packet to send back, or None. result: the whole MAD,
    once complete; error: the sender's error; failed: the transfer ended without a result."""

    def __init__(self):
        self.parts, self.expected, self.acked, self.window_last = [], 1, 0, 1
        self.result = self.error = None
        self.failed = False

    def take(self, mad):
        kind, flags, status, segment, length = struct.unpack_from('>BBBII', mad, 25)
        if kind != mv.DATA or status:
            return self._abort(mad, BAD_LAST, 'RMPP type %d, status %d' % (kind, status))
        if segment > self.window_last and self.result is None:
            self.error = 'RMPP segment %d beyond the window %d' % (segment, self.window_last)
            return None
        if segment != self.expected or self.result is not None:
            return self._ack(mad)  # a duplicate, or a segment was lost: repeat the ACK
        if bool(flags & mv.FIRST) != (segment == 1):
            return self._abort(mad, BAD_FIRST, 'RMPP: First flag of segment %d' % segment)
        self.parts.append(mad)
        self.expected += 1
        if flags & mv.LAST:
            return self._end(mad, length)
        if segment == 1 or segment >= self.window_last - WINDOW // 2:
            return self._ack(mad)
        return None

    def _ack(self, mad):
        self.acked = self.expected - 1
        if self.result is None:
            self.window_last = self.acked + WINDOW
        return control(mad, mv.ACK, self.acked, self.window_last)

    def _abort(self, mad, status, why):
        self.error, self.failed = why, True
        return control(mad, mv.ABORT, status=status)

    def _end(self, mad, length):
        at = mv.data_offset(mad)
        header, n = at - 36, len(self.parts)
        tail = length - header
        if not 0 <= tail <= 256 - at:
            return self._abort(mad, BAD_LAST, 'RMPP: last PayloadLength %d' % length)
        data = b''.join([p[at:] for p in self.parts[:-1]]) + mad[at:at + tail]
        first, = struct.unpack_from('>I', self.parts[0], 32)
        if first not in (0, n * header + len(data)):
            self.error = 'RMPP: first PayloadLength %d of %d bytes in %d segments' % (
                first, len(data), n)
        self.result = self.parts[0][:at] + data
        return self._ack(mad)


class Sender:
    """The segments of one MAD, sent as far as the receiver's window allows."""

    TRIES, WAIT = 5, 0.5

    def __init__(self, mad, emit):
        self.packets, self.emit = segments(mad), emit
        self.acked, self.sent, self.last, self.tries = 0, 0, 1, 0
        self.done = False
        self._push()

    def _push(self):
        self.deadline = time.monotonic() + self.WAIT
        edge = min(self.last, len(self.packets))
        while self.sent < edge:
            self.emit(self.packets[self.sent])
            self.sent += 1

    def take(self, mad):
        """An ACK, STOP or ABORT was received."""
        kind, status, segment, last = mad[25], mad[27], *struct.unpack_from('>II', mad, 28)
        if kind != mv.ACK or status:
            self.done = True
        elif self.acked <= segment <= self.sent and last >= self.last:
            self.tries = self.tries if segment == self.acked else 0
            self.acked, self.last = segment, last
            self.done = self.acked == len(self.packets)
            self._push()

    def late(self):
        """No answer for a while: return to the first unacknowledged segment."""
        self.tries += 1
        self.done = self.tries > self.TRIES
        self.sent = self.acked
        self._push()
