# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The harness's own state machines against each other, without Polca, so that errors they report
later are not their own."""

import os
import struct
import threading
import traceback

import pytest

import capture
import mad
import sapeer
from mad import NODE, v1, v2
from net import Namespace
from pattern import pattern
from roce import Station
from sapeer import Gsi, receive1, receive2, Script, send1, send2

MAC_A, MAC_B = '02:00:00:00:78:01', '02:00:00:00:78:02'


@pytest.fixture(scope='module')
def stations(kept):
    ns = Namespace()
    ns.veth('sa0', 'sb0', mac_a=MAC_A, mac_b=MAC_B)
    cap = capture.Capture(ns, 'sb0', os.path.join(kept, 'wire.pcap'))
    a = Station(ns, 'sa0', MAC_A, '10.78.0.1')
    b = Station(ns, 'sb0', MAC_B, '10.78.0.2')
    ga, gb = Gsi(a, MAC_B, '10.78.0.2', qpn=1), Gsi(b, MAC_A, '10.78.0.1', qpn=1)
    yield ga, gb
    a.close(), b.close()
    cap.stop()
    capture.check(cap.path, MAC_A)
    capture.check(cap.path, MAC_B)
    ns.close()


@pytest.fixture
def pair(stations):
    """Both; packets left by a failed test are discarded."""
    for g in stations:
        g.drain()
    return stations


def served(gsi, work):
    """Run the server's part in parallel to the test."""
    out = []

    def run():
        try:
            out.append(work(gsi, gsi.rx()))
        except BaseException as e:
            traceback.print_exc()  # print it: the test may fail first because of it
            out.append(e)
    t = threading.Thread(target=run)
    t.start()
    return t, out


def ended(t, out):
    t.join(30)
    assert not t.is_alive()
    if isinstance(out[0], BaseException):
        raise out[0]
    return out[0]


SIZES = [0, 1, 192, 193, 200, 201, 64 * 192, 64 * 192 + 1, 150 * 192 + 7]
LOST = [(), (1,), (2, 2), (5, 64, 64, 65)]


@pytest.mark.parametrize('size,lose', [(n, lost) for n in SIZES for lost in LOST
                                       if n > 192 or not lost])
def test_version_1_stream(pair, size, lose):
    data = pattern(size, size)
    t, out = served(pair[1], lambda g, req: send1(
        g, req.turned(), data, Script(lose=lose, silence=0.2), window=req.window))
    got, m = receive1(pair[0], v1(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), window=64),
                      Script(lose=lose[-1:], silence=0.1))
    ended(t, out)
    assert got == data


@pytest.mark.parametrize('size', SIZES[6:])
@pytest.mark.parametrize('lose', LOST)
def test_version_1_config(pair, size, lose):
    data = pattern(size, size)

    def serve(g, first):
        got, m = receive1(g, first, Script(lose=lose[-1:], silence=0.1), first=first)
        g.tx(m.turned(flags=0, segment=0, length=0))
        return got
    t, out = served(pair[1], serve)
    send1(pair[0], v1(mad.CONFIG, NODE.attr, tid=sapeer.new_tid(), edit=mad.ADD), data,
          Script(lose=lose, silence=0.2), answer=mad.CONFIG_RESP)
    assert ended(t, out) == data


@pytest.mark.parametrize('size', SIZES)
@pytest.mark.parametrize('lose', LOST)
def test_version_2_stream(pair, size, lose):
    data = pattern(size, size)
    t, out = served(pair[1], lambda g, req: send2(
        g, req.turned(stride=14), data, Script(lose=lose, silence=0.1)))
    s = Script(lose=lose[-1:], silence=0.3)
    got, m = receive2(pair[0], v2(mad.TABLE, NODE.attr, tid=sapeer.new_tid()), s)
    ended(t, out)
    assert got == data
    n = max(1, -(-size // 200))
    assert s.total == 20 * n + size  # B4


def test_masks_of_the_sheet():
    """A7's worked example, and B11's last bits."""
    assert mad.SWITCH.mask1('lids_per_port') == 1 << 10
    assert mad.SWITCH.mask('lids_per_port') == 1 << 12
    assert mad.SWITCH.at['lids_per_port'][0] // 8 - 4 == 12
    assert NODE.mask('node_desc') == 1 << 14
    assert mad.PATH.mask('dgid', 'preference') == 1 << 2 | 1 << 22
    assert mad.SERVICE.mask('data64') == 3 << 35
    assert mad.MCMEMBER.mask('join_state') == 1 << 16


def test_fields_stand_where_the_sheet_says():
    m = v1(0x12, 0x11, tid=0x0102030405060708, sa_key=0xa1, sm_key=0xa2, segment=0xa3, length=0xa4,
           flags=0xa5, edit=0xa6, window=0xa7a8, end_rid=0xa9, mask=0xaa, data=b'\xdd')
    raw = bytes(m)
    assert raw[:4] == b'\1\3\1\x12' and raw[8:16] == bytes(range(1, 9)) and raw[64] == 0xdd
    assert struct.unpack('!QQIIBBHIQ', raw[24:64]) == (
        0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7a8, 0xa9, 0xaa)
