# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Messages of the communication manager as bytes, by field (cm 1, 2, 7). Written from the sheet.

    build(REQ, tid=5, local_id=1, qpn=0x101)
    m = Message(mad); m.kind is REP; m.psn
"""

import socket
import struct

from mad import Record

CLASS, CLASS_VERSION, SEND, GET, GET_RESP = 0x07, 2, 0x03, 0x01, 0x81
QKEY = 0x80010000
DATA_LEN = 232

PATH = '''{0}local_lid:16 {0}remote_lid:16 {0}local_gid:128 {0}remote_gid:128 {0}flow_label:20
    {0}r1:6 {0}rate:6 {0}traffic_class:8 {0}hop_limit:8 {0}sl:4 {0}subnet_local:1 {0}r2:3
    {0}ack_timeout:5 {0}r3:3 '''

REQ = Record('REQ', 0x10, 0, 232, '''local_id:32 r1:8 vendor_id:24 service_id:64 ca_guid:64 r2:32
    qkey:32 qpn:24 responder_resources:8 eecn:24 initiator_depth:8 remote_eecn:24
    remote_timeout:5 transport:2 flow_control:1 psn:24 local_timeout:5 retry_count:3 pkey:16 mtu:4
    rdc:1 rnr_retry_count:3 max_cm_retries:4 srq:1 extended:3 ''' + PATH.format('') +
    PATH.format('alt_') + 'private:736')
REP = Record('REP', 0x13, 0, 232, '''local_id:32 remote_id:32 qkey:32 qpn:24 r1:8 eecn:24 r2:8
    psn:24 r3:8 responder_resources:8 initiator_depth:8 ack_delay:5 failover:2 flow_control:1
    rnr_retry_count:3 srq:1 r4:4 ca_guid:64 private:1568''')
RTU = Record('RTU', 0x14, 0, 232, 'local_id:32 remote_id:32 private:1792')
MRA = Record('MRA', 0x11, 0, 232, '''local_id:32 remote_id:32 answers:2 r1:6 service_timeout:5 r2:3
    private:1776''')
REJ = Record('REJ', 0x12, 0, 232, '''local_id:32 remote_id:32 answers:2 r1:6 info_length:7 r2:1
    reason:16 ari:576 private:1184''')
DREQ = Record('DREQ', 0x15, 0, 232, 'local_id:32 remote_id:32 qpn:24 r1:8 private:1760')
DREP = Record('DREP', 0x16, 0, 232, 'local_id:32 remote_id:32 private:1792')
LAP = Record('LAP', 0x19, 0, 232, '''local_id:32 remote_id:32 r1:32 qpn:24 remote_timeout:5 r2:3
    r3:32 local_lid:16 remote_lid:16 local_gid:128 remote_gid:128 flow_label:20 r4:4 traffic_class:8
    hop_limit:8 r5:2 rate:6 sl:4 subnet_local:1 r6:3 ack_timeout:5 r7:3 private:1344''')
APR = Record('APR', 0x1a, 0, 232, '''local_id:32 remote_id:32 info_length:8 status:8 r1:16 info:576
    private:1184''')
SIDR_REQ = Record('SIDR_REQ', 0x17, 0, 232, '''request_id:32 pkey:16 r1:16 service_id:64
    private:1728''')
SIDR_REP = Record('SIDR_REP', 0x18, 0, 232, '''request_id:32 status:8 info_length:8 r1:16 qpn:24
    r2:8 service_id:64 qkey:32 info:576 private:1088''')
KINDS = {k.attr: k for k in (REQ, REP, RTU, MRA, REJ, DREQ, DREP, LAP, APR, SIDR_REQ, SIDR_REP)}
assert all(k.len == DATA_LEN for k in KINDS.values())
BYTES = ('private', 'ari', 'info', 'local_gid', 'remote_gid', 'alt_local_gid', 'alt_remote_gid')

# cm 3
(NO_QP, NO_EEC, NO_RESOURCES, TIMEOUT, UNSUPPORTED, INVALID_ID, INVALID_INSTANCE, INVALID_SERVICE,
 INVALID_TRANSPORT, STALE, NO_RDC, INVALID_GID, INVALID_LID, INVALID_SL) = range(1, 15)
INVALID_HOP_LIMIT, INVALID_RATE, INVALID_ALT_GID, INVALID_ALT_LID, INVALID_ALT_SL = range(16, 21)
INVALID_ALT_HOP_LIMIT, INVALID_ALT_RATE = 22, 23
INVALID_MTU, FEW_RESOURCES, CONSUMER, RNR_RETRY, DUPLICATE_ID, INVALID_VERSION = range(26, 32)
OF_REQ, OF_REP, OF_OTHER = 0, 1, 2  # MessageRejected, MessageMRAed
OF_LAP = 2
RC, UC, RD, EXTENDED = range(4)

RDMA = Record('RDMA-CM', 0, 0, 36, 'version:8 ip_version:4 r1:4 src_port:16 src:128 dst:128')
PS_TCP, PS_UDP, PS_IB = 0x0106, 0x0111, 0x013f


def service_id(port, space=PS_TCP):
    return space << 16 | port


def gid(address):
    """16 bytes: an IPv4 address as ::ffff:a.b.c.d."""
    if ':' in address:
        return socket.inet_pton(socket.AF_INET6, address)
    return bytes(10) + b'\xff\xff' + socket.inet_aton(address)


def ip16(address):
    """An address as in RDMA-CM's header: IPv4 in the last four bytes, the rest zero."""
    if ':' in address:
        return socket.inet_pton(socket.AF_INET6, address)
    return bytes(12) + socket.inet_aton(address)


