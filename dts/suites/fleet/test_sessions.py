# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A transfer of many packets belongs to the appliance that was asked. If that dies, another one knows nothing of it:
the client sends the same request there, and starts again."""

import pytest

import mad
import sapeer
from fleet import OWN_LIDS, answer, put, records, until
from mad import NODE, v1, v2
from sawire import SM_KEY, config

TEST_SECONDS = 120
LIDS = range(1, 1001)


def table(version):
    """All NodeRecords, which are some hundred segments."""
    if version == 1:
        return v1(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), window=64, modifier=0, end_rid=mad.ALL_RIDS,
                  sm_key=SM_KEY)
    return v2(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY)


def acknowledge(m):
    """The Ack of this segment, which lets the next ones come."""
    if m.class_version == 1:
        return m.turned(flags=mad.ACK, segment=m.segment, length=0, window=64)
    return m.turned(rmpp_type=mad.RACK, rmpp_flags=mad.ACTIVE, segment=m.segment, new_window_last=m.segment + 16)


def whole(gsi, q):
    """The LIDs of the clients' NodeRecords in the answer to q, from its first segment on."""
    if q.class_version == 1:
        data, _ = sapeer.receive1(gsi, q)
        lids = [rid >> 16 for rid, _ in NODE.split1(data)]
    else:
        data, m = sapeer.receive2(gsi, q)
        lids = [NODE.get(record, 'lid') for record in NODE.split2(data, m.stride)]
    return [lid for lid in sorted(lids) if lid < OWN_LIDS]


def unmatched(polca):
    return polca.rpc('stats_get', port=0)['ports'][0]['dropped']['mad_unmatched']


@pytest.mark.parametrize('version', [1, 2])
@pytest.mark.parametrize('leads', [True, False], ids=['leader', 'follower'])
def test_the_asked_one_dies_within_its_answer(three, version, leads):
    nodes, gsi, (lead, one, two) = three
    asked = lead if leads else one
    assert put(nodes[lead], *LIDS)
    for p in nodes:
        until('all records at %s' % p.name, lambda: set(records(p)) == set(LIDS))
    q = table(version)
    m = answer(gsi[asked], q)
    assert m.segment == 1
    gsi[asked].tx(acknowledge(m))
    while m.segment < 2:
        m = gsi[asked].rx()
    # the client acknowledges no more, so the rest of the answer has to wait
    assert nodes[asked].rpc('sa_sessions')['sessions']
    nodes[asked].kill()
    # another one drops the Ack of what it has not sent
    before = unmatched(nodes[two])
    gsi[two].tx(acknowledge(m))
    until('it is dropped', lambda: unmatched(nodes[two]) == before + 1)
    gsi[two].expect_nothing()
    assert whole(gsi[two], q) == list(LIDS)


def test_the_asked_one_dies_within_a_config(three):
    """Another one asks for its first segment; what the dead one had is nowhere."""
    nodes, gsi, (lead, one, two) = three
    rows = [(lid << 16, NODE.bare(lid=lid, node_guid=lid)) for lid in LIDS]
    head = v1(mad.CONFIG, NODE.attr, tid=sapeer.new_tid(), edit=mad.ADD, sm_key=SM_KEY)
    segments = sapeer.segments1(head, b''.join(rid.to_bytes(4, 'big') + bare for rid, bare in rows))
    for s in segments[:64]:
        gsi[one].tx(s)
    until('the first window is acknowledged', lambda: gsi[one].rx().flags & mad.ACK)
    nodes[one].kill()
    gsi[two].tx(segments[64])
    gsi[two].expect(flags=mad.RESEND, segment=1, tid=head.tid)
    assert records(nodes[two]) == records(nodes[lead]) == {}
    assert config(gsi[two], mad.ADD, rows, tid=head.tid, timeout=60).status == 0
    assert set(records(nodes[two])) == set(LIDS)
    until('it is at the leader', lambda: set(records(nodes[lead])) == set(LIDS))
