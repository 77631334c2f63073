# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Paths compared with a live opensm: five simulated fabrics are imported, and for every pair of
LIDs, one Get is sent to either SA. Both return the same MTU, rate, SL, P_Key and PacketLifeTime
(sa-multipacket B12)."""

import ipaddress
import json
import os
import re
import select
import subprocess

import pytest

import mad
import time_limit
from conn import wait_until
from ibports import ib_port
from ibsim import Fabric, Gateway, Plan
from mad import MCMEMBER, PATH, v2
from net import die_with_parent, Namespace
from polca import CTL_PROGRAM, Polca, port
from smp import lid_routed, notice, TRAP

SAME = ('pkey', 'mtu', 'rate', 'sl', 'packet_life', 'sgid', 'dgid', 'reversible', 'tclass',
        'flow_label', 'hop_limit', 'qos_class')
MTU = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
RATE = {2: 2.5, 3: 10, 4: 30, 5: 5, 6: 20, 7: 40, 8: 60, 9: 80, 10: 120, 11: 14, 12: 56, 13: 112,
        14: 168, 15: 25, 16: 100, 17: 200, 18: 300, 19: 28, 20: 50, 21: 400, 22: 600, 23: 800}


def two_spines(hosts, slow='4xEDR'):
    p = Plan()
    leaves = [p.switch('leaf%d' % i) for i in range(4)]
    for i in range(hosts):
        p.host(leaves[i % 4])
    for s, speed in (('spine0', '4xEDR'), ('spine1', slow)):
        p.switch(s)
        for leaf in leaves:
            p.link(leaf, s, speed)
    return p


def ring():
    p = Plan()
    switches = [p.switch('s%d' % i) for i in range(8)]
    for s in switches:
        p.host(s), p.host(s, '4xHDR')
    for i in range(8):
        p.link(switches[i], switches[(i + 1) % 8])
    return p


def torus():
    p = Plan()
    grid = [[p.switch('t%d%d' % (x, y)) for y in range(4)] for x in range(4)]
    for row in grid:
        for s in row:
            p.host(s)
    for x in range(4):
        for y in range(4):
            p.link(grid[x][y], grid[(x + 1) % 4][y], '4xQDR')
            p.link(grid[x][y], grid[x][(y + 1) % 4], '1xEDR' if x == 1 else '4xQDR')
    return p


FABRICS = {
    'uniform': (lambda: two_spines(8), []),
    'mixed-speed': (lambda: two_spines(16, '1xSDR'), []),
    'lash-ring': (ring, ['-R', 'lash']),
    'torus': (torus, ['-R', 'dor']),
    'lmc-1': (lambda: two_spines(6), ['-l', '1']),
}
# opensm gives partitions an SL only with QoS (-Q)
WITH_PARTITIONS = dict(FABRICS, partitions=(lambda: two_spines(5), ['-Q']))
PARTITIONS = {0x7fff: 3, 0x0001: 2}  # their SLs


@pytest.fixture(scope='module')
def polca(sockets):
    ns = Namespace()
    ns.veth('pv0', 'st0')
    with Polca(sockets, [port('port0', 'net_af_packet0,iface=pv0', '10.78.0.1/24')], ns=ns) as p:
        yield p
    ns.close()


@pytest.fixture(scope='module')
def inside(fabric, sockets):
    """An appliance in place of the fabric's last host."""
    host = fabric.plan.hosts[-1]
    lid, = fabric.lids[host][:1]
    ns = Namespace()
    ns.veth('pv0', 'st0')
    gateway = Gateway(ns, 'st0', fabric, host, lid)
    p = Polca(sockets, [ib_port('port0', 'pv0', lid=lid, sm_lid=fabric.sm_lid, active=True,
                                sm=dict(priority=0, state='standby'),
                                lmc=len(fabric.lids[host]) - 1,
                                guid='0x%016x' % fabric.plan.port_guid(host))],
              ns=ns, name='inside-' + fabric.name,
              sa=dict(partitions=[dict(pkey='0x%04x' % pkey, sl=sl)
                                  for pkey, sl in fabric.partitions.items()]),
              sma=dict(node_guid='0x%016x' % fabric.plan.guid(host)))
    p.host, p.gateway = host, gateway
    try:
        yield p.start()
        gateway.close()
    finally:
        p.kill()
        ns.close()


