# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Subscribers receive Report(Notice), repeated until ReportResp; partitions of untrusted
subscribers."""

import time

import mad
import sapeer
import time_limit
from conn import wait_until
from sawire import gid, inform, join, MGID, PREFIX, ready

DATABASE = 10
CONFIG = dict(sa=dict(notice_retries=1, notice_interval_ms=300))
PORT_UP, GROUP_CREATED, GROUP_DELETED = 64, 66, 67


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
