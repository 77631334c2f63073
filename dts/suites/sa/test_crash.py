# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""kill -9 in a loop, during Configs and Sets, over a database on disk: acknowledged changes are
there, no Config is there partly, and there are no other changes."""

import os
import random
import threading

import pytest

import mad
import sapeer
from mad import NODE, SERVICE, v1, v2
from sapeer import Failed, Script

from sawire import config, gid, nodes1, SM_KEY, Wire

TEST_SECONDS = 600
KILLS = 12
BATCH = 120  # records of a Config: 68 segments, so that it takes two windows


def node(lid, round_):
    return NODE.bare(base_version=1, class_version=1, node_type=1, num_ports=1, node_guid=lid << 16,
                     port_guid=lid << 16, device_id=round_ & 0xffff, node_desc=b'r%d' % round_)


class Writer(threading.Thread):
    """Configs of whole batches, one after the other, until the peer is dead."""

    def __init__(self, gsi, known, round_):
        super().__init__(daemon=True)
        self.gsi, self.known, self.round, self.stop = gsi, known, round_, False
        self.pending = None  # the change whose answer has not arrived

    def run(self):
        rnd = random.Random(self.round)
        while not self.stop:
            batch = rnd.randrange(8)
            have = batch in self.known
            edit = mad.ADD if not have else rnd.choice((mad.EDIT, mad.REMOVE))
            mark = rnd.randrange(1 << 16)
            recs = [((batch * BATCH + i + 1) << 16, node(batch * BATCH + i + 1, mark))
                    for i in range(BATCH)]
            after = None if edit == mad.REMOVE else mark
            self.pending = (batch, after)
            try:
                a = config(self.gsi, edit, recs, script=Script(silence=0.3, tries=3), timeout=8)
            except (Failed, AssertionError, OSError):
                return
            assert a.status == 0, a
            if after is None:
                del self.known[batch]
            else:
                self.known[batch] = after
            self.pending = None


class Setter(threading.Thread):
    """Services set and deleted one by one."""

    def __init__(self, gsi, known, round_):
        super().__init__(daemon=True)
        self.gsi, self.known, self.round, self.stop = gsi, known, round_, False
        self.pending = None

    def run(self):
        rnd = random.Random(self.round)
        while not self.stop:
            number = rnd.randrange(40)
            values = dict(service_id=number, gid=gid(1), pkey=0xffff, lease=0xffffffff,
                          name=b'service %d' % number)
            delete = number in self.known
            self.pending = number
            q = v2(mad.DELETE if delete else mad.SET, SERVICE.attr, SERVICE.put(**values),
                   tid=sapeer.new_tid(), sm_key=SM_KEY, mask=SERVICE.mask(*values))
            self.gsi.tx(q)
            a = self.gsi.maybe(1.5)
            while a is not None and a.tid != q.tid:
                a = self.gsi.maybe(1.5)
            if a is None:
                return
            assert a.status == 0, a
            (self.known.remove if delete else self.known.add)(number)
            self.pending = None


@pytest.fixture
def wire(kept, sockets):
    w = Wire(kept, sockets, sa=dict(path=os.path.join(kept, 'db'), map_mb=256))
    try:
        yield w
    finally:
        w.close()


def compare_nodes(g, known, pending):
    """Each batch is as it was acknowledged, or as the one change under way would have left it."""
    have, _ = nodes1(g)
    found = {}
    for batch in range(8):
        rows = [have.get((batch * BATCH + i + 1) << 16) for i in range(BATCH)]
        marks = {None if r is None else NODE.get_bare(r, 'device_id') for r in rows}
        assert len(marks) == 1, 'batch %d is there partly: %r' % (batch, marks)
        found[batch] = marks.pop()
    for batch in range(8):
        allowed = {known.get(batch)}
        if pending and pending[0] == batch:
            allowed.add(pending[1])
        assert found[batch] in allowed, (batch, found[batch], allowed)
    assert len(have) == sum(BATCH for m in found.values() if m is not None)
    return {b: m for b, m in found.items() if m is not None}


def compare_services(g, known, pending):
    req = v1(mad.TABLE, SERVICE.attr, tid=sapeer.new_tid(), window=64, end_rid=mad.ALL_RIDS,
             sm_key=SM_KEY)
    data, _ = sapeer.receive1(g, req)
    ids = [SERVICE.get(r, 'service_id') for _, r in SERVICE.split1(data)]
    assert len(ids) == len(set(ids))
    wrong = set(ids) ^ known
    assert not wrong or wrong == {pending}, (sorted(ids), sorted(known), pending)
    return set(ids)


def test_killed_in_the_middle_of_changes(wire):
    nodes, services = {}, set()
    rnd = random.Random(79)
    done = 0
    wire.polca.start()
    wire.polca.rpc('sa_import', text='{"records": []}', replace=True)
    for k in range(KILLS):
        with wire.gsi() as g1, wire.gsi() as g2, wire.gsi() as g3:
            writers = [Writer(g1, nodes, k), Setter(g2, services, k)]
            for t in writers:
                t.start()
            writers[0].join(0.05 + rnd.random() * 1.2)
            done += wire.polca.rpc('sa_stats')['store']['commits']
            wire.polca.kill()
            for t in writers:
                t.stop = True
            for t in writers:
                t.join(30)
                assert not t.is_alive()
            wire.polca.start()
            for g in (g1, g2):
                g.drain()
            nodes = compare_nodes(g3, nodes, writers[0].pending)
            services = compare_services(g3, services, writers[1].pending)
    assert done > KILLS
    wire.polca.stop()