@pytest.fixture(scope='module', params=list(FABRICS))
def fabric(request, kept):
    """With .lids: of each host; .answers: opensm's answer for each pair of hosts' LIDs."""
    plan, options = WITH_PARTITIONS[request.param]
    f = Fabric(plan(), os.path.join(kept, request.param), *options)
    f.name = request.param
    f.partitions = PARTITIONS if f.name == 'partitions' else {}
    if f.partitions:
        f.options += ['-P', f.write('partitions.conf', ''.join(
            'p%x=0x%04x,sl=%d:ALL=full;\n' % (pkey, pkey, sl) for pkey, sl in f.partitions.items()))]
    try:
        f.start()
        f.topology = f.run('ibnetdiscover')
        f.tables = f.run('dump_fts') + f.run('dump_fts', '-M')
        f.lids = {name: list(range(lid, lid + (1 << lmc)))
                  for name, lid, lmc in hosts_of(f.topology)}
        f.sm_lid = f.lids[f.plan.hosts[0]][0]
        f.asker = f.client(f.plan.hosts[1])
        f.answers = theirs(f, pairs(f))
        yield f
    finally:
        f.close()


def hosts_of(text):
    """(name, LID, LMC) from ibnetdiscover."""
    return [(name, int(lid), int(lmc)) for name, lid, lmc in re.findall(
        r'^Ca\t.*# "(.*)"\n\[1\].*# lid (\d+) lmc (\d+) ', text, re.M)]


def pairs(fabric):
    ports = sum(fabric.lids.values(), [])
    return [(s, d) for s in ports for d in ports]


def theirs(fabric, which, **more):
    """opensm's answers in our own terms; None if it has no path."""
    out = {}
    for slid, dlid in which:
        a = mad.Mad(fabric.asker.ask(bytes(v2(
            mad.GET, PATH.attr, mask=PATH.mask('slid', 'dlid', *more), sm_key=1,
            data=PATH.put(slid=slid, dlid=dlid, **more))), fabric.sm_lid))
        assert (a.method, a.attr) == (mad.GET_RESP, PATH.attr) and a.status in (0, 0x300), a
        got = {k: PATH.get(a.data, k) for k in SAME}
        got.update(mtu=MTU.get(got['mtu']), rate=RATE.get(got['rate']))
        out[slid, dlid] = got if a.status == 0 else None
    return out


def number(text):
    if ':' in str(text):
        return int(ipaddress.IPv6Address(text))
    return float(text) if '.' in str(text) else int(str(text), 0)


def ours(polca, slid, dlid, **more):
    query = polca.rpc('sa_query', op='get', record='path',
                      fields=dict(slid=slid, dlid=dlid, **more))['query']
    page = polca.rpc('sa_result', query=query, timeout_ms=5000)
    polca.rpc('sa_cancel', query=query)
    return {k: number(page['records'][0][k]) for k in SAME} if page['records'] else None


def differing(polca, answers, **more):
    """Pairs with different answers, with both of them."""
    out = {}
    for pair in answers:
        mine = ours(polca, *pair, **more)
        if mine != answers[pair]:
            out[pair] = mine, answers[pair]
    return out


def put(polca, text, **options):
    return polca.rpc('sa_import', text=text, **options)


def routes(polca):
    s = polca.rpc('sa_stats')['sa']
    return s['routes_walked'], s['routes_searched']


def sls(answers):
    """opensm's PathRecords in the form of sa table path --json."""
    return json.dumps({'records': [dict(record='PathRecord', slid=s, dlid=d, sl=a['sl'])
                                   for (s, d), a in answers.items() if a]})


def test_every_pair_is_as_opensm_has_it(polca, fabric):
    before = routes(polca)
    put(polca, fabric.topology + fabric.tables, format='ibnetdiscover', mtu='2048', replace=True)
    put(polca, sls(fabric.answers), format='json')
    assert len(fabric.answers) == len(pairs(fabric)) >= 64 and all(fabric.answers.values())
    assert differing(polca, fabric.answers) == {}
    walked, searched = routes(polca)
    assert walked > before[0] and searched == before[1]


