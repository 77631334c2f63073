# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""InfiniBand packets as bytes: native (LRH .. VCRC) and RoCEv2 over IPv4 (rc-transport 1, 9).

build() writes a native packet, in which the caller may set any field to a wrong value; parse()
reads one and raises WireError if it is invalid. dts/suites/agents/test_bridge.py checks it
against the sheet's vectors.
"""

import array
import socket
import struct
import sys
import zlib

ETHERTYPE = 0x88b5
ROCE_PORT = 4791
UD_SEND_ONLY = 0x64
QP1_QKEY = 0x80010000
PERMISSIVE = 0xffff
LOCAL, GLOBAL = 2, 3  # LNH
MAD_LEN = 256


class WireError(Exception):
    pass


def _tables():
    one = []
    for c in range(256):
        for _ in range(8):
            c = c >> 1 ^ 0xd008 if c & 1 else c >> 1  # 0x100B, reflected
        one.append(c)
    two = array.array('H', (one[one[c & 0xff] & 0xff ^ c >> 8] ^ one[c & 0xff] >> 8
                            for c in range(1 << 16)))
    return one, two


_CRC16, _CRC16_PAIRS = _tables()


def vcrc(data):
    """The two bytes after LRH .. ICRC. It takes two octets per step, because this is the most
    expensive part of a packet."""
    c, pairs = 0xffff, array.array('H', data[:len(data) & ~1])
    if sys.byteorder == 'big':
        pairs.byteswap()
    table = _CRC16_PAIRS
    for p in pairs:
        c = table[c ^ p]
    if len(data) & 1:
        c = c >> 8 ^ _CRC16[(c ^ data[-1]) & 0xff]
    return struct.pack('<H', c ^ 0xffff)


def icrc(packet):
    """The four bytes after LRH .. padding: fields that may change on the way count as ones."""
    b = bytearray(packet)
    bth = 8
    if b[1] & 3 == GLOBAL:
        bth = 48
        b[:8] = b'\xff' * 8
        b[8] |= 0x0f
        b[9:12] = b'\xff\xff\xff'
        b[15] = 0xff
    b[0] |= 0xf0
    if len(b) > bth + 4:
        b[bth + 4] = 0xff
    return struct.pack('<I', zlib.crc32(b))


def grh(sgid, dgid, length, hop_limit=1, next_header=0x1b):
    """length: of BTH .. ICRC."""
    return struct.pack('>IHBB', 6 << 28, length, next_header, hop_limit) + sgid + dgid


def lrh(dlid, slid, words, vl=0, sl=0, lnh=LOCAL, lver=0):
    return struct.pack('>BBHHH', vl << 4 | lver, sl << 4 | lnh, dlid, words, slid)


def build(mad, slid, dlid, dqp=0, sqp=None, vl=None, sl=0, lver=0, lnh=None, words=None, gids=None,
          opcode=UD_SEND_ONLY, flags=0, pkey=0xffff, psn=0, qkey=None, icrc_xor=0, vcrc_xor=0):
    """LRH .. VCRC of a datagram. gids: (source, destination) of a GRH. The default values are
    right for a MAD to that queue pair."""
    sqp = dqp if sqp is None else sqp
    qkey = (0 if dqp == 0 else QP1_QKEY) if qkey is None else qkey
    body = struct.pack('>BBHIIII', opcode, flags, pkey, dqp, psn & 0xffffff, qkey, sqp) + mad
    if gids:
        body = grh(*gids, length=len(body) + 4) + body
    packet = lrh(dlid, slid, words if words is not None else (len(body) + 12) // 4,
                 vl if vl is not None else 15 if dqp == 0 else 0, sl,
                 lnh if lnh is not None else GLOBAL if gids else LOCAL, lver) + body
    crc, = struct.unpack('<I', icrc(packet))
    packet += struct.pack('<I', crc ^ icrc_xor)
    crc, = struct.unpack('<H', vcrc(packet))
    return packet + struct.pack('<H', crc ^ vcrc_xor)


class Packet:
    """A packet's fields by name; raw: the received bytes, LRH .. VCRC, or None; smp: for its
    users."""

    __slots__ = ('vl', 'sl', 'slid', 'dlid', 'grh', 'opcode', 'pkey', 'dqp', 'psn', 'qkey', 'sqp',
                 'mad', 'raw', 'smp')

    def __init__(self, **fields):
        for name in self.__slots__:
            setattr(self, name, fields.get(name))

    def __repr__(self):
        return '<%s>' % ' '.join('%s=%s' % (n, getattr(self, n)) for n in self.__slots__
                                 if n not in ('mad', 'raw', 'smp') and getattr(self, n) is not None)


def datagram(mad, slid, dlid, dqp, sqp, sl=0, qkey=None, pkey=0xffff):
    return Packet(vl=15 if dqp == 0 else 0, sl=sl, slid=slid, dlid=dlid, opcode=UD_SEND_ONLY,
                  pkey=pkey, dqp=dqp, psn=0, sqp=sqp, mad=mad,
                  qkey=(0 if dqp == 0 else QP1_QKEY) if qkey is None else qkey)


def _transport(p, ib):
    """BTH and, for a datagram, DETH and MAD."""
    if len(ib) < 12:
        raise WireError('no BTH')
    p.opcode, flags, p.pkey, p.dqp, p.psn = struct.unpack_from('>BBHII', ib)
    p.dqp &= 0xffffff
    p.psn &= 0xffffff
    if p.opcode != UD_SEND_ONLY:
        return p
    if len(ib) < 20:
        raise WireError('no DETH')
    p.qkey, p.sqp = struct.unpack_from('>II', ib, 12)
    p.mad = bytes(ib[20:len(ib) - (flags >> 4 & 3)])
    if p.dqp <= 1 and len(p.mad) != MAD_LEN:
        raise WireError('a MAD of %d bytes' % len(p.mad))
    return p


def parse(buf):
    """A packet that starts with its LRH; Ethernet's padding may follow."""
    if len(buf) < 26:
        raise WireError('%d bytes are not a packet' % len(buf))
    b0, b1, dlid, words, slid = struct.unpack_from('>BBHHH', buf)
    n = (words & 0x7ff) * 4
    if b0 & 15 or b1 & 3 not in (LOCAL, GLOBAL):
        raise WireError('LVer %d, LNH %d' % (b0 & 15, b1 & 3))
    if not 24 <= n <= len(buf) - 2:
        raise WireError('PktLen of %d bytes in %d' % (n, len(buf)))
    raw = bytes(buf[:n + 2])
    if vcrc(raw[:-2]) != raw[-2:]:
        raise WireError('VCRC')
    if icrc(raw[:-6]) != raw[-6:-2]:
        raise WireError('ICRC')
    p, at = Packet(vl=b0 >> 4, sl=b1 >> 4, slid=slid, dlid=dlid, raw=raw), 8
    if b1 & 3 == GLOBAL:
        p.grh, at = raw[8:48], 48
        if p.grh[0] >> 4 != 6 or p.grh[6] != 0x1b or \
                struct.unpack_from('>H', p.grh, 4)[0] != n - 48:
            raise WireError('GRH')
    _transport(p, raw[at:-6])
    if (p.vl == 15) != (p.dqp == 0):
        raise WireError('VL %d to QP %d' % (p.vl, p.dqp))
    return p


