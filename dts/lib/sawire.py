# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca with a database at one end of a wire, a station that sends management datagrams at the
other end, and the records of the tests."""

import json
import os
import shutil
import struct

import capture
import cmpeer
import mad
import sapeer
from bystanders import ECHO
from mad import INFORM_INFO, MCMEMBER, NODE, v1, v2
from net import Namespace
from polca import Polca, port
from roce import icrc, Station
from sapeer import Gsi

POLCA_MAC, STATION_MAC = '02:00:00:00:79:01', '02:00:00:00:79:02'
POLCA_IP, STATION_IP = '10.79.0.1', '10.79.0.2'
SM_KEY = 0x5151
NODES = 1000
PREFIX = 0xfe80000000000000
GUID = 0x0002c90300000000
MGID = 0xff12401bffff0000 << 64 | 0x1234


def node_values(lid):
    """The components of node number lid."""
    return dict(lid=lid, base_version=1, class_version=1, node_type=1, num_ports=1,
                sys_guid=GUID + lid, node_guid=GUID + lid, port_guid=GUID + lid, partition_cap=32,
                device_id=0x1234, revision=0xa0, local_port=1, vendor_id=0x2c9,
                node_desc=b'node %d' % lid)


def node_json(lid):
    d = node_values(lid)
    d['port_num'] = d.pop('local_port')
    d['node_desc'] = d['node_desc'].decode()
    d = {k: '0x%x' % v if 'guid' in k else v for k, v in d.items()}
    return dict(record='NodeRecord', rid='0x%08x' % (lid << 16), **d)


def node_bytes(lid):
    """The same in class version 2, without padding."""
    return NODE.put(**node_values(lid))


def port_json(lid):
    return dict(record='PortInfoRecord', lid=lid, port_num=1, base_lid=lid,
                gid_prefix='0xfe80000000000000', port_state='active', port_phys_state='link_up',
                neighbor_mtu='4096', mtu_cap='4096', link_width_active='4x',
                link_speed_active='10')


def gid(lid):
    return PREFIX << 64 | GUID + lid


def with_sm_key(config):
    """The configuration of an appliance, with the SM_Key of the tests unless it has one."""
    return dict(config, sa=dict({'sm_key': SM_KEY}, **config.get('sa', {})))


class Database:
    """What a wire does whose appliance has a database: a base of its class."""

    nodes = 0

    def load(self, nodes):
        """A database of this many nodes, with LIDs from 1 on."""
        self.nodes = nodes
        path = os.path.join(self.kept, 'nodes.json')
        with open(path, 'w') as f:
            json.dump({'records': [node_json(lid) for lid in range(1, nodes + 1)]}, f)
        with open(path) as f:
            assert self.polca.rpc('sa_import', file=f, replace=True)['records'] == nodes
        os.unlink(path)

    def start(self, nodes=NODES):
        self.polca.start()
        self.load(nodes)
        # Polca answers those whose MAC it saw in the request: nothing has to be resolved before
        with self.gsi() as gsi:
            sapeer.prove(gsi)
        return self

    def gsi(self, ip=None, **kw):
        remote = self.polca_ip6 if ip and ':' in ip else self.polca_ip
        return Gsi(self.station, self.polca_mac, remote, ip=ip, **kw)

    def stats(self):
        s = self.polca.rpc('sa_stats')
        return dict(s['mad'], live=s['sessions'], memory=s['memory_used'],
                    sent=s['aborts_sent'], received=s['aborts_received'])

    def sa_stats(self):
        return self.polca.rpc('sa_stats')['sa']

    def audit(self):
        """Polca's counters equal the capture's, every packet has one verdict, tshark reads every
        frame of class version 2 that Polca sent."""
        capture.audit(self.polca, self.capture, self.polca_mac, V2_ONLY)


class Wire(Database):
    """polca and a station on one wire, and its capture."""

    polca_mac, polca_ip, station_ip = POLCA_MAC, POLCA_IP, STATION_IP

    def __init__(self, kept, sockets, **config):
        self.ns = Namespace()
        self.ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        self.station = Station(self.ns, 'st0', STATION_MAC, STATION_IP)
        self.capture = capture.Capture(self.ns, 'st0', os.path.join(kept, 'wire.pcap'))
        self.polca = Polca(sockets, [port('port0', 'net_af_packet0,iface=pv0,framecnt=2048',
                                          POLCA_IP + '/24')], ns=self.ns, **with_sm_key(config))
        self.kept = kept

    def verdicts(self):
        row = self.polca.rpc('stats_get', port=0)['ports'][0]
        return dict(row['served'], **row['dropped'])

    def close(self):
        self.polca.kill()
        self.capture.stop()
        self.station.close()
        self.ns.close()
        if os.path.exists(self.polca.log):
            shutil.copy(self.polca.log, self.kept)


class CmWire(Database, cmpeer.Wire):
    """The same with cmpeer's addresses, IPv6 ones too, and an echo service: for Bystanders."""

    def __init__(self, kept, sockets, **config):
        echo = dict(kind='echo', port=ECHO, size=1024)
        super().__init__(kept, sockets, services=[echo], **with_sm_key(config))


