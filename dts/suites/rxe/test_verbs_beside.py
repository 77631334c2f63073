# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca's devices beside a device of the kernel: an appliance in the guest itself, whose kernel has ib_core and
rxe0. The same program of the guest's Debian packages uses either."""

import json
import os
import re
import shutil

import pytest

import guestpolca
from conn import wait_until
from guide import ROOT
from guestprograms import GuestPrograms
from lab import GUEST_IP
from rdmacm import PRELOAD, pair_until_listening

TEST_SECONDS = 240
PORT = 18530
PORT0, PORT1 = '192.0.2.1', '192.0.2.2'  # the addresses of polca0 and polca1
RUN = '%s -s %s ' % (guestpolca.RUN_IN_GUEST, guestpolca.SOCKET)
DEVICES = {'polca0': 0, 'rxe0': 1}  # with the index of an IPv4 GID
NOBODY, NOBODYS_LINKS = 65534, '/tmp/polca-run-65534'


@pytest.fixture(scope='module')
def run(lab):
    """run(command): what polca-run prints in the guest."""
    guest = lab.guest
    with open(os.path.join(ROOT, 'config/default.json')) as f:
        built_in = json.load(f)
    verbs = dict(built_in['verbs'], mode='0666')  # a program of nobody's connects
    guestpolca.install(guest, dict(built_in, workers={'count': 1, 'idle': 'backoff'}, eal={'memory_mb': 64},
                                   verbs=verbs))
    job = guest.spawn('exec polca -c /opt/polca/polca.json', 600)

    def ready():
        assert job.poll() is None, job.output()
        return 'polca: ready' in job.output()
    wait_until(ready, timeout=120, step=0.3)
    yield lambda command, timeout=60: guest.check(RUN + command, timeout)
    guest.check('killall -TERM polca')
    assert job.wait(60).status == 0, job.output()


def names(text):
    return sorted(re.findall(r'^ +(\w+)\s+[0-9a-f]{16}$', text, re.M))


def test_ibv_devices(run):
    assert names(run('ibv_devices')) == ['polca0', 'polca1', 'rxe0']


@pytest.mark.parametrize('device', ['polca0', 'polca1', 'rxe0'])
def test_ibv_devinfo(run, device):
    text = run('ibv_devinfo -v -d ' + device)
    assert re.findall(r'hca_id:\t(\w+)', text) == [device] and 'PORT_ACTIVE' in text, text


def by_polca_run(guest):
    return GuestPrograms(guest, RUN.split())


@pytest.mark.parametrize('device', DEVICES)
def test_ibv_rc_pingpong(run, guest, device):
    """Two programs on the device, with the bytes compared."""
    words = 'ibv_rc_pingpong -c -n 100 -d %s -g %d -p %d' % (device, DEVICES[device], PORT)
    server = by_polca_run(guest).spawn(*words.split())
    server.wait_listening(PORT)
    for text in (run(words + ' 127.0.0.1'), server.end()):
        assert '100 iters in' in text and 'invalid data' not in text, text


def sent_by_rxe(guest):
    return int(guest.check('cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts'))


def rping(programs, address, *client):
    """Sends, Reads and Writes, whose bytes -V compares."""
    words = ('-v', '-V', '-C', 10, '-p', PORT, '-a', address)
    for text in pair_until_listening(programs, ('rping', '-s', *words), ('rping', '-c', *words, *client)):
        assert 'ping data: rdma-ping-9:' in text, text


def test_rping(run, guest):
    """librdmacm goes to Polca, though the kernel's rdma_cm is there."""
    guest.check('test -c /dev/infiniband/rdma_cm')
    before = sent_by_rxe(guest)
    rping(by_polca_run(guest), PORT1, '-I', PORT0)
    assert sent_by_rxe(guest) == before


def test_librdmacm_uses_polcas_ports_only(run, guest):
    """The address of rxe0 is none of them."""
    r = guest.run(RUN + 'rping -s -C 1 -a ' + GUEST_IP)
    assert r.status != 0 and 'rdma_bind_addr: Cannot assign requested address' in r.output, r


def test_rping_without_polca_run(run, guest):
    """librdmacm goes to the kernel, and rxe0 sends the packets."""
    before = sent_by_rxe(guest)
    rping(GuestPrograms(guest), GUEST_IP)
    assert sent_by_rxe(guest) > before + 10