# ---- RoCEv2

def _udp_icrc(ip, ib):
    m = bytearray(b'\xff' * 8 + ip + ib)
    m[9] = m[16] = m[18] = m[19] = m[34] = m[35] = m[40] = 0xff
    return struct.pack('<I', zlib.crc32(m))


def ip_checksum(header):
    s = sum(struct.unpack('>%dH' % (len(header) // 2), header))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff


def build_udp(p, sip, dip):
    """The IPv4 packet that carries a datagram."""
    ib = struct.pack('>BBHIIII', p.opcode, 0, p.pkey, p.dqp, p.psn, p.qkey, p.sqp) + p.mad
    n = 8 + len(ib) + 4
    ip = struct.pack('>BBHHHBBH', 0x45, 0, 20 + n, 0, 0x4000, 64, 17, 0) + \
        socket.inet_aton(sip) + socket.inet_aton(dip)
    ip = ip[:10] + struct.pack('>H', ip_checksum(ip)) + ip[12:]
    ip += struct.pack('>HHHH', 0xc000, ROCE_PORT, n, 0)
    return ip + ib + _udp_icrc(ip, ib)


def parse_udp(buf):
    """Parse an IPv4 packet: a Packet without LIDs, or None if it is not RoCEv2."""
    if len(buf) < 28 or buf[0] != 0x45 or buf[9] != 17 or \
            struct.unpack_from('>H', buf, 22)[0] != ROCE_PORT:
        return None
    end = 20 + struct.unpack_from('>H', buf, 24)[0]
    if not 60 <= end <= len(buf):
        raise WireError('UDP length')
    if ip_checksum(buf[:20]):
        raise WireError('IP checksum')
    if _udp_icrc(bytes(buf[:28]), bytes(buf[28:end - 4])) != buf[end - 4:end]:
        raise WireError('ICRC')
    return _transport(Packet(vl=0, sl=0, slid=0, dlid=0), bytes(buf[28:end - 4]))
