# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Subscribers receive Report(Notice), repeated until ReportResp; partitions of untrusted
subscribers."""

import json
import time

import mad
import sapeer
import time_limit
from conn import wait_until
from mad import INFORM_INFO, MCMEMBER, v2

from sawire import gid, node_json, port_json, PREFIX, SM_KEY

DATABASE = 10
CONFIG = dict(sa=dict(notice_retries=1, notice_interval_ms=300))
MGID = 0xff12401bffff0000 << 64 | 0x1234
PORT_UP, GROUP_CREATED, GROUP_DELETED = 64, 66, 67


def inform(gsi, subscribe, trap=0xffff):
    q = v2(mad.SET, INFORM_INFO.attr, INFORM_INFO.put(
        lid_begin=0xffff, is_generic=1, subscribe=subscribe, type=0xffff, trap_number=trap,
        qpn=gsi.qpn, resp_time=18, producer_type=0xffffff), tid=sapeer.new_tid(), sm_key=SM_KEY)
    gsi.tx(q)
    while True:
        a = gsi.rx()
        if a.tid == q.tid:
            return a


def ready(wire):
    """Ports for the following tests."""
    wire.polca.rpc('sa_import', text=json.dumps(
        {'records': [node_json(lid) for lid in (1, 2)] + [port_json(lid) for lid in (1, 2)]}))


def join(gsi, method=mad.SET, state=1):
    values = dict(mgid=MGID, port_gid=gid(1), qkey=0xb1b, mtu_selector=2, mtu=4, pkey=0xffff,
                  rate_selector=2, rate=3, sl=0, flow_label=0, tclass=0, scope=2,
                  join_state=state)
    mask = MCMEMBER.mask('mgid', 'port_gid', 'qkey', 'mtu_selector', 'mtu', 'pkey',
                         'rate_selector', 'rate', 'sl', 'flow_label', 'tclass', 'join_state')
    q = v2(method, MCMEMBER.attr, MCMEMBER.put(**values), tid=sapeer.new_tid(), mask=mask,
           sm_key=SM_KEY)
    gsi.tx(q)
    while True:
        a = gsi.rx()
        if a.tid == q.tid:
            return a


def report(gsi, trap):
    end = time_limit.end(10)
    while time.monotonic() < end:
        m = gsi.rx()
        if m.method == mad.REPORT and int.from_bytes(m.data[4:6], 'big') == trap:
            return m
    raise AssertionError('no Report of trap %d' % trap)


def next_report(gsi):
    """The next Report of any kind: its trap's number."""
    while True:
        m = gsi.rx()
        if m.method == mad.REPORT:
            return m, int.from_bytes(m.data[4:6], 'big')


def test_report_until_it_is_answered(wire, gsi, other):
    ready(wire)
    assert inform(gsi, 1).status == 0
    assert join(other).status == 0
    m = report(gsi, GROUP_CREATED)
    assert m.attr == 2 and (m.class_version, m.status) == (2, 0)
    assert int.from_bytes(m.data[16:32], 'big') == MGID
    again = report(gsi, GROUP_CREATED)
    assert again.tid == m.tid
    gsi.tx(again.turned())
    assert join(other, mad.DELETE).status == 0
    m, trap = next_report(gsi)
    assert trap == GROUP_DELETED
    # never answered: repeated as often as configured, and no more
    wait_until(lambda: wire.polca.rpc('sa_stats')['sa']['reports_given_up'] == 1, timeout=30)
    # in this time, an answered one would also have been repeated
    reports = [a for a in map(sapeer.as_mad, gsi.drain()) if a.method == mad.REPORT]
    assert [a.tid for a in reports] == [m.tid]
    assert inform(gsi, 0).status == 0


def test_no_report_after_the_end_of_the_subscription(wire, gsi, other):
    ready(wire)
    inform(gsi, 1)
    inform(gsi, 0)
    assert join(other).status == 0
    inform(gsi, 1)
    assert join(other, mad.DELETE).status == 0
    m, trap = next_report(gsi)  # of the later event, and of no earlier one
    assert trap == GROUP_DELETED
    gsi.tx(m.turned())
    inform(gsi, 0)


def test_prefix_of_the_subnet():
    assert gid(1) >> 64 == PREFIX