@pytest.fixture
def iperf3(run, guest):
    """iperf3(prefix, address, preload): a server and its client, which is to send 1 MiB."""
    GuestPrograms(guest).install(shutil.which('iperf3'), PRELOAD)
    jobs = []

    def start(prefix, address, preload=None):
        programs = GuestPrograms(guest, prefix)
        server = programs.spawn('iperf3', '-s', '-1', '--forceflush', '-B', address, preload=preload)
        jobs.append(server)
        wait_until(lambda: 'Server listening' in server.output(), timeout=60, step=0.3)
        client = programs.spawn('iperf3', '-c', address, '--forceflush', '-n', '1M', preload=preload)
        jobs.append(client)
        return server, client
    yield start
    for job in jobs:
        job.kill()


def transferred(job):
    """What iperf3 has reported, in each interval."""
    return re.findall(r'^\[ *\d+\] +[\d.]+-[\d.]+ +sec +([\d.]+ \w*Bytes) ', job.output(), re.M)


def test_iperf3_over_tcp(iperf3):
    """The kernel's, to show that the program runs here. The server's own sum may lack what it reads after the
    client's word that the test is over."""
    server, client = iperf3((), GUEST_IP)
    for job in client, server:
        job.end()
    assert '1.00 MBytes' in transferred(client), client.output()
    assert set(transferred(server)) - {'0.00 Bytes'}, server.output()


def transfers(server, client):
    """True when both have reported intervals. The library loses events, and so an attempt may hang before that."""
    try:
        wait_until(lambda: len(transferred(server)) >= 3 and transferred(client), timeout=20, step=0.3)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize('prefix,address', [((), GUEST_IP), (RUN.split(), PORT1)], ids=['rxe0', 'polca1'])
def test_iperf3_by_librspreload(iperf3, prefix, address):
    """On either device the connection stands and the client sends what the peer has buffers for, but the server, to
    which select() names a wrong descriptor, reads nothing. docs/verbs.md says which versions of librdmacm do so."""
    for _ in range(3):
        server, client = iperf3(prefix, address, PRELOAD)
        if transfers(server, client):
            break
        client.kill()
        server.kill()
    assert set(transferred(server)) == {'0.00 Bytes'}, server.output()
    assert set(transferred(client)) - {'0.00 Bytes'}, client.output()
    assert server.poll() is None and client.poll() is None, server.output() + client.output()


def test_an_ordinary_user(run, guest):
    """The links are the user's own, and are not put where somebody else could change them. Programs connect."""
    nobody = '/usr/local/bin/setpriv --reuid %d --regid %d --clear-groups %s' % (NOBODY, NOBODY, RUN)
    as_nobody = nobody + 'ibv_devices'
    guest.check('chmod 1777 /tmp; mkdir %s' % NOBODYS_LINKS)
    r = guest.run(as_nobody)
    assert r.status == 1 and 'polca-run: %s' % NOBODYS_LINKS in r.output and 'not permitted' in r.output, r
    guest.check('rmdir %s; ln -s /root %s' % (NOBODYS_LINKS, NOBODYS_LINKS))
    assert guest.run(as_nobody).status == 1
    guest.check('rm %s' % NOBODYS_LINKS)
    for _ in range(2):
        assert names(guest.check(as_nobody)) == ['polca0', 'polca1', 'rxe0']
    assert guest.check('stat -c %%a:%%u %s' % NOBODYS_LINKS).strip() == '700:%d' % NOBODY
    rping(GuestPrograms(guest, nobody.split()), PORT1, '-I', PORT0)


def test_without_polca_run(run, guest):
    """The kernel's device is what it was."""
    assert names(guest.check('ibv_devices')) == ['rxe0']


def test_a_device_that_comes_and_goes(run, guest):
    """Each program finds what there is when it starts."""
    guest.check('rdma link add rxe9 type rxe netdev eth1')
    try:
        wait_until(lambda: names(run('ibv_devices')) == ['polca0', 'polca1', 'rxe0', 'rxe9'], timeout=20, step=0.2)
    finally:
        guest.check('rdma link del rxe9')
    assert names(run('ibv_devices')) == ['polca0', 'polca1', 'rxe0']