def test_without_tables_the_search_says_so(polca, fabric):
    """A shortest-hop search differs from the real routes if links or SLs differ."""
    before = routes(polca)
    put(polca, fabric.topology, format='ibnetdiscover', mtu='2048', replace=True)
    wrong = len(differing(polca, fabric.answers))
    print('%s: %d of %d pairs differ' % (fabric.name, wrong, len(fabric.answers)))
    assert (wrong > 0) == (fabric.name in ('mixed-speed', 'lash-ring', 'torus')), wrong
    walked, searched = routes(polca)
    assert walked == before[0] and searched > before[1]


def test_unknown_mtu_is_not_claimed(polca, fabric):
    """ibnetdiscover has no MTUs: 256 works on every link."""
    put(polca, fabric.topology + fabric.tables, format='ibnetdiscover', replace=True)
    assert ours(polca, *pairs(fabric)[1])['mtu'] == 256


# ---- by our own packets

def agrees(fabric, inside):
    """Every pair of LIDs, also switches', except for our own port, which is a real one."""
    switches = [int(lid) for lid in re.findall(r' base port 0 lid (\d+) ', fabric.topology)]
    ports = switches + sum((lids for host, lids in fabric.lids.items() if host != inside.host), [])
    answers = theirs(fabric, [(s, d) for s in ports for d in ports])
    put(inside, sls(answers), format='json')
    assert differing(inside, answers) == {}
    assert routes(inside)[1] == 0


def test_sweep(fabric, inside):
    said = inside.ctl('--json', 'sa', 'import', '--sweep', '--replace').stdout
    swept = json.loads(said)
    nodes = len(fabric.plan.hosts) + len(fabric.plan.switches)
    cables = sum(map(len, fabric.plan.cables.values()))
    assert (swept['nodes'], swept['links'], swept['switches']) == (
        nodes, cables, len(fabric.plan.switches)), swept
    assert swept['unanswered'] == swept['without_lid'] == 0, swept
    agrees(fabric, inside)


MGID = int(ipaddress.IPv6Address('ff12:401b:ffff::7'))


def join(fabric, host):
    """The host's own MCMemberRecord, as its driver sends it."""
    names = ('mgid', 'port_gid', 'join_state', 'qkey', 'tclass', 'pkey', 'flow_label', 'sl')
    data = MCMEMBER.put(mgid=MGID, join_state=1, qkey=0xb1b, pkey=0xffff,
                        port_gid=0xfe80 << 112 | fabric.plan.port_guid(host))
    a = mad.Mad(fabric.client(host).ask(bytes(v2(
        mad.SET, MCMEMBER.attr, mask=MCMEMBER.mask(*names), data=data)), fabric.sm_lid))
    assert (a.method, a.status) == (mad.GET_RESP, 0), a
    return MCMEMBER.get(a.data, 'mlid')


def multicast_masks(polca):
    """Stored masks that lead somewhere."""
    out, cursor = {}, 0
    while cursor is not None:
        page = polca.rpc('sa_export', max=1000, cursor=cursor)
        cursor = page['cursor']
        out.update({(r['lid'], r['block_num'], r['position']): r['masks'] for r in page['records']
                    if r['record'] == 'MulticastForwardingTableRecord'})
    return {k: v for k, v in out.items() if any(c in '123456789abcdef' for c in str(v))}


def test_multicast_tables(fabric, inside):
    """opensm routes a group that three hosts joined: the text of dump_fts -M brings the same as our
    own SMPs."""
    if fabric.name != 'uniform':
        return
    mlid, = {join(fabric, host) for host in fabric.plan.hosts[1:4]}
    row = re.compile('^0x%04x  .*x' % mlid, re.M)
    wait_until(lambda: len(row.findall(fabric.run('dump_fts', '-M'))) > 3, timeout=30)
    put(inside, fabric.topology + fabric.tables + fabric.run('dump_fts', '-M'),
        format='ibnetdiscover', replace=True)
    imported = multicast_masks(inside)
    assert len(imported) > 3, imported
    inside.ctl('sa', 'import', '--sweep', '--replace')
    assert multicast_masks(inside) == imported