def rdma(src, dst, port=0, **over):
    """RDMA-CM's header; private data of the user may follow it."""
    return RDMA.put(**dict(dict(ip_version=6 if ':' in src else 4, src_port=port, src=ip16(src),
                                dst=ip16(dst)), **over))


def build(kind, tid, class_version=CLASS_VERSION, method=SEND, base_version=1, mad_status=0,
          modifier=0, cls=CLASS, attr=None, **fields):
    """A whole MAD; fields of the message that are not given are 0."""
    return struct.pack('>BBBBHHQHxxI', base_version, cls, class_version, method, mad_status, 0, tid,
                       kind.attr if attr is None else attr, modifier) + kind.put(**fields)


class Message:
    """A received message: .kind, .tid, and its fields by name; fields that are not numbers are
    bytes."""

    def __init__(self, mad):
        assert len(mad) == 256, len(mad)
        self.mad = bytes(mad)
        (self.base_version, self.cls, self.class_version, self.method, self.mad_status, _, self.tid,
         self.attr, self.modifier) = struct.unpack_from('>BBBBHHQHxxI', mad)
        self.data = self.mad[24:]
        self.kind = KINDS.get(self.attr) if self.cls == CLASS and self.method == SEND else None
        for name in self.kind.fields if self.kind else ():
            v = self.kind.get(self.data, name)
            if name in BYTES:
                v = v.to_bytes(self.kind.at[name][1] // 8, 'big')
            setattr(self, name, v)

    def __repr__(self):
        if self.kind is None:
            return '<MAD class 0x%02x method 0x%02x attr 0x%04x status 0x%04x>' % (
                self.cls, self.method, self.attr, self.mad_status)
        return '<%s tid=0x%x %s>' % (self.kind.name, self.tid, ' '.join(
            '%s=%s' % (n, getattr(self, n)) for n in self.kind.fields
            if n not in BYTES and n[0] != 'r' and getattr(self, n)))

    def reserved(self):
        """Names of reserved fields that are not 0."""
        return [n for n in self.kind.fields if n.split('_')[-1][0] == 'r' and
                n.split('_')[-1][1:].isdigit() and getattr(self, n)]
