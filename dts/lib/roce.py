# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""RoCEv2 packets in Scapy, and a station on a wire for which a test writes every packet.

A Station is an Ethernet host at one end of a veth pair: it answers ARP, neighbour solicitations
and pings for its addresses, and sorts received RoCE packets by destination QP. A Peer is one RC
queue pair of a station without any state: the test writes each packet it sends, and takes each
answer in order, so that it can violate any rule.
"""

import queue
import socket
import struct
import threading
import time
import zlib

from scapy.config import conf
from scapy.contrib.roce import AETH, BTH, _bth_opcodes
from scapy.fields import BitField, IntField, XIntField, XLongField
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS,
                                ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw, bind_layers

import time_limit

conf.verb = 0
ROCE_PORT = 4791
SO_RCVBUFFORCE = 33  # net.core.rmem_max, which limits SO_RCVBUF, has room for few frames
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 0x10


class Op:
    """RC opcodes (rc-transport 2)."""
    SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(0, 6)
    WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(6, 12)
    READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY = range(12, 17)
    ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD = range(17, 21)
    SEND_LAST_INV, SEND_ONLY_INV = 0x16, 0x17
    UD_SEND_ONLY, CNP = 0x64, 0x81


OP_NAMES = {v: k for k, v in vars(Op).items() if k.isupper()}
_bth_opcodes.update({Op.SEND_LAST_INV: 'RC_SEND_LAST_WITH_INVALIDATE',
                     Op.SEND_ONLY_INV: 'RC_SEND_ONLY_WITH_INVALIDATE'})

NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL = 0x60, 0x61, 0x62, 0x63
RNR = 0x20  # plus the timer code
NO_CREDITS = 0x1f
PSN_MASK = 0xffffff

# rc-transport 3, table 17-6, in milliseconds
RNR_MS = [655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28, 1.92, 2.56,
          3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84,
          245.76, 327.68, 491.52]


class RETH(Packet):
    name = 'RETH'
    fields_desc = [XLongField('va', 0), XIntField('rkey', 0), IntField('dlen', 0)]


class AtomicETH(Packet):
    name = 'AtomicETH'
    fields_desc = [XLongField('va', 0), XIntField('rkey', 0), XLongField('swap_add', 0),
                   XLongField('compare', 0)]


class AtomicAckETH(Packet):
    name = 'AtomicAckETH'
    fields_desc = [XLongField('original', 0)]


class ImmDt(Packet):
    name = 'ImmDt'
    fields_desc = [XIntField('imm', 0)]


class IETH(Packet):
    name = 'IETH'
    fields_desc = [XIntField('rkey', 0)]


class DETH(Packet):
    name = 'DETH'
    fields_desc = [XIntField('qkey', 0), BitField('reserved', 0, 8), BitField('sqpn', 0, 24)]


for _op in (Op.WRITE_FIRST, Op.WRITE_ONLY, Op.WRITE_ONLY_IMM, Op.READ_REQUEST):
    bind_layers(BTH, RETH, opcode=_op)
for _op in (Op.READ_FIRST, Op.READ_LAST, Op.READ_ONLY, Op.ATOMIC_ACK):
    bind_layers(BTH, AETH, opcode=_op)
for _op in (Op.CMP_SWAP, Op.FETCH_ADD):
    bind_layers(BTH, AtomicETH, opcode=_op)
for _op in (Op.SEND_LAST_IMM, Op.SEND_ONLY_IMM, Op.WRITE_LAST_IMM):
    bind_layers(BTH, ImmDt, opcode=_op)
for _op in (Op.SEND_LAST_INV, Op.SEND_ONLY_INV):
    bind_layers(BTH, IETH, opcode=_op)
bind_layers(BTH, DETH, opcode=Op.UD_SEND_ONLY)

# extension headers in order of appearance, for decoding
_EXT = {Op.WRITE_FIRST: (RETH,), Op.WRITE_ONLY: (RETH,), Op.WRITE_ONLY_IMM: (RETH, ImmDt),
        Op.READ_REQUEST: (RETH,), Op.READ_FIRST: (AETH,), Op.READ_LAST: (AETH,),
        Op.READ_ONLY: (AETH,), Op.ACK: (AETH,), Op.ATOMIC_ACK: (AETH, AtomicAckETH),
        Op.CMP_SWAP: (AtomicETH,), Op.FETCH_ADD: (AtomicETH,), Op.SEND_LAST_IMM: (ImmDt,),
        Op.SEND_ONLY_IMM: (ImmDt,), Op.WRITE_LAST_IMM: (ImmDt,), Op.SEND_LAST_INV: (IETH,),
        Op.SEND_ONLY_INV: (IETH,), Op.UD_SEND_ONLY: (DETH,)}
_SIZE = {RETH: 16, AETH: 4, AtomicETH: 28, AtomicAckETH: 8, ImmDt: 4, IETH: 4, DETH: 8}


def icrc(packet):
    """The ICRC, as wire bytes, of an IP packet that ends before it (rc-transport 9)."""
    b = bytearray(packet)
    if b[0] >> 4 == 4:
        udp = (b[0] & 15) * 4
        b[1] = b[8] = b[10] = b[11] = 0xff
    else:
        udp = 40
        b[0] |= 0x0f
        b[1:4] = b'\xff\xff\xff'
        b[7] = 0xff
    b[udp + 6:udp + 8] = b'\xff\xff'
    if len(b) > udp + 12:
        b[udp + 12] = 0xff
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(b)))


def mac_bytes(text):
    return bytes(int(x, 16) for x in text.split(':'))


def gid_of(address):
    """The GID of an address, as text."""
    return address if ':' in address else '::ffff:' + address


class Received:
    """One received RoCE packet: header fields by name, payload without padding."""

    def __init__(self, frame, when):
        self.frame, self.when = frame, when
        at = 14
        self.ethertype, = struct.unpack_from('!H', frame, 12)
        self.vlan_tci = None
        if self.ethertype == 0x8100:
            self.vlan_tci, self.ethertype = struct.unpack_from('!HH', frame, 14)
            at = 18
        l3 = frame[at:]
        if self.ethertype == 0x0800:
            udp, total = (l3[0] & 15) * 4, struct.unpack_from('!H', l3, 2)[0]
            self.src, self.dst = socket.inet_ntoa(l3[12:16]), socket.inet_ntoa(l3[16:20])
            self.tclass = l3[1]
        else:
            udp, total = 40, 40 + struct.unpack_from('!H', l3, 4)[0]
            self.src = socket.inet_ntop(socket.AF_INET6, l3[8:24])
            self.dst = socket.inet_ntop(socket.AF_INET6, l3[24:40])
            self.tclass = (l3[0] << 4 | l3[1] >> 4) & 0xff
        l3 = l3[:total]
        self.sport, = struct.unpack_from('!H', l3, udp)
        self.icrc_ok = icrc(l3[:-4]) == l3[-4:]
        self.bth = BTH(l3[udp + 8:])
        self.op, self.psn, self.qpn = self.bth.opcode, self.bth.psn, self.bth.dqpn
        self.ackreq, self.solicited = self.bth.ackreq, self.bth.solicited
        body = l3[udp + 20:-4]
        for layer in _EXT.get(self.op, ()):
            h = layer(body[:_SIZE[layer]])
            body = body[_SIZE[layer]:]
            for f in h.fields_desc:
                name = 'inv' if layer is IETH else f.name
                setattr(self, name, h.getfieldval(f.name))
        self.payload = body[:len(body) - self.bth.padcount]

    @property
    def name(self):
        return OP_NAMES.get(self.op, '0x%02x' % self.op)

    def __repr__(self):
        more = ''.join(' %s=0x%x' % (k, getattr(self, k)) for k in (
            'syndrome', 'msn', 'va', 'rkey', 'dlen', 'imm', 'original') if hasattr(self, k))
        return '<%s psn=%d qp=0x%x len=%d%s%s>' % (
            self.name, self.psn, self.qpn, len(self.payload), more,
            '' if self.icrc_ok else ' ICRC WRONG')


def retagged(frame, aux):
    """The frame as it was on the wire: the kernel removes the VLAN tag and passes it separately."""
    for level, kind, data in aux:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, = struct.unpack_from('I', data)
            tci, tpid = struct.unpack_from('HH', data, 16)
            if status & TP_STATUS_VLAN_VALID:
                return frame[:12] + struct.pack('!HH', tpid or 0x8100, tci) + frame[12:]
    return frame


class Station:
    """An Ethernet host written in Python on an interface of a namespace."""

    def __init__(self, ns, ifname, mac, ip, ip6=None):
        self.mac, self.ip, self.ip6, self.ifname = mac, ip, ip6, ifname
        self.mute = False  # no ARP, ND or echo answers
        self.sent = self.received = 0
        self.other = queue.Queue()  # packets other than RoCE, as Scapy packets
        self.stray = queue.Queue()  # RoCE packets for a QP without a listener
        self._qps, self._lock, self._stop = {}, threading.Lock(), False

        def opened():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
            s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            s.bind((ifname, 0))
            return s
        self.sock = ns.call(opened)
        self.sock.settimeout(0.2)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def close(self):
        self._stop = True
        self.thread.join()
        self.sock.close()

    def _run(self):
        while not self._stop:
            try:
                frame, aux, _, where = self.sock.recvmsg(1 << 16, 256)
            except socket.timeout:
                continue
            except OSError as e:
                if e.errno != 100:  # the link is down: wait for its return
                    return
                time.sleep(0.01)
                continue
            if where[2] == socket.PACKET_OUTGOING:
                continue
            self.received += 1
            try:
                self._take(retagged(frame, aux), time.monotonic())
            except Exception as e:  # keep a frame that cannot be parsed, for the test
                self.other.put(e)

    def _take(self, frame, when):
        if len(frame) < 14 or frame[6:12] == mac_bytes(self.mac):
            return
        if self._is_roce(frame):
            r = Received(frame, when)
            with self._lock:
                q = self._qps.get(r.qpn, self.stray)
            q.put(r)
            return
        p = Ether(frame)
        if not self.mute:
            self._answer(p)
        self.other.put(p)

    @staticmethod
    def _is_roce(frame):
        t, at = frame[12:14], 14
        if t == b'\x81\x00':
            t, at = frame[16:18], 18
        if t == b'\x08\x00' and len(frame) > at + 28 and frame[at + 9] == 17:
            udp = at + (frame[at] & 15) * 4
        elif t == b'\x86\xdd' and len(frame) > at + 48 and frame[at + 6] == 17:
            udp = at + 40
        else:
            return False
        return frame[udp + 2:udp + 4] == struct.pack('!H', ROCE_PORT)

    def _answer(self, p):
        eth = Ether(src=self.mac, dst=p.src)
        if Dot1Q in p:
            eth /= Dot1Q(vlan=p[Dot1Q].vlan)
        if ARP in p and p[ARP].op == 1 and p[ARP].pdst == self.ip:
            self.send(eth / ARP(op=2, hwsrc=self.mac, psrc=self.ip, hwdst=p[ARP].hwsrc,
                                pdst=p[ARP].psrc))
        elif ICMPv6ND_NS in p and p[ICMPv6ND_NS].tgt == self.ip6:
            self.send(eth / IPv6(src=self.ip6, dst=p[IPv6].src) /
                      ICMPv6ND_NA(tgt=self.ip6, R=0, S=1, O=1) /
                      ICMPv6NDOptDstLLAddr(lladdr=self.mac))
        elif ICMPv6EchoRequest in p and p[IPv6].dst == self.ip6:
            e = p[ICMPv6EchoRequest]
            self.send(eth / IPv6(src=self.ip6, dst=p[IPv6].src) /
                      ICMPv6EchoReply(id=e.id, seq=e.seq, data=e.data))
        elif ICMP in p and p[ICMP].type == 8 and p[IP].dst == self.ip:
            self.send(eth / IP(src=self.ip, dst=p[IP].src) /
                      ICMP(type=0, id=p[ICMP].id, seq=p[ICMP].seq) / p[ICMP].payload)

    def send(self, packet):
        """Put a Scapy packet, or a frame of bytes, on the wire."""
        frame = bytes(packet)
        self.sent += 1
        self.sock.send(frame)
        return frame

    def wait_for(self, match, timeout=5):
        """The next packet other than RoCE for which match(packet) is true; None after the
        timeout."""
        end = time.monotonic() + timeout
        while True:
            try:
                p = self.other.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                return None
            if isinstance(p, Exception):
                raise p
            if match(p):
                return p

    def ask_mac(self, ip, timeout=5, tries=5):
        """Resolve an address by ARP or neighbour solicitation; None if there is no answer."""
        for _ in range(tries):
            if ':' in ip:
                self.send(Ether(src=self.mac, dst=solicited_mac(ip)) /
                          IPv6(src=self.ip6, dst=solicited_ip(ip), hlim=255) /
                          ICMPv6ND_NS(tgt=ip) / ICMPv6NDOptSrcLLAddr(lladdr=self.mac))
                p = self.wait_for(lambda p: ICMPv6ND_NA in p and p[ICMPv6ND_NA].tgt == ip,
                                  timeout / tries)
                if p is not None:
                    return p[ICMPv6NDOptDstLLAddr].lladdr if ICMPv6NDOptDstLLAddr in p else p.src
            else:
                self.send(Ether(src=self.mac, dst='ff:ff:ff:ff:ff:ff') /
                          ARP(op=1, hwsrc=self.mac, psrc=self.ip, pdst=ip))
                p = self.wait_for(lambda p: ARP in p and p[ARP].op == 2 and p[ARP].psrc == ip,
                                  timeout / tries)
                if p is not None:
                    return p[ARP].hwsrc
        return None

    def listen(self, qpn):
        with self._lock:
            return self._qps.setdefault(qpn, queue.Queue())

    def forget(self, qpn):
        with self._lock:
            self._qps.pop(qpn, None)


def solicited_ip(ip):
    b = socket.inet_pton(socket.AF_INET6, ip)
    return socket.inet_ntop(socket.AF_INET6, bytes.fromhex('ff0200000000000000000001ff') + b[13:])


def solicited_mac(ip):
    b = socket.inet_pton(socket.AF_INET6, ip)
    return '33:33:ff:%02x:%02x:%02x' % tuple(b[13:])


class Peer:
    """One end of an RC connection, without a state machine. psn counts the packets we send, epsn
    the expected ones."""

    def __init__(self, station, qpn, ip, mac, remote_ip, remote_qpn=0):
        self.station, self.qpn, self.ip, self.mac = station, qpn, ip, mac
        self.remote_ip, self.remote_qpn = remote_ip, remote_qpn
        self.queue = station.listen(qpn)
        self.sport = 0xc000 | qpn & 0x3fff

    def close(self):
        self.station.forget(self.qpn)

    # ---- out

    def build(self, op, psn, payload=b'', reth=None, atomic=None, aeth=None, original=None,
              imm=None, inv=None, deth=None, ackreq=0, solicited=0, pad=None, icrc_xor=0, cut=0, vlan=None,
              ttl=64, eth=None, ip=None, udp=None, l4=None, **bth):
        """A frame of bytes. Fields that are not given are right; bth, ip, udp and eth override
        fields.

        pad: number of padding bytes, else as needed; icrc_xor: damages the ICRC; cut: octets
        removed from the end of the transport packet before the ICRC is computed; l4: these bytes
        instead of BTH and all after it.
        """
        if pad is None:
            pad = -len(payload) & 3
        h = BTH(**dict(dict(opcode=op, psn=psn & PSN_MASK, dqpn=self.remote_qpn, ackreq=ackreq,
                            solicited=solicited, padcount=pad & 3, icrc=0), **bth))
        body = bytes(h)[:12]
        if deth is not None:
            body += bytes(DETH(qkey=deth[0], sqpn=deth[1]))
        if reth is not None:
            body += bytes(RETH(va=reth[0], rkey=reth[1], dlen=reth[2]))
        if atomic is not None:
            body += bytes(AtomicETH(va=atomic[0], rkey=atomic[1], swap_add=atomic[2],
                                    compare=atomic[3] if len(atomic) > 3 else 0))
        if aeth is not None:
            body += bytes(AETH(syndrome=aeth[0], msn=aeth[1] & PSN_MASK))
        if original is not None:
            body += bytes(AtomicAckETH(original=original))
        if imm is not None:
            body += bytes(ImmDt(imm=imm))
        if inv is not None:
            body += bytes(IETH(rkey=inv))
        body += payload + bytes(pad)
        if cut:
            body = body[:-cut]
        if l4 is not None:
            body = l4
        kind = 0x86dd if ':' in self.remote_ip else 0x0800
        l2 = Ether(**dict(dict(src=self.station.mac, dst=self.mac, type=kind), **(eth or {})))
        if vlan is not None:
            l2.type = 0x8100
            l2 /= Dot1Q(vlan=vlan, type=kind)
        datagram = UDP(**dict(dict(sport=self.sport, dport=ROCE_PORT, chksum=0), **(udp or {})))
        if ':' in self.remote_ip:
            l3 = IPv6(**dict(dict(src=self.ip, dst=self.remote_ip, hlim=ttl), **(ip or {})))
        else:
            l3 = IP(**dict(dict(src=self.ip, dst=self.remote_ip, ttl=ttl, flags='DF'),
                           **(ip or {})))
        whole = bytes(l3 / datagram / Raw(body + bytes(4)))[:-4]
        crc = struct.unpack('<I', icrc(whole))[0] ^ icrc_xor
        return bytes(l2) + whole + struct.pack('<I', crc)

    def tx(self, op, psn, payload=b'', **kw):
        return self.station.send(self.build(op, psn, payload, **kw))

    def send_only(self, psn, payload=b'', ackreq=1, **kw):
        return self.tx(Op.SEND_ONLY, psn, payload, ackreq=ackreq, **kw)

    def write_only(self, psn, va, rkey, payload=b'', ackreq=1, **kw):
        return self.tx(Op.WRITE_ONLY, psn, payload, reth=(va, rkey, len(payload)), ackreq=ackreq,
                       **kw)

    def read(self, psn, va, rkey, length, ackreq=1, **kw):
        return self.tx(Op.READ_REQUEST, psn, reth=(va, rkey, length), ackreq=ackreq, **kw)

    def cmp_swap(self, psn, va, rkey, compare, swap, **kw):
        return self.tx(Op.CMP_SWAP, psn, atomic=(va, rkey, swap, compare), ackreq=1, **kw)

    def fetch_add(self, psn, va, rkey, add, **kw):
        return self.tx(Op.FETCH_ADD, psn, atomic=(va, rkey, add), ackreq=1, **kw)

    def ack(self, psn, msn, syndrome=NO_CREDITS, **kw):
        return self.tx(Op.ACK, psn, aeth=(syndrome, msn), **kw)

    def nak(self, code, psn, msn, **kw):
        return self.ack(psn, msn, syndrome=code, **kw)

    # ---- in

    def rx(self, timeout=10):
        """The next packet for this QP; an error after the timeout."""
        try:
            r = self.queue.get(timeout=time_limit.limit(timeout))
        except queue.Empty:
            raise AssertionError('no packet within %g s' % timeout) from None
        assert r.icrc_ok, 'wrong ICRC: %r' % r
        return r

    def expect(self, op, psn=None, timeout=10, **fields):
        """The next packet, which must be this one."""
        r = self.rx(timeout)
        want = 'expected %s psn=%s %s, got %r' % (OP_NAMES[op], psn, fields, r)
        assert r.op == op, want
        assert psn is None or r.psn == psn & PSN_MASK, want
        for k, v in fields.items():
            assert getattr(r, k) == v, want
        return r

    def expect_ack(self, psn, msn=None, **kw):
        """An ACK with any credits."""
        r = self.expect(Op.ACK, psn, **kw)
        assert r.syndrome >> 5 == 0, 'expected an ACK, got %r' % r
        assert msn is None or r.msn == msn & PSN_MASK, 'expected MSN %d, got %r' % (msn, r)
        return r

    def expect_acked(self, psn, msn=None):
        """Receive ACKs until the one for psn has arrived; those before it must be older."""
        while True:
            r = self.expect_ack(None)
            assert (psn - r.psn) & PSN_MASK < 0x800000, 'ACK beyond %d: %r' % (psn, r)
            if r.psn == psn & PSN_MASK:
                assert msn is None or r.msn == msn & PSN_MASK, 'expected MSN %d: %r' % (msn, r)
                return r

    def expect_nak(self, code, psn, **kw):
        return self.expect(Op.ACK, psn, syndrome=code, **kw)

    def expect_naked(self, code, psn):
        """The NAK, after any ACKs of earlier requests."""
        while True:
            r = self.expect(Op.ACK)
            if r.syndrome == code and r.psn == psn & PSN_MASK:
                return r
            assert r.syndrome >> 5 == 0 and 0 < (psn - r.psn) & PSN_MASK < 0x800000, \
                'expected NAK 0x%x of %d, got %r' % (code, psn, r)

    def expect_nothing(self, quiet=0.0):
        """No other packet has arrived. Call it after an event that orders the wire."""
        if quiet:
            time.sleep(quiet)
        try:
            r = self.queue.get_nowait()
        except queue.Empty:
            return
        raise AssertionError('unexpected %r' % r)

    def drain(self):
        """Discard packets that have arrived but were not taken."""
        out = []
        while True:
            try:
                out.append(self.queue.get_nowait())
            except queue.Empty:
                return out
