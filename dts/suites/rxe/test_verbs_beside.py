# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca's devices beside a device of the kernel: an appliance in the guest itself, whose kernel has ib_core and
rxe0. The same program of the guest's Debian packages uses either."""

import json
import os
import re

import pytest

import guestpolca
from conn import wait_until
from guide import ROOT
from guestprograms import GuestPrograms

TEST_SECONDS = 240
PORT = 18530
RUN = '%s -s %s ' % (guestpolca.RUN_IN_GUEST, guestpolca.SOCKET)
DEVICES = {'polca0': 0, 'rxe0': 1}  # with the index of an IPv4 GID
NOBODY, NOBODYS_LINKS = 65534, '/tmp/polca-run-65534'


@pytest.fixture(scope='module')
def run(lab):
    """run(command): what polca-run prints in the guest."""
    guest = lab.guest
    with open(os.path.join(ROOT, 'config/default.json')) as f:
        built_in = json.load(f)
    guestpolca.install(guest, dict(built_in, workers={'count': 1, 'idle': 'backoff'}, eal={'memory_mb': 64}))
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


@pytest.mark.parametrize('device', DEVICES)
def test_ibv_rc_pingpong(run, guest, device):
    """Two programs on the device, with the bytes compared."""
    words = '%s ibv_rc_pingpong -c -n 100 -d %s -g %d -p %d' % (RUN, device, DEVICES[device], PORT)
    server = GuestPrograms(guest).spawn(*words.split())
    server.wait_listening(PORT)
    for text in (guest.check(words + ' 127.0.0.1', 60), server.end()):
        assert '100 iters in' in text and 'invalid data' not in text, text


def test_an_ordinary_user(run, guest):
    """The links are the user's own, and are not put where somebody else could change them."""
    as_nobody = '/usr/local/bin/setpriv --reuid %d --regid %d --clear-groups %s ibv_devices' % (NOBODY, NOBODY, RUN)
    guest.check('chmod 1777 /tmp; mkdir %s' % NOBODYS_LINKS)
    r = guest.run(as_nobody)
    assert r.status == 1 and 'polca-run: %s' % NOBODYS_LINKS in r.output and 'not permitted' in r.output, r
    guest.check('rmdir %s; ln -s /root %s' % (NOBODYS_LINKS, NOBODYS_LINKS))
    assert guest.run(as_nobody).status == 1
    guest.check('rm %s' % NOBODYS_LINKS)
    for _ in range(2):
        assert names(guest.check(as_nobody)) == ['polca0', 'polca1', 'rxe0']
    assert guest.check('stat -c %%a:%%u %s' % NOBODYS_LINKS).strip() == '700:%d' % NOBODY


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