# tshark only dissects class version 2 of the SA
V2_ONLY = '!(infiniband.mad.mgmtclass == 3 && infiniband.mad.classversion == 1)'


class Delta:
    """How much counters have grown since this object was created."""

    def __init__(self, read):
        self.read, self.base = read, read()

    def __getitem__(self, name):
        return self.read()[name] - self.base[name]

    def grown(self):
        now = self.read()
        return {k: v - self.base[k] for k, v in now.items()
                if isinstance(v, int) and v != self.base[k]}


def config(gsi, edit, records, record=NODE, sm_key=SM_KEY, script=None, timeout=30, **fields):
    """Send a Config of these (RID, bare attribute) records; returns the ConfigResp."""
    data = b''.join(rid.to_bytes(4, 'big') + bare for rid, bare in records)
    head = v1(mad.CONFIG, record.attr, tid=fields.pop('tid', None) or sapeer.new_tid(), edit=edit,
              sm_key=sm_key, **fields)
    try:
        return sapeer.send1(gsi, head, data, script, answer=mad.CONFIG_RESP, timeout=timeout)
    except sapeer.Failed as e:
        if e.status:
            return e.mad
        raise


def nodes1(gsi, **fields):
    """All NodeRecords in version 1: {RID: bare attribute}."""
    req = v1(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), window=64, modifier=0,
             end_rid=mad.ALL_RIDS, sm_key=SM_KEY, **fields)
    data, m = sapeer.receive1(gsi, req)
    return dict(NODE.split1(data)), m


def forge(frame, address, number, edit=None):
    """The same request of class version 2, with this number in its TID, from another address:
    over IPv4 from one of 200 of the /24, over IPv6 from any of the /64. edit(frame, at): changes
    its record, which begins there."""
    f = bytearray(frame)
    if f[14] >> 4 == 6:
        mad_at = 14 + 40 + 8 + 12 + 8
        struct.pack_into('!Q', f, 14 + 16, 0x100 + address)
    else:
        mad_at = 14 + 20 + 8 + 12 + 8
        f[14 + 15] = 50 + address % 200
        struct.pack_into('!H', f, 24, 0)
        total = sum(struct.unpack_from('!10H', f, 14))
        total = (total & 0xffff) + (total >> 16)
        struct.pack_into('!H', f, 24, 0xffff - ((total & 0xffff) + (total >> 16)))
    struct.pack_into('!Q', f, mad_at + 8, 0xf100d00000000000 + number)
    if edit:
        edit(f, mad_at + 56)
    f[-4:] = icrc(bytes(f[14:-4]))
    return bytes(f)


def answer_to(gsi, q):
    """The answer to q; Reports may come before."""
    while True:
        a = gsi.rx()
        if a.tid == q.tid:
            return a


def inform(gsi, subscribe, trap=0xffff, lid_end=0):
    """Subscribe to Reports, or end the subscription. lid_end counts for nothing: it makes
    subscriptions to the same different ones."""
    q = v2(mad.SET, INFORM_INFO.attr, INFORM_INFO.put(
        lid_begin=0xffff, lid_end=lid_end, is_generic=1, subscribe=subscribe, type=0xffff,
        trap_number=trap, qpn=gsi.qpn, resp_time=18, producer_type=0xffffff),
        tid=sapeer.new_tid(), sm_key=SM_KEY)
    gsi.tx(q)
    return answer_to(gsi, q)


def ready(wire):
    """Ports for the tests of Reports."""
    wire.polca.rpc('sa_import', text=json.dumps(
        {'records': [node_json(lid) for lid in (1, 2)] + [port_json(lid) for lid in (1, 2)]}))


def join(gsi, method=mad.SET, state=1):
    """Port 1 joins the group MGID, which may create it, or leaves it."""
    values = dict(mgid=MGID, port_gid=gid(1), qkey=0xb1b, mtu_selector=2, mtu=4, pkey=0xffff,
                  rate_selector=2, rate=3, sl=0, flow_label=0, tclass=0, scope=2,
                  join_state=state)
    mask = MCMEMBER.mask('mgid', 'port_gid', 'qkey', 'mtu_selector', 'mtu', 'pkey',
                         'rate_selector', 'rate', 'sl', 'flow_label', 'tclass', 'join_state')
    q = v2(method, MCMEMBER.attr, MCMEMBER.put(**values), tid=sapeer.new_tid(), mask=mask,
           sm_key=SM_KEY)
    gsi.tx(q)
    return answer_to(gsi, q)
