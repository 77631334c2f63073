# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Captures of a test's wire, and checks that every frame sent by Polca must pass."""

import collections
import re
import signal
import struct
import time

import umad  # noqa: F401: where ibwire is
import ibwire
import roce
import time_limit
import tshark
from conn import wait_until

# Each frame takes a slot of this size in tcpdump's buffer, whatever its length. The default size,
# 256 KiB, leaves 256 slots, and a busy machine loses frames. The MTU is 1500 on captured wires.
SNAPLEN = 1800


class Capture:
    """tcpdump on an interface of a namespace, from start to stop, of all frames or of those that
    match a filter."""

    def __init__(self, ns, ifname, path, expression='', snaplen=SNAPLEN):
        self.path, self.text = path, ''
        log = open(path + '.log', 'w')
        self.proc = ns.popen(['tcpdump', '-i', ifname, '-w', path, '-U', '-s', str(snaplen),
                              '-B', '65536', '-Z', 'root', '--immediate-mode'] +
                             expression.split(), stdout=log, stderr=log)
        log.close()
        end = time_limit.end(10)
        while 'listening on' not in self._log():
            if self.proc.poll() is not None or time.monotonic() > end:
                raise RuntimeError('tcpdump: ' + self._log())
            time.sleep(0.02)

    def _log(self):
        with open(self.path + '.log') as f:
            return f.read()

    def stop(self):
        if self.proc:
            time.sleep(0.2)
            self.proc.send_signal(signal.SIGINT)
            self.proc.wait(time_limit.limit(10))
            self.proc = None
        return self

    def lost(self):
        m = re.search(r'(\d+) packets? dropped by kernel', self._log())
        return int(m.group(1)) if m else -1

    def frames(self):
        return frames(self.path)


def frames(path):
    """The frames of a pcap file, as bytes."""
    with open(path, 'rb') as f:
        d = f.read()
    assert d[:4] in (b'\xd4\xc3\xb2\xa1', b'\x4d\x3c\xb2\xa1'), path
    out, at = [], 24
    while at + 16 <= len(d):
        have, whole = struct.unpack_from('<II', d, at + 8)
        if at + 16 + have > len(d):
            break  # being written
        assert have == whole, '%s: a frame was cut' % path
        out.append(d[at + 16:at + 16 + have])
        at += 16 + have
    return out


# Dissectors that guess the contents of a payload, which is arbitrary here
GUESSERS = '''rpcordma smc smb_direct nvme-rdma lnet iser infiniband.eoib infiniband_sdp
    fcoib'''.split()
SPEAKS = {'infiniband', 'arp', 'icmp', 'icmpv6'}


def dissect(path, mac, fields, also=''):
    """These fields of every frame from mac, as tshark dissects them: lists of text."""
    only = 'eth.src == ' + mac + (' && ' + also if also else '')
    options = ['-Y', only, '-T', 'fields', '-E', 'separator=|']
    for name in GUESSERS:
        options += ['--disable-protocol', name]
    for f in fields:
        options += ['-e', f]
    return [line.split('|') for line in tshark.run(path, *options).splitlines()]


def check(path, mac, also=''):
    """Check every frame from mac: tshark dissects it as one of our protocols without a malformed
    mark, and the ICRC is right, and the VCRC if there is one.
    also: a display filter for the frames that tshark dissects.
    Returns the number of frames of each kind."""
    kinds, bad = collections.Counter(), []
    rows = dissect(path, mac, ['frame.number', 'frame.protocols', '_ws.malformed',
                               '_ws.short', 'infiniband.bth.opcode'], also)
    for number, protocols, malformed, short, opcode in rows:
        layers = protocols.split(':')
        known = SPEAKS.intersection(layers)
        if malformed or short or not known:
            bad.append('frame %s: %s %s%s' % (number, protocols, malformed, short))
        kinds[','.join(sorted(known))] += 1
    wrong = 0
    for f in frames(path):
        if f[6:12] == roce.mac_bytes(mac) and roce.Station._is_roce(f):
            wrong += not roce.Received(f, 0).icrc_ok
        elif f[6:14] == roce.mac_bytes(mac) + struct.pack('!H', ibwire.ETHERTYPE):
            ibwire.parse(f[14:])
    assert not bad, '%s: %s' % (path, bad[:10])
    assert not wrong, '%s: %d frames with a wrong ICRC' % (path, wrong)
    return kinds


def audit(polca, wire, mac, also='', to_itself=0):
    """Check one end of a wire between an appliance with one port and a station: its counters
    equal the capture's, every packet has one verdict, and check() finds no error in the frames
    it sent.
    to_itself: packets that the appliance sent to its own port, which are not on the wire."""
    own, seen = roce.mac_bytes(mac), {}

    def agree():
        row = polca.rpc('stats_get')['ports'][0]
        sources = [f[6:12] == own for f in wire.frames()]
        verdicts = sum(row['served'].values()) + sum(row['dropped'].values())
        seen['counted'] = tuple(n - to_itself for n in (
            row['rx_packets'], verdicts, row['tx_packets']))
        seen['captured'] = sources.count(False), sources.count(False), sources.count(True)
        return seen['counted'] == seen['captured']
    try:  # Polca may announce its addresses between the two readings
        wait_until(agree, timeout=10, step=0.3)
    except AssertionError:
        raise AssertionError('received, given a verdict, sent: %r; the capture lost %d' % (
            seen, wire.stop().lost())) from None
    polca.stop()
    wire.stop()
    assert wire.lost() == 0
    return check(wire.path, mac, also)
