# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Management datagrams as bytes: header fields by name, records by component (sa-multipacket A1,
B1, B10, B11). Written from the sheet, not from Polca's tables.

    m = v1(0x12, NODE.attr, tid=5, window=64, mask=NODE.mask1('lid'), data=NODE.bare(lid=7))
    m.segment, m['flags'], bytes(m)
"""

import struct

MAD_LEN = 256
QKEY = 0x80010000
SUBN_ADM = 3

GET, SET, GET_RESP, SET_RESP = 0x01, 0x02, 0x81, 0x81
REPORT, REPORT_RESP = 0x06, 0x86
INFORM, INFORM_RESP = 0x10, 0x90  # version 1
TABLE, TABLE_RESP = 0x12, 0x92
BULK, BULK_RESP = 0x13, 0x93  # version 1
CONFIG, CONFIG_RESP = 0x14, 0x94  # version 1
TRACE, MULTI, MULTI_RESP = 0x13, 0x14, 0x94  # version 2
DELETE, DELETE_RESP = 0x15, 0x95  # version 2
R = 0x80

# FragmentFlag (A3)
FIRST, LAST, RESEND, ACK, KEEPALIVE = 0x80, 0x20, 0x10, 0x04, 0x01
# EditModifier (A6)
ADD, REMOVE, EDIT = 1, 2, 3
BY_TEMPLATE, ALL_RIDS = 0xffffffff, 0xffffffff

# RMPP (B1, B3)
DATA, RACK, STOP, ABORT = 1, 2, 3, 4
ACTIVE, RFIRST, RLAST = 1, 2, 4
NO_RESPTIME = 0x1f << 3
RESX = 1
T2L, BAD_LEN, BAD_FIRST, BAD_TYPE, W2S, S2B, BAD_STATUS, BAD_VERSION, RETRIES, UNSPEC = \
    range(118, 128)

# status (B2, B8)
BUSY, WRONG_VERSION, NO_METHOD, NO_METHOD_ATTR, INVALID = 1, 4, 8, 0xc, 0x1c
NO_RESOURCES, REQ_INVALID, NO_RECORDS, TOO_MANY, BAD_GID, INSUFFICIENT, DENIED = \
    (n << 8 for n in range(1, 8))

COMMON = {'base_version': (0, 'B'), 'mgmt_class': (1, 'B'), 'class_version': (2, 'B'),
          'method': (3, 'B'), 'status': (4, 'H'), 'class_specific': (6, 'H'), 'tid': (8, 'Q'),
          'attr': (16, 'H'), 'reserved': (18, 'H'), 'modifier': (20, 'I')}
V1 = dict(COMMON, sa_key=(24, 'Q'), sm_key=(32, 'Q'), segment=(40, 'I'), length=(44, 'I'),
          flags=(48, 'B'), edit=(49, 'B'), window=(50, 'H'), end_rid=(52, 'I'), mask=(56, 'Q'))
V2 = dict(COMMON, rmpp_version=(24, 'B'), rmpp_type=(25, 'B'), rmpp_flags=(26, 'B'),
          rmpp_status=(27, 'B'), segment=(28, 'I'), length=(32, 'I'), new_window_last=(32, 'I'),
          sm_key=(36, 'Q'), stride=(44, 'H'), mask=(48, 'Q'))
AREA1, AREA2, HEADER2 = 192, 200, 20


class Mad:
    """256 bytes, or any other number; fields by the names of its class version."""

    def __init__(self, raw=bytes(MAD_LEN)):
        object.__setattr__(self, 'raw', bytearray(raw))

    def _field(self, name):
        table = V1 if self.raw[2] == 1 else V2
        if name not in table:
            raise AttributeError(name)
        at, code = table[name]
        return at, '!' + code

    def __getattr__(self, name):
        at, code = self._field(name)
        return struct.unpack_from(code, self.raw, at)[0]

    def __setattr__(self, name, value):
        if name == 'data':
            at = 64 if self.raw[2] == 1 else 56
            self.raw[at:at + len(value)] = value
            return
        at, code = self._field(name)
        struct.pack_into(code, self.raw, at, value)

    def __bytes__(self):
        return bytes(self.raw)

    @property
    def data(self):
        return bytes(self.raw[64 if self.raw[2] == 1 else 56:])

    def but(self, **fields):
        """A copy with some fields changed."""
        m = Mad(self.raw)
        for k, v in fields.items():
            setattr(m, k, v)
        return m

    def turned(self, **fields):
        """The header with the R bit inverted (A3, B6), without data."""
        m = self.but(method=self.method ^ R)
        m.data = bytes(MAD_LEN - (64 if self.class_version == 1 else 56))
        return m.but(**fields)

    @property
    def resptime(self):
        return self.rmpp_flags >> 3

    @property
    def rflags(self):
        return self.rmpp_flags & 7

    def __repr__(self):
        names = ('method', 'status', 'attr', 'modifier', 'tid', 'segment', 'length')
        names += ('flags', 'window', 'sa_key') if self.class_version == 1 else \
            ('rmpp_type', 'rmpp_flags', 'rmpp_status', 'stride')
        return '<MAD v%d %s>' % (self.class_version, ' '.join(
            '%s=0x%x' % (n, getattr(self, n)) for n in names if getattr(self, n)))


def v1(method, attr=0, data=b'', **fields):
    """A class version 1 datagram of the SA."""
    m = Mad()
    m.raw[0:4] = bytes((1, SUBN_ADM, 1, method))
    return m.but(attr=attr, data=data, **fields)


def v2(method, attr=0, data=b'', **fields):
    """A class version 2 datagram of the SA."""
    m = Mad()
    m.raw[0:4] = bytes((1, SUBN_ADM, 2, method))
    return m.but(attr=attr, data=data, **fields)


class Record:
    """One record type: its components in order, (name, bits) each, None for reserved ones.

    A component has one mask bit, in order (B11); 'spread' ones have a bit for each part."""

    def __init__(self, name, attr, rid_bytes, stride, text):
        self.name, self.attr, self.rid_bytes, self.stride = name, attr, rid_bytes, stride
        self.fields, self.at, self.bit = [], {}, {}
        offset = bit = 0
        for word in text.split():
            name, _, width = word.partition(':')
            width, _, bits = width.partition('/')  # name:bits[/mask bits, 0 for none]
            width, bits = int(width), 1 if bits == '' else int(bits)
            self.at[name] = (offset, width)
            self.bit[name] = (bit, bits)
            self.fields.append(name)
            offset += width
            bit += bits
        self.len = offset // 8
        self.rid_components = sum(self.bit[n][1] for n in self.fields
                                  if self.at[n][0] < rid_bytes * 8)

    def put(self, **values):
        """The record in its class version 2 form, without the padding to the stride."""
        whole = 0
        for k, v in values.items():
            at, width = self.at[k]
            if isinstance(v, bytes):
                v = int.from_bytes(v.ljust(width // 8, b'\0'), 'big')
            assert 0 <= v < 1 << width, (k, v)
            whole |= v << (self.len * 8 - at - width)
        return whole.to_bytes(self.len, 'big')

    def bare(self, **values):
        """The attribute without its RID part, as in class version 1."""
        return self.put(**values)[self.rid_bytes:]

    def get(self, raw, name):
        at, width = self.at[name]
        whole = int.from_bytes(raw[:self.len], 'big')
        return whole >> (self.len * 8 - at - width) & ((1 << width) - 1)

    def get_bare(self, raw, name):
        return self.get(bytes(self.rid_bytes) + raw, name)

    def mask(self, *names):
        """ComponentMask of these components in class version 2."""
        m = 0
        for n in names:
            bit, count = self.bit[n]
            m |= ((1 << count) - 1) << bit
        return m

    def mask1(self, *names):
        """The same in version 1, where the RID part has no bits (A7)."""
        return self.mask(*names) >> self.rid_components

    @property
    def stride1(self):
        return 4 + self.len - self.rid_bytes

    def split1(self, data):
        """Records of a version 1 answer: (RID, bare attribute) each."""
        assert len(data) % self.stride1 == 0, (self.name, len(data))
        return [(struct.unpack_from('!I', data, i)[0], data[i + 4:i + self.stride1])
                for i in range(0, len(data), self.stride1)]

    def split2(self, data, stride=None):
        stride = (stride if stride else self.stride // 8) * 8
        assert len(data) % stride == 0, (self.name, len(data), stride)
        return [data[i:i + self.len] for i in range(0, len(data), stride)]


NODE = Record('NodeRecord', 0x11, 4, 112, '''lid:16 r1:16 base_version:8 class_version:8
    node_type:8 num_ports:8 sys_guid:64 node_guid:64 port_guid:64 partition_cap:16 device_id:16
    revision:32 local_port:8 vendor_id:24 node_desc:512''')
LINK = Record('LinkRecord', 0x20, 3, 8, 'from_lid:16 from_port:8 to_port:8 to_lid:16')
SWITCH = Record('SwitchInfoRecord', 0x14, 4, 24, '''lid:16 r1:16 linear_cap:16 random_cap:16
    mcast_cap:16 linear_top:16 def_port:8 def_mcast_primary:8 def_mcast_not_primary:8
    life_time:5 port_state_change:1 r2:2 lids_per_port:16 enforce_cap:16''')
PATH = Record('PathRecord', 0x35, 0, 64, '''service_id:64/2 dgid:128 sgid:128 dlid:16 slid:16
    raw_traffic:1 r1:3 flow_label:20 hop_limit:8 tclass:8 reversible:1 numb_path:7 pkey:16
    qos_class:12 sl:4 mtu_selector:2 mtu:6 rate_selector:2 rate:6 packet_life_selector:2
    packet_life:6 preference:8 r2:48/0''')
SERVICE = Record('ServiceRecord', 0x31, 0, 176, '''service_id:64 gid:128 pkey:16 r1:16 lease:32
    key:128 name:512 data8:128/16 data16:128/8 data32:128/4 data64:128/2''')
MCMEMBER = Record('MCMemberRecord', 0x38, 0, 56, '''mgid:128 port_gid:128 qkey:32 mlid:16
    mtu_selector:2 mtu:6 tclass:8 pkey:16 rate_selector:2 rate:6 packet_life_selector:2
    packet_life:6 sl:4 flow_label:20 hop_limit:8 scope:4 join_state:4 proxy_join:1 r1:23/0''')
INFORM_INFO = Record('InformInfo', 0x03, 0, 40, '''gid:128 lid_begin:16 lid_end:16 r1:16
    is_generic:8 subscribe:8 type:16 trap_number:16 qpn:24 r2:3 resp_time:5 r3:8
    producer_type:24''')
CLASS_PORT_INFO = Record('ClassPortInfo', 0x01, 0, 72, '''base_version:8 class_version:8
    capability_mask:16 capability_mask2:27 resp_time:5 redirect_gid:128 redirect_tc:8
    redirect_sl:4 redirect_fl:20 redirect_lid:16 redirect_pkey:16 r1:8 redirect_qp:24
    redirect_qkey:32 trap_gid:128 trap_tc:8 trap_sl:4 trap_fl:20 trap_lid:16 trap_pkey:16
    trap_hop_limit:8 trap_qp:24 trap_qkey:32''')
