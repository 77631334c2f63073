# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A machine with three cards and a soft-RoCE host on one segment. The tests run the commands of
the operator guide's section "On bare metal". Both machines are booted once; each test continues
where the previous one ended, as an operator does."""

import contextlib
import json
import os
import shutil
import tempfile

import pytest
from _pytest.runner import runtestprotocol

import capture
from conn import wait_until
from guest import Guest, Nic
from guide import Section
from bare_metal import Metal
from net import Namespace
from polca import BUILD

HERE = os.path.dirname(os.path.realpath(__file__))
MTU = 4200
PEER_IP, PEER_IP1, PEER_IP6 = '10.0.0.2', '10.0.1.2', '2001:db8:1::2'


class Bench:
    def __init__(self, sockets):
        self.kept = os.path.join(BUILD, 'dts', 'bare-metal', 'machines')
        shutil.rmtree(self.kept, ignore_errors=True)
        os.makedirs(self.kept)
        self.ns = Namespace()
        taps = [self.ns.tap(name, MTU) for name in ('card0', 'card1', 'card2', 'peer')]
        self.ns.bridge('segment', 'card0', 'card1', 'card2', 'peer')
        self.ns.ip('link', 'set', 'segment', 'mtu', MTU)
        self.metal = Metal(self.kept, taps[:3])
        self.peer = Guest(self.kept, Nic.tap(taps[3]), name='peer', ip=PEER_IP + '/24',
                          ip6=PEER_IP6 + '/64', mtu=str(MTU), tcp=False)
        for g in (self.metal, self.peer):
            g.agent_path = os.path.join(sockets, g.name + '.agent')
            g.rdma_path = os.path.join(sockets, g.name + '.rdma')
        self.job = None

    def start(self):
        self.metal.start()
        self.peer.start()
        self.metal.wait_ready(240)
        self.peer.wait_ready(240)
        self.peer.check('/usr/bin/ip addr add %s/24 dev eth0' % PEER_IP1)
        return self

    def close(self):
        self.metal.stop()
        self.peer.stop()
        self.ns.close()

    def boot_again(self):
        """After the machine ended: it is as after its first boot."""
        self.job = None
        self.metal.start()
        self.metal.wait_ready(240)

    # ---- the machine's shell

    def run(self, command, timeout=180):
        return self.metal.run('cd /opt/polca && ' + command, timeout)

    def check(self, command, timeout=180):
        return self.metal.check('cd /opt/polca && ' + command, timeout)

    # ---- its Polca

    def launch(self, command):
        """Start it and wait for its output: that it is ready, or why not."""
        assert self.job is None
        self.job = self.metal.spawn('cd /opt/polca && exec ' + command, timeout=600)

        def said():
            return 'polca: ready' in self.job.output() or self.job.poll() is not None
        wait_until(said, timeout=180, step=0.3)
        return self.job.output()

    def start_polca(self, command):
        said = self.launch(command)
        assert 'polca: ready' in said, said
        return said

    def stop_polca(self):
        """Stop it as Ctrl-C or systemd does."""
        if self.job is None:
            return
        job, self.job = self.job, None
        self.check('killall -TERM polca; true')
        r = job.wait(60)
        with open(os.path.join(self.kept, 'polca.log'), 'a') as f:
            f.write(r.output + '\n')
        assert r.status == 0, r

    def ask(self, command):
        """The output of polca-ctl as a dict."""
        return json.loads(self.check(command + ' --json'))

    def stop_services(self):
        for s in self.ask('polca-ctl cm services')['services']:
            self.check('polca-ctl cm unlisten %s' % s['service'])

    @contextlib.contextmanager
    def captured(self, port, mac):
        """Capture a card's wire meanwhile, and check every frame that Polca sent."""
        path = os.path.join(self.kept, port + '.pcap')
        c = capture.Capture(self.ns, port, path, snaplen=MTU + 100)
        try:
            yield c
        finally:
            c.stop()
        assert c.lost() == 0
        assert capture.check(path, mac)['infiniband'] > 0


_booted = []  # the Bench, while there is one


@pytest.fixture(scope='session')
def bench():
    with tempfile.TemporaryDirectory(prefix='polca-dts-') as d:
        made = Bench(d)
        try:
            _booted.append(made.start())
            yield made
        finally:
            _booted.clear()
            made.close()


@pytest.fixture(autouse=True)
def machine(bench):
    """A machine that ended fails one test, and not those behind it."""
    if bench.metal.proc.poll() is not None:
        bench.boot_again()


def pytest_runtest_protocol(item, nextitem):
    """An emulator that a signal ends says nothing about Polca, so the test is repeated once. A kernel
    that panics, in contrast, is a failure: the emulator's status is 0 then."""
    if os.path.dirname(item.path) != HERE:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if _booted and _booted[0].metal.crashed():
        item.config.get_terminal_writer().line('REPEATED: ' + _booted[0].metal.how_it_ended())
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture(scope='session')
def guide():
    return Section('On bare metal')