def test_sls_asked_of_the_running_sa(fabric, inside):
    """By our own client, as people do: import reads what it printed."""
    if fabric.name != 'lash-ring':
        return  # in the other fabrics all SLs are 0
    slid = fabric.lids[fabric.plan.hosts[0]][0]
    asked = {pair: a for pair, a in fabric.answers.items() if pair[0] == slid}
    records = []
    for _, dlid in asked:  # ibsim has no RMPP: one Get each, not one table
        out = inside.ctl('--json', 'sa', 'get', 'path', 'slid=%d' % slid, 'dlid=%d' % dlid,
                         '--dlid', fabric.sm_lid, '--sm-key', 1).stdout
        records += json.loads(out)['records']
        put(inside, out, format='json')
    put(inside, json.dumps({'records': records}), format='json')
    got = {dlid: ours(inside, slid, dlid)['sl'] for _, dlid in asked}
    assert got == {dlid: a['sl'] for (_, dlid), a in asked.items()} and set(got.values()) > {0}


class Following:
    """Run sa import --sweep --replace --follow until the end of the block."""

    def __init__(self, polca, *options):
        self.argv = [CTL_PROGRAM, '-s', polca.socket, 'sa', 'import', '--sweep', '--replace',
                     '--follow', *map(str, options)]

    def __enter__(self):
        self.proc = subprocess.Popen(self.argv, stdout=subprocess.PIPE, text=True,
                                     preexec_fn=die_with_parent)
        self.swept()
        return self

    def swept(self):
        """Wait until one more sweep is complete."""
        says(self.proc, 'records in')

    def __exit__(self, *exc):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()


def says(proc, text):
    """Its next line."""
    ready, _, _ = select.select([proc.stdout], [], [], time_limit.limit(30))
    assert ready and text in proc.stdout.readline()


def pull_slow_cable(fabric, leaf):
    """Move a cable to the slow spine; afterwards opensm routes all paths differently."""
    sweeps, before = fabric.sweeps(), theirs(fabric, fabric.answers)
    fabric.console('Unlink "%s"[%d]' % (leaf, len(fabric.plan.cables[leaf])))
    wait_until(lambda: fabric.sweeps() > sweeps, timeout=30)
    assert theirs(fabric, before) != before


def test_a_trap_calls_for_a_sweep(fabric, inside):
    """A cable is pulled: opensm computes new routes, and Polca follows once trap 128 has
    arrived."""
    if fabric.name != 'mixed-speed':
        return  # one is enough
    with Following(inside, '--every', 0) as following:
        pull_slow_cable(fabric, 'leaf1')
        inside.gateway.tell(bytes(lid_routed(TRAP, 2, data=notice(
            generic=1, type=1, producer=2, number=128, issuer=2))), 2)
        following.swept()
    agrees(fabric, inside)


def test_a_foreign_managers_subnet_is_followed(fabric, inside):
    """The traps go to opensm only, so Polca receives none and sweeps at intervals."""
    if fabric.name != 'mixed-speed':
        return
    with Following(inside, '--every', 1) as following:
        pull_slow_cable(fabric, 'leaf2')
        following.swept()  # the first may have begun before
        following.swept()
    agrees(fabric, inside)


# the last one: its fabric would end the first of the others in their midst
@pytest.mark.parametrize('fabric', ['partitions'], indirect=True)
def test_sls_of_partitions(fabric, inside):
    """As in opensm's partitions.conf: the SL of the queried partition."""
    inside.ctl('sa', 'import', '--sweep', '--replace')
    others = [pair for pair in pairs(fabric) if not set(pair) & set(fabric.lids[inside.host])]
    for pkey, sl in PARTITIONS.items():
        answers = theirs(fabric, others, pkey=0x8000 | pkey)
        assert {a['sl'] for a in answers.values()} == {sl}
        assert differing(inside, answers, pkey=0x8000 | pkey) == {}
