# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Many addresses of one /24 or /64 take all sessions, or all memory for lists of results, that they can
get: clients of other prefixes keep what they have and get more, and bystanders go on."""

import contextlib
import itertools

import pytest

import mad
import sapeer
from conn import wait_until
from mad import NODE, v2
from sapeer import receive2, Script

from sawire import CmWire, Delta, forge, node_bytes, NODES

MAX = 160  # sessions
LISTS = 150  # of 17 chunks each; there are 2,048 (lib/sa/result.c)
POOL_MB = 1
PATIENCE = 20  # RespTimeValue: a silent session ends after 16 s only, if the machine is slow
# bytes for one. A guesser sends two datagrams. If it takes its time it gets the first segment three times
# before it acknowledges, then two segments eight times each, and an ABORT.
SILENT, GUESSED = 3, 12
WELL_KNOWN = 1  # the SM_Key of strangers; with it they see all nodes
NETWORKS = {'/24': '10.%d.%d.2', '/64': 'fd79:%d:%d::2'}
numbers = itertools.count(0, 1000)


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = CmWire(kept, sockets, mad=dict(max_sessions=MAX, max_sessions_per_peer=16, resp_time=PATIENCE),
               sa=dict(sm_key=WELL_KNOWN, max_result_mb=POOL_MB))
    try:
        w.start()
        yield w
        w.audit()
    finally:
        w.close()


def table():
    """A whole table, for which Polca needs no list."""
    return v2(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=WELL_KNOWN)


def gathered():
    """A table of all nodes of one type, which are listed first."""
    return v2(mad.TABLE, NODE.attr, NODE.put(node_type=1), tid=sapeer.new_tid(), sm_key=WELL_KNOWN,
              mask=NODE.mask('node_type'))


def of_first_segment(request, kind=mad.RACK, window_last=2):
    """An ACK of the first segment, whether it was seen or not, or an ABORT."""
    return request.but(rmpp_version=1, rmpp_type=kind, rmpp_flags=mad.ACTIVE, segment=1,
                       new_window_last=window_last, rmpp_status=mad.RESX if kind == mad.ABORT else 0)


class Flood:
    """Sends a datagram from each of so many addresses, and later others in the same transactions."""

    def __init__(self, wire, gsi, addresses):
        self.wire, self.gsi, self.addresses, self.first = wire, gsi, addresses, next(numbers)

    def send(self, m):
        frame = self.gsi.frame(m)
        for n in range(self.addresses):
            self.gsi.station.send(forge(frame, n, self.first + n))

    def ask(self, request):
        asked = Delta(self.wire.sa_stats)
        self.send(request)
        wait_until(lambda: asked['get_table'] == self.addresses, timeout=30)

    def end(self, request):
        self.send(of_first_segment(request, mad.ABORT))
        wait_until(lambda: not sessions(self.wire), timeout=60)
        self.gsi.drain()


def sessions(wire):
    return [s for s in wire.polca.rpc('sa_sessions', max=1000)['sessions'] if s['state'] != 'LINGER']


def served(gsi, request, begin=None):
    """True if the client gets its whole table; begin: its first segment, if it has asked already."""
    try:
        data, m = receive2(gsi, request, Script(silence=1), first=begin, timeout=60)
    except sapeer.Failed:
        return False
    assert NODE.split2(data, m.stride) == [node_bytes(lid) for lid in range(1, NODES + 1)]
    return True


# what the flood asks for, whether it acknowledges, how often it asks, and what shows that the pool was
# full: an address asks once, so that only its prefix can be held against it
ATTACKS = {'silent sessions': (table, False, MAX + 38, lambda wire: wire.stats()['sessions_reclaimed']),
           'guessed ACKs': (table, True, MAX - 2, lambda wire: wire.stats()['sessions_reclaimed']),
           'silent lists': (gathered, False, LISTS, lambda wire: wire.sa_stats()['gave_way'])}


@pytest.mark.parametrize('attack', ATTACKS)
@pytest.mark.parametrize('network', NETWORKS)
def test_one_prefix_keeps_nobody_out(wire, bystanders, network, attack):
    """Two clients asked before the flood and read on after it; two come when all is taken. They are
    in four prefixes: prefixes share counters by a secret hash, so one in thousands shares the
    flood's."""
    request, acknowledges, addresses, gave_way = ATTACKS[attack]
    # each attack has prefixes of its own: an address that has acknowledged is known for ten minutes
    prefixes = [NETWORKS[network] % (80 + list(ATTACKS).index(attack), n) for n in range(5)]
    before = gave_way(wire)
    with contextlib.ExitStack() as stack:
        gsi, *clients = [stack.enter_context(wire.gsi(ip)) for ip in prefixes]
        flood, of_flood = Flood(wire, gsi, addresses), request()
        stack.callback(flood.end, of_flood)
        early, late = [(c, request()) for c in clients[:2]], clients[2:]
        for client, asked in early:
            client.tx(asked)
        begun = [client.expect(segment=1) for client, _ in early]
        if acknowledges:
            for client, asked in early:
                client.tx(of_first_segment(asked, window_last=1))
        with bystanders.unharmed(amplified=GUESSED if acknowledges else SILENT):
            flood.ask(of_flood)
            if acknowledges:
                flood.send(of_first_segment(of_flood))
                wait_until(lambda: all(s['segment'] for s in sessions(wire)), timeout=30)
                assert len(sessions(wire)) == MAX and gave_way(wire) == before
            bystanders.exchange()
        assert any([served(client, request()) for client in late])
        for client, _ in early:
            client.drain()
        assert any([served(client, asked, begin) for (client, asked), begin in zip(early, begun)])
        assert gave_way(wire) > before
